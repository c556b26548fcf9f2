#!/bin/sh
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# gpu-states.sh NODE: what the node's simulated GPUs say at first, and the files by which one knows that they are held.
set -eu
for state in "/etc/hpcval/gpus/$1"/*; do
    install -m 644 "$state" /run/hpcval/
    index=$(basename "$state" | tr -dc 0-9)
    [ -z "$index" ] || install -m 666 /dev/null "/run/hpcval/gpu$index.held"
done
