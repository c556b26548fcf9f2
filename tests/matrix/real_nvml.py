# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's own NVML beside the stand-in: python -m tests.matrix.real_nvml

Debian has it as libnvidia-ml1 (non-free). Without a driver it loads and refuses, which is how the kit has to meet it;
and what the stand-in shows must be functions that the real library has.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "cluster"))
from hpcval_cluster import host  # noqa: E402 - the folder is on the path only now
from hpcval_cluster.state import ClusterError, cache_root  # noqa: E402

from tests.matrix.problems import AbsentError, CellError, demand  # noqa: E402

STAND_IN = ROOT / "tests" / "cluster" / "nvml"
NOT_OF_THE_LIBRARY = ("hold.c", "layout.c")  # a library and a program of their own
DRIVER = Path("/proc/driver/nvidia")
PACKAGE, WHEEL = "libnvidia-ml1", "nvidia-ml-py"
# The branch of each Debian, and what the kit asks of newer drivers that it lacks: the kit has to do without there.
LACKS = {
    "bookworm": (
        "535",
        {"nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetMarginTemperature", "nvmlDeviceGetTemperatureV"},
    ),
    "trixie": ("550", {"nvmlDeviceGetMarginTemperature", "nvmlDeviceGetTemperatureV"}),
}
# What the stand-in has and no Debian's library yet; these came with the branches 565 and 575.
NEWER = {"nvmlDeviceGetMarginTemperature", "nvmlDeviceGetTemperatureV"}
CALL = re.compile(r"\bnvml(?:Init|Shutdown|System|Device|Gpm|EventSet|Unit)\w*")


def calls(sources: t.Iterable[str]) -> set[str]:
    """The names of NVML's functions, or of what may be one, in Python sources."""
    return {name for source in sources for name in CALL.findall(source)}


def exported(listing: str) -> set[str]:
    """The functions in what `nm -D --defined-only` prints; a version after @ is no part of a name."""
    words = [line.split() for line in listing.splitlines()]
    return {parts[-1].partition("@")[0] for parts in words if len(parts) == 3 and parts[1] in "TWi"}


def amiss(stand_in: set[str], real: dict[str, set[str]], asked: set[str]) -> list[str]:
    """What is wrong with what the stand-in shows; `real`: what each Debian's library does, `asked`: the kit's calls."""
    own = sorted(name for name in stand_in if not name.startswith("nvml"))
    known = set().union(*real.values())
    invented = sorted(stand_in - known - NEWER - set(own))
    found = [f"the stand-in shows {', '.join(own)}, which is its own"] if own else []
    found += [f"the stand-in has {', '.join(invented)}, which the real library has not"] if invented else []
    found += [f"{name} is in a real library by now: it is none of NEWER" for name in sorted(NEWER & known)]
    for suite, (branch, lacks) in LACKS.items():
        missing = (asked & stand_in) - real[suite]
        if missing != lacks:
            told = f"{', '.join(sorted(missing)) or 'nothing'}, expected {', '.join(sorted(lacks)) or 'nothing'}"
            found.append(f"of what the kit asks for, {branch} lacks {told}")
    return found


def unreadable(facts: t.Any) -> list[str]:
    """What is wrong with the probe's answer where there is a library and no driver: it must say so, and see no GPU."""
    said = facts if isinstance(facts, dict) else {}
    found = [] if "DriverNotLoaded" in str(said.get("error")) else [f"the probe says {said.get('error')!r}"]
    return found + ([f"the probe sees GPUs: {said['gpus']!r}"] if said.get("gpus") else [])


def _run(*command: str, folder: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode != 0:
        raise CellError(f"{command[0]} ended with exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def fetch(suite: str) -> Path:
    """The folder with a Debian's libnvidia-ml.so.1, fetched by apt, which looks at its signature."""
    folder = cache_root() / "nvml" / suite
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    source, status = folder / "source.list", folder / "status"
    source.write_text(f"deb [signed-by={keys}] {host.debian_mirror()} {suite} non-free\n", encoding="utf-8")
    status.touch()
    options = {
        "Dir::Etc::SourceList": source,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State": folder / "state",
        "Dir::State::status": status,
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "--quiet", *(f"--option={name}={value}" for name, value in options.items())]
    _run(*apt, "update")
    _run(*apt, "download", PACKAGE, folder=folder)
    (archive,) = folder.glob(f"{PACKAGE}_*.deb")
    _run("dpkg-deb", "--extract", str(archive), str(folder / "root"))
    (library,) = (folder / "root").glob("usr/lib/*/nvidia/*/libnvidia-ml.so.1")
    return library.parent


def compiled() -> Path:
    """The stand-in's library, as image/node.sh has it made."""
    target = cache_root() / "nvml" / "stand-in.so"
    target.parent.mkdir(parents=True, exist_ok=True)
    sources = [path.name for path in sorted(STAND_IN.glob("*.c")) if path.name not in NOT_OF_THE_LIBRARY]
    flags = ["-std=gnu11", "-shared", "-fPIC", "-Wl,--version-script=nvml.map"]
    _run("gcc", *flags, "-o", str(target), *sources, "-lpthread", folder=STAND_IN)
    return target


def symbols(library: Path) -> set[str]:
    """What a library shows."""
    return exported(_run("nm", "-D", "--defined-only", str(library)))


def _bindings() -> Path:
    """The kit's pinned wheel of NVML's bindings, from the index that pip knows here."""
    folder = cache_root() / "nvml" / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    pin = json.loads((ROOT / "files" / "kit" / "runtime" / "pins.json").read_text(encoding="utf-8"))[WHEEL]
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{WHEEL}=={pin['version']} --hash=sha256:{pin['wheels']['any']['sha256']}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    _run(*pip, "--dest", str(folder), "--requirement", str(wanted))
    return folder / pin["wheels"]["any"]["filename"]


def probe(folder: Path) -> t.Any:
    """What the kit's probe answers with the library in that folder."""
    path = os.pathsep.join([str(ROOT / "files"), str(_bindings())])
    command = [sys.executable, "-m", "kit", "probe", "--kernel-log", "none"]
    return json.loads(_run(*command, PYTHONPATH=path, LD_LIBRARY_PATH=str(folder)))


def require_tools() -> None:
    """What it takes, installed where that is possible. AbsentError where this machine has a driver."""
    if DRIVER.exists():
        raise AbsentError("this machine has NVIDIA's driver: how the library is without one does not show here")
    missing = {"gcc": ["gcc", "libc6-dev"], "nm": ["binutils"], "dpkg-deb": ["dpkg"]}
    host.install([package for tool, packages in missing.items() if not shutil.which(tool) for package in packages])
    if not Path("/usr/share/keyrings/debian-archive-keyring.gpg").exists():
        host.install(["debian-archive-keyring"])


def check() -> list[str]:
    """One line for each thing that came out as it must. CellError, AbsentError."""
    try:
        require_tools()
        folders = {suite: fetch(suite) for suite in LACKS}
    except ClusterError as problem:
        raise AbsentError(str(problem)) from problem
    lines = []
    real = {suite: symbols(folder / "libnvidia-ml.so.1") for suite, folder in folders.items()}
    shown = symbols(compiled())
    asked = calls(path.read_text(encoding="utf-8") for path in (ROOT / "files" / "kit").rglob("*.py"))
    wrong = amiss(shown, real, asked)
    demand(not wrong, "; ".join(wrong))
    lines.append(f"the stand-in's {len(shown)} functions are the real library's, but for {', '.join(sorted(NEWER))}")
    for suite, folder in folders.items():
        version = (folder / "libnvidia-ml.so.1").resolve().name.partition(".so.")[2]
        branch = LACKS[suite][0]
        demand(version.startswith(f"{branch}."), f"{suite} has NVML {version} now, not {branch}: correct LACKS")
        wrong = unreadable(probe(folder))
        demand(not wrong, f"NVML {version} without a driver: {'; '.join(wrong)}")
        lines.append(f"NVML {version} without a driver: DriverNotLoaded")
    return lines


def main() -> int:
    """Run the check; returns the exit status. Not tried is not passed."""
    try:
        print("\n".join(check()))
    except (AbsentError, CellError) as problem:
        print(f"{'not run' if isinstance(problem, AbsentError) else 'fail'}: the real NVML: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
