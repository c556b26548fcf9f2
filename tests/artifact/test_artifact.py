"""The built collection: what is in it and what is not, and that everything in it documents itself."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = [("module", path.stem) for path in sorted((ROOT / "plugins/modules").glob("[a-z]*.py"))]
PLUGINS += [("filter", path.stem) for path in sorted((ROOT / "plugins/filter").glob("[a-z]*.py"))]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir())


@pytest.fixture(scope="module")
def artifact(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("artifact")
    command = ["ansible-galaxy", "collection", "build", "--output-path", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (path,) = folder.glob("mlops-hpc_validation-*.tar.gz")
    return path


@pytest.fixture(scope="module")
def installed(artifact) -> dict[str, str]:
    """The environment in which only the installed artifact is found."""
    folder = artifact.parent / "collections"
    command = ["ansible-galaxy", "collection", "install", "--offline", "-p", str(folder), str(artifact)]
    subprocess.run(command, check=True, capture_output=True, timeout=120, cwd=artifact.parent)
    config = artifact.parent / "ansible.cfg"
    config.write_text("")
    return {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(folder),
        "ANSIBLE_CONFIG": str(config),
        "ANSIBLE_NOCOLOR": "1",
    }


def test_the_artifact_holds_the_product_and_nothing_else(artifact):
    with tarfile.open(artifact) as archive:
        names = archive.getnames()
        assert not [member.name for member in archive.getmembers() if member.issym() or member.islnk()]
    assert {
        "files/kit/__main__.py",
        "files/workloads/mnist_single_gpu/workload.yml",
        "files/scaffold/workload.yml",
        "files/schemas/verdict.json",
    } <= set(names)
    assert {f"playbooks/{path.name}" for path in (ROOT / "playbooks").iterdir()} <= set(names)
    assert {"LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "docs/guides/own-workload.md"} <= set(names)
    tops = {name.split("/")[0] for name in names}
    assert not tops & {
        "tests",
        "collections",
        ".venv",
        "results",
        "workloads",
        ".ci",
        ".pre-commit-config.yaml",
        "Makefile",
        "noxfile.py",
    }
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


@pytest.mark.parametrize(("kind", "name"), PLUGINS)
def test_documentation_renders(installed, kind, name):
    command = ["ansible-doc", "-t", kind, "-j", f"mlops.hpc_validation.{name}"]
    done = subprocess.run(command, env=installed, capture_output=True, text=True, check=False, timeout=120, cwd="/")
    assert done.returncode == 0, done.stderr
    (document,) = json.loads(done.stdout).values()
    assert document["examples"].strip()
    assert document["return"]
    if kind == "module":
        assert {"check_mode", "diff_mode", "idempotent", "async"} <= set(document["doc"]["attributes"])


@pytest.mark.parametrize("role", ROLES)
def test_role_documentation_renders(installed, role):
    command = ["ansible-doc", "-t", "role", "-j", f"mlops.hpc_validation.{role}"]
    done = subprocess.run(command, env=installed, capture_output=True, text=True, check=False, timeout=120, cwd="/")
    assert done.returncode == 0, done.stderr
    (document,) = json.loads(done.stdout).values()
    assert document["entry_points"]["main"]["short_description"]


def test_the_installed_collection_begins_a_workload_and_checks_it(installed, tmp_path):
    def played(playbook: str, *variables: str) -> subprocess.CompletedProcess[str]:
        command = ["ansible-playbook", f"mlops.hpc_validation.{playbook}"]
        command += [word for variable in variables for word in ("-e", variable)]
        environment = {**installed, "PWD": str(tmp_path)}
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
        )

    made = played("new_workload", "name=triad")
    assert made.returncode == 0, made.stdout + made.stderr
    assert f"check_workload -e folder={tmp_path}/workloads/triad" in made.stdout
    again = played("new_workload", "name=triad")
    assert again.returncode != 0
    assert "already exists; nothing was changed" in again.stdout + again.stderr
    checked = played("check_workload", "folder=workloads/triad")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    manifest = tmp_path / "workloads/triad/workload.yml"
    manifest.write_text(
        manifest.read_text().replace("queue: 600", "queue: soon").replace("[python, train.py]", "[python]")
    )
    refused = played("check_workload", "folder=workloads/triad")
    assert refused.returncode != 0
    assert f"{manifest}:9: limits.queue: 'soon' is not of type 'integer'" in refused.stdout
    assert f"{manifest}:12: command: the script '' is not in {manifest.parent}" in refused.stdout


def test_every_public_setting_has_a_default_and_a_description():
    role = ROOT / "roles/hpc_validation"
    defaults = yaml.safe_load((role / "defaults/main.yml").read_text())
    options = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    assert set(defaults) == set(options)
    for name, option in options.items():
        assert option["description"], name
        if "default" in option:
            assert option["default"] == defaults[name], name


def test_every_public_setting_is_used():
    settings = yaml.safe_load((ROOT / "roles/hpc_validation/defaults/main.yml").read_text())
    text = "".join(
        p.read_text()
        for p in [*ROOT.glob("roles/*/*/*.yml"), *ROOT.glob("roles/*/*/*.j2"), *ROOT.glob("playbooks/*.yml")]
    )
    for name in settings:
        uses = text.count(name) - text.count(f"{name}:")
        assert uses > 0, f"{name} is declared and never used"


@pytest.mark.parametrize(
    "name", ["validation_run", "validation_record", "share_tree", "new_workload", "check_workload", "edge_host"]
)
def test_an_action_takes_what_its_module_documents(name):
    import importlib

    module = importlib.import_module(f"ansible_collections.mlops.hpc_validation.plugins.modules.{name}")
    action = importlib.import_module(f"ansible_collections.mlops.hpc_validation.plugins.action.{name}")
    documented = yaml.safe_load(module.DOCUMENTATION)["options"]
    own = {option for option in documented if option.startswith("_")}  # what the action gives the module
    assert set(documented) - own == set(action.ARGUMENTS)
    for option, spec in action.ARGUMENTS.items():
        assert documented[option]["type"] == spec.get("type", "str"), option
        assert documented[option].get("required", False) == spec.get("required", False), option
        assert documented[option].get("default") == spec.get("default"), option
