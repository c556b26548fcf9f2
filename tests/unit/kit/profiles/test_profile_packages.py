# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages that profiles are checked with: those that are missing are named, with what installs them."""

from __future__ import annotations

import pytest
from kit.errors import KitError
from kit.profiles import packages


@pytest.mark.parametrize(
    ("missing", "named"),
    [({"pydantic"}, "'pydantic>=2.7'"), ({"yaml"}, "'PyYAML'"), ({"pydantic", "yaml"}, "'pydantic>=2.7' 'PyYAML'")],
)
def test_what_is_missing_is_named(monkeypatch, missing, named):
    def imported(name):
        if name in missing:
            raise ImportError(name)

    monkeypatch.setattr(packages.importlib, "import_module", imported)
    with pytest.raises(KitError, match="profiles are checked with packages") as refused:
        packages.require()
    assert str(refused.value).endswith(f" -m pip install {named}")


def test_with_all_of_them_nothing_is_said(monkeypatch):
    asked = []
    monkeypatch.setattr(packages.importlib, "import_module", asked.append)
    packages.require()
    assert asked == ["pydantic", "yaml"]
