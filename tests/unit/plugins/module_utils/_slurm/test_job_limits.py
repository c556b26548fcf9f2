# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many jobs a site allows in the queue at once, from the configuration and accounting of a Slurm in memory."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import Result
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job_limits import Asked, Limit, tightest

ENFORCED = "ClusterName = hpc\nMaxJobCount = 10000\nAccountingStorageEnforce = associations,limits,qos\n"
PLAIN = Asked("", "", "")


class Site:
    """A Slurm that answers with these texts."""

    def __init__(self, config: str = ENFORCED, users: str = "", qos: str = "") -> None:
        self.texts, self.calls = {"config": config, "user": users, "qos": qos}, []

    def __call__(self, argv: list[str], **_options: Any) -> Result:
        self.calls.append(argv)
        return Result(0, self.texts[next(word for word in self.texts if word in argv)].encode())


def job(state: str) -> dict[str, Any]:
    return {"state": state}


def limit(site: Site, *asked: Asked, jobs: tuple[str, ...] = ()) -> Limit | None:
    return tightest(site, "admin", asked or (PLAIN,), [job(state) for state in jobs])


def test_where_no_limits_are_enforced_accounting_is_not_asked() -> None:
    site = Site("MaxJobCount = 50\nAccountingStorageEnforce = none\n", users="a|a|||1||||")
    assert limit(site) == Limit(50, "MaxJobCount is 50")
    assert [call[0] for call in site.calls] == ["scontrol"]


@pytest.mark.parametrize(
    ("row", "most", "why"),
    [
        ("a|a||7||||", 7, "MaxJobs of account a is 7"),
        ("a|a|||6|||", 6, "MaxSubmit of account a is 6"),
        ("a|a||7|6|5||", 5, "GrpJobs of account a is 5"),
        ("a|a||7|6|5|4|", 4, "GrpSubmit of account a is 4"),
        ("a|a||||||", 10000, "MaxJobCount is 10000"),
        ("a|b||1|1|1|1|", 10000, "MaxJobCount is 10000"),
        ("a|a|||0|||", 1, "MaxSubmit of account a is 0"),
        ("garbage", 10000, "MaxJobCount is 10000"),
    ],
)
def test_the_tightest_limit_of_the_association_counts(row: str, most: int, why: str) -> None:
    assert limit(Site(users=row + "\n")) == Limit(most, why)


def test_jobs_that_are_there_already_take_their_part() -> None:
    there = ("RUNNING", "PENDING", "PENDING", "COMPLETED")
    site = Site(users="a|a||10|20|||\n")
    assert limit(site, jobs=there) == Limit(9, "MaxJobs of account a is 10, 1 taken")
    site = Site(users="a|a|||20|||\n")
    assert limit(site, jobs=there) == Limit(17, "MaxSubmit of account a is 20, 3 taken")


def test_the_association_is_that_of_the_jobs_account_and_partition() -> None:
    users = "a|a|||30|||\na|b|||20|||\na|b|gpu||10|||\na|b|cpu||5|||\n"
    assert limit(Site(users=users)) == Limit(30, "MaxSubmit of account a is 30")
    assert limit(Site(users=users), Asked("b", "", "")) == Limit(20, "MaxSubmit of account b is 20")
    assert limit(Site(users=users), Asked("b", "gpu", "")) == Limit(10, "MaxSubmit of account b is 10")
    assert limit(Site(users=users), Asked("b", "debug", "")) == Limit(20, "MaxSubmit of account b is 20")
    only = "a|b|gpu||10|||\n"
    assert limit(Site(users=only), Asked("b", "debug", "")) == Limit(10000, "MaxJobCount is 10000")
    assert limit(Site(users=users), PLAIN, Asked("b", "gpu", "")) == Limit(10, "MaxSubmit of account b is 10")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("high|3|||||", "MaxJobsPU of QOS high is 3"),
        ("high||3||||", "MaxSubmitPU of QOS high is 3"),
        ("high|||3|||", "MaxJobsPA of QOS high is 3"),
        ("high||||3||", "MaxSubmitPA of QOS high is 3"),
        ("high|||||3|", "GrpJobs of QOS high is 3"),
        ("high||||||3", "GrpSubmit of QOS high is 3"),
    ],
)
def test_the_qos_limits_too(row: str, why: str) -> None:
    site = Site(users="a|a|||9|||normal\n", qos=row + "\n")
    assert limit(site, Asked("", "", "high")) == Limit(3, why)
    assert "high,normal" in site.calls[-1]


def test_without_a_qos_none_is_asked_about() -> None:
    site = Site(users="a|a|||9|||\n")
    limit(site)
    assert len(site.calls) == 2
    assert "cluster=hpc" in site.calls[1]


def test_silence_is_no_limit() -> None:
    assert tightest(lambda _argv, **_options: Result(1, b"", "no"), "admin", [PLAIN], []) is None


def test_what_a_job_asks_for_is_read_from_its_options_and_its_script() -> None:
    script = b"#!/bin/bash\n#SBATCH --account=a --qos=low\ntrue\n"
    argv = ("sbatch", "--parsable", "--qos=high", "--partition=gpu", "/x.sbatch")
    assert Asked.of(argv, script) == Asked("a", "gpu", "high")
    assert Asked.of(("sbatch",), b"#!/bin/bash\n") == PLAIN


def test_a_site_that_takes_no_job_is_asked_with_one() -> None:
    assert limit(Site("MaxJobCount = 0\n")) == Limit(1, "MaxJobCount is 0")


def test_jobs_that_run_one_after_the_other_are_not_limited_by_how_many_may_run() -> None:
    site = Site(users="a|a||1|6|1|7|normal\n", qos="normal|1|5|1|9|1|9\n")
    assert tightest(site, "admin", [PLAIN], [], together=False) == Limit(5, "MaxSubmitPU of QOS normal is 5")
    assert tightest(site, "admin", [PLAIN], []) == Limit(1, "MaxJobs of account a is 1")
