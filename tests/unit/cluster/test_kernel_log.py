# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for dmesg and journalctl."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hpcval_cluster import gpu_faults, gpus

STAND_IN = Path(__file__).resolve().parents[2] / "cluster/image/kernel_log.py"


@pytest.fixture
def ask(tmp_path):
    """Ask the stand-in by a name, on a node where the kernel log is as told."""
    source = STAND_IN.read_text().replace('"/run/hpcval"', repr(str(tmp_path)))

    def asked(access: str, name: str, *words: str, timeout: float = 10) -> subprocess.CompletedProcess[str]:
        (tmp_path / "system.state").write_text(f"driver_version=1\nkernel_log={access}\n")
        log = gpu_faults.kernel_log(gpus.KERNEL_LOG, gpus.bus_id(1), [79], 12.5)
        (tmp_path / "kernel.log").write_text(log)
        (tmp_path / "stand-in").write_text(source)
        shutil.copyfile(tmp_path / "stand-in", tmp_path / name)
        argv = [sys.executable, str(tmp_path / name), *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=timeout)

    return asked


def test_dmesg_prints_the_boot_and_the_xids(ask):
    lines = ask("readable", "dmesg").stdout.splitlines()
    assert lines[0].startswith("[    0.000000] Linux version")
    assert lines[1].startswith("[   12.500000] NVRM: Xid (PCI:0000:20:00): 79, ")


def test_journalctl_prints_the_same_as_json(ask):
    rows = [json.loads(line) for line in ask("readable", "journalctl", "--output=json", "-k").stdout.splitlines()]
    assert [row["_SOURCE_MONOTONIC_TIMESTAMP"] for row in rows] == ["0", "12500000"]
    assert int(rows[1]["__REALTIME_TIMESTAMP"]) - int(rows[0]["__REALTIME_TIMESTAMP"]) == 12_500_000
    booted = int(rows[0]["__REALTIME_TIMESTAMP"]) / 1e6
    later = ask("readable", "journalctl", "--output=json", f"--since=@{booted + 1:.0f}").stdout
    assert len(later.splitlines()) == 1
    older = ask("readable", "journalctl", "--output=json", "--lines=1", f"--until=@{booted - 1:.0f}")
    assert (older.stdout, older.returncode) == ("", 0)


@pytest.mark.parametrize(("name", "said"), [("dmesg", "Operation not permitted"), ("journalctl", "permissions")])
def test_it_can_refuse_be_empty_and_hang(ask, name, said):
    refused = ask("refused", name)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert said in refused.stderr
    empty = ask("empty", name)
    assert (empty.returncode, empty.stdout) == (0, "")
    with pytest.raises(subprocess.TimeoutExpired):
        ask("hang", name, timeout=0.5)
