# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The execution environment: its definition fits the schema, and what is built holds what the collection needs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
VERSION = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
ARTIFACT = f"mlops-hpc_validation-{VERSION}.tar.gz"


@pytest.fixture
def create(tmp_path: Path):
    """A definition beside an artifact → what ansible-builder says of it, by its own schema."""
    (tmp_path / ARTIFACT).write_bytes(b"artifact")

    def run(text: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "execution-environment.yml").write_text(text, encoding="utf-8")
        command = ["ansible-builder", "create", "--context", "context"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)

    return run


def test_the_context_renders_with_the_artifact_of_this_version(create, tmp_path):
    done = create((ROOT / "execution-environment.yml").read_text(encoding="utf-8"))
    assert done.returncode == 0, done.stdout + done.stderr
    build = tmp_path / "context/_build"
    assert (build / "collection" / ARTIFACT).read_bytes() == b"artifact"
    (wanted,) = yaml.safe_load((build / "requirements.yml").read_text())["collections"]
    assert wanted == {"name": f"/build/collection/{ARTIFACT}", "type": "file"}
    recipe = (tmp_path / "context/Containerfile").read_text()
    assert "COPY _build /build" in recipe
    assert "ansible-runner" in recipe


def test_a_definition_that_does_not_fit_the_schema_is_refused(create):
    done = create((ROOT / "execution-environment.yml").read_text(encoding="utf-8") + "colour: red\n")
    assert done.returncode != 0
    assert "colour" in done.stdout + done.stderr


def test_an_environment_with_this_collection_gets_its_packages(tmp_path):
    from ansible_builder._target_scripts import introspect

    metadata = yaml.safe_load((ROOT / "meta/execution-environment.yml").read_text(encoding="utf-8"))
    assert metadata["version"] == 1
    collection = tmp_path / "ansible_collections/mlops/hpc_validation"
    for name in ("meta/execution-environment.yml", *metadata["dependencies"].values()):
        (collection / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, collection / name)
    python, system = introspect.process_collection(str(collection))
    assert {line.split(">")[0] for line in python} == {"ansible-core", "jmespath", "jsonschema", "pydantic"}
    assert system == ["openssh-clients [platform:rpm]", "openssh-client [platform:dpkg]"]
    kept = introspect.filter_requirements({"mlops.hpc_validation": python})
    # Which ansible-core, the definition says.
    assert {line.split(">")[0] for line in kept} == {"jmespath", "jsonschema", "pydantic"}
