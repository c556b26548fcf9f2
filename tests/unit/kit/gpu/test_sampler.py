# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU sampler: what it reads, and that it never outlives its job."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import typing as t
from pathlib import Path

import pytest
from kit.gpu import nvml, sampler
from kit.job import Job

from tests.unit.kit.fake_nvml import (
    NVMLError_GpuIsLost,
    NVMLError_NoPermission,
    NVMLError_NotSupported,
    NVMLError_Unknown,
    Xids,
    fake_pynvml,
    fields,
    gpu,
)

JOB = Job("12", 1)


def read(path: Path) -> list[dict[str, t.Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def sample_once(path: Path) -> list[dict[str, t.Any]]:
    """The last rows of a sampler that is told to stop after its first."""
    stop = threading.Event()

    def alive() -> bool:
        stop.set()
        return True

    sampler.sample(path, 1.0, JOB, alive, stop)
    return [row for row in read(path) if "ended" in row]


def test_a_job_that_ended_before_its_gpus_were_watched_has_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a row would say that nothing happened while the job ran."""
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(gpu(0)))
    stop = threading.Event()
    stop.set()
    sampler.sample(tmp_path / "gpu.jsonl", 1.0, JOB, lambda: True, stop)
    assert read(tmp_path / "gpu.jsonl") == []


def test_a_row_holds_every_reading_in_its_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(gpu(0), gpu(1)))
    first, second = sample_once(tmp_path / "gpu.jsonl")
    assert (first["job_id"], first["attempt"]) == ("12", 1)
    assert (first["uuid"], second["uuid"]) == ("GPU-0000", "GPU-0001")
    assert first["util"] == 90
    assert first["power_w"] == 70.5
    assert first["sm_clock_mhz"] == 1500
    assert first["throttle_reasons"] == ["gpu_idle", "hw_thermal_slowdown"]
    assert {
        "node",
        "time",
        "pci",
        "mem_util",
        "memory_used",
        "memory_total",
        "temperature_c",
        "mem_clock_mhz",
    } <= first.keys()
    assert "unsupported" not in first
    assert "error" not in first


def test_what_is_not_supported_is_null_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weak = gpu(0, power=NVMLError_NotSupported(), util=NVMLError_NotSupported())
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(weak))
    (row,) = sample_once(tmp_path / "gpu.jsonl")
    assert (row["util"], row["mem_util"], row["power_w"], row["temperature_c"]) == (None, None, None, 40)
    assert row["unsupported"] == {"util": "NotSupported", "power_w": "NotSupported"}


def test_a_gpu_lost_while_sampling_says_so_and_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fallen = gpu(0, power=NVMLError_GpuIsLost())
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(fallen, NVMLError_GpuIsLost(), gpu(2)))
    rows = sample_once(tmp_path / "gpu.jsonl")
    assert [row.get("error") for row in rows] == ["GpuIsLost", "GpuIsLost", None]


@pytest.mark.parametrize(
    ("changes", "counted"),
    [
        ({}, {"lost": 0, "answers": 1, "slowdown": 1, "ecc_uncorrected_new": 0, "ended": 1, "xid": 0}),
        ({"reasons": 0x1 | 0x4}, {"slowdown": 0}),
        ({"reasons": 0x20}, {"slowdown": 1}),
        ({"reasons": 0x80}, {"slowdown": 1}),
        ({"reasons": NVMLError_NotSupported()}, {"slowdown": None, "answers": 1}),
        (
            {"calls": {"nvmlDeviceGetTotalEccErrors": NVMLError_NotSupported()}},
            {"ecc_uncorrected_new": None, "answers": 1},
        ),
        ({"power": NVMLError_GpuIsLost()}, {"lost": 1, "answers": 0}),
        ({"power": NVMLError_Unknown()}, {"lost": 0, "answers": 0}),
        # As MIG mode refuses to ordinary users.
        ({"memory_used": NVMLError_NoPermission()}, {"lost": 0, "answers": 1, "memory_used": None}),
        # Nothing is judged by performance monitoring.
        ({"calls": {"nvmlGpmSampleGet": NVMLError_Unknown()}}, {"lost": 0, "answers": 1, "sm_occupancy": None}),
        ({"calls": {"nvmlGpmSampleGet": NVMLError_GpuIsLost()}}, {"lost": 1, "answers": 0}),
        ({"xids": Xids(79, 154)}, {"xid": 79}),
        ({"xids": Xids(79, NVMLError_Unknown())}, {"xid": 79}),
        ({"xids": Xids(NVMLError_Unknown())}, {"xid": None, "answers": 1, "unsupported": {"xid": "Unknown"}}),
        ({"xids": Xids(NVMLError_GpuIsLost())}, {"xid": None, "lost": 1, "answers": 0}),
        ({"calls": {"nvmlDeviceRegisterEvents": NVMLError_NotSupported()}}, {"xid": None, "answers": 1}),
        ({"calls": {"nvmlDeviceGetMigMode": [1, 1]}}, {"xid": None, "unsupported": {"xid": "MIG mode"}}),
        ({"calls": {"nvmlDeviceGetMigMode": NVMLError_NotSupported()}}, {"xid": 0}),
    ],
)
def test_what_criteria_count_is_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, t.Any], counted: dict[str, t.Any]
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(gpu(0, **changes)))
    (row,) = sample_once(tmp_path / "gpu.jsonl")
    assert {key: row.get(key) for key in counted} == counted


def remapped(pending: int = 0, failed: int = 0) -> dict[str, t.Any]:
    return {"nvmlDeviceGetRemappedRows": (0, 1, pending, failed)}


def asks_for(action: int) -> dict[str, t.Any]:
    return {"nvmlDeviceGetFieldValues": fields({230: action})}


NOT_ONE = {
    "nvmlDeviceGetFieldValues": fields({}),
    "nvmlDeviceGetRemappedRows": NVMLError_NotSupported(),
}
OF_PAGES = {**NOT_ONE, "nvmlDeviceGetRetiredPages": []}


@pytest.mark.parametrize(
    ("calls", "needed"),
    [
        ({}, 0),
        (remapped(pending=1), 1),
        (remapped(failed=1), 1),
        (asks_for(1), 1),
        (asks_for(99), 1),
        (OF_PAGES | {"nvmlDeviceGetRetiredPagesPendingStatus": 0}, 0),
        (OF_PAGES | {"nvmlDeviceGetRetiredPagesPendingStatus": 1}, 1),
        # A driver that knows no recovery action; a card that knows nothing of all this says nothing.
        ({"nvmlDeviceGetFieldValues": fields({})}, 0),
        (NOT_ONE, None),
        (NOT_ONE | {"nvmlDeviceGetFieldValues": fields({226: 0, 227: 0})}, 0),
        (NOT_ONE | {"nvmlDeviceGetFieldValues": fields({226: 1, 227: 0})}, 1),
        ({"nvmlDeviceGetFieldValues": NVMLError_Unknown()}, None),
        ({"nvmlDeviceGetRemappedRows": NVMLError_Unknown()}, None),
        ({"nvmlDeviceGetRetiredPagesPendingStatus": NVMLError_Unknown()}, None),
        # What is known to be wrong counts, whatever else cannot be read.
        ({"nvmlDeviceGetRemappedRows": NVMLError_Unknown(), **asks_for(2)}, 1),
    ],
)
def test_the_last_row_says_whether_the_gpu_needs_to_be_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: dict[str, t.Any], needed: int | None
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(gpu(0, calls=calls)))
    (row,) = sample_once(tmp_path / "gpu.jsonl")
    assert row["needs_repair"] == needed
    assert (needed is None) == ("unsupported" in row)


@pytest.mark.parametrize(
    ("meanwhile", "listed", "first"),
    [
        ([], None, 0),
        ([31, 79], [31, 79], 31),
        ([31, NVMLError_Unknown()], [31], 31),
        # Whether there was one later is not known: the event set cannot be asked any more.
        ([NVMLError_Unknown(), 79], None, None),
    ],
)
def test_xids_stand_in_their_row_and_the_first_in_the_last(
    monkeypatch: pytest.MonkeyPatch, meanwhile: list[t.Any], listed: list[int] | None, first: int | None
) -> None:
    xids = Xids()
    module = fake_pynvml(gpu(0, xids=xids))
    monkeypatch.setitem(sys.modules, "pynvml", module)
    stop = threading.Event()
    ticks = sampler.ticks(module, nvml.usable_gpus(module), 0.01, lambda: True, stop)
    (before,) = next(ticks)
    xids.events += meanwhile
    (after,) = next(ticks)
    stop.set()
    (last,) = next(ticks)
    assert [row.get("xids") for row in (before, after, last)] == [None, listed, None]
    assert [key in row for row in (before, after, last) for key in ("xid", "needs_repair")] == [False] * 4 + [True] * 2
    assert last["xid"] == first
    assert [row.get("sampled_seconds") for row in (before, after, last)] == [None, None, 3 * 0.01]


def test_a_gpu_without_a_handle_is_lost_and_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(NVMLError_GpuIsLost()))
    (row,) = sample_once(tmp_path / "gpu.jsonl")
    assert (row["lost"], row["answers"]) == (1, 0)


def test_memory_errors_are_counted_from_each_gpus_first_sample() -> None:
    errors = sampler.NewErrors()
    rows = [("A", 5), ("B", 0), ("A", None), ("A", 5), ("A", 7), ("B", 0)]
    assert [errors.of({"uuid": uuid, "ecc_uncorrected": count}) for uuid, count in rows] == [0, 0, None, 0, 2, 0]


def test_without_nvml_one_row_says_why_and_the_sampler_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "WHEELS", tmp_path / "none")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    sampler.sample(tmp_path / "gpu.jsonl", 1.0, JOB, lambda: True, threading.Event())
    (row,) = read(tmp_path / "gpu.jsonl")
    assert row["uuid"] is None
    assert "nvidia-ml-py" in row["error"]


def test_unknown_throttle_reasons_are_kept() -> None:
    assert nvml.throttle_names(0x4 | 0x4000) == ["sw_power_cap", "0x4000"]
    assert nvml.throttle_names(0) == []


@pytest.fixture
def environment(tmp_path: Path, root: Path) -> dict[str, str]:
    """An environment in which ``import pynvml`` finds the stand-in."""
    tests = str(Path(__file__).parents[1])
    (tmp_path / "pynvml.py").write_text(
        f"import sys\nsys.path.insert(0, {tests!r})\nfrom fake_nvml import fake_pynvml, gpu\n"
        "globals().update(vars(fake_pynvml(gpu(0))))\n"
    )
    return {"PATH": os.environ["PATH"], "PYTHONPATH": f"{root / 'files'}:{tmp_path}", "SLURM_JOB_ID": "12"}


def wait_for_rows(path: Path, process: subprocess.Popen[t.Any], count: int) -> None:
    """Return once ``path`` has that many rows; the process must be alive until then."""
    for _each in range(200):
        if path.exists() and len(path.read_bytes().splitlines()) >= count:
            return
        assert process.poll() is None
        select.select([], [], [], 0.05)
    raise AssertionError(f"{path} never had {count} rows")


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_a_last_whole_row(
    tmp_path: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    path = tmp_path / "gpu.jsonl"
    command = [sys.executable, "-m", "kit", "sample", "--output", str(path), "--interval", "0.1"]
    process = subprocess.Popen(command, env=environment)
    wait_for_rows(path, process, 2)
    process.send_signal(number)
    assert process.wait(10) == 0
    assert [row.get("ended") for row in read(path)[-2:]] == [None, 1]
    assert all(row["uuid"] == "GPU-0000" for row in read(path))
    assert path.read_bytes().endswith(b"\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_when_the_job_script_is_killed(
    tmp_path: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    path = tmp_path / "gpu.jsonl"
    script = '"$0" -m kit sample --output "$1" --interval 0.1 --parent $$ & echo $!; exec 1>&-; wait'
    reading, writing = os.pipe()  # the sampler holds the writing end: its close is its end
    parent = subprocess.Popen(
        ["bash", "-c", script, sys.executable, str(path)], env=environment, stdout=subprocess.PIPE, pass_fds=[writing]
    )
    os.close(writing)
    try:
        wait_for_rows(path, parent, 2)
        parent.send_signal(number)
        parent.wait(10)
        ended, _other, _other = select.select([reading], [], [], 10)
        assert ended, "the sampler outlived its parent"
        assert os.read(reading, 1) == b""
    finally:
        os.close(reading)
        if parent.stdout:
            parent.stdout.close()


def test_it_ends_at_once_when_its_parent_is_already_gone(tmp_path: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "kit", "sample", "--output", str(tmp_path / "gpu.jsonl"), "--parent", "1"]
    done = subprocess.run(command, env=environment, timeout=20, check=False)
    assert done.returncode == 0
    (row,) = read(tmp_path / "gpu.jsonl")
    assert "ended" not in row


@pytest.mark.parametrize("interval", ["0", "-1", "nan", "x"])
def test_a_senseless_interval_is_refused(tmp_path: Path, environment: dict[str, str], interval: str) -> None:
    command = [sys.executable, "-m", "kit", "sample", "--output", str(tmp_path / "gpu.jsonl"), f"--interval={interval}"]
    assert subprocess.run(command, env=environment, stderr=subprocess.PIPE, check=False).returncode in (1, 2)
    assert not (tmp_path / "gpu.jsonl").exists()
