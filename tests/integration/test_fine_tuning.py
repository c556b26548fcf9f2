"""Fine-tuning gone wrong, on the real cluster with real Oumi: each fault fails its own criterion by number."""

from __future__ import annotations

import json
import shutil
import time

import pytest
import yaml

from tests.integration.conftest import ANY_SPEED, CACHE, CLUSTER, ROOT, cluster, jobs, running_play, wait_for

SOURCE = ROOT / "files/workloads/smollm_sft_single_gpu"
BEFORE_INFERENCE = "    if status == 0:\n"
# Of what Oumi is told on the command line; of two words for one setting the last counts.
LAST_WORD = 'f"training.output_dir={arguments.output}",'


@pytest.fixture
def altered(tmp_path):
    """(file, old, new, changes of the manifest) → variables that select such a copy of MLOPS-1.2."""

    def make(file=None, old="", new="", **changes):
        folder = tmp_path / "workloads/altered_smollm"
        shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
        if file:
            text = (folder / file).read_text()
            assert text.count(old) == 1, f"{file} does not hold {old!r} once"
            (folder / file).write_text(text.replace(old, new))
        manifest = yaml.safe_load((folder / "workload.yml").read_text())
        manifest.update(id="TEST-12", name="altered_smollm", needs=[], category=99)
        manifest["output"]["directory"] = "models/altered-smollm/job-%j"
        manifest["resources"].update(changes.pop("resources", {}))
        (folder / "workload.yml").write_text(yaml.safe_dump({**manifest, **changes}))
        return {
            "hpc_validation_workload_folders": [str(folder.parent)],
            "hpc_validation_only": ["TEST-12"],
            "hpc_validation_nodes": ["compute01"],
            **ANY_SPEED,
        }

    return make


def amiss(played):
    """The criteria that are neither met nor not applicable, with their verdicts."""
    (workload,) = played.verdict["workloads"]
    return {c["id"]: c["verdict"] for c in workload["criteria"] if c["verdict"] in ("fail", "undetermined")}


def before_inference(statement):
    """What the workload's script does between training and inference."""
    return f"    {statement}\n{BEFORE_INFERENCE}"


@pytest.mark.slow
def test_a_learning_rate_of_0_does_not_lower_the_loss(play, altered):
    variables = altered("oumi_train.py", LAST_WORD, f"{LAST_WORD} 'training.learning_rate=0.0',")
    played = play(variables=variables)
    assert played.code != 0
    # Shuffled batches of a model that does not change: the fitted line may fall a little, but not by what is demanded.
    assert {"S0-34", "S0-34.margin", "S0-36.learned"} & set(amiss(played)) >= {"S0-36.learned"}, amiss(played)
    assert set(amiss(played)) <= {"S0-34", "S0-34.margin", "S0-36.learned"}
    assert played.criterion("S0-36.learned")["verdict"] == "fail"


@pytest.mark.slow
def test_a_loss_that_is_not_a_number_is_seen_though_oumi_would_hide_it(play, altered):
    variables = altered("oumi_train.py", LAST_WORD, f"{LAST_WORD} 'training.learning_rate=1e38',")
    played = play(variables=variables)
    assert played.code != 0
    assert played.criterion("S0-31.finite")["verdict"] == "fail", played.end
    assert played.criterion("S0-31")["verdict"] == "fail"
    assert played.criterion("JOB")["verdict"] == "fail"
    evidence = json.loads((played.folder / "evidence/TEST-12.json").read_text())
    assert evidence["metrics"]["error"].startswith("NotFiniteError: ")


@pytest.mark.slow
def test_a_job_over_its_memory_is_told_as_that(play, altered):
    played = play(variables=altered(resources={"mem": "300M"}))
    assert played.code != 0
    assert played.criterion("JOB")["verdict"] == "fail"
    assert "OUT_OF_MEMORY" in played.criterion("JOB")["why"]
    assert played.criterion("S0-35")["verdict"] == "fail", played.end


@pytest.mark.slow
def test_a_job_whose_step_ran_out_of_memory_fails_though_its_script_ended_well(play, altered):
    variables = altered("smollm_sft_single_gpu.py", "    return status\n", "    return 0\n", resources={"mem": "300M"})
    played = play(variables=variables)
    assert played.code != 0
    assert played.criterion("JOB")["verdict"] == "fail"
    assert "memory" in played.criterion("JOB")["why"].lower()
    assert played.criterion("S0-31")["verdict"] != "pass"


@pytest.mark.slow
def test_a_truncated_checkpoint_is_found(play, altered):
    cut = 'os.truncate(trained / "checkpoint-40/model.safetensors", 100_000)'
    played = play(variables=altered("smollm_sft_single_gpu.py", BEFORE_INFERENCE, before_inference(cut)))
    assert played.code != 0
    assert amiss(played) == {"S0-33": "fail"}


@pytest.mark.slow
def test_a_model_that_cannot_be_used_fails_the_inference(play, altered):
    lose = '(trained / "config.json").unlink()'
    played = play(variables=altered("smollm_sft_single_gpu.py", BEFORE_INFERENCE, before_inference(lose)))
    assert played.code != 0
    assert played.criterion("S0-36")["verdict"] == "fail", played.end
    assert played.criterion("JOB")["verdict"] == "fail"
    assert {"S0-31", "S0-33", "S0-34"} & set(amiss(played)) == set()


def check_refused(played, words):
    """The verdict says why, and nothing was submitted for the workload."""
    assert played.code != 0
    assert words in played.verdict["why"], played.end
    assert played.verdict["workloads"][0]["job"] is None
    assert jobs() == []


@pytest.fixture
def reading(canary):
    """Variables of a canary that reads what MLOPS-1.2 reads: it is staged, and then a job of a second runs."""
    return canary(models=["smollm_135m"], data=["no_robots"], runtime="oumi")


def cut_in_half(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])


@pytest.mark.slow
def test_a_model_that_was_copied_in_part_is_refused_before_its_job(play, reading, tmp_path):
    assert play(variables=reading).code == 0  # the stand-in is staged
    given = tmp_path / "given"
    shutil.copytree(CACHE / "clusters" / CLUSTER / "share/huggingface/models/smollm_135m", given)
    (given / "provenance.json").unlink()
    cut_in_half(given)
    played = play(
        variables={**reading, "hpc_validation_models": {"smollm_135m": {"source": "path", "path": str(given)}}}
    )
    check_refused(played, "model.safetensors")


@pytest.mark.slow
def test_a_folder_without_the_dataset_is_refused_before_its_job(play, reading, tmp_path):
    (tmp_path / "given").mkdir()
    (tmp_path / "given/README.md").write_bytes(b"# no_robots")
    given = {"hpc_validation_datasets": {"no_robots": {"source": "path", "path": str(tmp_path / "given")}}}
    check_refused(play(variables={**reading, **given}), "the split train is missing")


@pytest.mark.slow
def test_a_share_that_fills_up_in_the_middle_of_a_checkpoint_is_told(altered, tmp_path):
    """The folder of checkpoints gets a file system that holds the weights of one and not its optimizer's state."""
    share = CACHE / "clusters" / CLUSTER / "share"
    began, results = time.time(), tmp_path / "results"

    def progress():
        found = share.glob("models/altered-smollm/job-*/progress.jsonl")
        return [path for path in found if path.stat().st_mtime > began and path.stat().st_size > 0]

    with running_play({**altered(), "hpc_validation_results": str(results)}, tmp_path, "RUNNING for") as played:
        wait_for(progress, 200)
        model = f"/mnt/beegfs/models/altered-smollm/{progress()[0].parent.name}/model"
        cluster("compute01", "mount", "-t", "tmpfs", "-o", "size=6m,mode=1777", "full", model)
        try:
            assert played.wait(timeout=300) != 0
        finally:
            cluster("compute01", "umount", "--lazy", model)
    assert (share / "configs/altered_smollm/smollm_sft_single_gpu.yaml").is_file()  # which the job has read
    (verdict,) = [json.loads(path.read_text()) for path in results.glob("*/verdict.json")]
    criteria = {c["id"]: c for c in verdict["workloads"][0]["criteria"]}
    assert criteria["JOB"]["verdict"] == "fail"
    assert criteria["S0-31"]["verdict"] == "fail"
    assert criteria["S0-33"]["verdict"] in ("fail", "undetermined")
    assert criteria["S0-33.written"]["verdict"] == "fail"
