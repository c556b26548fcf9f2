# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU probe: what it says of healthy and of sick GPUs, and that no driver keeps it waiting."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import types
import typing as t
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from kit.gpu import asking as gpu_asking
from kit.gpu import facts, nvml, probe
from kit.gpu.reader import Reader
from kit.process import bounded

from tests.unit.kit.conftest import FakeNode
from tests.unit.kit.fake_nvml import (
    HEALTHY,
    NVMLError_DriverNotLoaded,
    NVMLError_GpuIsLost,
    NVMLError_InvalidArgument,
    NVMLError_LibRmVersionMismatch,
    NVMLError_NotSupported,
    NVMLError_Unknown,
    fake_pynvml,
    fields,
    fill,
    gpu,
    links,
)

Document = dict[str, t.Any]


def hang(*_other: t.Any) -> None:
    signal.pause()


def crash(*_other: t.Any) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def uuids(document: Document) -> list[str]:
    return [item["uuid"] for item in document["gpus"]]


def test_the_library_is_imported_before_the_deadlines_of_the_driver_begin(
    fake_node: FakeNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (
        "import os",
        "PID = os.getpid()",
        "class NVMLError(Exception): pass",
        "class NVMLError_Late(NVMLError): pass",
    )
    init = "def nvmlInit(): raise NVMLError_Late(f'imported by {PID}')"
    (tmp_path / "pynvml.py").write_text("\n".join((*lines, init)))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    try:
        document = probe.collect(probe.Options(kernel_log="none", root=fake_node.root))
        assert document["error"] == f"Late: imported by {os.getpid()}"
    finally:
        sys.modules.pop("pynvml", None)


def test_a_healthy_gpu_says_everything(collect: t.Callable[..., Document], fake_node: FakeNode) -> None:
    fake_node.gpu("pci0000:00/0000:00:00.0")
    fake_node.write("dev/nvidia0", "")
    fake_node.write("dev/nvidiactl", "")
    fake_node.write("sys/module/nvidia/version", "570.1\n")
    document = collect(fake_pynvml(gpu(0)))
    (one,) = document["gpus"]
    assert (document["source"], document["error"], document["listed"]) == ("nvml", None, 1)
    assert document["driver"] == {"version": "570.1", "cuda": "12.8", "nvml": "12.570.1", "module": "570.1"}
    assert document["device_files"] == ["/dev/nvidia0"]
    assert (document["pci_devices"], document["pci_displays"]) == (["0000:00:00.0"], [])
    assert document["boot_time"] == 1000
    assert (one["index"], one["minor"], one["uuid"], one["pci"]) == (0, 0, "GPU-0000", "00000000:00:00.0")
    assert (one["serial"], one["compute_capability"], one["persistence_mode"]) == ("165", "9.0", True)
    assert one["memory"] == {"total": 5, "used": 5, "reserved": 5, "unified": False}
    assert one["ecc"] == {
        "mode": True,
        "pending": True,
        "corrected_volatile": 0,
        "uncorrected_volatile": 0,
        "corrected_aggregate": 0,
        "uncorrected_aggregate": 0,
        "sram_uncorrected_aggregate": 0,
        "sram_threshold_exceeded": False,
    }
    assert one["retired_pages"] is None
    assert one["remapped_rows"] == {
        "corrected": 0,
        "uncorrected": 0,
        "pending": False,
        "failed": False,
        "banks_exhausted": 0,
    }
    assert one["recovery_action"] == "none"
    assert one["clocks"] == {"sm_mhz": 1500, "sm_max_mhz": 1980, "memory_mhz": 1500, "memory_max_mhz": 1980}
    assert one["throttle_reasons"] == ["gpu_idle", "hw_thermal_slowdown"]
    assert (one["temperature"]["gpu_c"], one["temperature"]["memory_c"]) == (40, 45)
    assert one["power"] == {
        "draw_w": 70.5,
        "limit_w": 700.0,
        "default_limit_w": 700.0,
        "min_limit_w": 200.0,
        "max_limit_w": 700.0,
    }
    assert one["pcie"] == {"generation": 5, "generation_max": 5, "width": 16, "width_max": 16, "replays": 0}
    assert len(one["nvlink"]["links"]) == 18
    assert one["nvlink"]["links"][0] == {
        "link": 0,
        "active": True,
        "peer": "00000000:20:00.0",
        "peer_kind": "switch",
        "errors": {"replay": 0, "recovery": 0, "crc_flit": 0, "crc_data": 0},
    }
    assert one["fabric"] == {"state": "completed", "status": 0, "health": 1, "health_mask": 0}
    assert one["topology"]["pci_root"] == "pci0000:00"
    assert one["processes"] == []
    assert one["unsupported"] == {
        "retired_pages": "NotSupported",
        "temperature.slowdown_margin_c": "NotSupported",
        "temperature.shutdown_margin_c": "NotSupported",
        "topology.nic": "none below its PCI root",
    }


def test_eight_healthy_gpus_take_a_fraction_of_the_two_seconds(collect: t.Callable[..., Document]) -> None:
    begin = time.monotonic()
    document = collect(fake_pynvml(*(gpu(number) for number in range(8))))
    assert len(document["gpus"]) == 8
    assert time.monotonic() - begin < 1


@pytest.mark.parametrize(
    ("readings", "said"),
    [
        ([0x8, 0x8, 0x1], ["gpu_idle"]),  # while clocks change
        ([0x8, 0x8, 0x8, 0x8], ["hw_slowdown"]),
        ([0x8 | 0x80], ["hw_slowdown", "hw_power_brake_slowdown"]),
        ([0x8, NVMLError_Unknown()], None),
    ],
)
def test_a_slowdown_counts_that_lasts_or_has_a_cause(readings: list[t.Any], said: list[str] | None) -> None:
    answers = iter(readings)

    def answer(_handle: t.Any) -> int:
        given = next(answers)
        if isinstance(given, Exception):
            raise given
        return int(given)

    device = gpu(0)
    module: t.Any = fake_pynvml(device)
    module.nvmlDeviceGetCurrentClocksEventReasons = answer
    assert facts.clocks(Reader(module, nvml.Gpu(0, device)))["throttle_reasons"] == said
    assert next(answers, None) is None


def test_an_inventory_asks_no_health(collect: t.Callable[..., Document]) -> None:
    (one,) = collect(fake_pynvml(gpu(0, calls={"nvmlDeviceGetTotalEccErrors": hang})), health=False)["gpus"]
    assert one["error"] is None
    assert (one["serial"], one["ecc"], one["unsupported"]["ecc"]) == ("165", None, "not asked")


@pytest.mark.parametrize(
    ("module", "error"),
    [
        (None, "nvidia-ml-py is neither installed nor in "),
        (fake_pynvml(init=NVMLError_DriverNotLoaded()), "DriverNotLoaded"),
        (fake_pynvml(init=NVMLError_LibRmVersionMismatch()), "LibRmVersionMismatch: RM has detected an NVML/RM"),
        (fake_pynvml(init=hang), "nvmlInit did not answer in 0.4 s"),
        (fake_pynvml(init=crash), "nvmlInit crashed (SIGSEGV)"),
        (fake_pynvml(init=lambda: sys.exit(3)), "nvmlInit ended early"),
        (fake_pynvml(init=OSError("broken")), "nvmlInit OSError: broken"),
    ],
)
def test_no_usable_library_is_an_error_text(
    collect: t.Callable[..., Document], monkeypatch: pytest.MonkeyPatch, module: t.Any, error: str
) -> None:
    monkeypatch.setattr(nvml, "WHEELS", Path("/nonexistent"))
    document = collect(module)
    assert document["error"].startswith(error)
    assert (document["source"], document["gpus"]) == ("none", [])


def test_a_start_may_take_longer_than_any_other_call(collect: t.Callable[..., Document]) -> None:
    """Without persistence mode nvmlInit starts every GPU."""
    slow = fake_pynvml(gpu(0), gpu(1), init=lambda: time.sleep(0.5))
    document = collect(slow, init_deadline=3.0)
    assert (document["error"], [item["error"] for item in document["gpus"]]) == (None, [None, None])
    assert collect(slow, init_deadline=0.3)["error"] == "nvmlInit did not answer in 0.3 s"


def test_a_gpu_that_is_started_when_it_is_first_asked_may_take_longer(
    collect: t.Callable[..., Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = fake_pynvml(gpu(0))
    handle = module.nvmlDeviceGetHandleByIndex
    monkeypatch.setattr(module, "nvmlDeviceGetHandleByIndex", lambda index: (time.sleep(0.3), handle(index))[1])
    assert [item["error"] for item in collect(module)["gpus"]] == [None]


def test_the_deadlines_of_start_and_kernel_log_are_their_own() -> None:
    options = gpu_asking.Options()
    assert (options.deadline, options.init_deadline, options.log_deadline, options.limit) == (5.0, 30.0, 20.0, 60.0)


def test_the_kernel_log_has_its_own_deadline_within_the_limit(
    collect: t.Callable[..., Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    monkeypatch.setattr(probe.kernel_log, "read", lambda *given: asked.append(given[3]) or UNREAD)
    collect(fake_pynvml())
    collect(fake_pynvml(), log_deadline=2.5)
    assert asked == [5.0, 2.5]  # the limit here is 5 s


UNREAD = {"access": "user", "source": "dmesg", "error": "x", "since": 1.0, "complete": False, "xids": [], "more": 0}


def test_sram_errors_are_counted_on_their_own(collect: t.Callable[..., Document]) -> None:
    status = fill(aggregateUncParity=2, aggregateUncSecDed=1, bThresholdExceeded=1)
    calls = {"nvmlDeviceGetSramEccErrorStatus": status, "nvmlDeviceGetTotalEccErrors": 5}
    (one,) = collect(fake_pynvml(gpu(0, calls=calls)))["gpus"]
    assert (one["ecc"]["sram_uncorrected_aggregate"], one["ecc"]["sram_threshold_exceeded"]) == (3, True)
    (one,) = collect(fake_pynvml(gpu(0, calls={"nvmlDeviceGetSramEccErrorStatus": NVMLError_Unknown()})))["gpus"]
    assert (one["ecc"]["sram_uncorrected_aggregate"], one["ecc"]["sram_threshold_exceeded"]) == (None, None)
    assert one["unsupported"]["ecc.sram_uncorrected_aggregate"] == "Unknown"


def test_a_graphics_controller_is_told_from_a_3d_controller(
    collect: t.Callable[..., Document], fake_node: FakeNode
) -> None:
    fake_node.gpu("pci0000:00/0000:00:00.0")
    fake_node.gpu("pci0000:00/0000:05:00.0", **{"class": "0x030000\n"})
    document = collect(fake_pynvml(gpu(0)))
    assert document["pci_devices"] == ["0000:00:00.0", "0000:05:00.0"]
    assert document["pci_displays"] == ["0000:05:00.0"]


def test_no_gpu_is_no_error_of_the_library(collect: t.Callable[..., Document]) -> None:
    document = collect(fake_pynvml())
    assert (document["source"], document["error"], document["listed"], document["gpus"]) == ("nvml", None, 0, [])


def test_one_lost_gpu_of_eight_hides_no_other(collect: t.Callable[..., Document]) -> None:
    gpus = [gpu(number) for number in range(8)]
    document = collect(fake_pynvml(*gpus[:3], NVMLError_GpuIsLost(), *gpus[4:]))
    lost = document["gpus"][3]
    assert (lost["uuid"], lost["error"], lost["unsupported"]["ecc"]) == (None, "GpuIsLost", "GpuIsLost")
    assert [item["error"] for item in document["gpus"] if item is not lost] == [None] * 7


def test_a_gpu_that_is_lost_while_it_is_asked_says_so(collect: t.Callable[..., Document]) -> None:
    (one,) = collect(fake_pynvml(gpu(0, calls={"nvmlDeviceGetTotalEccErrors": NVMLError_GpuIsLost()})))["gpus"]
    assert one["error"] == "GpuIsLost"
    assert one["unsupported"]["ecc.uncorrected_volatile"] == "GpuIsLost"
    assert one["pcie"]["width"] == 16


@pytest.mark.parametrize(("fault", "error"), [(hang, "did not answer in 0.2 s"), (crash, "crashed (SIGSEGV)")])
def test_a_call_that_blocks_or_crashes_costs_the_rest_of_one_gpu(
    collect: t.Callable[..., Document], fault: t.Any, error: str
) -> None:
    sick = gpu(1, calls={"nvmlDeviceGetTotalEccErrors": fault})
    well, bad, last = collect(fake_pynvml(gpu(0), sick, gpu(2)))["gpus"]
    assert (well["error"], last["error"], bad["error"]) == (None, None, error)
    assert (bad["serial"], bad["persistence_mode"], bad["ecc"], bad["pcie"]) == ("165", True, None, None)
    assert (bad["unsupported"]["ecc"], bad["unsupported"]["pcie"]) == (error, error)
    assert last["ecc"]["uncorrected_volatile"] == 0


def test_a_gpu_that_does_not_say_what_it_is_costs_one_gpu(
    collect: t.Callable[..., Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = fake_pynvml(gpu(0), gpu(1), gpu(2))
    handle = module.nvmlDeviceGetHandleByIndex
    monkeypatch.setattr(module, "nvmlDeviceGetHandleByIndex", lambda index: hang() if index == 1 else handle(index))
    document = collect(module, sample=0.1, interval=0.05)
    assert uuids(document) == ["GPU-0000", None, "GPU-0002"]
    assert [item["error"] for item in document["gpus"]] == [None, "did not answer in 0.4 s", None]
    assert set(document["samples"]["gpus"]) == {"GPU-0000", "GPU-0002"}


@pytest.mark.parametrize(("present", "pci"), [((0, 1, 2), "00000000:01:00.0"), ((0, 2), None), ((0, 2, 3), None)])
def test_a_lost_gpu_has_its_address_if_sysfs_lists_the_same_gpus(
    collect: t.Callable[..., Document], fake_node: FakeNode, present: tuple[int, ...], pci: str | None
) -> None:
    for number in present:
        fake_node.gpu(f"pci0000:00/0000:{number:02x}:00.0")
    document = collect(fake_pynvml(gpu(0), NVMLError_GpuIsLost(), gpu(2)))
    assert (document["gpus"][1]["pci"], document["gpus"][1]["error"]) == (pci, "GpuIsLost")


def test_two_gpus_that_block_are_each_their_own_finding(collect: t.Callable[..., Document]) -> None:
    gpus = [gpu(number, calls={"nvmlDeviceGetMigMode": hang}) for number in (0, 1)]
    document = collect(fake_pynvml(*gpus, gpu(2)))
    silent = "did not answer in 0.2 s"
    assert [item["error"] for item in document["gpus"]] == [silent, silent, None]


def test_the_overall_limit_ends_it_and_the_rest_says_so(collect: t.Callable[..., Document]) -> None:
    gpus = [gpu(number, calls={"nvmlDeviceGetSerial": hang}) for number in range(8)]
    document = collect(fake_pynvml(*gpus), limit=1.4)
    assert len(document["gpus"]) == 8
    assert document["gpus"][0]["error"] == "did not answer in 0.2 s"
    assert document["gpus"][7]["error"] == "not reached within 1.4 s"


def test_an_init_that_blocks_only_later_closes_the_rest(collect: t.Callable[..., Document], tmp_path: Path) -> None:
    def init() -> None:
        if (tmp_path / "seen").exists():
            hang()
        (tmp_path / "seen").touch()

    document = collect(fake_pynvml(gpu(0, calls={"nvmlDeviceGetSerial": hang}), gpu(1), init=init))
    assert document["error"] is None
    assert document["gpus"][0]["error"] == "did not answer in 0.2 s"
    assert document["gpus"][1]["error"] == "nvmlInit did not answer in 0.4 s"


def second_time(folder: Path) -> t.Callable[[], bool]:
    """Return a test whether another process than the caller has made it before."""

    def asked_before() -> bool:
        (folder / str(os.getpid())).touch()
        return len(list(folder.iterdir())) > 1

    folder.mkdir()
    return asked_before


def test_a_library_that_fails_only_later_closes_the_rest(collect: t.Callable[..., Document], tmp_path: Path) -> None:
    again = second_time(tmp_path / "asked")

    def init() -> None:
        if again():
            raise NVMLError_DriverNotLoaded

    document = collect(fake_pynvml(gpu(0, calls={"nvmlDeviceGetSerial": hang}), gpu(1), init=init))
    assert (document["source"], document["error"]) == ("nvml", None)
    assert [item["error"] for item in document["gpus"]] == ["did not answer in 0.2 s", "DriverNotLoaded"]


@pytest.mark.parametrize("later", [NVMLError_GpuIsLost(), hang])
def test_a_gpu_that_blocks_and_then_is_lost_is_listed_once(
    collect: t.Callable[..., Document], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, later: t.Any
) -> None:
    again = second_time(tmp_path / "asked")
    module = fake_pynvml(gpu(0, calls={"nvmlDeviceGetSerial": hang}), gpu(1))
    handle = module.nvmlDeviceGetHandleByIndex

    def by_index(index: int) -> t.Any:
        if index == 0 and again():
            if isinstance(later, Exception):
                raise later
            later()
        return handle(index)

    monkeypatch.setattr(module, "nvmlDeviceGetHandleByIndex", by_index)
    document = collect(module)
    assert uuids(document) == ["GPU-0000", "GPU-0001"]
    assert [item["error"] for item in document["gpus"]] == ["did not answer in 0.2 s", None]


def test_a_gpu_that_vanishes_between_two_children_is_told(
    collect: t.Callable[..., Document], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    again = second_time(tmp_path / "asked")
    module = fake_pynvml(gpu(0, calls={"nvmlDeviceGetSerial": hang}), gpu(1), gpu(2))
    monkeypatch.setattr(module, "nvmlDeviceGetCount", lambda: 2 if again() else 3)
    errors = [item["error"] for item in collect(module)["gpus"]]
    assert errors == ["did not answer in 0.2 s", None, "NVML no longer lists it"]


def test_an_unkillable_child_is_left_alone(collect: t.Callable[..., Document], monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    kill = os.kill
    monkeypatch.setattr(bounded.os, "kill", lambda pid, _number: left.append(pid))
    begin = time.monotonic()
    document = collect(fake_pynvml(gpu(0, calls={"nvmlDeviceGetMigMode": hang})))
    assert time.monotonic() - begin < 2
    monkeypatch.undo()
    for pid in left:
        try:
            kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # the one that had said all
    assert document["gpus"][0]["error"] == "did not answer in 0.2 s"


def test_an_old_geforce_gives_what_it_has(collect: t.Callable[..., Document]) -> None:
    nothing = dict.fromkeys(HEALTHY, NVMLError_NotSupported())
    fault = {"power": NVMLError_NotSupported(), "reasons": NVMLError_NotSupported(), "clock": NVMLError_NotSupported()}
    document = collect(fake_pynvml(gpu(0, calls=nothing, temperature=NVMLError_NotSupported(), **fault)))
    (one,) = document["gpus"]
    assert (one["error"], one["name"]) == (None, "Fake GPU")
    for group in ("ecc", "retired_pages", "remapped_rows", "power", "temperature", "pcie", "nvlink", "fabric", "mig"):
        assert (one[group], one["unsupported"][group]) == (None, "NotSupported"), group


def test_an_old_nvidia_ml_py_lacks_functions(collect: t.Callable[..., Document]) -> None:
    absent = ["nvmlDeviceGetSramEccErrorStatus", "c_nvmlGpuFabricInfo_v3_t", "nvmlDeviceGetMarginTemperature"]
    module = fake_pynvml(gpu(0), without=[*absent, "nvmlDeviceGetRemappedRows", "c_nvmlGpuFabricInfo_v2_t"])
    (one,) = collect(module)["gpus"]
    assert one["unsupported"]["ecc.sram_threshold_exceeded"] == "FunctionNotFound"
    assert one["unsupported"]["ecc.sram_uncorrected_aggregate"] == "FunctionNotFound"
    assert one["unsupported"]["fabric"] == "FunctionNotFound"
    assert one["unsupported"]["remapped_rows"] == "FunctionNotFound"
    assert one["unsupported"]["temperature.margin_c"] == "FunctionNotFound"


def test_an_older_fabric_structure_has_no_health(collect: t.Callable[..., Document]) -> None:
    old = {"nvmlDeviceGetGpuFabricInfoV": fill(status=0, state=2, healthMask=5)}
    (one,) = collect(fake_pynvml(gpu(0, calls=old), without=["c_nvmlGpuFabricInfo_v3_t"]))["gpus"]
    assert one["fabric"] == {"state": "in_progress", "status": 0, "health": None, "health_mask": 5}


def test_text_that_is_no_utf8_is_null_with_its_reason(collect: t.Callable[..., Document]) -> None:
    wrong = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    (one,) = collect(fake_pynvml(gpu(0, name=wrong, calls={"nvmlDeviceGetSerial": wrong})))["gpus"]
    assert (one["name"], one["serial"], one["unsupported"]["serial"]) == (None, None, "NotUtf8")


def test_an_answer_of_another_shape_hides_no_other_group(collect: t.Callable[..., Document]) -> None:
    (one,) = collect(fake_pynvml(gpu(0, calls={"nvmlDeviceGetRemappedRows": (1,)})))["gpus"]
    assert one["remapped_rows"] is None
    assert one["unsupported"]["remapped_rows"].startswith("IndexError")
    assert one["pcie"]["width"] == 16


def test_an_unknown_error_is_told_from_not_supported(collect: t.Callable[..., Document]) -> None:
    (one,) = collect(fake_pynvml(gpu(0, calls={"nvmlDeviceGetCurrPcieLinkWidth": NVMLError_Unknown()})))["gpus"]
    assert (one["pcie"]["width"], one["unsupported"]["pcie.width"]) == (None, "Unknown")


def test_a_mig_parent_has_no_utilisation(collect: t.Callable[..., Document]) -> None:
    parent = gpu(0, util=NVMLError_NotSupported(), calls={"nvmlDeviceGetMigMode": [1, 1]})
    (one,) = collect(fake_pynvml(parent))["gpus"]
    assert one["mig"] == {"current": True, "pending": True}
    assert (one["utilization"], one["unsupported"]["utilization"]) == (None, "NotSupported")


def test_memory_that_is_the_nodes_is_read_from_the_node(collect: t.Callable[..., Document]) -> None:
    (one,) = collect(fake_pynvml(gpu(0, memory_used=NVMLError_NotSupported())))["gpus"]
    assert one["memory"] == {"total": 2 << 20, "used": 1 << 20, "reserved": None, "unified": True}
    assert one["unsupported"]["memory.reserved"] == "NotSupported"
    (one,) = collect(fake_pynvml(gpu(0, memory_used=NVMLError_Unknown())))["gpus"]
    assert (one["memory"], one["unsupported"]["memory"]) == (None, "Unknown")


@pytest.mark.parametrize(("number", "name"), [(1, "reset"), (4, "drain_and_reset"), (6, "bus_reset"), (9, "9")])
def test_the_recovery_action_is_named(collect: t.Callable[..., Document], number: int, name: str) -> None:
    (one,) = collect(fake_pynvml(gpu(0, calls={"nvmlDeviceGetFieldValues": fields({230: number})})))["gpus"]
    assert one["recovery_action"] == name


@pytest.mark.parametrize(
    ("answers", "name", "why"),
    [
        (fields({226: 0, 227: 0}), "none", None),
        (fields({226: 1, 227: 1}), "reset", None),
        (fields({226: 0, 227: 1}), "drain_and_reset", None),
        (fields({226: 0}), None, "NotSupported"),
        (fields({}), None, "NotSupported"),
        (NVMLError_InvalidArgument(), None, "NotSupported"),
        (NVMLError_Unknown(), None, "Unknown"),
    ],
)
def test_a_driver_that_knows_no_recovery_action_is_asked_for_its_parts(
    collect: t.Callable[..., Document], answers: t.Any, name: str | None, why: str | None
) -> None:
    (one,) = collect(fake_pynvml(gpu(0, calls={"nvmlDeviceGetFieldValues": answers})))["gpus"]
    assert (one["recovery_action"], one["unsupported"].get("recovery_action")) == (name, why)


@pytest.mark.parametrize("raw", [-2, 2**32 - 2, 2**64 - 2])
def test_a_margin_may_be_below_zero_whatever_its_type(collect: t.Callable[..., Document], raw: int) -> None:
    (one,) = collect(fake_pynvml(gpu(0, calls={"nvmlDeviceGetFieldValues": fields({194: raw})})))["gpus"]
    assert one["temperature"]["slowdown_margin_c"] == -2


def test_retired_pages_are_counted_by_cause(collect: t.Callable[..., Document]) -> None:
    calls = {
        "nvmlDeviceGetRetiredPages": lambda _handle, cause: [1, 2] if cause == 1 else [],
        "nvmlDeviceGetRetiredPagesPendingStatus": 1,
    }
    (one,) = collect(fake_pynvml(gpu(0, calls=calls)))["gpus"]
    assert one["retired_pages"] == {"single_bit": 0, "double_bit": 2, "pending": True}


def test_links_that_are_down_missing_or_unreadable(collect: t.Callable[..., Document]) -> None:
    faults = {1: 0, 2: NVMLError_NotSupported(), 3: NVMLError_Unknown()}
    (one,) = collect(fake_pynvml(gpu(0, calls=links(5, state=faults))))["gpus"]
    found = {link["link"]: link["active"] for link in one["nvlink"]["links"]}
    assert found == {0: True, 1: False, 3: None, 4: True}
    assert one["unsupported"]["nvlink.links.1"] == "the link is down"
    assert one["unsupported"]["nvlink.links.3"] == "Unknown"


def test_link_errors_come_from_fields_where_the_call_is_gone(collect: t.Callable[..., Document]) -> None:
    calls = {
        **links(1),
        "nvmlDeviceGetNvLinkErrorCounter": NVMLError_NotSupported(),
        "nvmlDeviceGetFieldValues": fields({161: 7, 162: 0, 230: 0}),
    }
    (one,) = collect(fake_pynvml(gpu(0, calls=calls)))["gpus"]
    errors = one["nvlink"]["links"][0]["errors"]
    assert errors == {"replay": 7, "recovery": 0, "crc_flit": None, "crc_data": None}
    assert one["unsupported"]["nvlink.links.0.errors.crc_flit"] == "NotSupported"
    assert "nvlink.links.0.errors.replay" not in one["unsupported"]


def test_only_the_gpus_of_the_job_are_asked(
    collect: t.Callable[..., Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = fake_pynvml(gpu(0, calls={"nvmlDeviceGetSerial": hang}), gpu(1))
    monkeypatch.setattr(nvml, "may_open", lambda minor: minor == 1)
    document = collect(module)
    assert (uuids(document), document["listed"], document["selected_by"]) == (["GPU-0001"], 2, "device access")


def test_processes_say_whose_they_are(collect: t.Callable[..., Document], fake_node: FakeNode) -> None:
    listed = [types.SimpleNamespace(pid=pid, usedGpuMemory=memory) for pid, memory in ((11, 4), (12, None))]
    for pid in (11, 12):
        fake_node.write(f"proc/{pid}/cgroup", "0::/user.slice\n")
    (one,) = collect(fake_pynvml(gpu(0, calls={"nvmlDeviceGetComputeRunningProcesses": listed})))["gpus"]
    assert one["processes"] == [
        {"pid": 11, "memory": 4, "kind": "compute", "ours": False},
        {"pid": 12, "memory": None, "kind": "compute", "ours": False},
    ]


def test_sampling_reduces_every_quantity(collect: t.Callable[..., Document]) -> None:
    samples = collect(fake_pynvml(gpu(0), gpu(1)), sample=0.3, interval=0.05)["samples"]
    assert (samples["error"], set(samples["gpus"])) == (None, {"GPU-0000", "GPU-0001"})
    one = samples["gpus"]["GPU-0000"]
    assert one["util"]["count"] >= 5
    assert (one["util"]["mean"], one["power_w"]["p95"], one["sm_clock_mhz"]["min"]) == (90, 70.5, 1500)
    assert (one["sm_occupancy"]["mean"], one["tensor_activity"]["mean"]) == (30, 50)


def test_sampling_that_blocks_says_so(collect: t.Callable[..., Document]) -> None:
    module = fake_pynvml(gpu(0, calls={"nvmlGpmQueryDeviceSupport": hang}))
    samples = collect(module, sample=0.2, interval=0.05)["samples"]
    assert samples["error"] == "did not answer in 0.4 s"
    assert samples["gpus"] == {}


def test_without_a_library_there_is_nothing_to_sample(
    collect: t.Callable[..., Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "WHEELS", Path("/nonexistent"))
    samples = collect(None, sample=0.2, interval=0.05)["samples"]
    assert "nvidia-ml-py" in samples["error"]


@pytest.fixture
def kit(tmp_path: Path, root: Path) -> t.Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run the kit's command line with the stand-in on its path."""
    tests = str(Path(__file__).parents[1])
    (tmp_path / "pynvml.py").write_text(
        f"import sys\nsys.path.insert(0, {tests!r})\nfrom fake_nvml import fake_pynvml, gpu\n"
        "globals().update(vars(fake_pynvml(gpu(0))))\n"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{root / 'files'}:{tmp_path}"}

    def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "kit", "probe", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, timeout=30, check=False)

    return run


def test_the_command_prints_or_writes_the_document(
    kit: t.Callable[..., subprocess.CompletedProcess[bytes]], tmp_path: Path
) -> None:
    printed = kit("--kernel-log", "none", "--since", "1700000000")
    assert printed.returncode == 0, printed.stderr
    document = json.loads(printed.stdout)
    assert schema.problems("gpus", document) == []
    assert uuids(document) == ["GPU-0000"]
    assert document["kernel_log"]["since"] == 1700000000
    written = kit("--no-health", "--output", str(tmp_path / "gpus.json"))
    assert (written.returncode, written.stdout) == (0, b"")
    inventory = json.loads((tmp_path / "gpus.json").read_text())
    assert inventory["gpus"][0]["unsupported"]["ecc"] == "not asked"
    assert inventory["kernel_log"]["access"] == "none"


@pytest.mark.parametrize(
    "wrong",
    [
        "--deadline=0",
        "--init-deadline=0",
        "--log-deadline=nan",
        "--deadline=nan",
        "--limit=-1",
        "--sample=1e9",
        "--interval=0",
        "--since=noon",
        "--x",
    ],
)
def test_a_senseless_option_is_refused(kit: t.Callable[..., subprocess.CompletedProcess[bytes]], wrong: str) -> None:
    done = kit(wrong)
    assert done.returncode in (1, 2)
    assert b"Traceback" not in done.stderr
