"""Pure code is imported as the collection imports it: pytest.ini puts collections/ and files/ on the path."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def example() -> t.Callable[[str], t.Any]:
    """A fresh copy of the example of a schema."""
    return lambda name: json.loads((ROOT / "files/schemas/examples" / f"{name}.json").read_text(encoding="utf-8"))
