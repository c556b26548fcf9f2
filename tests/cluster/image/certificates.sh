#!/bin/sh
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes a container trust what this machine trusts (/hpcval-ca.crt).
set -eu

# update-ca-certificates wants one certificate a file.
if [ -s /hpcval-ca.crt ]; then
    awk '/BEGIN CERTIFICATE/ {n++; keep = 1}
         keep {print > sprintf("/usr/local/share/ca-certificates/host-%04d.crt", n)}
         /END CERTIFICATE/ {keep = 0}' /hpcval-ca.crt
    update-ca-certificates > /dev/null 2>&1
fi
