# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of a chain: a damaged record is never none, and the last checkpoint is one that is whole."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import chain_folder
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import SlurmError

LINK = {"number": 1, "round": 1, "state": "submitted", "job_id": "7"}
LATER = {"number": 2, "round": 1, "state": "submitting", "job_id": None}
RECORD: dict[str, Any] = {
    "schema": 1,
    "id": "0a",
    "name": "x",
    "user": "admin",
    "state": "going",
    "round": 1,
    "created": 1000.0,
    "what": {},
    "links": [LINK, LATER],
}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert chain_folder.read_record(str(tmp_path)) is None
    chain_folder.write_record(str(tmp_path), RECORD)
    assert chain_folder.read_record(str(tmp_path)) == RECORD
    assert (tmp_path / "chain.json").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"schema": None},
        *({key: None} for key in ("id", "name", "user", "state", "round", "created", "what", "links")),
        {"round": True},
        {"state": "gone"},
        {"links": [LATER]},
        {"links": [LINK, LINK]},
        {"links": ["7"]},
        {"links": [{**LINK, "state": "ended"}]},
        {"links": [LINK, {**LATER, "state": "ended"}]},
        {"links": [{**LINK, "round": None}]},
        {"links": [{**LINK, "job_id": None}]},
        {"links": [{**LINK, "job_id": 7}]},
        {"links": [{**LINK, "job_id": "7; x"}]},
        {"links": [{**LINK, "job_id": "\u0667"}]},
        {"links": [{**LINK, "state": "submitting"}]},
    ],
)
def test_a_damaged_record_is_not_read(tmp_path: Path, change: dict[str, Any]) -> None:
    chain_folder.write_record(str(tmp_path), {**RECORD, **change})
    with pytest.raises(SlurmError, match=r"chain\.json cannot be read .* nothing is submitted"):
        chain_folder.read_record(str(tmp_path))


@pytest.mark.parametrize("key", sorted(RECORD))
def test_a_record_that_lacks_something_is_not_read(tmp_path: Path, key: str) -> None:
    chain_folder.write_record(str(tmp_path), {name: value for name, value in RECORD.items() if name != key})
    with pytest.raises(SlurmError, match="cannot be read"):
        chain_folder.read_record(str(tmp_path))


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"a": 1, "a": 2}', b"[" * 100000])
def test_what_is_no_record_is_not_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "chain.json").write_bytes(content)
    with pytest.raises(SlurmError, match="cannot be read"):
        chain_folder.read_record(str(tmp_path))


def test_a_record_of_more_than_eight_mebibytes_is_not_read(tmp_path: Path) -> None:
    content = json.dumps(RECORD).encode().ljust(8 << 20)
    (tmp_path / "chain.json").write_bytes(content)
    assert chain_folder.read_record(str(tmp_path)) == RECORD
    (tmp_path / "chain.json").write_bytes(content + b" ")
    with pytest.raises(SlurmError, match="it is longer than"):
        chain_folder.read_record(str(tmp_path))


def test_a_link_or_a_folder_in_its_place_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps(RECORD))
    (tmp_path / "chain.json").symlink_to("other.json")
    with pytest.raises(SlurmError):
        chain_folder.read_record(str(tmp_path))
    (tmp_path / "chain.json").unlink()
    os.mkfifo(tmp_path / "chain.json")
    with pytest.raises(SlurmError, match="not a regular file"):
        chain_folder.read_record(str(tmp_path))


def test_a_record_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SlurmError, match="could not be written"):
        chain_folder.write_record(str(tmp_path / "file"), RECORD)


def test_what_the_jobs_said(tmp_path: Path) -> None:
    assert chain_folder.entries(str(tmp_path)) == {}
    (tmp_path / "links").mkdir()
    (tmp_path / "links/7.json").write_text('{"outcome": "complete"}')
    (tmp_path / "links/8.json").write_text("{")
    (tmp_path / "links/.9.json.tmp").write_text("{}")
    (tmp_path / "links/x.json").write_text("{}")
    found = chain_folder.entries(str(tmp_path))
    assert sorted(found) == ["7", "8"]
    assert found["7"] == {"outcome": "complete"}
    assert "cannot be read" in found["8"]["outcome"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other/links").write_text("")
    with pytest.raises(SlurmError, match="links cannot be read"):
        chain_folder.entries(str(tmp_path / "other"))


def test_complete_or_not(tmp_path: Path) -> None:
    assert chain_folder.complete(str(tmp_path)) is None
    (tmp_path / "complete.json").write_text('{"step": 4}')
    assert chain_folder.complete(str(tmp_path)) == {"step": 4}
    (tmp_path / "complete.json").write_text("")
    with pytest.raises(SlurmError, match="complete"):
        chain_folder.complete(str(tmp_path))


def checkpoint(folder: Path, name: str, size: int = 4, **manifest: Any) -> None:
    place = folder / "checkpoints" / name
    place.mkdir(parents=True)
    (place / "rank").write_bytes(b"x" * size)
    (place / "manifest.json").write_text(json.dumps({"files": [{"name": "rank", "bytes": 4}], **manifest}))


def test_the_last_checkpoint_is_the_newest_whole_one(tmp_path: Path) -> None:
    assert chain_folder.last_checkpoint(str(tmp_path)) is None
    checkpoint(tmp_path, "checkpoint_step_9")
    checkpoint(tmp_path, "checkpoint_step_10")
    assert chain_folder.last_checkpoint(str(tmp_path)) == "checkpoint_step_10"
    checkpoint(tmp_path, "checkpoint_step_11", size=3)
    checkpoint(tmp_path, "checkpoint_step_12", files=[])
    checkpoint(tmp_path, "checkpoint_step_13", files=[{"name": "gone", "bytes": 4}])
    checkpoint(tmp_path, "checkpoint_step_14", files=["rank"])
    checkpoint(tmp_path, "checkpoint_step_15", files=[{"name": "rank", "bytes": 4}, {"name": "rank", "bytes": 5}])
    checkpoint(tmp_path, ".incomplete-checkpoint_step_16")
    (tmp_path / "checkpoints/checkpoint_step_17").mkdir()
    assert chain_folder.last_checkpoint(str(tmp_path)) == "checkpoint_step_10"
    checkpoint(tmp_path, "final_checkpoint_step_9")
    assert chain_folder.last_checkpoint(str(tmp_path)) == "checkpoint_step_10"
    checkpoint(tmp_path, "final_checkpoint_step_10")
    assert chain_folder.last_checkpoint(str(tmp_path)) == "final_checkpoint_step_10"


def test_word_to_stop_is_left_and_taken_back(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        chain_folder.ask_to_stop(str(tmp_path))
    finally:
        os.umask(before)
    chain_folder.ask_to_stop(str(tmp_path))
    assert (tmp_path / "stop").is_file()
    assert (tmp_path / "stop").stat().st_mode & 0o777 == 0o644
    (tmp_path / "complete.json").write_text("{}")
    chain_folder.let_go_on(str(tmp_path), 3)
    chain_folder.let_go_on(str(tmp_path), 4)
    assert [path.name for path in tmp_path.iterdir()] == ["complete-3.json"]
