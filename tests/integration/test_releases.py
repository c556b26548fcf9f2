"""MLOPS-1.1 on every Slurm release the local cluster is built for, with and without slurmdbd."""

from __future__ import annotations

import subprocess

import pytest

from tests.integration.conftest import ROOT, jobs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "accounting"),
    [("22.05", True), ("22.05", False), ("24.11", True), ("24.11", False), ("26.05", True), ("26.05", False)],
)
def test_mnist_passes(play, release, accounting):
    name = f"r{release.replace('.', '')}{'a' if accounting else ''}"
    cluster = str(ROOT / "tests/cluster/cluster")
    wanted = ["--slurm", release, "--accounting" if accounting else "--no-accounting"]
    subprocess.run([cluster, "up", "--name", name, *wanted], check=True, capture_output=True, timeout=900)
    try:
        played = play(environment={"HPC_VALIDATION_CLUSTER": name}, timeout=1200)
        assert played.code == 0, played.screen
        assert played.verdict["verdict"] == "pass"
        assert played.verdict["versions"]["slurm"].startswith(release)
        assert played.verdict["cluster"]["accounting"] is accounting
        assert jobs(name) == []
    finally:
        subprocess.run([cluster, "down", "--name", name], check=True, capture_output=True, timeout=120)
