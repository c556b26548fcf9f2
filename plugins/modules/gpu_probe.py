#!/usr/bin/python
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_probe
short_description: Check a node's GPUs and judge their health
version_added: 0.2.0
author:
  - mlops.hpc_validation authors (@mlops)
description:
  - Only reads. On the node the kit queries NVML; on the controller its facts are judged against what the inventory
    expects, each check as a finding with value, bound and remedy.
  - The verdict is V(pass), V(fail) or V(undetermined). What is missing, unreadable or of the wrong type is
    V(undetermined), never a pass. The task fails unless the verdict is V(pass).
  - GPUs are identified by UUID and PCI address, never by index. C(nvidia-smi) is not used.
  - Run it on a compute node, or inside a Slurm allocation, in which it sees the GPUs of the job.
  - Every question to the driver has a time limit. A driver that blocks is a finding.
requirements:
  - On the node, Python 3.9 or newer, and the kit with the wheel C(nvidia-ml-py), both of which bootstrap deploys.
options:
  kit:
    description: The folder on the node with the package C(kit), an absolute path.
    type: str
    default: /mnt/beegfs/scripts
  python:
    description: Interpreter that runs the kit, an absolute path. By default the one that runs the module.
    type: str
  health:
    description: Whether health is read and judged. V(false) reads and judges only the inventory.
    type: bool
    default: true
  sample_seconds:
    description: How many seconds to sample utilisation, memory, power and clocks. V(0) samples nothing.
    type: float
    default: 0.0
  interval:
    description: Seconds between two samples, at most 1.
    type: float
    default: 0.2
  kernel_log:
    description:
      - How the kernel log, in which the driver reports Xids, may be read.
      - V(user) is C(dmesg) as the user, V(journal) is C(journalctl), V(sudo) is C(sudo -n dmesg).
      - V(none) makes checks of the kernel log C(not_applicable).
    type: str
    default: user
    choices: [user, journal, sudo, none]
  since:
    description:
      - How far back Xids are read. V(boot), or a number of seconds.
      - By default C(xid_since) of O(expect), or V(boot) if that is not set.
    type: str
  deadline:
    description:
      - Seconds that each group of questions to the driver may take. The first about a GPU may take twice as long.
    type: float
    default: 5.0
  init_deadline:
    description:
      - Seconds that NVML may take to start. Without persistence mode it initialises every GPU then, which takes a busy
        node of eight more than ten.
    type: float
    default: 30.0
  limit:
    description:
      - Seconds that everything but the sampling may take, of which the kernel log may take 20.
    type: float
    default: 60.0
  expect:
    description:
      - What is expected of the GPUs. All keys are optional; an unknown key is rejected, a null one is ignored.
      - C(count), C(model) (a name, or its start and C(*)), C(memory_gib) (at least), C(driver) (a version, or a minimum
        as in V(>=570)), C(ecc), C(persistence), C(mig), C(pcie_generation), C(pcie_width), C(power_limit_w) (at
        least), C(nvlinks) (links up on each GPU; V(0) for a card without any), C(xid_since) (V(boot), or seconds
        back), C(under_load) (judges the PCIe generation even if the GPU looks idle), C(foreign_processes) (V(true)
        allows them), C(corrected_max), C(pcie_replays_max).
      - With V(false) for C(ecc) a card without ECC is as expected, and the checks that need ECC do not apply.
      - C(not_applicable) holds the IDs of findings that do not apply to this card, each with the reason.
    type: dict
    default: {}
  node:
    description: Name of the node, which the facts must match. By default the name in the facts.
    type: str
  simulated:
    description: Whether the GPUs are simulated, which every finding then states.
    type: bool
    default: false
  fail:
    description: Whether the task fails unless the verdict is V(pass).
    type: bool
    default: true
extends_documentation_fragment:
  - mlops.hpc_validation.attributes
attributes:
  check_mode:
    support: full
    details: It only reads, in check mode as well.
  diff_mode:
    support: none
  idempotent:
    support: full
  async:
    support: none
  action:
    support: full
seealso:
  - module: mlops.hpc_validation.slurm_cluster_info
"""

EXAMPLES = r"""
- name: Every GPU of the compute nodes is healthy
  mlops.hpc_validation.gpu_probe:
    kernel_log: journal
    expect:
      count: 8
      model: NVIDIA H200
      driver: ">=570"
      ecc: true

- name: A card without ECC
  mlops.hpc_validation.gpu_probe:
    expect:
      ecc: false

- name: List the GPUs, and sample their load for ten seconds
  mlops.hpc_validation.gpu_probe:
    health: false
    sample_seconds: 10
    fail: false
  register: gpus
"""

RETURN = r"""
facts:
  description: The facts, in the form of C(files/schemas/gpus.json).
  type: dict
  returned: always
  sample: {schema: 1, node: compute01, source: nvml, error: null, gpus: []}
node:
  description: The node that the findings name.
  type: str
  returned: always
findings:
  description: Every check, judged, with C(id), C(verdict), C(value), C(bound), C(why), C(remedy) and C(where).
  type: list
  elements: dict
  returned: always
verdict:
  description: V(pass), V(fail) or V(undetermined).
  type: str
  returned: always
table:
  description: The printed table of checks that did not pass, with the number of findings per verdict.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.mlops.hpc_validation.plugins.module_utils._probe.gpu import argument_spec, probe, problems


def main() -> None:
    """Read the facts; the action plugin judges them."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    wrong = problems(module.params)
    if wrong:
        module.fail_json(msg="; ".join(wrong))
    module.exit_json(changed=False, facts=probe(module.params))


if __name__ == "__main__":
    main()
