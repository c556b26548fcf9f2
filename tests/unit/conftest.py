"""Pure code is imported as the collection imports it: pytest.ini puts collections/ and files/ on the path."""

from __future__ import annotations

import json
import sys
import typing as t
from pathlib import Path

import hypothesis
import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT / "files") not in sys.path:  # ansible-test does not read pytest.ini
    sys.path.append(str(ROOT / "files"))

# Where ansible_collections is found: the checkout's link, or a copy of ansible-test's.
COLLECTIONS = Path(scalars.__file__).parents[6]

# How long an example takes says more of what else the machine does than of the code.
hypothesis.settings.register_profile("untimed", deadline=None)
if hypothesis.settings.get_current_profile_name() == "default":  # tests.mutation brings its own
    hypothesis.settings.load_profile("untimed")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def example() -> t.Callable[[str], t.Any]:
    """A fresh copy of the example of a schema."""
    return lambda name: json.loads((ROOT / "files/schemas/examples" / f"{name}.json").read_text(encoding="utf-8"))
