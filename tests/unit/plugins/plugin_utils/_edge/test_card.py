# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The deployment card: everything that is known, nothing made up, and what is not known with the reason."""

from __future__ import annotations

import ast
import copy
import json
import re
import shlex

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import card, card_device, card_page
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.markdown import NOT_MEASURED
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.conftest import ROOT
from tests.unit.plugins.plugin_utils._edge import made_card
from tests.unit.plugins.plugin_utils._edge.made_card import HOST, WORKLOAD, sources

HEADINGS = [
    "# Deployment card: embedded-orin, version 1.1",
    "## What is deployed",
    "## Float, pruned, INT8",
    "## Devices",
    "## How it was made",
    "## Where it comes from",
    "## What was not measured",
    "## The same file on another device",
]
RAILS = r"VDD\_GPU\_SOC, VDD\_CPU\_CV, VIN\_SYS\_5V0"
FIGURES = [key for key, _title, _unit in card_device.FIGURES]


def made(**changes):
    """A card and its page; the card is valid."""
    document = card.document(sources(**changes))
    assert schema.problems("card", document) == []
    return document, card_page.markdown(document)


def with_evidence(change):
    """The evidence after a change of it."""
    found = made_card.evidence()
    change(found)
    return found


def with_host(**changes):
    """The evidence with other values of the device."""
    return with_evidence(lambda found: found["edge"]["hosts"][HOST].update(changes))


def headings(page):
    return re.findall(r"^#+ .*$", re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)


def section(page, title):
    return page.partition(f"## {title}\n")[2].partition("\n## ")[0]


def rows(page, first):
    """The cells of the row of a table that begins with that, in every table."""
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in page.splitlines()
        if line.startswith(f"| {first} |")
    ]


def unknown(document, where=HOST):
    """What is not known of the host, with the reason."""
    return {each["what"]: each["why"] for each in document["not_measured"] if each["where"] == where}


def test_the_example_is_such_a_card(example):
    assert json.loads(json.dumps(made()[0])) == example("card")


def test_the_page_has_everything_of_a_whole_run():
    document, page = made()
    assert headings(page) == HEADINGS
    for expected in (
        "workload `PROFILE-EMBEDDED`",
        "document `95-00-06-02-A-102`",
        "**Verdict: pass.** every applicable criterion passed",
        "- Owner: ml-team&#64;example.org",
        "- Data classification: internal",
        "- Licence: proprietary",
        "- Approved by: nobody",
        "- Notes: 24 to 48 hours for 50 epochs are the document's figure.",
        f"- SHA-256: `{made_card.INT8}`",
        "- The same file was on: edge01",
        "1 not applicable, 1 pass",
        "the profile's bound is 5 ms",
        "After 150 more steps its error is 0.4186, that of the unpruned model after as many 0.4187",
        "24 products in whole numbers",
        f"SHA-256 of the job's script `{'d' * 64}`",
        f"SHA-256 of its lock `{'7' * 64}`",
        f"of the trained ones `{'6' * 64}`",
        "**Trained on a stand-in for the data**",
    ):
        assert expected in page, expected
    forms, facts, latency, soak = rows(page, HOST)
    assert forms == [HOST, "0.710, 0.980", "0.550, 0.800", "0.400, 0.600", f"4.2 mJ ({RAILS})"]
    assert facts[1:6] == ["NVIDIA Jetson AGX Orin Developer Kit", "aarch64", "5.10.192-tegra", "3.8.10", "1.19.2"]
    assert facts[-1] == "MAXN"
    assert latency[1:] == ["0.401", "0.520", "0.610", "3.200", "2,410", "100.00%", "yes", "[SVG](latency-edge01.svg)"]
    assert soak[1:6] == ["0.31 s", "0.066 GB", "61.5 °C", "0", "10.10 W"]
    assert soak[6] == RAILS
    assert rows(page, "Float")[0][1:] == ["0.4187", "3.32 MB", "0.520 ms", "0.680 ms", "pruned"]
    assert rows(page, "INT8 (deployed)")[0][-1] == "none"
    assert unknown(document) == {"TensorRT": card_device.NO_ENGINE}
    assert NOT_MEASURED not in page.replace("## What was not measured", "")


def test_metrics_may_have_the_errors_by_their_own_names():
    def rename(found):
        metrics = found["metrics"]
        for model in metrics["models"].values():
            model["mae"] = model.pop("error")
        metrics["pruning"].update(tuned_mae=0.41, control_mae=0.42, tuned=None, control=None)
        metrics["source"] = {"from": "the profile", "mae": 0.46}

    document, _page = made(evidence=with_evidence(rename))
    assert [model["error"] for model in document["models"]] == [0.4187, 0.4186, 0.4192]
    assert (document["made"]["pruning"]["tuned_error"], document["made"]["pruning"]["control_error"]) == (0.41, 0.42)
    assert document["made"]["from_error"] == 0.46


def test_of_classes_the_error_is_no_mae():
    profile = {**made_card.profile(), "model": {"task": "classification"}}
    assert "| Wrong answers |" in made(profile=profile)[1]


# -- what is not known


@pytest.mark.parametrize("key", FIGURES)
def test_a_text_in_place_of_a_figure_is_told_and_no_figure_is_made_up(key):
    document, page = made(evidence=with_host(**{key: "no thermal zone can be read"}))
    title = next(title for name, title, _unit in card_device.FIGURES if name == key)
    assert unknown(document)[title] == "no thermal zone can be read"
    assert f"- edge01: {title}: no thermal zone can be read" in section(page, "What was not measured")
    assert document["devices"][0]["figures"][key] == "no thermal zone can be read"
    if key != "size_mb":
        assert NOT_MEASURED in page.partition("## How it was made")[0]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, card_device.UNJUDGED),
        ("", card_device.UNJUDGED),
        (True, "expected a number, found true, a boolean"),
        ("NaN", "expected a number, found NaN"),
        ({"non_finite": "Infinity"}, "expected a number, found Infinity"),
        ([1], "expected a number, found a list of 1"),
    ],
)
def test_what_is_no_number_is_no_figure(value, why):
    document, _page = made(evidence=with_host(p99_ms=value))
    assert document["devices"][0]["figures"]["p99_ms"] == why
    assert unknown(document)["latency p99"] == why


def disturbed_answer():
    answer = made_card.answer()
    for name in ("latency", "compared"):
        answer["measured"][name].update(undisturbed=False, disturbed_by="the CPU was this process's for 41%")
    return answer


def test_a_disturbed_device_has_no_latency_but_a_histogram_that_says_so():
    why = "disturbed: the CPU was this process's for 41%"
    changed = with_host(p50_ms=why, p95_ms=why, p99_ms=why, max_ms=why)
    found = sources(evidence=changed, hosts={HOST: disturbed_answer()})
    document, page = made(evidence=changed, hosts={HOST: disturbed_answer()})
    told = "latency p50, latency p95, latency p99, highest latency, latency of float in turn with the others, "
    assert any(what.startswith(told) and reason == why for what, reason in unknown(document).items())
    assert rows(page, HOST)[0][1:4] == [NOT_MEASURED] * 3
    assert rows(page, HOST)[2][1:5] == [NOT_MEASURED] * 4
    assert rows(page, HOST)[2][7] == "**no**"
    assert f"- edge01: {why}" in section(page, "Devices")
    assert why in card.drawings(found, document)["latency-edge01.svg"]
    assert "0.401" not in page
    assert "latency p50 on edge01" in document["not_compared"]


def test_models_that_were_disturbed_when_they_were_compared_are_not_compared():
    answer = made_card.answer()
    answer["measured"]["compared"].update(undisturbed=False, disturbed_by="a neighbour")
    document, page = made(hosts={HOST: answer})
    assert document["devices"][0]["undisturbed"] is True
    assert rows(page, HOST)[0][1:4] == [NOT_MEASURED] * 3
    assert rows(page, HOST)[2][1] == "0.401"
    assert set(document["not_compared"]) == {"latency p50 on edge01"}
    assert [why for what, why in unknown(document).items() if "in turn" in what] == ["disturbed: a neighbour"]


@pytest.mark.parametrize("said", [None, "true", 1])
def test_undisturbed_is_only_what_the_device_says_is(said):
    answer = made_card.answer()
    answer["measured"]["latency"]["undisturbed"] = said
    document, page = made(hosts={HOST: answer})
    assert document["devices"][0]["undisturbed"] == card_device.UNKNOWN
    assert rows(page, HOST)[2][7] == "**no**"


def test_a_measurement_that_was_repeated_says_so():
    assert rows(made(evidence=with_host(repeats=2))[1], HOST)[2][7] == "yes, at try 3"


def test_a_device_that_was_not_reached_is_told_with_the_reason_once():
    why = "unreachable: No route to host"
    lost = {"schema": 1, "problem": {"id": "unreachable", "text": "No route to host"}}
    gone = {**dict.fromkeys([*FIGURES, "as_judged", "machine", "python", "kernel", "model"], why), "board": None}
    document, page = made(
        evidence=with_evidence(lambda found: found["edge"]["hosts"].update({HOST: gone})), hosts={HOST: lost}
    )
    (device,) = document["devices"]
    assert (device["problem"], device["histogram"], device["as_judged"]) == (why, None, why)
    assert [device[name] for name in card_device.FACTS] == [None] * len(card_device.FACTS)
    assert list(unknown(document).values()) == [why]
    assert "histogram" in next(iter(unknown(document)))
    assert page.count("No route to host") == 2  # beside the table of latencies, and of what was not measured
    assert "![" not in page


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"problem": {"id": "space", "text": "12 MB free, 50 needed"}}, "space: 12 MB free, 50 needed"),
        ({"problem": {"text": "gone"}}, "gone"),
        ({"problem": "gone"}, "it has a problem that is not told: gone"),
        ({"problem": None, "measured": None}, "what it answered has no measurement"),
        ({}, "what it answered has no measurement"),
        ([1], "what it answered has no measurement"),
    ],
)
def test_a_device_that_measured_nothing_says_why(answer, why):
    assert made(hosts={HOST: answer})[0]["devices"][0]["problem"] == why


def test_why_it_measured_nothing_is_what_was_judged_if_there_is_that():
    gone = dict.fromkeys(FIGURES, "python: Python 3.7.3 is too old")
    for hosts in ({}, {HOST: {"problem": {"id": "result", "text": "it was not measured"}}}):
        (device,) = made(evidence=with_host(**gone), hosts=hosts)[0]["devices"]
        assert device["problem"] == device["no_histogram"] == device["undisturbed"] == gone["p50_ms"]


def test_a_device_that_was_not_judged_has_no_figures():
    document, page = made(evidence=with_evidence(lambda found: found.pop("edge")))
    (device,) = document["devices"]
    assert set(device["figures"].values()) == {card_device.UNJUDGED}
    assert (device["board"], device["histogram"]) == ("NVIDIA Jetson AGX Orin Developer Kit", "latency-edge01.svg")
    assert "the profile's bound" not in page
    assert document["bound_ms"] == "edge.json does not have it"


def test_a_device_that_was_judged_and_left_no_answer_has_its_figures():
    document, _page = made(hosts={})
    (device,) = document["devices"]
    assert device["figures"]["p99_ms"] == 0.61
    assert device["no_histogram"] == "the device answered nothing"
    assert device["undisturbed"] == card_device.UNKNOWN


def test_devices_that_should_be_there_are_missed():
    document, page = made(evidence=with_evidence(lambda found: found["edge"].update(expected=3)))
    assert {"what": "devices", "where": None, "why": "3 were expected, and there is something of 1"} in document[
        "not_measured"
    ]
    document, page = made(evidence=None, hosts={})
    assert "No device was measured." in section(page, "Devices")
    assert "every figure of a device: no device was measured" in page


@pytest.mark.parametrize(("same", "said"), [(False, "**Another file was on: edge01**"), ("not read", "")])
def test_another_file_on_the_device_is_not_the_same(same, said):
    document, page = made(evidence=with_host(as_judged=same))
    assert "The same file was on" not in page
    assert said in page
    if not said:
        assert unknown(document)["whether the file is the one that was judged"] == "not read"


def test_energy_is_what_was_judged_else_what_was_measured_else_the_reason():
    assert made(evidence=with_host(millijoules_per_inference=7.5))[0]["devices"][0]["energy_mj"] == 7.5
    assert made()[0]["devices"][0]["energy_mj"] == 4.2
    answer = made_card.answer()
    del answer["measured"]["soak"]["millijoules_per_inference"]
    answer["measured"]["soak"]["power"] = {"mean": None, "rails": [], "error": "no power monitor in sysfs"}
    document, page = made(hosts={HOST: answer})
    assert unknown(document)["energy of an inference"] == "no power monitor in sysfs; no energy counter in sysfs"
    assert rows(page, HOST)[3][6] == "none"
    answer["measured"]["soak"] = None
    assert unknown(made(hosts={HOST: answer})[0])["energy of an inference"] == "there was no soak"


def test_an_engine_of_tensorrt_is_told_where_there_is_one():
    answer = made_card.answer()
    answer["measured"]["tensorrt"] = {"p50_ms": 0.2}
    document, page = made(hosts={HOST: answer})
    assert unknown(document) == {}
    assert rows(page, HOST)[2][-1] == "0.200"
    assert "TensorRT" not in made()[1].partition("## What was not measured")[0]


def test_criteria_that_did_not_pass_are_told_and_those_undecided_as_not_measured():
    workload = made_card.workload()
    workload["criteria"] += [
        made_card.criterion("S4-5.temperature", "fail", "91 is not < 85", 91.0),
        made_card.criterion("S4-6.p99", "undetermined", "disturbed: by a neighbour", "disturbed: by a neighbour"),
        made_card.criterion("S4-5.throttle", "waived", "until May", 3),
        made_card.criterion("S4-6.room", "recorded", "0.3", 0.3),
    ]
    workload.update(verdict="fail", why="S4-5.temperature: 91 is not < 85")
    _document, page = made(workload=workload)
    deployed, unmeasured = section(page, "What is deployed"), section(page, "What was not measured")
    assert "- **fail** `S4-5.temperature` title of S4-5.temperature: 91 (bound: &lt;= 1). 91 is not &lt; 85" in deployed
    assert "- **undetermined** `S4-6.p99`" in deployed
    assert "- **waived** `S4-5.throttle`" in deployed
    assert "S4-6.room" not in page
    assert "- S4-6.p99 title of S4-6.p99: undetermined: disturbed: by a neighbour" in unmeasured
    assert "- S4-5.power title of S4-5.power: not applicable: the profile has no bound" in unmeasured
    assert "temperature" not in unmeasured
    assert "**Verdict: fail.** S4-5.temperature: 91 is not &lt; 85" in page


def test_without_a_profile_the_metrics_name_it_and_the_rest_is_missed():
    document, page = made(profile=None)
    assert (document["profile"]["name"], document["profile"]["document"]) == ("embedded-orin", "95-00-06-02-A-102")
    assert "- Approved by: not told" in page
    assert "profile: version, owner, data classification, licence" in [
        each["what"] for each in document["not_measured"]
    ]


def test_what_could_not_be_collected_is_told():
    problem = {"source": "metrics", "path": "/x", "problem": "missing", "detail": "there is no such file"}

    def lose(found):
        found.pop("metrics")
        found["problems"] = [problem]

    document, page = made(evidence=with_evidence(lose))
    assert "- evidence: metrics: there is no such file" in page
    assert "Nothing is known of the models" in page
    assert document["models"] == []
    assert "INT8: everything" in [each["what"] for each in document["not_measured"]]


@pytest.mark.parametrize("key", ["error", "bytes", "p50_ms"])
def test_models_are_not_compared_by_what_is_not_known_of_all(key):
    document, page = made(evidence=with_evidence(lambda found: found["metrics"]["models"]["pruned"].pop(key)))
    (left,) = document["not_compared"]
    assert document["not_compared"][left] == ["pruned"]
    assert f"Not known of all models: {left}." in page
    assert NOT_MEASURED in rows(page, "Pruned")[0]


def test_real_hardware_and_real_data_have_no_warning():
    evidence = with_evidence(lambda found: found["provenance"]["data"].update(source="path"))
    document, page = made(verdict={**made_card.verdict(), "accelerator": "cuda"}, evidence=evidence)
    assert "nothing about real GPUs" not in page
    assert "stand-in for the data" not in page
    assert "training on a real GPU" not in [each["what"] for each in document["not_measured"]]


# -- many devices


def fleet(count, change=None):
    """The evidence and the answers of many devices."""
    evidence, hosts = made_card.evidence(), {}
    evidence["edge"].update(expected=count, hosts={})
    for number in range(1, count + 1):
        host, judged = f"edge{number:02}", made_card.judged()
        answer = made_card.answer(host)
        if change:
            change(number, judged, answer)
        evidence["edge"]["hosts"][host], hosts[host] = judged, answer
    return {"evidence": evidence, "hosts": hosts}


def test_twenty_devices_are_rows_and_links_and_equal_gaps_are_told_once():
    def blind(number, judged, _answer):
        judged["temperature_c"] = "no thermal zone can be read"
        if number > 18:
            judged["power_w"] = "no power monitor in sysfs"

    document, page = made(**fleet(20, blind))
    assert [len(rows(page, f"edge{number:02}")) for number in (1, 20)] == [4, 4]
    widths = {line.count("|") for line in section(page, "Devices").splitlines() if line.startswith("|")}
    assert max(widths) <= 10
    assert page.count("no thermal zone") == page.count("no power monitor") == 1
    assert "- edge\\[01-20\\]: temperature: no thermal zone can be read" in page
    assert "- edge\\[19-20\\]: power: no power monitor in sysfs" in page
    assert "![" not in page
    assert page.count("[SVG](latency-edge") == 20
    assert len(page) < 20_000
    assert max(map(len, page.splitlines())) < 1000
    assert len(card.drawings(sources(**fleet(20)), document)) == 20


def test_the_card_does_not_grow_with_the_inferences():
    def longer(_number, _judged, answer):
        latency = answer["measured"]["latency"]
        latency["inferences"] *= 10**6
        latency["histogram"]["counts"] = [count * 10**6 for count in latency["histogram"]["counts"]]
        answer["measured"]["answers_b64"] = "A" * 10**6

    short, long = made(**fleet(1)), made(**fleet(1, longer))
    assert len(long[1]) == len(short[1])
    assert len(json.dumps(long[0])) == len(json.dumps(short[0]))


def test_more_devices_than_a_card_has_room_for_are_missed():
    document, page = made(**fleet(201))
    assert len(document["devices"]) == card.MAX_HOSTS
    assert "- devices: 201 were expected, and there is something of 200" in page


def test_a_list_of_what_is_not_known_is_bounded():
    def differ(number, judged, _answer):
        judged.update({key: f"{key} {number} is broken" for key in FIGURES})

    document, page = made(**fleet(100, differ))
    assert len(document["not_measured"]) == 301
    assert document["not_measured"][-1]["what"].endswith(" more")
    assert len(section(page, "What was not measured").splitlines()) == 62
    assert "- … and 241 more, in the JSON file beside this page" in page


# -- the commands


def commands(page):
    return re.search(r"```sh\n(.*?)\n```", page, re.DOTALL)[1].splitlines()


def test_the_commands_check_what_they_take_and_what_arrives():
    document, page = made()
    lines = commands(page)
    assert lines == document["deploy"]["commands"]
    assert f'echo "{made_card.BUNDLE}  edge/bundle-{WORKLOAD}.zip" | sha256sum --check &&' in lines
    assert sum(f'echo "{made_card.INT8}  int8.onnx" | sha256sum --check' in line for line in lines) == 1
    assert [line.endswith("&&") for line in lines] == [False, *[True] * (len(lines) - 2), False]
    assert "--soak 600 --limit 4200" in page


def test_the_command_lets_the_runner_last_as_long_as_the_soak():
    def long(found):
        found["edge"]["limits"]["soak_seconds"] = 7200.5

    assert "--soak 7200.5 --limit 10801" in made(evidence=with_evidence(long))[1]


def test_the_commands_use_the_runner_and_the_locks_as_they_are():
    words = shlex.split(" ".join(commands(made()[1])).replace("'", " "))
    at = words.index("runner.py")
    options = [word for word in words[at:] if word.startswith("--") and word != "--check"]
    parser = ast.parse((ROOT / "files/edge/runner.py").read_text(encoding="utf-8"))
    arguments = [
        call.args[0].value
        for call in ast.walk(parser)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
    ]
    assert set(options) <= set(arguments)
    assert words[at + 1 : at + 4] == ["int8.onnx", "inputs.npy", "result.json"]
    assert [name for name in arguments if not name.startswith("-")] == ["model", "inputs", "result"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda found: found["metrics"].update(deployed="best"), "which model is deployed is not known"),
        (lambda found: found["metrics"].pop("deployed"), "which model is deployed is not known"),
        (lambda found: found["metrics"]["models"]["int8"].update(sha256="1" * 63), "the SHA-256 of the model"),
        (lambda found: found["metrics"]["models"].pop("int8"), "the SHA-256 of the model"),
    ],
)
def test_without_the_file_that_was_judged_there_is_no_command(change, why):
    document, page = made(evidence=with_evidence(change))
    assert document["deploy"]["why_not"].startswith(why)
    assert document["deploy"]["commands"] == []
    assert "```" not in page
    assert f"There is no command: {why}" in page


@pytest.mark.parametrize("kept", [[], None, [{"path": f"edge/bundle-{WORKLOAD}.zip", "sha256": "b; rm -r ~"}]])
def test_without_the_bundle_there_is_no_command(kept):
    document, _page = made(verdict={**made_card.verdict(), "evidence": kept})
    assert document["deploy"]["why_not"] == f"edge/bundle-{WORKLOAD}.zip is not in this folder"


def test_a_name_that_needs_quoting_is_in_no_command():
    odd = {**made_card.workload(), "id": "X; rm -r ~"}
    kept = [{"path": "edge/bundle-X; rm -r ~.zip", "sha256": "b" * 64}]
    assert made(workload=odd, verdict={**made_card.verdict(), "evidence": kept})[0]["deploy"]["commands"] == []


# -- what jobs, devices and people wrote

HOSTILE = [
    "<script>alert(1)</script>",
    "[click](http://example.invalid)",
    "![x](http://example.invalid/x.png)",
    "a|b\n# heading\n```\n| c | d |",
    "`code` ``more`` **bold** _it_",
    "\x1b[31mred\x1b[0m \u202e reversed \x00",
    "&lt;b&gt; https://example.invalid www.example.invalid @somebody $x$",
    "x\n\n**Verdict: pass.** every applicable criterion passed\n",
    "a\ud800b\ufffe",
    "- Approved by: somebody",
]
FIXED = ("deployed", "sha256")  # without them there is no command to look at
NAMES = ("float", "pruned", "int8")


def replaced(value, text):
    """The value with `text` for each of its texts, and among its keys."""
    if isinstance(value, dict):
        changed = {key: item if key in FIXED else replaced(item, text) for key, item in value.items()}
        return {**changed, text: text}
    if isinstance(value, list):
        return [*(replaced(item, text) for item in value), *([text] if value and isinstance(value[0], str) else [])]
    return text if isinstance(value, str) else value


def told(text):
    """Sources with the text in place of each of theirs."""
    workload, answer = replaced(made_card.workload(), text), replaced(made_card.answer(), text)
    workload["criteria"] = [{**made_card.criterion("S4-6", "fail", text, text), "title": text, "bound": text}]
    answer["measured"]["latency"]["undisturbed"] = False
    return {
        "workload": {**workload, "id": WORKLOAD, "verdict": "fail"},
        "evidence": replaced(made_card.evidence(), text),
        "profile": replaced(made_card.profile(), text),
        "hosts": {HOST: answer, text: answer},
    }


@pytest.mark.parametrize("text", HOSTILE)
def test_foreign_text_is_no_markup_and_forges_no_line(text):
    _document, page = made(**told(text))
    assert len(headings(page)) == len(HEADINGS)
    assert headings(page)[1:] == HEADINGS[1:]
    assert page.count("```") == 2
    assert [line[:2] for line in page.splitlines()] == [line[:2] for line in made(**told("word"))[1].splitlines()]
    prose = re.sub(r"(?<!\\)`[^`\n]+(?<!\\)`", "", page.partition("```sh")[0])
    assert prose.count("**Verdict: ") == 1
    assert "<" not in prose
    links = re.findall(r"(?<!\\)\]\(([^)]*)\)", prose)
    assert all(re.fullmatch(r"latency-[A-Za-z0-9.-]+\.svg", link) for link in links)
    text_of_links = re.sub(r"(?<!\\)\]\([^)]*\)", "]", prose)
    assert re.search(r"www\.|[@$]|(?<!\\):(?=//)", text_of_links, re.IGNORECASE) is None
    assert [char for char in page if not char.isprintable() and char != "\n"] == []
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1
    assert commands(page) == commands(made()[1])


@pytest.mark.parametrize("text", HOSTILE)
def test_drawings_of_hosts_with_odd_names_lie_in_the_folder(text):
    document, _page = made(**told(text))
    drawings = card.drawings(sources(**told(text)), document)
    assert len(drawings) == 2
    assert all("/" not in name and "<script" not in drawing for name, drawing in drawings.items())


def places(value, path=()):
    """The path of each part of the value."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))


WHOLE = {
    "verdict": made_card.verdict(),
    "workload": made_card.workload(),
    "evidence": made_card.evidence(),
    "profile": made_card.profile(),
    "hosts": {HOST: made_card.answer()},
}
PLACES = [path for path in places(WHOLE) if len(path) > 1]
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.sampled_from(PLACES), ANY), max_size=4))
def test_nothing_that_was_written_keeps_a_card_from_being_made(changes):
    whole = copy.deepcopy(WHOLE)
    for path, value in changes:
        place = whole
        for key in path[:-1]:
            place = place.get(key) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[path[-1]] = value
    document = card.document(card.Sources(**whole))
    assert schema.problems("card", document) == []
    page = card_page.markdown(document)
    assert len(headings(page)) == len(HEADINGS)
    page.encode("utf-8")
    json.dumps(document, allow_nan=False)
    for drawing in card.drawings(card.Sources(**whole), document).values():
        drawing.encode("utf-8")


@given(ANY, ANY, ANY)
def test_nor_does_anything_in_place_of_all_of_it(evidence, profile, answer):
    document = card.document(card.Sources({}, {}, evidence, profile, {"h": answer}))
    assert schema.problems("card", document) == []
    assert card_page.markdown(document).startswith("# Deployment card: ")
