"""Damaged facts never raise, and a check whose value is gone or of another type never passes."""

from __future__ import annotations

import copy
import json

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import node
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.expect import GPU
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.titles import TITLES
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.plugins.plugin_utils._gpu.gpu_node import NODE, healthy, jetson, put

# What each check is judged on, of one GPU; the first entry is what the check reads, by dotted path.
READ = {
    "gpu.answers": ["error"],
    "gpu.model": ["name"],
    "gpu.memory": ["memory", "memory.total"],
    "gpu.ecc_mode": ["ecc", "ecc.mode", "ecc.pending"],
    "gpu.ecc_uncorrected_volatile": ["ecc", "ecc.uncorrected_volatile"],
    "gpu.ecc_uncorrected_aggregate": ["ecc", "ecc.uncorrected_aggregate"],
    "gpu.ecc_corrected": ["ecc", "ecc.corrected_volatile"],
    "gpu.sram_threshold": ["ecc", "ecc.sram_threshold_exceeded"],
    "gpu.row_remap_pending": ["remapped_rows", "remapped_rows.pending"],
    "gpu.row_remap_failure": ["remapped_rows", "remapped_rows.failed"],
    "gpu.row_remap_count": ["remapped_rows", "remapped_rows.uncorrected"],
    "gpu.row_remap_exhausted": ["remapped_rows", "remapped_rows.banks_exhausted"],
    "gpu.recovery_action": ["recovery_action"],
    "gpu.throttle": ["throttle_reasons"],
    "gpu.temperature": ["temperature", "temperature.gpu_c", "temperature.slowdown_c", "temperature.gpu_max_c"],
    "gpu.pcie_generation": ["utilization", "utilization.gpu", "pcie.generation"],
    "gpu.pcie_width": ["pcie", "pcie.width", "pcie.width_max"],
    "gpu.nvlink": ["nvlink", "nvlink.links", "nvlink.links.1", "nvlink.links.1.link", "nvlink.links.1.active"],
    "gpu.nvlink_errors": ["nvlink", "nvlink.links.1.errors", "nvlink.links.1.errors.recovery"],
    "gpu.fabric": ["fabric", "fabric.state", "fabric.status", "fabric.health"],
    "gpu.power_limit": ["power", "power.limit_w", "power.default_limit_w"],
    "gpu.persistence": ["persistence_mode"],
    "gpu.mig": ["mig", "mig.current", "mig.pending"],
    "gpu.foreign_processes": ["processes"],
}
HIDDEN = ("pci_devices", "pci_displays")  # null where a container hides the bus
OF_NODE = {
    "gpu.readable": ["error", "source", "schema", "node"],
    "gpu.count": ["gpus", "device_files", "pci_devices", "pci_displays", "gpus.1"],
    "gpu.driver": ["driver", "driver.version"],
    "gpu.unique": ["gpus.1.uuid", "gpus.1.pci"],
    "gpu.kernel_log": ["kernel_log", *(f"kernel_log.{key}" for key in ("xids", "more", "complete", "since"))],
}
PLACES = [(check, f"gpus.1.{path}") for check, paths in READ.items() for path in paths]
PLACES += [(check, path) for check, paths in OF_NODE.items() for path in paths]
EXPECT = {"model": "NVIDIA H*", "memory_gib": 1, "driver": ">=570", "persistence": True, "mig": False, "nvlinks": 4}
GONE = object()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def at(document, path):
    for key in path.split("."):
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


def kind(value):
    numbers = (int, float)
    return "number" if isinstance(value, numbers) and not isinstance(value, bool) else type(value).__name__


def remove(document, path):
    parent, _sep, last = path.rpartition(".")
    place = at(document, parent) if parent else document
    del place[int(last) if isinstance(place, list) else last]


def verdicts(document, check):
    found = node.findings(document, EXPECT, node=NODE)
    json.dumps(found, allow_nan=False)
    return [entry["verdict"] for entry in found if entry["id"] == check and "GPU 0" not in str(entry["where"])]


@given(place=st.sampled_from(PLACES), value=JSON | st.just(GONE))
@settings(max_examples=600, deadline=None)
def test_a_check_whose_value_is_gone_or_of_another_type_does_not_pass(place, value):
    check, path = place
    document = healthy()
    before = at(document, path)
    if value is GONE:
        remove(document, path)
        if path == "pci_displays":  # a document from before it was told
            return
    elif (value is None and path in HIDDEN) or kind(value) == kind(before) or (check, value) == ("gpu.answers", None):
        return
    else:
        put(document, path, value)
    assert "pass" not in verdicts(document, check), (path, value)


def _paths(value, prefix=""):
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield f"{prefix}{key}"
        yield from _paths(item, f"{prefix}{key}.")


ALL = sorted(_paths(healthy()))
ALL_JETSON = sorted(_paths(jetson()))


@given(edits=st.lists(st.tuples(st.sampled_from(ALL), JSON | st.just(GONE)), min_size=1, max_size=6))
@settings(max_examples=400, deadline=None)
def test_damaged_facts_never_raise(edits):
    document = healthy()
    for path, value in edits:
        try:
            remove(document, path) if value is GONE else put(document, path, copy.deepcopy(value))
        except (KeyError, IndexError, TypeError, ValueError):
            continue  # an edit before took the place away
    json.dumps(node.findings(document, EXPECT, node=NODE), allow_nan=False)


@given(path=st.sampled_from(ALL_JETSON), value=JSON)
@settings(max_examples=150, deadline=None)
def test_damaged_facts_of_a_jetson_never_raise(path, value):
    document = jetson()
    put(document, path, value)
    json.dumps(node.findings(document, {}, node=NODE), allow_nan=False)


@given(facts=JSON)
def test_what_is_no_facts_document_is_undetermined(facts):
    found = node.findings(facts, {}, node=NODE)
    assert [entry["verdict"] for entry in found] == ["undetermined"]


@given(expect=JSON | st.dictionaries(st.sampled_from([*sorted(EXPECT), "count", "not_applicable"]), JSON))
def test_expectations_are_named_or_understood(expect):
    told = GPU.problems(expect, TITLES)
    assert all(isinstance(line, str) and line for line in told)
    if not told:
        node.findings(healthy(), expect, node=NODE)
