#!/bin/bash
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# machine.sh CARRIED [SHARE]: as root, makes this machine a Slurm cluster of one node with the GPUs it has, login node and
# compute node at once, with a share (a tmpfs) and the user admin. CARRIED is the folder that fetch.py filled.
# Nothing that is there is replaced. Ends with what it chose: confinement, GPUs, kernel log.
set -euo pipefail
carried=$(realpath "$1")
share=${2:-/mnt/beegfs}
state=/var/lib/hpcval-rig
export LC_ALL=C.UTF-8 PATH="$PATH:/usr/sbin:/sbin"

say() { echo "machine: $*"; }
die() { say "$*" >&2; exit 1; }
# until_true SECONDS COMMAND…: polls a condition.
until_true() {
    local seconds=$1
    shift
    for _ in $(seq $((seconds * 10))); do
        "$@" > /dev/null 2>&1 && return 0
        sleep 0.1
    done
    return 1
}

# -- packages: their files beside what is there. `dpkg -x` into / would replace links such as /lib.
unpack() {
    local scratch
    scratch=$(mktemp -d)
    for deb in "$carried"/debs/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -C "$scratch" -x --no-same-owner
    done
    for name in bin sbin lib lib64; do
        [ -d "$scratch/$name" ] || continue
        mkdir -p "$scratch/usr/$name"
        cp -a "$scratch/$name/." "$scratch/usr/$name/"
        rm -rf "${scratch:?}/$name"
    done
    rm -rf "$scratch/usr/share/doc" "$scratch/usr/share/man" "$scratch/lib/systemd" "$scratch/etc/init.d"
    (cd "$scratch" && find . -type d -printf '%P\n' && echo && find . ! -type d -printf '%P\n') | while read -r name; do
        if [ -e "/$name" ] || [ -L "/$name" ]; then
            continue
        elif [ -d "$scratch/$name" ] && [ ! -L "$scratch/$name" ]; then
            mkdir -p "/$name"
        else
            cp -a "$scratch/$name" "/$name"
        fi
    done
    rm -rf "$scratch"
    # What the packages' own scripts would have linked.
    for name in slurmctld slurmd slurmstepd; do
        [ -e "/usr/sbin/$name" ] || ln -s "$name-wlm" "/usr/sbin/$name"
    done
    # The driver's libraries may be known by LD_LIBRARY_PATH alone, which no job has.
    local program
    tr ':' '\n' <<< "${LD_LIBRARY_PATH:-}:/usr/local/nvidia/lib64:/usr/local/nvidia/lib" | while read -r folder; do
        [ ! -e "$folder/libnvidia-ml.so.1" ] || echo "$folder"
    done > /etc/ld.so.conf.d/hpcval-driver.conf
    ldconfig
    program=$(command -v nvidia-smi || echo /usr/local/nvidia/bin/nvidia-smi)
    [ -e /usr/bin/nvidia-smi ] || [ ! -x "$program" ] || ln -s "$program" /usr/bin/nvidia-smi
    local missing
    missing=$(for program in munged slurmctld slurmd sbatch srun sinfo; do
        ldd "$(command -v "$program" || echo "/$program")" 2>&1 | awk -v program="$program" '/not found|No such file/ {print program ": " $1}'
    done)
    [ -z "$missing" ] || die "libraries are missing: $missing"
}

users() {
    for name in munge slurm; do
        getent passwd "$name" > /dev/null ||
            useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$name"
    done
    install -d -m 700 -o munge -g munge /etc/munge /var/lib/munge /var/log/munge
    install -d -m 755 -o munge -g munge /run/munge
    (umask 077 && head -c 1024 /dev/urandom > /etc/munge/munge.key)
    chown munge:munge /etc/munge/munge.key
    chmod 400 /etc/munge/munge.key
    install -d -m 755 -o slurm -g slurm /run/slurm /var/spool/slurmctld /var/log/slurm
    install -d -m 755 /var/spool/slurmd /etc/slurm "$state"
    # Xids are in the kernel log, which admin reads as users of most sites can.
    echo 0 > /proc/sys/kernel/dmesg_restrict 2> /dev/null || true
}

gpus() { find /dev -maxdepth 1 -name 'nvidia[0-9]*' | wc -l; }

# configure v2|v1|none: Slurm's configuration with that confinement.
configure() {
    local tracks=proctrack/cgroup tasks=task/cgroup gres=""
    if [ "$1" = none ]; then
        tracks=proctrack/linuxproc tasks=task/none
        # Nothing then uses the plugin, and naming one keeps slurmd from ending where it cannot tell which it would be.
        printf '%s\n' CgroupPlugin=cgroup/v1 CgroupAutomount=no > /etc/slurm/cgroup.conf
    else
        # Memory is not constrained: what a job writes to the share counts as its own, as the share is a tmpfs.
        printf '%s\n' "CgroupPlugin=cgroup/$1" ConstrainDevices=yes ConstrainRAMSpace=no ConstrainCores=no \
            > /etc/slurm/cgroup.conf
        [ "$1" = v1 ] || echo IgnoreSystemd=yes >> /etc/slurm/cgroup.conf
        [ "$1" = v2 ] || echo CgroupAutomount=yes >> /etc/slurm/cgroup.conf
    fi
    [ "$(gpus)" = 0 ] || gres=" Gres=gpu:$(gpus)"
    find /dev -maxdepth 1 -name 'nvidia[0-9]*' | sort -V | sed 's|^|Name=gpu File=|' > /etc/slurm/gres.conf
    cat > /etc/slurm/slurm.conf <<CONF
ClusterName=rig
SlurmctldHost=$node(127.0.0.1)
SlurmUser=slurm
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
MailProg=/bin/true
MpiDefault=none
ProctrackType=$tracks
TaskPlugin=$tasks
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
MinJobAge=900
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=5,sched_min_interval=10000,bf_interval=5
AccountingStorageType=accounting_storage/none
NodeName=$node NodeAddr=127.0.0.1 CPUs=${RIG_CPUS:-$(nproc)} RealMemory=${RIG_MEMORY_MIB:-$memory}$gres State=UNKNOWN
PartitionName=gpu Nodes=$node Default=YES State=UP DefaultTime=00:30:00 MaxTime=2-00:00:00 DefMemPerCPU=1024
CONF
}

stop() {
    local pid
    for name in slurmd slurmctld; do
        pid=$(cat "/run/slurm/$name.pid" 2> /dev/null) || continue
        kill "$pid" 2> /dev/null || continue
        until_true 10 test ! -d "/proc/$pid" || kill -9 "$pid"
    done
    rm -rf /var/spool/slurmctld/* /var/spool/slurmd/*
}

idle() { [ "$(timeout 6 sinfo --noheader --format=%T)" = idle ]; }
answers() { munge --no-input | unmunge; }

# works v2|v1|none: whether jobs run with that confinement.
works() {
    configure "$1"
    runuser -u slurm -- "$(command -v slurmctld)" && slurmd || return 1
    until_true 15 idle || return 1
    (cd / && timeout 20 runuser -u admin -- srun --quiet --ntasks=1 true) || return 1
}

# What a job without a GPU can open: with devices confined, none.
confined() {
    # shellcheck disable=SC2016 # for the job's shell
    (cd / && timeout 20 runuser -u admin -- srun --quiet --ntasks=1 sh -c \
        'for device in /dev/nvidia[0-9]*; do (: < "$device") 2> /dev/null && exit 1; done; exit 0')
}

kinds() {
    # Mounted only where no controller is in a hierarchy of the older kind already: Slurm refuses a mixture.
    if [ -z "$(ls /sys/fs/cgroup 2> /dev/null)" ] && ! grep -qv '^0::' /proc/self/cgroup; then
        mount -t cgroup2 cgroup2 /sys/fs/cgroup 2> /dev/null || true
    fi
    if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
        mkdir -p /sys/fs/cgroup/system.slice # where slurmd's own groups are
        tr ' ' '\n' < /sys/fs/cgroup/cgroup.controllers | while read -r controller; do
            # Refused where a group that is not the root holds processes: then there is no confinement.
            echo "+$controller" > /sys/fs/cgroup/cgroup.subtree_control || true
            echo "+$controller" > /sys/fs/cgroup/system.slice/cgroup.subtree_control || true
        done 2> /dev/null
        echo v2
    elif [ -d /sys/fs/cgroup/devices ] && [ -d /sys/fs/cgroup/freezer ]; then
        echo v1
    fi
    echo none
}

getent passwd admin > /dev/null || useradd --create-home --user-group --shell /bin/bash admin
mkdir -p "$share"
mountpoint -q "$share" || mount -t tmpfs -o "size=${RIG_SHARE_SIZE:-60%},mode=755" hpcval-rig "$share"
chown admin:admin "$share"

unpack
users
node=$(hostname -s 2> /dev/null || true)
if [ -z "$node" ] || [ "$node" = localhost ]; then
    node=rig
    hostname "$node"
fi
getent hosts "$node" > /dev/null || echo "127.0.0.1 $node" >> /etc/hosts
memory=$(awk '/^MemTotal:/ {print int($2 / 1024 * 0.97)}' /proc/meminfo)

answers > /dev/null 2>&1 || runuser -u munge -- "$(command -v munged)" --force > "$state/munged.log" 2>&1 ||
    die "munged: $(tail -3 "$state/munged.log")"
until_true 10 answers || die "munged does not answer"

chosen=""
for kind in ${RIG_CONFINEMENT:-$(kinds)}; do
    if works "$kind"; then
        chosen=$kind
        break
    fi
    say "confinement $kind does not work here: $(grep -h error /var/log/slurm/slurmd.log | tail -2 | tr '\n' ' ')"
    stop
    mv -f /var/log/slurm/slurmd.log "$state/slurmd-$kind.log" 2> /dev/null || true
done
[ -n "$chosen" ] || die "Slurm does not run: $(tail -5 /var/log/slurm/slurmctld.log "$state"/slurmd-*.log 2> /dev/null)"
devices=no
[ "$(gpus)" = 0 ] || ! confined || devices=yes

log=refused
! runuser -u admin -- dmesg > /dev/null 2>&1 || log=readable
say "confinement $chosen, devices confined: $devices, GPUs: $(gpus), kernel log: $log, kernel $(uname -r)"
sinfo --Node --long
sbatch --version
