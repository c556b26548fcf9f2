# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of Ansible's own tools: ansible-test, antsibull-docs, galaxy-importer. Run as python -m tests.sanity."""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.sanity import ansible_test, published
from tests.sanity.tree import collection

STEPS: dict[str, Callable[[Path], list[str]]] = {
    "sanity": ansible_test.sanity,
    "units": ansible_test.units,
    "docs": published.docs,
    "importer": published.importer,
}


def main() -> int:
    """Run the chosen steps; 0 only if nothing was found and nothing was left out unnamed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"{', '.join(STEPS)}; all of them by default")
    parser.add_argument("--test", action="append", default=[], help="of ansible-test sanity, only this test")
    arguments = parser.parse_args()
    unknown = set(arguments.steps) - set(STEPS)
    if unknown:
        parser.error(f"there is no step {', '.join(sorted(unknown))}")
    steps = STEPS | {"sanity": functools.partial(ansible_test.sanity, tests=arguments.test)}
    found: list[str] = []
    with tempfile.TemporaryDirectory(prefix="hpc_validation-sanity-") as folder:
        root = collection(Path(folder))
        for step in arguments.steps or STEPS:
            print(f"--- {step}", flush=True)
            found += [f"{step}: {problem}" for problem in steps[step](root)]
    print("\n".join(found) or "nothing found")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
