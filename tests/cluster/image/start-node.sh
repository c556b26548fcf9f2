#!/bin/sh
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# The node's first process (under tini): puts the cluster's configuration in place, starts the services, stays.
# /etc/hpcval (read only) holds the configuration that `cluster up` wrote.
set -eu
host=$(hostname)
config=/etc/hpcval

install -m 400 -o munge -g munge $config/munge.key /etc/munge/munge.key
install -d -m 755 -o munge -g munge /run/munge
install -m 644 $config/slurm.conf $config/gres.conf $config/cgroup.conf /etc/slurm/
install -m 600 $config/ssh_host_ed25519_key /etc/ssh/
install -m 644 $config/ssh_host_ed25519_key.pub /etc/ssh/
install -m 644 $config/environment /etc/environment
install -d -m 700 -o admin -g admin /home/admin/.ssh
install -m 600 -o admin -g admin $config/authorized_keys /home/admin/.ssh/authorized_keys
install -d -m 755 /run/sshd
install -d -m 755 -o slurm -g slurm /run/slurm
[ ! -e /dev/fuse ] || chmod 666 /dev/fuse # what udev gives it elsewhere: Apptainer mounts its images by it

# What BeeGFS's tools and kernel client answer here; `cluster beegfs` writes it.
case $host in
    # Each node of a fleet has a /run/hpcval of its own.
    fleet) ln -sfn /run/hpcval/beegfs/bin /run/hpcval-beegfs ;;
    *) ln -sfn "$config/beegfs/$host/bin" /run/hpcval-beegfs ;;
esac
mount --bind "$config/beegfs/$host/proc_fs" /proc/fs
# The kernel lets a user namespace, in which Apptainer builds, mount /proc only where a whole one can be seen already.
install -d /run/hpcval-proc
mount -t proc proc /run/hpcval-proc

node-service.sh start munge
node-service.sh start sshd

if [ "$host" = login ]; then
    if [ -f $config/slurmdbd.conf ]; then
        install -m 600 -o slurm -g slurm $config/slurmdbd.conf /etc/slurm/slurmdbd.conf
        install -d -o mysql -g mysql /run/mysqld
        node-service.sh start mariadb
        password=$(sed -n 's/^StoragePass=//p' /etc/slurm/slurmdbd.conf)
        mariadb <<SQL
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED BY '$password';
GRANT ALL ON slurm_acct_db.* TO slurm@localhost;
SQL
        node-service.sh start slurmdbd
        cluster=$(sed -n 's/^ClusterName=//p' /etc/slurm/slurm.conf)
        for _ in $(seq 300); do
            # Refused until slurmdbd listens, and where the cluster is there already: the list tells.
            sacctmgr --immediate --quiet add cluster "$cluster" > /dev/null 2>&1 || true
            sacctmgr --noheader --parsable2 list cluster format=cluster 2> /dev/null | grep -qx "$cluster" && break
            sleep 0.1
        done
        sacctmgr --immediate --quiet add account hpc Cluster="$cluster" > /dev/null
        sacctmgr --immediate --quiet add user admin Account=hpc Cluster="$cluster" > /dev/null
    fi
    node-service.sh start slurmctld
else
    install -d -m 755 /run/hpcval
    for index in 0 1; do
        rm -f "/dev/nvidia$index"
        mknod -m 666 "/dev/nvidia$index" c 195 "$index"
    done
    if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
        # cgroup v2 hands controllers only to groups whose parent holds no process itself.
        mkdir -p /sys/fs/cgroup/services
        while read -r pid; do
            # Some have ended meanwhile. One that stayed would have the next loop refused.
            echo "$pid" > /sys/fs/cgroup/services/cgroup.procs || true
        done < /sys/fs/cgroup/cgroup.procs
        tr ' ' '\n' < /sys/fs/cgroup/cgroup.controllers | while read -r controller; do
            # Refused where the machine does not hand it on; slurmd names the one that it misses.
            echo "+$controller" > /sys/fs/cgroup/cgroup.subtree_control || true
        done
    fi
    if [ "$host" = fleet ]; then
        sed "s/^/$(hostname -i) /" $config/fleet >> /etc/hosts
        xargs -P 8 -n 1 fleet-node.sh begin < $config/fleet
    else
        gpu-states.sh "$host"
        node-service.sh start slurmd
    fi
fi
echo "hpcval: $host started"
exec sleep infinity
