#!/bin/sh
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# apt.sh SUITE MIRROR: inside a bare Debian, apt as this machine has it and nothing that a container has no use for.
# /hpcval-apt holds this machine's apt settings, /hpcval-ca.crt the certificates it trusts.
set -eu
suite=$1
mirror=$2

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
