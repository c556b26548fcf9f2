# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages that profiles are checked with: those that are missing are named, with what installs them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kit.errors import KitError
from kit.profiles import packages

HERE = {"pydantic": SimpleNamespace(VERSION="2.7.0"), "yaml": SimpleNamespace()}


@pytest.mark.parametrize(
    ("missing", "named"),
    [({"pydantic"}, "'pydantic>=2.7'"), ({"yaml"}, "'PyYAML'"), ({"pydantic", "yaml"}, "'pydantic>=2.7' 'PyYAML'")],
)
def test_what_is_missing_is_named(monkeypatch, missing, named):
    def imported(name):
        if name in missing:
            raise ImportError(name)
        return HERE[name]

    monkeypatch.setattr(packages.importlib, "import_module", imported)
    with pytest.raises(KitError, match="profiles are checked with packages") as refused:
        packages.require()
    assert str(refused.value).endswith(f" -m pip install {named}")


@pytest.mark.parametrize("version", ["2.7", "2.7.0b1", "2.10.1", "3.0"])
def test_with_all_of_them_nothing_is_said(monkeypatch, version):
    asked = []
    there = {**HERE, "pydantic": SimpleNamespace(VERSION=version)}
    monkeypatch.setattr(packages.importlib, "import_module", lambda name: asked.append(name) or there[name])
    packages.require()
    assert asked == ["pydantic", "yaml"]


@pytest.mark.parametrize("old", [{"VERSION": "1.10.2"}, {"VERSION": "2.6.4"}, {"VERSION": 1}, {}])
def test_what_is_too_old_is_named_as_what_is_missing(monkeypatch, old):
    there = {**HERE, "pydantic": SimpleNamespace(**old)}
    monkeypatch.setattr(packages.importlib, "import_module", there.__getitem__)
    with pytest.raises(KitError, match=r"or too old; install them: .* -m pip install 'pydantic>=2.7'$"):
        packages.require()
