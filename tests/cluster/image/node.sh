#!/bin/sh
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs inside the image made by packages.sh: the user, the certificates, the stand-ins.
# /hpcval-recipe is the folder that holds this file, /hpcval-nvml the stand-in's sources.
set -eu

useradd --create-home --uid 1000 --shell /bin/bash admin
install -d -o slurm -g slurm /var/spool/slurmctld /var/log/slurm
install -d /var/spool/slurmd /run/sshd /mnt/beegfs /etc/slurm
for script in start-node fleet-node node-service gpu-states; do
    install -m 755 "/hpcval-recipe/$script.sh" /usr/local/sbin/
done
install -m 755 /hpcval-recipe/kernel_log.py /hpcval-recipe/beegfs_stand_in.py /usr/local/lib/
ln -s ../lib/kernel_log.py /usr/local/bin/dmesg
ln -s ../lib/kernel_log.py /usr/local/bin/journalctl
for tool in beegfs beegfs-ctl; do
    ln -s "/run/hpcval-beegfs/$tool" "/usr/local/bin/$tool"
done

/hpcval-recipe/certificates.sh

cat > /etc/ssh/sshd_config.d/hpcval.conf <<'CONF'
PasswordAuthentication no
UseDNS no
PrintMotd no
PrintLastLog no
MaxStartups 100
MaxSessions 100
HostKey /etc/ssh/ssh_host_ed25519_key
CONF

cat > /etc/mysql/conf.d/hpcval.cnf <<'CONF'
[mysqld]
skip-networking
innodb_flush_log_at_trx_commit = 0
innodb_log_file_size = 16M
innodb_buffer_pool_size = 64M
innodb_lock_wait_timeout = 900
loose_innodb_snapshot_isolation = OFF
performance_schema = OFF
CONF

/hpcval-nvml/install.sh
