# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for libnvidia-ml.so.1: its C interface against nvidia-ml-py's, and the faults that it can be given."""

from __future__ import annotations

import ctypes
import importlib.util
import inspect
import json
import re
import subprocess
import sys
import types
import typing as t
from pathlib import Path

import pytest

from tests.integration.test_cluster import NAME, PROGRAM, ROOT, gives_back, job, manage, recorded, wheel

NODE, GPU = "compute02", 1
# Names that programs older than this nvidia-ml-py look for.
OLDER = {"nvmlInit", "nvmlInit_v2", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByPciBusId"}
OLDER |= {"nvmlDeviceGetPciInfo_v2"}
# What a call gives → the keys of the state that it gives, in order. `h` is a GPU, `s` a structure to be filled.
READS = {
    "n.nvmlDeviceGetBrand(h)": "brand",
    "n.nvmlDeviceGetArchitecture(h)": "architecture",
    "n.nvmlDeviceGetNumGpuCores(h)": "cores",
    "n.nvmlDeviceGetPersistenceMode(h)": "persistence_mode",
    "n.nvmlDeviceGetComputeMode(h)": "compute_mode",
    "n.nvmlDeviceGetNumaNodeId(h)": "numa_node",
    "n.nvmlDeviceGetCudaComputeCapability(h)": "compute_capability_major compute_capability_minor",
    "n.nvmlDeviceGetMigMode(h)": "mig_mode mig_mode_pending",
    "n.nvmlDeviceGetPciInfo(h).pciDeviceId": "pci_device_id",
    "n.nvmlDeviceGetPciInfo(h).pciSubSystemId": "pci_subsystem_id",
    "n.nvmlDeviceGetMemoryInfo(h).total": "memory_total",
    "n.nvmlDeviceGetMemoryInfo(h, n.nvmlMemory_v2).used": "memory_used",
    "n.nvmlDeviceGetMemoryInfo(h, n.nvmlMemory_v2).reserved": "memory_reserved",
    "n.nvmlDeviceGetUtilizationRates(h).gpu": "utilization_gpu",
    "n.nvmlDeviceGetUtilizationRates(h).memory": "utilization_memory",
    "n.nvmlDeviceGetPowerUsage(h)": "power_mw",
    "n.nvmlDeviceGetEnforcedPowerLimit(h)": "power_limit_mw",
    "n.nvmlDeviceGetPowerManagementLimit(h)": "power_limit_mw",
    "n.nvmlDeviceGetPowerManagementDefaultLimit(h)": "power_default_limit_mw",
    "n.nvmlDeviceGetPowerManagementLimitConstraints(h)": "power_min_limit_mw power_max_limit_mw",
    "n.nvmlDeviceGetTotalEnergyConsumption(h)": "energy_mj",
    "n.nvmlDeviceGetPerformanceState(h)": "performance_state",
    "n.nvmlDeviceGetTemperature(h, 0)": "temperature",
    "n.nvmlDeviceGetTemperatureV(h, 0)": "temperature",
    "n.nvmlDeviceGetMarginTemperature(h)": "temperature_margin",
    "[n.nvmlDeviceGetTemperatureThreshold(h, i) for i in range(4)]": (
        "temperature_shutdown temperature_slowdown temperature_memory_max temperature_gpu_max"
    ),
    "[n.nvmlDeviceGetClockInfo(h, i) for i in range(4)]": "clock_graphics clock_sm clock_memory clock_video",
    "[n.nvmlDeviceGetMaxClockInfo(h, i) for i in range(4)]": (
        "clock_graphics_max clock_sm_max clock_memory_max clock_video_max"
    ),
    "n.nvmlDeviceGetCurrentClocksEventReasons(h)": "clocks_event_reasons",
    "n.nvmlDeviceGetCurrentClocksThrottleReasons(h)": "clocks_event_reasons",
    "n.nvmlDeviceGetSupportedClocksEventReasons(h)": "clocks_event_reasons_supported",
    "n.nvmlDeviceGetCurrPcieLinkGeneration(h)": "pcie_generation",
    "n.nvmlDeviceGetMaxPcieLinkGeneration(h)": "pcie_generation_max",
    "n.nvmlDeviceGetCurrPcieLinkWidth(h)": "pcie_width",
    "n.nvmlDeviceGetMaxPcieLinkWidth(h)": "pcie_width_max",
    "n.nvmlDeviceGetPcieReplayCounter(h)": "pcie_replays",
    "n.nvmlDeviceGetTopologyCommonAncestor(h, other)": "topology_level",
    "n.nvmlDeviceGetEccMode(h)": "ecc_mode ecc_mode_pending",
    "[n.nvmlDeviceGetTotalEccErrors(h, i, j) for i in range(2) for j in range(2)]": (
        "ecc_corrected_volatile ecc_corrected_aggregate ecc_uncorrected_volatile ecc_uncorrected_aggregate"
    ),
    "n.nvmlDeviceGetMemoryErrorCounter(h, 1, 0, 2)": "ecc_uncorrected_volatile",
    "[len(n.nvmlDeviceGetRetiredPages(h, i)) for i in range(2)]": "retired_single_bit retired_double_bit",
    "n.nvmlDeviceGetRetiredPagesPendingStatus(h)": "retired_pending",
    "n.nvmlDeviceGetRemappedRows(h)": "remapped_corrected remapped_uncorrected remapped_pending remapped_failed",
    "[getattr(n.nvmlDeviceGetRowRemapperHistogram(h), name) for name in ('max', 'high', 'partial', 'low', 'none')]": (
        "remap_banks_max remap_banks_high remap_banks_partial remap_banks_low remap_banks_none"
    ),
    "filled(n.c_nvmlEccSramErrorStatus_v1_t, n.nvmlDeviceGetSramEccErrorStatus,"
    " 'volatileCor', 'volatileUncSecDed', 'aggregateCor', 'aggregateUncBucketL2', 'bThresholdExceeded')": (
        "sram_corrected sram_uncorrected sram_corrected sram_uncorrected sram_threshold_exceeded"
    ),
    "n.nvmlDeviceGetNvLinkVersion(h, 17)": "nvlink_version",
    "n.nvmlDeviceGetNvLinkRemoteDeviceType(h, 0)": "nvlink_peer_type",
    "[n.nvmlDeviceGetNvLinkErrorCounter(h, 4, i) for i in range(5)]": (
        "nvlink.4.replay nvlink.4.recovery nvlink.4.crc_flit nvlink.4.crc_data nvlink.4.ecc_data"
    ),
    "filled(n.c_nvmlGpuFabricInfo_t, n.nvmlDeviceGetGpuFabricInfo, 'state', 'status')": "fabric_state fabric_status",
    "filled(n.c_nvmlGpuFabricInfo_v2_t, n.nvmlDeviceGetGpuFabricInfoV, 'state', 'status', 'healthMask')": (
        "fabric_state fabric_status fabric_health_mask"
    ),
    "filled(n.c_nvmlGpuFabricInfo_v3_t, n.nvmlDeviceGetGpuFabricInfoV,"
    " 'state', 'status', 'healthMask', 'healthSummary')": (
        "fabric_state fabric_status fabric_health_mask fabric_health"
    ),
    "[value.value.ullVal for value in n.nvmlDeviceGetFieldValues(h, [82, 230])]": "field.82 field.230",
    "n.nvmlGpmQueryDeviceSupport(h).isSupportedDevice": "gpm_supported",
    "monitored(1, 2, 3, 5)": "gpm.1 gpm.2 gpm.3 gpm.5",
}
SCRIPT = """
import ctypes, json, sys
sys.path.insert(0, sys.argv[1])
import pynvml as n
n.nvmlInit()
h, other = (n.nvmlDeviceGetHandleByIndex(index) for index in (1, 0))

def filled(structure, call, *names):
    s = structure()
    call(h, ctypes.byref(s))
    return [getattr(s, name) for name in names]

def monitored(*numbers):
    wanted = n.c_nvmlGpmMetricsGet_t()
    wanted.version, wanted.numMetrics = n.NVML_GPM_METRICS_GET_VERSION, len(numbers)
    wanted.sample1, wanted.sample2 = (n.nvmlGpmSampleGet(h, n.nvmlGpmSampleAlloc()) for _ in range(2))
    for place, number in enumerate(numbers):
        wanted.metrics[place].metricId = number
    n.nvmlGpmMetricsGet(wanted)
    found = [wanted.metrics[place] for place in range(len(numbers))]
    assert not any(metric.nvmlReturn for metric in found)
    n.nvmlGpmSampleFree(wanted.sample1), n.nvmlGpmSampleFree(wanted.sample2)
    return [metric.value for metric in found]

print(json.dumps({READS}))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Path]:
    """A folder on the share with nvidia-ml-py, unmodified; removed afterwards."""
    manage("up", "--name", NAME)
    folder = recorded().share / "nvidia-ml-py-under-test"
    folder.mkdir(exist_ok=True)
    (folder / "pynvml.py").write_bytes(wheel(tmp_path_factory.mktemp("wheel")))
    yield folder
    for file in folder.glob("*.py"):
        file.unlink()
    folder.rmdir()


@pytest.fixture(scope="module")
def pynvml(package: Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[types.ModuleType]:
    """nvidia-ml-py here: its definitions only."""
    copy = tmp_path_factory.mktemp("definitions") / "pynvml.py"
    copy.write_bytes((package / "pynvml.py").read_bytes())
    spec = importlib.util.spec_from_file_location("pynvml_definitions", copy)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pynvml_definitions", module)  # it looks itself up there
        spec.loader.exec_module(module)
        yield module


@pytest.fixture
def restored() -> t.Iterator[None]:
    """The GPU is given its state back."""
    restore = gives_back(NODE, GPU)
    yield
    restore()


def on_node(*argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command on the compute node as admin."""
    return manage("exec", "--name", NAME, "--user", "admin", NODE, "--", *argv, check=check)


def gpu(*words: str, index: t.Any = GPU) -> None:
    """Change the state of the GPU, or of its node."""
    manage("gpu", "--name", NAME, NODE, str(index), *words)


def exported() -> set[str]:
    """The library's own symbols."""
    listed = on_node("nm", "--dynamic", "--defined-only", "/usr/local/lib/libnvidia-ml.so.1").stdout
    return {line.split()[-1] for line in listed.splitlines()}


def symbols(pynvml: types.ModuleType, name: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """The symbols of the library that a function of nvidia-ml-py looks up."""
    source = inspect.getsource(inspect.unwrap(getattr(pynvml, name)))
    found = set(re.findall(r'_nvmlGetFunctionPointer\("(nvml\w+)"\)', source))
    if found:
        return found
    called = {word for word in re.findall(r"\b(nvml\w+)\(", source) if hasattr(pynvml, word)} - seen - {name}
    return {symbol for word in called for symbol in symbols(pynvml, word, seen | {name})}


def test_structures_have_the_sizes_and_offsets_of_nvidia_ml_py(pynvml):
    layout = json.loads(on_node("nvml-layout").stdout)
    assert len(layout) == 17
    for name, ours in layout.items():
        theirs = getattr(pynvml, name)
        members = [getattr(theirs, field) for field, *_rest in theirs._fields_]
        assert ours["size"] == ctypes.sizeof(theirs), name
        assert ours["fields"] == [[member.offset, member.size] for member in members], name


def test_the_library_exports_nvmls_calls_and_nothing_else(package):
    known = set(re.findall(r'_nvmlGetFunctionPointer\("(nvml\w+)"\)', (package / "pynvml.py").read_text()))
    assert exported() - known == OLDER


def test_every_call_that_the_project_makes_is_there(pynvml):
    text = "".join(path.read_text() for path in sorted((ROOT / "files/kit").rglob("*.py")))
    names = set(re.findall(r"\b(nvml(?:Device|System|Event|Gpm|Init|Shutdown)\w*)", text))
    called = {name for name in names if callable(getattr(pynvml, name, None))}
    assert len(called) > 20
    there = exported()
    missing = {name: symbols(pynvml, name) - there for name in called}
    assert {name: absent for name, absent in missing.items() if absent} == {}


@pytest.mark.usefixtures("restored")
def test_every_call_gives_what_the_state_says(package):
    keys = sorted({key for words in READS.values() for key in words.split()})
    values = {key: 1 if key == "gpm_supported" else 100 + number for number, key in enumerate(keys)}
    gpu(*(f"{key}={value}" for key, value in values.items()))
    script = SCRIPT.replace("{READS}", f"{{{', '.join(f'{read!r}: {read}' for read in READS)}}}")
    found = json.loads(on_node("python3", "-B", "-c", script, "/mnt/beegfs/" + package.name).stdout)
    for read, words in READS.items():
        given = found[read] if isinstance(found[read], list) else [found[read]]
        assert given == [values[key] for key in words.split()], read


PROBE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import pynvml as n

def ask(call, *arguments):
    try:
        return call(*arguments)
    except n.NVMLError as error:
        return type(error).__name__.replace("NVMLError_", "")

def gpu(h):
    if isinstance(h, str):
        return h
    links = [ask(n.nvmlDeviceGetNvLinkState, h, link) for link in range(19)]
    return {
        "uuid": ask(n.nvmlDeviceGetUUID, h), "temperature": ask(n.nvmlDeviceGetTemperatureV, h, 0), "links": links,
        "processes": [p.pid for p in n.nvmlDeviceGetComputeRunningProcesses(h)] if links[0] == 1 else [],
        "peer": ask(lambda: n.nvmlDeviceGetNvLinkRemotePciInfo(h, 3).busId),
        "pages": ask(n.nvmlDeviceGetRetiredPages, h, 0), "unknown": ask(n.nvmlDeviceGetRepairStatus, h),
    }

began = ask(n.nvmlInit)
print(json.dumps(began or [gpu(ask(n.nvmlDeviceGetHandleByIndex, i)) for i in range(n.nvmlDeviceGetCount())]))
"""


@pytest.fixture
def probe(package: Path, restored: None) -> t.Callable[..., t.Any]:
    """What NVML shows on the node."""
    assert restored is None
    return lambda: json.loads(on_node("python3", "-B", "-c", PROBE, "/mnt/beegfs/" + package.name).stdout)


def test_a_healthy_gpu_is_linked_to_the_other(probe):
    first, second = probe()
    assert (first["peer"], second["peer"]) == ("00000000:20:00.0", "00000000:10:00.0")
    assert first["links"] == [1] * 18 + ["NotSupported"]
    assert (first["pages"], first["unknown"]) == ("NotSupported", "FunctionNotFound")
    assert first["processes"] == []


def test_lost_and_missing_gpus(probe):
    gpu("lost")
    first, second = probe()
    assert (first["temperature"], second) == (32, "GpuIsLost")
    gpu("healthy", "missing")
    (left,) = probe()
    assert left["uuid"] == first["uuid"]
    assert on_node("ls", "/dev/nvidia1").returncode == 0
    gpu("healthy")
    assert len(probe()) == 2


def test_faults_of_one_gpu_show_on_it_alone(probe):
    gpu("nvlink_down=3", "temperature=97", "process=foreign", "fail.nvmlDeviceGetUUID=999")
    first, second = probe()
    assert (first["links"][3], first["temperature"], first["processes"]) == (1, 32, [])
    assert (second["links"][3], second["temperature"], second["processes"]) == (0, 97, [1])
    assert (second["peer"], second["uuid"]) == ("NotSupported", "Unknown")


def test_a_gpu_that_hangs_blocks_the_call_and_a_kill_ends_it(probe, package):
    command = ("timeout", "--signal=KILL", "1", "python3", "-B", "-c", PROBE, "/mnt/beegfs/" + package.name)
    gpu("hang.nvmlDeviceGetUUID=1")
    assert on_node(*command, check=False).returncode == 137
    gpu("healthy")
    gpu("driver=hang", index="node")
    try:
        assert on_node(*command, check=False).returncode == 137
    finally:
        gpu("healthy", index="node")
    assert len(probe()) == 2


@pytest.mark.parametrize(
    ("driver", "said"),
    [("unloaded", "DriverNotLoaded"), ("mismatch", "LibRmVersionMismatch"), ("library_missing", "LibraryNotFound")],
)
def test_a_node_without_a_working_driver(probe, driver, said):
    gpu(f"driver={driver}", index="node")
    try:
        assert probe() == said
    finally:
        gpu("healthy", index="node")
    assert len(probe()) == 2


def test_xids_stand_in_the_kernel_log_which_may_be_unreadable(probe):
    gpu("xid=79,31")
    lines = on_node("dmesg").stdout.splitlines()
    assert lines[0].startswith("[    0.000000] Linux version")
    assert [re.search(r"\(PCI:0000:20:00\): (\d+), ", line).group(1) for line in lines[1:]] == ["79", "31"]
    entries = [json.loads(line) for line in on_node("journalctl", "--output=json", "--boot").stdout.splitlines()]
    assert [entry["MESSAGE"] for entry in entries[1:]] == [line.split("] ")[1] for line in lines[1:]]
    try:
        gpu("kernel_log=refused", index="node")
        refused = on_node("dmesg", check=False)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "Operation not permitted" in refused.stderr
        gpu("kernel_log=empty", index="node")
        assert on_node("dmesg").stdout == ""
    finally:
        gpu("healthy", index="node")
        gpu("healthy")
    assert len(on_node("dmesg").stdout.splitlines()) == 1
    assert len(probe()) == 2


EVENTS = """
import sys
sys.path.insert(0, sys.argv[1])
import pynvml as n
n.nvmlInit()
sets = []
for index in range(2):
    handle, events = n.nvmlDeviceGetHandleByIndex(index), n.nvmlEventSetCreate()
    assert n.nvmlDeviceGetSupportedEventTypes(handle) == n.nvmlEventTypeXidCriticalError
    n.nvmlDeviceRegisterEvents(handle, n.nvmlEventTypeXidCriticalError, events)
    sets.append(events)
print("registered", flush=True)
print([n.nvmlEventSetWait_v2(sets[1], 60_000).eventData for _each in range(3)])
for events in sets:
    try:
        n.nvmlEventSetWait_v2(events, 50)
    except n.NVMLError_Timeout:
        print("no more")
    n.nvmlEventSetFree(events)
"""


@pytest.mark.usefixtures("restored")
def test_xids_come_as_events_of_their_gpu_from_the_registration_on(package):
    gpu("xid=48")
    command = [str(PROGRAM), "exec", "--name", NAME, "--user", "admin", NODE, "--", "python3", "-B", "-c", EVENTS]
    with subprocess.Popen([*command, "/mnt/beegfs/" + package.name], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "registered\n"
        gpu("xid=79,31")
        gpu("xid=13")
        found, _none = process.communicate(timeout=100)
    assert found.splitlines() == ["[79, 31, 13]", "no more", "no more"]


def test_gpm_follows_the_load(package):
    definitions = SCRIPT.partition("print(")[0]
    held = f"{definitions}import os\nprint(monitored(2))\nfd = os.open('/dev/nvidia1', 2)\nprint(monitored(2))"
    done = job("--gres=gpu:2", f"--nodelist={NODE}", "python3", "-B", "-c", held, "/mnt/beegfs/" + package.name)
    assert done.stdout.split() == ["[0.0]", "[85.0]"], done.stderr
