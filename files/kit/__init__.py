# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part that runs on the cluster: metrics, markers, GPU sampling, provenance and the runtime installer.

Standard library only (the NVML reader also needs the `nvidia-ml-py` wheel); Python 3.9 or newer.

The modules `errors`, `files`, `job`, `metrics`, `quote` and `staged` are the public API for other people's workloads,
described in docs/guides/own-workload.md; API_VERSION counts its changes. Everything else may change at any time.
"""

from __future__ import annotations

# Increased when a name in these modules is removed or changes its meaning, not when one is added.
API_VERSION = 1
