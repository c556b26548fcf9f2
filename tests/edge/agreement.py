# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a model answers alike on other processors: python -m tests.edge.agreement [BUNDLE]

BUNDLE is the deploy.zip of a run of PROFILE-EMBEDDED; without it the newest on the share of the cluster that
HPC_VALIDATION_CLUSTER names. The edge runner answers its inputs on an emulated aarch64 and an emulated Haswell, whose
products of 8 bits overflow where weights have 8 (it has no VNNI). Nothing is timed. Ends 1 where answers differ.

QEMU and the processors' Debians are unpacked below the cache, and nothing is installed on this machine.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import typing as t
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "cluster"))
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import npy  # noqa: E402
from hpcval_cluster import host  # noqa: E402
from hpcval_cluster.state import cache_root  # noqa: E402

from tests.integration.environments import package_index  # noqa: E402

SUITE, PYTHON = "bullseye", "3.9"  # its Python
NEWER = "bookworm"  # whose QEMU knows AVX2
LOCK = ROOT / "files/edge/requirements/python38.txt"  # the newest ONNX Runtime crashes when emulated
NEAR, SHARE = 0.02, 0.999  # of the answers' deviation, and of the answers: the criterion S4-6.answers
EMULATOR = "qemu-user-static"
# Without what only a kernel sees and QEMU cannot emulate: it would warn of each.
HASWELL = "Haswell,-invpcid,-rtm,-hle,-pcid,-x2apic,-tsc-deadline"
LIMIT = 1800  # seconds for all answers of one processor
FOLDER = cache_root() / "edge-processors"


@dataclass(frozen=True)
class Processor:
    """A processor that QEMU emulates, with the Debian that its programs are of."""

    name: str
    machine: str  # as wheels call it
    debian: str  # as Debian does
    qemu: tuple[str, ...]


PROCESSORS = (
    Processor("aarch64", "aarch64", "arm64", ("qemu-aarch64-static",)),
    Processor("Haswell", "x86_64", "amd64", ("qemu-x86_64-static", "-cpu", HASWELL)),
)


def unpacked(suite: str, architecture: str, *packages: str) -> Path:
    """Return a folder with these packages of Debian and what they need; none of their scripts is run."""
    folder = FOLDER / f"{suite}-{architecture}-{packages[0]}"
    if folder.exists():
        return folder
    if not shutil.which("mmdebstrap"):
        host.install(["mmdebstrap", "debian-archive-keyring"])
    FOLDER.mkdir(parents=True, exist_ok=True)
    settings = FOLDER / "apt.conf"
    settings.write_text(host.apt_settings(), encoding="utf-8")
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    host.say(f"unpacking {', '.join(packages)} of Debian {suite} for {architecture}")
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", f"--architectures={architecture}"]
    command += [f"--aptopt={settings}", f"--include={','.join(packages)}"]
    done = subprocess.run(
        [*command, suite, str(partial), host.debian_mirror()], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"Debian {suite} for {architecture} could not be unpacked:\n{done.stderr[-3000:]}")
    partial.rename(folder)
    return folder


def wheels(machine: str) -> Path:
    """Return a folder with the packages of the lock for a machine, unpacked as on a device."""
    site = FOLDER / f"site-{PYTHON}-{machine}"
    if site.exists():
        return site
    house = FOLDER / f"wheels-{PYTHON}-{machine}"
    options = ["--lock", str(LOCK), "--python", PYTHON, "--machine", machine, "--output", str(house)]
    command = [sys.executable, "-m", "kit", "wheelhouse", *options]
    subprocess.run(
        command, check=True, env={**os.environ, **package_index(), "PYTHONPATH": str(ROOT / "files")}, stdout=sys.stderr
    )
    partial = site.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    for path in house.glob("*.whl"):
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(partial)
    partial.rename(site)
    return site


def answers(processor: Processor, folder: Path, model: str) -> npy.Floats:
    """Return what the edge runner answers on that processor."""
    root, qemu = unpacked(SUITE, processor.debian, "python3-minimal", "libpython3-stdlib", "libstdc++6"), processor.qemu
    program = unpacked(NEWER, "amd64", EMULATOR) / "usr/bin" / qemu[0]
    result = folder / f"{processor.name}.json"
    runner = [str(ROOT / "files/edge/runner.py"), str(folder / model), str(folder / "inputs.npy"), str(result)]
    folders = [root / folder / f"{processor.machine}-linux-gnu" for folder in ("lib", "usr/lib")]
    loader = next(folders[0].glob("ld-*.so*"))  # the name by which programs know it is a link to this machine's
    emulated = [str(program), *qemu[1:], "-L", str(root), str(loader), "--library-path", ":".join(map(str, folders))]
    command = [*emulated, str(root / f"usr/bin/python{PYTHON}"), "-s", *runner]
    few = ["--count", "1", "--seconds", "0", "--limit", str(LIMIT)]
    environment = {"PATH": "/usr/bin", "PYTHONPATH": str(wheels(processor.machine)), "PYTHONHOME": str(root / "usr")}
    with subprocess.Popen([*command, *few], stdin=subprocess.PIPE, env=environment) as running:
        code = running.wait(LIMIT + 30)
    if code != 0:
        sys.exit(f"{processor.name}: the runner ended with exit code {code}")
    found = json.loads(result.read_text(encoding="utf-8"))
    return npy.floats(base64.b64decode(found["answers_b64"]), found["answers_shape"])


def newest() -> Path:
    """Return the newest bundle on the local cluster's share."""
    name = os.environ.get("HPC_VALIDATION_CLUSTER") or "local"
    found = sorted(
        (cache_root() / "clusters" / name).glob("share/models/embedded-profile/job-*/deploy.zip"),
        key=lambda path: path.stat().st_mtime,
    )
    if not found:
        sys.exit(f"no bundle on the share of the cluster {name}: run playbooks/validate_embedded.yml, or name one")
    return found[-1]


def main(arguments: t.Sequence[str]) -> int:
    """Print a table; return 1 where answers differ."""
    bundle = Path(arguments[0]) if arguments else newest()
    differ = []
    print("| processor | answers within 0.02 of their deviation | largest difference |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(bundle) as packed:
        packed.extractall(scratch)
        folder = Path(scratch)
        contents = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
        truth = npy.parse((folder / "answers.npy").read_bytes())
        for processor in PROCESSORS:
            found = answers(processor, folder, f"{contents['deployed']}.onnx")
            share = npy.near(found, truth, NEAR)
            furthest = max(abs(one - other) for one, other in zip(found.values, truth.values))
            print(f"| {processor.name} | {share:.4f} | {furthest:.4g} |", flush=True)
            differ += [processor.name] if share < SHARE else []
    if differ:
        print(f"answers differ: {', '.join(differ)}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
