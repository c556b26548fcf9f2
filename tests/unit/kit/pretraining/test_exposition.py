# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics of a training, as Prometheus reads them."""

from __future__ import annotations

import dataclasses
import math

import pytest
from kit.errors import KitError
from kit.pretraining.exposition import COUNTER, METRICS, Figures, families, labels, number, text
from prometheus_client.parser import text_string_to_metric_families

COMMON = labels("12", "gpt")
WHOLE = Figures(
    steps=1000,
    step=7,
    step_time=1800000000.25,
    loss=math.nan,
    validation_loss=3.5,
    learning_rate=3e-4,
    gradient_norm=math.inf,
    finite=False,
    not_finite_steps=2,
    skipped_steps=1,
    loss_scale=65536.0,
    steps_per_second=0.5,
    tokens_per_second=500000.0,
    mfu=0.4,
    memory_bytes=2**36,
    checkpoint_step=5,
    checkpoint_time=1799999990.0,
    checkpoint_every=50,
    solo_seconds=(0.25, None, 0.5),
)


def samples(shown: str) -> dict[str, float]:
    """What a reader of Prometheus's format makes of a text: metric with labels → value."""
    found = {}
    for family in text_string_to_metric_families(shown):
        for sample in family.samples:
            found[sample.name + str(sorted(sample.labels.items()))] = sample.value
    return found


def test_each_figure_has_a_metric_of_its_own():
    fields = {field.name for field in dataclasses.fields(Figures)}
    assert set(METRICS) == fields - {"solo_seconds"}
    names = [name for name, _kind, _help in METRICS.values()]
    assert len(set(names)) == len(names)
    assert {name for name, kind, _help in METRICS.values() if kind == COUNTER} == {
        "not_finite_steps_total",
        "skipped_steps_total",
    }


def test_the_text_is_this():
    shown = text(families(Figures(step=3, loss=2.5, solo_seconds=(0.1,)), COMMON, ["compute01"]))
    assert shown == (
        "# HELP hpc_pretraining_active 1 while the training runs, 0 once it has ended in good order\n"
        "# TYPE hpc_pretraining_active gauge\n"
        'hpc_pretraining_active{job_id="12",run="gpt"} 1\n'
        "# HELP hpc_pretraining_step Last complete step\n"
        "# TYPE hpc_pretraining_step gauge\n"
        'hpc_pretraining_step{job_id="12",run="gpt"} 3\n'
        "# HELP hpc_pretraining_loss Training loss of the last step in nats per token\n"
        "# TYPE hpc_pretraining_loss gauge\n"
        'hpc_pretraining_loss{job_id="12",run="gpt"} 2.5\n'
        "# HELP hpc_pretraining_not_finite_steps_total Steps of this job that were not finite\n"
        "# TYPE hpc_pretraining_not_finite_steps_total counter\n"
        'hpc_pretraining_not_finite_steps_total{job_id="12",run="gpt"} 0\n'
        "# HELP hpc_pretraining_skipped_steps_total Steps of this job in which the optimizer made no update\n"
        "# TYPE hpc_pretraining_skipped_steps_total counter\n"
        'hpc_pretraining_skipped_steps_total{job_id="12",run="gpt"} 0\n'
        "# HELP hpc_pretraining_solo_seconds Duration of a rank's last probe, which computes without the other ranks\n"
        "# TYPE hpc_pretraining_solo_seconds gauge\n"
        'hpc_pretraining_solo_seconds{job_id="12",run="gpt",node="compute01",rank="0"} 0.1\n'
    )


def test_a_reader_of_the_format_gets_every_figure():
    read = samples(text(families(WHOLE, COMMON, ["a", "a"])))
    of_all = "[('job_id', '12'), ('run', 'gpt')]"
    for attribute, (name, _kind, _help) in METRICS.items():
        expected = float(getattr(WHOLE, attribute))
        found = read[f"hpc_pretraining_{name}{of_all}"]
        assert found == expected or (math.isnan(found) and math.isnan(expected)), attribute
    solo = {key: value for key, value in read.items() if "solo" in key}
    assert solo == {
        "hpc_pretraining_solo_seconds[('job_id', '12'), ('node', 'a'), ('rank', '0'), ('run', 'gpt')]": 0.25,
        "hpc_pretraining_solo_seconds[('job_id', '12'), ('node', 'unknown'), ('rank', '2'), ('run', 'gpt')]": 0.5,
    }
    assert len(read) == len(METRICS) + 2


def test_what_is_not_known_is_left_out():
    shown = text(families(Figures(active=False, solo_seconds=(None,)), COMMON, ["a"]))
    assert "solo" not in shown
    assert set(samples(shown)) == {
        f"hpc_pretraining_{name}[('job_id', '12'), ('run', 'gpt')]"
        for name in ("active", "not_finite_steps_total", "skipped_steps_total")
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nan, "NaN"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (0, "0"),
        (True, "1"),
        (2**53 + 1, "9007199254740993"),
        (3e-05, "3e-05"),
        (0.1, "0.1"),
        (-2.0, "-2.0"),
    ],
)
def test_a_number_is_written_whole(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize("value", ["", "a b", 'a"b', "a\nb", "key=secret", "x" * 129, "ä"])
def test_a_label_holds_names_only(value):
    with pytest.raises(KitError, match="label run: expected 1 to 128 letters"):
        labels("12", value)
    with pytest.raises(KitError, match="label job_id"):
        labels(value, "gpt")
    with pytest.raises(KitError, match="label node"):
        families(Figures(solo_seconds=(1.0,)), COMMON, [value])


@pytest.mark.parametrize("value", ["a", "x" * 128, "models/gpt-pretraining", "gpt:1.0_b+c"])
def test_a_name_is_a_label(value):
    assert labels("12", value) == {"job_id": "12", "run": value}
