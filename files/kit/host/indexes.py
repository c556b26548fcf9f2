# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The package indexes that a host is configured to use."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kit.errors import KitError


def index_urls(index_url: str | None, extra: Sequence[str] = ()) -> list[str]:
    """Return the indexes to use: the given one, else that of pip's or uv's environment. Raise KitError if none."""
    named = [index_url, *(os.environ.get(name) for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"))]
    first = next((url for url in named if url), None)
    if first is None:
        raise KitError("no package index is configured: give --index-url or --wheelhouse, or set PIP_INDEX_URL")
    return [first, *(extra or os.environ.get("PIP_EXTRA_INDEX_URL", "").split())]
