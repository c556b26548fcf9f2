# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated parts of docs/, and generated files: python -m tests.docs [--write].

Without --write it fails where one is stale.
"""

from __future__ import annotations

import argparse
import sys

from tests.docs import criteria, drawing, layers, preflight, profile_keys, screens, training_diagrams
from tests.docs.pages import ROOT, renewed

# Page → the name of its generated part, and what generates it.
PAGES = {
    "docs/architecture.md": ("layers", lambda: layers.diagram(layers.read())),
    "docs/verdicts.md": ("thousand", screens.thousand),
    "docs/reference/criteria.md": ("criteria", criteria.tables),
    "docs/reference/preflight.md": ("checks", preflight.tables),
    "docs/reference/profiles.md": ("profiles", profile_keys.tables),
}
# File → what generates it as a whole.
FILES = {
    "files/workloads/training_profiles/schema.json": profile_keys.schema,
    "docs/diagrams/95-00-06-02-A-001_Training_Pipeline_Diagram.drawio": lambda: drawing.drawio(
        training_diagrams.pipeline()
    ),
    "docs/diagrams/95-00-06-02-A-002_Training_Pipeline_Diagram.svg": lambda: drawing.svg(training_diagrams.pipeline()),
    "docs/diagrams/95-00-06-02-A-003_Scheduling_Timeline.svg": lambda: drawing.svg(training_diagrams.timeline()),
}


def stale(name: str, *, write: bool = False) -> bool:
    """Say whether a page differs from what its sources generate; with `write`, renew it."""
    path = ROOT / name
    page = path.read_text(encoding="utf-8") if path.exists() else ""
    if name in FILES:
        new = FILES[name]()
    else:
        part, generate = PAGES[name]
        new = renewed(page, part, generate())
    if write and new != page:
        path.write_text(new, encoding="utf-8")
    return new != page


def main() -> int:
    """Renew the pages, or name the stale ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew the pages")
    arguments = parser.parse_args()
    found = [name for name in (*PAGES, *FILES) if stale(name, write=arguments.write)]
    for name in found:
        print(f"{name}: {'renewed' if arguments.write else 'stale; run make pages'}")
    return 1 if found and not arguments.write else 0


if __name__ == "__main__":
    sys.exit(main())
