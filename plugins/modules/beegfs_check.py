#!/usr/bin/python
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
---
module: beegfs_check
short_description: Check the cluster's share, its mount and its servers
version_added: 0.2.0
author:
  - mlops.hpc_validation authors (@mlops)
description:
  - Checks the share from one host with the mount, such as the login node, and judges the result on the controller
    against what the inventory expects, each check as a finding with value, bound and remedy.
  - The verdict is V(pass), V(fail) or V(undetermined). What is missing, unreadable, timed out or unrecognised is
    V(undetermined), never a pass. The task fails unless the verdict is V(pass).
  - C(/proc/mounts) and C(/proc/fs/beegfs) are read first. A mount whose servers are down is reported and not touched,
    since a process that waits for one cannot be killed. Everything that touches the share runs in a child with a
    deadline; if it does not answer, it is abandoned and nothing more is done.
  - Works on any file system. Checks specific to BeeGFS are C(not_applicable) if O(share_type) names another.
  - "O(checks): V(mount) is the mount, type, client configuration, connections (RDMA, TCP, fallback route), targets as
    the client sees them, free space and inodes. V(use) writes, syncs and reads back with a checksum, renames, appends,
    links, locks, and more. V(speed) measures throughput and the rate of metadata operations."
  - The checks V(use) and V(speed) run in their own folder below O(folder), which is always removed. Before anything is
    written, they make sure that O(reserve) stays free.
  - A server without a connection fails, unless it is idle, which is recorded. It is idle if the client, connected to
    the management server, reports its targets online, and, once the share has been used, another server of its kind
    is connected.
  - BeeGFS's servers are queried through C(beegfs) (8.x) or C(beegfs-ctl) (7.x). An exit code of 0 proves nothing, and
    a list without targets is not a healthy file system. A server answers if it does so on one of its network cards;
    the others, if they are reported, are recorded.
  - C(beegfs-ctl) was tested as 7.4.7, in all states that C(docs/preflight.md) lists. Support for BeeGFS 8 is based on
    its published source and was never tested on real servers; a verdict on such servers says so.
  - The questions that the management daemon answers by itself come first, then those that a server may delay, with
    space and quota last. A server that accepts connections but does not answer blocks the tool for 20 minutes; it is
    named, what was printed until O(deadline) counts, and the rest is V(undetermined) per target.
  - What the tool prints rounded (space in 0.1 GiB, inodes in 100,000) is judged by the unfavourable end of its
    interval; if the bound lies inside the interval, the check is V(undetermined).
  - If an automounter manages the share, the folder is opened first, so that it is mounted.
requirements:
  - On the host, Python 3.9 or newer, and the kit, which bootstrap deploys.
  - C(fio) is used for throughput if it is on PATH; the finding names the tool.
options:
  path:
    description: The share, an absolute path. Required unless O(checks) is V([servers]).
    type: str
  share_type:
    description:
      - The type of the share, as the inventory states it. V(other) makes BeeGFS's own checks C(not_applicable).
      - V(simulated) is for a local cluster without BeeGFS in its kernel; every other check is judged and marked so.
    type: str
    default: beegfs
    choices: [beegfs, simulated, other]
  kit:
    description: The folder on the host with the package C(kit). By default C(scripts) below O(path).
    type: str
  python:
    description: Interpreter on the host that runs the kit.
    type: str
    default: python3
  checks:
    description:
      - What to check. In check mode, V(mount) and the servers only.
      - The servers are always queried, unless O(access) is V(none). V([servers]) checks nothing else, for a management
        host without a mount, or before there are clients.
    type: list
    elements: str
    default: [mount, use, speed, servers]
    choices: [mount, use, speed, servers]
  folder:
    description: The folder below O(path) in which the checks create their own folder.
    type: str
    default: jobs
  directories:
    description:
      - Folders below O(path) whose striping is checked. A file is created there, queried, and removed at once; if the
        mount does not answer that, the command-line tool is asked. By default O(folder), if O(checks) has V(use).
      - A folder that does not exist, or whose striping is not reported, is recorded. If O(expect) states what the
        striping should be, it is V(undetermined).
    type: list
    elements: str
    default: []
  size:
    description: MiB of each measurement of throughput.
    type: int
    default: 32
  reserve:
    description: GiB that must stay free. With less, nothing is written.
    type: float
    default: 1.0
  deadline:
    description:
      - Seconds that each check of the mount, of use and of speed may take.
      - Seconds that all questions to the servers may take together. They end at most 10 s later, even if one hangs.
    type: float
    default: 30.0
  tool:
    description: What measures throughput. V(auto) is V(fio) if it is on PATH and reports its version, else V(own).
    type: str
    default: auto
    choices: [auto, fio, own]
  access:
    description:
      - How the user may query BeeGFS's servers. V(sudo) is C(sudo -n). V(none) makes those checks C(not_applicable).
    type: str
    default: user
    choices: [user, sudo, none]
  cli:
    description: The command-line tool. V(auto) takes the newest one installed.
    type: str
    default: auto
    choices: [auto, beegfs, beegfs-ctl]
  config_file:
    description: The client's configuration that C(beegfs-ctl) reads. By default the mount's own.
    type: str
  user:
    description:
      - User, as name or number, whose quota is checked. By default the user that runs the tool, also with C(sudo).
        C(beegfs) (8.x) reports other users' quota only to root.
    type: str
  expect:
    description:
      - What is expected of the share. Unknown keys are rejected.
      - "C(config_file): the client's configuration. C(fstype): a list of file system types. C(rdma): whether every
        connection must use RDMA. C(read_only): whether it may be mounted so. C(global_locks): whether locks must hold
        across nodes (default V(true)); V(false) only records it. C(quota): with V(true) quota must be proven to be
        enforced, by a reported limit, or by C(quotaEnabled) of the client and C(quotaEnableEnforcement) of a management
        daemon that is configured on the host; V(false) only records quota. By default a reported limit is judged, and
        the absence of one is recorded: 7.x prints the same if quota is not enabled."
      - "Minimum values: C(write_mib_s) and C(read_mib_s) (default 50), C(metadata_ops_s) (100), C(free_gib) (10),
        C(free_inodes) (100000), C(stripe_targets). For every target C(target_free_gib) (1) and C(target_free_inodes)
        (100000 of metadata, as the share's, and 200000 of storage), each a number or an object of C(meta) and
        C(storage)."
      - "C(chunk_kib): chunk size. C(coherence_seconds): time within which another node must see a change (default 5).
        C(node_speed_ratio): in a preflight of four nodes or more, the part of the median over the nodes that at least
        one of a node's four throughputs must reach (default 0.1).
        C(capacity_pool): with V(normal), a target in pool low fails; by default it is recorded. C(targets),
        C(nodes), C(mirrors): how many targets, servers and mirror groups there are, such as
        V({meta: 2, storage: 12})."
      - "C(not_applicable): IDs of findings that do not apply, with reasons, such as V({share.quota: no quotas here})."
    type: dict
    default: {}
  node:
    description: Name of the host in findings. By default the inventory's.
    type: str
  fail:
    description: Whether the task fails unless the verdict is V(pass).
    type: bool
    default: true
  _mounts:
    description: The program that checks the mount, as base64. Set by the action plugin.
    type: str
extends_documentation_fragment:
  - mlops.hpc_validation.attributes
attributes:
  check_mode:
    support: partial
    details: The mount and the servers are checked; nothing is written, so use, speed and striping are not judged.
  diff_mode:
    support: none
  idempotent:
    support: full
  async:
    support: none
  action:
    support: full
seealso:
  - module: mlops.hpc_validation.gpu_probe
"""

EXAMPLES = r"""
- name: Check the share from the login node
  mlops.hpc_validation.beegfs_check:
    path: /mnt/beegfs
    directories: [datasets, models]
    expect:
      rdma: true
      write_mib_s: 1000
      chunk_kib: 512
      stripe_targets: 4

- name: Check the servers alone, on the management server
  mlops.hpc_validation.beegfs_check:
    checks: [servers]
    expect:
      nodes: {meta: 2, storage: 4}
      targets: {meta: 2, storage: 12}

- name: Check a share that is not BeeGFS, and go on whatever the result
  mlops.hpc_validation.beegfs_check:
    path: /mnt/sharedfs
    share_type: other
    access: none
    fail: false
  register: share
"""

RETURN = r"""
facts:
  description:
    - The facts before judging, in the form of C(files/schemas/share.json). C(error) says why there are none.
  returned: always
  type: dict
  contains:
    mount:
      description: Mount point, type, options, configuration, client, servers with connections, targets, space.
      type: dict
    use:
      description: The result of each check of use, and the folder it ran in. Null if it was not requested.
      type: dict
    speed:
      description: Throughput in MiB/s, metadata operations per second, and the tool that measured them.
      type: dict
    striping:
      description: Pattern, chunk size and targets by folder.
      type: dict
    servers:
      description:
        - Targets, nodes, mirror groups and quota as reported by the tool, and its C(problems) by part, type and cause.
          With C(checks=[servers]) there is nothing else.
      type: dict
findings:
  description: The judged checks, in the form of C(files/schemas/finding.json).
  returned: always
  type: list
  elements: dict
verdict:
  description: V(pass), V(fail) or V(undetermined).
  returned: always
  type: str
table:
  description: A table of what did not pass, and the number of findings per verdict.
  returned: always
  type: str
"""

import base64

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import run
from ansible_collections.mlops.hpc_validation.plugins.module_utils._probe import share


def main() -> None:
    # The source of the kit's mounts.py comes with the call: the program that checks the mount must not be on it.
    spec = {**share.argument_spec(), "_mounts": {"type": "str"}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    options = dict(module.params)
    if not options["_mounts"]:
        module.fail_json(msg="beegfs_check works only with its action plugin, which judges on the controller")
    if module.check_mode:
        alone = share.servers_alone(options["checks"])
        options.update(checks=options["checks"] if alone else ["mount"], directories=[])
    facts = share.collect(options, base64.b64decode(options["_mounts"]), run.run)
    module.exit_json(changed=False, facts=facts)


if __name__ == "__main__":
    main()
