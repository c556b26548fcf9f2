"""Every fault of a GPU is a finding that names the GPU, the check, the value, the bound and what to do."""

from __future__ import annotations

import re

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import jetson as gpu_jetson
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import memory, node
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.expect import GPU
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.titles import TITLES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import expect as judge_expect
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import remedies

from tests.unit.plugins.plugin_utils._gpu.gpu_node import (
    NODE,
    NOW,
    broken,
    gpu,
    healthy,
    jetson,
    second,
    unsupported,
    xid,
)

SECOND = "GPU 1 (00000000:20:00.0, GPU-00000001-1111-2222-3333-444444444444)"
EXPECT = {
    "count": 2,
    "model": "NVIDIA H200",
    "memory_gib": 140,
    "driver": ">=570",
    "ecc": True,
    "persistence": True,
    "mig": False,
    "pcie_generation": 5,
    "pcie_width": 16,
    "power_limit_w": 700,
    "nvlinks": 4,
    "pcie_replays_max": 0,
    "corrected_max": 1000,
}


def judged(facts, expect=None, **more):
    found = node.findings(facts, expect, node=NODE, **more)
    for entry in found:
        assert schema.problems("finding", entry) == [], entry
        assert entry["where"].get("node") == NODE
        if entry["verdict"] in ("fail", "undetermined"):
            assert entry["remedy"], entry
            assert not re.search(r"\{(node|gpu|host)\}", entry["remedy"])
    return found


def blamed(facts, expect=None, **more):
    return [entry for entry in judged(facts, expect, **more) if entry["verdict"] in ("fail", "undetermined")]


@pytest.mark.parametrize("expect", [None, {}, EXPECT], ids=["nothing", "empty", "all"])
def test_a_healthy_node_passes(expect):
    found = judged(healthy(), expect)
    assert {entry["verdict"] for entry in found} <= {"pass", "recorded"}, blamed(healthy(), expect)
    assert {entry["id"] for entry in found} | {"gpu.xid_warnings"} == set(TITLES)


def test_with_everything_expected_only_what_an_idle_h200_does_not_tell_is_recorded():
    recorded = {entry["id"] for entry in judged(healthy(), EXPECT) if entry["verdict"] == "recorded"}
    assert recorded == {
        "gpu.memory_temperature",
        "gpu.nvlink_retries",
        "gpu.pcie_generation",
        "gpu.retired_pages",
        "gpu.retired_pages_pending",
    }


def test_the_example_of_the_schema_is_healthy(example):
    facts = example("gpus")
    found = node.findings(facts, {"count": len(facts["gpus"])}, node=facts["node"])
    assert [entry for entry in found if entry["verdict"] in ("fail", "undetermined")] == []


def links(*down, **errors):
    changed = gpu(1)["nvlink"]["links"]
    for link in changed:
        if link["link"] in down:
            link.update(active=False, errors=None)
        elif link["link"] == 0:
            link["errors"].update(errors)
    return changed


def log(*xids, **more):
    return {**healthy()["kernel_log"], "xids": list(xids), **more}


# name: (facts, expectations, id, what the value is, what the bound holds, what the remedy holds)
FAILS = {
    "lost": (second(error="GpuIsLost"), {}, "gpu.answers", "GpuIsLost", "answers", "power-cycle"),
    "hung": (second(error="did not answer in 5 s"), {}, "gpu.answers", "did not answer in 5 s", "answers", "reboot"),
    "wrong model": (
        second(name="NVIDIA H100 80GB HBM3"),
        EXPECT,
        "gpu.model",
        "NVIDIA H100 80GB HBM3",
        "H200",
        "hpc_validation_gpu.model",
    ),
    "wrong family": (second(name="Tesla T4"), {"model": "NVIDIA H*"}, "gpu.model", "Tesla T4", "NVIDIA H", "model"),
    "less memory": (second(memory__total=2**36), EXPECT, "gpu.memory", 64.0, ">= 140", "nvidia-smi -q -d MEMORY"),
    "ecc off": (second(ecc__mode=False, ecc__pending=False), EXPECT, "gpu.ecc_mode", False, "true", "-e 1"),
    "ecc pending": (second(ecc__pending=False), {}, "gpu.ecc_mode", True, "= false", "gpu-reset"),
    "uncorrected": (second(ecc__uncorrected_volatile=3), {}, "gpu.ecc_uncorrected_volatile", 3, "<= 0", "gpu-reset"),
    "uncorrected, never repaired": (
        second(ecc__uncorrected_aggregate=2),
        {},
        "gpu.ecc_uncorrected_aggregate",
        2,
        "= 0",
        "dcgmi diag",
    ),
    "uncorrected, SRAM above its threshold": (
        second(ecc__uncorrected_aggregate=2, ecc__sram_uncorrected_aggregate=2, ecc__sram_threshold_exceeded=True),
        {},
        "gpu.ecc_uncorrected_aggregate",
        2,
        "= 0",
        "ask the vendor",
    ),
    "uncorrected, of SRAM only in part": (
        second(ecc__uncorrected_aggregate=5, ecc__sram_uncorrected_aggregate=3),
        {},
        "gpu.ecc_uncorrected_aggregate",
        5,
        "= 0",
        "ROW_REMAPPER",
    ),
    "uncorrected, rows remapped for other memory than SRAM above its threshold": (
        second(
            ecc__uncorrected_aggregate=5,
            ecc__sram_uncorrected_aggregate=3,
            ecc__sram_threshold_exceeded=True,
            remapped_rows__uncorrected=1,
        ),
        {},
        "gpu.ecc_uncorrected_aggregate",
        5,
        "= 0",
        "ROW_REMAPPER",
    ),
    "uncorrected, rows remapped for corrected errors alone": (
        second(ecc__uncorrected_aggregate=1, remapped_rows__corrected=4),
        {},
        "gpu.ecc_uncorrected_aggregate",
        1,
        "= 0",
        "ROW_REMAPPER",
    ),
    "fabric misconfigured": (
        second(
            fabric={"state": "completed", "status": 0, "health": None, "health_mask": 4 << 8},
            unsupported={"fabric.health": "NotSupported", "retired_pages": "NotSupported"},
        ),
        {},
        "gpu.fabric",
        1,
        "= 0",
        "Fabric",
    ),
    "corrected": (second(ecc__corrected_volatile=1001), EXPECT, "gpu.ecc_corrected", 1001, "<= 1000", "replaced"),
    "corrected by default": (
        second(ecc__corrected_volatile=60_000_000),
        {},
        "gpu.ecc_corrected",
        60_000_000,
        "<= 50000000",
        "corrected_max",
    ),
    "sram": (second(ecc__sram_threshold_exceeded=True), {}, "gpu.sram_threshold", True, "false", "replaced"),
    "retired pages": (
        second(retired_pages={"single_bit": 60, "double_bit": 3, "pending": False}),
        {},
        "gpu.retired_pages",
        63,
        "< 63",
        "PAGE_RETIREMENT",
    ),
    "page pending": (
        second(retired_pages={"single_bit": 1, "double_bit": 0, "pending": True}),
        {},
        "gpu.retired_pages_pending",
        True,
        "false",
        "reboot",
    ),
    "remap pending": (second(remapped_rows__pending=True), {}, "gpu.row_remap_pending", True, "false", "gpu-reset"),
    "remap failed": (second(remapped_rows__failed=True), {}, "gpu.row_remap_failure", True, "false", "replaced"),
    "remapped often": (second(remapped_rows__uncorrected=512), {}, "gpu.row_remap_count", 512, "< 512", "replaced"),
    "bank exhausted": (second(remapped_rows__banks_exhausted=1), {}, "gpu.row_remap_exhausted", 1, "= 0", "ROW_REM"),
    "recovery: reset": (second(recovery_action="reset"), {}, "gpu.recovery_action", "reset", '"none"', "gpu-reset"),
    "recovery: reboot": (second(recovery_action="reboot"), {}, "gpu.recovery_action", "reboot", '"none"', "cycle"),
    "recovery: drain": (second(recovery_action="drain_p2p"), {}, "gpu.recovery_action", "drain_p2p", '"none"', "P2P"),
    "recovery: new": (second(recovery_action="9"), {}, "gpu.recovery_action", "9", '"none"', "Drain"),
    "hot": (
        second(throttle_reasons=["sw_power_cap", "hw_thermal_slowdown", "hw_slowdown"]),
        {},
        "gpu.throttle",
        ["sw_power_cap", "hw_thermal_slowdown", "hw_slowdown"],
        "hw_thermal_slowdown",
        "too hot",
    ),
    "warm": (
        second(throttle_reasons=["sw_thermal_slowdown"]),
        {},
        "gpu.throttle",
        ["sw_thermal_slowdown"],
        "sw_thermal",
        "fans",
    ),
    "power brake": (
        second(throttle_reasons=["hw_power_brake_slowdown"]),
        {},
        "gpu.throttle",
        ["hw_power_brake_slowdown"],
        "hw_power_brake",
        "power supply",
    ),
    "hardware slowdown": (second(throttle_reasons=["hw_slowdown"]), {}, "gpu.throttle", ["hw_slowdown"], "hw", "cool"),
    "at its maximum": (second(temperature__gpu_c=87), {}, "gpu.temperature", 87, "< 87", "fans"),
    "no margin left": (
        second(temperature={"gpu_c": 88, "margin_c": 0}, unsupported={"temperature": "NotSupported"}),
        {},
        "gpu.temperature",
        0,
        "> 0",
        "TEMPERATURE",
    ),
    "hot memory": (second(temperature__memory_c=96), {}, "gpu.memory_temperature", 96, "< 95", "heat"),
    "pcie x8": (second(pcie__width=8), {}, "gpu.pcie_width", 8, ">= 16", "lspci"),
    "pcie x8 expected x16": (
        second(pcie__width=8, pcie__width_max=8),
        EXPECT,
        "gpu.pcie_width",
        8,
        ">= 16",
        "reseat",
    ),
    "pcie slow under load": (
        second(pcie__generation=3, utilization__gpu=97),
        {},
        "gpu.pcie_generation",
        3,
        ">= 5",
        "BIOS",
    ),
    "pcie slow, load stated": (
        broken(gpus__0__pcie__generation=5),
        {"under_load": True},
        "gpu.pcie_generation",
        1,
        ">= 5",
        "BIOS",
    ),
    "pcie replays": (second(pcie__replays=7), EXPECT, "gpu.pcie_replays", 7, "<= 0", "reseat"),
    "nvlink down": (second(nvlink__links=links(2, 3)), {}, "gpu.nvlink", 2, "= 4", "fabricmanager"),
    "all nvlinks down": (second(nvlink__links=links(0, 1, 2, 3)), EXPECT, "gpu.nvlink", 0, "= 4", "nvlink -s"),
    "nvlink recovered": (second(nvlink__links=links(recovery=1)), {}, "gpu.nvlink_errors", 1, "= 0", "nvlink -e"),
    "fabric not started": (
        second(fabric__state="not_started"),
        {},
        "gpu.fabric",
        "not_started",
        '"completed"',
        "fabricmanager",
    ),
    "fabric failed": (second(fabric__status=999), {}, "gpu.fabric", 999, "= 0", "fabricmanager"),
    "fabric unhealthy": (second(fabric__health=2), {}, "gpu.fabric", 2, "= 1", "imex"),
    "fabric degraded": (
        second(
            fabric={"state": "completed", "status": 0, "health": None, "health_mask": 1},
            unsupported={"fabric.health": "NotSupported", "retired_pages": "NotSupported"},
        ),
        {},
        "gpu.fabric",
        1,
        "= 0",
        "Fabric",
    ),
    "power lowered": (second(power__limit_w=350.0), {}, "gpu.power_limit", 350.0, ">= 700", "-pl"),
    "power below expected": (
        second(power__limit_w=650.0, power__default_limit_w=650.0),
        EXPECT,
        "gpu.power_limit",
        650.0,
        ">= 700",
        "power_limit_w",
    ),
    "persistence off": (second(persistence_mode=False), EXPECT, "gpu.persistence", False, "true", "persistenced"),
    "mig on": (second(mig={"current": True, "pending": True}), EXPECT, "gpu.mig", True, "false", "-mig 0"),
    "mig pending": (second(mig__pending=True), {}, "gpu.mig", False, "= true", "gpu-reset"),
    "other process": (
        second(processes=[{"pid": 4711, "memory": 2**30, "kind": "compute", "ours": False}]),
        {},
        "gpu.foreign_processes",
        1,
        "= 0",
        "cgroup",
    ),
    "xid 79": (broken(kernel_log=log(xid(79))), {}, "gpu.xid", [79], "no fatal Xid", "power-cycle"),
    "xid 48 of a storm": (
        broken(kernel_log=log(xid(31), xid(48), xid(48, pci="0000:20:00.0"))),
        {},
        "gpu.xid",
        [48],
        "no fatal Xid",
        "gpu-reset",
    ),
    "xid 64 outranks 48": (broken(kernel_log=log(xid(48), xid(64))), {}, "gpu.xid", [48, 64], "no fatal", "vendor"),
}


@pytest.mark.parametrize("name", FAILS)
def test_a_fault_fails_and_names_the_gpu_the_value_the_bound_and_what_to_do(name):
    facts, expect, identity, value, bound, remedy = FAILS[name]
    failed = [entry for entry in judged(facts, expect) if entry["verdict"] == "fail"]
    assert [(entry["id"], entry["where"]["gpu"]) for entry in failed if entry["id"] == identity] == [(identity, SECOND)]
    (entry,) = [entry for entry in failed if entry["id"] == identity]
    assert entry["value"] == value
    assert bound in entry["bound"]
    assert remedy in entry["remedy"]
    assert all(other["where"].get("gpu") == SECOND for other in failed)


NODE_FAILS = {
    "no library": (broken(error="LibraryNotFound", source="none", gpus=[]), {}, "gpu.readable", "libnvidia-ml"),
    "no driver": (broken(error="DriverNotLoaded", source="none", gpus=[]), {}, "gpu.readable", "modprobe"),
    "no gpu": (broken(error="GpuNotFound", source="none", gpus=[]), {}, "gpu.readable", "lspci"),
    "mismatch": (
        broken(error="LibRmVersionMismatch: RM has detected", source="none", gpus=[]),
        {},
        "gpu.readable",
        "reboot",
    ),
    "blocked": (broken(error="nvmlInit did not answer in 10 s", source="none", gpus=[]), {}, "gpu.readable", "DRAIN"),
    "no permission": (broken(error="NoPermission", source="none", gpus=[]), {}, "gpu.readable", "/dev/nvidia"),
    "one missing": (broken(gpus=[gpu(0)], listed=1), {}, "gpu.count", "lspci"),
    "one missing of those expected": (broken(gpus=[gpu(0)], listed=1), {"count": 8}, "gpu.count", "lspci"),
    "one too many": (healthy(), {"count": 1}, "gpu.count", "lspci"),
    "none at all": (broken(gpus=[], device_files=[], pci_devices=None), {}, "gpu.count", "lspci"),
    "old driver": (healthy(), {"driver": ">=580.65"}, "gpu.driver", "Install the expected"),
    "other driver": (healthy(), {"driver": "570.133.07"}, "gpu.driver", "Install the expected"),
    "uuid twice": (second(uuid=gpu(0)["uuid"]), {}, "gpu.unique", "InfoROM"),
    "address twice": (second(pci=gpu(0)["pci"]), {}, "gpu.unique", "InfoROM"),
    "xid of no GPU": (broken(kernel_log=log(xid(119, pci=None))), {}, "gpu.xid", "gpu-reset"),
}


@pytest.mark.parametrize("name", NODE_FAILS)
def test_a_fault_of_the_node_fails(name):
    facts, expect, identity, remedy = NODE_FAILS[name]
    (entry,) = [e for e in judged(facts, expect) if e["verdict"] == "fail" and e["id"] == identity]
    assert "gpu" not in entry["where"]
    assert remedy in entry["remedy"]
    assert entry["bound"]


def test_a_gpu_that_is_not_listed_is_named_by_its_bus_address_and_its_device_file():
    (entry,) = [e for e in judged(broken(gpus=[gpu(0)])) if e["id"] == "gpu.count"]
    assert entry["why"] == "1 is not >= 2: not listed: PCI 0000:20:00.0, /dev/nvidia1"


def test_an_xid_of_a_gpu_that_is_gone_names_its_address():
    facts = broken(gpus=[gpu(0)], kernel_log=log(xid(79)))
    (entry,) = [e for e in judged(facts) if e["id"] == "gpu.xid" and e["verdict"] == "fail"]
    assert entry["where"]["gpu"] == "GPU at 0000:20:00, not listed"
    assert "fallen off the bus" in entry["why"]


FATAL = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"


def test_a_fatal_error_of_a_switch_names_the_switch_and_no_gpu():
    entry = {**xid(20034, pci="0000:c1:00", text=FATAL), "switch": True}
    (found,) = blamed(broken(kernel_log=log(entry, {**entry, "time": NOW - 50})))
    assert (found["id"], found["verdict"], found["value"]) == ("gpu.xid", "fail", [20034])
    assert found["where"]["gpu"] == "NVSwitch at 0000:c1:00"
    assert found["why"] == f'2 SXid in the log; the last line: "{FATAL}"'
    assert "nvidia-fabricmanager" in found["remedy"]


@pytest.mark.parametrize(("pci", "part"), [("0000:c1:00", "NVSwitch at 0000:c1:00"), (None, None)])
def test_an_error_of_a_switch_in_an_unknown_form_is_undetermined(pci, part):
    (found,) = blamed(broken(kernel_log=log({**xid(None, pci=pci, text="SXid (new)"), "switch": True})))
    assert (found["id"], found["verdict"], found["where"].get("gpu")) == ("gpu.xid", "undetermined", part)


def test_a_gpu_too_lost_to_say_where_it_is_is_at_the_address_that_is_left():
    facts = second(error="Unknown", uuid=None, pci=None, name=None, minor=None)
    facts["kernel_log"] = log(xid(79))
    found = [e for e in judged(facts) if e["verdict"] == "fail"]
    assert [(e["id"], e["where"]["gpu"]) for e in found] == [
        ("gpu.answers", "GPU 1 (0000:20:00.0)"),
        ("gpu.xid", "GPU 1 (0000:20:00.0)"),
    ]


# What fails at the first GPU's cost nothing at the second's: every check of a lost GPU is undetermined, no other's.
def test_nothing_is_known_of_a_gpu_that_does_not_answer():
    found = [e for e in judged(second(error="GpuIsLost")) if e["where"].get("gpu") == SECOND]
    gates = [e for e in found if e["severity"] == "gate" and e["id"] not in ("gpu.answers", "gpu.xid")]
    assert {e["verdict"] for e in gates} == {"undetermined"}
    assert all("GpuIsLost" in e["why"] for e in gates)
    assert all("is lost" in e["remedy"] for e in gates)
    assert len(gates) > 15


# ---- what a card or its driver does not have ----

REQUIRED = {
    "ecc": ("gpu.ecc_mode", "gpu.ecc_uncorrected_volatile", "gpu.ecc_uncorrected_aggregate", "gpu.ecc_corrected"),
    "throttle_reasons": ("gpu.throttle",),
    "temperature": ("gpu.temperature",),
    "pcie": ("gpu.pcie_width",),
    "processes": ("gpu.foreign_processes",),
    "remapped_rows": ("gpu.retired_pages", "gpu.row_remap_pending", "gpu.row_remap_failure"),
}


@pytest.mark.parametrize("reason", ["NotSupported", "FunctionNotFound", "ArgumentVersionMismatch"])
@pytest.mark.parametrize("group", REQUIRED)
def test_what_is_required_and_not_supported_is_undetermined(group, reason):
    found = {e["id"]: e for e in blamed(unsupported(**{group: reason}))}
    assert set(REQUIRED[group]) <= set(found)
    for identity in REQUIRED[group]:
        assert found[identity]["verdict"] == "undetermined"
        assert (reason if "retired" not in identity else "NotSupported") in found[identity]["why"]
        assert "not_applicable" in found[identity]["remedy"]


@pytest.mark.parametrize("group", REQUIRED)
def test_the_inventory_excuses_it_with_a_reason(group):
    facts = unsupported(**{group: "NotSupported"})
    identities = {e["id"] for e in blamed(facts)}
    found = judged(facts, {"not_applicable": dict.fromkeys(identities, "a desktop card")})
    assert [e for e in found if e["verdict"] in ("fail", "undetermined")] == []
    excused = [e for e in found if e["verdict"] == "not_applicable"]
    assert {e["id"] for e in excused} == identities
    assert {e["why"] for e in excused} == {"the inventory says: a desktop card"}


OPTIONAL = ("nvlink", "fabric", "ecc__sram_threshold_exceeded", "recovery_action", "power", "persistence_mode", "mig")


@pytest.mark.parametrize("group", OPTIONAL)
def test_what_is_optional_and_not_supported_is_recorded(group):
    assert blamed(unsupported(**{group: "NotSupported"})) == []


@pytest.mark.parametrize("reason", ["Unknown", "Timeout", "GpuIsLost", "did not answer in 5 s"])
@pytest.mark.parametrize("group", ["nvlink", "fabric", "ecc__sram_threshold_exceeded", "recovery_action", "power"])
def test_what_is_optional_and_could_not_be_read_is_undetermined(group, reason):
    found = blamed(unsupported(**{group: reason}))
    assert found
    assert {e["verdict"] for e in found} == {"undetermined"}
    assert all(reason in e["why"] for e in found)


@pytest.mark.parametrize(
    ("group", "expect", "identity"),
    [
        ("nvlink", {"nvlinks": 4}, "gpu.nvlink"),
        ("power", {"power_limit_w": 700}, "gpu.power_limit"),
        ("persistence_mode", {"persistence": True}, "gpu.persistence"),
        ("mig", {"mig": False}, "gpu.mig"),
        ("memory", {"memory_gib": 1}, "gpu.memory"),
        ("pcie__replays", {"pcie_replays_max": 0}, "gpu.pcie_replays"),
    ],
)
def test_what_is_expected_is_no_longer_optional(group, expect, identity):
    found = {e["id"]: e["verdict"] for e in blamed(unsupported(**{group: "NotSupported"}), expect)}
    assert found[identity] == "undetermined"


def test_no_nvlink_is_expected_of_a_card_that_has_none():
    facts = unsupported(nvlink="NotSupported")
    facts["gpus"][0] = facts["gpus"][1] | {key: gpu(0)[key] for key in ("index", "minor", "uuid", "pci")}
    assert blamed(facts, {"nvlinks": 0}) == []


def no_links(reason=None):
    facts = second(nvlink__links=[])
    if reason:
        facts["gpus"][1]["unsupported"]["nvlink"] = reason
    return facts


@pytest.mark.parametrize(
    ("reason", "expect", "verdict"),
    [
        (None, {}, "recorded"),
        (None, {"nvlinks": 4}, "undetermined"),
        (None, {"nvlinks": 0}, "undetermined"),
        ("NotSupported", {}, "recorded"),
        ("NotSupported", {"nvlinks": 4}, "undetermined"),
        ("NotSupported", {"nvlinks": 0}, "pass"),
        ("FunctionNotFound", {"nvlinks": 0}, "undetermined"),
        ("Unknown", {}, "undetermined"),
        ("Unknown", {"nvlinks": 0}, "undetermined"),
    ],
)
def test_an_empty_list_of_links_is_no_statement_that_there_are_none(reason, expect, verdict):
    found = [e for e in judged(no_links(reason), expect) if e["where"].get("gpu") == SECOND]
    assert {e["id"]: e["verdict"] for e in found if e["id"] in ("gpu.nvlink", "gpu.nvlink_errors")} == {
        "gpu.nvlink": verdict,
        "gpu.nvlink_errors": verdict,
    }


@pytest.mark.parametrize("number", [0, None, "1", True])
def test_a_link_told_twice_or_without_its_number_is_undetermined(number):
    changed = links()
    changed[1]["link"] = number
    found = blamed(second(nvlink__links=changed), {"nvlinks": 4})
    assert [(e["id"], e["verdict"]) for e in found] == [("gpu.nvlink", "undetermined")]


def test_no_link_that_is_up_tells_of_no_recovery():
    found = [e for e in judged(second(nvlink__links=links(0, 1, 2, 3))) if e["id"] == "gpu.nvlink_errors"]
    assert [e["verdict"] for e in found] == ["pass", "recorded"]


def test_without_any_link_up_only_the_inventory_knows_whether_that_is_right():
    facts = second(nvlink__links=links(0, 1, 2, 3))
    assert [(e["id"], e["verdict"]) for e in blamed(facts)] == [("gpu.nvlink", "undetermined")]
    facts["gpus"][0]["nvlink"]["links"] = links(0, 1, 2, 3)
    assert blamed(facts, {"nvlinks": 0}) == []


def test_a_link_whose_state_could_not_be_read_is_undetermined():
    facts = second(nvlink__links=links())
    facts["gpus"][1]["nvlink"]["links"][2].update(active=None, errors=None)
    facts["gpus"][1]["unsupported"]["nvlink.links.2"] = "Unknown"
    assert {e["id"]: e["verdict"] for e in blamed(facts)}["gpu.nvlink"] == "undetermined"


def test_error_counters_that_new_cards_lack_are_recorded():
    facts = healthy()
    for link in facts["gpus"][1]["nvlink"]["links"]:
        link["errors"]["recovery"] = None
        facts["gpus"][1]["unsupported"][f"nvlink.links.{link['link']}.errors.recovery"] = "NotSupported"
    assert blamed(facts) == []


def split(reason="NotSupported"):
    facts = unsupported(processes=reason, utilization="NotSupported")
    facts["gpus"][1]["mig"] = {"current": True, "pending": True}
    return facts


@pytest.mark.parametrize("reason", ["NotSupported", "NoPermission"])
def test_processes_and_utilisation_are_not_demanded_of_a_gpu_that_is_split(reason):
    facts = split(reason)
    assert blamed(facts, {"mig": True, "nvlinks": 4})[0]["where"]["gpu"] != SECOND  # the first is not split
    assert blamed(facts) == []
    found = {e["id"]: e for e in judged(facts) if e["where"].get("gpu") == SECOND}
    assert found["gpu.foreign_processes"]["why"] == f"MIG is on: processes: {reason}"
    assert "MIG is on: utilization.gpu: NotSupported" in found["gpu.pcie_generation"]["why"]
    (count,) = [e for e in judged(facts) if e["id"] == "gpu.count"]
    assert (count["verdict"], count["value"]) == ("pass", 2)
    assert "whole GPUs are counted" in count["why"]


def test_what_is_told_of_a_gpu_that_is_split_is_judged():
    facts = split("Unknown")
    assert [e["id"] for e in blamed(facts)] == ["gpu.foreign_processes"]
    facts = second(mig={"current": True, "pending": True}, ecc__uncorrected_volatile=1)
    assert [e["id"] for e in blamed(facts)] == ["gpu.ecc_uncorrected_volatile"]


def test_no_permission_excuses_no_gpu_that_is_whole():
    found = blamed(unsupported(processes="NoPermission"))
    assert [(e["id"], e["verdict"]) for e in found] == [("gpu.foreign_processes", "undetermined")]


def test_mig_puts_nvlink_out_of_use_as_a_whole_but_not_in_part():
    facts = second(mig={"current": True, "pending": True}, nvlink__links=links(0, 1, 2, 3))
    assert blamed(facts) == []
    (entry,) = [e for e in judged(facts) if e["id"] == "gpu.nvlink" and e["where"]["gpu"] == SECOND]
    assert (entry["verdict"], "MIG is on" in entry["why"]) == ("recorded", True)
    assert [e["id"] for e in blamed(facts, {"nvlinks": 4})] == ["gpu.nvlink"]
    facts = second(mig={"current": True, "pending": True}, nvlink__links=links(3))
    assert [(e["id"], e["verdict"]) for e in blamed(facts)] == [("gpu.nvlink", "fail")]


@pytest.mark.parametrize("kind", ["graphics", "mps"])
def test_processes_of_a_kind_that_could_not_be_read_are_undetermined(kind):
    facts = second(unsupported={"retired_pages": "NotSupported", "temperature.memory_c": "NotSupported"})
    facts["gpus"][1]["unsupported"][f"processes.{kind}"] = "NotSupported"
    assert blamed(facts) == []
    facts["gpus"][1]["unsupported"][f"processes.{kind}"] = "Unknown"
    assert [(e["id"], e["verdict"]) for e in blamed(facts)] == [("gpu.foreign_processes", "undetermined")]


def test_utilisation_that_could_not_be_read_leaves_the_generation_undetermined():
    found = blamed(unsupported(utilization="Unknown"))
    assert [(e["id"], e["verdict"]) for e in found] == [("gpu.pcie_generation", "undetermined")]


@pytest.mark.parametrize(
    ("facts", "identity"),
    [
        (second(pcie__width=0, pcie__width_max=0), "gpu.pcie_width"),
        (second(pcie__generation=0, pcie__generation_max=0, utilization__gpu=99), "gpu.pcie_generation"),
    ],
)
def test_a_link_of_no_width_at_all_is_undetermined(facts, identity):
    assert [(e["id"], e["verdict"]) for e in blamed(facts)] == [(identity, "undetermined")]


def test_other_processes_may_be_allowed():
    facts = second(processes=[{"pid": 1, "memory": None, "kind": "compute", "ours": False}])
    assert blamed(facts, {"foreign_processes": True}) == []


def test_our_own_processes_are_no_others():
    assert blamed(second(processes=[{"pid": 1, "memory": 1, "kind": "compute", "ours": True}])) == []


@pytest.mark.parametrize(
    "facts",
    [
        second(ecc__uncorrected_aggregate=2, remapped_rows__uncorrected=1),  # one row, until it was replaced
        second(ecc__uncorrected_aggregate=2, ecc__sram_uncorrected_aggregate=2),
        second(ecc__uncorrected_aggregate=2, ecc__sram_uncorrected_aggregate=1, remapped_rows__uncorrected=1),
        second(
            ecc__uncorrected_aggregate=2,
            ecc__sram_uncorrected_aggregate=None,
            ecc__sram_threshold_exceeded=None,
            retired_pages={"single_bit": 0, "double_bit": 2, "pending": False},
            unsupported={
                "ecc.sram_threshold_exceeded": "FunctionNotFound",
                "ecc.sram_uncorrected_aggregate": "FunctionNotFound",
                "temperature.memory_c": "NotSupported",
            },
        ),
    ],
    ids=["remapped", "sram", "both", "retired"],
)
def test_errors_that_were_dealt_with_do_not_condemn_a_card_for_life(facts):
    found = {e["id"]: e for e in judged(facts) if e["where"].get("gpu") == SECOND}
    assert found["gpu.ecc_uncorrected_aggregate"]["verdict"] == "recorded"
    assert found["gpu.ecc_uncorrected_aggregate"]["value"] == 2
    assert blamed(facts) == []


@pytest.mark.parametrize("missing", ["ecc__sram_uncorrected_aggregate", "ecc__sram_threshold_exceeded"])
@pytest.mark.parametrize(("reason", "verdict"), [("Unknown", "undetermined"), ("NotSupported", "fail")])
def test_errors_that_may_be_dealt_with_are_undetermined_and_those_that_cannot_fail(missing, reason, verdict):
    facts = unsupported(**{missing: reason})
    facts["gpus"][1]["ecc"].update(uncorrected_aggregate=2)
    found = {e["id"]: e["verdict"] for e in judged(facts) if e["where"].get("gpu") == SECOND}
    assert found["gpu.ecc_uncorrected_aggregate"] == verdict


def geforce():
    """A node with two cards that have neither ECC nor anything that repairs memory, nor NVLink, as most GeForce."""
    facts = unsupported(**dict.fromkeys(("ecc", "remapped_rows", "retired_pages", "nvlink", "fabric"), "NotSupported"))
    facts["gpus"][0] = facts["gpus"][1] | {key: gpu(0)[key] for key in ("index", "minor", "uuid", "pci")}
    return facts


def test_one_statement_suffices_for_cards_without_ecc():
    assert blamed(geforce(), {"ecc": False}) == []
    found = [e for e in judged(geforce(), {"ecc": False}) if e["where"].get("gpu") == SECOND]
    verdicts = {e["id"]: (e["verdict"], e["why"]) for e in found}
    assert verdicts["gpu.ecc_mode"] == ("pass", "the card has no ECC (NotSupported)")
    excused = {identity for identity, (verdict, _why) in verdicts.items() if verdict == "not_applicable"}
    assert excused == {
        "gpu.ecc_uncorrected_volatile",
        "gpu.ecc_uncorrected_aggregate",
        "gpu.ecc_corrected",
        "gpu.sram_threshold",
        *memory.REPAIRS,
    }


@pytest.mark.parametrize("expect", [{}, {"ecc": True}])
def test_without_that_statement_a_card_without_ecc_is_undetermined(expect):
    assert {e["verdict"] for e in blamed(geforce(), expect) if e["id"] == "gpu.ecc_mode"} == {"undetermined"}


@pytest.mark.parametrize("reason", ["FunctionNotFound", "Unknown", "GpuIsLost"])
def test_a_mode_that_could_not_be_read_is_no_card_without_ecc(reason):
    found = {e["id"]: e["verdict"] for e in blamed(unsupported(ecc=reason), {"ecc": False})}
    assert found["gpu.ecc_mode"] == "undetermined"


def test_ecc_that_is_on_where_it_should_be_off_fails():
    assert [(e["id"], e["verdict"]) for e in blamed(second(), {"ecc": False}) if e["where"]["gpu"] == SECOND] == [
        ("gpu.ecc_mode", "fail")
    ]


def test_repairs_that_fail_are_found_without_ecc_too():
    facts = second(ecc__mode=False, ecc__pending=False, remapped_rows__failed=True)
    assert "gpu.row_remap_failure" in {e["id"] for e in blamed(facts, {"ecc": False})}
    facts = unsupported(remapped_rows="Unknown")
    assert "gpu.row_remap_failure" in {e["id"] for e in blamed(facts, {"ecc": False})}


def test_an_inventory_without_ecc_excuses_its_counters():
    facts = unsupported(ecc="NotSupported")
    facts["gpus"][1]["ecc"] = {"mode": False, "pending": False}
    facts["gpus"][0] = {**gpu(0), "ecc": {"mode": False, "pending": False}}
    assert blamed(facts, {"ecc": False}) == []


@pytest.mark.parametrize("reasons", [[], ["sw_power_cap"], ["gpu_idle", "sync_boost", "display_clocks_setting"]])
def test_idle_is_told_from_trouble(reasons):
    assert blamed(second(throttle_reasons=reasons)) == []


@pytest.mark.parametrize("reason", ["0x200", "", 8, None])
def test_a_reason_that_nobody_knows_is_undetermined(reason):
    assert [(e["id"], e["verdict"]) for e in blamed(second(throttle_reasons=["gpu_idle", reason]))] == [
        ("gpu.throttle", "undetermined")
    ]


def test_a_fabric_that_is_still_joining_is_undetermined():
    assert [(e["id"], e["verdict"]) for e in blamed(second(fabric__state="in_progress"))] == [
        ("gpu.fabric", "undetermined")
    ]


@pytest.mark.parametrize("facts", [second(temperature__margin_c=None), second(temperature__slowdown_c="90")])
def test_a_limit_that_could_not_be_read_leaves_the_temperature_undetermined(facts):
    assert [(e["id"], e["verdict"]) for e in blamed(facts)] == [("gpu.temperature", "undetermined")]


# ---- the node ----


@pytest.mark.parametrize(
    "facts",
    [
        None,
        [],
        "facts",
        {},
        {"schema": 1},
        broken(schema=2),
        broken(schema=True),
        broken(node="compute01"),
        broken(node=None),
        broken(source=None),
        broken(source="none"),
        broken(error="nobody knows"),
        broken(error=1),
        broken(error="nvidia-ml-py is neither installed nor in /mnt/beegfs/scripts/kit/wheels"),
    ],
    ids=str,
)
def test_facts_that_are_none_of_this_node_are_undetermined(facts):
    found = blamed(facts)
    assert (found[0]["id"], found[0]["verdict"]) == ("gpu.readable", "undetermined")


def test_a_domain_does_not_make_another_node():
    found = node.findings(broken(node="Compute02.example.org"), {}, node=NODE)
    assert not [e for e in found if e["verdict"] in ("fail", "undetermined")]


@pytest.mark.parametrize("driver", [None, 570, "570.x"])
def test_a_driver_version_that_is_none_is_undetermined(driver):
    found = {e["id"]: e["verdict"] for e in blamed(broken(driver__version=driver), {"driver": ">=570"})}
    assert found == {"gpu.driver": "undetermined"}


def test_a_hidden_pci_bus_leaves_the_device_files_to_count_by():
    assert blamed(broken(pci_devices=None)) == []
    assert [e["id"] for e in blamed(broken(pci_devices="0000:10:00.0"))] == ["gpu.count"]


# ---- how many GPUs there are ----

SCREEN = "0000:05:00.0"


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 2),
        ({"pci_devices": None, "pci_displays": None}, 2),
        ({"device_files": []}, 2),
        ({"pci_devices": []}, 2),
        ({"device_files": ["/dev/nvidia0"]}, 2),  # a card that died keeps its place on the bus
        ({"device_files": ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2"]}, 3),
        ({"pci_devices": ["0000:10:00.0", "0000:20:00.0", SCREEN], "pci_displays": [SCREEN]}, 2),
        ({"pci_devices": ["0000:10:00.0", "0000:20:00.0", SCREEN], "pci_displays": []}, 3),
        ({"pci_displays": ["0000:10:00.0", "0000:20:00.0"], "device_files": []}, 2),  # GeForce, listed by NVML
        ({"pci_displays": ["0000:10:00.0", "0000:20:00.0"], "device_files": [], "gpus": []}, 0),
        ({"device_files": [], "pci_devices": []}, 0),
        ({"device_files": [], "pci_devices": None}, None),
        ({"device_files": None}, None),
        ({"device_files": [0]}, None),
        ({"pci_devices": "0000:10:00.0"}, None),
        ({"pci_devices": ["10"]}, None),
        ({"pci_displays": [None]}, None),
    ],
    ids=str,
)
def test_the_gpus_of_a_node_are_counted_without_its_screens(changes, count):
    facts = healthy() | changes
    assert node.device_count(facts) == count


@pytest.mark.parametrize("facts", [None, [], {}, "facts", {"device_files": []}])
def test_what_is_no_facts_document_counts_nothing(facts):
    assert node.device_count(facts) is None
    assert node.mig_enabled(facts) is False


def test_a_document_from_before_displays_were_told_counts_every_controller():
    facts = healthy()
    del facts["pci_displays"]
    assert node.device_count(facts) == 2


def test_a_screen_is_no_gpu_that_is_missing():
    facts = broken(pci_devices=["0000:10:00.0", "0000:20:00.0", SCREEN], pci_displays=[SCREEN])
    assert blamed(facts) == []
    assert [e["id"] for e in blamed(facts | {"pci_displays": []})] == ["gpu.count"]


@pytest.mark.parametrize(
    ("mig", "enabled"),
    [({"current": True, "pending": True}, True), ({"current": False, "pending": True}, False), (None, False)],
)
def test_mig_is_on_where_one_gpu_says_so(mig, enabled):
    assert node.mig_enabled(second(mig=mig)) is enabled


@pytest.mark.parametrize("gpus", [None, [], [None], [{"mig": {"current": "yes"}}], [{"mig": {"current": 1}}]])
def test_damaged_facts_tell_of_no_mig(gpus):
    assert node.mig_enabled(broken(gpus=gpus)) is False


def test_simulated_hardware_says_so():
    assert all(e["source"].startswith("simulated NVML") for e in judged(healthy(), simulated=True))


def test_without_health_only_the_inventory_is_judged():
    facts = second(name="Tesla T4", ecc__uncorrected_volatile=3)
    assert [e["id"] for e in blamed(facts, EXPECT, health=False)] == ["gpu.model"]


# ---- Jetson ----


def test_a_jetson_is_judged_by_what_it_has():
    assert blamed(jetson()) == []
    assert {e["id"] for e in judged(jetson())} == {
        "gpu.readable",
        "gpu.count",
        "gpu.answers",
        "gpu.model",
        "gpu.memory",
        "gpu.temperature",
    }


@pytest.mark.parametrize("expect", [{"count": 1}, {"count": 1, "model": "NVIDIA Jetson*", "driver": ">=540"}])
def test_a_healthy_jetson_passes_what_a_preflight_expects(expect):
    """As the kit tells it of JetPack 6: the module's version, device files or none, perhaps the bus."""
    for changes in ({}, {"device_files": ["/dev/nvidia0"], "pci_devices": None}, {"pci_devices": ["0001:01:00.0"]}):
        facts = jetson() | changes
        facts["driver"] = {"version": None, "cuda": None, "nvml": None, "module": "540.3.0"}
        assert blamed(facts, expect) == []
        assert node.device_count(facts) == 1


@pytest.mark.parametrize(
    ("gpus", "verdict"), [([], "fail"), (None, "undetermined"), ([1], "undetermined"), ({}, "undetermined")]
)
def test_a_jetson_of_which_no_gpu_is_told_is_not_healthy(gpus, verdict):
    assert ("gpu.count", verdict) in {(e["id"], e["verdict"]) for e in blamed(jetson() | {"gpus": gpus})}


@pytest.mark.parametrize("key", ["ecc", "persistence", "mig", "power_limit_w", "nvlinks", "pcie_width"])
def test_what_is_expected_of_a_jetson_is_judged(key):
    found = blamed(jetson(), {key: EXPECT[key]})
    assert [(e["id"], e["verdict"]) for e in found] == [(gpu_jetson.STATED[key], "undetermined")]


def test_xids_of_a_jetson_are_judged():
    facts = jetson() | {"kernel_log": log(xid(79, pci="0000:01:00"))}
    assert [(e["id"], e["verdict"]) for e in blamed(facts)] == [("gpu.xid", "fail")]


def test_a_limit_of_a_jetson_that_is_no_number_is_undetermined():
    facts = jetson()
    facts["gpus"][0]["temperature"]["slowdown_c"] = "99"
    assert [(e["id"], e["verdict"]) for e in blamed(facts)] == [("gpu.temperature", "undetermined")]


def test_a_jetson_too_hot_or_of_another_model_fails():
    facts = jetson()
    facts["gpus"][0]["temperature"]["slowdown_c"] = 45
    found = blamed(facts, {"model": "NVIDIA Jetson Orin Nano*", "count": 1})
    assert [(e["id"], e["verdict"]) for e in found] == [("gpu.model", "fail"), ("gpu.temperature", "fail")]


def test_a_jetson_that_tells_no_temperature_is_undetermined():
    facts = jetson()
    facts["gpus"][0]["temperature"]["gpu_c"] = None
    assert [(e["id"], e["verdict"]) for e in blamed(facts)] == [("gpu.temperature", "undetermined")]


# ---- the kernel log ----


def of(found, identity):
    return [(e["verdict"], e["where"].get("gpu")) for e in found if e["id"] == identity]


def test_none_makes_the_kernel_log_not_applicable():
    found = judged(broken(kernel_log=None), kernel_log="none")
    assert of(found, "gpu.kernel_log") == of(found, "gpu.xid") == [("not_applicable", None)]
    assert blamed(broken(kernel_log=None), kernel_log="none") == []


@pytest.mark.parametrize(
    "kernel_log",
    [
        None,
        {},
        "dmesg",
        log(error="dmesg: read kernel buffer failed: Operation not permitted"),
        log(error=0),
        log(complete=False),
        log(complete=None),
        log(since=None),
        log(since=NOW),
        log(xids=None),
        log(more=None),
        log(access="none"),
        log(xid(31), more=5),
    ],
    ids=str,
)
def test_a_log_that_may_hide_something_proves_nothing(kernel_log):
    found = judged(broken(kernel_log=kernel_log))
    assert of(found, "gpu.kernel_log") == [("undetermined", None)]
    assert {verdict for verdict, _gpu in of(found, "gpu.xid")} == {"undetermined"}


def test_a_fatal_xid_fails_even_where_the_log_may_hide_more():
    found = judged(broken(kernel_log=log(xid(79), complete=False)))
    assert of(found, "gpu.xid")[1] == ("fail", SECOND)


def test_repetitions_that_were_left_out_hide_nothing():
    assert blamed(broken(kernel_log=log(xid(31), xid(31), more=900))) == []


def test_warnings_are_counted_and_decide_nothing():
    facts = broken(kernel_log=log(xid(31), xid(31), xid(94), xid(45)))
    assert blamed(facts) == []
    (entry,) = [e for e in judged(facts) if e["id"] == "gpu.xid_warnings"]
    assert entry["verdict"] == "recorded"
    assert entry["value"] == {"31": 2, "45": 1, "94": 1}
    assert entry["where"]["gpu"] == SECOND


@pytest.mark.parametrize("entry", [xid(9999), xid(None), xid("79"), xid(True), xid(-1), 79, None, {}], ids=str)
def test_an_xid_that_nobody_knows_is_undetermined(entry):
    found = blamed(broken(kernel_log=log(entry)))
    assert [e["id"] for e in found] == ["gpu.xid"]
    assert found[0]["verdict"] == "undetermined"
    assert "xids.yml" in found[0]["remedy"]


@pytest.mark.parametrize(
    ("since", "complete", "verdict"),
    [
        (NOW - 9000, True, "pass"),  # asked for more than is expected
        (NOW - 3600, True, "pass"),
        (NOW - 3600 - 60, True, "pass"),
        (NOW - 1800, True, "undetermined"),  # asked for less
        (NOW - 9000, False, "undetermined"),
    ],
)
def test_a_log_that_was_read_from_earlier_than_expected_will_do(since, complete, verdict):
    kernel_log = log(since=since, complete=complete, oldest=NOW - 2000 if not complete else since)
    found = judged(broken(kernel_log=kernel_log), {"xid_since": 3600})
    assert of(found, "gpu.kernel_log") == [(verdict, None)]


def test_a_buffer_that_was_overwritten_need_only_reach_back_to_what_is_expected():
    def verdict(oldest):
        facts = broken(kernel_log=log(complete=False, oldest=oldest))
        return of(judged(facts, {"xid_since": 3600}), "gpu.kernel_log")[0][0]

    assert verdict(NOW - 5000) == "pass"
    assert {verdict(oldest) for oldest in (NOW - 3000, None, "0", True)} == {"undetermined"}


def test_what_was_left_out_of_a_longer_log_hides_nothing_that_counts():
    old, new = NOW - 9000, NOW - 100

    def verdict(*xids):
        found = judged(broken(kernel_log=log(*xids, more=5)), {"xid_since": 3600})
        return of(found, "gpu.kernel_log")[0][0]

    # The oldest repetition listed is too old to count, and what was left out is older still.
    assert verdict(xid(79, when=old), xid(31, when=old), xid(31, when=old + 1), xid(31, when=new)) == "pass"
    # Each kind is seen since: what was left out is of one of them.
    assert verdict(xid(31, when=old), xid(31, when=new)) == "pass"
    # Of 79 an old one is listed, and one that counts may be among those left out.
    assert verdict(xid(79, when=old), xid(31, when=new - 9), xid(31, when=new)) == "undetermined"
    assert verdict(xid(31, when=old), xid(32, when=new)) == "undetermined"


@pytest.mark.parametrize("changes", [{"boot_time": NOW + 3600}, {"boot_time": None}, {"time": None}, {"time": "now"}])
def test_a_boot_that_is_not_before_the_reading_hides_no_xid(changes):
    facts = broken(kernel_log=log(xid(79))) | changes
    assert of(judged(facts), "gpu.kernel_log") == [("undetermined", None)]
    assert of(blamed(facts), "gpu.xid")[-1] == ("fail", SECOND)


def test_an_xid_from_before_what_was_read_is_damaged_and_counts():
    facts = broken(kernel_log=log(xid(79, when=0.0)))
    assert of(blamed(facts), "gpu.xid") == [("fail", SECOND)]


def test_only_xids_since_the_time_asked_count():
    old = broken(kernel_log=log(xid(79, when=NOW - 7200)))
    assert blamed(old, {"xid_since": 3600}) == []
    assert of(blamed(old, {"xid_since": 9000}), "gpu.xid") == [("fail", SECOND)]
    assert of(blamed(broken(kernel_log=log(xid(79, when=None))), {"xid_since": 60}), "gpu.xid") == [("fail", SECOND)]
    late = broken(kernel_log=log(since=NOW - 60), time=NOW)
    assert of(blamed(late, {"xid_since": 3600}), "gpu.kernel_log") == [("undetermined", None)]
    assert of(blamed(broken(time=None), {"xid_since": 3600}), "gpu.kernel_log") == [("undetermined", None)]


def test_what_the_driver_calls_nonfatal_is_not_fatal():
    line = "NVRM: Xid (PCI:0000:20:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 17"
    assert blamed(broken(kernel_log=log(xid(145, text=line)))) == []
    assert of(blamed(broken(kernel_log=log(xid(145, text=line.replace("Nonf", "F"))))), "gpu.xid")[0][0] == "fail"


def test_xids_are_judged_where_nvml_is_silent():
    facts = broken(error="DriverNotLoaded", gpus=[], kernel_log=log())
    assert of(judged(facts), "gpu.xid") == [("pass", None)]


# ---- expectations ----


@pytest.mark.parametrize(
    ("expect", "told"),
    [
        ([], "expected an object"),
        ({"cuont": 2}, "unknown key 'cuont' (did you mean 'count'?)"),
        ({1: 2}, "unknown key 1"),
        ({"count": True}, "hpc_validation_gpu.count: expected a whole number, found true"),
        ({"count": "2"}, "count"),
        ({"count": -1}, "count"),
        ({"model": ""}, "model"),
        ({"model": "*"}, "model"),
        ({"memory_gib": 0}, "memory_gib"),
        ({"memory_gib": float("nan")}, "memory_gib"),
        ({"driver": 570}, "driver"),
        ({"driver": "> 570"}, "driver"),
        ({"ecc": "yes"}, "ecc"),
        ({"pcie_width": 3}, "pcie_width"),
        ({"pcie_generation": 0}, "pcie_generation"),
        ({"nvlinks": 1.0}, "nvlinks"),
        ({"xid_since": "yesterday"}, "xid_since"),
        ({"not_applicable": ["gpu.ecc"]}, "not_applicable"),
        ({"not_applicable": {"gpu.ecc": "x"}}, "unknown check 'gpu.ecc'"),
        ({"not_applicable": {"gpu.fabric": ""}}, "not_applicable.gpu.fabric"),
    ],
)
def test_malformed_expectations_are_refused_by_name(expect, told):
    with pytest.raises(judge_expect.ExpectError, match=re.escape(told)):
        judged(healthy(), expect)
    assert GPU.problems(expect, TITLES)


def test_null_is_nothing_expected():
    assert blamed(healthy(), dict.fromkeys(EXPECT)) == []


def test_an_unknown_way_to_the_kernel_log_is_refused():
    with pytest.raises(ValueError, match="kernel_log"):
        judged(healthy(), kernel_log="root")


def test_every_check_that_can_fail_has_a_remedy():
    known = remedies.load()
    assert set(TITLES) - {"gpu.nvlink_retries", "gpu.xid_warnings"} <= set(known)
