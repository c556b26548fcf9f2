# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of Debian's packages for tests: fetched by apt and unpacked into the cache, never installed."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent / "cluster"))
from hpcval_cluster.state import ClusterError, cache_root


def unpacked(package: str) -> Path:
    """The folder with the package's files, such as usr/bin/promtool, of this machine's Debian. ClusterError."""
    release = Path("/etc/debian_version").read_text(encoding="ascii").strip().replace("/", "-")
    target = cache_root() / "programs" / f"{package}-{release}-{platform.machine()}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{package}-", dir=target.parent))
    try:
        download = ["apt-get", "--quiet", "--option=APT::Sandbox::User=root", "download", package]
        if _run(download, work):
            _run(["apt-get", "--quiet", "update"], work)  # apt knows no packages yet, or none of today's
            problem = _run(download, work)
            if problem:
                raise ClusterError(f"apt-get cannot download Debian's package {package}: {problem}")
        (archive,) = work.glob("*.deb")
        problem = _run(["dpkg-deb", "--extract", str(archive), str(work / "root")], work)
        if problem:
            raise ClusterError(f"{archive.name} cannot be unpacked: {problem}")
        try:
            (work / "root").rename(target)
        except OSError:
            if not target.is_dir():  # another process was as far
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _run(command: list[str], folder: Path) -> str:
    """What a command says that fails; empty for one that does not."""
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300
    )
    return "" if done.returncode == 0 else done.stderr.strip()[-500:] or f"exit code {done.returncode}"
