from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.filter.stage_plan import stage_plan
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import staging
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.staging import StagePlanError

SHARE = "/mnt/beegfs"
MNIST = {"id": "MLOPS-1.1", "runtime": "pytorch", "data": ["mnist"], "models": []}
SMOLLM = {"id": "MLOPS-1.2", "runtime": "oumi", "data": ["no_robots"], "models": ["smollm_135m"]}
TOKENS = {"id": "A-1", "runtime": "deepspeed", "data": ["pretraining_tokens"], "models": []}
OTHER = {"id": "MLOPS-2.2", "runtime": "sft", "data": ["no_robots"], "models": ["smollm_135m"]}


def venv(name):
    return {"key": name, "name": name, "kind": "venv", "locked": True}


def test_what_is_staged_and_where():
    planned = staging.plan([MNIST, SMOLLM], {"datasets": {"mnist": {"source": "stand-in"}}, "models": {}}, SHARE)
    assert planned["runtimes"] == [venv("pytorch"), venv("oumi"), venv("standin")]
    assert planned["by_workload"] == {"MLOPS-1.1": "pytorch", "MLOPS-1.2": "oumi"}
    assert [(source["name"], source["source"], source["runtime"]) for source in planned["sources"]] == [
        ("mnist", "stand-in", "standin"),
        ("no_robots", "download", "oumi"),
        ("smollm_135m", "download", "oumi"),
    ]
    assert planned["sources"][2] == {
        "kind": "models",
        "name": "smollm_135m",
        "source": "download",
        "copied": None,
        "script": "scripts/models/smollm_135m/stage.py",
        "target": "huggingface/models/smollm_135m",
        "incoming": "huggingface/models/.incoming/smollm_135m",
        "runtime": "oumi",
        "options": [],
    }


def test_what_two_workloads_read_is_staged_once():
    planned = staging.plan([SMOLLM, OTHER], {"datasets": {}, "models": {}}, SHARE)
    assert [source["name"] for source in planned["sources"]] == ["no_robots", "smollm_135m"]
    assert planned["runtimes"] == [venv("oumi"), venv("sft")]


def test_a_folder_and_a_revision_are_handed_on(tmp_path):
    settings = {"datasets": {"no_robots": {"source": "path", "path": str(tmp_path)}}}
    settings["models"] = {"smollm_135m": {"revision": "v1"}}
    data, model = staging.plan([SMOLLM], settings, SHARE)["sources"]
    assert (data["copied"], data["options"]) == (str(tmp_path), ["--from", f"{SHARE}/datasets/.incoming/no_robots"])
    assert (model["copied"], model["options"]) == (None, ["--revision", "v1"])


def test_a_folder_that_lies_on_the_share_is_not_copied():
    given = {"models": {"smollm_135m": {"source": "path", "path": f"{SHARE}/mine/smollm"}}}
    _data, model = staging.plan([SMOLLM], given, SHARE)["sources"]
    assert (model["copied"], model["options"]) == (None, ["--from", f"{SHARE}/mine/smollm"])


def test_a_bucket_and_its_key_are_handed_on():
    tokens = {"url": "gs://tokens/gpt_2.v1/a=b", "credentials": "/home/admin/key.json"}
    settings = {"datasets": {"pretraining_tokens": tokens}}
    (planned,) = staging.plan([TOKENS], settings, SHARE)["sources"]
    assert (planned["source"], planned["copied"]) == ("download", None)
    assert planned["options"] == ["--url", "gs://tokens/gpt_2.v1/a=b", "--credentials", "/home/admin/key.json"]
    settings = {"datasets": {"pretraining_tokens": {"url": "gs://tokens"}}}
    assert staging.plan([TOKENS], settings, SHARE)["sources"][0]["options"] == ["--url", "gs://tokens"]


def test_a_relative_folder_is_one_below_where_the_user_stands(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    given = {"datasets": {"mnist": {"source": "path", "path": "mine"}}}
    assert staging.plan([MNIST], given, SHARE)["sources"][0]["copied"] == str(tmp_path / "mine")


def test_workloads_without_data_need_their_runtime_alone():
    assert staging.plan([{"id": "A-1", "runtime": "pytorch"}], {}, SHARE) == {
        "runtimes": [venv("pytorch")],
        "sources": [],
        "by_workload": {"A-1": "pytorch"},
    }


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"datasets": {"mnst": {"source": "download"}}},
            "hpc_validation_datasets.mnst: unknown name; available: .* mnist",
        ),
        ({"models": {"gpt": {}}}, "hpc_validation_models.gpt: unknown name"),
        ({"datasets": {"mnist": "download"}}, "hpc_validation_datasets.mnist: expected a source"),
        (
            {"datasets": {"mnist": {"sorce": "download"}}},
            "mnist: unknown key sorce; expected source, path, revision, url, credentials",
        ),
        ({"datasets": {"mnist": {"url": "gs://tokens/x"}}}, r"mnist\.url is only for downloads from a bucket"),
        (
            {"datasets": {"pretraining_tokens": {"source": "stand-in", "url": "gs://tokens/x"}}},
            r"pretraining_tokens\.url is only for downloads from a bucket",
        ),
        *(
            ({"datasets": {"pretraining_tokens": {"url": url}}}, r"tokens\.url: expected gs://BUCKET/PREFIX, found")
            for url in ("https://x.org/y", "gs://", "gs://UPPER/x", "gs://tokens/", "gs://tokens/a b", 7, None)
        ),
        (
            {"datasets": {"pretraining_tokens": {"credentials": "/x"}}},
            r"tokens\.credentials is only for a download with a url",
        ),
        *(
            (
                {"datasets": {"pretraining_tokens": {"url": "gs://tokens/x", "credentials": key}}},
                r"tokens\.credentials: expected the path of a key on the login node, found",
            )
            for key in ("key.json", "", None, {"type": "service_account"})
        ),
        ({"datasets": {"mnist": {"source": "internet"}}}, "mnist.source: expected one of download, path, stand-in"),
        (
            {"datasets": {"mnist": {"source": "path"}}},
            "mnist.path: expected a folder on the controller or below /mnt/beegfs, found None",
        ),
        ({"datasets": {"mnist": {"source": "path", "path": "/nowhere/at/all"}}}, "expected a folder .*/nowhere/at/all"),
        ({"datasets": {"mnist": {"path": "/tmp"}}}, "mnist.path belongs to source: path; its source is download"),
        ({"datasets": {"mnist": {"revision": "main"}}}, "mnist.revision is only for downloads from a hub"),
        (
            {"models": {"smollm_135m": {"source": "stand-in", "revision": "main"}}},
            "smollm_135m.revision is only for downloads",
        ),
    ],
)
def test_settings_that_cannot_be_followed_are_refused(settings, expected):
    with pytest.raises(StagePlanError, match=expected):
        staging.plan([MNIST], settings, SHARE)


def test_a_manifest_that_names_no_dataset_of_the_collection_is_refused():
    with pytest.raises(Exception, match=r"datasets/imagenet/source\.yml cannot be read"):
        stage_plan([{**MNIST, "data": ["imagenet"]}], {}, SHARE)


def test_every_dataset_and_model_has_its_script_and_every_source_a_runtime(root):
    for kind in staging.KINDS:
        for path in (root / "files" / kind).glob("*/source.yml"):
            offers = staging._offers(kind, path.parent.name, root / "files")
            assert set(staging.SOURCES) <= set(offers)
            for source in staging.SOURCES:
                runtime = offers[source]
                assert runtime == "workload" or (root / "files/requirements" / f"{runtime}.txt").is_file()
            assert (path.parent / "stage.py").is_file()
