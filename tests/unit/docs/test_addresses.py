# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No file that ships leads to an address that is nobody's."""

from __future__ import annotations

import re

from tests.unit.conftest import ROOT

FOLDERS = ("changelogs", "docs", "files", "meta", "playbooks", "plugins", "roles")
# The names that are reserved for examples and tests, with a scheme before them: a host's name alone is an example.
NOBODYS = re.compile(rb"https?://(?:[\w-]+\.)*(?:example\.(?:com|net|org)|example|invalid)\b[^\s)>`'\"]*")


def test_no_file_that_ships_has_an_invented_address():
    files = [path for path in ROOT.iterdir() if path.suffix in {".md", ".yml"}]
    files += [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    found = {
        str(path.relative_to(ROOT)): addresses
        for path in files
        if path.is_file() and (addresses := NOBODYS.findall(path.read_bytes()))
    }
    assert found == {}
