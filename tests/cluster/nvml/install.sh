#!/bin/sh
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Compiles the two stand-ins and installs them where the loader finds them. Runs while an image is built.
set -eu
here=$(dirname "$0")
libraries=/usr/local/lib
flags="-std=gnu11 -O2 -Wall -Wextra -shared -fPIC"
# shellcheck disable=SC2086
gcc $flags -Wl,-soname,libnvidia-ml.so.1 -o "$libraries/libnvidia-ml.so.1" "$here/nvml.c" -lpthread
# shellcheck disable=SC2086
gcc $flags -o "$libraries/libhpcval-hold.so" "$here/hold.c" -ldl
ldconfig
echo "$libraries/libhpcval-hold.so" > /etc/ld.so.preload
