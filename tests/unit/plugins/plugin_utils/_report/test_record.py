# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The validation record: everything of the document it follows, from verdict and evidence, and nothing made up."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import record
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import runs
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import manifests
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.conftest import ROOT

HEADINGS = [
    "# Single-Node, Single-GPU Training Validation",
    "## Objective",
    "## Repository Context",
    "## Model and Dataset",
    "## Environment Setup",
    "### Python Environment",
    "### Environment Variables",
    "## Slurm Job Configuration",
    "## Training Execution",
    "## Training Metrics",
    "### Step-Level Metrics",
    "### Aggregate Metrics",
    "## Hardware and Software",
    "## Results and Interpretation",
    "## Conclusion",
]
LOSS = [1.2753, 1.8605, 1.1892, 1.2061, 1.0492, 1.1469, 1.3285, 1.2227, 1.1622, 0.9635]


@pytest.fixture
def evidence():
    """What the job of tests/unit/criteria/sft_single_gpu.yml leaves, with what only the record reads."""
    described = yaml.safe_load((ROOT / "tests/unit/criteria/sft_single_gpu.yml").read_text(encoding="utf-8"))
    metrics = described["files"]["metrics.json"]
    metrics["paths"].update(
        script="/mnt/beegfs/scripts/sft_single_gpu/train_sft_min.py",
        environment="/mnt/beegfs/venvs/sft-1",
        runs_root="/mnt/beegfs/results/training",
        output="/mnt/beegfs/models/mistral-7b-sft/job-12",
    )
    metrics.update(arguments={"run_name": "sft_1gpu_smoke", "max_steps": 10, "lora": False}, cuda_version="12.8")
    metrics.update(model_source={"description": "Mistral-7B, from the hub", "revision": "27d67f1"}, epoch=[0.0] * 10)
    provenance = described["files"]["provenance.json"]
    provenance.update(slurm={"SLURM_CPUS_PER_TASK": "8", "SLURM_MEM_PER_NODE": "65536"}, os="Ubuntu 24.04 LTS")
    return {"metrics": metrics, "provenance": provenance}


@pytest.fixture
def verdict(example):
    """A verdict over the workload, as `_run` makes it."""
    return {**example("verdict"), "accelerator": "cuda"}


@pytest.fixture
def workload(example):
    judged = {**example("judged"), "verdict": "pass", "severity": "gate", "unit": None}
    ids = ("S1-1", "S1-1.visible", "S1-2", "S1-3", "S1-4", "S1-6.memory", "S1-26", "S1-29")
    return {
        "id": "BASELINE-1",
        "name": "sft_single_gpu",
        "title": "Single-node, single-GPU fine-tuning of Mistral-7B",
        "verdict": "pass",
        "why": "every applicable criterion passed",
        "job": {**example("job"), "nodes": "worker0"},
        "data": {},
        "criteria": [{**judged, "id": name, "title": f"title of {name}"} for name in ids],
    }


def headings(text):
    """The headings of a document, without what stands in its blocks."""
    return re.findall(r"^#+ .*$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)


def test_it_has_the_documents_sections_in_their_order(verdict, workload, evidence):
    assert headings(record.markdown(verdict, workload, evidence)) == HEADINGS
    assert headings(record.markdown(verdict, workload, None)) == HEADINGS


def test_it_is_filled_from_evidence(verdict, workload, evidence):
    text = record.markdown(verdict, workload, evidence)
    assert record.NOT_MEASURED not in text.partition("## Training Execution")[0]
    for expected in (
        "- **Root, the share**: `/mnt/beegfs`",
        "- **Slurm submission script**: `/mnt/beegfs/scripts/sft_single_gpu/sft_single_gpu.sbatch`",
        "- **Training outputs**: `/mnt/beegfs/results/training/sft_1gpu_smoke`",
        "- **Parameters**: 7,241,732,096",
        "- **Training type**: supervised fine-tuning (SFT), all parameters",
        "- `RUNS_ROOT`: `/mnt/beegfs/results/training`",
        "- **Nodes**: 1",
        "- **CPUs per task**: 8",
        "- **Memory**: 65536 MB",
        "Job `12` ran on `worker0` with 1 GPU (NVIDIA H100 80GB HBM3)",
        "- `--max_steps`: 10",
        "| 1 | 1.2753 | 50.5 | 2e-05 | 0 |",
        "| 10 | 0.9635 | 34.75 | 2e-06 | 0 |",
        "- **Driver**: not measured",
        "validated** on the GPU",
    ):
        assert expected in text, expected
    block = re.search(r"```json\n(.*?)\n```", text, re.DOTALL)
    assert block is not None
    figures = json.loads(block[1])
    assert (figures["train_loss"], figures["approx_tokens"], figures["tokens_total"]) == (1.2404, 5120, 20480)
    assert figures["step_seconds_p95"] == "not measured"


def test_without_evidence_it_says_so_everywhere(verdict, workload):
    workload.update(job=None, criteria=[], verdict="undetermined", why="not_run: the run ended before it was judged")
    text = record.markdown(verdict, workload, None)
    assert text.count(record.NOT_MEASURED) > 40
    assert re.findall(r"\w*[0-9]+", text.partition("## Repository Context")[2]) == ["256", "step_seconds_p95"]
    assert "**not** been validated: not\\_run" in text


def test_steps_that_were_not_finite_are_not_left_out(verdict, workload, evidence):
    evidence["metrics"].update(loss=[1.2753, "NaN"], grad_norm=[50.5, {"non_finite": "Infinity"}])
    evidence["metrics"].update(learning_rate=[2e-5], epoch=None, train_loss="NaN")
    text = record.markdown(verdict, workload, evidence)
    assert "| 2 | NaN | Infinity | not measured | not measured |" in text
    assert '"train_loss": "not finite"' in text


def test_a_long_run_is_told_in_part(verdict, workload, evidence):
    evidence["metrics"]["loss"] = [1.0] * 1000
    text = record.markdown(verdict, workload, evidence)
    assert text.count("\n| ") == 200 + 2
    assert "800 more steps" in text


@pytest.mark.parametrize(("accelerator", "said"), [("cuda", "validated**"), ("simulated", "without a real GPU")])
def test_a_pass_on_simulated_hardware_validates_no_gpu(verdict, workload, evidence, accelerator, said):
    conclusion = record.markdown({**verdict, "accelerator": accelerator}, workload, evidence).split("## Conclusion")[1]
    assert said in conclusion
    assert ("been **validated**" in conclusion) is (accelerator == "cuda")


@pytest.mark.parametrize("word", ["fail", "undetermined"])
def test_what_did_not_pass_is_no_validation_and_says_why(verdict, workload, evidence, word):
    workload.update(verdict=word, why="S1-3: cpu is not cuda")
    workload["criteria"][3].update(verdict=word, why="cpu is not cuda")
    text = record.markdown(verdict, workload, evidence)
    assert "**not** been validated: S1-3: cpu is not cuda" in text
    assert f"- PyTorch detects and uses CUDA: **{word}**" in text
    assert f"- **{word}** `S1-3` title of S1-3" in text
    assert "- Slurm allocates one GPU and launches the training job: **pass**" in text
    assert "Next:" not in text


def test_a_goal_is_its_worst_gate_and_nothing_without_one(workload):
    assert record._decided(workload, ("S1-1",)) == "pass"
    assert record._decided(workload, ("S1-27",)) == "not measured"
    workload["criteria"][0].update(verdict="not_applicable")
    assert record._decided(workload, ("S1-1",)) == "pass"
    workload["criteria"][1].update(verdict="undetermined")
    workload["criteria"].append({**workload["criteria"][0], "id": "S1-1.x", "verdict": "fail", "severity": "record"})
    assert record._decided(workload, ("S1-1",)) == "undetermined"


def test_each_goal_is_decided_by_criteria_that_there_are():
    manifest = manifests.load_manifest(ROOT / "files/workloads/sft_single_gpu/workload.yml")
    there = {criterion["id"].partition(".")[0] for criterion in manifest["criteria"]}
    assert {name for _goal, ids in record.GOALS for name in ids} <= there


HOSTILE = [
    "<script>alert(1)</script>",
    "[click](http://example.invalid)",
    "![x](http://example.invalid/x.png)",
    "a|b\n# heading\n```\n",
    "`code` ``more`` **bold** _it_",
    "\x1b[31mred\x1b[0m \u202e reversed",
    "&lt;b&gt; https://example.invalid www.example.invalid",
    "WWW.example.invalid hTTp://example.invalid",
    "mailto:a@example.invalid b@example.invalid @somebody",
    "$\\sqrt{x}$ $`y`$",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_text_of_a_job_is_no_markup(verdict, workload, evidence, hostile):
    metrics = evidence["metrics"]
    metrics.update(model=hostile, gpu=hostile, node=hostile, torch=hostile, cuda_version=hostile, train_loss=hostile)
    metrics.update(loss=[hostile], arguments={"run_name": hostile}, model_source={"description": hostile})
    metrics["paths"] = dict.fromkeys(metrics["paths"], hostile)
    workload["job"].update(name=hostile, nodes=hostile, state=hostile)
    workload["criteria"][0].update(verdict="fail", why=hostile, title=hostile, value={hostile: [hostile]})
    text = record.markdown(verdict, workload, evidence)
    assert headings(text) == HEADINGS
    assert text.count("```") == 2
    prose = re.sub(r"(?<!\\)`[^`\n]+(?<!\\)`", "", text.partition("```json")[0] + text.rpartition("```")[2])
    assert "<" not in prose
    assert re.search(r"(?<!\\)\]\(", prose) is None
    assert "http://" not in prose
    assert "https://" not in prose
    assert re.search(r"www\.|[@$]|(?<!\\):(?=//)", prose, re.IGNORECASE) is None
    assert not {"\x1b", "\u202e"} & set(text)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    *record.FIGURES,
    "loss",
    "paths",
    "arguments",
    "libraries",
    "data",
    "model",
    "model_source",
    "gpu",
    "parameters",
)


@given(
    st.dictionaries(st.sampled_from(KEYS), ANY, max_size=6),
    ANY,
    st.sampled_from(["metrics", "provenance", "everything"]),
)
def test_no_evidence_keeps_the_record_from_being_written(metrics, other, place):
    document = {"everything": other, "metrics": {"metrics": metrics, "provenance": other}}
    evidence = document.get(place, {"metrics": other, "provenance": metrics})
    workload = {"id": "BASELINE-1", "title": "t", "verdict": "fail", "why": "w", "job": None, "criteria": []}
    text = record.markdown({"run": "r", "accelerator": "cuda"}, workload, evidence)
    assert headings(text) == HEADINGS
    text.encode("utf-8")


# -- in a run's folder


@pytest.fixture
def folder(tmp_path):
    manifest = manifests.load_manifest(ROOT / "files/workloads/sft_single_gpu/workload.yml")
    plan = {"title": "Baseline", "accelerator": "cuda", "workloads": [manifest]}
    return runs.start(tmp_path / "results", plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})


def test_a_run_with_the_baseline_leaves_a_record(folder, workload, evidence):
    job = {**workload["job"], "nodes": ["worker0"]}
    runs.record(folder, "workload", {**{key: workload[key] for key in ("id", "data", "criteria")}, "job": job})
    (folder / "evidence").mkdir()
    (folder / "evidence" / "BASELINE-1.json").write_text(json.dumps(evidence))
    first, second = runs.finish(folder), runs.finish(folder)
    text = (folder / "record.md").read_text(encoding="utf-8")
    assert "| 1 | 1.2753 |" in text
    assert first["evidence"] == second["evidence"]
    assert "record.md" not in [file["path"] for file in second["evidence"]]


@pytest.mark.parametrize("content", [None, "", "{", "null", "[]", "{}"])
def test_a_run_that_died_or_left_damaged_evidence_leaves_a_record_too(folder, content):
    if content is not None:
        (folder / "evidence").mkdir()
        (folder / "evidence" / "BASELINE-1.json").write_text(content)
    assert runs.finish(folder)["verdict"] == "undetermined"
    assert "**not** been validated" in (folder / "record.md").read_text(encoding="utf-8")


def test_other_runs_leave_none(tmp_path, example):
    plan = {"title": "Category 1", "accelerator": "cuda", "workloads": [example("manifest")]}
    folder = runs.start(tmp_path / "results", plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})
    runs.finish(folder)
    assert not (folder / "record.md").exists()
