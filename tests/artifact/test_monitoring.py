# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's Prometheus and node_exporter with what the collection gives them: metrics, rules, dashboard."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import typing as t
from bisect import bisect_right
from functools import partial
from pathlib import Path

import pytest
import yaml
from kit.job import Job
from kit.pretraining import exporters, exposition, monitor
from kit.pretraining.alerts import replay

from tests.debian import unpacked
from tests.prometheus import MONITORING, PATIENCE, Asked, free_ports, prometheus_of
from tests.unit.kit.training_rows import BEGAN, probe_row, step_rows

EVERY = 15  # seconds between two scrapes, as in the example


@pytest.fixture(scope="module")
def prometheus() -> Path:
    """The folder with prometheus and promtool."""
    return unpacked("prometheus") / "usr/bin"


def promtool(prometheus: Path, *arguments: str, folder: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(prometheus / "promtool"), *arguments]
    return subprocess.run(
        command, cwd=folder, input=text, capture_output=True, text=True, check=False, timeout=PATIENCE
    )


def test_the_rules_and_the_example_are_valid_and_pass_their_own_tests(prometheus):
    for arguments in (
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "rules.yml"),
        ("test", "rules", "rules_test.yml"),
    ):
        done = promtool(prometheus, *arguments, folder=MONITORING)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_rule_that_is_changed_fails_its_tests(prometheus, tmp_path):
    shutil.copytree(MONITORING, tmp_path, dirs_exist_ok=True)
    rules = (tmp_path / "rules.yml").read_text(encoding="utf-8")
    assert rules.count("< 0.9") == 1
    (tmp_path / "rules.yml").write_text(rules.replace("< 0.9", "< 0.8"), encoding="utf-8")
    tests = yaml.safe_load((tmp_path / "rules_test.yml").read_text(encoding="utf-8"))
    tests["tests"] = [each for each in tests["tests"] if each["name"] == "a rank that is slow by itself"]
    (tmp_path / "rules_test.yml").write_text(json.dumps(tests), encoding="utf-8")
    done = promtool(prometheus, "test", "rules", "rules_test.yml", folder=tmp_path)
    assert done.returncode != 0
    assert "alertname: PretrainingRankSlow" in done.stdout + done.stderr


def test_the_text_is_well_formed(prometheus, tmp_path):
    figures = exposition.Figures(
        **{name: 1 for name in exposition.METRICS if name != "active"}, solo_seconds=(0.1, math.nan)
    )
    text = exposition.text(exposition.families(figures, exposition.labels("12", "gpt"), ["a", "b"]))
    done = promtool(prometheus, "check", "metrics", folder=tmp_path, text=text)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


# What happens to a training of forty minutes, of which both the rules and their replay are asked.

Rows = list[dict[str, t.Any]]


def good() -> tuple[Rows, Rows]:
    """Steps every 10 s, a checkpoint every 50, a probe every 20 s."""
    rows = step_rows(240)
    for row in rows:
        row["checkpoint_step"] = row["step"] // 50 * 50
    return rows, [probe_row(step, BEGAN + step * 10, [0.1, 0.1]) for step in range(1, 241, 2)]


def changed(first: int, last: int, **values: t.Any) -> tuple[Rows, Rows]:
    rows, probes = good()
    for row in rows:
        if first <= row["step"] <= last:
            row.update(values)
    return rows, probes


def stalled(seconds: float) -> tuple[Rows, Rows]:
    rows, probes = good()
    return [row if row["step"] <= 100 else {**row, "time": row["time"] + seconds} for row in rows], probes


def slow(seconds: float, pace: float) -> tuple[Rows, Rows]:
    rows, probes = good()
    for row in probes:
        if 300 <= row["time"] - BEGAN < 300 + seconds:
            row["solo_seconds"] = [0.1, 0.1 / pace]
    return rows, probes


def skipped(count: int, scale: float | None) -> tuple[Rows, Rows]:
    rows, probes = changed(1, 240, loss_scale=scale)
    for row in rows:
        row["skipped_steps"] = max(0, min(row["step"] - 100, count))
    return rows, probes


SCENARIOS: dict[str, tuple[Rows, Rows]] = {
    "nothing happens": good(),
    "a loss is not a number": changed(100, 100, loss="NaN"),
    "a gradient norm is infinite": changed(100, 100, grad_norm="Infinity"),
    "a gradient norm is infinite in half precision": changed(100, 100, grad_norm="Infinity", loss_scale=1024.0),
    "a step is skipped": skipped(1, None),
    "nine steps are skipped in half precision": skipped(9, 1024.0),
    "fourteen steps are skipped in half precision": skipped(14, 1024.0),
    "no step for six minutes": stalled(360),
    "no step for eight minutes": stalled(480),
    "two checkpoints are missing": changed(150, 240, checkpoint_step=100),
    "one checkpoint is late": changed(150, 195, checkpoint_step=100),
    "a rank is slow for eight minutes": slow(480, 0.5),
    "a rank is slow for twelve minutes": slow(720, 0.5),
    "a rank is a little slow for twelve minutes": slow(720, 0.95),
    "the loss jumps for three minutes": changed(200, 217, loss=9.0),
    "the loss rises": changed(200, 217, loss=5.0),
    "the loss jumps for half a minute": changed(200, 202, loss=9.0),
}


def series(rows: Rows, probes: Rows) -> list[dict[str, str]]:
    """What Prometheus sees of the rows, at its scrapes."""
    times = [row["time"] for row in rows]
    scrapes = range(int(BEGAN), int(times[-1]) + 1, EVERY)
    done = [bisect_right(times, moment) for moment in scrapes]
    broken = [0]
    for row in rows:
        counted = ["loss"] if row["loss_scale"] is not None else ["loss", "grad_norm"]
        broken.append(broken[-1] + any(not math.isfinite(float(row[name])) for name in counted))

    def metric(name: str, value: t.Callable[[int], t.Any], labels: str = "") -> dict[str, str]:
        found = [value(count - 1) if count else None for count in done]
        values = ["_" if each is None else exposition.number(float(each)) for each in found]
        return {"series": f'hpc_pretraining_{name}{{job_id="12",run="gpt"{labels}}}', "values": " ".join(values)}

    probed = [row["time"] for row in probes]

    def solo(rank: int) -> t.Callable[[int], t.Any]:
        return lambda place: probes[max(0, bisect_right(probed, times[place]) - 1)]["solo_seconds"][rank]

    return [
        {"series": 'up{job="gpt-pretraining"}', "values": f"1x{len(scrapes)}"},
        metric("active", lambda _place: 1),
        metric("step", lambda place: rows[place]["step"]),
        metric("loss", lambda place: rows[place]["loss"]),
        metric("finite", lambda place: broken[place + 1] == broken[place]),
        metric("not_finite_steps_total", lambda place: broken[place + 1]),
        metric("skipped_steps_total", lambda place: rows[place]["skipped_steps"]),
        metric("loss_scale", lambda place: rows[place]["loss_scale"]),
        metric("checkpoint_step", lambda place: rows[place]["checkpoint_step"]),
        metric("checkpoint_every_steps", lambda _place: 50),
        *(metric("solo_seconds", solo(rank), f',node="a",rank="{rank}"') for rank in range(2)),
    ]


def test_the_rules_fire_where_their_replay_does(prometheus, tmp_path):
    tests, expected = [], {}
    for name, (rows, probes) in SCENARIOS.items():
        expected[name] = sorted({each.alert for each in replay(rows, probes, checkpoint_every=50)})
        tests.append(
            {
                "name": name,
                "interval": f"{EVERY}s",
                "input_series": series(rows, probes),
                "promql_expr_test": [
                    {
                        "expr": 'max by (alertname) (max_over_time(ALERTS{alertstate="firing"}[2h]))',
                        "eval_time": f"{int(rows[-1]['time'] - BEGAN)}s",
                        "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in expected[name]],
                    }
                ],
            }
        )
    rules = yaml.safe_load((MONITORING / "rules.yml").read_text(encoding="utf-8"))
    names = set().union(*expected.values())
    rules["groups"][0]["rules"] = [rule for rule in rules["groups"][0]["rules"] if rule["alert"] in names]
    (tmp_path / "rules.yml").write_text(json.dumps(rules), encoding="utf-8")
    document = {"rule_files": ["rules.yml"], "evaluation_interval": f"{EVERY}s", "tests": tests}
    (tmp_path / "replayed.yml").write_text(json.dumps(document), encoding="utf-8")
    done = promtool(prometheus, "test", "rules", "replayed.yml", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(alert for each in expected.values() for alert in each) == [
        "PretrainingCheckpointTooOld",
        "PretrainingLossNotFinite",
        "PretrainingLossNotFinite",
        "PretrainingLossSpike",
        "PretrainingNoStep",
        "PretrainingRankSlow",
        "PretrainingStepsSkipped",
        "PretrainingStepsSkipped",
    ]


@pytest.fixture
def scraped(tmp_path, monkeypatch) -> t.Iterator[tuple[Asked, Path, int]]:
    """Prometheus as it is described there, with the folder of its text files, and a port that it asks too."""
    monkeypatch.setattr(monitor, "Publisher", partial(exporters.Publisher, every=0.05))
    folder = tmp_path / "metrics"
    folder.mkdir()
    (http,) = free_ports(1)
    with prometheus_of(folder, tmp_path, http) as asked:
        yield asked, folder, http


FIGURES = {
    "learning_rate": 3e-4,
    "grad_norm": 0.5,
    "steps_per_second": 0.5,
    "tokens_per_second": 1000.0,
    "loss_scale": 1024.0,
    "memory_bytes": 2**36,
}
SECONDS = {
    "data_seconds": 0.1,
    "forward_seconds": 0.2,
    "backward_seconds": 0.3,
    "optimizer_seconds": 0.4,
    "step_seconds": 1.0,
}


def test_prometheus_sees_a_training_fires_alerts_and_answers_every_panel(scraped, tmp_path):
    asked, folder, port = scraped
    watch = {"textfile": str(folder), "http_port": port}
    with monitor.Monitor(tmp_path / "output", Job("12", 0), 40, watch, checkpoint_every=10, nodes=["a", "b"]) as told:
        told.step(1, loss=3.5, skipped_steps=0, validation_loss=3.6, **FIGURES)
        told.performance(1, mfu=0.4, solo_seconds=[0.1, 0.1], **SECONDS)
        told.checkpoint(1)
        two = asked.until("count by (job_id) (hpc_pretraining_step == 1) == 2")
        assert {each["metric"]["job_id"] for each in two} == {"12"}
        asked.until("count(count_over_time(hpc_pretraining_skipped_steps_total[1m]) > 1) == 2")
        assert asked.series('ALERTS{alertstate="firing"}') == []
        told.step(2, loss=math.nan, skipped_steps=15, **FIGURES)
        for alert in ("PretrainingLossNotFinite", "PretrainingStepsSkipped"):
            fired = asked.until(f'ALERTS{{alertname="{alert}",alertstate="firing"}}')
            assert {each["metric"]["run"] for each in fired} == {"gpt-pretraining"}
        asked.until("count(hpc_pretraining_loss != hpc_pretraining_loss) == 2")  # only what is no number differs
        dashboard = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
        silent = [
            f"{panel['title']}: {target['expr']}"
            for panel in dashboard["panels"]
            for target in panel["targets"]
            if not asked.series(target["expr"].replace("$run", "gpt-pretraining").replace("$job_id", "12|13"))
        ]
        assert silent == []
        found = asked.get("/api/v1/label/job_id/values", **{"match[]": 'hpc_pretraining_active{run="gpt-pretraining"}'})
        assert found == ["12"]
    asked.until("hpc_pretraining_active == 0")
