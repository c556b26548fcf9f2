# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays as the integration tests run them; what the rows came to is kept where --faults-document names a file."""

from __future__ import annotations

import time
import typing as t

import pytest

from tests.faults import rows, table
from tests.integration.conftest import play

__all__ = ["play"]
RESULTS: dict[str, t.Any] = {}
BEGAN = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --faults-group and --faults-document."""
    parser.addoption("--faults-group", choices=(*rows.GROUPS, *rows.APART), help="play the rows of this group alone")
    parser.addoption("--faults-document", action="store_true", help="write docs/faults.json and docs/faults.md")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the rows of other groups than the one that is asked for."""
    group = config.getoption("--faults-group", default=None)
    others = [item for item in items if group not in (None, _group(item))]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


def _group(item: pytest.Item) -> str | None:
    row = getattr(item, "callspec", None) and item.callspec.params.get("row")  # type: ignore[attr-defined]
    return row.group if isinstance(row, rows.Row) else None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Gathers, in the process that the user started, what the workers' rows came to."""
    if report.when == "call":
        RESULTS.update(value for name, value in report.user_properties if name == "fault")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Renews docs/faults.json and docs/faults.md by the rows that were played."""
    if not hasattr(session.config, "workerinput") and session.config.getoption("--faults-document", default=False):
        whole = RESULTS.keys() >= {row.id for row in rows.load()}
        minutes = (time.monotonic() - BEGAN) / 60 if whole else None
        table.renew({"measured": table.measured(minutes), "rows": RESULTS})
