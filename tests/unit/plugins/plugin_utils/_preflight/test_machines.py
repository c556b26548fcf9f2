# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two of Slurm's names for one machine."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.machines import Machines

Json = dict[str, t.Any]


def host(name: str, boot: str = "boot-1") -> Json:
    return {"hostname": name, "boot_id": boot}


def judged(*nodes: tuple[str, t.Any, list[str]]) -> dict[str, Json]:
    machines = Machines()
    for node, facts, gpus in nodes:
        machines.add(node, facts, gpus)
    return {finding["where"]["node"]: finding for finding in machines.findings()}


def verdicts(found: dict[str, Json]) -> dict[str, tuple[str, t.Any]]:
    return {node: (finding["verdict"], finding["value"]) for node, finding in found.items()}


def test_hosts_of_their_own_pass_and_so_does_the_same_name_on_another_machine() -> None:
    found = judged(
        ("n1", host("n1"), ["GPU-1", "GPU-2"]), ("n2", host("n2"), ["GPU-3"]), ("n3", host("n1", "boot-3"), [])
    )
    assert verdicts(found) == dict.fromkeys(("n1", "n2", "n3"), ("pass", 0))
    assert not any("too" in finding["why"] for finding in found.values())


def test_a_second_name_for_a_machine_is_named_with_the_first() -> None:
    found = judged(("n1", host("blade"), []), ("n2", host("n2"), []), ("n3", host("blade"), []))
    assert verdicts(found) == {"n1": ("pass", 0), "n2": ("pass", 0), "n3": ("fail", 1)}
    assert "n1 is the host blade too" in found["n3"]["why"]
    assert "scontrol show node n3" in found["n3"]["remedy"]


def test_a_gpu_that_two_nodes_report_shows_one_machine_as_well() -> None:
    found = judged(("n1", host("n1"), ["GPU-1"]), ("n2", host("n2", "boot-2"), ["GPU-2", "GPU-1"]))
    assert verdicts(found)["n2"] == ("fail", 1)
    assert "n1 has GPU-1 too" in found["n2"]["why"]
    assert "is the host" not in found["n2"]["why"]
    found = judged(("n1", host("n1"), ["GPU-1"]), ("n2", host("n2"), ["GPU-1", "GPU-2"]))
    assert verdicts(found)["n2"] == ("fail", 1)  # its own GPU does not make up for it


def test_both_signs_count_one_other_name_once() -> None:
    found = judged(("n1", host("n1"), ["GPU-1"]), ("n2", host("n1"), ["GPU-1"]))
    assert verdicts(found)["n2"] == ("fail", 1)
    assert "n1 is the host n1 too; n1 has GPU-1 too" in found["n2"]["why"]
    found = judged(("n1", host("n1"), []), ("n2", host("n2"), ["GPU-1"]), ("n3", host("n1"), ["GPU-1"]))
    assert verdicts(found)["n3"] == ("fail", 2)


@pytest.mark.parametrize(
    "facts",
    [
        None,
        [],
        {},
        host(""),
        host("n1", ""),
        {"hostname": "n1"},
        {"boot_id": "b"},
        host(t.cast(str, 3)),
        host("n1", t.cast(str, 3)),
    ],
)
def test_a_machine_that_is_not_known_is_undetermined_unless_a_gpu_tells(facts: t.Any) -> None:
    assert verdicts(judged(("n1", facts, ["GPU-1"]), ("n2", facts, ["GPU-2"]))) == {
        "n1": ("undetermined", None),
        "n2": ("undetermined", None),
    }
    assert verdicts(judged(("n1", facts, ["GPU-1"]), ("n2", facts, ["GPU-1"])))["n2"] == ("fail", 1)
