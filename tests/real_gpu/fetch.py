# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect what the rig carries to a machine with a GPU and no network: python fetch.py FOLDER

Runs where packages can be downloaded: a Debian or Ubuntu with apt, and a Python of the machine's version with pip and
packaging. FOLDER gets `debs` (Slurm and munge), `wheels` (what that machine's Python lacks, at the versions of this
project's locks) and `repository.tar.gz` (this working tree). Nothing is compiled: DeepSpeed, which is published as
source only, becomes a wheel without operators.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cluster"))

from hpcval_cluster import host  # noqa: E402 - its folder was named just above

TARGET = {
    "python_version": "3.12",
    "python_full_version": "3.12.3",
    "platform_machine": "x86_64",
    "sys_platform": "linux",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
}
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in range(39, 16, -1)] + ["manylinux2014_x86_64"]
# bookworm's C library is older than that of Ubuntu 24.04, for which these are; trixie's is newer.
SUITE = "bookworm"
PACKAGES = """
    munge libmunge2 slurmctld slurmd slurm-client slurm-wlm-basic-plugins
    libhwloc15 libjson-c5 liblua5.1-0 libdbus-1-3 libreadline8 libyaml-0-2 libnuma1 liblz4-1 libsystemd0 libpam0g
    libaudit1 libcap-ng0 libcap2 libgcrypt20 libgpg-error0 libzstd1 libbz2-1.0 libtinfo6 libudev1 libssl3
"""
# By lock: what the machine's own Python does not have. Everything else it brings, in versions of its own.
WHEELS = {
    "tests/requirements.txt": """
        ansible-core resolvelib cryptography cffi pycparser jmespath jsonschema jsonschema-specifications referencing
        rpds-py pydantic pydantic-core annotated-types typing-inspection
    """,
    "files/requirements/deepspeed.txt": "hjson torch-pruning nvidia-ml-py",
}
SOURCE_ONLY = ("files/requirements/deepspeed.txt", "deepspeed")


def pinned(lock: str, name: str) -> str:
    """Return the requirement of a lock that holds on the machine."""
    for line in (ROOT / lock).read_text(encoding="utf-8").splitlines():
        if re.match(rf"{re.escape(name)}==", line):
            requirement = Requirement(line.rstrip("\\ "))
            if requirement.marker is None or requirement.marker.evaluate(TARGET):
                return f"{name}{requirement.specifier}"
    raise SystemExit(f"{lock} has no {name}")


def debs(folder: Path) -> None:
    """Download the packages with lists of packages of their own, so that this machine's stay as they are."""
    with tempfile.TemporaryDirectory() as temporary:
        sources, lists = Path(temporary, "sources.list"), Path(temporary, "lists")
        (lists / "partial").mkdir(parents=True)
        sources.write_text(f"deb {host.debian_mirror()} {SUITE} main\n", encoding="utf-8")
        settings = {
            "Dir::Etc::sourcelist": sources,
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::Lists": lists,
            "Dir::Cache::pkgcache": "",
            "Dir::Cache::srcpkgcache": "",
            "APT::Architecture": "amd64",
            "APT::Sandbox::User": "root",
        }
        apt = ["apt-get", "-q", *(f"-o{key}={value}" for key, value in settings.items())]
        subprocess.run([*apt, "update"], check=True)
        subprocess.run([*apt, "download", *PACKAGES.split()], check=True, cwd=folder)


def wheels(folder: Path) -> None:
    """Download the wheels, and build the one that is not published."""
    names = [pinned(lock, name) for lock, words in WHEELS.items() for name in words.split()]
    pip = [sys.executable, "-m", "pip"]
    subprocess.run(
        [
            *[*pip, "download", "--no-deps", "--only-binary=:all:", "--implementation=cp", "--python-version=3.12"],
            *[f"--platform={platform}" for platform in PLATFORMS],
            *["--dest", str(folder), *names],
        ],
        check=True,
    )
    environment = {**os.environ, "DS_BUILD_OPS": "0"}
    build = [*pip, "wheel", "--no-deps", "--no-binary=deepspeed", "--wheel-dir", str(folder), pinned(*SOURCE_ONLY)]
    subprocess.run(build, check=True, env=environment)


def repository(target: Path) -> None:
    """Pack the working tree: what git tracks and what it does not ignore."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\0")
    with tarfile.open(target, "w:gz") as archive:
        for name in sorted(filter(None, names)):
            if os.path.lexists(ROOT / name):
                archive.add(ROOT / name, name, recursive=False)


def main() -> None:
    """Fill the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only-repository", action="store_true", help="pack the working tree again, nothing else")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    for name, fill in {"debs": debs, "wheels": wheels}.items():
        if not arguments.only_repository:
            (folder / name).mkdir(parents=True, exist_ok=True)
            fill(folder / name)
    repository(folder / "repository.tar.gz")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / (1 << 20):.1f} MiB")


if __name__ == "__main__":
    main()
