# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many jobs a site lets a user have in the queue at once: slurm.conf, the user's association, its QOS.

What cannot be read is no limit here: sbatch refuses a job beyond it, and that job is held back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import options
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import Runner
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cluster import CONFIG_ARGV, parse_config
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import Job
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import LIVE
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import number

_SACCTMGR = ["sacctmgr", "--noheader", "--parsable2", "--readonly", "show"]
# Limits of running jobs, then of jobs in the queue.
_RUNNING = ("MaxJobs", "GrpJobs", "MaxJobsPU", "MaxJobsPA")
_QUEUED = ("MaxSubmit", "GrpSubmit", "MaxSubmitPU", "MaxSubmitPA")
_ASSOCIATION = ("DefaultAccount", "Account", "Partition", "MaxJobs", "MaxSubmit", "GrpJobs", "GrpSubmit", "DefaultQOS")
_QOS = ("Name", "MaxJobsPU", "MaxSubmitPU", "MaxJobsPA", "MaxSubmitPA", "GrpJobs", "GrpSubmit")
_SECONDS = 10.0

Row = dict[str, str]


@dataclass(frozen=True)
class Limit:
    """How many of a task's jobs may be in the queue at once, and what limits them to that."""

    jobs: int
    why: str


@dataclass(frozen=True)
class Asked:
    """What decides which limits hold for a job; empty where it does not say."""

    account: str
    partition: str
    qos: str

    @staticmethod
    def of(argv: Iterable[str], script: bytes) -> Asked:
        """Return it from sbatch's arguments and the script's directives."""
        words = [*options.directives(script), *argv]
        return Asked(*(options.value_of(name, words) or "" for name in ("account", "partition", "qos")))


def tightest(
    run: Runner, user: str, asked: Sequence[Asked], jobs: Sequence[Job], *, together: bool = True
) -> Limit | None:
    """Return the tightest limit for these jobs; None if there is none. `jobs` are the user's others in the queue.

    Unless they run `together`, limits of running jobs do not count: one waits for the other.
    """
    config = parse_config(run(CONFIG_ARGV).text)
    limits = _of_config(config)
    if "limits" in config.get("AccountingStorageEnforce", "").split(","):
        limits += _of_accounting(run, user, config.get("ClusterName", ""), set(asked), jobs, together)
    return min(limits, key=lambda limit: limit.jobs, default=None)


def _of_config(config: Mapping[str, str]) -> list[Limit]:
    most = number(config.get("MaxJobCount", ""))
    return [Limit(max(1, most), f"MaxJobCount is {most}")] if most is not None else []


def _of_accounting(
    run: Runner, user: str, cluster: str, asked: set[Asked], jobs: Sequence[Job], together: bool
) -> list[Limit]:
    argv = [*_SACCTMGR, "user", user, "withassoc", f"cluster={cluster}", f"format={','.join(_ASSOCIATION)}"]
    rows = _rows(run(argv, seconds=_SECONDS).text, _ASSOCIATION)
    associations = [row for each in asked for row in _associations(rows, each)]
    names = {each.qos for each in asked if each.qos} | {row["DefaultQOS"] for row in associations if row["DefaultQOS"]}
    limits = [limit for row in associations for limit in _limits(row, f"account {row['Account']}", jobs, together)]
    if names:
        text = run([*_SACCTMGR, "qos", ",".join(sorted(names)), f"format={','.join(_QOS)}"], seconds=_SECONDS).text
        limits += [limit for row in _rows(text, _QOS) for limit in _limits(row, f"QOS {row['Name']}", jobs, together)]
    return limits


def _rows(text: str, fields: Sequence[str]) -> list[Row]:
    lines = [line.split("|") for line in text.split("\n")]
    return [dict(zip(fields, words)) for words in lines if len(words) == len(fields)]


def _associations(rows: Sequence[Row], asked: Asked) -> list[Row]:
    """Return the association of a job: that of its partition if there is one, else that of all partitions."""
    of_account = [row for row in rows if row["Account"] == (asked.account or row["DefaultAccount"])]
    return [row for row in of_account if row["Partition"] == asked.partition] or [
        row for row in of_account if not row["Partition"]
    ]


def _limits(row: Row, whose: str, jobs: Sequence[Job], together: bool) -> list[Limit]:
    live = [job for job in jobs if job["state"] in LIVE]
    taken = {_QUEUED: len(live)}
    if together:
        taken[_RUNNING] = sum(job["state"] != "PENDING" for job in live)
    found = [(name, number(row.get(name, "")), taken[names]) for names in taken for name in names]
    return [
        Limit(max(1, most - used), f"{name} of {whose} is {most}" + (f", {used} taken" if used else ""))
        for name, most, used in found
        if most is not None
    ]
