# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which refusals of sbatch are for good, and which only for now."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.refusals import is_for_now, remedy

FAILED = "sbatch: error: Batch job submission failed: "
POLICY = FAILED + "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"


@pytest.mark.parametrize(
    "text",
    [
        POLICY,
        *(
            f"sbatch: error: {name} {POLICY}"
            for name in (
                "AssocMaxSubmitJobLimit",
                "AssocGrpSubmitJobsLimit",
                "QOSMaxSubmitJobPerUserLimit",
                "QOSGrpSubmitJobsLimit",
                "MaxSubmitJobsPerAccount",
            )
        ),
        "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
        "sbatch: error: Slurm job queue full, sleeping and retrying",
        FAILED + "Resource temporarily unavailable",
        FAILED + "MaxJobCount limit reached",
        FAILED + "Rate limit exceeded, please retry later",
    ],
)
def test_a_limit_on_the_number_of_jobs_is_for_now(text: str) -> None:
    assert is_for_now(text)
    assert remedy(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            f"sbatch: error: {name} {POLICY}"
            for name in ("QOSMaxWallDurationPerJobLimit", "AssocMaxCpuPerJobLimit", "QOSMinGRES", "MaxGRESPerAccount")
        ),
        FAILED + "Invalid partition name specified",
        FAILED + "Requested node configuration is not available",
        FAILED + "Unable to contact slurm controller (connect failure)",
        "",
    ],
)
def test_everything_else_is_not(text: str) -> None:
    assert not is_for_now(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Invalid partition name specified", "sinfo --summarize"),
        ("invalid partition specified: x", "sinfo --summarize"),
        ("Requested node configuration is not available", "GRES, CPUs, memory"),
        ("Invalid generic resource (gres) specification", "nodes' GRES"),
        ("Invalid account or account/partition combination specified", "name one as account"),
        ("Invalid qos specification", "name one as qos"),
        ("Requested time limit is invalid (missing or exceeds some limit)", "less time"),
        ("Access/permission denied", "administrator"),
        ("Invalid node name specified", "sinfo -N;"),
        ("Unable to open file x", "readable"),
        (f"AssocMaxSubmitJobLimit {POLICY}", "earlier jobs"),
        ("Resource temporarily unavailable", "MaxJobCount"),
        ("unrecognized option '--x'", "long options"),
        ("Invalid feature specification", "scontrol show reservation"),
        ("Requested reservation is invalid", "scontrol show reservation"),
    ],
)
def test_a_refusal_has_its_remedy(text: str, words: str) -> None:
    assert words in (remedy(text) or "")


def test_an_unknown_refusal_has_none() -> None:
    assert remedy("Something else") is None
