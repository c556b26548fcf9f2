# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of edge hosts by ID, each with its title."""

from __future__ import annotations

REACHED, PYTHON, WHEELS = "edge.reached", "edge.python", "edge.wheels"
TITLES = {
    REACHED: "The edge host answers",
    PYTHON: "Python of the edge host",
    WHEELS: "Wheels of ONNX Runtime for the edge host",
}
