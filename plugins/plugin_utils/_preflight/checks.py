# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of a preflight by ID, each with its title, and findings with the title of their check."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.titles import TITLES as EDGE_TITLES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import complete
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.titles import TITLES as GPU_TITLES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.titles import TITLES as SHARE_TITLES

Json = dict[str, t.Any]

TITLES = {
    "controller.ansible": "Version of ansible-core",
    "controller.packages": "Python packages required on the controller",
    "controller.collection": "The collection's files match the published ones",
    "login.commands": "Slurm commands on the login node",
    "login.munge": "munge encodes and decodes a credential",
    "login.python": "Version of Python",
    "runtime.internet": "Download servers can be reached",
    "runtime.apptainer": "Version of Apptainer",
    "runtime.container_gpus": "GPUs visible in a container",
    "runtime.container_libraries": "Driver libraries that apptainer --nv adds to a container",
    "scheduler.answers": "slurmctld answers",
    "scheduler.accounting": "Accounting",
    "scheduler.partition": "The partition exists and is up",
    "scheduler.gres": "Nodes large enough for the workload",
    "scheduler.nodes": "Nodes that can start the workload",
    "scheduler.scope": "Nodes in scope",
    "scheduler.node_known": "Slurm knows the nodes named in the inventory",
    "scheduler.node_in_reach": "The site's jobs can run on the nodes in hpc_validation_nodes",
    "scheduler.node": "The node accepts jobs",
    "scheduler.version": "Slurm on the login node is at least as new as on the node",
    "scheduler.gres_defined": "GPUs defined in Slurm for the node",
    "scheduler.gres_equals_gpus": "The GPUs defined in Slurm match those of the node",
    "scheduler.confinement": "A step can open only the GPUs it was given",
    complete.ID: complete.TITLE,
    "node.job": "A job runs to completion on the node",
    "node.report": "The node's report is complete and its own",
    "node.unique": "The node is a machine of its own",
    "node.clock": "Clock difference between the node and slurmctld",
    "node.python": "Version of Python",
    **GPU_TITLES,
    **SHARE_TITLES,
    **EDGE_TITLES,
}


def finding(identity: str, verdict: str, **more: t.Any) -> Json:
    """Return a finding with a verdict decided by the caller; `more` as for `findings.finding`."""
    return findings.finding(identity, TITLES[identity], verdict, **more)


def judged(identity: str, test: str, bound: t.Any, value: t.Any, **more: t.Any) -> Json:
    """Compare `value` with `bound` and return the finding; `more` as for `findings.judged`."""
    return findings.judged(identity, TITLES[identity], test, bound, value, **more)


def version_at_least(identity: str, least: str, version: t.Any, **more: t.Any) -> Json:
    """Compare two versions and return the finding; `more` as for `findings.judged`."""
    return findings.version_at_least(identity, TITLES[identity], least, version, **more)


def not_applicable(identity: str, reason: str, **more: t.Any) -> Json:
    """Return the finding for a check that does not apply; `more` as for `findings.not_applicable`."""
    return findings.not_applicable(identity, TITLES[identity], reason, **more)
