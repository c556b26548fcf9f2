# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BASELINE-1: what its document asks for is in its manifest, and what it computes without PyTorch is right."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.conftest import ROOT

HOME = ROOT / "files/workloads/sft_single_gpu"
sys.path.insert(0, str(HOME))  # as the interpreter does for the script

import sft_min_arguments  # noqa: E402
import sft_min_data  # noqa: E402
import sft_min_figures as figures  # noqa: E402
import sft_min_results  # noqa: E402
from kit.errors import KitError  # noqa: E402
from kit.training import flops  # noqa: E402
from sft_min_data import WorkloadError  # noqa: E402

# What the document's log shows: ten steps of four samples of 512 tokens, and 139.36 s around training and saving.
LOSS = [1.2753, 1.8605, 1.1892, 1.2061, 1.0492, 1.1469, 1.3285, 1.2227, 1.1622, 0.9635]
DOCUMENT = figures.Batch(size=1, accumulation=4, length=512)
MISTRAL = flops.Shape(parameters=7_241_732_096, trainable=7_241_732_096, layers=32, width=4096, length=512)


@pytest.fixture(scope="module")
def manifest():
    return yaml.safe_load((HOME / "workload.yml").read_text(encoding="utf-8"))


def ten_steps(seconds=0.5):
    steps = figures.Steps(loss=LOSS, seconds=[seconds] * 10, tokens_non_padding=[600] * 10, memory_bytes=[9] * 10)
    steps.learning_rate = [figures.learning_rate(step, 10, 2e-5) for step in range(1, 11)]
    return steps


# -- the manifest


def test_every_requirement_has_its_criterion(manifest):
    found = {criterion["id"].partition(".")[0] for criterion in manifest["criteria"]}
    assert found >= {f"S1-{number}" for number in (1, 2, 3, 4, 6, 10, 12, 13, 17, 18, 23, 24, 25, 26, 27, 28, 29)}


def test_the_documents_job(manifest):
    assert manifest["resources"] == {
        "nodes": 1, "ntasks_per_node": 1, "cpus_per_task": 8, "gres": "gpu:1", "mem": "64G", "time": "00:30:00"
    }  # fmt: skip
    command = "python train_sft_min.py --run_name sft_1gpu_smoke --max_steps 10 --seq_len 512"
    assert " ".join(manifest["command"]) == command


def test_what_does_not_pass_says_what_to_do(manifest):
    obvious = {"S1-3.busy", "S1-13", "S1-18.nodes", "S1-24", "S1-24.steps", "S1-24.loss", "S1-25", "S1-25.gpu"}
    obvious |= {"S1-25.tokens", "S1-25.padding", "S1-25.mfu", "S1-25.document", "S1-29.folder", "S1-29.arguments"}
    told = {criterion["id"] for criterion in manifest["criteria"] if "remedy" in criterion or "log" in criterion}
    assert {criterion["id"] for criterion in manifest["criteria"]} - told == obvious


def test_the_playbook_selects_it(manifest):
    playbook = yaml.safe_load((ROOT / "playbooks/validate_baseline.yml").read_text(encoding="utf-8"))
    assert playbook[0]["vars"]["__categories"] == [manifest["category"]]


# -- the command line


@pytest.fixture
def job(monkeypatch, tmp_path):
    """The job script's environment."""
    for name in ("RUNS_ROOT", "HPC_VALIDATION_SEED", "HPC_VALIDATION_ACCELERATOR"):
        monkeypatch.delenv(name, raising=False)
    folders = {"MODEL_DIR": "model", "DATA_DIR": "data", "OUTPUT_DIR": "out", "HPC_VALIDATION_SHARE": "share"}
    for name, folder in folders.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    return monkeypatch


def parse(*arguments):
    return sft_min_arguments.parse(None, 0.0, list(arguments))


@pytest.mark.usefixtures("job")
def test_the_documents_defaults(tmp_path):
    settings = parse()
    assert (settings.max_steps, settings.batch, settings.seed) == (10, DOCUMENT, 42)
    assert (settings.subset_size, settings.learning_rate, settings.lora) == (2048, 2e-5, False)
    assert settings.accelerator == "cuda"
    assert settings.results == tmp_path / "share/results/training/sft_1gpu_smoke"
    assert (settings.model, settings.dataset, settings.output_dir) == tuple(
        tmp_path / n for n in ("model", "data", "out")
    )


def test_by_hand_everything_goes_to_the_runs_folder(job, tmp_path):
    job.delenv("OUTPUT_DIR")
    job.setenv("RUNS_ROOT", str(tmp_path / "runs"))
    settings = parse("--run_name", "mine")
    assert settings.output_dir == settings.results == tmp_path / "runs/mine"


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--max_steps", "0"], "--max_steps must be at least 1"),
        (["--grad_accum", "-1"], "--grad_accum must be at least 1"),
        (["--seq_len", "1"], "--seq_len must be at least 2"),
        (["--learning_rate", "nan"], "--learning_rate must be a finite number"),
        (["--learning_rate", "0"], "--learning_rate must be a finite number"),
        (["--run_name", "../else"], "--run_name: letters"),
        (["--run_name", "a/b"], "--run_name: letters"),
        (["--accelerator", "tpu"], "invalid choice"),
    ],
)
def test_wrong_usage_is_refused(capsys, arguments, told):
    with pytest.raises(SystemExit) as ended:
        parse(*arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("name", ["MODEL_DIR", "DATA_DIR", "OUTPUT_DIR"])
def test_a_folder_that_nobody_names_is_asked_for(job, capsys, name):
    job.delenv(name)
    with pytest.raises(SystemExit):
        parse()
    assert name in capsys.readouterr().err


# -- the data


ROW = {"instruction": "Add them.", "input": "1 and 2", "output": "3"}


def test_alpacas_prompt():
    assert sft_min_data.text_of(ROW) == "### Instruction:\nAdd them.\n\n### Input:\n1 and 2\n\n### Response:\n3"
    assert sft_min_data.text_of({**ROW, "input": ""}) == "### Instruction:\nAdd them.\n\n### Response:\n3"


def test_padding_is_not_learned_and_the_end_is():
    assert sft_min_data.sample_of([1, 5, 6], end=2, length=6) == sft_min_data.Sample(
        (1, 5, 6, 2, 2, 2), (1, 5, 6, 2, -100, -100), 4
    )


def test_a_long_text_is_cut():
    assert sft_min_data.sample_of([1, 5, 6, 7], end=2, length=3) == sft_min_data.Sample((1, 5, 6), (1, 5, 6), 3)


@given(st.lists(st.integers(0, 99), min_size=1, max_size=40), st.integers(2, 32))
def test_every_sample_has_the_length_and_something_to_learn(ids, length):
    sample = sft_min_data.sample_of(ids, end=2, length=length)
    assert len(sample.input_ids) == len(sample.labels) == length
    assert sum(label != -100 for label in sample.labels) == sample.length >= 2
    assert sample.labels[: sample.length] == sample.input_ids[: sample.length]


def test_rows_are_drawn_in_whole_passes_by_the_seed():
    drawn = sft_min_data.draw(rows=7, needed=17, seed=1)
    assert sorted(drawn[:7]) == sorted(drawn[7:14]) == list(range(7))
    assert drawn[:7] != drawn[7:14]
    assert drawn == sft_min_data.draw(7, 17, 1) != sft_min_data.draw(7, 17, 2)


def write_rows(folder, content):
    folder.mkdir(exist_ok=True)
    (folder / "train.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def test_only_the_subset_is_read(tmp_path):
    rows = sft_min_data.read_rows(write_rows(tmp_path, [ROW, ROW, {"prompt": "of no concern"}]), limit=2)
    assert rows == [ROW, ROW]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([], "has no rows"),
        ({"rows": [ROW]}, "has no rows"),
        ([{"prompt": "x", "completion": "y"}], "row 0 has no text instruction"),
        ([ROW, {**ROW, "output": None}], "row 1 has no text output"),
        ([ROW, "text"], "row 1 has no text instruction"),
        ("[{", "is not JSON"),
        ("[" * 100000, "is not JSON"),
        ("", "is not JSON"),
    ],
)
def test_a_wrong_dataset_is_told_in_one_line(tmp_path, content, told):
    with pytest.raises(WorkloadError, match=re.escape(told)) as error:
        sft_min_data.read_rows(write_rows(tmp_path, content), 2048)
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_a_missing_dataset_is_told(tmp_path):
    with pytest.raises(WorkloadError, match=r"No such file.*stage it again"):
        sft_min_data.read_rows(tmp_path, 1)


@pytest.fixture
def staged(tmp_path, monkeypatch):
    """A staged model whose files are not those of one: the kit's own tests look at those."""
    monkeypatch.setattr(sft_min_data, "check_model", lambda *_given: None)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"12345")
    provenance = {"name": "mistral_7b", "source": "path", "description": "Mistral", "revision": "r", "recipe": None}
    provenance["files"] = {"model.safetensors": {"size": 5, "sha256": "not looked at"}}
    (folder / "provenance.json").write_text(json.dumps(provenance))
    return folder


def test_a_staged_model_says_what_it_is(staged):
    told = sft_min_data.describe_model(staged)
    assert told == {"name": "mistral_7b", "source": "path", "description": "Mistral", "revision": "r"}


def test_weights_of_another_size_are_damaged(staged):
    (staged / "model.safetensors").write_bytes(b"1234")
    with pytest.raises(KitError, match=r"is damaged: it has 4 bytes, provenance.json says 5"):
        sft_min_data.describe_model(staged)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"files": []}', '{"files": {"model.safetensors": 1}}'])
def test_damaged_provenance_is_told(staged, text):
    (staged / "provenance.json").write_text(text)
    with pytest.raises(KitError, match=r"provenance.json is damaged.*stage it again"):
        sft_min_data.describe_model(staged)


def test_a_model_that_is_no_folder_is_told(tmp_path):
    with pytest.raises(WorkloadError, match=r"is not a folder on this node.*--model"):
        sft_min_data.describe_model(tmp_path / "mistralai/Mistral-7B-v0.1")


# -- the figures


def test_the_documents_learning_rates():
    rates = [figures.learning_rate(step, 10, 2e-5) for step in range(1, 11)]
    assert rates == pytest.approx([2.0e-5, 1.8e-5, 1.6e-5, 1.4e-5, 1.2e-5, 1.0e-5, 8e-6, 6e-6, 4e-6, 2e-6])


def test_the_documents_own_figures_come_out():
    found = figures.document_figures(ten_steps(), DOCUMENT, 139.36)
    assert found["train_loss"] == pytest.approx(1.2404, abs=5e-5)
    assert found["approx_tokens"] == 5120
    assert found["approx_tokens_per_second"] == found["approx_tokens_per_s"] == pytest.approx(36.74, abs=0.005)
    assert found["train_samples_per_second"] == pytest.approx(0.287, abs=0.0005)
    assert found["train_steps_per_second"] == pytest.approx(0.072, abs=0.0005)
    assert found["wall_time_s"] == found["train_runtime_s"] == 139.36


def test_the_honest_ones_count_accumulation_and_leave_the_save_out():
    found = figures.figures(ten_steps(0.5), DOCUMENT, MISTRAL, 5.0, 989.4e12)
    assert (found["tokens_total"], found["tokens_non_padding"]) == (20480, 6000)
    assert found["tokens_per_second"] == 4096
    assert found["tokens_per_second_median"] == 4096
    assert found["flops_per_token"] == pytest.approx(44.26e9, rel=1e-3)  # 6N + 12 · 32 · 4096 · 512
    assert found["mfu"] == pytest.approx(4096 * 44.26e9 / 989.4e12, rel=1e-3)
    assert (found["layers"], found["attention_width"], found["sequence_length"]) == (32, 4096, 512)


def test_an_adapter_needs_no_gradients_of_frozen_weights():
    frozen = flops.Shape(MISTRAL.parameters, 0, MISTRAL.layers, MISTRAL.width, MISTRAL.length)
    assert flops.flops_per_token(MISTRAL) - flops.flops_per_token(frozen) == 2 * MISTRAL.parameters


def test_what_was_not_measured_is_null():
    nothing = figures.figures(figures.Steps(), DOCUMENT, MISTRAL, 0.0, None)
    assert [nothing[name] for name in ("mfu", "tokens_per_second", "step_seconds_median", "memory_growth")] == [
        None
    ] * 4
    assert figures.document_figures(figures.Steps(), DOCUMENT, 0.0)["train_loss"] is None
    assert figures.figures(ten_steps(), DOCUMENT, MISTRAL, 5.0, None)["mfu"] is None


def test_a_loss_that_was_not_finite_is_of_no_finished_step():
    steps = figures.Steps(loss=[1.0, float("nan")], seconds=[1.0])
    assert figures.document_figures(steps, DOCUMENT, 1.0)["train_loss"] == 1.0


def test_warm_up_is_left_out_of_the_step_times():
    found = figures.step_times([9.0, 5.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.5])
    assert found == {"step_seconds_median": 1.0, "step_seconds_p95": 1.5, "step_seconds_spread": 0.5}
    assert set(figures.step_times([9.0, 5.0]).values()) == {None}


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=200), st.floats(0.01, 1))
def test_a_percentile_is_a_value_that_enough_do_not_exceed(values, share):
    found = figures.percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)


@pytest.mark.parametrize(
    ("peaks", "growth"),
    [
        ([50, 60, 60, 60, 60, 60], 0.0),
        ([50, 60, 60, 60, 66, 60], 0.1),
        ([99, 60, 60, 60, 30, 30], -0.5),
        ([10, 20, 30], 0.5),
        ([10, 20], None),
        ([0, 0, 0], None),
    ],
)
def test_memory_growth_is_of_the_last_third_over_the_second_step(peaks, growth):
    assert figures.memory_growth(peaks) == (growth if growth is None else pytest.approx(growth))


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989.4e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA H100 NVL", 835.5e12),
        ("NVIDIA H200", 989.4e12),
        ("NVIDIA GH200 480GB", 989.4e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA A10", 125e12),
        ("NVIDIA L40S", 362e12),
        ("NVIDIA A10G", None),
        ("Tesla V100-SXM2-32GB", None),
        ("", None),
        (None, None),
    ],
)
def test_peaks_are_those_of_the_gpus_own_name(name, peak):
    assert flops.peak_flops(name) == peak


# -- the results


def test_runs_root_is_the_shares_unless_named():
    assert sft_min_results.runs_root({"HPC_VALIDATION_SHARE": "/s"}) == Path("/s/results/training")
    assert sft_min_results.runs_root({"HPC_VALIDATION_SHARE": "/s", "RUNS_ROOT": "/r"}) == Path("/r")
    assert sft_min_results.runs_root({}) is None


# -- env.sh


@pytest.fixture
def share(tmp_path):
    """A share, its name no plain word, with two environments, the first of which was never finished."""
    root = tmp_path / "my sha're"
    (root / "scripts/sft_single_gpu").mkdir(parents=True)
    (root / "scripts/sft_single_gpu/env.sh").write_bytes((HOME / "env.sh").read_bytes())
    for name in ("sft-1-py3.12", "sft-2-py3.12"):
        (root / f"venvs/{name}/bin").mkdir(parents=True)
    (root / "venvs/sft-2-py3.12/runtime.json").write_text("{}")
    return root


def source(share, *names):
    script = f'source "$1" || exit 3; for name in {" ".join(names)}; do echo "${{!name}}"; done'
    argv = ["bash", "-euc", script, "-", str(share / "scripts/sft_single_gpu/env.sh")]
    done = subprocess.run(argv, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    return SimpleNamespace(code=done.returncode, lines=done.stdout.splitlines(), err=done.stderr)


def test_env_sh_finds_the_share_from_its_own_place(share):
    found = source(share, "REPO_ROOT", "RUNS_ROOT", "HF_HOME", "HPC_VALIDATION_SHARE", "MODEL_DIR", "VIRTUAL_ENV")
    assert found.code == 0, found.err
    expected = ["", "/results/training", "/huggingface", "", "/huggingface/models/mistral_7b", "/venvs/sft-2-py3.12"]
    assert found.lines == [f"{share}{path}" for path in expected]
    assert (share / "results/training").is_dir()
    assert (share / "huggingface").is_dir()


def test_env_sh_exports_and_puts_the_environment_first(share):
    argv = ["bash", "-euc", 'source "$1"; env', "-", str(share / "scripts/sft_single_gpu/env.sh")]
    done = subprocess.run(argv, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True)
    found = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert found["RUNS_ROOT"] == f"{share}/results/training"
    assert found["PATH"].startswith(f"{share}/venvs/sft-2-py3.12/bin:")


def test_env_sh_without_an_environment_says_so(share):
    (share / "venvs/sft-2-py3.12/runtime.json").unlink()
    found = source(share, "REPO_ROOT")
    assert found.code == 3
    assert "validate_baseline.yml" in found.err


def test_shellcheck_accepts_env_sh():
    checked = subprocess.run(["shellcheck", str(HOME / "env.sh")], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
