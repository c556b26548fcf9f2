# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job says it ran on."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import pytest
from kit.evidence import provenance
from kit.files import sha256
from kit.gpu import nvml
from kit.job import Job
from kit.runtime import image

from tests.unit.conftest import ROOT
from tests.unit.kit.fake_nvml import fake_pynvml, gpu
from tests.unit.kit.sif_files import write_sif

JOB = Job("12", 0)


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "files"))


def runtime(folder: Path, said: str) -> list[str]:
    """The command of a runtime that says this of itself, as `kit inside` does."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n[ \"$*\" = '-m kit inside' ] && cat <<'END'\n{said}\nEND\n")
    program.chmod(0o755)
    return [str(program)]


def inside_image(image: Path) -> str:
    gpus = {"GPU-0000": {"answers": True}}
    return json.dumps({"container": str(image), "python": "/opt/python", "os": "Debian", "gpus": gpus, "runtime": None})


def test_gpus_driver_runtime_slurm_and_data_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(gpu(0)))
    monkeypatch.setenv("SLURM_JOB_PARTITION", "gpu")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    (tmp_path / "provenance.json").write_text(json.dumps({"name": "mnist", "source": "stand-in", "train": 5}))
    said = {"python": "/venv/bin/python", "runtime": {"key": "py-1", "lock_sha256": "ab"}, "libraries": {"torch": "2"}}
    document = provenance.collect(JOB, runtime(tmp_path, json.dumps(said)), data=tmp_path)
    assert (document["job_id"], document["attempt"]) == ("12", 0)
    assert (document["driver_version"], document["cuda_driver_version"]) == ("570.1", "12.8")
    assert document["gpus"] == [{"uuid": "GPU-0000", "pci": "00000000:00:00.0", "name": "Fake GPU", "error": None}]
    assert document["runtime"] == {"key": "py-1", "lock_sha256": "ab", "lock_is_current": None}
    assert (document["runtime_python"], document["runtime_error"]) == ("/venv/bin/python", None)
    assert document["libraries"] == {"torch": "2"}
    assert document["container"] is None
    assert document["slurm"]["SLURM_JOB_PARTITION"] == "gpu"
    assert document["data"]["source"] == "stand-in"
    assert "hf_secret" not in json.dumps(document)


def test_what_is_missing_is_null_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "WHEELS", tmp_path)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    document = provenance.collect(JOB, [str(tmp_path / "bin" / "python")], data=tmp_path / "none")
    assert document["gpus"] == []
    assert "nvidia-ml-py" in document["nvml_reason"]
    assert (document["runtime"], document["data"], document["libraries"]) == (None, None, None)
    assert "No such file" in document["runtime_error"]


def test_a_runtime_that_answers_nonsense_or_fails_is_told(tmp_path: Path) -> None:
    assert "Expecting value" in provenance.inside_facts(runtime(tmp_path, "FATAL"))["error"]
    failing = provenance.inside_facts(["sh", "-c", "echo FATAL: no image >&2; exit 255"])
    assert failing["error"] == "sh ended with exit code 255: FATAL: no image"
    assert failing["libraries"] is None


def test_whether_it_holds_the_present_lock(tmp_path: Path) -> None:
    lock = tmp_path / "oumi.txt"
    lock.write_text("x==1")
    assert provenance.runtime_facts({"lock_sha256": sha256(lock)}, lock)["lock_is_current"] is True
    assert provenance.runtime_facts({"lock_sha256": "ab"}, lock)["lock_is_current"] is False
    assert provenance.runtime_facts({}, lock)["lock_is_current"] is False
    assert provenance.runtime_facts({"lock_sha256": "ab"}, tmp_path / "none.txt")["lock_is_current"] is None
    assert provenance.runtime_facts(None, lock) is None


def test_a_runtime_tells_of_itself() -> None:
    told = provenance.inside_facts([sys.executable])
    assert told["python"] == sys.executable
    assert told["libraries"]["python"] == platform.python_version()
    assert (told["container"], told["runtime"]) == (None, None)
    assert "error" not in told


def test_the_image_is_named_by_what_was_staged_and_seen_from_inside(tmp_path: Path) -> None:
    path = write_sif(tmp_path / "oumi_latest.sif")
    used = provenance.Image("oumi", path, tmp_path)
    staged = image.stage(image.Wanted("oumi", path), tmp_path, "x86_64")
    found = provenance.collect(JOB, runtime(tmp_path, inside_image(path)), image=used)["container"]
    assert (found["entered"], found["unchanged"], found["sha256"]) == (True, True, staged["sha256"])
    assert (found["python"], found["gpus"]) == ("/opt/python", {"GPU-0000": {"answers": True}})

    write_sif(path)
    found = provenance.collect(JOB, runtime(tmp_path, inside_image(path)), image=used)["container"]
    assert (found["unchanged"], found["sha256"]) == (False, None)
    assert "since been replaced or changed" in found["reason"]


@pytest.mark.parametrize("said", ["FATAL: no image", inside_image(Path("/another.sif")), '{"container": null}'])
def test_a_runtime_outside_of_the_image_has_not_entered_it(tmp_path: Path, said: str) -> None:
    used = provenance.Image("oumi", write_sif(tmp_path / "oumi_latest.sif"), tmp_path)
    assert provenance.collect(JOB, runtime(tmp_path, said), image=used)["container"]["entered"] is False
