#!/bin/sh
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# packages.sh SUITE MIRROR RELEASE: runs inside a bare Debian (pulled or bootstrapped), installs what every node needs.
set -eu
suite=$1
mirror=$2
release=$3
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

/hpcval-recipe/apt.sh "$suite" "$mirror"
# Services are started by start-node.sh, never by a package.
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d

apt-get -q update
apt-get -q -y install \
    slurmctld slurmd slurmdbd slurm-client munge mariadb-server \
    openssh-server openssh-client python3 ca-certificates \
    gcc libc6-dev tini procps iproute2 util-linux less
# Debian has Apptainer in sid alone. Its package needs nothing that trixie has not; bookworm's libc is too old for it.
case $suite in
    trixie)
        echo "deb $mirror sid main" > /etc/apt/sources.list.d/sid.list
        printf 'Package: *\nPin: release n=sid\nPin-Priority: 100\n' > /etc/apt/preferences.d/sid
        apt-get -q update
        apt-get -q -y install apptainer squashfuse
        ;;
    sid) apt-get -q -y install apptainer squashfuse ;;
esac
version=$(dpkg-query --show --showformat='${Version}' slurmctld)
case $version in
    "$release".*) ;;
    *) echo "Debian $suite has Slurm $version now, not $release" >&2; exit 1 ;;
esac
rm -rf /var/lib/apt/lists/* /etc/slurm/* /etc/munge/munge.key /etc/ssh/ssh_host_*
