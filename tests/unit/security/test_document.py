# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/security.md names tests that exist, for each claim at least one; every test of the security pass is in it."""

from __future__ import annotations

import re

from tests.unit.conftest import ROOT

DOCUMENT = (ROOT / "docs/security.md").read_text()
CLAIMS = re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL)


def defined(*globs: str) -> set[str]:
    files = [path for pattern in globs for path in (ROOT / "tests").glob(pattern)]
    return {name for path in files for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)}


def test_each_claim_is_numbered_and_names_tests_that_exist():
    assert [int(number) for number, _text in CLAIMS] == list(range(1, len(CLAIMS) + 1))
    existing = defined("unit/**/test_*.py", "integration/test_*.py")
    for number, text in CLAIMS:
        named = set(re.findall(r"`(test_\w+)`", text))
        assert named, f"claim {number} names no test"
        assert named <= existing, f"claim {number}"


def test_every_test_of_the_security_pass_shows_a_claim():
    ours = defined("unit/security/test_*.py", "integration/test_security.py") - defined(
        "unit/security/test_document.py"
    )
    helpers = {
        "test_the_hostile_run_was_judged",
        "test_an_unchanged_manifest_is_accepted",
        "test_the_owner_of_a_share_may_own_what_is_in_it",
    }
    assert {name for name in ours - helpers if f"`{name}`" not in DOCUMENT} == set()
