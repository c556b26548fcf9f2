#!/bin/sh
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# The edge host's first process (under tini): keys, sshd, stays. /etc/hpcval (read only) holds the keys.
set -eu
install -m 600 /etc/hpcval/ssh_host_ed25519_key /etc/ssh/
install -m 644 /etc/hpcval/ssh_host_ed25519_key.pub /etc/ssh/
install -d -m 700 -o admin -g admin /home/admin/.ssh
install -m 600 -o admin -g admin /etc/hpcval/authorized_keys /home/admin/.ssh/authorized_keys
install -d -m 755 /run/sshd
/usr/sbin/sshd
echo "hpcval: $(hostname) started"
exec sleep infinity
