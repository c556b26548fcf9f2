# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a device is sent: the same from the same, whole, and nothing but what was asked for."""

from __future__ import annotations

import hashlib
import json
import typing as t
import zipfile
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import bundle, payload
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.problem import ProblemError

from tests.unit.plugins.plugin_utils._edge.made_edge import JOB, LIMITS, PACKAGES, RUN, files, found, write_bundle

Json = dict[str, t.Any]
PROGRAMS = {"__main__.py": b"print(1)\n", "runner.py": b"print(2)\n"}
SETTINGS = {"folder": "~/.hpc_validation", "root": "/", "timeout": 3600}


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Json:
    """What `kit wheelhouse` answers."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    wheels = {"numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl": b"n" * 5000, "onnxruntime-1.32.0.whl": b"o" * 100}
    for name, content in wheels.items():
        (folder / name).write_bytes(content)
    told = [
        {"file": name, "sha256": hashlib.sha256(each).hexdigest(), "bytes": len(each)} for name, each in wheels.items()
    ]
    return {"folder": str(folder), "wheels": told, "packages": PACKAGES, "changed": False}


def read(path: Path, **changes: t.Any) -> bundle.Bundle:
    write_bundle(path, **changes)
    return bundle.read(path, JOB, found(path))


def built(path: Path, made: bundle.Bundle, wheelhouse: Json) -> Path:
    asked = payload.request(RUN, SETTINGS, made, wheelhouse["packages"])
    payload.build(path, asked, PROGRAMS, made, wheelhouse)
    return path


def test_a_payload_has_programs_bundle_wheels_and_what_is_asked(tmp_path: Path, wheelhouse: Json) -> None:
    made = read(tmp_path / "b.zip")
    with zipfile.ZipFile(built(tmp_path / "p.pyz", made, wheelhouse)) as packed:
        names = packed.namelist()
        asked = json.loads(packed.read("request.json"))
        parts = {name: packed.read(name) for name in names if name != "request.json"}
        assert packed.testzip() is None
        assert {entry.compress_type for entry in packed.infolist()} == {zipfile.ZIP_STORED}
        assert {(entry.date_time, entry.create_system, entry.external_attr >> 16) for entry in packed.infolist()} == {
            ((1980, 1, 1, 0, 0, 0), 3, 0o100644)
        }
        # Of the bundle and of the wheels it is not known how large they are; version 4.5 has room for more than 4 GB.
        assert {entry.extract_version for entry in packed.infolist() if "/" in entry.filename} == {45}
    assert set(parts) == {
        *PROGRAMS,
        *(f"bundle/{name}" for name in ("bundle.json", *files())),
        *(f"wheels/{each['file']}" for each in wheelhouse["wheels"]),
    }
    assert {name: parts[f"bundle/{name}"] for name in files()} == files()
    assert asked["files"] == {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
    assert {key: value for key, value in asked.items() if key != "files"} == {
        "schema": 1,
        "run": RUN,
        "folder": "~/.hpc_validation",
        "count": 1000,
        "seconds": 10.0,
        "soak": 60.0,
        "limit": 1800,
        "wait": 600,
        "root": "/",
        "keep": 2,
        "bundle": made.contents,
        "packages": PACKAGES,
    }


def test_the_same_makes_the_same(tmp_path: Path, wheelhouse: Json) -> None:
    one, other = read(tmp_path / "a.zip"), read(tmp_path / "later/b.zip")
    first = built(tmp_path / "1.pyz", one, wheelhouse).read_bytes()
    shuffled = {**wheelhouse, "wheels": wheelhouse["wheels"][::-1]}
    assert built(tmp_path / "2.pyz", other, shuffled).read_bytes() == first


@pytest.mark.parametrize("name", ["../numpy.whl", "numpy.txt"])
def test_a_wheel_has_the_name_of_one_and_lies_in_its_folder(wheelhouse: Json, name: str) -> None:
    told = wheelhouse["wheels"][0]
    (Path(wheelhouse["folder"]) / told["file"]).rename(Path(wheelhouse["folder"]) / name)
    told["file"] = name
    with pytest.raises(ProblemError, match="is not the wheel that was fetched"):
        payload.wheels(wheelhouse)


def test_a_bundle_that_is_torn_since_it_was_read_is_told(tmp_path: Path, wheelhouse: Json) -> None:
    made = read(tmp_path / "b.zip")
    made.path.write_bytes(made.path.read_bytes()[:100])
    with pytest.raises(ProblemError, match=r"bundle: deploy\.zip is torn"):
        built(tmp_path / "p.pyz", made, wheelhouse)


@pytest.mark.parametrize("what", ["changed", "gone", "elsewhere"])
def test_a_wheel_that_is_not_the_one_that_was_fetched_is_not_sent(tmp_path: Path, wheelhouse: Json, what: str) -> None:
    wheel = Path(wheelhouse["folder"]) / wheelhouse["wheels"][0]["file"]
    error: type[Exception] = ProblemError
    if what == "changed":
        wheel.write_bytes(b"evil")
    elif what == "gone":
        wheel.unlink()
        error = FileNotFoundError
    else:
        wheelhouse["wheels"][0]["file"] = "../b.zip"
    with pytest.raises(error):
        built(tmp_path / "p.pyz", read(tmp_path / "b.zip"), wheelhouse)


@pytest.mark.parametrize(
    ("timeout", "soak", "expected"),
    [
        (3600, 600.0, {"limit": 1800, "wait": 600}),
        (3600, 1680.0, {"limit": 1800, "wait": 600}),
        (600, 60.0, {"limit": 300, "wait": 100}),
        (3600, 1680.5, None),
        (600, 600.0, None),
    ],
)
def test_a_soak_must_fit_into_the_time_of_a_host(timeout: int, soak: float, expected: Json | None) -> None:
    if expected:
        assert payload.limits(timeout, soak) == expected
        return
    with pytest.raises(ProblemError, match=f"hpc_validation_edge_timeout, {timeout} s; set it to") as caught:
        payload.limits(timeout, soak)
    assert caught.value.told["id"] == "limit"
    needed = int(caught.value.told["text"].split("set it to ")[1].split()[0])
    assert payload.limits(needed, soak)


@pytest.mark.parametrize("soak", [0, 86400])
def test_a_soak_takes_up_to_a_day(tmp_path: Path, soak: int) -> None:
    assert payload.soak(read(tmp_path / "b.zip", limits={**LIMITS, "soak_seconds": soak})) == soak


@pytest.mark.parametrize("soak", [None, "600", True, -1, 86401])
def test_a_soak_is_a_number_of_seconds(tmp_path: Path, soak: t.Any) -> None:
    with pytest.raises(ProblemError, match="soak_seconds is"):
        payload.soak(read(tmp_path / "b.zip", limits={**LIMITS, "soak_seconds": soak}))


def test_the_programs_are_those_of_the_list() -> None:
    listed = json.loads((payload.FOLDER / payload.LIST).read_text())
    found = payload.parts()
    assert found == {name: (payload.FOLDER / file).read_bytes() for name, file in listed.items()}
    assert {"__main__.py", "runner.py", "sensors.py"} <= set(found)
    assert "look.py" not in found
    assert "remove.py" not in found


@pytest.mark.parametrize("listed", [[], "x", {"a.py": "../a.py"}, {"../a.py": "a.py"}, {"a.py": 3}, {"a.py": "A.PY"}])
def test_a_list_of_anything_else_is_a_defect_of_ours(tmp_path: Path, listed: t.Any) -> None:
    (tmp_path / payload.LIST).write_text(json.dumps(listed))
    with pytest.raises(ValueError, match="expected the name of each program"):
        payload.parts(tmp_path)
