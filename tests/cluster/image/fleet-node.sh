#!/bin/sh
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# The nodes of a fleet: many in one container, each with a name, processes and mounts of its own (README.md says what
# they share).
#   fleet-node.sh begin NODE                      when the container starts
#   fleet-node.sh enter NODE UID:GID COMMAND …    run a command in one of them
set -eu
own=/var/lib/hpcval-fleet
config=/etc/hpcval
action=$1
shift

# Outside the node, until it has become one.
begin() {
    mkdir -p "$own/$1"
    setsid unshare --uts --mount --pid --fork "$0" become "$1" > "$own/$1/start.log" 2>&1 < /dev/null &
    for _ in $(seq 600); do
        [ ! -e "$own/$1/pid" ] || return 0
        sleep 0.1
    done
    echo "hpcval: $1 did not start" >&2
    cat "$own/$1/start.log" >&2
    return 1
}

# The first process of the node.
become() {
    read -r pid _ < /proc/self/stat # its number in the container, whose /proc is still mounted
    hostname "$1"
    for folder in run/hpcval run/slurm var/spool/slurmd var/log/slurm tmp; do
        mkdir -p "$own/$1/$folder"
        mount --bind "$own/$1/$folder" "/$folder"
    done
    chmod 1777 /tmp
    cp /etc/ld.so.preload "$own/$1/ld.so.preload"
    mount --bind "$own/$1/ld.so.preload" /etc/ld.so.preload
    mount -t proc proc /proc
    mount -t proc proc /run/hpcval-proc
    mount --bind $config/beegfs/fleet/proc_fs /proc/fs
    ln -s $config/beegfs/fleet /run/hpcval/beegfs
    gpu-states.sh "$1"
    node-service.sh start slurmd
    echo "$pid" > "$own/$1/pid.new"
    mv "$own/$1/pid.new" "$own/$1/pid"
    exec tini -g -- sleep infinity
}

case $action in
    begin) begin "$1" ;;
    become) become "$1" ;;
    enter)
        node=$1
        user=$2
        shift 2
        # shellcheck disable=SC2016 # expanded inside
        exec nsenter --target "$(cat "$own/$node/pid")" --uts --mount --pid \
            --setuid "${user%:*}" --setgid "${user#*:}" -- sh -c 'cd "$HOME"; exec "$@"' sh "$@" ;;
    *) echo "usage: fleet-node.sh begin NODE | enter NODE UID:GID COMMAND …" >&2; exit 2 ;;
esac
