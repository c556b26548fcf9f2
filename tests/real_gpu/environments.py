# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins for the environments that the product would install: python environments.py WHEELS SHARE CONTROLLER

Without an index nothing can be installed from the locks. Each environment is a venv that sees the packages of the
Python that runs this, and before them the wheels that were carried. Its record names the lock, as the product looks for
it, says who made it, and which versions are really there: those are not the lock's. CONTROLLER is the folder of the
one with Ansible.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "files"))

from kit.runtime import venv as product  # noqa: E402 - its folder was named just above

RUNTIMES = {
    "pytorch": [],
    "standin": [],
    "deepspeed": [
        "deepspeed",
        "hjson",
        "torch_pruning",
        "pydantic",
        "pydantic_core",
        "annotated_types",
        "typing_inspection",
    ],
}
NOT_OF_THE_CONTROLLER = ("deepspeed", "hjson", "torch_pruning", "nvidia_ml_py")
INSTALLER = "tests/real_gpu (a stand-in: the packages of this machine, not the lock's)"


def make(folder: Path, wheels: list[Path]) -> Path:
    """Make a venv of this Python's packages and some wheels; return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    packages = next(folder.glob("lib/python3.*/site-packages"))
    (packages / "machine.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    if wheels:
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps"]
        subprocess.run([*pip, "--no-compile", "--ignore-installed", *map(str, wheels)], check=True)
    return python


def versions(python: Path) -> dict[str, str]:
    """Return the versions that an environment really has; the first of a name is the one that is imported."""
    script = (
        "import importlib.metadata as m, json\nfound = {}\n"
        "for d in m.distributions(): found.setdefault(d.metadata['Name'], d.version)\nprint(json.dumps(found))"
    )
    answer = subprocess.run([str(python), "-I", "-c", script], check=True, capture_output=True, text=True)
    return dict(sorted(json.loads(answer.stdout).items()))


def stand_in(name: str, wheels: list[Path], share: Path) -> None:
    """Put an environment where the product looks for it, and say how the versions differ from the lock's."""
    lock = product.read_lock(ROOT / "files" / "requirements" / f"{name}.txt")
    interpreter = product.read_interpreter(sys.executable)
    folder = product.environment_path(share / "venvs", name, lock, interpreter)
    folder.parent.mkdir(parents=True, exist_ok=True)
    python = make(folder, wheels)
    here = versions(python)
    record = {
        "key": folder.name,
        "lock": lock.path.name,
        "lock_sha256": lock.sha256,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "installer": INSTALLER,
        "installed": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "packages": here,
    }
    (folder / "runtime.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    missing = []
    for module in lock.verify:
        tried = subprocess.run(
            [str(python), "-I", "-c", f"import {module}"], capture_output=True, text=True, check=False
        )
        if tried.returncode:
            missing.append(f"{module} ({(tried.stderr.strip().splitlines() or ['no message'])[-1]})")
    print(f"environments: {folder.name}; modules of the lock that do not import: {', '.join(missing) or 'none'}")


def main() -> None:
    """Make them all."""
    wheels, share, controller = (Path(word).resolve() for word in sys.argv[1:4])
    carried = {path.name.split("-")[0]: path for path in sorted(wheels.glob("*.whl"))}
    make(controller, [path for name, path in carried.items() if name not in NOT_OF_THE_CONTROLLER])
    for name, needed in RUNTIMES.items():
        stand_in(name, [carried[each] for each in needed], share)


if __name__ == "__main__":
    main()
