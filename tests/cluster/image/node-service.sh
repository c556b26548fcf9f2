#!/bin/sh
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# node-service.sh start|stop|status NAME: one of a node's services (munge, mariadb, slurmdbd, slurmctld, slurmd, sshd).
set -eu
action=$1
name=$2

pid_of() {
    case $name in
        munge) pgrep -o -x munged ;;
        mariadb) pgrep -o -x mariadbd || pgrep -o -x mysqld ;;
        sshd) pgrep -o -f '^(sshd: )?/usr/sbin/sshd' ;;
        # The oldest: slurmd's children are called slurmstepd, but slurmctld forks a helper of its own name.
        *) pgrep -o -x "$name" ;;
    esac
}

start() {
    case $name in
        munge) runuser -u munge -- /usr/sbin/munged ;;
        mariadb)
            (cd / && setsid mariadbd --user=mysql > /var/log/slurm/mariadb.log 2>&1 < /dev/null &)
            for _ in $(seq 300); do
                mariadb-admin ping > /dev/null 2>&1 && return 0
                sleep 0.1
            done
            echo "mariadb did not answer within 30 s" >&2
            return 1 ;;
        slurmdbd | slurmctld) runuser -u slurm -- "/usr/sbin/$name" ;;
        slurmd) /usr/sbin/slurmd ;;
        sshd) /usr/sbin/sshd ;;
        *) echo "unknown service: $name" >&2; return 2 ;;
    esac
}

stop() {
    pid=$(pid_of) || return 0
    kill "$pid"
    for _ in $(seq 100); do
        kill -0 "$pid" 2> /dev/null || return 0
        sleep 0.1
    done
    kill -9 "$pid"
}

case $action in
    start) pid_of > /dev/null || start ;;
    stop) stop ;;
    status) pid_of ;;
    *) echo "usage: node-service.sh start|stop|status NAME" >&2; exit 2 ;;
esac
