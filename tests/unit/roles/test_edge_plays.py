# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which plays touch edge hosts: two, if a selected workload needs them; every other one leaves them alone."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from tests.unit.conftest import ROOT
from tests.unit.roles.conftest import settings_of

Json = dict[str, t.Any]
GROUPS = {"hpc_login": ["login"], "edge": ["edge01", "edge02"], "hpc_compute": ["n1"], "all": ["login", "edge01", "n1"]}
ON_EDGE = ["Look at the edge hosts", "Measure on the edge hosts"]
ON_ALL = "Check the inventory"
# Actions that make no connection, so that it does not matter for which host the task is.
ON_THE_CONTROLLER = {
    "ansible.builtin.assert",
    *(f"mlops.hpc_validation.{name}" for name in ("check_workload", "new_workload", "validation_run")),
}


def plays(name: str) -> list[Json]:
    return t.cast("list[Json]", yaml.safe_load((ROOT / f"playbooks/{name}.yml").read_text(encoding="utf-8")))


def templated(value: t.Any, **variables: t.Any) -> t.Any:
    templar = Templar(loader=DataLoader(), variables=variables)
    return templar.template(trust_as_template(value)) if isinstance(value, str) else value


def hosts_of(play: Json, login: Json | None, groups: Json | None = None) -> t.Any:
    """The hosts of a play when the login node knows this."""
    known = {} if login is None else {"hostvars": {"login": login}}
    return templated(play["hosts"], groups=GROUPS if groups is None else groups, **known)


def test_the_plays_are_in_their_order() -> None:
    assert [play["name"] for play in plays("validate")] == [
        ON_ALL,
        "Start",
        ON_EDGE[0],
        "Validate",
        ON_EDGE[1],
        "Judge what the edge hosts measured",
        "Report",
    ]


def test_only_two_plays_have_edge_hosts_and_only_if_they_are_needed() -> None:
    needed = {"__run": {"edge_hosts": ["edge01", "edge02"]}, "__edge_measured_on": ["edge01"]}
    for play in plays("validate"):
        if play["name"] == ON_EDGE[0]:
            assert hosts_of(play, needed) == ["edge01", "edge02"]
        elif play["name"] == ON_EDGE[1]:
            assert hosts_of(play, needed) == ["edge01"]
        elif play["name"] != ON_ALL:
            assert hosts_of(play, needed) == "hpc_login"


@pytest.mark.parametrize(
    ("login", "groups"),
    [
        ({"__run": {"edge_hosts": []}}, GROUPS),  # no selected workload needs them
        ({"__run": {"edge_hosts": []}}, {"hpc_login": ["login"]}),  # there is no such group
        ({}, GROUPS),  # the run did not start
        (None, GROUPS),  # --syntax-check, --list-hosts
        (None, {}),
        ({}, {"hpc_login": []}),
    ],
)
@pytest.mark.parametrize("name", ON_EDGE)
def test_where_nothing_needs_them_the_play_names_no_host(name: str, login: Json | None, groups: Json) -> None:
    (play,) = [play for play in plays("validate") if play["name"] == name]
    # A pattern that matches nothing would be a warning; an empty list is not.
    assert hosts_of(play, login, groups) == []


def test_an_edge_host_ends_no_play() -> None:
    for play in plays("validate"):
        if play["name"] in ON_EDGE:
            assert (play["ignore_unreachable"], play["gather_facts"]) == (True, False)


def test_the_first_play_connects_to_nobody() -> None:
    """It has all hosts, so that a --limit without the login node is noticed: an unreachable one must not."""
    for name in ("validate", "cleanup", "pretrain"):
        first = plays(name)[0]
        assert (first["hosts"], first["gather_facts"]) == ("all:localhost", False)
        assert [set(task) & {"ansible.builtin.assert"} for task in first["tasks"]] == [{"ansible.builtin.assert"}]
        assert set(first) <= {"name", "hosts", "gather_facts", "tags", "tasks"}


@pytest.mark.parametrize("path", sorted((ROOT / "playbooks").glob("*.yml")), ids=lambda path: path.stem)
def test_no_other_play_has_edge_hosts(path: Path) -> None:
    for play in plays(path.stem):
        hosts = play.get("hosts")
        if path.stem == "cleanup" and play["name"] == "Clean up the edge hosts":
            assert hosts_of(play, None) == GROUPS["edge"]
            assert hosts_of(play, None, {}) == []
            assert play["ignore_unreachable"] is True
        elif hosts == "all:localhost":
            assert play["gather_facts"] is False
            assert all(task["run_once"] and set(task) & ON_THE_CONTROLLER for task in play["tasks"]), play["name"]
        elif hosts is not None and play["name"] not in ON_EDGE:  # none: an imported playbook
            assert hosts == "hpc_login", play["name"]


def test_the_playbook_of_its_category() -> None:
    (play,) = plays("validate_embedded")
    assert (play["ansible.builtin.import_playbook"], play["vars"]["__categories"]) == ("validate.yml", [93])
    manifest = yaml.safe_load((ROOT / "files/workloads/embedded_profile/workload.yml").read_text())
    assert (manifest["category"], manifest["edge"]) == (93, True)


# -- the roles


def tasks(role: str, name: str) -> list[Json]:
    return t.cast("list[Json]", yaml.safe_load((ROOT / f"roles/{role}/tasks/{name}.yml").read_text(encoding="utf-8")))


def each(found: t.Any) -> t.Iterator[Json]:
    """Every task, those in blocks as well."""
    for task in found:
        yield task
        for part in ("block", "rescue", "always"):
            yield from each(task.get(part, []))


VARS = settings_of("roles/edge/vars/main.yml")
LOOKED = {"requirement": {"lock": "python311"}, "problem": None}
KNOWN: Json = {
    "groups": GROUPS,
    "hostvars": {
        "login": {"__run": {"folder": "/r"}, "__edge": {"hosts": {"edge01": {"wheelhouse": {}}}}},
        "edge01": {"__edge_looked": LOOKED, "__edge_failures": "no connection"},
        "edge02": {},
    },
    "__run": {
        "edge_hosts": ["edge01", "edge02"],
        "folder": "/r",
        "workloads": [{"id": "A", "edge": False}, {"id": "E", "edge": True}],
    },
    "inventory_hostname": "edge01",
}


def test_what_the_login_node_knows_of_the_looks() -> None:
    assert templated(VARS["__edge_looks"], **KNOWN) == {"edge01": LOOKED, "edge02": {}}
    assert templated(VARS["__edge_failures_of"], **KNOWN) == {"edge01": "no connection", "edge02": ""}
    assert list(templated(VARS["__edge_workloads"], **KNOWN)) == ["E"]
    assert templated(VARS["__edge_host"], **KNOWN, **VARS) == {"wheelhouse": {}}


def test_hosts_that_were_looked_at_are_measured_even_if_only_to_say_why_not() -> None:
    (fact,) = [
        task["ansible.builtin.set_fact"] for task in tasks("edge", "fetch") if "ansible.builtin.set_fact" in task
    ]
    assert list(templated(fact["__edge_measured_on"], **KNOWN, **VARS)) == ["edge01"]


def test_what_is_measured_there_is_kept_and_not_judged_in_its_wave() -> None:
    found = {task["name"].split("{{")[0].strip(): task for task in each(tasks("workload", "main"))}
    (keep,) = [task for name, task in found.items() if name.startswith("Keep")]
    (judge,) = [task for name, task in found.items() if name.startswith("Judge")]
    workloads = [{"id": "A", "edge": False}, {"id": "E", "edge": True}, {"id": "X", "edge": True}]
    known = {"__run": {"workloads": workloads}, "__wave_jobs": {"A": 1, "E": 1}}
    assert [one["id"] for one in templated(keep["loop"], **known)] == ["E"]
    given = {
        "__workload": {"id": "E"},
        "__workload_plan": {"home": "/h"},
        "__workload_job": {"job_id": "8"},
        "__workload_paths": {"output": "/o"},
    }
    kept = templated(keep["ansible.builtin.set_fact"]["__edge_kept"], **given)
    assert kept == {"E": {"plan": {"home": "/h"}, "job": {"job_id": "8"}, "output": "/o"}}
    assert [one["id"] for one in templated(judge["loop"], **known, __edge_kept=kept)] == ["A"]
    # What Slurm refused has no job: it is told in its wave, as ever.
    assert "__workload_job.reason != 'refused'" in keep["when"]
    assert [one["id"] for one in templated(judge["loop"], **known)] == ["A", "E"]


def test_what_is_judged_later_is_judged_by_its_own_plan_and_job() -> None:
    (fact,) = [
        task["ansible.builtin.set_fact"] for task in tasks("edge", "judged") if "ansible.builtin.set_fact" in task
    ]
    item = {"key": "E", "value": {"plan": {"home": "/h"}, "job": {"job_id": "8"}, "output": "/o"}}
    assert templated(fact["__wave_plans"], __edge_item=item) == {"E": item["value"]["plan"]}
    assert templated(fact["__wave_result"]["jobs_by_key"], __edge_item=item) == {"E": item["value"]["job"]}
    (judge,) = [task for task in tasks("edge", "judged") if "ansible.builtin.include_role" in task]
    assert judge["ansible.builtin.include_role"] == {"name": "mlops.hpc_validation.workload", "tasks_from": "judge"}
    assert templated(judge["vars"]["__workload"], **KNOWN, __edge_item=item) == {"id": "E", "edge": True}


def test_the_document_is_put_into_a_folder_of_its_own() -> None:
    (put,) = [
        task["mlops.hpc_validation.share_tree"]
        for task in each(tasks("edge", "judged"))
        if "mlops.hpc_validation.share_tree" in task
    ]
    assert put["dest"] == "{{ __edge_item.value.output }}/edge"
    assert list(put["extra"]) == ["edge.json"]


@pytest.mark.parametrize("name", ["look", "measure", "workload"])
def test_no_module_runs_on_an_edge_host(name: str) -> None:
    actions = {key for task in each(tasks("edge", name)) for key in task if "." in key}
    assert actions <= {"mlops.hpc_validation.edge_host", "ansible.builtin.set_fact", "ansible.builtin.include_tasks"}


@pytest.mark.parametrize("name", ["look", "measure"])
def test_what_fails_on_an_edge_host_is_remembered_without_its_connection(name: str) -> None:
    (whole,) = tasks("edge", name)
    (rescue,) = whole["rescue"]
    assert rescue["vars"] == {"ansible_connection": "ansible.builtin.local"}
    assert set(rescue) == {"name", "vars", "ansible.builtin.set_fact"}


@pytest.mark.parametrize(
    ("result", "fails"),
    [
        ({"problem": None}, False),
        ({"problem": {"id": "unreachable", "text": "x"}}, False),
        ({"problem": {"id": "python", "text": "x"}}, False),
        ({"skipped": True}, False),
        ({"unreachable": True, "msg": "x"}, False),
        ({"problem": {"id": "files", "text": "not ours"}}, True),
        ({"problem": {"id": "busy", "text": "x"}}, True),
    ],
)
def test_cleaning_up_does_not_fail_for_a_host_that_is_not_there(result: Json, fails: bool) -> None:
    (task,) = tasks("cleanup", "edge")
    templar = Templar(loader=DataLoader(), variables={"__cleanup_edge": result})
    assert templar.evaluate_conditional(trust_as_template(task["failed_when"])) is fails
    assert task["mlops.hpc_validation.edge_host"]["state"] == "absent"


def test_wheels_are_fetched_on_the_controller_without_a_password_on_the_command_line() -> None:
    (fetch,) = [task for task in each(tasks("edge", "ready")) if "ansible.builtin.command" in task]
    shared = settings_of("roles/hpc_validation/vars/main.yml")["__hpc_validation_with_secrets_on_controller"]
    known = {
        "ansible_playbook_python": "/py",
        "__hpc_validation_with_secrets_on_controller": shared,
        "__edge_files": "/f",
        "item": {
            "key": "k",
            "lock": "python311",
            "python": "3.11",
            "machine": "x86_64",
            "libc": "2.36",
            "output": "/c/k",
        },
    }
    argv = templated(fetch["ansible.builtin.command"]["argv"], **known, hpc_validation_edge_wheelhouse="")
    assert argv == [
        *("/py", "-m", "kit", "environment", "--", "/py", "-m", "kit", "wheelhouse"),
        *("--lock", "/f/edge/requirements/python311.txt", "--python", "3.11", "--machine", "x86_64"),
        *("--libc", "2.36", "--output", "/c/k"),
    ]
    argv = templated(fetch["ansible.builtin.command"]["argv"], **known, hpc_validation_edge_wheelhouse="/wheels")
    assert argv[-2:] == ["--wheelhouse", "/wheels"]
    assert (fetch["no_log"], fetch["delegate_to"], fetch["environment"]["PYTHONPATH"]) == (
        True,
        "localhost",
        "{{ __edge_files }}",
    )
