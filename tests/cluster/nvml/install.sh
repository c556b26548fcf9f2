#!/bin/sh
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Compiles the stand-ins and installs them where the loader finds them. Runs while an image is built.
set -eu
cd "$(dirname "$0")"
libraries=/usr/local/lib
flags="-std=gnu11 -O2 -Wall -Wextra"
# shellcheck disable=SC2086
gcc $flags -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -Wl,--version-script=nvml.map -o "$libraries/libnvidia-ml.so.1" \
    library.c state.c device.c health.c links.c events.c gpm.c processes.c -lpthread
# shellcheck disable=SC2086
gcc $flags -shared -fPIC -o "$libraries/libhpcval-hold.so" hold.c -ldl
# shellcheck disable=SC2086
gcc $flags -o /usr/local/bin/nvml-layout layout.c
ldconfig
echo "$libraries/libhpcval-hold.so" > /etc/ld.so.preload
