# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs on the cluster: metrics, markers, GPU sampling, provenance and the runtime installer.

Standard library only (the NVML reader also wants the `nvidia-ml-py` wheel); Python 3.9 or newer.

The modules `errors`, `files`, `job`, `metrics` and `staged` are what workloads of other people import: their names are
described in docs/guides/own-workload.md, and API_VERSION counts their changes. All else may change at any time.
"""

from __future__ import annotations

# Raised when a name of these modules goes or means something else; a name more leaves it as it is.
API_VERSION = 1
