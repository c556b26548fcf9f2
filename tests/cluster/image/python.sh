#!/bin/sh
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# python.sh SUITE MIRROR: runs inside a bare Debian and makes it the base of Apptainer images, as python:slim is elsewhere.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

/hpcval-recipe/apt.sh "$1" "$2"
apt-get -q update
apt-get -q -y install python3 python3-venv ca-certificates
/hpcval-recipe/certificates.sh
apt-get -q clean
rm -rf /var/lib/apt/lists/* /etc/apt/apt.conf.d/90hpcval
