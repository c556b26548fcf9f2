# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check as people call it, in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.unit.kit.profiles.samples import FOLDER, HPC, changed, line_of

TOOL = [sys.executable, str(FOLDER.parent / "tools/validate_config.py")]
KIT = [sys.executable, "-m", "kit", "profile", "check"]
BARE = [sys.executable, "-S", "-s", *TOOL[1:]]  # a Python without packages


def called(
    command: list[str], *arguments: object, stdin: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Call it."""
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parents[2]), **variables}
    return subprocess.run(
        [*command, *map(str, arguments)],
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def file(tmp_path):
    def write(text: str, name: str = "mine.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("command", [TOOL, KIT])
def test_all_profiles_that_ship_can_be_used(command):
    files = [*sorted(FOLDER.glob("*.yaml")), FOLDER.parent / "local.yaml"]
    done = called(command, *files)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(files) == 3
    for each in files:
        assert f"{each}: 0 errors" in done.stdout


@pytest.mark.parametrize("command", [TOOL, KIT])
def test_an_error_is_told_with_file_line_and_number(command, file):
    text = changed(HPC, model__num_heads="7")
    path = file(text)
    done = called(command, path)
    assert (done.returncode, done.stderr) == (1, "")
    line = line_of(text, "model.num_heads")
    assert f"{path}:{line}: error: model.num_heads: hidden_size 512 is not divisible by 7 [S4-9]\n" in done.stdout
    assert f"{path}: 1 error, " in done.stdout


@pytest.mark.parametrize("command", [TOOL, KIT])
def test_a_file_that_cannot_be_read_counts_more_than_one_with_errors(command, file, tmp_path):
    done = called(command, file(changed(HPC, model__num_heads="7")), tmp_path / "none.yaml", file("a: [", "b.yaml"))
    assert done.returncode == 2
    assert f"{tmp_path}/none.yaml: error: cannot be read: No such file or directory" in done.stdout
    assert f"{tmp_path}/b.yaml:2: error: not YAML" in done.stdout
    assert "is not divisible by 7" in done.stdout


def test_as_json_every_finding_is_an_object(file, tmp_path):
    done = called(TOOL, "--json", file(changed(HPC, model__num_heads="7")), tmp_path / "none.yaml")
    wrong, unreadable = json.loads(done.stdout)
    (error,) = (each for each in wrong["findings"] if each["severity"] == "error")
    assert (error["key"], error["requirement"]) == ("model.num_heads", "S4-9")
    assert unreadable == {"file": f"{tmp_path}/none.yaml", "unreadable": "cannot be read: No such file or directory"}


def test_it_is_checked_with_what_is_changed(file):
    changes = json.dumps({"model": {"num_heads": 7}})
    done = called(TOOL, "--changes", "-", file(HPC), stdin=changes)
    assert done.returncode == 1
    assert "hidden_size 512 is not divisible by 7" in done.stdout
    assert called(TOOL, "--changes", file(changes, "changes.json"), file(HPC)).returncode == 1


def test_for_devices_a_profile_without_their_bounds_is_refused(file):
    path = FOLDER.parent / "local_embedded.yaml"
    changes = file(json.dumps({"power_management": {"max_power_w": None}}), "changes.json")
    assert called(TOOL, "--changes", changes, path).returncode == 0
    assert called(TOOL, "--devices", path).returncode == 0
    done = called(TOOL, "--devices", "--changes", changes, path)
    assert done.returncode == 1
    told = "power_management.max_power_w: missing for a model that is measured on devices: nothing would be judged"
    assert told in done.stdout


@pytest.mark.parametrize("said", ["[1]", "{"])
def test_changes_that_are_no_keys_and_values_are_refused(file, said):
    done = called(TOOL, "--changes", "-", file(HPC), stdin=said)
    assert done.returncode == 2
    assert done.stderr.startswith("--changes -: ")


@pytest.mark.parametrize("command", [BARE, [sys.executable, "-S", "-s", *KIT[1:]]])
def test_without_its_packages_it_says_how_to_install_them(command):
    done = called(command, *FOLDER.glob("*.yaml"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"{sys.executable} -m pip install 'pydantic>=2.7' 'PyYAML'" in done.stderr


def test_the_schema_is_that_of_the_file_for_editors():
    done = called([*KIT[:-1], "schema"])
    assert done.stdout == (FOLDER.parent / "schema.json").read_text(encoding="utf-8")


def test_every_number_of_the_schema_has_both_bounds():
    """Otherwise NaN is within."""
    free = []

    def look(place: str, node: object) -> None:
        if isinstance(node, dict):
            sides = [[side for side in node if side.lower().endswith(end)] for end in ("minimum", "maximum")]
            if node.get("type") in ("number", "integer") and not all(sides):
                free.append(place)
            for name, inner in node.items():
                look(f"{place}/{name}", inner)
        elif isinstance(node, list):
            for number, inner in enumerate(node):
                look(f"{place}/{number}", inner)

    look("", json.loads((FOLDER.parent / "schema.json").read_text(encoding="utf-8")))
    assert free == []


def test_a_package_that_is_too_old_is_no_fault_of_the_check(tmp_path):
    (tmp_path / "pydantic.py").write_text('VERSION = "1.10.2"\n', encoding="utf-8")
    done = called(TOOL, *FOLDER.glob("*.yaml"), PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"{sys.executable} -m pip install 'pydantic>=2.7'\n")


def test_a_terminal_without_a_character_gets_its_number(file):
    done = called(TOOL, file(changed(HPC, logging__wandb__mode='"\u00fc"')), PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (1, "")
    assert "logging.wandb.mode: '\\xfc'; expected offline or online" in done.stdout


def test_a_files_name_is_on_one_line(file, tmp_path):
    done = called(TOOL, file(HPC, "a\nb\x1b[31m.yaml"), tmp_path / "no\nne")
    assert done.stdout.startswith(f"{tmp_path}/a\\nb\\x1b[31m.yaml: 0 errors")
    assert f"{tmp_path}/no\\nne: error: cannot be read" in done.stdout
    assert len(done.stdout.splitlines()) == 2


@pytest.mark.parametrize("command", [TOOL, KIT])
def test_who_reads_no_further_is_told_nothing(command, file):
    path = file("".join(f"k{number}: x\n" for number in range(3000)))
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parents[2])}
    pipe = subprocess.PIPE
    with subprocess.Popen([*command, str(path)], env=environment, stdout=pipe, stderr=pipe) as done:
        assert done.stdout
        assert done.stdout.read(1)
        done.stdout.close()
        assert done.stderr
        assert done.stderr.read() == b""
    assert done.returncode == 2
