#!/usr/bin/env python3
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of one machine that is login and compute node, under the name by which Slurm knows it."""

import json
import socket

NODE = socket.gethostname().split(".")[0]

if __name__ == "__main__":
    hosts = {"hosts": [NODE]}
    print(json.dumps({"hpc_login": hosts, "hpc_compute": hosts, "_meta": {"hostvars": {}}}))
