# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job says it ran on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from kit import provenance
from kit.gpu import nvml
from kit.job import Job

from .fake_nvml import fake_pynvml, gpu

JOB = Job("12", 0)


def test_gpus_driver_runtime_slurm_and_data_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(gpu(0)))
    monkeypatch.setenv("SLURM_JOB_PARTITION", "gpu")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    (tmp_path / "runtime.json").write_text(json.dumps({"key": "py-1", "lock_sha256": "ab", "packages": {}}))
    (tmp_path / "provenance.json").write_text(json.dumps({"name": "mnist", "source": "stand-in", "train": 5}))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    document = provenance.collect(JOB, str(tmp_path / "bin" / "python"), tmp_path)
    assert (document["job_id"], document["attempt"]) == ("12", 0)
    assert (document["driver_version"], document["cuda_driver_version"]) == ("570.1", "12.8")
    assert document["gpus"] == [{"uuid": "GPU-0000", "pci": "00000000:00:00.0", "name": "Fake GPU", "error": None}]
    assert document["runtime"] == {"key": "py-1", "lock_sha256": "ab"}
    assert document["slurm"]["SLURM_JOB_PARTITION"] == "gpu"
    assert document["data"]["source"] == "stand-in"
    assert document["libraries"]["python"].startswith("3.")
    assert "hf_secret" not in json.dumps(document)


def test_what_is_missing_is_null_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "WHEELS", tmp_path)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    document = provenance.collect(JOB, str(tmp_path / "bin" / "python"), tmp_path / "none")
    assert document["gpus"] == []
    assert "nvidia-ml-py" in document["nvml_reason"]
    assert document["runtime"] is None
    assert document["data"] is None
    assert "error" in document["libraries"]


def test_a_damaged_file_is_as_good_as_none(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": ')
    assert provenance.read_json(tmp_path / "x.json") is None


def test_the_systems_name_comes_from_os_release(tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text('ID=debian\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"\n\n')
    assert provenance.os_name(tmp_path / "os-release") == "Debian GNU/Linux 13 (trixie)"
    assert provenance.os_name(tmp_path / "none") is None
