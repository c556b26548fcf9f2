"""The facts of a healthy node with two H200s, and ways to break them."""

from __future__ import annotations

import copy
import typing as t

Json = dict[str, t.Any]
NODE = "compute02"
BOOT = 1_790_000_000.0
NOW = BOOT + 10_000


def gpu(index: int) -> Json:
    """One H200 under no load; the second of two has its peer on the first's NVLinks."""
    return {
        "index": index,
        "minor": index,
        "uuid": f"GPU-0000000{index}-1111-2222-3333-444444444444",
        "pci": f"00000000:{index + 1}0:00.0",
        "name": "NVIDIA H200",
        "serial": f"165372100{index}",
        "vbios": "96.00.BC.00.01",
        "compute_capability": "9.0",
        "error": None,
        "unsupported": {"retired_pages": "NotSupported", "temperature.memory_c": "NotSupported"},
        "memory": {"total": 150_754_820_096, "used": 0, "reserved": 0, "unified": False},
        "mig": {"current": False, "pending": False},
        "persistence_mode": True,
        "compute_mode": 0,
        "ecc": {
            "mode": True,
            "pending": True,
            "corrected_volatile": 0,
            "uncorrected_volatile": 0,
            "corrected_aggregate": 3,
            "uncorrected_aggregate": 0,
            "sram_uncorrected_aggregate": 0,
            "sram_threshold_exceeded": False,
        },
        "retired_pages": None,
        "remapped_rows": {"corrected": 0, "uncorrected": 0, "pending": False, "failed": False, "banks_exhausted": 0},
        "recovery_action": "none",
        "performance_state": 0,
        "clocks": {"sm_mhz": 345, "sm_max_mhz": 1980, "memory_mhz": 2619, "memory_max_mhz": 2619},
        "throttle_reasons": ["gpu_idle"],
        "temperature": {
            "gpu_c": 32,
            "slowdown_c": 90,
            "shutdown_c": 95,
            "gpu_max_c": 87,
            "memory_c": None,
            "memory_max_c": 95,
            "margin_c": 55,
        },
        "power": {
            "draw_w": 70.0,
            "limit_w": 700.0,
            "default_limit_w": 700.0,
            "min_limit_w": 200.0,
            "max_limit_w": 700.0,
        },
        "pcie": {"generation": 1, "generation_max": 5, "width": 16, "width_max": 16, "replays": 0},
        "utilization": {"gpu": 0, "memory": 0},
        "processes": [],
        "nvlink": {
            "links": [
                {
                    "link": link,
                    "active": True,
                    "peer": f"00000000:{2 - index}0:00.0",
                    "peer_kind": "gpu",
                    "errors": {"replay": 0, "recovery": 0, "crc_flit": 0, "crc_data": 0},
                }
                for link in range(4)
            ]
        },
        "fabric": {"state": "completed", "status": 0, "health": 1, "health_mask": 0},
        "topology": {"numa_node": 0, "cpu_affinity": "0-15", "pci_root": "pci0000:00", "nic": "mlx5_0"},
    }


def healthy() -> Json:
    """The whole document."""
    return {
        "schema": 1,
        "node": NODE,
        "time": NOW,
        "boot_time": BOOT,
        "source": "nvml",
        "error": None,
        "driver": {"version": "570.133.20", "cuda": "12.8", "nvml": "12.570.133.20"},
        "selected_by": "every GPU listed",
        "listed": 2,
        "device_files": ["/dev/nvidia0", "/dev/nvidia1"],
        "pci_devices": ["0000:10:00.0", "0000:20:00.0"],
        "pci_displays": [],
        "gpus": [gpu(0), gpu(1)],
        "kernel_log": {
            "access": "user",
            "source": "dmesg",
            "error": None,
            "since": BOOT,
            "complete": True,
            "oldest": BOOT,
            "xids": [],
            "more": 0,
        },
        "samples": None,
        "jetson": None,
    }


def jetson() -> Json:
    """A Jetson board: one GPU known from sysfs alone."""
    document = healthy()
    board = gpu(0)
    absent = [key for key in board if key not in ("index", "name", "error", "unsupported")]
    board.update(dict.fromkeys(absent), name="NVIDIA Jetson AGX Orin Developer Kit")
    board["unsupported"] = dict.fromkeys(absent, "LibraryNotFound")
    board["utilization"] = {"gpu": 12.5, "memory": None}
    board["temperature"] = {"gpu_c": 45.5, **dict.fromkeys(("slowdown_c", "gpu_max_c", "margin_c"))}
    document.update(source="jetson", gpus=[board], listed=1, device_files=[], pci_devices=[])
    document["jetson"] = {"power_mode": "MAXN", "rails": [{"name": "VDD_IN", "milliwatts": 9000}], "zones": []}
    return document


def put(document: Json, path: str, value: t.Any) -> None:
    """Set what a dotted path names; numbers are positions in lists."""
    *parents, last = path.split(".")
    place: t.Any = document
    for key in parents:
        place = place[int(key)] if isinstance(place, list) else place[key]
    place[int(last) if isinstance(place, list) else last] = copy.deepcopy(value)


def broken(**edits: t.Any) -> Json:
    """A healthy document with values changed; a double underscore stands for the dot of a path."""
    document = healthy()
    for path, value in edits.items():
        put(document, path.replace("__", "."), value)
    return document


def second(**edits: t.Any) -> Json:
    """The same with the second GPU changed."""
    return broken(**{f"gpus__1__{path}": value for path, value in edits.items()})


def unsupported(**reasons: t.Any) -> Json:
    """The second GPU does not tell these; a group, or a double underscore for the dot."""
    document = healthy()
    entry = document["gpus"][1]
    for name, reason in reasons.items():
        path = name.replace("__", ".")
        put(entry, path, None)
        entry["unsupported"][path] = reason
    return document


def xid(code: t.Any, pci: str | None = "0000:20:00", when: float = NOW - 100, text: str = "") -> Json:
    """An entry of the kernel log."""
    line = text or f"NVRM: Xid (PCI:{pci}): {code}, pid=1"
    return {"time": when, "pci": pci, "code": code, "switch": False, "text": line}
