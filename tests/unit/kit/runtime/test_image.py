# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image is in use only if it is whole, for this machine, and the one that was meant; and is known again by jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.files import sha256
from kit.runtime import image, image_build, image_record, sif

from tests.unit.conftest import ROOT
from tests.unit.kit.sif_files import ARM64, write_sif


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "containers").mkdir()
    return tmp_path / "containers"


@pytest.fixture
def wanted(folder: Path) -> image.Wanted:
    return image.Wanted("oumi", write_sif(folder / "oumi_latest.sif"))


def stage(wanted: image.Wanted, folder: Path, machine: str = "x86_64") -> dict[str, t.Any]:
    return image.stage(wanted, folder, machine)


def test_a_header_tells_machine_and_identity(tmp_path: Path) -> None:
    first, second = sif.read(write_sif(tmp_path / "a.sif")), sif.read(write_sif(tmp_path / "b.sif", architecture=ARM64))
    assert (first.machine, second.machine) == ("x86_64", "aarch64")
    assert first.identity != second.identity
    assert first.file["bytes"] == (tmp_path / "a.sif").stat().st_size


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "No such file"),
        (b"", "not an Apptainer image"),
        (b"<html>Sign in</html>" * 20, "was something else downloaded"),
        (b"#!/bin/sh\n" + b"\0" * 300, "not an Apptainer image"),
    ],
)
def test_what_is_no_image_is_refused(tmp_path: Path, content: bytes | None, expected: str) -> None:
    if content is not None:
        (tmp_path / "x.sif").write_bytes(content)
    with pytest.raises(KitError, match=expected):
        sif.read(tmp_path / "x.sif")


def test_one_that_is_there_is_hashed_once(wanted: image.Wanted, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not image.is_ready(wanted, folder)
    first = stage(wanted, folder)
    assert (first["changed"], first["sha256"]) == (True, sha256(wanted.path))
    monkeypatch.setattr(image, "sha256", None)
    second = stage(wanted, folder)
    assert (second["changed"], second["sha256"]) == (False, first["sha256"])


def test_one_that_was_replaced_is_hashed_anew(wanted: image.Wanted, folder: Path) -> None:
    first = stage(wanted, folder)
    write_sif(wanted.path, b"another")
    second = stage(wanted, folder)
    assert (second["changed"], second["sha256"]) == (True, sha256(wanted.path))
    assert second["sha256"] != first["sha256"]


def refusal(wanted: image.Wanted, folder: Path) -> str:
    """What staging says, after which nothing is known of the image."""
    with pytest.raises(KitError) as refused:
        stage(wanted, folder)
    assert not image_record.record_path(folder, wanted.name, wanted.path).exists()
    return str(refused.value)


def test_a_missing_one_is_named(folder: Path) -> None:
    told = refusal(image.Wanted("oumi", folder / "oumi_latest.sif"), folder)
    assert f"image {folder}/oumi_latest.sif does not exist: pull or build it there" in told
    assert "hpc_validation_images.oumi" in told


def test_one_that_is_cut_off_is_refused(wanted: image.Wanted, folder: Path) -> None:
    os.truncate(wanted.path, wanted.path.stat().st_size - 1)
    assert "is truncated: it has" in refusal(wanted, folder)


def test_one_of_another_architecture_is_refused(folder: Path) -> None:
    path = write_sif(folder / "x.sif", architecture=ARM64)
    assert "is built for aarch64, but this is x86_64" in refusal(image.Wanted("oumi", path), folder)


def test_another_than_was_meant_is_refused(wanted: image.Wanted, folder: Path) -> None:
    meant = image.Wanted("oumi", wanted.path, sha256="0" * 64)
    assert "hpc_validation_images.oumi.sha256" in refusal(meant, folder)


def test_another_hash_is_asked_for_than_the_known_one(wanted: image.Wanted, folder: Path) -> None:
    stage(wanted, folder)
    with pytest.raises(KitError, match="has SHA-256"):
        stage(image.Wanted("oumi", wanted.path, sha256="0" * 64), folder)


def test_one_that_others_could_change_is_refused(wanted: image.Wanted, folder: Path) -> None:
    wanted.path.chmod(0o666)
    assert f"everybody may write to {wanted.path}" in refusal(wanted, folder)
    wanted.path.chmod(0o644)
    folder.chmod(0o777)
    assert f"everybody may write to {folder}" in refusal(wanted, folder)


def test_one_of_another_user_is_refused(wanted: image.Wanted, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.stat

    def given_away(path: Path, **options: bool) -> os.stat_result:
        found = list(real(path, **options))
        return os.stat_result([*found[:4], 4711 if path == wanted.path else found[4], *found[5:]])

    monkeypatch.setattr(Path, "stat", given_away)
    with pytest.raises(KitError, match="belongs to user 4711"):
        image._require_own(wanted.path, os.getuid())
    image._require_own(wanted.path, 4711)


def test_one_that_is_replaced_while_it_is_hashed_is_not_taken_for_the_other(
    wanted: image.Wanted, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replaced(path: Path) -> str:
        digest = sha256(path)
        write_sif(path, b"another image")
        return digest

    monkeypatch.setattr(image, "sha256", replaced)
    with pytest.raises(KitError, match="is another run staging it"):
        stage(wanted, folder)


def test_a_copy_that_came_too_late_is_removed(folder: Path) -> None:
    target = write_sif(folder / "oumi_latest.sif")
    stage(image.Wanted("oumi", target), folder)
    incoming = write_sif(folder / ".incoming" / "oumi.sif")
    assert not stage(image.Wanted("oumi", target, incoming=incoming), folder)["changed"]
    assert not incoming.exists()


def test_a_copy_is_checked_and_put_in_place_at_once(folder: Path) -> None:
    incoming = write_sif(folder / ".incoming" / "oumi.sif")
    target = write_sif(folder / "oumi_latest.sif", b"the old one")
    old = target.read_bytes()
    bad = image.Wanted("oumi", target, sha256="0" * 64, incoming=incoming)
    refusal(bad, folder)
    assert target.read_bytes() == old
    staged = stage(image.Wanted("oumi", target, sha256=sha256(incoming), incoming=incoming), folder)
    assert (staged["changed"], staged["sha256"], incoming.exists()) == (True, sha256(target), False)
    assert target.read_bytes() != old


def test_a_name_cannot_lead_out_of_the_folder(folder: Path) -> None:
    with pytest.raises(KitError, match="use letters"):
        image_record.record_path(folder, "../../etc", folder / "x.sif")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda record, _path: record.unlink(), "nothing is known"),
        (lambda record, _path: record.write_text("{"), "Expecting"),
        (lambda record, _path: record.write_text("[]"), "indices"),
        (lambda _record, path: os.utime(path, (1, 1)), "since been replaced or changed"),
        (lambda _record, path: write_sif(path), "since been replaced or changed"),
        (lambda _record, path: path.unlink(), "No such file"),
    ],
)
def test_a_job_does_not_know_what_has_changed(
    wanted: image.Wanted, folder: Path, change: t.Callable[[Path, Path], object], expected: str
) -> None:
    stage(wanted, folder)
    record = image_record.record_path(folder, "oumi", wanted.path)
    assert image_record.known(record, wanted.path)[1] is None
    change(record, wanted.path)
    document, why = image_record.known(record, wanted.path)
    assert document is None
    assert expected in str(why)


# In the place of Apptainer: says its version, or keeps what it was called with and copies an image to its place.
APPTAINER = """#!{python}
import json, os, shutil, sys
if sys.argv[1] == "--version":
    print("apptainer version {version}")
    sys.exit()
told = {{"argv": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
json.dump(told, open({told!r}, "w"))
if {refuse!r}:
    sys.exit("FATAL: {refuse}")
shutil.copy({image!r}, sys.argv[-2])
"""


@pytest.fixture
def recipe(tmp_path: Path) -> image_build.Recipe:
    for name in ("requirements", "containers"):
        (tmp_path / "scripts" / name).mkdir(parents=True)
    (tmp_path / "scripts/requirements/oumi.txt").write_text("# needs-mb: 1\nx==1 --hash=sha256:00\n")
    (tmp_path / "scripts/containers/runtime.def").write_text("Bootstrap: {{ BOOTSTRAP }}\n")
    return image_build.Recipe("oumi", "docker-archive:/base.tar", tmp_path / "scripts", tmp_path / "cache")


@pytest.fixture
def apptainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., Path]:
    """(version, refuse) → the file in which the stand-in writes what it was called with."""

    def make(version: str = "1.4.5", refuse: str = "") -> Path:
        told, program = tmp_path / "told.json", tmp_path / "bin" / "apptainer"
        program.parent.mkdir(exist_ok=True)
        made = str(write_sif(tmp_path / "made.sif"))
        text = APPTAINER.format(python=sys.executable, version=version, told=str(told), refuse=refuse, image=made)
        program.write_text(text)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        return told

    return make


def built(recipe: image_build.Recipe, folder: Path) -> dict[str, t.Any]:
    return stage(image.Wanted("oumi", folder / "oumi_latest.sif", recipe=recipe), folder)


def test_an_image_is_built_once_for_each_recipe(recipe, folder, apptainer) -> None:
    told = apptainer()
    assert built(recipe, folder)["changed"]
    argv = json.loads(told.read_text())["argv"]
    assert argv[:2] == ["build", "--disable-cache"]
    assert {"BOOTSTRAP=docker-archive", "FROM=/base.tar", "NAME=oumi"} <= set(argv)
    assert not built(recipe, folder)["changed"]
    recipe.lock.write_text("# needs-mb: 1\nx==2 --hash=sha256:00\n")
    changed = image_build.Recipe(recipe.name, recipe.base, recipe.scripts, recipe.cache)
    assert built(changed, folder)["changed"]
    assert sorted(path.name for path in folder.iterdir()) == [".staged", "oumi_latest.sif"]


def test_passwords_reach_the_build_and_no_command_line(recipe, folder, apptainer, monkeypatch) -> None:
    told = apptainer()
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://user:sEcReT@index.example.org/simple")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:sEcReT@proxy.example.org")
    monkeypatch.setenv("HF_TOKEN", "sEcReT")
    bundle = folder.parent / "ca.crt"
    bundle.write_text("x")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    built(recipe, folder)
    seen = json.loads(told.read_text())
    assert "sEcReT" not in " ".join(seen["argv"])
    inside = {name: value for name, value in seen["environment"].items() if name.startswith("APPTAINERENV_")}
    assert inside["APPTAINERENV_UV_DEFAULT_INDEX"] == "https://user:sEcReT@index.example.org/simple"
    assert inside["APPTAINERENV_HTTPS_PROXY"] == "http://user:sEcReT@proxy.example.org"
    assert inside["APPTAINERENV_SSL_CERT_FILE"] == "/var/cache/hpc_validation/certificates.crt"
    assert f"{bundle}:/var/cache/hpc_validation/certificates.crt:ro" in seen["argv"]
    assert "APPTAINERENV_HF_TOKEN" not in inside
    assert "sEcReT" not in "".join(path.read_text() for path in (folder / ".staged").iterdir())


def test_a_folder_of_wheels_is_lent_to_the_build(recipe, folder, apptainer) -> None:
    told = apptainer()
    offline = image_build.Recipe(recipe.name, recipe.base, recipe.scripts, recipe.cache, Path("/wheels"))
    built(offline, folder)
    seen = json.loads(told.read_text())
    assert "/wheels:/var/cache/hpc_validation/wheels:ro" in seen["argv"]
    assert seen["environment"]["APPTAINERENV_HPC_VALIDATION_WHEELHOUSE"] == "/var/cache/hpc_validation/wheels"


def test_a_build_that_fails_leaves_what_was_there(recipe, folder, apptainer) -> None:
    old = write_sif(folder / "oumi_latest.sif").read_bytes()
    apptainer(refuse="no space")
    with pytest.raises(KitError, match="no space"):
        built(recipe, folder)
    assert (folder / "oumi_latest.sif").read_bytes() == old
    assert not list(folder.glob(".building-*"))


def test_what_a_killed_build_left_is_removed_once_it_is_old(recipe, folder, apptainer, monkeypatch) -> None:
    apptainer()
    place = folder.parent / "tmp"
    monkeypatch.setenv("APPTAINER_TMPDIR", str(place))
    old, young = place / "hpc_validation-image-old", place / "hpc_validation-image-young"
    for left in (old, young):
        left.mkdir(parents=True)
    partial = folder / ".building-oumi_latest.sif-other-1"
    partial.write_text("x")
    for left in (old, partial):
        os.utime(left, (1, 1))
    built(recipe, folder)
    assert (old.exists(), young.exists(), partial.exists()) == (False, True, False)


def test_an_apptainer_that_is_too_old_or_missing_is_named(recipe, folder, apptainer, monkeypatch) -> None:
    apptainer(version="1.3.9")
    with pytest.raises(KitError, match=r"Apptainer is 1\.3\.9, expected 1\.4 or newer"):
        built(recipe, folder)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(KitError, match="not on PATH; install Apptainer, or provide a finished image"):
        built(recipe, folder)


def test_too_little_space_is_told_before_anything_is_built(recipe, folder, apptainer) -> None:
    told = apptainer()
    recipe.lock.write_text("# needs-mb: 999999999\nx==1 --hash=sha256:00\n")
    with pytest.raises(KitError, match=r"needs about 999999999 MB there: set APPTAINER_TMPDIR"):
        built(recipe, folder)
    assert not told.exists()


def test_a_base_image_must_say_where_it_is_from(recipe, folder, apptainer) -> None:
    apptainer()
    with pytest.raises(KitError, match="expected AGENT:SOURCE"):
        built(image_build.Recipe("oumi", "python", recipe.scripts, recipe.cache), folder)


def test_the_definition_has_the_words_that_are_filled_in() -> None:
    text = (ROOT / "files/containers/runtime.def").read_text()
    assert {f"{{{{ {word} }}}}" in text for word in ("BOOTSTRAP", "FROM", "NAME")} == {True}
    assert image_build.WITHIN in text
    for name in ("HPC_VALIDATION_CACHE", "HPC_VALIDATION_WHEELHOUSE"):
        assert f"${{{name}:" in text


def test_the_command_line_tells_whether_it_is_ready(wanted: image.Wanted, folder: Path) -> None:
    def kit(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "kit", "image", "--name", "oumi", "--path", str(wanted.path)]
        return subprocess.run(
            [*command, "--root", str(folder), *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT / "files")},
            capture_output=True,
            text=True,
            check=False,
        )

    assert json.loads(kit("--check").stdout) == {"ready": False}
    assert json.loads(kit().stdout)["sha256"] == sha256(wanted.path)
    assert json.loads(kit("--check").stdout) == {"ready": True}
    refused = kit("--sha256", "0" * 64)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("kit image: image ")
