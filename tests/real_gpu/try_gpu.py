# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Try the collection on a real GPU under a real Slurm, within minutes: python try_gpu.py CARRIED OUT [--seconds 470]

Runs as root on a machine that machine.sh and environments.py prepared, from the unpacked repository; everything it
starts runs as admin. Each step has a time limit and a log, and the next one begins whatever came of it. OUT gets
summary.txt (a line for each step, and the figures) and results.tar.gz (logs, verdicts, metrics), as they stand after
each step.
--small: the small options, on CPUs, to try this itself where no GPU is.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RIG, INVENTORY = ROOT / "tests" / "real_gpu", "tests/real_gpu/inventory"
SHARE = Path("/mnt/beegfs")
WORK = SHARE / "rig"  # what the steps write
CONTROLLER = Path("/home/admin/controller/bin/ansible-playbook")
PROFILES = ROOT / "files" / "workloads" / "training_profiles"
HPC = "Config_Samples/95-00-06-02-A-101_Training_Profile_HPC.yaml"
EMBEDDED = "Config_Samples/95-00-06-02-A-102_Training_Profile_Embedded.yaml"
LONG = 1024  # time steps: max_position of the HPC profile, near which the document's figures are
LEAVE_OUT = {"MLOPS-1.2": "the environment of Oumi cannot be installed without an index"}
SLOWER = 4  # a step's limit with --small, relative to that on a GPU
KEPT = ("*.json", "*.jsonl", "*.md", "*.xml", "*.log", "*.out", "*.err", "*.txt", "*.gz")
MOST_BYTES = 2 << 20  # of a file that is kept


@dataclass
class Rig:
    """This run: when it has to end, where it writes, and what came of each step."""

    out: Path
    until: float
    small: bool
    wheels: Path
    rows: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)

    @property
    def left(self) -> float:
        """Seconds left, but for those that the end takes."""
        return self.until - time.monotonic() - 10

    @property
    def environment(self) -> dict[str, str]:
        """What admin's processes see."""
        python = Path(sys.executable)
        return {
            "HOME": "/home/admin",
            "LC_ALL": "C.UTF-8",
            "PATH": f"{python.parent}:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "RIG_PYTHON": str(python),
            "RIG_WHEELS": str(self.wheels),
            "RIG_ACCELERATOR": "simulated" if self.small else "cuda",
        }

    @property
    def slurm(self) -> bool:
        """Whether Slurm answers; without it legs run by themselves, and no play does."""
        asked = subprocess.run(["timeout", "10", "sinfo"], check=False, capture_output=True)
        return asked.returncode == 0

    def step(self, name: str, limit: float, argv: list[str], cwd: Path = ROOT, **variables: str) -> int | None:
        """Run a command as admin; return its exit code, None if there was no time for it."""
        seconds = min(limit * SLOWER if self.small else limit, self.left)
        if seconds < 5:
            self.row(name, "no time", 0)
            return None
        log = WORK / "logs" / f"{name}.log"
        values = {**self.environment, "PWD": str(cwd), **variables}
        command = [
            "runuser",
            "-u",
            "admin",
            "--",
            "env",
            "-i",
            *(f"{key}={value}" for key, value in values.items()),
            *argv,
        ]
        began = time.monotonic()
        with log.open("wb") as stream:
            stream.write(f"$ {shlex.join(argv)}\n".encode())
            stream.flush()
            process = subprocess.Popen(
                command,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            ended = self.ended(process, seconds)
        self.row(name, str(ended) if ended >= 0 else f"stopped after {seconds:.0f} s", time.monotonic() - began)
        return ended

    @staticmethod
    def ended(process: subprocess.Popen[bytes], seconds: float) -> int:
        """Wait for a process group; return its exit code, or -1 if it was stopped: a play then cancels its jobs."""
        for number, patience in ((signal.SIGINT, seconds), (signal.SIGTERM, 8), (signal.SIGKILL, 3)):
            try:
                code = process.wait(patience)
                return code if number is signal.SIGINT else -1
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, number)
        process.wait(10)
        subprocess.run(["scancel", "--user=admin"], check=False, timeout=20)
        return -1

    def row(self, name: str, ended: str, seconds: float) -> None:
        """Note a step."""
        self.rows.append(f"{name:32} {ended:20} {seconds:7.1f}")
        print(self.rows[-1], flush=True)
        self.write()

    def figure(self, name: str, values: Any) -> None:
        """Note a figure."""
        self.figures.append(f"{name}: {values if isinstance(values, str) else json.dumps(values)}")
        print(self.figures[-1], flush=True)

    def write(self) -> None:
        """Write what there is so far."""
        text = [f"{'step':32} {'rc':20} seconds", *self.rows, "", *self.figures, ""]
        (self.out / "summary.txt").write_text("\n".join(text), encoding="utf-8")
        packing = self.out / ".results.tar.gz"
        with tarfile.open(packing, "w:gz", compresslevel=1) as archive:
            for folder in (WORK, ROOT / "results", SHARE / "jobs", SHARE / "models", Path("/var/log/slurm")):
                for pattern in KEPT:
                    for path in folder.rglob(pattern):
                        if path.is_file() and path.stat().st_size < MOST_BYTES and "checkpoint" not in str(path.parent):
                            archive.add(path, str(path).lstrip("/"))
        packing.replace(self.out / "results.tar.gz")


def read(path: Path) -> Any:
    """Return a JSON document, None where there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def newest_verdict() -> dict[str, Any]:
    """Return the verdict of the last play."""
    found = sorted((ROOT / "results").glob("*/verdict.json"), key=lambda path: path.stat().st_mtime)
    return read(found[-1]) or {} if found else {}


def look(rig: Rig) -> None:
    """What nvidia-smi and the probe say of the same GPU."""
    probe, smi = WORK / "probe.json", WORK / "smi.xml"
    rig.step("nvidia-smi", 30, ["nvidia-smi", "-q"])
    rig.step("nvidia-smi-xml", 30, ["sh", "-c", f"nvidia-smi -q -x > {smi}"])
    # As the share is not ready yet, from the repository.
    command = [sys.executable, "-m", "kit", "probe", "--sample", "1", "--output", str(probe)]
    rig.step("probe", 60, command, ROOT / "files", PYTHONPATH=str(ROOT / "files"))
    rig.step("compare", 20, [sys.executable, str(RIG / "compare.py"), str(smi), str(probe)])
    rig.figure("compared", (WORK / "logs" / "compare.log").read_text(encoding="utf-8"))


def play(rig: Rig, name: str, limit: float, changes: dict[str, Any]) -> dict[str, Any]:
    """Run a playbook; return its verdict, and note what is not a pass."""
    if not rig.slurm:
        rig.row(name, "no Slurm", 0)
        return {}
    command = [str(CONTROLLER), f"playbooks/{name}.yml", "-i", INVENTORY, "-e", json.dumps(changes)]
    before = newest_verdict().get("run")
    if rig.step(name, limit, command) is None:
        return {}
    verdict = newest_verdict()
    if verdict.get("run") == before:
        return {}
    rig.figure(f"{name} verdict", f"{verdict.get('verdict')}: {verdict.get('why')}")
    for finding in verdict.get("findings", []):
        if finding.get("verdict") in ("fail", "undetermined"):
            keys = ("id", "check", "verdict", "title", "value", "bound", "why", "detail")
            rig.figure(f"{name} finding", {key: finding[key] for key in keys if finding.get(key) is not None})
    for workload in verdict.get("workloads", []):
        rig.figure(f"{name} {workload.get('id')}", f"{workload.get('verdict')} {workload.get('why') or ''}")
        for criterion in workload.get("criteria", []):
            if criterion.get("verdict") not in ("pass", "not_applicable"):
                shown = ("id", "verdict", "title", "value", "bound", "why")
                rig.figure(f"  {workload.get('id')}", {key: criterion[key] for key in shown if key in criterion})
    rig.write()
    return verdict


def tolerated(verdict: dict[str, Any]) -> dict[str, Any]:
    """Return settings by which a preflight that did not pass does not keep the jobs from being submitted.

    The preflight's own verdict stays as it is; the next ones list what was left out, with this reason.
    """
    ids = {
        str(each.get("id") or each.get("check"))
        for each in verdict.get("findings", [])
        if each.get("verdict") in ("fail", "undetermined")
    }
    why = "on this machine the preflight says otherwise: see its own verdict"
    changes: dict[str, Any] = {}
    gpu = {name: why for name in ids if name.startswith("gpu.") and name not in ("gpu.kernel_log", "gpu.xid")}
    if gpu:
        changes["hpc_validation_gpu"] = {"not_applicable": gpu}
    if ids & {"gpu.kernel_log", "gpu.xid"}:
        changes["hpc_validation_kernel_log"] = "none"
    return changes


def runtime() -> str:
    """Return the Python of the environment with DeepSpeed."""
    return str(next((SHARE / "venvs").glob("deepspeed-*/bin/python")))


def stage(rig: Rig, name: str) -> None:
    """Make the stand-in of a dataset where the product does."""
    command = [
        runtime(),
        str(ROOT / "files" / "datasets" / name / "stage.py"),
        "--target",
        str(SHARE / "datasets" / name),
    ]
    rig.step(f"stage-{name}", 60, [*command, "--source", "stand-in"], PYTHONPATH=str(ROOT / "files"))


def leg(rig: Rig, name: str, limit: float, folder: Path, output: Path, argv: list[str], **variables: str) -> int | None:
    """Run a leg of a workload by hand, as a step of a Slurm job with one GPU."""
    output.mkdir(parents=True, exist_ok=True)
    shutil.chown(output, "admin", "admin")
    cpus = min(8, os.cpu_count() or 1)
    job = (
        [] if not rig.slurm else ["srun", "--quiet", "--ntasks=1", f"--cpus-per-task={cpus}", "--mem=0", "--gres=gpu:1"]
    )
    ranks = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
    values = {
        **ranks,
        "PYTHONPATH": str(ROOT / "files"),
        "OUTPUT_DIR": str(output),
        "HPC_VALIDATION_ACCELERATOR": "cpu" if rig.small else "cuda",
        "HPC_VALIDATION_ATTEMPT": "0",
        **variables,
    }
    return rig.step(name, limit, [*job, runtime(), *argv], folder, **values)


def settings(name: str, values: dict[str, Any]) -> str:
    """Write a settings file; return its path."""
    path = WORK / f"{name}-settings.json"
    path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    return str(path)


def pretrain(rig: Rig) -> None:
    """Two legs of PRETRAIN-1: 760 million parameters in bf16 on one GPU."""
    stage(rig, "pretraining_tokens")
    job = WORK / "pretrain"
    file = settings("pretrain", {"training": {"steps": 30, "checkpoint": {"every": 10, "keep": 2}}})
    folder = ROOT / "files" / "workloads" / "gpt_pretraining"
    given = {"SETTINGS_FILE": file, "DATA_DIR": str(SHARE / "datasets" / "pretraining_tokens")}
    argv = ["train.py", "--profile", "mini" if rig.small else "one_gpu"]
    leg(rig, "pretrain-shape", 40, folder, job / "shape", argv, HPC_VALIDATION_LEG="shape", **given)
    leg(rig, "pretrain-measured", 150, folder, job, argv, HPC_VALIDATION_LEG="measured", **given)
    found = read(job / "metrics.json") or {}
    keys = (
        "tokens_per_second",
        "mfu",
        "precision",
        "loss",
        "validation_loss",
        "gpu_name",
        "gpu_memory_peak_bytes",
        "checkpoint",
    )
    rig.figure("pretrain shape", (read(job / "shape" / "metrics.json") or {}).get("shape"))
    rig.figure("pretrain measured", {key: found[key] for key in keys if key in found})
    shutil.rmtree(job / "checkpoints", ignore_errors=True)


def pretrain_speeds(rig: Rig) -> None:
    """PRETRAIN-1's model with other micro-batches, compiled, not sharded."""
    stage(rig, "pretraining_tokens")
    folder, output = ROOT / "files" / "workloads" / "gpt_pretraining", WORK / "pretrain-speeds"
    profile = "mini" if rig.small else "one_gpu"
    argv = [str(RIG / "pretrain_speeds.py"), str(output / "speeds.jsonl"), "--profile", profile, "--seconds", "130"]
    given = {"PYTHONPATH": f"{ROOT / 'files'}:{folder}", "DATA_DIR": str(SHARE / "datasets" / "pretraining_tokens")}
    leg(rig, "pretrain-speeds", 160, folder, output, argv, **given)
    found = output / "speeds.jsonl"
    for line in found.read_text(encoding="utf-8").splitlines() if found.is_file() else []:
        rig.figure("pretrain speed", line)


def long_windows(samples: int) -> dict[str, Any]:
    """Write windows of noise of LONG time steps, whose speed is that of any others; return the profile's keys."""
    import numpy as np

    folder = WORK / "long"
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    for name, count in {"train": samples, "validation": 256, "test": 256}.items():
        np.save(folder / f"{name}-inputs.npy", rng.standard_normal((count, LONG, 32), dtype=np.float32))
        np.save(folder / f"{name}-answers.npy", rng.standard_normal((count, 1), dtype=np.float32))
    return {**{name: str(folder / name) for name in ("train", "validation", "test")}, "train_samples": samples}


def profile_changes(
    dtype: str, recompute: bool, steps: int, data: dict[str, Any], model: dict[str, Any]
) -> dict[str, Any]:
    """Return the keys of the HPC profile that a short leg on one GPU needs changed; not the model's size."""
    return {
        "metadata": {"target": "local"},  # the document's bounds of checkpoints are for long trainings
        "model": model,
        "training": {
            "max_steps": steps,
            "log_every_steps": steps,
            "activation_checkpointing": recompute,
            "mixed_precision": {"dtype": dtype, "loss_scale": "dynamic" if dtype == "float16" else None},
            "scheduler": {"warmup_steps": 2, "t_max": steps},
            "evaluation": {"every_steps": steps},
            "checkpointing": {"every_steps": steps - 1},
            "early_stopping": {"enabled": False},
        },
        "data": data,
        "monitoring": {"gradient_norm_every_steps": steps, "weight_histogram_every_steps": steps},
        "logging": {"wandb": {"enabled": False}, "tensorboard": {"enabled": False}},
    }


def speeds(rig: Rig) -> None:
    """The HPC profile's model on one GPU, in both half precisions, with and without activation checkpointing."""
    windows = SHARE / "datasets" / "training_windows"
    own = {name: str(windows / name) for name in ("train", "validation", "test")}
    alike = {} if rig.small else long_windows(4096)
    config = "local.yaml" if rig.small else HPC
    for length, steps, data, model in ((16, 60, own, {}), (LONG, 30, alike, {"window": LONG})):
        for dtype in ("float16", "bfloat16"):
            for recompute in (False, True):
                if length == LONG and (rig.small or (dtype == "bfloat16" and recompute)):
                    continue
                name = f"hpc-{length}-{dtype}-{'recompute' if recompute else 'keep'}"
                output = WORK / name
                changes = profile_changes(dtype, recompute, steps, data, model)
                given = {"HPC_VALIDATION_LEG": "single", "SETTINGS_FILE": settings(name, changes)}
                leg(rig, name, 60, PROFILES, output, ["train.py", "--config", config, "--validate"], **given)
                rig.figure(name, speed(output))


def speed(output: Path) -> dict[str, Any]:
    """Return the figures of a leg on one rank: of its second half, without the steps that warm up."""
    rows = []
    if (output / "progress.jsonl").is_file():
        rows = [json.loads(line) for line in (output / "progress.jsonl").read_text(encoding="utf-8").splitlines()]
    late = [row for row in rows if "samples_per_second" in row][1:]
    rates = [row["samples_per_second"] for row in late]
    peaks = [row["memory_bytes"] for row in rows if row.get("memory_bytes")]
    return {
        "samples_per_second": round(sum(rates) / len(rates), 1) if rates else None,
        "slowest": round(min(rates), 1) if rates else None,
        "peak_gib": round(max(peaks) / (1 << 30), 2) if peaks else None,
        "loss": [round(row["loss"], 4) for row in rows if "loss" in row],
    }


def embedded(rig: Rig) -> None:
    """The legs of PROFILE-EMBEDDED, shorter: train what it begins with, fine-tune, make it small."""
    job, steps = WORK / "embedded", 120
    changes = {
        "metadata": {"target": "local"},
        "training": {
            "max_steps": steps,
            "log_every_steps": 20,
            "scheduler": {"warmup_steps": 12, "t_max": steps},
            "evaluation": {"every_steps": 40},
            "checkpointing": {"every_steps": 40},
        },
        "monitoring": {"gradient_norm_every_steps": 20, "weight_histogram_every_steps": 40},
        "logging": {"tensorboard": {"enabled": False}},
    }
    file = settings("embedded", changes)
    argv = ["train.py", "--config", "local_embedded.yaml" if rig.small else EMBEDDED, "--validate"]
    for name, limit, output in (("source", 60, job / "source"), ("measured", 60, job), ("made", 120, job / "made")):
        given = {"HPC_VALIDATION_LEG": name, "SETTINGS_FILE": file}
        if leg(rig, f"embedded-{name}", limit, PROFILES, output, argv, **given) != 0:
            break
    found = read(job / "metrics.json") or {}
    keys = (
        "test",
        "learnt",
        "dtype",
        "samples_per_second",
        "pruning",
        "quantization",
        "models",
        "export",
        "deployed",
        "bundle",
    )
    rig.figure("embedded", {key: found[key] for key in keys if key in found})


def main() -> int:
    """Run all steps that there is time for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("carried", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=470)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--play", type=float, default=200, help="seconds that the play of PRETRAIN-1 must have left")
    parser.add_argument(
        "--only",
        default="look,plays,pretrain,pretrain-speeds,speeds,embedded,pretrain-play",
        help="parts, in this order",
    )
    arguments = parser.parse_args()
    until = time.monotonic() + arguments.seconds
    arguments.out.mkdir(parents=True, exist_ok=True)
    (WORK / "logs").mkdir(parents=True, exist_ok=True)
    shutil.chown(WORK, "admin", "admin")
    rig = Rig(arguments.out, until, arguments.small, (arguments.carried / "wheels").resolve())
    parts = arguments.only.split(",")
    changes: dict[str, Any] = {"hpc_validation_leave_out": LEAVE_OUT}
    try:
        if "look" in parts:
            look(rig)
        if "plays" in parts:
            changes |= tolerated(play(rig, "preflight", 90, {}))
            play(rig, "validate_category1", 150, changes)
        if "pretrain" in parts:
            pretrain(rig)
        if "pretrain-speeds" in parts:
            pretrain_speeds(rig)
        if "speeds" in parts or "embedded" in parts:
            stage(rig, "training_windows")
        if "speeds" in parts:
            speeds(rig)
        if "embedded" in parts:
            embedded(rig)
        if "pretrain-play" in parts and rig.left > arguments.play:
            play(
                rig,
                "validate_pretraining",
                rig.left,
                {key: changes[key] for key in changes if key != "hpc_validation_leave_out"},
            )
    finally:
        rig.write()
        print((rig.out / "summary.txt").read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
