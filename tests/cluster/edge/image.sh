#!/bin/sh
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# image.sh SUITE MIRROR: runs inside a bare Debian and makes it an edge host: ssh and Python, nothing else.
# /hpcval-recipe is the nodes' recipe, /hpcval-edge the folder that holds this file.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

/hpcval-recipe/apt.sh "$1" "$2"
# start.sh starts sshd, never a package.
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
apt-get -q update
apt-get -q -y install openssh-server python3 tini procps
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /etc/apt/apt.conf.d/90hpcval /etc/ssh/ssh_host_*

useradd --create-home --uid 1000 --shell /bin/bash admin
usermod --password '*' admin # no password, yet not locked, which sshd without PAM refuses
install -m 755 /hpcval-edge/start.sh /usr/local/sbin/edge-start.sh
install -m 755 /hpcval-edge/stays.py /usr/local/lib/edge_stays.py
# PAM's modules want privileges that this host has not.
cat > /etc/ssh/sshd_config.d/hpcval.conf <<'CONF'
UsePAM no
PasswordAuthentication no
UseDNS no
PrintMotd no
PrintLastLog no
MaxStartups 100
MaxSessions 100
HostKey /etc/ssh/ssh_host_ed25519_key
CONF
