"""From the built artifact, by FQCN, in a folder of the user's own: the same verdict, results in ./results."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
import yaml

from tests.integration.conftest import ANSI, ANY_SPEED, ANY_TIME, ROOT


@pytest.mark.parametrize("selected", [["MLOPS-1.1"], pytest.param(["MLOPS-1.1", "MLOPS-1.2"], marks=pytest.mark.slow)])
def test_the_installed_collection_passes_and_leaves_results_where_the_user_stands(tmp_path, selected):
    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
            **ANSI,
            "ANSIBLE_COLLECTIONS_PATH": str(tmp_path / "collections"),
            "PWD": str(tmp_path),
        }
        return subprocess.run(
            argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=900
        )

    assert run("ansible-galaxy", "collection", "build", "--output-path", str(tmp_path), str(ROOT)).returncode == 0
    (artifact,) = tmp_path.glob("*.tar.gz")
    assert (
        run("ansible-galaxy", "collection", "install", "--offline", "-p", "collections", str(artifact)).returncode == 0
    )
    overrides = {"hpc_validation_overrides": {"MLOPS-1.1": ANY_TIME}}
    variables = json.dumps({**ANY_SPEED, **overrides, "hpc_validation_only": selected})
    inventory = str(ROOT / "inventories/local")
    played = run("ansible-playbook", "mlops.hpc_validation.validate_category1", "-i", inventory, "-e", variables)
    assert played.returncode == 0, played.stdout + played.stderr
    (folder,) = (tmp_path / "results").iterdir()
    verdict = json.loads((folder / "verdict.json").read_text())
    assert verdict["verdict"] == "pass"
    assert verdict["versions"]["collection"] == yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"]
    assert [workload["id"] for workload in verdict["workloads"]] == selected
    inputs = {"MLOPS-1.1": {"mnist"}, "MLOPS-1.2": {"no_robots", "smollm_135m"}}
    for workload in verdict["workloads"]:
        assert {name for name, text in workload["data"].items() if "stand-in" in text.lower()} == inputs[workload["id"]]
        assert {c["verdict"] for c in workload["criteria"]} <= {"pass", "not_applicable", "recorded"}
    assert verdict["coverage"]["nodes"]["in_scope"] == 2
    assert verdict["coverage"]["gpus"]["count"] == 1
