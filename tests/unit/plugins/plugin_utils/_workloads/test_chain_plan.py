# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A training planned as a chain of jobs: its own folder, legs and profile, no deadline; what makes it itself."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.mlops.hpc_validation.plugins.filter.chain_plan import chain_plan
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.chain import NOT_KNOWN
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import chain, manifests, plan

from tests.unit.plugins.plugin_utils._workloads.test_workload_plan import RUNTIME, SETTINGS
from tests.unit.roles.conftest import directives, job_script

Json = dict[str, t.Any]
HOME = FILES / "workloads/gpt_pretraining"
BEFORE: Json = {
    "check_mode": False,
    "selected": ["PRETRAIN-1"],
    "passed": [],
    "planned": {"by_workload": {"PRETRAIN-1": "deepspeed"}},
    "runtimes": {"deepspeed": {**RUNTIME, "key": "deepspeed", "name": "deepspeed"}},
    "missing_runtimes": [],
    "digests": {"pretraining_tokens": "d1", "other": "d2"},
    "data": {},
}


def manifest(option: str | None = None) -> Json:
    return manifests.load_manifest(HOME / "workload.yml", option)


def planned(option: str | None = None, given: t.Any = None, before: Json | None = None, **settings: t.Any) -> Json:
    return chain_plan(manifest(option), {**SETTINGS, **settings}, {**BEFORE, **(before or {})}, given or {})


def test_a_chain_has_a_folder_of_its_own() -> None:
    found = planned(given={"name": "november"})
    place = "/mnt/share/models/gpt-pretraining/chain-november"
    assert found["chain"]["folder"] == found["plan"]["chain"] == place
    assert found["plan"]["home"] == f"{place}/workload"
    assert found["plan"]["script"] == f"{place}/workload/gpt_pretraining.sbatch"
    assert found["plan"]["configs"] == f"{place}/configs"
    assert found["plan"]["label"] == "chain-november"
    ranks = ["--ranks", "8", "--ranks", "1"]
    script = f"{manifest()['folder']}/check_settings.py"
    assert found["plan"]["check"] == ["-B", script, "--profile", "full", *ranks, "--chain"]
    assert found["plan"]["logs"] == "/mnt/share/jobs/chain-november-%j"
    assert found["plan"]["output"] == "/mnt/share/models/gpt-pretraining/job-%j"


def test_a_link_has_neither_time_nor_deadline_and_only_the_legs_of_a_training() -> None:
    site = {"PRETRAIN-1": {"partition": "gpu", "time": "01:00:00"}, "MLOPS-1.1": {"partition": "x"}}
    found = planned(workload_slurm=site)
    assert found["plan"]["directives"] == {
        "nodes": 1,
        "ntasks-per-node": 8,
        "cpus-per-task": 8,
        "mem": "256G",
        "gres": "gpu:8",
        "partition": "gpu",
    }
    assert found["workload"]["legs"] == ["measured", "export:1"]


@pytest.mark.parametrize(
    ("option", "given", "profile"),
    [
        (None, None, "full"),
        ("two_nodes", None, "full"),
        ("mini", None, "mini"),
        ("one_billion", None, "one_billion"),
        ("mini", "full", "full"),
        (None, "one_gpu", "one_gpu"),
    ],
)
def test_the_profile_is_the_settings_then_the_options_then_the_whole_training(
    option: str | None, given: str | None, profile: str
) -> None:
    found = planned(option, {"profile": given})
    assert found["workload"]["command"] == ["python", "train.py", "--profile", profile]
    assert found["chain"]["profile"] == found["what"]["profile"] == profile


def test_a_profile_is_replaced_where_it_stands() -> None:
    command = ["python", "train.py", "--profile", "mini", "--more"]
    assert chain._with_profile(command, "full") == ["python", "train.py", "--profile", "full", "--more"]
    assert plan.profile_of(["python", "--profile"]) is None


def test_what_makes_a_training_this_one() -> None:
    before = planned(pretraining={"training": {"steps": 9}}, resume={"PRETRAIN-1": 7})["what"]
    assert before == {
        "workload": "PRETRAIN-1",
        "profile": "full",
        "settings": '{"training": {"steps": 9}}',
        "resumed from": "/mnt/share/models/gpt-pretraining/job-7",
        "data pretraining_tokens": "d1",
    }
    assert planned()["what"]["resumed from"] == "nothing"
    assert planned("two_nodes")["what"] == planned()["what"]  # the batch stays, whatever the ranks
    other = planned(before={"digests": {"pretraining_tokens": "d9"}})["what"]
    assert chain.SETTING not in other
    assert other["data pretraining_tokens"] == "d9"
    unstaged = planned(before={"digests": {}, "check_mode": True})["what"]
    assert unstaged["data pretraining_tokens"] == NOT_KNOWN


def test_in_which_order_its_settings_are_given_does_not_matter() -> None:
    given = {"training": {"steps": 9, "seed": 1}}
    turned = {"training": {"seed": 1, "steps": 9}}
    assert planned(pretraining=given)["what"] == planned(pretraining=turned)["what"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "expected keys and values"),
        ({"nmae": "x"}, "unknown key nmae"),
        *(({"name": name}, "name: expected") for name in ("", "-x", "../x", "X", "a b", "a" * 41, 7, "ä")),
        *(({"links": links}, "links: expected 1 to 1000") for links in (0, 1001, True, "5", 1.5)),
        ({"time": 600}, "Write it in quotes"),
        *(({"profile": profile}, "profile: expected") for profile in (7, "", "../x", "a b")),
        ({"profile": "nosuch"}, "profile: there is no 'nosuch'; available: compile, fp16, full, "),
    ],
)
def test_what_is_wrong_is_named(given: t.Any, says: str) -> None:
    with pytest.raises(AnsibleFilterError, match=says):
        chain_plan(manifest(), SETTINGS, BEFORE, given)


def test_what_is_not_given_has_its_default() -> None:
    assert chain.read({})["links"] == 8
    assert chain.read({"links": 1})["links"] == 1
    assert chain.read({"name": None, "links": 3}) == {"name": "full", "links": 3, "time": None, "profile": None}
    assert chain.read({"name": "a" * 40, "links": 1000, "time": "1-00:00:00", "profile": "one_gpu"})["links"] == 1000


def test_what_could_not_be_staged_is_named() -> None:
    with pytest.raises(AnsibleFilterError, match="needs what is not there: pretraining_tokens, deepspeed"):
        planned(before={"digests": {}, "missing_runtimes": ["deepspeed"]})


@pytest.fixture
def script() -> str:
    """A link's job script, as the role renders it."""
    found = planned("mini")
    before = {"__stage_plan": BEFORE["planned"], "__stage_runtimes": BEFORE["runtimes"]}
    return job_script(found["workload"], __workload_plan=found["plan"], **before)


def test_the_job_script_of_a_link(script: str) -> None:
    assert "job-name=chain-full" in " ".join(directives(script))
    assert not [each for each in directives(script) if each.startswith(("--time", "--deadline"))]
    assert "export HPC_VALIDATION_CHAIN=/mnt/share/models/gpt-pretraining/chain-full\n" in script
    made, link, legs = (
        script.index(text) for text in ('mkdir -p "$OUTPUT_DIR"', "-m kit link", "--leg measured --leg export:1")
    )
    assert made < link < legs
    # Only a link has these lines.
    whole = job_script(manifest("mini"), __stage_plan=BEFORE["planned"], __stage_runtimes=BEFORE["runtimes"])
    assert "HPC_VALIDATION_CHAIN" not in whole
    assert "kit link" not in whole
