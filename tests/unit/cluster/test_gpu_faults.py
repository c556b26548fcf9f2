# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of `cluster gpu`."""

from __future__ import annotations

import pytest
from hpcval_cluster import gpu_faults, gpus
from hpcval_cluster.state import Cluster, ClusterError

LOG = gpus.KERNEL_LOG


@pytest.mark.parametrize("word", sorted(gpu_faults.FAULTS))
def test_every_fault_changes_only_keys_that_a_gpu_has(word):
    samples = {"nvlink_down": "3", "throttle": "hw_thermal", "row_remap": "pending", "sram": "exceeded"}
    switches = {"ecc": "off", "persistence": "off", "mig": "on", "recovery": "reset", "fabric": "failed"}
    value = {**samples, **switches, "process": "foreign"}.get(word, "7")
    change = gpu_faults.parse([f"{word}={value}"])
    assert change.values
    for key, text in change.values.items():
        gpus.check_key(key, text, gpus.HEALTHY, gpus.OF_ONE_GPU)
    assert any(gpus.HEALTHY.get(key) != text for key, text in change.values.items())


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["ecc_uncorrected=3"], {"ecc_uncorrected_volatile": "3", "ecc_uncorrected_aggregate": "3"}),
        (["throttle=power_brake", "throttle=none"], {"clocks_event_reasons": "1/0"}),
        (["utilization=20"], {"utilization_gpu": "0/20"}),
        (["power_limit=300"], {"power_limit_mw": "300000"}),
        (["nvlink_down=3,17"], {"nvlink.3.state": "0", "nvlink.17.state": "0"}),
        (["recovery=drain_and_reset"], {"field.230": "4"}),
        (["missing"], {"present": "0"}),
        (["lost", "healthy", "hang"], {"hang": "1"}),
        (["fail.nvmlDeviceGetPowerUsage=3", "nvlink.0.replay=5"], None),
    ],
)
def test_words_stand_for_states(words, values):
    change = gpu_faults.parse(words)
    assert change.values == (values or dict(word.split("=") for word in words))
    assert change.reset == ("healthy" in words)


@pytest.mark.parametrize(
    "word",
    [
        "nonsense=1",
        "name",
        "=1",
        "fail.rm=1",
        "throttle=warm",
        "ecc_uncorrected=-1",
        "ecc_uncorrected=three",
        "utilization=101",
        "xid=",
        "xid=0",
        "xid=79;",
        "nvlink_down=36",
        "recovery=5",
        "kernel_log=empty",
        "driver=mismatch",
        "",
        "fail.rm -rf=1",
        "name=a\nfail=15",
        f"name={'a' * 256}",
    ],
)
def test_what_is_not_known_of_a_gpu_is_refused(word):
    with pytest.raises(ClusterError):
        gpu_faults.parse([word])


@pytest.mark.parametrize("word", ["driver=gone", "lost", "xid=79", "ecc_uncorrected=3", "kernel_log=", "a=b"])
def test_what_is_not_known_of_a_node_is_refused(word):
    with pytest.raises(ClusterError):
        gpu_faults.parse_node([word])


@pytest.mark.parametrize(
    ("words", "library", "values"),
    [
        (["driver=mismatch"], True, {"fail.nvmlInitWithFlags": "18", "hang.nvmlInitWithFlags": ""}),
        (["driver=library_missing"], False, {}),
        (["driver=library_missing", "healthy"], True, {}),
        (["driver_version=535.1"], None, {"driver_version": "535.1"}),
        (["kernel_log=refused"], None, {"kernel_log": "refused"}),
    ],
)
def test_a_nodes_driver(words, library, values):
    change = gpu_faults.parse_node(words)
    assert (change.library, change.values) == (library, values)


def test_xids_are_the_kernels_lines_of_one_gpu():
    one = gpu_faults.kernel_log(LOG, "00000000:20:00.0", [79, 777], 1234.567)
    both = gpu_faults.kernel_log(one, "00000000:10:00.0", [48], 1300.0)
    assert one.splitlines()[1] == (
        "[ 1234.567000] NVRM: Xid (PCI:0000:20:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    )
    assert [line.split("): ")[1].split(",")[0] for line in both.splitlines()[1:]] == ["79", "777", "48"]
    without = gpu_faults.kernel_log(both, "00000000:20:00.0", [], 1400.0)
    assert [line.split("): ")[1].split(",")[0] for line in without.splitlines()[1:]] == ["48"]
    assert gpu_faults.kernel_log(without, "00000000:10:00.0", [], 1400.0) == LOG


def test_xids_are_reported_in_their_order():
    assert gpu_faults.reported("none", [79, 31]) == {"xids": "none,79,31"}
    assert gpu_faults.reported("none,79,31", [13]) == {"xids": "none,79,31,13"}
    assert gpu_faults.reported("none,79,31", []) == {"xids": "none"}
    with pytest.raises(ClusterError, match="one line of at most 255 characters"):
        gpu_faults.reported("none" + ",79" * 80, [123, 123, 123])


def test_the_two_gpus_of_a_node_are_linked_to_each_other():
    files = gpus.initial_states(Cluster("x"), "compute02")
    states = [gpus.as_values(files[f"gpu{index}.state"]) for index in range(2)]
    assert [state["nvlink_peer"] for state in states] == [states[1]["bus_id"], states[0]["bus_id"]]
    assert len({state["uuid"] for state in states}) == 2
