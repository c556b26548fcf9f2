# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What roles and playbooks assert, each condition of it held against values that it must not let by."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from tests.unit.conftest import ROOT

ASSERT = "ansible.builtin.assert"
HOSTS = {"groups": {"hpc_login": ["login"]}, "ansible_play_hosts_all": ["login", "edge"]}
OTHER_HOSTS: list[dict[str, t.Any]] = [
    {"groups": {}},
    {"groups": {"hpc_login": []}},
    {"groups": {"hpc_login": ["login", "edge"]}},
    {"ansible_play_hosts_all": ["edge"]},
]
DIRECTIVES = {"nodes": 1, "mem": "8G", "exclusive": True, "gres": "gpu:2", "cpus-per-task": 4}

# Of each file, in the order in which it asserts: variables that are right, and changes that are not.
CASES: dict[str, list[tuple[dict[str, t.Any], list[dict[str, t.Any]]]]] = {
    "roles/bootstrap/tasks/guard.yml": [
        (
            {"hpc_validation_share": "/mnt/my share; x"},
            [
                {"hpc_validation_share": path}
                for path in (
                    *("", "/", "mnt/beegfs", "/mnt/", '/mnt/"a', "/mnt/a\\b", "/mnt/%j", "/mnt/a\n", "/mnt/a\nb"),
                    *('/mnt/a"', "/mnt/a\\", "/mnt/a%", "/mnt/\x7fa", "/mnt/a\x7f", "/mnt/\x00a"),
                )
            ],
        ),
        ({"__bootstrap_guard": {"rc": 0}}, [{"__bootstrap_guard": {"rc": code}} for code in (1, 80, 86, -1)]),
    ],
    "roles/workload/tasks/chain.yml": [
        ({"__settings_checked": {"rc": 0}}, [{"__settings_checked": {"rc": code}} for code in (1, 2, -1)]),
    ],
    "roles/workload/tasks/judge.yml": [
        ({"__workload_job": {"reason": "None"}}, [{"__workload_job": {"reason": "refused"}}]),
    ],
    "roles/workload/tasks/render.yml": [
        (
            {"__workload_plan": {"directives": DIRECTIVES}},
            [
                {"__workload_plan": {"directives": {**DIRECTIVES, **wrong}}}
                for wrong in (
                    *({"account": value} for value in ('a"b', "a\\b", "a\nb", "a\x00", "\x1b[2J", "a\x7f", '"', "\\")),
                    *({key: "x"} for key in ("", "-a", "Account", "a b", "a=b", "account\n", "account\n#", "ac#", "ä")),
                    *({"gres": value} for value in ({"gpu": 2}, {})),
                )
            ],
        ),
    ],
    "playbooks/validate.yml": [(HOSTS, OTHER_HOSTS)],
    "playbooks/cleanup.yml": [(HOSTS, OTHER_HOSTS)],
    "playbooks/pretrain.yml": [(HOSTS, OTHER_HOSTS)],
}


def asserted(path: Path) -> list[list[str]]:
    """The conditions of each assertion in a file of tasks or plays."""
    found: list[list[str]] = []

    def walk(value: t.Any) -> None:
        if isinstance(value, dict):
            if ASSERT in value:
                that = value[ASSERT]["that"]
                found.append(that if isinstance(that, list) else [that])
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(yaml.safe_load(path.read_text(encoding="utf-8")))
    return found


def holds(conditions: list[t.Any], variables: dict[str, t.Any]) -> bool:
    """Whether they all hold, as the action plugin asks."""
    templar = Templar(loader=DataLoader(), variables=variables)
    # `true` itself is what a mutant makes of one
    return all(each is True or templar.evaluate_conditional(trust_as_template(each)) for each in conditions)


def test_each_file_that_asserts_has_its_cases() -> None:
    files = [path for folder in ("roles", "playbooks") for path in (ROOT / folder).rglob("*.yml")]
    found = {str(path.relative_to(ROOT)): len(asserted(path)) for path in files if asserted(path)}
    assert found == {name: len(cases) for name, cases in CASES.items()}


@pytest.mark.parametrize(
    ("name", "position", "variables", "change"),
    [
        pytest.param(name, position, right, change, id=f"{name}-{position}-{number}")
        for name, cases in CASES.items()
        for position, (right, changes) in enumerate(cases)
        for number, change in enumerate(changes)
    ],
)
def test_what_is_wrong_is_not_let_by(
    name: str, position: int, variables: dict[str, t.Any], change: dict[str, t.Any]
) -> None:
    conditions = asserted(ROOT / name)[position]
    assert holds(conditions, variables)
    assert not holds(conditions, {**variables, **change})
