# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passwords of indexes and proxies reach the kit by standard input and are in nothing that it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from kit.errors import KitError
from kit.runtime import installers, wheels

from tests.unit.conftest import ROOT

CANARY = "cAnArY-5ecret"
URL = f"http://user:{CANARY}@127.0.0.1:9/simple"


def kit(*argv: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kit", *argv],
        env={**os.environ, "PYTHONPATH": str(ROOT / "files"), **environment},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_variables_come_by_standard_input_and_add_to_those_that_are_there():
    show = "import json, os, sys; print(json.dumps([os.environ['A'], os.environ['B'], sys.argv[1:], sys.stdin.read()]))"
    done = kit(
        "environment", "--", sys.executable, "-c", show, "--", "-x", stdin=json.dumps({"A": CANARY}), A="1", B="2"
    )
    assert json.loads(done.stdout) == [CANARY, "2", ["--", "-x"], ""]


@pytest.mark.parametrize("stdin", ["", "[]", "{", f'"{CANARY}"', f"{{{CANARY}"])
def test_what_is_no_object_of_variables_is_refused_without_being_quoted(stdin):
    done = kit("environment", "--", "true", stdin=stdin)
    assert done.returncode == 1
    assert "not a JSON object" in done.stderr
    assert CANARY not in done.stdout + done.stderr


def test_a_wheel_that_cannot_be_fetched_is_told_without_the_password(tmp_path):
    with pytest.raises(KitError) as caught:
        wheels.fetch("nvidia-ml-py", tmp_path, indexes=[URL])
    assert "127.0.0.1:9/simple" in str(caught.value)
    assert CANARY not in str(caught.value)


def test_what_an_installer_says_is_told_without_the_password():
    says = [sys.executable, "-c", "import sys; sys.exit(sys.argv[1])", f"no answer from {URL}/torch/ and {URL}"]
    with pytest.raises(KitError) as caught:
        installers.run(says, dict(os.environ))
    assert "http://***@127.0.0.1:9/simple/torch/" in str(caught.value)
    assert CANARY not in str(caught.value)


def test_installers_are_not_told_the_index_by_their_command_line(monkeypatch, tmp_path):
    monkeypatch.setenv("UV_DEFAULT_INDEX", URL)
    seen = []
    monkeypatch.setattr(installers, "run", lambda command, environment: seen.append((command, environment)) or "uv 1")
    installers.install_packages(
        tmp_path / "venv", tmp_path / "lock", sys.executable, installers.Source(), installers.Tools(uv=sys.executable)
    )
    assert seen
    assert CANARY not in json.dumps([command for command, _environment in seen])
    assert all(environment["UV_DEFAULT_INDEX"] == URL for _command, environment in seen)


SETTING = re.compile(r"(?<!_)hpc_validation_\w+")
DOCUMENT = (ROOT / "docs/security.md").read_text()
SECRETS = re.compile("__hpc_validation_secrets|__stage_secrets")


def tasks(found: list[dict]) -> list[dict]:
    """All tasks of a list, those of blocks included."""
    blocks = [task.get(key) or [] for task in found for key in ("block", "rescue", "always")]
    return [*found, *(task for block in blocks for task in tasks(block))]


@pytest.mark.parametrize("path", sorted(ROOT.glob("roles/*/tasks/*.yml")), ids=lambda path: "/".join(path.parts[-3:]))
def test_secrets_go_by_standard_input_of_tasks_that_are_not_logged_and_no_other_way(path: Path):
    for task in tasks(yaml.safe_load(path.read_text())):
        for key, value in task.items():
            if SECRETS.search(str(value)) and key == "ansible.builtin.command":
                assert value["stdin"] in ("{{ __hpc_validation_secrets | to_json }}", "{{ __stage_secrets | to_json }}")
                assert "__hpc_validation_with_secrets" in value["argv"]
                assert SECRETS.search(value["argv"]) is None
                assert task["no_log"] is True
            elif key not in ("block", "rescue", "always"):
                assert SECRETS.search(str(value)) is None
                assert "hpc_validation_install_environment" not in str(value)
                assert "hpc_validation_hub_token" not in str(value)


def test_the_documents_list_of_settings_that_may_hold_a_secret_is_whole():
    main = yaml.safe_load((ROOT / "roles/hpc_validation/vars/main.yml").read_text())
    stage = yaml.safe_load((ROOT / "roles/stage/vars/main.yml").read_text())
    goes_by_standard_input = "".join(
        [main[name] for name in main if name in main["__hpc_validation_secrets"]]
        + [main["__hpc_validation_secrets"], stage["__stage_secrets"]]
    )
    settings = set(SETTING.findall(goes_by_standard_input))
    options = yaml.safe_load((ROOT / "roles/hpc_validation/meta/argument_specs.yml").read_text())
    settings |= {
        name
        for name in options["argument_specs"]["main"]["options"]
        if re.search("token|passw|secret|credential|_url", name)
    }
    listed = re.search(r"^Settings that may hold a secret: (.*?)\. ", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert listed
    assert settings == set(SETTING.findall(listed[1]))


def test_the_environment_that_ansible_puts_into_a_command_line_holds_no_setting_that_may_be_secret():
    variables = yaml.safe_load((ROOT / "roles/hpc_validation/vars/main.yml").read_text())
    assert variables["__hpc_validation_environment"] == {
        "PYTHONPATH": "{{ hpc_validation_share }}/scripts",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
    }
