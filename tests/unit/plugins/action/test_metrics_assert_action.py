"""The controller's half: refuse, collect, save, judge, print."""

from __future__ import annotations

import copy
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible_collections.mlops.hpc_validation.plugins.action.metrics_assert import ActionModule
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import collector, options
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import screen

from tests.unit.conftest import COLLECTIONS
from tests.unit.plugins.plugin_utils._judge.criteria_fake import alone, provenance, whole

LEGS_FILE = {"files": {"legs": {"path": "legs.json", "format": "json"}}}
JOB = {**whole()["job"], "steps": None, "gpus": 1, "source": "squeue"}
OWN = {"job_id": "12", "attempt": 0}
NONCE = "00112233445566778899aabbccddeeff"
END = f"hpc-validation-end job=12 attempt=0 exit=0 nonce={NONCE}\n"
CRITERIA = [
    {"id": "S0-13", "title": "accuracy", "query": "metrics.test_accuracy", "gt": 0.95},
    {"id": "S0-13.loss", "title": "loss", "query": "metrics.loss", "finite": True},
    {"id": "S0-14", "title": "model", "artifact": "m.pt", "exists": True},
    {"id": "S0-16", "title": "no CUDA errors", "log": ["stdout", "stderr"], "absent": "cuda_errors"},
    {"id": "TREND", "title": "loss falls", "query": "progress.fields.loss", "decreasing": True},
]


@pytest.fixture
def out(tmp_path):
    """What a healthy job left behind."""
    folder = tmp_path / "job 12; 'x'"
    folder.mkdir()
    (folder / "metrics.json").write_text(json.dumps({**OWN, "test_accuracy": 0.97, "loss": [2.0, 1.0]}))
    (folder / "progress.jsonl").write_text("".join(json.dumps({**OWN, "loss": loss}) + "\n" for loss in (3, 2, 1)))
    (folder / "m.pt").write_bytes(b"weights")
    for name in ("o", "e"):
        (folder / name).write_text("training\n" + END)
    (folder / "end.json").write_text(json.dumps({**OWN, "exit_code": 0, "nonce": NONCE}))
    return folder


@pytest.fixture
def arguments(out, tmp_path):
    return {
        "workload": "MLOPS-1.1",
        "job": copy.deepcopy(JOB),
        "output": str(out),
        "files": {
            "metrics": {"path": "metrics.json", "format": "json"},
            "progress": {"path": "progress.jsonl", "format": "jsonl"},
        },
        "logs": {"stdout": str(out / "o"), "stderr": str(out / "e")},
        "end_marker": str(out / "end.json"),
        "artifacts": ["m.pt"],
        "context": {"accelerator": "simulated"},
        "criteria": copy.deepcopy(CRITERIA),
        "save": str(tmp_path / "results" / "evidence" / "e.json"),
        "settle": 0,
    }


def as_the_module_does(module_args, **_unused):
    """Collect in this process what the module collects on the target."""
    assert set(module_args) <= set(options.argument_spec())
    request = collector.Request(
        job_id=module_args["job"]["job_id"],
        attempt=module_args["job"]["attempt"],
        output=module_args["output"],
        files=module_args["files"],
        logs={name: path for name, path in module_args["logs"].items() if path},
        end_marker=module_args["end_marker"],
        artifacts=module_args["artifacts"],
        patterns=module_args["patterns"],
        settle=module_args["settle"],
    )
    return {"changed": False, "document": collector.collect(request, module_args["timeout"])}


@pytest.fixture
def run():
    def run(arguments, answer=as_the_module_does, *, check_mode=False, no_log=False, verbosity=0):
        task = mock.MagicMock(args=arguments, async_val=0, check_mode=check_mode, no_log=no_log)
        action = ActionModule(task, mock.MagicMock(), mock.MagicMock(), None, None, None)
        action._display = mock.MagicMock(verbosity=verbosity)
        action._execute_module = mock.MagicMock(side_effect=answer)
        result = action.run(task_vars={})
        result["displayed"] = [call.args[0] for call in action._display.display.call_args_list]
        result["asked"] = action._execute_module.call_count
        for entry in result["criteria"]:
            assert schema.problems("judged", entry) == []
        return result

    return run


def verdicts(result):
    return {entry["id"]: entry["verdict"] for entry in result["criteria"]}


def test_a_healthy_job_passes_and_its_evidence_is_saved(run, arguments):
    result = run(arguments)
    assert (result["verdict"], result["failed"], result["changed"]) == ("pass", False, False)
    assert set(verdicts(result).values()) == {"pass"}
    assert result["evidence"] == arguments["save"]
    with open(result["evidence"]) as stream:
        document = json.load(stream)
    assert document["context"] == {"accelerator": "simulated"}
    assert document["job"] == JOB
    assert set(document["logs"]["stdout"]["counts"]) >= {"cuda_errors", "nccl_errors", "oom", "python_traceback"}


def test_the_evidence_fits_its_schema(run, arguments, example):
    arguments["job"] = example("job")
    with open(run(arguments)["evidence"]) as stream:
        assert schema.problems("evidence", json.load(stream)) == []


def test_a_missed_bound_fails_the_task_naming_value_and_bound(run, arguments):
    result = run({**arguments, "overrides": {"S0-13": {"gt": 0.9999}}})
    assert (result["verdict"], result["failed"]) == ("fail", True)
    for part in ("MLOPS-1.1", "S0-13", "0.97", "0.9999"):
        assert part in result["msg"]
    assert verdicts(result)["S0-14"] == "pass"


def test_fail_false_returns_the_verdict_and_nothing_more(run, arguments):
    result = run({**arguments, "overrides": {"S0-13": {"gt": 0.9999}}, "fail": False})
    assert (result["verdict"], result["failed"]) == ("fail", False)
    assert "msg" not in result


@pytest.mark.parametrize(
    ("file", "blamed", "verdict", "why"),
    [
        (("metrics.json", None), "S0-13", "undetermined", "metrics.json: missing"),
        (
            ("metrics.json", '{"job_id": "12", "attempt": 0, "test_acc'),
            "S0-13",
            "undetermined",
            "metrics.json: truncated",
        ),
        (("metrics.json", json.dumps({"test_accuracy": 0.99})), "S0-13", "undetermined", "metrics.json: foreign"),
        (("metrics.json", json.dumps({**OWN, "test_accuracy": True})), "S0-13", "undetermined", "a boolean"),
        (("metrics.json", json.dumps({**OWN, "test_accuracy": "0.99"})), "S0-13", "undetermined", "the text"),
        (("metrics.json", json.dumps({**OWN, "test_accuracy": float("nan")})), "S0-13", "undetermined", "NaN"),
        (
            ("metrics.json", json.dumps({**OWN, "test_accuracy": 0.97, "loss": [1, float("nan")]})),
            "S0-13.loss",
            "fail",
            "NaN",
        ),
        (("metrics.json", json.dumps({**OWN, "test_accuracy": 0.97, "loss": [1, "NaN"]})), "S0-13.loss", "fail", "NaN"),
        (("o", ""), "S0-16", "undetermined", "is empty"),
        (("o", "training\n"), "S0-16", "undetermined", "no end marker"),
        (("o", "training\n" + END.replace("12", "11")), "S0-16", "undetermined", "is of job"),
        (("e", "RuntimeError: CUDA error: bad\n" + END), "S0-16", "fail", "CUDA error: bad"),
        (("m.pt", None), "S0-14", "fail", "does not exist"),
        (("m.pt", ""), "S0-14", "fail", "0 bytes"),
        (
            ("progress.jsonl", json.dumps({**OWN, "loss": 3}) + "\n{\n" + json.dumps({**OWN, "loss": 1}) + "\n"),
            "TREND",
            "undetermined",
            "1 of its lines are malformed",
        ),
    ],
)
def test_bad_input_is_named_and_never_a_pass(run, arguments, out, *, file, blamed, verdict, why):
    name, content = file
    (out / name).unlink()
    if content is not None:
        (out / name).write_text(content)
    result = run(arguments)
    found = next(entry for entry in result["criteria"] if entry["id"] == blamed)
    assert (found["verdict"], result["verdict"], result["failed"]) == (verdict, verdict, True)
    assert why in found["why"]
    assert blamed in result["msg"]


@pytest.mark.parametrize(
    "answer",
    [
        AnsibleConnectionFailure("no route to host"),
        AnsibleActionFail("broken"),
        lambda **_unused: {"failed": True, "msg": "MODULE FAILURE", "module_stderr": "Killed"},
        lambda **_unused: {"unreachable": True, "msg": "gone"},
        lambda **_unused: {},
        lambda **_unused: {"document": []},
        lambda **_unused: {"document": {"schema": 1}},
        lambda **_unused: {"document": {"schema": 1, "logs": {}, "artifacts": {}, "files": {}, "problems": {}}},
    ],
)
def test_a_host_that_gives_no_evidence_leaves_everything_undetermined(run, arguments, answer):
    result = run(arguments, answer)
    assert (result["verdict"], result["failed"]) == ("undetermined", True)
    found = verdicts(result)
    assert found.pop("JOB") == "pass"
    assert set(found.values()) == {"undetermined"}


@pytest.mark.parametrize(
    "job", [None, {}, {"job_id": None, "attempt": 0}, {"job_id": "12"}, {"job_id": "12", "attempt": True}]
)
def test_without_a_job_nothing_is_read_and_nothing_established(run, arguments, job):
    result = run({**arguments, "job": job})
    assert result["asked"] == 0
    assert set(verdicts(result).values()) == {"undetermined"}


def test_malformed_criteria_are_refused_before_anything_is_read(run, arguments):
    arguments["criteria"][0]["gt"] = "high"
    arguments["criteria"][2]["exist"] = True
    arguments["files"]["job"] = {"path": "x", "format": "json"}
    answer = mock.MagicMock()
    with pytest.raises(AnsibleActionFail) as refused:
        run({**arguments, "fail": False}, answer)
    assert not answer.called
    for part in ("Nothing was judged", "MLOPS-1.1", "S0-13", "key gt", "S0-14", "key exist", "'job'"):
        assert part in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        {"criteria": None},
        {"overrides": {"S0-99": {"gt": 1}}},
        {"references": {"x": "fast"}},
        {"patterns": {"mine": {"patterns": [{"id": "x", "regex": "(", "texts": ["x"]}]}}},
        {"output": None},
        {"output": "relative"},
        {"evidence": "/tmp/e.json"},
        {"legs": {"before": "b.json", "after": "a.json"}},
        {"legs": {"before": "b.json"}, **LEGS_FILE},
        {"legs": {"before": "b.json", "after": "a.json", "measured": "m.json"}, **LEGS_FILE},
        {"legs": {"before": "../b.json", "after": "a.json"}, **LEGS_FILE},
        {"legs": {"before": "b.json", "after": "a.json"}, "baseline": "/e.json", **LEGS_FILE},
        {"surprise": 1},
    ],
)
def test_malformed_options_are_refused(run, arguments, change):
    with pytest.raises(AnsibleActionFail):
        run({**arguments, **change})


def test_saved_evidence_is_judged_again_without_the_host(run, arguments):
    first = run(arguments)
    again = {"workload": "MLOPS-1.1", "evidence": arguments["save"], "criteria": arguments["criteria"]}
    second = run(again)
    assert second["asked"] == 0
    assert second["criteria"] == first["criteria"]
    assert second["table"] == first["table"]
    assert run({**again, "overrides": {"S0-13": {"gt": 0.98}}})["verdict"] == "fail"


@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}", '{"schema": 2}', '{"schema": 1, "job": null}'])
def test_saved_evidence_that_is_none_is_undetermined(run, tmp_path, content):
    path = tmp_path / "e.json"
    if content is not None:
        path.write_text(content)
    result = run({"evidence": str(path), "criteria": CRITERIA})
    assert (result["verdict"], result["failed"]) == ("undetermined", True)
    assert str(path) in result["criteria"][1]["why"]


def test_evidence_that_cannot_be_saved_makes_no_pass(run, arguments, tmp_path):
    (tmp_path / "file").write_text("")
    result = run({**arguments, "save": str(tmp_path / "file" / "e.json")})
    assert result["verdict"] == "undetermined"
    assert "not saved" in result["criteria"][1]["why"]


def test_evidence_is_saved_whole_or_not_at_all(run, arguments, monkeypatch):
    run(arguments)
    with open(arguments["save"]) as stream:
        before = stream.read()

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    result = run({**arguments, "context": {"accelerator": "cuda"}})
    assert result["verdict"] == "undetermined"
    with open(arguments["save"]) as stream:
        assert stream.read() == before


def test_check_mode_judges_and_saves_nothing(run, arguments, tmp_path):
    result = run(arguments, check_mode=True)
    assert result["verdict"] == "pass"
    assert not (tmp_path / "results").exists()
    assert "evidence" not in result


SPEEDUP = {"id": "SPEEDUP", "title": "s", "query": "metrics.speed", "ratio_ge": {"bound": 1.7, "to": "metrics.speed"}}
LEG = {"exit_code": 0, "nodes": ["compute01"]}
RULES = {**OWN, "work": "weak", "steady_seconds": 30}


@pytest.fixture
def two_gpus(out, arguments):
    """What a job left behind that ran on two GPUs, and before and after on one; now is when it ran."""
    speeds = {".": 18.0, "baseline-before": 10.1, "baseline-after": 9.9}
    for folder, speed in speeds.items():
        own = {**alone(), **({"world_size": 2, "gpu_uuids": ["GPU-a", "GPU-b"]} if folder == "." else {})}
        (out / folder).mkdir(exist_ok=True)
        (out / folder / "metrics.json").write_text(json.dumps({**OWN, **own, "speed": speed}))
    (out / "legs.json").write_text(json.dumps({**RULES, **dict.fromkeys(("before", "measured", "after"), LEG)}))
    (out / "provenance.json").write_text(json.dumps(provenance()))
    now = (out / "legs.json").stat().st_mtime
    arguments["job"].update(started=now - 60, ended=now + 60)
    names = ("metrics", "provenance", "legs")
    arguments["files"] = {name: {"path": f"{name}.json", "format": "json"} for name in names}
    arguments["legs"] = {folder.removeprefix("baseline-"): f"{folder}/metrics.json" for folder in list(speeds)[1:]}
    arguments["criteria"] = [SPEEDUP]
    return arguments


def why(result):
    return result["criteria"][1]["why"]


def test_a_ratio_is_formed_against_the_legs_and_judged_again_from_the_evidence(run, two_gpus, example):
    two_gpus["job"] = {**example("job"), **{key: two_gpus["job"][key] for key in ("started", "ended")}}
    first = run(two_gpus)
    assert (first["verdict"], why(first)) == ("pass", "18 / 10 = 1.8 (1.78 to 1.82) is >= 1.7")
    with open(first["evidence"]) as stream:
        document = json.load(stream)
    assert schema.problems("evidence", document) == []
    assert sorted(document["files"]) == ["legs", "metrics", "provenance"]
    assert [one["leg"] for one in document["baseline"]["runs"]] == [
        {**LEG, "name": "before"},
        {**LEG, "name": "after"},
    ]
    again = run({"workload": "MLOPS-1.1", "evidence": two_gpus["save"], "criteria": two_gpus["criteria"]})
    assert again["criteria"] == first["criteria"]


@pytest.mark.parametrize("name", ["baseline-before/metrics.json", "baseline-after/metrics.json"])
@pytest.mark.parametrize(
    ("content", "told"), [(None, "missing"), (json.dumps({"job_id": "11", "attempt": 0, "speed": 10}), "foreign")]
)
def test_a_leg_that_left_nothing_leaves_only_the_ratio_undetermined(run, two_gpus, out, name, content, told):
    (out / name).unlink()
    if content is not None:
        (out / name).write_text(content)
    result = run({**two_gpus, "criteria": [SPEEDUP, {"id": "S", "title": "t", "query": "metrics.speed", "gt": 1}]})
    assert verdicts(result) == {"JOB": "pass", "SPEEDUP": "undetermined", "S": "pass"}
    leg = name.split("/")[0].removeprefix("baseline-")
    assert why(result).startswith(f"the baseline's leg {leg}: {out / name}: {told}")


def test_without_legs_json_no_leg_is_known_to_have_ended(run, two_gpus, out):
    (out / "legs.json").unlink()
    result = run(two_gpus)
    assert result["verdict"] == "undetermined"
    assert why(result).startswith(f"{out}/legs.json: missing: there is no such file; {out} holds ")


def saved_days_ago(path, days, **changes):
    """Make saved evidence of another job, that ended so long ago."""
    with open(path) as stream:
        document = json.loads(stream.read().replace('"job_id": "12"', '"job_id": "8"'))
    jobs = [document["job"], *(one["job"] for one in document.get("baseline", {}).get("runs", []))]
    for job in jobs:
        for key in ("started", "ended"):
            job[key] -= days * 86400
    for part in (document, *document.get("baseline", {}).get("runs", [])):
        for file in part["files"].values():
            file["mtime"] -= days * 86400
    document.update(changes)
    stored = f"{path}.stored"
    with open(stored, "w") as stream:
        json.dump(document, stream)
    return stored


@pytest.fixture
def without_legs(two_gpus, out):
    """Return a function that makes of the job one that ran no legs, as one does for which a baseline is stored."""

    def without_legs():
        (out / "legs.json").write_text(json.dumps({**RULES, "measured": LEG}))
        for name in ("before", "after"):
            (out / f"baseline-{name}" / "metrics.json").unlink()
        del two_gpus["legs"]

    return without_legs


def test_a_ratio_is_formed_against_the_saved_evidence_of_one_gpu(run, two_gpus, without_legs):
    run(two_gpus)
    metrics = {**alone(), "job_id": "8", "attempt": 0, "speed": 10, "gpu_uuids": ["GPU-b"]}
    two_gpus["baseline"] = saved_days_ago(two_gpus["save"], 12, metrics=metrics, baseline={"source": "stored"})
    without_legs()
    result = run(two_gpus)
    assert (result["verdict"], why(result)) == (
        "pass",
        "18 / 10 = 1.8 is >= 1.7; stored baseline of job 8, 11 days old",
    )
    again = {"workload": "MLOPS-1.1", "evidence": two_gpus["save"], "criteria": two_gpus["criteria"]}
    assert run(again)["criteria"] == result["criteria"]


def test_a_ratio_is_formed_against_the_saved_legs_of_an_earlier_job(run, two_gpus, without_legs):
    run(two_gpus)
    two_gpus["baseline"] = saved_days_ago(two_gpus["save"], 12)
    without_legs()
    assert why(run(two_gpus)) == ("18 / 10 = 1.8 (1.78 to 1.82) is >= 1.7; stored baseline of job 8, 11 days old")


def test_without_the_rules_of_legs_json_what_is_stored_is_no_measure(run, two_gpus, without_legs, out):
    run(two_gpus)
    two_gpus["baseline"] = saved_days_ago(two_gpus["save"], 12)
    without_legs()
    (out / "legs.json").write_text(json.dumps({**OWN, "measured": LEG}))
    result = run(two_gpus)
    told = "the baseline's leg before: legs.json does not say which work stays equal: null"
    assert (result["verdict"], why(result)) == ("undetermined", told)
    del two_gpus["files"]["legs"]
    result = run(two_gpus)
    assert (result["verdict"], why(result)) == ("undetermined", told)


def test_saved_evidence_that_cannot_be_read_is_no_baseline_even_where_there_was_one(run, two_gpus):
    run(two_gpus)
    again = {"evidence": two_gpus["save"], "criteria": [SPEEDUP], "baseline": "/nonexistent/e.json"}
    result = run(again)
    assert (result["verdict"], why(result)[:41]) == ("undetermined", "/nonexistent/e.json: unreadable: /nonexis")
    assert run({**again, "baseline": two_gpus["save"]})["verdict"] == "undetermined"
    del two_gpus["legs"]
    result = run(two_gpus)
    assert (result["verdict"], why(result)[:20]) == ("undetermined", "there is no baseline")


def test_a_set_of_patterns_of_the_site_can_be_used(run, arguments, out):
    (out / "o").write_text("ACME-7: fan\n" + END)
    patterns = {"acme": {"patterns": [{"id": "fan", "regex": r"ACME-\d+", "texts": ["ACME-"], "remedy": "call ACME"}]}}
    criteria = [{"id": "A", "title": "t", "log": ["stdout"], "absent": "acme"}]
    result = run({**arguments, "patterns": patterns, "criteria": criteria})
    assert result["criteria"][1]["remedy"] == "call ACME"


def test_values_are_data_and_dates_are_dates(run, arguments, out):
    text = "{{ lookup('pipe', 'touch /tmp/never') }}"
    (out / "metrics.json").write_text(json.dumps({**OWN, "test_accuracy": text, "loss": [1]}))
    waive = {"reason": "known", "expires": datetime.date(2999, 1, 1)}
    result = run({**arguments, "overrides": {"S0-13": {"waive": waive}}})
    assert result["criteria"][1]["value"] == text
    assert result["criteria"][1]["verdict"] == "undetermined"


def test_the_table_is_shown_unless_the_task_is_secret(run, arguments):
    assert run(arguments, verbosity=1)["displayed"] == [screen.fitted(run(arguments)["table"])]
    ((line,),) = [text.splitlines() for text in run(arguments)["displayed"]]
    assert line.startswith("MLOPS-1.1: PASS")
    assert run(arguments, no_log=True)["displayed"] == []


def test_what_did_not_pass_is_shown_whole(run, arguments, out):
    (out / "metrics.json").write_text(json.dumps({**OWN, "test_accuracy": 0.5}))
    (text,) = run(arguments)["displayed"]
    assert "S0-13" in text
    assert "why: " in text


def test_nothing_that_a_terminal_acts_on_reaches_the_table(run, arguments, out):
    (out / "metrics.json").write_text(json.dumps({**OWN, "test_accuracy": "\x1b[2J\r\n0.99\x9b", "loss": [1]}))
    table = run(arguments)["table"]
    assert all(line.isprintable() for line in table.split("\n"))


def test_it_works_through_ansible_itself(arguments, tmp_path):
    """The module is packed, sent and run by an interpreter; the exit status tells."""
    play = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "tasks": [{"mlops.hpc_validation.metrics_assert": {**arguments, "overrides": "{{ overrides }}"}}],
        }
    ]
    (tmp_path / "play.json").write_text(json.dumps(play))
    ansible_playbook = Path(sys.executable).with_name("ansible-playbook")
    argv = [str(ansible_playbook), "-i", "localhost,", "-c", "local", str(tmp_path / "play.json")]
    argv += ["-e", json.dumps({"ansible_python_interpreter": sys.executable})]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS)}
    for overrides, code in (({}, 0), ({"S0-13": {"gt": 0.9999}}, 2)):
        done = subprocess.run(
            [*argv, "-e", json.dumps({"overrides": overrides})],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert ("S0-13 fail" in done.stderr + done.stdout) == bool(overrides)
