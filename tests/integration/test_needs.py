# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A category runs what it needs first, and not again while that stands: not under a new bound, not on a new driver."""

from __future__ import annotations

import hashlib
import re
import subprocess

import pytest
import yaml

from tests.integration import canaries
from tests.integration.conftest import ANY_SPEED, CLUSTER, ROOT

NEEDED, ASKED, CATEGORY = "TEST-1", "TEST-3", 98


@pytest.fixture
def category(play, tmp_path):
    """(further variables) → a play of a category of one workload, which needs the canary of another category."""
    folder = tmp_path / "workloads"
    canaries.add(folder, NEEDED, "canary")
    canaries.add(folder, ASKED, "second_canary", category=CATEGORY, needs=[NEEDED])
    playbook = tmp_path / "category.yml"
    selected = {"__title": "A category of one workload", "__categories": [CATEGORY]}
    imported = {"ansible.builtin.import_playbook": str(ROOT / "playbooks/validate.yml"), "vars": selected}
    playbook.write_text(yaml.safe_dump([{"name": "Category", **imported}]))
    variables = {
        "hpc_validation_workload_folders": [str(folder)],
        "hpc_validation_nodes": ["compute01"],
        "hpc_validation_slurm": {"nodelist": "compute01"},  # whose driver is changed
        **ANY_SPEED,
    }
    return lambda **further: play(playbook, variables={**variables, **further})


@pytest.fixture
def another_driver():
    """Makes compute01 say that it has another driver, until the test ends."""

    def faulty(*words):
        command = [str(ROOT / "tests/cluster/cluster"), "gpu", "--name", CLUSTER, "compute01", "node", *words]
        subprocess.run(command, check=True, timeout=60)

    yield lambda: faulty("driver_version=999.10")
    faulty("healthy")


def ran(played):
    """The workloads that were submitted in this run."""
    return [each["id"] for each in played.verdict["workloads"] if each["job"]]


def check_passed(played, *expected):
    assert played.code == 0, played.end
    assert played.verdict["verdict"] == "pass"
    assert ran(played) == list(expected), played.end


@pytest.mark.slow
def test_what_is_needed_runs_first_and_not_again_while_that_stands(category):
    first = category()
    check_passed(first, NEEDED, ASKED)
    assert re.search(f"{NEEDED}: runs first: .* has no earlier run of it", first.screen)

    second = category()
    check_passed(second, ASKED)
    line = f"{NEEDED}: passed less than a day ago in run {first.folder.name}, not run again"
    assert line in second.screen
    needed = second.verdict["workloads"][0]
    sha256 = hashlib.sha256((first.folder / "verdict.json").read_bytes()).hexdigest()
    finished = first.verdict["finished"]
    assert needed["earlier"] == {"run": first.folder.name, "finished": finished, "sha256": sha256}
    assert second.verdict["coverage"]["gpus"]["count"]
    assert second.suites.find(f"testsuite[@name='{NEEDED} {needed['title']}']").get("skipped") == "1"


@pytest.mark.slow
def test_what_is_needed_runs_again_where_it_is_stale(category, another_driver):
    check_passed(category(), NEEDED, ASKED)

    stricter = category(hpc_validation_overrides={NEEDED: {"T-2": {"gt": 0.995}}})
    assert stricter.code != 0
    assert f"{NEEDED}: runs first: by today's criteria it does not pass: T-2: 0.99 is not > 0.995" in stricter.screen
    assert ran(stricter) == [NEEDED]
    assert stricter.verdict["workloads"][1]["why"] == f"not_run: {NEEDED} failed"

    after = category()
    check_passed(after, NEEDED, ASKED)
    assert f"{NEEDED}: runs first: it did not pass in run {stricter.folder.name}: T-2: " in after.screen

    another_driver()
    updated = category()
    check_passed(updated, NEEDED, ASKED)
    assert f"{NEEDED}: runs first: driver " in updated.screen
    assert " then, 999.10 now" in updated.screen
    check_passed(category(), ASKED)

    check_passed(category(hpc_validation_needs_days=0), NEEDED, ASKED)


def test_a_pass_may_not_come_from_the_future(category):
    refused = category(hpc_validation_needs_days=-1)
    assert refused.code != 0
    assert "hpc_validation_needs_days is -1; expected a number of days" in refused.screen
    assert refused.folder is None
