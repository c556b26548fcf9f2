#!/bin/sh
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# packages.sh SUITE MIRROR RELEASE: runs inside a bare Debian (pulled or bootstrapped), installs what every node needs.
# /hpcval-apt holds this machine's apt settings, /hpcval-ca.crt the certificates it trusts.
set -eu
suite=$1
mirror=$2
release=$3
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

# Official images delete every downloaded package; the archive is a cache here.
rm -f /etc/apt/apt.conf.d/docker-clean
cat /hpcval-apt > /etc/apt/apt.conf.d/90hpcval
cat >> /etc/apt/apt.conf.d/90hpcval <<'CONF'
Acquire::Languages "none";
APT::Install-Recommends "false";
APT::Keep-Downloaded-Packages "true";
APT::Sandbox::User "root";
CONF
if [ -s /hpcval-ca.crt ]; then
    echo 'Acquire::https::CaInfo "/hpcval-ca.crt";' >> /etc/apt/apt.conf.d/90hpcval
fi
cat > /etc/dpkg/dpkg.cfg.d/90hpcval <<'CONF'
force-unsafe-io
path-exclude=/usr/share/doc/*
path-exclude=/usr/share/man/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/info/*
CONF
rm -f /etc/apt/sources.list.d/*
echo "deb $mirror $suite main" > /etc/apt/sources.list
# Services are started by start-node.sh, never by a package.
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d

apt-get -q update
apt-get -q -y install \
    slurmctld slurmd slurmdbd slurm-client munge mariadb-server \
    openssh-server openssh-client python3 ca-certificates \
    gcc libc6-dev tini procps iproute2 util-linux less
version=$(dpkg-query --show --showformat='${Version}' slurmctld)
case $version in
    "$release".*) ;;
    *) echo "Debian $suite has Slurm $version now, not $release" >&2; exit 1 ;;
esac
rm -rf /var/lib/apt/lists/* /etc/slurm/* /etc/munge/munge.key /etc/ssh/ssh_host_*
