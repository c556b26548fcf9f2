# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The screen about a training."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from kit.pretraining.observed import Checkpoint, Observed, observe
from kit.pretraining.overview import clock, duration, per_hour, rank_table, screen, seconds_left, speed

from tests.unit.kit.training_folder import GIB, SETTINGS, rank_state, training
from tests.unit.kit.training_rows import BEGAN, probe_row, step_row, step_rows

NOW = BEGAN + 4004


def seen(**changed: Any) -> Observed:
    """A training after 400 of 1000 steps."""
    given = {
        "folder": Path("/share/job-12"),
        "now": NOW,
        "job": "12",
        "settings": SETTINGS,
        "rows": [{**row, "checkpoint_step": row["step"] // 50 * 50} for row in step_rows(400)],
        "ranks": [rank_state(rank) for rank in range(4)],
        "began": BEGAN,
        **changed,
    }
    return Observed(**given)


def line(shown: str, name: str) -> str:
    """What a name says, on however many lines."""
    lines = shown.splitlines()
    at = next(place for place, each in enumerate(lines) if each.startswith(name))
    end = next(place for place, each in enumerate([*lines, "end"]) if place > at and not each.startswith(" " * 12))
    return " ".join(each[12:] for each in lines[at:end])


def test_a_training_is_one_screen_which_the_page_shows(root):
    with tempfile.TemporaryDirectory() as share:  # a long path would be cut off
        folder = training(Path(share))
        shown = screen(observe(folder, NOW)).replace(str(folder), "/mnt/beegfs/models/gpt-pretraining/job-12")
    page = (root / "docs/pretraining-monitoring.md").read_text(encoding="utf-8")
    assert shown == page.partition("<!-- screen -->\n```text\n")[2].partition("```\n<!-- end of screen -->")[0]


def test_an_empty_folder_is_a_screen_too(tmp_path):
    shown = screen(observe(tmp_path, NOW))
    assert line(shown, "Step") == "none is complete"
    assert line(shown, "Loss") == "unknown"
    assert line(shown, "Speed") == "unknown"
    assert line(shown, "Time left") == "unknown"
    assert line(shown, "Cost") == "no price is set (cost in the settings)"
    assert line(shown, "Checkpoint") == "none yet"
    assert line(shown, "Alerts") == "unknown"
    assert line(shown, "Missing").startswith("settings.json is not there; training_metrics.jsonl is not there")
    assert "Rank " not in shown


def test_no_line_is_wider_than_the_screen_or_has_anything_but_text():
    ranks = [rank_state(0, phase="failed", error="\x1b[31m" + "ü" * 300, node="n\n\t1")]
    shown = screen(seen(ranks=ranks, missing=["a\x07b " + "x" * 400] + ["y" * 50] * 20, folder=Path("/x" * 200)))
    assert shown.isascii()
    assert all(each.isprintable() for each in shown.splitlines())
    assert max(map(len, shown.splitlines())) == 100
    assert "?[31m?" in shown
    assert "a?b" in shown
    assert f"\n{'/x' * 48}/...\n" in shown
    shown = screen(seen(missing=["y" * 50] * 20))
    assert shown.count("y" * 50) == 3
    assert f"\n            {'y' * 50}; ...\n" in shown


def test_a_name_and_what_it_says_are_as_wide_as_the_screen():
    shown = screen(seen(missing=["x" * 88])).splitlines()
    assert f"Missing     {'x' * 88}" in shown
    shown = screen(seen(missing=["x" * 82 + " gpt-pretraining"]))
    assert f"Missing     {'x' * 82}\n            gpt-pretraining\n" in shown
    shown = screen(seen(folder=Path("/" + "x" * 99))).splitlines()
    assert shown[1] == "/" + "x" * 99


def test_a_long_phase_is_cut():
    rows = rank_table(seen(ranks=[rank_state(0, phase="p" * 35)]))
    assert f"  {'p' * 34}  400 " in rows[1]


def test_the_title_tells_leg_and_end():
    assert screen(seen()).startswith("Job 12, seen 2027-01-15 09:06:44 UTC\n")
    assert screen(seen(leg="killed")).startswith("Job 12, leg killed, seen ")
    assert screen(seen(ended=NOW - 4)).startswith("Job 12, ended, seen ")
    assert screen(seen(ended=NOW - 4, exit_code=0)).startswith("Job 12, ended with exit code 0, seen ")


def test_the_step_is_told_with_what_is_known_of_it():
    rows = [step_row(7, NOW - 200)]
    assert line(screen(seen(rows=rows)), "Step") == "7 of 1,000 (0.7%), 3 min 20 s ago"
    rows = [{**rows[0], "steps": None, "time": None}]
    assert line(screen(seen(rows=rows)), "Step") == "7 of an unknown number"


def test_a_loss_that_is_not_a_number_is_told_so():
    rows = [step_row(1, NOW, loss="NaN", grad_norm="Infinity", loss_scale=1024.0, skipped_steps=None)]
    assert line(screen(seen(rows=rows)), "Loss") == (
        "NaN, gradient norm Infinity, learning rate 3.00e-04, skipped steps unknown, loss scale 1024"
    )


def test_a_loss_that_fell_without_end_is_told_so():
    assert line(screen(seen(rows=[step_row(1, NOW, loss="-Infinity")])), "Loss").startswith("-Infinity, ")


def test_the_speed_is_the_median_of_the_last_hundred_rows():
    rows = step_rows(250)
    for row in rows[:150]:
        row.update(steps_per_second=9.0, tokens_per_second=9.0)
    for row in rows[200:]:
        row.update(steps_per_second=0.7, tokens_per_second=1400.0)
    assert speed(rows) == pytest.approx(0.6)
    probes = [probe_row(1, NOW, [], mfu=None), probe_row(2, NOW, [], mfu=0.25), probe_row(3, NOW, [], mfu=0.35)]
    shown = screen(seen(rows=rows, performance=probes))
    assert line(shown, "Speed") == "1,200 tokens/s, 0.6 steps/s, 2,160 steps/h, MFU 30.0%"
    assert speed(rows[:149]) == 9.0
    for rate in (0.0, 1e-320, "NaN"):
        assert speed(step_rows(3, steps_per_second=rate)) is None
    assert speed([]) is None
    assert line(screen(seen(rows=step_rows(3, steps_per_second=1e-320))), "Time left") == "unknown"
    shown = screen(seen(rows=step_rows(3, tokens_per_second=None)))
    assert line(shown, "Speed") == "unknown tokens/s, 0.5 steps/s, 1,800 steps/h, MFU unknown"
    assert line(screen(seen(rows=step_rows(3, steps_per_second=-1.0))), "Speed") == "unknown"


def test_the_time_left_is_by_that_speed():
    assert seconds_left(seen()) == 1200.0
    assert seconds_left(seen(rows=step_rows(3, steps=2))) == 0.0
    assert seconds_left(seen(rows=step_rows(3, steps=None))) is None
    assert seconds_left(seen(rows=step_rows(3, steps_per_second=None))) is None
    assert seconds_left(seen(rows=[])) is None
    assert seconds_left(seen(rows=[{**step_row(3, NOW), "step": None}])) is None
    assert seconds_left(seen(rows=[], ended=NOW)) == 0.0
    shown = line(screen(seen(rows=step_rows(3))), "Time left")
    assert shown.endswith("by the median of the last 3 steps")
    assert line(screen(seen(ended=NOW)), "Time left") == "none, the job has ended"


def test_a_node_is_paid_for_whole_and_a_gpu_each():
    price = {"price_per_hour": 2.0, "price_of": "node"}
    assert per_hour(price, seen()) == 4.0
    assert per_hour({**price, "price_of": "gpu"}, seen()) == 8.0
    for broken in ({"price_of": None}, {"price_of": "rack"}, {"price_per_hour": "2"}, {"price_per_hour": None}):
        assert per_hour({**price, **broken}, seen()) is None
    assert per_hour(price, seen(ranks=[])) is None
    unknown = [{"rank": 0, "phase": "never started"}]
    assert per_hour(price, seen(ranks=unknown)) is None
    assert per_hour({**price, "price_of": "gpu"}, seen(ranks=unknown)) is None
    assert per_hour({**price, "price_of": "gpu"}, seen(ranks=[*unknown, rank_state(1)])) == 4.0


def test_the_cost_is_that_of_the_time_so_far_and_to_come():
    def cost(**changed: Any) -> str:
        return line(screen(seen(**changed)), "Cost")

    assert cost() == "17.62 USD so far, 5.28 USD to come, 15.84 USD an hour"
    assert cost(ended=BEGAN + 3600) == "15.84 USD so far, 0.00 USD to come, 15.84 USD an hour"
    assert cost(began=NOW + 50) == "0.00 USD so far, 5.28 USD to come, 15.84 USD an hour"
    assert cost(began=None, rows=[]) == "unknown so far, unknown to come, 15.84 USD an hour"
    assert cost(settings={"cost": {"price_per_hour": 1}}).startswith("unknown: cost in settings.json is incomplete")
    dear = {"cost": {"price_per_hour": 36e6, "price_of": "node"}}
    assert cost(began=NOW, settings=dear) == "0.00 USD so far, 24,000,000.00 USD to come, 72,000,000.00 USD an hour"
    assert cost(settings={"cost": None}) == "no price is set (cost in the settings)"


def test_the_last_whole_checkpoint_is_told_with_those_that_are_not():
    last = Checkpoint("checkpoint_step_350", 350, BEGAN + 3500)

    def checkpoint(**changed: Any) -> str:
        return line(screen(seen(**changed)), "Checkpoint")

    assert checkpoint(checkpoint=last) == "checkpoint_step_350, 2027-01-15 08:58:20 UTC, 50 steps ago"
    damaged = ["checkpoint_step_400: the manifest names no files"]
    assert checkpoint(checkpoint=last, damaged=damaged) == (
        "checkpoint_step_350, 2027-01-15 08:58:20 UTC, 50 steps ago; not whole: checkpoint_step_400: the manifest "
        "names no files"
    )
    assert checkpoint(damaged=damaged) == "none is whole; not whole: checkpoint_step_400: the manifest names no files"
    assert checkpoint() == "none yet"
    assert checkpoint(checkpoint=Checkpoint("checkpoint_step_500", 500, None)) == "checkpoint_step_500"
    assert checkpoint(checkpoint=Checkpoint("checkpoint_step_400", 400, None)) == "checkpoint_step_400, 0 steps ago"
    assert checkpoint(checkpoint=last, rows=[]) == "checkpoint_step_350, 2027-01-15 08:58:20 UTC"


def test_alerts_are_those_of_the_rules():
    def alerts(**changed: Any) -> str:
        return line(screen(seen(**changed)), "Alerts")

    assert alerts() == "none in the last 400 rows"
    rows = [{**row, "checkpoint_step": 0} for row in step_rows(400)]
    late = "PretrainingCheckpointTooOld: step 101, the last whole checkpoint is of step 0"
    assert alerts(rows=rows) == late
    rows[200]["loss"] = "NaN"
    assert alerts(rows=rows) == f"PretrainingLossNotFinite: loss nan, gradient norm 0.5 in step 201; {late}"
    assert alerts(rows=rows, settings={}) == "PretrainingLossNotFinite: loss nan, gradient norm 0.5 in step 201"
    assert alerts(rows=step_rows(400)[:1]) == "PretrainingNoStep: no step for 3994 s after step 1"
    assert alerts(rows=step_rows(400, loss=None)) == "unknown: row 1: loss is None, expected a number"
    without = [{name: each for name, each in row.items() if name != "checkpoint_step"} for row in step_rows(400)]
    assert alerts(rows=without) == "none in the last 400 rows"


def test_a_training_that_is_over_need_not_go_on():
    rows = [step_row(1000, BEGAN)]
    assert line(screen(seen(rows=rows, settings={})), "Alerts") == "none in the last 1 rows"
    rows = [step_row(999, BEGAN)]
    assert line(screen(seen(rows=rows, settings={})), "Alerts").startswith("PretrainingNoStep")
    assert line(screen(seen(rows=rows, settings={}, ended=NOW)), "Alerts") == "none in the last 1 rows"


def test_steps_that_were_skipped_before_the_rows_that_are_read_are_no_news():
    rows = step_rows(400, skipped_steps=3)
    shown = "PretrainingStepsSkipped: 3 steps were skipped in 15 minutes, up to step 1"
    assert line(screen(seen(rows=rows, settings={})), "Alerts") == shown
    assert line(screen(seen(rows=rows, settings={}, cut=True)), "Alerts") == "none in the last 400 rows"
    only = [step_row(1000, BEGAN, skipped_steps=3)]
    assert line(screen(seen(rows=only, settings={}, cut=True)), "Alerts") == "none in the last 1 rows"


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("  ") if cell.strip()]


def test_a_rank_is_told_with_its_gpu_if_the_sample_is_fresh():
    sample = {"uuid": "GPU-0", "time": NOW - 30, "util": 97, "memory_used": 61 * GIB, "memory_total": 80 * GIB}
    ranks = [
        rank_state(0, time=NOW - 60),
        rank_state(1, time=NOW - 61, step=None, node=None),
        {"rank": 2, "phase": None},
    ]
    rows = rank_table(seen(ranks=ranks, gpus={"GPU-0": sample}))
    assert cells(rows[1]) == ["0", "compute01", "training", "400", "97 %", "61.0 of 80.0 GiB", "1 min 0 s ago"]
    assert cells(rows[2]) == ["1", "unknown", "training", "-", "-", "-", "silent for 1 min 1 s"]
    assert cells(rows[3]) == ["2", "unknown", "unknown", "-", "-", "-", "none"]
    for stale in ({"time": NOW - 31}, {"time": None}):
        rows = rank_table(seen(ranks=ranks, gpus={"GPU-0": {**sample, **stale}}))
        assert cells(rows[1])[4:6] == ["-", "-"]
    rows = rank_table(seen(ranks=ranks, gpus={"GPU-0": sample}, ended=NOW))
    assert cells(rows[1])[4:6] == ["-", "-"]
    assert cells(rows[2])[-1] == "1 min 1 s ago"
    rows = rank_table(seen(ranks=ranks, gpus={"GPU-0": {**sample, "util": None, "memory_total": None}}))
    assert cells(rows[1])[4:6] == ["-", "61.0 GiB"]


def test_a_rank_that_has_ended_is_not_silent():
    ranks = [rank_state(0, phase="ended", time=NOW - 500), rank_state(1, phase="failed", error="lost", time=NOW - 500)]
    rows = rank_table(seen(ranks=ranks))
    assert cells(rows[1])[2::4] == ["ended", "8 min 20 s ago"]
    assert cells(rows[2])[2] == "failed: lost"
    assert cells(rows[2])[-1] == "8 min 20 s ago"


def test_a_rank_ahead_of_this_clock_is_not_in_the_future():
    assert cells(rank_table(seen(ranks=[rank_state(0, time=NOW + 100)]))[1])[-1] == "0 s ago"


def many(nodes: int, each: int = 2) -> list[dict[str, Any]]:
    return [rank_state(rank, node=f"n{rank // each:03}", step=400 + rank % each) for rank in range(nodes * each)]


def test_more_than_ten_ranks_are_told_by_node():
    assert len(rank_table(seen(ranks=many(5)))) == 11
    ranks = [*many(3, 4)]
    ranks[1].update(phase="saving", time=NOW - 100)
    ranks[2]["time"] = None
    gpus = {
        f"GPU-{rank}": {
            "time": NOW,
            "util": 90 + rank,
            "memory_used": (50 + rank) * GIB,
            "memory_total": (80 - rank) * GIB,
        }
        for rank in range(4)
    }
    rows = [cells(row) for row in rank_table(seen(ranks=ranks, gpus=gpus))]
    assert rows[0] == ["Rank", "Node", "Phase", "Step", "GPU", "GPU memory", "Last report"]
    assert rows[1] == [
        "0-3", "n000", "training, saving", "400-403", "90-93 %", "50.0-53.0 of 80.0 GiB", "silent for 1 min 40 s",
    ]  # fmt: skip
    assert rows[2] == ["4-7", "n001", "training", "400-403", "-", "-", "4 s ago"]
    assert len(rows) == 4


def test_a_nodes_ranks_are_spans():
    ranks = [rank_state(rank, node="a" if rank in (0, 1, 2, 5, 9) else "b") for rank in range(12)]
    rows = [cells(row) for row in rank_table(seen(ranks=ranks))]
    assert [row[0] for row in rows[1:]] == ["0-2,5,9", "3-4,6-8,10-11"]


def test_of_many_nodes_those_that_need_a_look_are_told():
    assert [cells(row)[0] for row in rank_table(seen(ranks=many(10)))][-1] == "18-19"
    ranks = many(12)
    ranks[8].update(phase="failed", error="lost")
    ranks[10]["step"] = 100
    ranks[13]["step"] = None
    ranks[20]["step"] = 0
    gpus = {f"GPU-{rank}": {"time": NOW, "util": 0 if rank == 6 else 99} for rank in range(22)}
    rows = rank_table(seen(ranks=ranks, gpus=gpus))
    assert len(rows) == 11
    assert [cells(row)[1] for row in rows[1:8]] == ["n004", "n006", "n010", "n005", "n011", "n003", "n000"]
    assert rows[-1] == "and 3 more nodes, which are further on"


def test_a_node_of_ended_ranks_is_not_silent_and_one_of_others_is():
    ended = [rank_state(rank, node=f"n{rank}", phase="ended", time=NOW - 500) for rank in range(11)]
    rows = rank_table(seen(ranks=[*ended[:10], rank_state(10, node="n0", time=NOW - 500)]))
    assert cells(rows[1])[-1] == "silent for 8 min 20 s"
    assert cells(rows[2])[-1] == "8 min 20 s ago"


def test_without_ranks_there_is_no_table():
    assert rank_table(seen(ranks=[])) == []


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (86399, "23 h 59 min"),
        (86400, "1 days 0 h"),
        (200000, "2 days 7 h"),
    ],
)
def test_a_duration_has_two_units(seconds, shown):
    assert duration(seconds) == shown


def test_a_moment_beyond_the_calendar_is_unknown():
    assert clock(0) == "1970-01-01 00:00:00 UTC"
    assert clock(1e18) == "unknown"
