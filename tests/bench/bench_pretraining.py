# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sharding, tokens, the loop, checkpoints and a resumption cost a pretraining, on the local cluster.

    python -m tests.bench.bench_pretraining [EVIDENCE]

EVIDENCE: the saved evidence/PRETRAIN-1.json of a run; without it the play runs on the cluster that
HPC_VALIDATION_CLUSTER names. CPU seconds are the sturdier measure where ranks share cores. Loop, checkpoint and
resumption are measured by tests/workloads/deepspeed/pretraining_speed.py, with two ranks on the login node and models
of other sizes. Ends 1 if a bound is missed.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import typing as t
from pathlib import Path

from tests.integration.conftest import ROOT
from tests.integration.environments import installed, on_login, payload

SETTINGS = {"training": {"steps": 15, "checkpoint": {"every": 5}}}  # of the legs that are killed and resumed
PARTS = (  # of a resumption: what it is, and the phases between which it lies
    ("the launcher notices, and ends the other rank", "killed", "ended"),
    ("the next processes begin", "ended", "begun"),
    ("they import PyTorch", "begun", "started"),
    ("they join, and verify the checkpoint", "started", "building"),
    ("DeepSpeed and the model", "building", "restoring"),
    ("the checkpoint is read", "restoring", "training"),
    ("the first step", "training", "stepped"),
)

Row = tuple[str, str, str, bool]


def evidence() -> dict[str, t.Any]:
    """Run the play and return what it saved."""
    with tempfile.TemporaryDirectory() as results:
        command = ["ansible-playbook", "playbooks/validate_pretraining.yml", "-i", "inventories/local"]
        given = json.dumps({"hpc_validation_results": results})
        subprocess.run([*command, "-e", given], cwd=ROOT, check=True, stdin=subprocess.DEVNULL)
        (path,) = Path(results).glob("*/evidence/PRETRAIN-1.json")
        return dict(json.loads(path.read_text(encoding="utf-8")))


def measured() -> tuple[dict[str, t.Any], dict[str, float]]:
    """Return what pretraining_speed.py measured, and when a leg that was killed and the next one got how far."""
    with payload(ROOT / "tests/workloads/deepspeed/pretraining_speed.py") as (local, there):
        output = local / "out"
        output.mkdir()
        output.chmod(0o777)  # the user who submits is another
        (local / "settings.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
        files = f"{there}/files"
        python, home = installed("deepspeed", files), f"{files}/workloads/gpt_pretraining"
        variables = {
            "PYTHONPATH": f"{files}:{home}",
            "DATA_DIR": f"{there}/out/tokens",
            "OUTPUT_DIR": f"{there}/out",
            "SETTINGS_FILE": f"{there}/settings.json",
            "HPC_VALIDATION_ACCELERATOR": "cpu",
            "SLURM_JOB_ID": "1",
        }
        stage = [f"{files}/datasets/pretraining_tokens/stage.py", "--target", variables["DATA_DIR"]]
        legs = ["--ranks", "2", "--leg", "measured", "--leg", "killed::killed", "--leg", "resumed"]
        script = [f"{there}/pretraining_speed.py", "--config", f"{home}/config", "--profile", "mini"]
        for command in (
            [python, *stage, "--source", "stand-in"],
            [python, "-m", "kit", "legs", *legs, python, "-m", "kit", "launch", *script],
        ):
            done = on_login(*command, **variables)
            if done.returncode != 0:
                sys.exit(f"{done.stdout}\n{done.stderr}")
        return read(output / "speed.json"), times(output)


def read(path: Path) -> dict[str, t.Any]:
    """Return a JSON document."""
    return dict(json.loads(path.read_text(encoding="utf-8")))


def times(output: Path) -> dict[str, float]:
    """Return the time of each phase, in seconds since the epoch: of the rank that was killed, then of the next leg."""
    found: dict[str, float] = {}
    for path in (output / "killed/phases-1.jsonl", output / "resumed/phases-0.jsonl"):
        rows_of_it = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found.update({row["phase"]: row["time"] for row in reversed(rows_of_it)})  # the first of each
    return {**found, "ended": read(output / "legs.json")["killed"]["ended"]}


def ratio(ones: list[float], others: list[float]) -> float:
    """Return the median ratio of rounds that followed each other."""
    return statistics.median(one / other for one, other in zip(ones, others))


def of_the_speed(found: dict[str, t.Any], when: dict[str, float]) -> list[Row]:
    """Return what was measured apart from the play."""
    loop, saved = found["loop"], found["checkpoint"]
    wall, cpu = (ratio(loop[f"own{what}"], loop[f"bare{what}"]) for what in ("", "_cpu"))
    plain, processor = (ratio(loop[f"own{what}"], loop[f"plain{what}"]) for what in ("", "_cpu"))
    mean = {name: statistics.median(saved[name]) for name in ("saved", "written")}
    of_what = f"checkpoint of {saved['bytes'] / 1e6:.0f} MB to a sequential write ({saved['tool']})"
    whole = when["stepped"] - when["killed"]
    return [
        ("time of the loop to DeepSpeed's engine alone", f"{wall:.3f}", "<= 1.05", wall <= 1.05),
        ("CPU seconds of the loop to DeepSpeed's engine alone", f"{cpu:.3f}", "", True),
        ("CPU seconds, ZeRO-3 to DDP", f"{processor:.2f}", "<= 1.6", processor <= 1.6),
        ("time, ZeRO-3 to DDP", f"{plain:.2f}", "", True),
        (of_what, f"{saved['ratio']:.2f}", ">= 0.7", saved["ratio"] >= 0.7),
        ("of these, MB/s", f"{mean['saved']:.0f}, {mean['written']:.0f}", "", True),
        ("from SIGKILL to the first step after it, s", f"{whole:.1f}", "<= 30", whole <= 30),
        *((f"of these, {what}", f"{when[end] - when[begin]:.1f}", "", True) for what, begin, end in PARTS),
    ]


def of_the_play(found: dict[str, t.Any]) -> list[Row]:
    """Return each figure of the acceptance with its bound, and whether it is kept."""
    metrics, legs = found["metrics"], found["legs"]
    plain = metrics["plain"]
    processor = metrics["cpu_seconds_per_token"] / plain["cpu_seconds_per_token"]
    speed = metrics["tokens_per_second"] / plain["tokens_per_second"]
    loader = 1 / metrics["input_share"]
    memory = max(each["resident"] for each in metrics["memory_bytes"].values()) / 1e6
    job = sum(legs[name]["ended"] - legs[name]["started"] for name in legs["outcomes"])
    saved = [each["bytes"] / each["seconds"] / 1e6 for each in metrics["checkpoint"]["saved"].values()]
    resumed = metrics["resumed"]["restart_seconds"]
    return [
        ("CPU seconds per token, ZeRO-3 to DDP, with a model this small", f"{processor:.2f}", "", True),
        ("tokens per second, ZeRO-3 to DDP", f"{speed:.2f}", ">= 0.35", speed >= 0.35),
        ("speed of the loader to what the training takes", f"{loader:.0f}", ">= 10", loader >= 10),
        ("memory of a rank, MB", f"{memory:.0f}", "<= 900", memory <= 900),
        ("all legs, s", f"{job:.0f}", "<= 180", job <= 180),
        ("checkpoint, MB/s", f"{min(saved):.0f} to {max(saved):.0f}", "", True),
        ("from the processes' begin to the first step after a kill, s", f"{resumed:.1f}", "<= 30", resumed <= 30),
    ]


def main() -> int:
    """Print the table; return 1 if a bound is missed."""
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")) if len(sys.argv) > 1 else evidence()
    print("| what | figure | bound |\n|---|---|---|")
    missed = []
    for what, figure, bound, is_kept in [*of_the_play(found), *of_the_speed(*measured())]:
        print(f"| {what} | {figure} | {bound} |")
        missed += [] if is_kept else [what]
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
