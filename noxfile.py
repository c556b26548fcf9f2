# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every check of the project, declared once. The tools live in .venv (tests/setup-controller)."""

from __future__ import annotations

import os
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "unit", "artifact", "integration"]

# Where scripts, unlike pytest and ansible-playbook, do not find the collection by themselves.
COLLECTION = {"PYTHONPATH": "collections"}
SHELL = ["tests/setup-controller", ".ci/run"]
for folder in ("tests/cluster", "tests/real_gpu", "files/workloads"):
    SHELL += [str(path) for path in Path(folder).rglob("*.sh")]


@nox.session
def lint(session: nox.Session) -> None:
    """Style and correctness of everything that is text."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", env={"PYTHONPATH": "collections:files", "COLUMNS": "120"})
    session.run("yamllint", "--strict", ".")
    session.run("ansible-lint", "--strict", "--offline", "-q")
    session.run("shellcheck", *SHELL)
    session.run("antsibull-changelog", "lint")


@nox.session
def types(session: nox.Session) -> None:
    """Types of the pure code, the plugins and the kit."""
    session.run("mypy")


@nox.session
def pages(session: nox.Session) -> None:
    """Whether the generated parts of docs/ are current; with --write it renews them."""
    session.run("python", "-m", "tests.docs", *session.posargs, env={"PYTHONPATH": "collections:files"})


@nox.session
def unit(session: nox.Session) -> None:
    """Pure code: no cluster."""
    session.run("pytest", "--numprocesses=3", "--dist=worksteal", "tests/unit", "-m", "not slow", *session.posargs)


@nox.session
def artifact(session: nox.Session) -> None:
    """The built collection: what is in it, and that its documentation renders."""
    session.run("pytest", "--numprocesses=2", "tests/artifact", *session.posargs)


@nox.session
def integration(session: nox.Session) -> None:
    """On real local clusters."""
    folders = ["tests/integration", "tests/workloads", "tests/faults", "--ignore=tests/faults/test_fleet.py"]
    _on_clusters(session, 3, *folders, "-m", "not slow", *session.posargs)


def _on_clusters(session: nox.Session, count: int, *arguments: str) -> None:
    """As many workers, each with a cluster of its own (named in tests/conftest.py): plays mostly wait."""
    name = os.environ.get("HPC_VALIDATION_CLUSTER", "local")
    for cluster in (name, *(f"{name}-{worker}" for worker in range(1, count))):
        session.run("tests/cluster/cluster", "up", "--name", cluster, external=True)
    session.run("pytest", "--numprocesses", str(count), "--durations=25", "--durations-min=20", *arguments)


@nox.session
def faults(session: nox.Session) -> None:
    """Every fault of tests/faults/faults.yml on the live clusters, or of a group; renews docs/faults.md."""
    for group in ("pretraining", "profiles", "edge"):  # each rank needs a core, and so does a device
        if group in session.posargs:
            _on_clusters(session, 1, f"tests/faults/test_{group}.py", "--faults-document", *session.posargs)
            return
    _on_clusters(session, 3, "tests/faults/test_faults.py", "--faults-document", *session.posargs)
    if not session.posargs:
        _on_a_fleet(session, "-m", "not slow")


@nox.session
def fleet_faults(session: nox.Session) -> None:
    """Every fault of tests/faults/fleet.yml on a fleet of 20 nodes; renews docs/faults.md."""
    _on_a_fleet(session, *session.posargs)


def _fleet_cluster() -> str:
    return f"{os.environ.get('HPC_VALIDATION_CLUSTER', 'local')}-fleet"


def _on_a_fleet(session: nox.Session, *arguments: str) -> None:
    """A fleet with its share in memory: on a disk, 20 nodes that measure it at once may each see but a few MiB/s."""
    name = _fleet_cluster()
    size = ["--share-size", "20G"]  # far more than is used; 10 GiB must be free
    session.run("tests/cluster/cluster", "up", "--name", name, "--fleet", "20", *size, external=True)
    command = ["pytest", "tests/faults/test_fleet.py", "--faults-document", *arguments]
    session.run(*command, env={"HPC_VALIDATION_CLUSTER": name})


@nox.session
def preflight_faults(session: nox.Session) -> None:
    """Every fault of tests/faults/preflight.yml, each with the run after its repair."""
    _on_clusters(session, 2, "tests/faults/test_preflight.py", *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """Long waits, and what else the integration tests leave out."""
    # As many as it takes to find what hides in one of a thousand (tests/unit/criteria/test_random_damage.py).
    session.run("pytest", "tests/unit/criteria/test_random_damage.py", env={"HPC_VALIDATION_EXAMPLES": "10000"})
    # Their speed-ups, and their latencies, need the machine.
    alone = [f"tests/integration/test_{name}.py" for name in ("category2", "embedded_profile")]
    folders = ["tests/unit", "tests/integration", "tests/workloads", *(f"--ignore={path}" for path in alone)]
    _on_clusters(session, 2, *folders, "-m", "slow", *session.posargs)
    session.run("pytest", *alone, "-m", "slow", *session.posargs)


@nox.session
def workloads(session: nox.Session) -> None:
    """The long workloads as a whole, on a local cluster, and what they do with every fault."""
    names = ["pretraining", "pretraining_watched", "pretraining_chain", "training_profiles", "embedded_profile"]
    tests = [*(f"tests/integration/test_{name}.py" for name in names), "tests/workloads/test_in_the_runtime.py"]
    _on_clusters(session, 1, *tests, "-k", "pretraining or deepspeed or profile")


@nox.session
def matrix(session: nox.Session) -> None:
    """The real NVML, Slurm and ansible-core releases, Pythons of the nodes; renews docs/support.md."""
    session.run("python", "-m", "tests.matrix.real_nvml")
    session.run("python", "-m", "tests.matrix", *session.posargs, env=COLLECTION)


@nox.session
def reframe(session: nox.Session) -> None:
    """What ReFrame answers to the faults that it can be asked about; renews docs/faults.md."""
    session.run("tests/cluster/cluster", "up", external=True)
    session.run("python", "-m", "tests.faults.reframe.ask", *session.posargs, env=COLLECTION)


@nox.session
def clean_runs(session: nox.Session) -> None:
    """Thirty plays in a row where nothing is wrong; renews docs/faults.md."""
    name = os.environ.get("HPC_VALIDATION_CLUSTER", "local")
    session.run(
        "python", "-m", "tests.faults.clean_runs", "--clusters", name, f"{name}-1", "--document", env=COLLECTION
    )


@nox.session
def mutants(session: nox.Session) -> None:
    """Breaks the judge, and what it is fed by, in thousands of ways; the unit tests must notice."""
    session.run("python", "-m", "tests.mutation", *session.posargs)


@nox.session
def molecule(session: nox.Session) -> None:
    """The scenarios of extensions/molecule, on a cluster of their own."""
    session.run("molecule", "test", "--all", *session.posargs)


@nox.session(venv_backend="uv")
def sanity(session: nox.Session) -> None:
    """Ansible's own checks: ansible-test, antsibull-docs, galaxy-importer."""
    session.install("--require-hashes", "-r", "tests/sanity/requirements.txt")
    session.run("python", "-m", "tests.sanity", *session.posargs)


@nox.session
def fleet(session: nox.Session) -> None:
    """A preflight of 100 nodes, measured, beside ReFrame on 50 of them."""
    environment = {**COLLECTION, "HPC_VALIDATION_CLUSTER": _fleet_cluster()}
    session.run("python", "-m", "tests.bench.bench_fleet", *session.posargs, env=environment)


@nox.session
def bench(session: nox.Session) -> None:
    """Speed and memory as ratios taken in one run; only the goals for many nodes can be missed."""
    for name in ("metrics_assert", "waiting", "play", "preflight", "gpu_probe", "share", "speed_up"):
        session.run("python", "-m", f"tests.bench.bench_{name}", *session.posargs)
    session.run("python", "-m", "tests.bench.bench_scale")
