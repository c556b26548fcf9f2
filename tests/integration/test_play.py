"""The play as its users run it: from inventory to verdict, and what it says when something is wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from tests.integration.conftest import (
    ANY_SPEED,
    ANY_TIME,
    BRIEF,
    CACHE,
    CLUSTER,
    ROOT,
    cluster,
    jobs,
    running_play,
    wait_for,
)

PHASES = ["bootstrap", "preflight", "stage", "workload", "report"]
RESOURCES = {"nodes": 1, "ntasks_per_node": 1, "cpus_per_task": 1, "gres": "gpu:1", "mem": "500M", "time": "00:05:00"}


def test_the_canary_passes_and_a_second_run_changes_nothing_but_the_job(play, canary):
    variables = canary()
    first = play(variables=variables, environment=BRIEF)
    assert first.code == 0, first.end
    assert first.verdict["verdict"] == "pass"
    shown = [line for line in first.screen.splitlines() if line]
    assert len(shown) <= 30, first.screen
    wrapped = [line for line in shown if not line.startswith("next:")]  # a command stays on its line
    assert [line for line in wrapped if len(line) > 120 and " " in line.strip()] == []
    assert [line.split()[0] for line in shown if line.endswith(" s") and " ok " in line] == PHASES
    second = play(variables=variables)
    assert second.code == 0, second.end
    changed = [line for line in second.screen.splitlines() if line.startswith("changed: ")]
    assert len(changed) == 4, second.screen  # the run's own record, preflight's scripts and jobs, and the job
    assert first.verdict["workloads"][0]["job"]["job_id"] != second.verdict["workloads"][0]["job"]["job_id"]


def test_verdict_and_junit_agree_and_evidence_is_what_was_judged(play, canary):
    played = play(variables=canary("low"))
    assert played.code != 0
    assert played.criterion("T-2")["verdict"] == "fail"
    assert played.criterion("T-2")["value"] == 0.5
    assert "> 0.95" in played.criterion("T-2")["bound"]
    assert "VERDICT: FAIL" in played.screen
    suite = played.suites.find("testsuite")
    assert [case.get("name").split()[0] for case in suite.iter("testcase") if case.find("failure") is not None] == [
        "T-2"
    ]
    (evidence,) = [e for e in played.verdict["evidence"] if e["path"] == "evidence/TEST-1.json"]
    assert evidence["size"] == (played.folder / evidence["path"]).stat().st_size


@pytest.mark.slow
def test_overrides_are_judged_and_shown(play, canary):
    played = play(variables={**canary(), "hpc_validation_overrides": {"TEST-1": {"T-2": {"gt": 0.9999}}}})
    assert played.code != 0
    assert played.criterion("T-2")["verdict"] == "fail"
    assert played.criterion("T-2")["bound_from"] == "override"
    assert "T-2" in played.screen
    assert "0.9999" in played.screen


@pytest.mark.parametrize(
    ("variables", "word"),
    [
        ({"hpc_validation_overrides": {"TEST-1": {"T-9": {"gt": 1}}}}, "T-9"),
        pytest.param({"hpc_validation_overrides": {"TEST-1": {"T-2": {"lt": 1}}}}, "T-2", marks=pytest.mark.slow),
        pytest.param({"hpc_validation_only": ["TEST-2"]}, "TEST-2", marks=pytest.mark.slow),
        ({"hpc_validation_overides": {}}, "did you mean hpc_validation_overrides"),
        pytest.param(
            {"hpc_validation_leave_out": {"TEST-9": "x"}},
            "hpc_validation_leave_out: unknown workload TEST-9",
            marks=pytest.mark.slow,
        ),
        ({"hpc_validation_share": "/mnt/nowhere"}, "/mnt/nowhere"),
        pytest.param({"hpc_validation_share": "/etc"}, "/etc", marks=pytest.mark.slow),
        pytest.param({"hpc_validation_share": 'a"b'}, "hpc_validation_share", marks=pytest.mark.slow),
        ({"hpc_validation_slurm": {"partition": "gpus"}}, "partition gpus does not exist; available: gpu"),
        ({"hpc_validation_slurm": {"account": 'a"\n#SBATCH --wrap=id'}}, "hpc_validation_slurm"),
        pytest.param(
            {"hpc_validation_slurm": {"constraint": "no_such_feature"}},
            "constraint no_such_feature",
            marks=pytest.mark.slow,
        ),
        ({"hpc_validation_python": "/usr/bin/python2.6"}, "python2.6"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_submitted(play, canary, variables, word):
    played = play(variables={**canary(), **variables})
    assert played.code != 0, played.end
    assert word in played.screen
    assert jobs() == []
    if played.folder:
        assert played.verdict["verdict"] in ("fail", "undetermined")


def test_gres_that_no_node_has(play, canary):
    played = play(variables=canary(resources={**RESOURCES, "gres": "gpu:3"}))
    assert played.code != 0
    assert "none more than gpu:2" in " ".join(played.screen.split())
    assert played.verdict["verdict"] == "undetermined"
    assert jobs() == []


@pytest.mark.slow
def test_time_over_the_partitions_limit(play, canary):
    played = play(variables=canary(resources={**RESOURCES, "time": "30-00:00:00"}))
    assert played.code != 0, played.end
    assert played.verdict["verdict"] == "undetermined"
    assert jobs() == []


@pytest.mark.slow
def test_drained_nodes_are_named_with_their_reason(play, canary):
    cluster("login", "scontrol", "update", "NodeName=compute[01-02]", "State=DRAIN", "Reason=bad DIMM")
    try:
        played = play(variables=canary())
    finally:
        cluster("login", "scontrol", "update", "NodeName=compute[01-02]", "State=RESUME")
    assert played.code != 0
    assert played.verdict["verdict"] == "undetermined"
    assert "compute01" in played.verdict["why"]
    assert "bad DIMM" in played.verdict["why"]
    assert jobs() == []


def test_a_terminated_play_leaves_no_job_and_an_honest_verdict(canary, tmp_path):
    """As Ctrl-C does in tests/faults."""
    with running_play({**canary("sleep"), "hpc_validation_results": str(tmp_path / "results")}, tmp_path) as played:
        assert len(jobs()) == 1
        os.killpg(played.pid, signal.SIGTERM)
        wait_for(lambda: jobs() == [], 60)
        assert played.wait(timeout=60) != 0
    (folder,) = (tmp_path / "results").iterdir()
    verdict = json.loads((folder / "verdict.json").read_text())
    assert verdict["verdict"] == "undetermined"
    assert "did not finish" in verdict["why"]


@pytest.mark.slow
def test_a_changed_payload_is_another_job_though_the_first_still_runs(play, canary, tmp_path):
    # The first on the one node, the second's preflight on the other: it wants all GPUs of a node.
    variables = {
        **canary("sleep"),
        "hpc_validation_nodes": ["compute02"],
        "hpc_validation_workload_slurm": {"TEST-1": {"nodelist": "compute01"}},
    }
    with running_play({**variables, "hpc_validation_results": str(tmp_path / "first")}, tmp_path):
        script = tmp_path / "workloads/canary/canary.py"
        script.write_text("import sys\n\nsys.exit(9)\n")
        second = play(variables=variables)
        assert len(jobs()) == 1, "the first still runs"
    assert second.code != 0, second.end
    assert second.criterion("JOB")["verdict"] == "fail"
    assert "9" in second.criterion("JOB")["why"]
    wait_for(lambda: jobs() == [], 60)


@pytest.mark.slow
def test_what_an_older_job_of_the_same_id_left_is_no_evidence(play, canary):
    first = play(variables=canary())
    job = int(first.verdict["workloads"][0]["job"]["job_id"])
    following = job + 2  # preflight's own job comes between
    old, new = f"/mnt/beegfs/models/canary/job-{job}", f"/mnt/beegfs/models/canary/job-{following}"
    cluster("login", "cp", "-r", old, new, user="admin")
    cluster("login", "sed", "-i", f's/"{job}"/"{following}"/', f"{new}/metrics.json", user="admin")
    played = play(variables=canary("no-metrics"))
    assert played.verdict["workloads"][0]["job"]["job_id"] == str(following)
    assert played.code != 0
    assert played.criterion("T-2")["verdict"] == "undetermined"


def test_cleanup_cancels_what_an_interrupted_play_was_told_to_leave(play, canary, tmp_path):
    variables = {
        **canary("sleep"),
        "hpc_validation_results": str(tmp_path / "results"),
        "hpc_validation_on_interrupt": "leave",
    }
    with running_play(variables, tmp_path) as played:
        os.killpg(played.pid, signal.SIGINT)
        assert played.wait(timeout=60) != 0
    (left,) = jobs()
    assert left in (tmp_path / "screen").read_text()
    cleaned = play(ROOT / "playbooks/cleanup.yml")
    assert cleaned.code == 0, cleaned.end
    wait_for(lambda: jobs() == [], 60)


@pytest.mark.slow
def test_the_rendered_script_can_be_submitted_by_hand(play, canary):
    assert play(variables=canary()).code == 0
    script = "/mnt/beegfs/scripts/canary/canary.sbatch"
    job = cluster("login", "sbatch", "--parsable", script, user="admin").strip()
    wait_for(lambda: jobs() == [], 60)
    metrics = json.loads(cluster("login", "cat", f"/mnt/beegfs/models/canary/job-{job}/metrics.json"))
    assert metrics["job_id"] == job
    assert f"hpc-validation-end job={job} attempt=0 exit=0 nonce=" in cluster(
        "login", "cat", f"/mnt/beegfs/jobs/canary-{job}.out"
    )


@pytest.mark.slow
def test_a_share_with_a_hostile_name_is_only_a_name(play, canary):
    share = "/mnt/beegfs/it's; touch pwned $(id) &"
    cluster("login", "mkdir", "-p", share, user="admin")
    cluster("login", "ln", "-sfn", "/mnt/beegfs/venvs", f"{share}/venvs", user="admin")
    played = play(variables={**canary(), "hpc_validation_share": share})
    assert played.code == 0, played.end
    assert played.verdict["workloads"][0]["job"]["stdout"].startswith(f"{share}/jobs/canary-")
    assert cluster("login", "find", "/mnt/beegfs", "/home/admin", "-maxdepth", "4", "-name", "pwned") == ""


@pytest.mark.slow
def test_a_dataset_from_the_controller_is_copied_checked_and_named(play, canary, tmp_path):
    variables = canary(data=["mnist"])
    assert play(variables=variables).code == 0
    raw = CACHE / "clusters" / CLUSTER / "share/datasets/mnist/MNIST/raw"
    shutil.copytree(raw, tmp_path / "mnist")
    given = {"hpc_validation_datasets": {"mnist": {"source": "path", "path": str(tmp_path / "mnist")}}}
    played = play(variables={**variables, **given})
    assert played.code == 0, played.end
    assert "given by the site" in played.verdict["workloads"][0]["data"]["mnist"]
    images = tmp_path / "mnist/train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:-1])
    refused = play(variables={**variables, **given})
    assert refused.code != 0
    assert "train-images-idx3-ubyte" in refused.verdict["why"]
    assert play(variables=variables).code == 0  # the stand-in again, for whoever comes next


def test_check_mode_submits_nothing_and_says_what_it_would_do(play, canary):
    before = cluster("login", "sacct", "-n", "-X", "-o", "JobID", "-S", "now-1days")
    played = play(ROOT / "playbooks/validate_category1.yml", "--check", "--diff", variables=canary())
    assert played.code == 0, played.end
    assert "nothing was submitted" in played.screen
    assert played.verdict["verdict"] == "undetermined"
    assert cluster("login", "sacct", "-n", "-X", "-o", "JobID", "-S", "now-1days") == before


def test_check_mode_fails_where_the_run_could_not_start(play, canary):
    slurm = {"hpc_validation_slurm": {"partition": "gpux"}}
    played = play(ROOT / "playbooks/validate_category1.yml", "--check", variables={**canary(), **slurm})
    assert played.code != 0
    assert "partition gpux does not exist" in played.screen


def test_an_inventory_without_a_login_node_is_refused(tmp_path):
    (tmp_path / "hosts.yml").write_text("all:\n  hosts:\n    somebody:\n")
    done = subprocess.run(
        ["ansible-playbook", "playbooks/validate_category1.yml", "-i", str(tmp_path / "hosts.yml")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert "hpc_login" in done.stdout + done.stderr


@pytest.mark.parametrize("limit", ["compute01", "hpc_compute"])
@pytest.mark.parametrize("playbook", ["validate_category1", "cleanup"])
def test_a_limit_without_the_login_node_is_no_success(play, playbook, limit):
    played = play(ROOT / f"playbooks/{playbook}.yml", "--limit", limit)
    assert played.code != 0, played.end
    assert "hpc_login" in played.screen


@pytest.mark.slow
def test_tags_select_a_workload(play, canary):
    variables = canary()
    del variables["hpc_validation_only"]
    played = play(ROOT / "playbooks/validate_category1.yml", "--tags", "TEST-1", variables=variables)
    assert played.code == 0, played.end
    assert [workload["id"] for workload in played.verdict["workloads"]] == ["TEST-1"]


@pytest.mark.slow
def test_mnist_is_judged_on_the_real_cluster_and_an_override_fails_it(play):
    """Proof 2 of the first issue; tests/artifact runs the same to a pass, from the installed collection."""
    overrides = {"S0-13": {"gt": 0.9999}, **ANY_TIME}
    played = play(variables={**ANY_SPEED, "hpc_validation_overrides": {"MLOPS-1.1": overrides}})
    assert played.code != 0
    odd = {
        c["id"]: c
        for c in played.verdict["workloads"][0]["criteria"]
        if c["verdict"] not in ("pass", "not_applicable", "recorded")
    }
    assert set(odd) == {"S0-13"}, json.dumps(odd, indent=1)
    assert odd["S0-13"]["verdict"] == "fail"
    assert 0.95 < odd["S0-13"]["value"] < 0.9999
    assert "S0-13" in played.screen
    assert "0.9999" in played.screen
    following = played.verdict["workloads"][1]
    assert (following["id"], following["verdict"]) == ("MLOPS-1.2", "undetermined")
    assert (following["why"], following["job"]) == ("not_run: MLOPS-1.1 failed", None)


@pytest.mark.slow
def test_the_baseline_passes_and_leaves_its_record(play):
    played = play(ROOT / "playbooks/validate_baseline.yml", variables=ANY_SPEED)
    assert played.code == 0, played.end
    (workload,) = played.verdict["workloads"]
    assert workload["id"] == "BASELINE-1"
    assert workload["job"]["stdout"].startswith("/mnt/beegfs/slurm-logs/sft-single-gpu-")
    record = (played.folder / "record.md").read_text()
    assert "**Verdict: pass.**" in record
    assert "stand-in for Mistral-7B-v0.1" in record


@pytest.mark.slow
def test_a_second_run_stages_nothing(play):
    for attempt in range(2):
        played = play(ROOT / "playbooks/validate_baseline.yml", variables=ANY_SPEED)
        assert played.code == 0, played.end
        tasks = re.split(r"^TASK \[", played.screen, flags=re.MULTILINE)
        staging = [task for task in tasks if task.startswith("mlops.hpc_validation.stage :")]
        assert len([task for task in staging if re.search("Stage (alpaca_cleaned|mistral_7b)\\]", task)]) == 2
        if attempt:
            assert [task for task in staging if "changed: [login]" in task] == []
