"""Each pattern that ships matches what it must and nothing that it must not, through the search itself."""

from __future__ import annotations

import io
import re

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _evidence_log
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import _log_patterns, _remedies, _xids

FILES = sorted(_log_patterns.FOLDER.glob("*.yml"))
CONTENTS = {path.stem: yaml.safe_load(path.read_text()) for path in FILES}
SETS = _log_patterns.load()
SEARCH = _evidence_log.compile_sets(SETS)
PATTERNS = [(name, entry) for name, content in CONTENTS.items() for entry in content["patterns"]]
EXCEPTIONS = [(name, entry) for name, content in CONTENTS.items() for entry in content["except"]]
HARMLESS = """\
epoch 1/5 step 100/469 loss 0.2345 accuracy 0.9312 12000 samples/s cuda:0 eta 12 s
node1:534:1763 [3] NCCL INFO comm 0x7f1928e6e060 rank 3 nranks 4 cudaDev 3 busId 3b000 - Init COMPLETE
node1:534:1763 [3] NCCL INFO NCCL_DEBUG set by environment to INFO
NVIDIA-SMI 570.86.15  Driver Version: 570.86.15  CUDA Version: 12.8
mean squared error: 0.0123, 0 errors, CUDA available: True
saved to /mnt/beegfs/models/mnist/job-12/mnist_cnn_single_gpu.pt
hpc-validation-end job=12 attempt=0 exit=0
"""


def hits(line, name):
    return SEARCH.scan(io.BytesIO(line.encode() + b"\n"))["hits"][name]


def test_the_promised_sets_are_there():
    assert set(SETS) == {
        "cuda_errors",
        "cuda_warnings",
        "io_errors",
        "nccl_errors",
        "nvidia_driver",
        "oom",
        "python_traceback",
        "slurm_errors",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_set_says_what_it_is(path):
    content = CONTENTS[path.stem]
    assert set(content) == {"name", "title", "patterns", "except"}
    assert content["name"] == path.stem
    ids = [entry["id"] for entry in [*content["patterns"], *content["except"]]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(("name", "entry"), PATTERNS, ids=[f"{name}.{entry['id']}" for name, entry in PATTERNS])
def test_a_pattern_does_what_its_examples_say(name, entry):
    assert set(entry) in [{"id", "regex", "texts", "source", "matches", "rejects", do} for do in ("remedy", "symptom")]
    assert entry["source"].startswith("https://")
    assert "symptom" in entry or entry["remedy"].endswith(".")
    assert entry["matches"]
    assert entry["rejects"]
    (own,) = [pattern for pattern in SETS[name]["patterns"] if pattern["id"] == entry["id"]]
    alone = {name: {"patterns": [own], "except": SETS[name]["except"]}}
    for line in entry["matches"]:
        found = _evidence_log.compile_sets(alone).scan(io.BytesIO(line.encode() + b"\n"))["hits"][name]
        assert [hit["pattern"] for hit in found] == [entry["id"]], line
        assert hits(line, name), line
    for line in entry["rejects"]:
        assert not _evidence_log.compile_sets(alone).scan(io.BytesIO(line.encode()))["hits"][name], line


@pytest.mark.parametrize("entry", [entry for _name, entry in PATTERNS], ids=lambda entry: entry["id"])
def test_a_line_that_a_pattern_matches_holds_one_of_its_texts(entry):
    for line in entry["matches"]:
        assert any(text in line for text in entry["texts"]), line


@pytest.mark.parametrize(("name", "entry"), EXCEPTIONS, ids=[f"{name}.{entry['id']}" for name, entry in EXCEPTIONS])
def test_an_exception_covers_its_examples(name, entry):
    assert set(entry) == {"id", "regex", "source", "matches"}
    for line in entry["matches"]:
        assert not hits(line, name), line


def test_a_healthy_log_has_no_hit():
    found = SEARCH.scan(io.BytesIO(HARMLESS.encode()))
    assert set(found["counts"].values()) == {0}, found["hits"]


def test_a_symptom_has_the_remedy_that_a_probe_gives_for_it():
    (lost,) = [pattern for pattern in SETS["cuda_errors"]["patterns"] if pattern["id"] == "gpu_lost"]
    assert lost["remedy"] == _remedies.remedy("gpu.answers")


def test_a_symptom_without_a_remedy_is_named(tmp_path):
    (tmp_path / "mine.yml").write_text(
        "name: x\npatterns: [{id: a, texts: [a], regex: a, symptom: no.such}]\nexcept: []"
    )
    with pytest.raises(_log_patterns.PatternSetError, match=r"no\.such"):
        _log_patterns.load(tmp_path)


@pytest.mark.parametrize("action", _xids.ACTIONS)
def test_the_xids_of_a_pattern_are_those_of_the_table(action):
    (pattern,) = [p for p in SETS["nvidia_driver"]["patterns"] if p["id"] == f"xid_{action}"]
    table = {code for code, xid in _xids.load().items() if xid.severity != "info" and xid.action == action}
    lines = {code: f"NVRM: Xid (PCI:0000:20:00): {code}, pid=1" for code in range(1000)}
    assert {code for code, line in lines.items() if re.search(pattern["regex"], line)} == table


@pytest.mark.parametrize("content", ["", "- 1", "name: x", "name: x\npatterns: [{id: a}]\nexcept: []", "{"])
def test_a_set_that_cannot_be_read_is_named(tmp_path, content):
    (tmp_path / "mine.yml").write_text(content)
    with pytest.raises(_log_patterns.PatternSetError, match=r"mine\.yml"):
        _log_patterns.load(tmp_path)


def test_a_folder_without_sets_is_an_error(tmp_path):
    with pytest.raises(_log_patterns.PatternSetError, match="no pattern set"):
        _log_patterns.load(tmp_path)


def test_a_message_of_ours_has_the_remedy_of_the_same_line_in_a_log():
    sets = _log_patterns.load()
    told = next(p["remedy"] for p in sets["io_errors"]["patterns"] if p["id"] == "full")
    assert _log_patterns.remedy_of("cp: error writing 'x': No space left on device") == told
    assert _log_patterns.remedy_of("nothing that anybody knows") is None
