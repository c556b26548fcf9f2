# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs of a distributed workload: in which order, in which environment, and what is kept of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kit.commands import legs as command
from kit.errors import KitError
from kit.ranks import legs

# A launcher that tells its environment and leaves what ranks leave; FAILS names the leg that fails.
LAUNCHER = """
import json, os, pathlib, sys
leg, output = os.environ["HPC_VALIDATION_LEG"], pathlib.Path(os.environ["OUTPUT_DIR"])
with open(os.environ["CALLS"], "a") as stream:
    names = ("OUTPUT_DIR", "HPC_VALIDATION_RANKS", "OMP_NUM_THREADS", "APPTAINERENV_OUTPUT_DIR")
    names += ("HPC_VALIDATION_STEADY_SECONDS",)
    stream.write(json.dumps([leg, *(os.environ[name] for name in names)]) + "\\n")
if leg in os.environ.get("FAILS", "").split() or os.environ.get("HPC_VALIDATION_RESTART") in ("0", "1"):
    (output / "ranks").mkdir(exist_ok=True)
    (output / "ranks" / "rank-0.json").write_text(json.dumps({"phase": "training"}))
    sys.exit(3)
(output / "metrics.json").write_text(json.dumps({"steady": {"windows": [[0, 100]]}}))
for rank in range(int(os.environ["HPC_VALIDATION_RANKS"])):
    path = output / "ranks" / f"rank-{rank}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"phase": "ended", "node": "compute01", "gpu": f"GPU-{rank}"}))
"""


RULES = {"work": "weak", "steady_seconds": 2.5}


class Run:
    """Legs that were run, and what they left."""

    def __init__(self, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.output, self._calls = output, output.parent / "calls"
        monkeypatch.setenv("SLURM_JOB_ID", "12")
        monkeypatch.setenv("CALLS", str(self._calls))
        monkeypatch.setenv("OUTPUT_DIR", str(output))
        monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(8)))

    def run(self, ranks: int, baseline: int | None, *told: str) -> int:
        told = told or ("measured",) if baseline is None else (f"before:{baseline}", "measured", f"after:{baseline}")
        planned = legs.plan(self.output, ranks, 1, told)
        return legs.Runner([sys.executable, "-c", LAUNCHER], self.output, RULES).run(planned)

    @property
    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in self._calls.read_text().splitlines()]

    @property
    def written(self) -> dict[str, object]:
        return dict(json.loads((self.output / "legs.json").read_text()))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    (tmp_path / "out").mkdir()
    return Run(tmp_path / "out", monkeypatch)


def test_the_baseline_runs_before_and_after_with_the_same_threads(run: Run) -> None:
    assert run.run(2, 1) == 0
    out = str(run.output)
    assert run.calls == [
        ["before", f"{out}/baseline-before", "1", "4", f"{out}/baseline-before", "2.5"],
        ["measured", out, "2", "4", out, "2.5"],
        ["after", f"{out}/baseline-after", "1", "4", f"{out}/baseline-after", "2.5"],
    ]
    written = run.written
    assert (written["job_id"], written["attempt"], written["work"], written["steady_seconds"]) == ("12", 0, "weak", 2.5)
    assert [written[name]["exit_code"] for name in ("before", "measured", "after")] == [0, 0, 0]
    assert [written[name]["ranks"] for name in ("before", "measured", "after")] == [1, 2, 1]
    assert written["before"]["ended"] <= written["measured"]["started"]
    assert written["measured"]["ended"] <= written["after"]["started"]


def test_without_a_baseline_there_is_one_leg(run: Run) -> None:
    assert run.run(2, None) == 0
    assert [call[0] for call in run.calls] == ["measured"]
    assert set(run.written) == {"job_id", "attempt", "work", "steady_seconds", "measured", "planned", "outcomes"}


def test_states_windows_and_gpus_of_a_leg_are_kept(run: Run) -> None:
    sampled = [{"time": moment, "uuid": f"GPU-{gpu}", "util": 90 - gpu} for moment in range(101) for gpu in (0, 1)]
    (run.output / "gpu.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sampled))
    run.run(2, None)
    measured = run.written["measured"]
    assert measured["first_failure"] == "none"
    assert measured["nodes"] == ["compute01"]
    assert measured["steady_windows"] == [[0, 100]]
    assert {name: state["last"] for name, state in measured["states"].items()} == {
        "rank 0 (compute01 GPU-0)": "ended",
        "rank 1 (compute01 GPU-1)": "ended",
    }
    assert {gpu: found["util"]["mean"] for gpu, found in measured["gpus"].items()} == {"GPU-0": 90, "GPU-1": 89}


def test_gpus_of_several_nodes_are_looked_at_once_their_samples_are_together(run: Run) -> None:
    run.run(2, None)
    assert run.written["measured"]["gpus"] == {}
    before = run.written
    rows = [{"time": moment, "uuid": f"GPU-{gpu}", "util": 90 - gpu} for gpu in (0, 1) for moment in range(101)]
    (run.output / "gpu.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    legs.look_at_gpus(run.output)
    found = run.written["measured"].pop("gpus")
    assert {gpu: quantities["util"]["mean"] for gpu, quantities in found.items()} == {"GPU-0": 90, "GPU-1": 89}
    before["measured"].pop("gpus")
    assert {**run.written, "measured": {**run.written["measured"], "gpus": None}} == {
        **before,
        "measured": {**before["measured"], "gpus": None},
    }


def test_before_the_first_leg_there_is_nothing_to_look_at(run: Run) -> None:
    legs.look_at_gpus(run.output)
    assert list(run.output.iterdir()) == []


def test_without_a_sampler_no_gpu_is_known(run: Run) -> None:
    run.run(2, None)
    assert run.written["measured"]["gpus"] == {}


@pytest.mark.parametrize(
    ("fails", "ran", "status"),
    [
        ("before", ["before", "measured"], 3),
        ("measured", ["before", "measured"], 3),
        ("after", ["before", "measured", "after"], 3),
        ("before measured", ["before", "measured"], 3),
    ],
)
def test_what_failed_is_said_and_nothing_is_run_in_vain(
    run: Run, monkeypatch: pytest.MonkeyPatch, fails: str, ran: list[str], status: int
) -> None:
    monkeypatch.setenv("FAILS", fails)
    assert run.run(2, 1) == status
    assert [call[0] for call in run.calls] == ran
    written = run.written
    for name in ran:
        assert written[name]["exit_code"] == (3 if name in fails else 0)
    broken = written[fails.split(maxsplit=1)[0]]
    assert broken["first_failure"] == "no rank's: the launcher ended with exit code 3"
    assert broken["steady_windows"] == []


def test_each_leg_but_the_first_is_announced_before_it_starts(run: Run) -> None:
    told: list[tuple[str, int]] = []
    planned = legs.plan(run.output, 2, 1, ["plain", "measured", "resumed"])
    runner = legs.Runner(
        [sys.executable, "-c", LAUNCHER], run.output, RULES, lambda leg: told.append((leg, len(run.calls)))
    )
    assert runner.run(planned) == 0
    assert told == [("measured", 1), ("resumed", 2)]


def test_the_progress_marker_names_the_leg_that_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv("HPC_VALIDATION_MARKERS", str(tmp_path))
    command.announce("resumed")
    written = json.loads((tmp_path / "12.progress.json").read_text())
    assert written.pop("time") > 1.7e9
    assert written == {"job_id": "12", "attempt": 0, "leg": "resumed"}
    monkeypatch.setenv("HPC_VALIDATION_MARKERS", str(tmp_path / "12.progress.json"))
    command.announce("resumed")  # a hint that is lost ends nothing
    monkeypatch.delenv("HPC_VALIDATION_MARKERS")
    command.announce("resumed")
    assert [path.name for path in tmp_path.iterdir()] == ["12.progress.json"]


KILLED = """
import os, signal
leg = os.environ["HPC_VALIDATION_LEG"]
print(leg, flush=True)
if leg == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def restarted(run: Run, most: int) -> int:
    planned = legs.plan(run.output, 2, 1, ("measured",))
    restarts = legs.Restarts(most, 0.2)
    return legs.Runner([sys.executable, "-c", LAUNCHER], run.output, RULES, restarts=restarts).run(planned)


def test_a_leg_that_fails_is_started_again_after_a_pause(run: Run) -> None:
    assert restarted(run, 3) == 0
    assert len(run.calls) == 3
    measured = run.written["measured"]
    assert [each["exit_code"] for each in measured["attempts"]] == [3, 3, 0]
    assert [each["pause"] >= 0.2 for each in measured["attempts"]] == [False, True, True]
    assert run.written["outcomes"] == {"measured": {"outcome": "as expected"}}
    assert (run.output / "ranks-0/rank-0.json").is_file()
    assert [state["last"] for state in measured["states"].values()] == ["ended", "ended"]


def test_once_the_restarts_are_used_up_the_leg_has_failed(run: Run) -> None:
    assert restarted(run, 1) == 3
    assert len(run.calls) == 2
    assert "exit code 3" in run.written["outcomes"]["measured"]["outcome"]


ONCE = """
import os
print(os.environ["HPC_VALIDATION_LEG"], os.environ["HPC_VALIDATION_ENDS"], flush=True)
raise SystemExit(int(os.environ["HPC_VALIDATION_RESTART"] in os.environ.get("FAILS", "0")))
"""


@pytest.mark.parametrize(
    ("fails", "code", "outcome", "said"),
    [
        ("0", 0, "as expected", ["restarted ok"]),
        ("none", legs.UNHARMED, "ended without a failure", []),
        ("01", 0, "as expected", ["restarted ok", "restarted ok"]),
        ("0123", 1, "the launcher ended with exit code 1", ["restarted ok"] * 2),
    ],
)
def test_a_leg_may_be_meant_to_be_killed_once(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    fails: str,
    code: int,
    outcome: str,
    said: list[str],
) -> None:
    monkeypatch.setenv("FAILS", fails)
    planned = legs.plan(run.output, 2, 1, ["measured", "restarted::restarted"])
    runner = legs.Runner([sys.executable, "-c", ONCE], run.output, RULES, restarts=legs.Restarts(2, 0.0))
    del planned[0]
    assert runner.run(planned) == code
    shown = [line for line in capfd.readouterr().out.splitlines() if not line.startswith("leg ")]
    assert shown == said  # the job's logs show nothing of the attempt that is meant to fail
    assert (run.output / "restarted/output.log").read_text() == "restarted killed\n"
    assert outcome in run.written["outcomes"]["restarted"]["outcome"]


@pytest.mark.parametrize("code", [2, 4])
def test_what_would_end_the_same_way_again_is_not_started_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(legs.__file__).parents[2]))
    useless = f"""
import os
from pathlib import Path
from kit.ranks.state import write_exit_codes
output = Path(os.environ["OUTPUT_DIR"])
(output / "ranks").mkdir(exist_ok=True)
write_exit_codes(output, {{0: {code}, 1: -15}})
raise SystemExit(1)
"""
    planned = legs.plan(run.output, 2, 1, ("measured",))
    runner = legs.Runner([sys.executable, "-c", useless], run.output, RULES, restarts=legs.Restarts(3, 0.0))
    assert runner.run(planned) == 1
    assert len(run.written["measured"]["attempts"]) == 1
    assert f"ended with exit code {code}" in run.written["outcomes"]["measured"]["outcome"]


def test_a_leg_without_restarts_knows_of_none(run: Run) -> None:
    assert run.run(2, None) == 0
    assert "attempts" not in run.written["measured"]


def test_a_leg_may_be_meant_to_be_killed(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    planned = legs.plan(run.output, 2, 1, ["plain:1", "measured", "killed:2:killed", "resumed"])
    assert legs.Runner([sys.executable, "-c", KILLED], run.output, RULES).run(planned) == 0
    assert capfd.readouterr().out.split() == ["plain", "measured", "resumed"]  # the job's logs show no error of it
    assert (run.output / "killed/output.log").read_text() == "killed\n"
    written = run.written
    assert written["planned"] == 4
    assert {name: each["outcome"] for name, each in written["outcomes"].items()} == dict.fromkeys(
        ("plain", "measured", "killed", "resumed"), "as expected"
    )
    assert written["killed"]["exit_code"] == -9
    assert [leg.output.name for leg in planned] == ["plain", run.output.name, "killed", "resumed"]


def test_a_leg_that_was_to_be_killed_and_was_not_is_a_failure_and_the_last(run: Run) -> None:
    planned = legs.plan(run.output, 2, 1, ["measured", "killed:2:killed", "resumed"])
    assert legs.Runner([sys.executable, "-c", ""], run.output, RULES).run(planned) == legs.UNHARMED
    assert run.written["outcomes"]["killed"] == {"outcome": "ended without a failure"}
    assert "resumed" not in run.written


def test_ranks_of_several_nodes_are_started_by_a_step_and_meet_at_a_free_port(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    srun = tmp_path / "bin/srun"
    srun.parent.mkdir()
    told = " ".join(f"$HPC_VALIDATION_{name}" for name in ("NODES", "RANKS", "RENDEZVOUS"))
    srun.write_text(f'#!/bin/sh\necho "{told} $*" > {tmp_path}/step\n')
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", str(srun.parent), prepend=":")
    monkeypatch.setenv("SLURMD_NODENAME", "compute01")
    planned = legs.plan(run.output, 2, 2, ["before:1", "measured", "after:1"])
    assert [(leg.ranks, leg.nodes) for leg in planned] == [(1, 1), (2, 2), (1, 1)]
    legs.Runner([sys.executable, "-c", LAUNCHER], run.output, RULES).run(planned)
    assert [call[0] for call in run.calls] == ["before", "after"]  # by themselves, on the job's first node
    nodes, ranks, meeting, *step = (tmp_path / "step").read_text().split()
    assert (nodes, ranks, meeting.rpartition(":")[0]) == ("2", "1", "compute01")
    assert 1024 <= int(meeting.rpartition(":")[2]) <= 65535
    assert {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--overlap"} <= set(step)


def test_a_baseline_of_whole_nodes_is_on_as_many() -> None:
    before, measured, after = legs.plan(Path("/out"), 8, 4, ["before:4", "measured", "after:4"])
    assert [(leg.ranks_a_node, leg.nodes) for leg in (before, measured, after)] == [(2, 2), (2, 4), (2, 2)]


def test_a_rank_has_one_thread_at_least() -> None:
    leg = legs.Leg("measured", 8, Path("/out"))
    assert legs.environment_of(leg, {}, cpus=2, most_ranks=8, all_ranks=8)["OMP_NUM_THREADS"] == "1"


@pytest.mark.parametrize(("stubborn", "got"), [(False, ["TERM"]), (True, ["TERM", "KILL"])])
def test_an_interruption_ends_the_launcher(
    run: Run, monkeypatch: pytest.MonkeyPatch, stubborn: bool, got: list[str]
) -> None:
    launcher = Launcher(stubborn=stubborn)
    handlers: list[object] = []
    monkeypatch.setattr(legs.signal, "signal", lambda *handler: handlers.append(handler))
    monkeypatch.setattr(legs.subprocess, "Popen", lambda *_arguments, **_options: launcher)
    with pytest.raises(SystemExit):
        run.run(2, None)
    assert launcher.got == got
    assert handlers == [(signal.SIGTERM, signal.SIG_IGN)]  # who asks twice does not cut this short
    assert not (run.output / "legs.json").exists()


class Launcher:
    """A process that is waited for when this one is asked to end."""

    def __init__(self, stubborn: bool) -> None:
        self.stubborn, self.got = stubborn, []

    def wait(self, timeout: float | None = None) -> int:
        if timeout is None and not self.got:
            raise SystemExit(143)
        if self.stubborn and timeout is not None:
            raise subprocess.TimeoutExpired("launcher", timeout)
        return -15

    def terminate(self) -> None:
        self.got.append("TERM")

    def kill(self) -> None:
        self.got.append("KILL")


def arguments(**changes: object) -> object:
    class Arguments:
        ranks, nodes, baseline, leg, work, steady_seconds, launcher = 2, 1, None, None, None, None, ["true"]
        restarts, restart_delay = 0, 0.0

    for name, value in changes.items():
        setattr(Arguments, name, value)
    return Arguments


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"ranks": 0}, "--ranks 0"),
        ({"baseline": 2}, "--baseline 2: expected fewer than the 2 ranks"),
        ({"baseline": 0}, "--baseline 0"),
        ({"nodes": 0}, "--nodes 0"),
        ({"nodes": 3}, "--nodes 3: expected a number that divides the 2 ranks"),
        ({"ranks": 6, "nodes": 3, "baseline": 3}, "3 ranks do not fill nodes of 2 ranks each"),
        ({"restarts": -1}, "--restarts"),
        ({"leg": ["measured", "again::restarted"]}, "needs --restarts"),
        ({"restart_delay": -1.0}, "--restart-delay"),
        ({"restart_delay": float("nan")}, "--restart-delay"),
        ({"launcher": []}, "no command"),
        ({"baseline": 1, "leg": ["measured"]}, "exclude each other"),
        ({"leg": ["measured", "half:3"]}, "leg 'half:3': expected 1 to 2 ranks"),
        ({"leg": ["measured", "half:0"]}, "leg 'half:0': expected 1 to 2 ranks"),
        ({"leg": ["measured", "half:x"]}, "leg 'half:x': expected 1 to 2 ranks"),
        ({"leg": ["measured", "half:1:gone"]}, "expected name"),
        ({"leg": ["measured", "half:1:ok:2"]}, "expected name"),
        ({"leg": ["measured", "../up"]}, "expected name"),
        ({"leg": ["plain"]}, "legs plain: expected different names, and one of them measured"),
        ({"leg": ["measured", "plain", "plain"]}, "legs measured, plain, plain: expected different names"),
    ],
)
@pytest.mark.usefixtures("run")
def test_numbers_that_cannot_be_meant_are_refused(changes: dict[str, object], why: str) -> None:
    with pytest.raises(KitError, match=why):
        command.run(arguments(**changes))


def test_without_an_output_folder_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OUTPUT_DIR", raising=False)
    with pytest.raises(KitError, match="OUTPUT_DIR"):
        command.run(arguments())


@pytest.mark.parametrize(("does", "status"), [("sys.exit(4)", 4), ("os.kill(os.getpid(), 9)", 137)])
@pytest.mark.usefixtures("run")
def test_the_command_ends_as_the_launcher_did(does: str, status: int) -> None:
    with pytest.raises(SystemExit) as ended:
        command.run(arguments(launcher=[sys.executable, "-c", f"import os, sys; {does}"]))
    assert ended.value.code == status
