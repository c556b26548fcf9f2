# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of slurm_job: one job and its own script each, and a key by which it is known again."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.arguments import (
    BadArgumentsError,
    check_window,
    job_specs,
)


def test_each_job_has_its_key_and_the_tasks_own_options():
    specs = job_specs(
        {"share": "/s", "jobs": [{"key": "b", "path": "/x"}, {"key": "a", "job_id": "7"}, {"path": "/y"}]}
    )
    assert [(spec["key"], spec["share"]) for spec in specs] == [("b", "/s"), ("a", "/s"), (None, "/s")]


def test_a_single_job_may_have_a_key():
    assert job_specs({"path": "/x", "key": "a"})[0]["key"] == "a"
    assert job_specs({"path": "/x"})[0]["key"] is None
    assert job_specs({"key": "a"}) == []


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"jobs": [{"key": key, "path": "/x"} for key in "abcbac"]}, "'a', 'b', 'c' appears twice"),
        ({"key": "a", "path": "/x", "jobs": [{}, {"path": "/y"}]}, "'a' appears twice"),
        ({"key": "", "path": "/x"}, "key is empty"),
        ({"jobs": [{"key": "a", "path": "/x"}, {"key": "", "path": "/y"}]}, "key is empty"),
    ],
)
def test_a_key_that_does_not_tell_its_job_is_refused(params, words):
    with pytest.raises(BadArgumentsError, match=words.replace(".", r"\.")):
        job_specs(params)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"window": 0}, "window must be at least 1 job, not 0"),
        ({"window": -3}, "window must be at least 1 job, not -3"),
        ({"node_grace": 0.0}, "node_grace must be more than 0 seconds, not 0"),
    ],
)
def test_a_window_for_no_job_and_a_grace_of_no_time_are_refused(params, words):
    with pytest.raises(BadArgumentsError, match=words):
        check_window({"window": 1, "node_grace": None, **params})


@pytest.mark.parametrize("grace", [None, 0.5])
def test_the_least_window_is_one_job(grace):
    check_window({"window": 1, "node_grace": grace})
