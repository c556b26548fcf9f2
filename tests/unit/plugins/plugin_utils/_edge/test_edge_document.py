# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""edge.json: a value is a number, or a text that says why there is none; never null, never left out."""

from __future__ import annotations

import base64
import copy
import dataclasses
import io
import json
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.filter.edge_document import edge_document
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import (
    bundle,
    document,
    judged,
    problem,
    results,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.document import Told
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.figures import CPU_SHARE, RUN_DELAY
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.problem import ProblemError
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.conftest import ROOT
from tests.unit.plugins.plugin_utils._edge import made_edge
from tests.unit.plugins.plugin_utils._edge.made_edge import (
    JOB,
    LIMITS,
    LOOK,
    PACKAGES,
    RUN,
    answered,
    found,
    measured,
    write_bundle,
)

Json = dict[str, t.Any]
JUDGED = made_edge.described(made_edge.files()["int8.onnx"])["sha256"]
NUMBERS = (
    *("cold_start_s", "p50_ms", "p95_ms", "p99_ms", "max_ms", "per_second", "cpu_share", "repeats", "memory_gb"),
    *("size_mb", "near", "temperature_c", "throttle_events", "power_w", "millijoules_per_inference"),
)
LATENCIES = ("p50_ms", "p95_ms", "p99_ms", "max_ms", "per_second")
SENSED = ("temperature_c", "throttle_events", "power_w")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bundle.Bundle:
    path = write_bundle(tmp_path_factory.mktemp("bundle") / "b.zip")
    return bundle.read(path, JOB, found(path))


def host(made: t.Any, said: Json | None = None, **other: t.Any) -> Json:
    """What is judged of one device that answered `said`."""
    told = {"edge01": Told(answered() if said is None else said, LOOK, other.get("packages", PACKAGES))}
    whole = document.document(JOB, told, made, JUDGED)
    return t.cast(Json, whole["hosts"]["edge01"])


def of(made: t.Any, **changes: t.Any) -> Json:
    return host(made, answered(measured(**changes)))


def test_where_all_is_well_every_value_is_there(whole: bundle.Bundle) -> None:
    assert document.document(JOB, {"edge01": Told(answered(), LOOK, PACKAGES)}, whole, JUDGED) == {
        "schema": 1,
        "job_id": "12",
        "attempt": 0,
        "expected": 1,
        "limits": LIMITS,
        "hosts": {
            "edge01": {
                "machine": "x86_64",
                "python": "3.11.2",
                "onnxruntime": "1.32.0",
                "numpy": "2.4.6",
                "kernel": "6.1",
                "board": "Jetson AGX Orin",
                "model": "int8",
                "as_judged": True,
                "runtime": "as locked",
                "as_locked": True,
                "cold_start_s": 0.3,
                "p50_ms": 0.4,
                "p95_ms": 0.5,
                "p99_ms": 0.6,
                "max_ms": 0.9,
                "per_second": 2400.0,
                "cpu_share": 0.99,
                "repeats": 0,
                "memory_gb": 0.09,
                "size_mb": 0.001,
                "near": 1.0,
                "temperature_c": 61.5,
                "throttle_events": 0,
                "power_w": 14.2,
                "millijoules_per_inference": 5.5,
                "power_mode": "MAXN",
                "as_powered": True,
                "models": {name: {"p50_ms": 0.4, "p99_ms": 0.6} for name in ("float", "pruned", "int8")},
            }
        },
    }


@pytest.mark.parametrize(
    ("identity", "text"),
    [
        ("unreachable", "Connection refused"),
        ("space", "400 MB are needed and 20 free"),
        ("busy", "run x measures there"),
        ("killed", "signal 9: memory has run out"),
        ("crashed", "exit code 1"),
        ("limit", "the time is up"),
        ("timeout", "Timed out after 3600 second(s)."),
        ("files", "not ours"),
        ("result", "unreadable"),
    ],
)
def test_a_problem_stands_in_the_place_of_each_value(whole: bundle.Bundle, identity: str, text: str) -> None:
    told = host(whole, problem.document({"id": identity, "text": text}))
    assert {told[name] for name in NUMBERS} == {f"{identity}: {text}"}
    assert told["as_judged"] == told["as_locked"] == told["model"] == f"{identity}: {text}"
    assert {told["models"][name][key] for name in told["models"] for key in ("p50_ms", "p99_ms")} == {
        f"{identity}: {text}"
    }
    # Compared with a text, a text would fail where it must be undetermined.
    assert (told["power_mode"], told["runtime"]) == (None, None)
    assert (told["machine"], told["python"]) == ("x86_64", "3.11.2")  # as it was looked at
    assert told["kernel"] == f"{identity}: {text}"  # which a look does not tell


@pytest.mark.parametrize(
    ("asked", "found", "says"),
    [
        ("MAXN", "MAXN", True),
        ("MAXN", "30W", False),
        ("MAXN", None, "tells no power mode; expected MAXN"),
        ("MAXN", "0", "number 0, whose name is not known; expected MAXN"),
        ("0", "0", True),
        ("0", "2", False),
        (None, None, True),
        (None, "30W", True),
        (15, "15", "limits.power_mode is 15; expected text"),
    ],
)
def test_a_power_mode_is_the_one_asked_for(whole: bundle.Bundle, asked: t.Any, found: t.Any, says: t.Any) -> None:
    limits = {**LIMITS, "power_mode": asked}
    other = dataclasses.replace(whole, contents={**whole.contents, "limits": limits})
    told = of(other, power_mode=found)["as_powered"]
    assert says in told if isinstance(says, str) else told is says


@pytest.mark.parametrize("asked", [None, "MAXN"])
def test_of_a_device_that_was_not_measured_no_power_mode_is_right(whole: bundle.Bundle, asked: t.Any) -> None:
    other = dataclasses.replace(whole, contents={**whole.contents, "limits": {**LIMITS, "power_mode": asked}})
    told = host(other, problem.document({"id": "memory", "text": "12 MB are free"}))
    assert told["as_powered"] == "memory: 12 MB are free"


def test_another_runtime_is_a_fault_and_not_a_doubt(whole: bundle.Bundle) -> None:
    told = host(whole, problem.document({"id": "runtime", "text": "onnxruntime 1.19.2 was loaded"}))
    assert (told["as_locked"], told["runtime"]) == (False, "runtime: onnxruntime 1.19.2 was loaded")
    told = of(whole, onnxruntime="1.19.2")
    assert (told["as_locked"], told["runtime"]) == (False, "onnxruntime 1.19.2, expected 1.32.0")
    assert of(whole, numpy=None)["as_locked"] is False


@pytest.mark.parametrize("packages", [None, {"onnxruntime": "1.32.0"}])
def test_where_it_is_not_known_what_is_locked_the_runtime_is_in_doubt(whole: bundle.Bundle, packages: Json) -> None:
    told = host(whole, packages=packages)
    assert (told["as_locked"], told["runtime"]) == ("which versions are locked for it is not known", None)


@pytest.mark.parametrize("result", [None, [1], "fast"])
def test_a_measurement_that_is_no_object_is_none(whole: bundle.Bundle, result: t.Any) -> None:
    told = host(whole, answered(measured=result))
    assert {told[name] for name in NUMBERS if name != "size_mb"} == {"it measured nothing"}
    assert (told["as_locked"], told["runtime"]) == ("it measured nothing", None)


@pytest.mark.parametrize(
    ("model", "told"), [("float", "float"), (5, "int8"), ("", "int8"), (None, "int8"), ("a\x1b[2J", "a\ufffd[2J")]
)
def test_the_model_is_the_devices_or_else_the_bundles(whole: bundle.Bundle, model: t.Any, told: str) -> None:
    assert host(whole, answered(deployed={**answered()["deployed"], "model": model}))["model"] == told


@pytest.mark.parametrize("size", [0, -1, True, "1000", None])
def test_a_size_is_more_than_0(whole: bundle.Bundle, size: t.Any) -> None:
    told = host(whole, answered(deployed={**answered()["deployed"], "bytes": size}))
    assert "expected the size of the file there" in told["size_mb"]


def test_a_byte_is_a_size(whole: bundle.Bundle) -> None:
    assert host(whole, answered(deployed={**answered()["deployed"], "bytes": 1}))["size_mb"] == 1e-06


def test_a_whole_number_stays_one(whole: bundle.Bundle) -> None:
    assert isinstance(host(whole)["throttle_events"], int)


def test_what_a_device_calls_itself_is_a_text_or_is_said_not_to_be_one(whole: bundle.Bundle) -> None:
    told = of(whole, kernel=6.1, board=5)
    assert (told["kernel"], told["board"]) == ("kernel is 6.1; expected text", None)


def test_the_board_is_that_of_the_look_where_the_result_has_none(whole: bundle.Bundle) -> None:
    told = {"edge01": Told(answered(measured(board=None)), {**LOOK, "board": "Raspberry Pi 5"})}
    assert document.document(JOB, told, whole, JUDGED)["hosts"]["edge01"]["board"] == "Raspberry Pi 5"


def test_a_swapped_model_is_told_also_of_a_device_that_could_not_measure_it(whole: bundle.Bundle) -> None:
    other = {"model": "int8", **made_edge.described(b"other")}
    assert host(whole, answered(deployed=other))["as_judged"] is False
    told = host(whole, answered(deployed=other, measured=None, problem={"id": "crashed", "text": "x"}))
    assert (told["as_judged"], told["size_mb"], told["p99_ms"]) == (False, 5e-06, "crashed: x")
    own = answered()["deployed"]
    assert host(whole, answered(deployed={**own, "model": "float"}))["as_judged"] is False


def test_a_whole_bundle_of_another_model_is_not_what_was_judged(whole: bundle.Bundle) -> None:
    def as_judged(by: str | ProblemError, said: Json | None = None) -> t.Any:
        told = document.document(JOB, {"edge01": Told(said or answered())}, whole, by)
        return told["hosts"]["edge01"]["as_judged"]

    assert as_judged(JUDGED) is True
    assert as_judged("0" * 64) is False
    unknown = ProblemError("metrics", "which model was judged is not known")
    assert as_judged(unknown) == "metrics: which model was judged is not known"
    other = {"model": "int8", **made_edge.described(b"other")}
    assert as_judged(unknown, answered(deployed=other)) is False  # it is not even the bundle's


@pytest.mark.parametrize("deployed", [None, {}, {"model": "int8"}, {"model": "int8", "sha256": "x"}, [1], "int8"])
def test_a_device_that_does_not_say_what_it_has_is_in_doubt(whole: bundle.Bundle, deployed: t.Any) -> None:
    told = host(whole, answered(deployed=deployed))
    assert "expected the SHA-256 of the file there" in told["as_judged"]
    assert "expected the size of the file there" in told["size_mb"]


def test_disturbed_times_say_nothing(whole: bundle.Bundle) -> None:
    latency = {
        **measured()["latency"],
        "undisturbed": False,
        "disturbed_by": "the CPU was its own for 41%",
        "cpu_share": 0.41,
    }
    told = of(whole, latency=latency, repeats=[latency, latency])
    assert {told[name] for name in LATENCIES} == {"disturbed: the CPU was its own for 41%"}
    assert (told["cpu_share"], told["repeats"], told["near"]) == (0.41, 2, 1.0)
    assert told["models"]["int8"]["p50_ms"] == 0.4
    told = of(whole, compared={"undisturbed": False, "disturbed_by": "a neighbour"})
    assert (told["p99_ms"], told["models"]["int8"]["p50_ms"]) == (0.6, "disturbed: a neighbour")


@pytest.mark.parametrize("calm", [None, 1, "true", []])
def test_what_does_not_say_that_it_was_undisturbed_was_not(whole: bundle.Bundle, calm: t.Any) -> None:
    told = of(whole, latency={**measured()["latency"], "undisturbed": calm})
    assert "expected true or false" in told["p99_ms"]


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        ({"cpu_share": 0.41, "run_delay": 0.0}, "latency.cpu_share is 0.41; expected 0.95 to 1.05"),
        ({"cpu_share": 0.98}, "latency.cpu_share is 0.98; expected 0.99 to 1.05"),  # and nothing counted the waiting
        ({"cpu_share": None}, "latency.cpu_share is null"),
        ({"cpu_share": "NaN"}, "latency.cpu_share is NaN"),
        ({"run_delay": 0.011}, "latency.run_delay is 0.011; expected 0 to 0.01"),
        ({"run_delay": "NaN"}, "latency.run_delay is NaN"),
        ({"throttled_periods": 1}, "latency.throttled_periods is 1; expected 0"),
        ({"throttled_periods": False}, "latency.throttled_periods is false"),
        ({"cpu_share": 57.0}, "latency.cpu_share is 57; expected 0.99 to 1.05"),
        ({"run_delay": -5.0}, "latency.run_delay is -5; expected 0 to 0.01"),
        ({"throttled_periods": "none"}, "latency.throttled_periods is the text"),
    ],
)
def test_undisturbed_is_not_taken_on_trust(whole: bundle.Bundle, figures: Json, says: str) -> None:
    told = of(whole, latency={**measured()["latency"], **figures})
    assert {told[name].partition(says)[0] for name in LATENCIES} == {"disturbed: "}
    told = of(whole, compared={"undisturbed": True, **figures})
    assert told["models"]["int8"]["p50_ms"].startswith("disturbed: compared.")


@pytest.mark.parametrize(
    "figures",
    [
        {"cpu_share": 0.95, "run_delay": 0.01, "throttled_periods": 0},
        {"cpu_share": 1.05, "run_delay": 0.0},
        {"cpu_share": 0.99},
    ],
)
def test_just_undisturbed_is_undisturbed(whole: bundle.Bundle, figures: Json) -> None:
    assert of(whole, latency={**measured()["latency"], **figures})["p99_ms"] == 0.6


def test_controller_and_device_mean_the_same_by_undisturbed() -> None:
    device = (ROOT / "files/edge/disturbance.py").read_text(encoding="utf-8")
    assert f"CPU_SHARE, RUN_DELAY = {CPU_SHARE}, {RUN_DELAY}" in device


def test_a_measurement_without_its_latency_has_none(whole: bundle.Bundle) -> None:
    told = of(whole, latency=None, models=None, repeats=None)
    assert all(isinstance(told[name], str) for name in (*LATENCIES, "cpu_share", "repeats"))
    assert isinstance(told["models"]["float"]["p50_ms"], str)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"answers_b64": None}, "answers_b64 is null"),
        ({"answers_b64": "???"}, "its answers cannot be compared"),
        ({"answers_b64": f"!{measured()['answers_b64']}"}, "its answers cannot be compared"),
        ({"answers_b64": base64.b64encode(made_edge.raw([1.0])).decode()}, "4 bytes; expected 4000"),
        ({"answers_shape": [500, 2]}, "expected (1000, 1)"),
        ({"answers_shape": "many"}, "expected whole numbers"),
        ({"answers_shape": [1 << 40, 1]}, "at most"),
    ],
)
def test_answers_that_cannot_be_compared_are_told(whole: bundle.Bundle, changes: Json, says: str) -> None:
    assert says in of(whole, **changes)["near"]


def test_answers_of_other_weights_are_not_near(whole: bundle.Bundle) -> None:
    other = base64.b64encode(made_edge.raw([value + 0.5 for value in made_edge.ANSWERS])).decode()
    assert of(whole, answers_b64=other)["near"] == 0.0


def test_what_sensors_do_not_say_is_told_with_their_reason(whole: bundle.Bundle) -> None:
    soak = copy.deepcopy(measured()["soak"])
    soak["temperature"] = {"highest": None, "error": "no thermal zone can be read"}
    soak["throttle"] = {"events": None, "error": "nothing says whether the board was throttled"}
    soak["power"] = {"mean": None, "error": "no power monitor in sysfs"}
    del soak["millijoules_per_inference"]
    told = of(whole, soak=soak)
    assert told["temperature_c"] == "no thermal zone can be read"
    assert told["throttle_events"] == "nothing says whether the board was throttled"
    assert told["power_w"] == "no power monitor in sysfs"
    assert told["millijoules_per_inference"] == "no power monitor in sysfs; no energy counter in sysfs"


@pytest.mark.parametrize(("power", "energy"), [(None, None), ("", 5), ("", "")])
def test_energy_that_is_missing_for_no_reason_is_told_so(whole: bundle.Bundle, power: t.Any, energy: t.Any) -> None:
    soak = {**measured()["soak"], "power": {"mean": 1.0, "error": power}, "energy": {"error": energy}}
    del soak["millijoules_per_inference"]
    told = of(whole, soak=soak)["millijoules_per_inference"]
    assert told == "its result does not have the energy of an inference"


def test_a_sensor_that_was_gone_for_a_while_says_nothing_for_sure(whole: bundle.Bundle) -> None:
    soak = {**measured()["soak"], "temperature": {"highest": 61.5, "error": "cpu could not be read all the time"}}
    assert of(whole, soak=soak)["temperature_c"] == "cpu could not be read all the time; read: 61.5"


@pytest.mark.parametrize(
    ("soak", "says"), [(None, "there was no soak"), ([], "soak is an empty list"), ({}, "expected a number above 0")]
)
def test_without_a_soak_no_sensor_says_anything(whole: bundle.Bundle, soak: t.Any, says: str) -> None:
    told = of(whole, soak=soak)
    assert all(says in told[name] for name in SENSED)
    assert isinstance(told["millijoules_per_inference"], str)


@pytest.mark.parametrize("value", [None, "0.3", True, -1, "NaN", {}, [], float("nan"), float("inf")])
def test_what_is_no_number_is_a_text(whole: bundle.Bundle, value: t.Any) -> None:
    told = of(whole, cold_start_seconds=value, peak_rss_bytes=value)
    assert all("expected a number above 0" in told[name] for name in ("cold_start_s", "memory_gb"))


@pytest.mark.parametrize("value", [None, "0.3", True, -1, "NaN", {}, [], float("nan"), float("inf")])
def test_a_share_is_a_number_or_a_text(whole: bundle.Bundle, value: t.Any) -> None:
    told = of(whole, latency={**measured()["latency"], "cpu_share": value})
    assert "latency.cpu_share is" in told["cpu_share"]
    assert "expected a number, 0 or more" in told["cpu_share"]


@pytest.mark.parametrize("value", [0, 0.0, -0.0, -1, -0.5])
def test_what_no_device_has_is_within_no_bound(whole: bundle.Bundle, value: float) -> None:
    timed = dict.fromkeys(("p50_ms", "p95_ms", "p99_ms", "max_ms"), value)
    soak = copy.deepcopy(measured()["soak"])
    soak["temperature"]["highest"] = soak["power"]["mean"] = soak["millijoules_per_inference"] = value
    told = of(
        whole,
        latency={**measured()["latency"], **timed},
        models=dict.fromkeys(measured()["models"], timed),
        soak=soak,
        cold_start_seconds=value,
        peak_rss_bytes=value,
    )
    names = (*timed, "cold_start_s", "memory_gb", "temperature_c", "power_w", "millijoules_per_inference")
    values = [*(told[name] for name in names), told["models"]["int8"]["p99_ms"]]
    assert [each for each in values if "which no device has; expected a number above 0" not in str(each)] == []
    assert told["p99_ms"].startswith("latency.p99_ms is ")


def test_none_of_what_may_be_0_is_doubted(whole: bundle.Bundle) -> None:
    told = of(whole, latency={**measured()["latency"], "cpu_share": 0})
    assert (told["cpu_share"], told["throttle_events"], told["repeats"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"inferences": 999}, "latency.inferences is 999; expected 1000 at least"),
        ({"inferences": None}, "latency.inferences is null; expected a number above 0"),
        ({"inferences": 0}, "latency.inferences is 0, which no device has"),
        ({"inferences": 23_900}, "its inferences took 9.96 s; expected 10 s at least"),
        ({"per_second": 1e9}, "its inferences took 2.4e-05 s; expected 10 s at least"),
        ({"per_second": None}, "latency.per_second is null"),
        ({"per_second": 0}, "latency.per_second is 0, which no device has"),
    ],
)
def test_times_that_are_fewer_than_were_asked_for_say_nothing(whole: bundle.Bundle, changes: Json, says: str) -> None:
    told = of(whole, latency={**measured()["latency"], **changes})
    assert {says in told[name] for name in LATENCIES} == {True}


@pytest.mark.parametrize(("count", "seconds"), [(1000, 10.0), (1000, 36.7), (99_991, 10.000003)])
def test_times_just_as_many_as_were_asked_for_count(whole: bundle.Bundle, count: int, seconds: float) -> None:
    times = {"inferences": count, "per_second": count / seconds, "max_ms": 40.0}
    assert of(whole, latency={**measured()["latency"], **times})["p99_ms"] == 0.6


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"p50_ms": 40.0}, "latency.p50_ms is 40 and p95_ms is 0.5"),
        ({"p95_ms": 4.5}, "latency.p95_ms is 4.5 and p99_ms is 0.6"),
        ({"p99_ms": 4.9}, "latency.p99_ms is 4.9 and max_ms is 0.9"),
        ({"per_second": 20.0}, "latency.per_second is 20 and max_ms is 0.9"),
        ({"per_second": 555.0}, "latency.per_second is 555 and max_ms is 0.9"),
        ({"per_second": 0.1}, "latency.per_second is 0.1 and max_ms is 0.9"),
    ],
)
def test_times_that_contradict_each_other_say_nothing(whole: bundle.Bundle, changes: Json, says: str) -> None:
    told = of(whole, latency={**measured()["latency"], **changes})
    assert {told[name] for name in LATENCIES} == {f"{says}: they contradict each other"}


def test_an_average_of_twice_the_longest_time_is_possible(whole: bundle.Bundle) -> None:
    assert of(whole, latency={**measured()["latency"], "max_ms": 1.0, "per_second": 500.0})["max_ms"] == 1.0


@pytest.mark.parametrize("name", ["p50_ms", "p95_ms", "p99_ms", "max_ms"])
def test_a_time_that_is_no_number_contradicts_no_other(whole: bundle.Bundle, name: str) -> None:
    told = of(whole, latency={**measured()["latency"], name: "fast"})
    assert [each for each in LATENCIES if isinstance(told[each], str)] == [name]
    assert f"latency.{name} is the text" in told[name]


def test_times_of_models_that_contradict_each_other_say_nothing(whole: bundle.Bundle) -> None:
    told = of(whole, models={**measured()["models"], "int8": {"p50_ms": 0.7, "p99_ms": 0.6}})["models"]
    assert told["int8"]["p50_ms"] == "models.int8.p50_ms is 0.7 and p99_ms is 0.6: they contradict each other"
    assert told["float"]["p99_ms"] == 0.6


@pytest.mark.parametrize(
    ("quantity", "changes", "says"),
    [
        ("temperature", {"zones": {}}, "soak.temperature.zones is"),
        ("temperature", {"zones": {"cpu": 99.0}}, "highest is 61.5, and the hottest zone has 99"),
        ("temperature", {"zones": {"cpu": "61.5"}}, "soak.temperature.zones is"),
        ("temperature", {"error": ""}, "soak.temperature.error is"),
        ("temperature", {"error": False}, "soak.temperature.error is"),
        ("throttle", {"counters": {"a": 5}}, "events is 0, and its parts have 5"),
        ("throttle", {"samples_throttled": {"a": 5}}, "events is 0, and its parts have 5"),
        ("throttle", {"firmware_bits": 6}, "events is 0, and its parts have 2"),
        ("throttle", {"firmware_bits": "none"}, "soak.throttle.firmware_bits is"),
        ("throttle", {"counters": {"a": -1}}, "soak.throttle.counters is"),
        ("throttle", {"counters": None}, "soak.throttle.counters is"),
        ("throttle", {"error": []}, "soak.throttle.error is"),
        ("throttle", {"counters": {}}, "it does not say if it was throttled"),
        ("power", {"rails": []}, "soak.power.rails is"),
        ("power", {"rails": ["FAN"]}, "soak.power.rails are FAN; expected VDD_IN"),
        ("power", {"rails": "VDD_IN"}, "soak.power.rails is"),
        ("power", {"error": 0}, "soak.power.error is"),
    ],
)
def test_a_sensor_is_believed_only_with_what_was_read(
    whole: bundle.Bundle, quantity: str, changes: Json, says: str
) -> None:
    soak = copy.deepcopy(measured()["soak"])
    soak[quantity].update(changes)
    (name,) = [each for each in SENSED if each.startswith(quantity)]
    assert says in of(whole, soak=soak)[name]


@pytest.mark.parametrize("quantity", ["temperature", "throttle", "power"])
def test_a_sensor_that_does_not_say_whether_it_was_read_is_not_believed(whole: bundle.Bundle, quantity: str) -> None:
    soak = copy.deepcopy(measured()["soak"])
    del soak[quantity]["error"]
    (name,) = [each for each in SENSED if each.startswith(quantity)]
    assert "does not say whether it was read all the time" in of(whole, soak=soak)[name]


def test_any_rails_count_where_the_profile_names_none(whole: bundle.Bundle) -> None:
    limits = {**LIMITS, "power_rails": None}
    unnamed = dataclasses.replace(whole, contents={**whole.contents, "limits": limits})
    soak = copy.deepcopy(measured()["soak"])
    soak["power"]["rails"] = ["VDD_GPU_SOC", "VDD_CPU_CV"]
    assert of(unnamed, soak=soak)["power_w"] == 14.2


@pytest.mark.parametrize(
    ("changes", "result", "says"),
    [
        ({"host": "orin02"}, {}, 'it is of the device "orin02"; the one that was looked at is orin01'),
        ({"host": None}, {}, "it is of the device null; the one that was looked at is orin01"),
        ({"host": "orin01"}, {"machine": "aarch64"}, 'it is of a processor "aarch64"; the device'),
        ({"host": "orin01"}, {"machine": None}, "it is of a processor null; the device"),
    ],
)
def test_the_answer_of_another_device_says_nothing_of_this_one(
    whole: bundle.Bundle, changes: Json, result: Json, says: str
) -> None:
    look = {**LOOK, "device": "orin01 abc"}
    told = Told(answered(measured(**result), **changes), look, PACKAGES)
    host = document.document(JOB, {"edge01": told}, whole, JUDGED)["hosts"]["edge01"]
    assert {says in str(host[name]) for name in (*NUMBERS, "as_judged", "as_locked")} == {True}


@pytest.mark.parametrize("kernel", ["aarch64", "armv8l"])
def test_a_python_of_32_bits_may_run_on_a_kernel_of_64(whole: bundle.Bundle, kernel: str) -> None:
    told = Told(answered(measured(machine=kernel)), {**LOOK, "machine": "armv8l"}, PACKAGES)
    assert document.document(JOB, {"edge01": told}, whole, JUDGED)["hosts"]["edge01"]["p99_ms"] == 0.6


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seconds": 59.9}, "soak.seconds is 59.9; expected 60 at least"),
        ({"samples": 1}, "soak.samples is 1; expected 2 at least"),
        ({"samples": None}, "soak.samples is null; expected 2 at least"),
        ({"seconds": None}, "soak.seconds is null"),
        ({"seconds": 0}, "soak.seconds is 0"),
        ({"inferences": 0}, "soak.inferences is 0"),
        ({"inferences": None}, "soak.inferences is null"),
    ],
)
def test_sensors_of_a_soak_that_was_too_short_say_nothing(whole: bundle.Bundle, changes: Json, says: str) -> None:
    told = of(whole, soak={**measured()["soak"], **changes})
    assert {says in told[name] for name in (*SENSED, "millijoules_per_inference")} == {True}


def test_a_soak_just_as_long_as_was_asked_for_counts(whole: bundle.Bundle) -> None:
    told = of(whole, soak={**measured()["soak"], "seconds": 60, "inferences": 1, "samples": 2})
    assert (told["temperature_c"], told["power_w"]) == (61.5, 14.2)


def test_a_soak_of_unknown_length_says_nothing(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "b.zip", limits={**LIMITS, "soak_seconds": "60"})
    told = host(bundle.read(path, JOB, found(path)))
    assert {"soak_seconds is the text" in told[name] for name in SENSED} == {True}


def test_few_answers_say_nothing_however_near_they_are(tmp_path: Path) -> None:
    for count, near in ((999, None), (1000, 1.0)):
        values = made_edge.ANSWERS[:count]
        path = write_bundle(tmp_path / "b.zip", {**made_edge.files(), "answers.npy": made_edge.npy(values, (count, 1))})
        encoded = base64.b64encode(made_edge.raw(values)).decode()
        said = answered(measured(answers_b64=encoded, answers_shape=[count, 1]))
        told = host(bundle.read(path, JOB, found(path)), said)["near"]
        assert told == (near or "the cluster's answers to compare with are 999; expected 1000 at least")


def test_one_answer_without_a_shape_says_nothing(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "b.zip", {**made_edge.files(), "answers.npy": made_edge.npy([0.5], ())})
    told = host(bundle.read(path, JOB, found(path)), answered(measured()))["near"]
    assert told == "the cluster's answers to compare with are 1; expected 1000 at least"


def test_without_a_bundle_every_value_says_so() -> None:
    told = document.document(
        JOB,
        {
            "edge01": Told(answered(), LOOK, PACKAGES),
            "edge02": Told(problem.document(problem.problem("unreachable", "x"))),
        },
        ProblemError("job", "its job did not end well: FAILED"),
        JUDGED,
    )
    why = "job: its job did not end well: FAILED"
    assert (told["expected"], told["job_id"], told["attempt"]) == (2, "12", 0)
    assert told["limits"] == dict.fromkeys(LIMITS, why)
    assert {told["hosts"]["edge01"][name] for name in (*NUMBERS, "as_judged", "as_locked", "model")} == {why}
    assert {told["hosts"]["edge02"][name] for name in NUMBERS} == {"unreachable: x"}
    assert told["hosts"]["edge02"]["as_judged"] == "unreachable: x"


def test_answers_of_a_bundle_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "b.zip", {**made_edge.files(), "answers.npy": b"x"})
    told = host(bundle.read(path, JOB, found(path)))
    assert told["near"] == "answers.npy of the bundle: it is not a .npy file"
    assert told["p99_ms"] == 0.6


def test_a_limit_that_the_bundle_does_not_have_is_a_text(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "b.zip", limits={"soak_seconds": 1.0, "latency_ms": 5.0})
    told = document.document(JOB, {}, bundle.read(path, JOB, found(path)), JUDGED)["limits"]
    assert (told["latency_ms"], told["size_mb"]) == (5.0, "the bundle does not have this limit")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["error", "highest", "p50_ms"]), inner),
    max_leaves=6,
)


@given(anything, st.sampled_from(sorted(measured())))
def test_whatever_a_device_measured_the_document_is_made(whole: bundle.Bundle, value: t.Any, key: str) -> None:
    told = of(whole, **{key: value})
    assert all(isinstance(told[name], (int, float, str)) and not isinstance(told[name], bool) for name in NUMBERS)
    json.dumps(told, allow_nan=False)


def test_every_criterion_of_the_collection_asks_for_what_is_there(whole: bundle.Bundle) -> None:
    manifest = yaml.safe_load((ROOT / "files/workloads/embedded_profile/workload.yml").read_text())
    asked = [each["each"]["query"] for each in manifest["criteria"] if each.get("each", {}).get("over") == "edge.hosts"]
    assert len(asked) >= 10
    assert [query for query in asked if query.split(".")[0] not in host(whole)] == []


# -- from the files in the run's folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / RUN
    write_bundle(results.bundle_path(folder, "PROFILE-EMBEDDED"))
    told = made_edge.metrics(results.bundle_path(folder, "PROFILE-EMBEDDED"))
    results.metrics_path(folder, "PROFILE-EMBEDDED").write_text(json.dumps(told))
    return folder


READY: Json = {"look": LOOK, "requirement": {}, "wheelhouse": {"packages": PACKAGES}, "problem": None}


def made(run: Path, hosts: Json, **more: t.Any) -> Json:
    path = results.bundle_path(run, "PROFILE-EMBEDDED")
    text = edge_document(hosts, str(run), "PROFILE-EMBEDDED", JOB, found=more.pop("found", found(path)), **more)
    return t.cast(Json, json.loads(text))


def test_the_answers_of_all_hosts_become_one_document(run: Path) -> None:
    results.write(run, "PROFILE-EMBEDDED", "edge01", answered())
    results.write(run, "PROFILE-EMBEDDED", "edge02", problem.document(problem.problem("space", "full")))
    gone = {"look": None, "wheelhouse": None, "problem": {"id": "unreachable", "text": "no route"}}
    out = {"look": None, "wheelhouse": None, "problem": problem.problem(problem.LEFT_OUT, "left out by --limit login")}
    told = made(run, {"edge01": READY, "edge02": READY, "edge03": gone, "edge04": out, "edge05": READY})
    assert (told["expected"], told["hosts"]["edge01"]["as_locked"]) == (5, True)
    assert {name: each["p99_ms"] for name, each in told["hosts"].items()} == {
        "edge01": 0.6,
        "edge02": "space: full",
        "edge03": "unreachable: no route",
        "edge04": "left out by --limit login",
        "edge05": "result: it was not measured",
    }


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({}, True),
        ({"models": {"int8": {"sha256": "0" * 64}}}, False),
        ({"job_id": "11"}, "is of another job or attempt"),
        ({"attempt": 1}, "is of another job or attempt"),
        ({"attempt": False}, "is of another job or attempt"),
        ({"models": {}}, "models.int8.sha256 in metrics-PROFILE-EMBEDDED.json is null"),
        ({"models": {"int8": {"sha256": "x"}}}, "models.int8.sha256"),
        ({"models": [1]}, "models.int8.sha256"),
        ({"deployed": None}, "deployed in metrics-PROFILE-EMBEDDED.json is null; expected text"),
        ({"bundle": {}}, "bundle.sha256 in metrics-PROFILE-EMBEDDED.json is null"),
        ({"bundle": "x"}, "bundle.sha256"),
        ({"bundle": {"sha256": "0" * 63}}, "expected a SHA-256"),
        ([], "is of another job or attempt"),
        (None, "metrics-PROFILE-EMBEDDED.json: No such file"),
        ("{", "metrics-PROFILE-EMBEDDED.json: "),
        ("[" * 100_000, "metrics-PROFILE-EMBEDDED.json: "),
    ],
)
def test_what_was_judged_is_in_the_metrics_of_the_job(run: Path, metrics: t.Any, expected: bool | str) -> None:
    path = results.metrics_path(run, "PROFILE-EMBEDDED")
    if metrics is None:
        path.unlink()
    else:
        whole = json.loads(path.read_text())
        told = {**whole, **metrics} if isinstance(metrics, dict) else metrics
        path.write_text(told if isinstance(told, str) else json.dumps(told))
    results.write(run, "PROFILE-EMBEDDED", "edge01", answered())
    told = made(run, {"edge01": READY})["hosts"]["edge01"]
    assert told["p99_ms"] == 0.6
    if isinstance(expected, bool):
        assert told["as_judged"] is expected
    else:
        assert told["as_judged"].startswith("metrics: which model was judged is not known: ")
        assert expected in told["as_judged"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"deployed": "float"}, "it deploys int8; expected float"),
        ({"bundle": {"sha256": "0" * 64}}, f"expected {'0' * 64}"),
    ],
)
def test_a_bundle_that_was_not_judged_fails_and_says_nothing_else(run: Path, changes: Json, says: str) -> None:
    path = results.metrics_path(run, "PROFILE-EMBEDDED")
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    why = "bundle: deploy.zip is not the one that was judged: "
    results.write(run, "PROFILE-EMBEDDED", "edge01", answered())  # it was put there after it was measured
    gone = {"look": None, "wheelhouse": None, "problem": {"id": "unreachable", "text": "no route"}}
    told = made(run, {"edge01": READY, "edge02": gone})
    for name in (*NUMBERS, "model"):
        assert told["hosts"]["edge01"][name].startswith(why)
        assert says in told["hosts"]["edge01"][name]
    assert told["hosts"]["edge01"]["as_judged"] is False
    assert told["hosts"]["edge02"]["as_judged"] == "unreachable: no route"
    assert {each.startswith(why) for each in told["limits"].values()} == {True}
    text = told["hosts"]["edge01"]["p99_ms"].removeprefix("bundle: ")
    results.write(run, "PROFILE-EMBEDDED", "edge01", problem.document(problem.problem("bundle", text)))  # by edge_host
    assert made(run, {"edge01": READY})["hosts"]["edge01"]["as_judged"] is False


def test_a_whole_bundle_of_another_model_fails(run: Path) -> None:
    other = {**made_edge.files(), "int8.onnx": b"another model"}
    write_bundle(results.bundle_path(run, "PROFILE-EMBEDDED"), other)
    results.write(
        run, "PROFILE-EMBEDDED", "edge01", answered(deployed={"model": "int8", **made_edge.described(b"another model")})
    )
    told = made(run, {"edge01": READY})["hosts"]["edge01"]
    assert told["as_judged"] is False
    assert "its SHA-256 is" in told["near"]


def test_metrics_of_so_many_bytes_are_read_and_more_are_not(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = results.metrics_path(run, "PROFILE-EMBEDDED")
    monkeypatch.setattr(judged, "MAX_BYTES", path.stat().st_size)
    whole = of_run(run)
    assert judged.sha256(path, JOB, whole) == JUDGED
    path.write_text(f"{path.read_text()} ")
    with pytest.raises(ProblemError, match="more than"):
        judged.sha256(path, JOB, whole)


def of_run(run: Path) -> bundle.Bundle:
    path = results.bundle_path(run, "PROFILE-EMBEDDED")
    return bundle.read(path, JOB, found(path))


def test_a_bundle_that_is_gone_since_it_was_read_is_told(run: Path) -> None:
    whole = of_run(run)
    whole.path.unlink()
    with pytest.raises(ProblemError, match=r"bundle: .*cannot be read: No such file") as caught:
        judged.sha256(results.metrics_path(run, "PROFILE-EMBEDDED"), JOB, whole)
    assert not isinstance(caught.value, judged.OtherBundleError)  # that is not known


class Kept(io.BytesIO):
    """A file that can be asked afterwards how far it was read."""

    def close(self) -> None:
        pass


def test_of_metrics_without_end_one_byte_too_many_is_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, whole = Kept(b" " * 100), of_run(run)
    monkeypatch.setattr(judged, "MAX_BYTES", 10)
    monkeypatch.setattr(Path, "open", lambda *_given: stream)
    with pytest.raises(ProblemError, match="more than 10 bytes"):
        judged.sha256(run, JOB, whole)
    assert stream.tell() == 11


def test_of_an_answer_without_end_one_byte_too_many_is_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Kept(b" " * 100)
    monkeypatch.setattr(results, "MAX_BYTES", 10)
    monkeypatch.setattr(Path, "open", lambda *_given: stream)
    assert "more than 10 bytes" in results.read(run, "W-1", "edge01")["problem"]["text"]
    assert stream.tell() == 11


def test_why_a_task_failed_is_the_reason_of_a_missing_answer(run: Path) -> None:
    told = made(run, {"edge01": READY, "edge02": READY}, failures={"edge01": "no such connection", "edge02": ""})
    assert told["hosts"]["edge01"]["p99_ms"] == "result: no such connection"
    assert told["hosts"]["edge02"]["p99_ms"] == "result: it was not measured"


def test_a_bundle_that_could_not_be_fetched_is_the_reason_of_all(run: Path) -> None:
    results.write(run, "PROFILE-EMBEDDED", "edge01", answered())
    told = made(run, {"edge01": READY}, found={"stat": {"exists": False}})
    assert told["hosts"]["edge01"]["p99_ms"] == "bundle: its job left no deploy.zip"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "cannot be read"),
        (b'{"schema": 1, "schema": 1}', "appears twice"),
        (b"\xff", "cannot be read"),
        (b"[1]", "not a document of schema 1"),
        (b'{"schema": 2}', "not a document of schema 1"),
        (b'{"schema": 1}', "neither a result nor a problem"),
        (
            json.dumps(answered(folder="/h/.hpc_validation/20250101T000000Z-000000")).encode(),
            "expected a folder of the run",
        ),
    ],
)
def test_an_answer_that_is_torn_or_foreign_is_told(run: Path, content: bytes, says: str) -> None:
    path = results.path(run, "PROFILE-EMBEDDED", "edge01")
    path.parent.mkdir()
    path.write_bytes(content)
    told = made(run, {"edge01": READY})["hosts"]["edge01"]
    assert told["p99_ms"].startswith("result: ")
    assert says in told["p99_ms"]


def test_an_answer_without_end_is_not_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = results.write(run, "PROFILE-EMBEDDED", "edge01", answered())
    monkeypatch.setattr(results, "MAX_BYTES", place.stat().st_size)
    assert made(run, {"edge01": READY})["hosts"]["edge01"]["p99_ms"] == 0.6
    monkeypatch.setattr(results, "MAX_BYTES", 100)
    assert "has more than 100 bytes" in made(run, {"edge01": READY})["hosts"]["edge01"]["p99_ms"]


def test_a_name_that_is_no_files_stays_in_the_folder(run: Path) -> None:
    for name in ("../../x", "a/b", "..", "edge 01", "ä"):
        path = results.path(run, "PROFILE-EMBEDDED", name)
        assert path.parent == run / "edge" / "PROFILE-EMBEDDED"
        results.write(run, "PROFILE-EMBEDDED", name, answered())
        assert results.read(run, "PROFILE-EMBEDDED", name) == answered()
    assert results.path(run, "W-1", "edge01").name == "edge01.json"


def test_the_answer_of_another_workload_of_the_run_is_foreign(run: Path) -> None:
    results.write(run, "W-1", "edge01", answered())
    assert f"expected a folder of the run {RUN}-W-1" in results.read(run, "W-1", "edge01")["problem"]["text"]
