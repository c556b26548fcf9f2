"""Every fault of the share that can be told: it is found, judged, and named with value, bound and what to do."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import verdicts
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import findings as share_findings
from kit.share import mounts

from tests.unit.beegfs.told import FIXTURES, answer, instead, told
from tests.unit.conftest import ROOT

EXAMPLE = json.loads((ROOT / "files/schemas/examples/share.json").read_text())
Json = dict[str, t.Any]
ONE_MEMBER = """MirrorGroupID MGMemberType TargetID   Cap. Pool   NodeID
============= ============ ========   =========   ======
            1      primary      101      normal   beegfs-storage stor1 [ID: 1]
"""
STATES_HELD = """TargetID     Reachability  Consistency   Cap. Pool   NodeID
========     ============  ===========   =========   ======
     101           Online         Good      normal   beegfs-storage stor1 [ID: 1]
     102           Online         Good      normal   beegfs-storage stor1 [ID: 1]
"""
QUOTA_PARTLY = "name,id,size,hard,files,hard\nroot,0,0,unlimited,7+,10\n"


class Fault(t.NamedTuple):
    """What is broken and the finding that it must make: id, verdict, words of where, value, bound."""

    identity: str
    verdict: str
    place: str
    value: t.Any
    bound: str
    why: str = ""
    expect: dict[str, t.Any] = {}  # noqa: RUF012 never changed


STOR2 = "storage target 201 on stor2"
# name: scenarios of the tools' stand-in, answers that go before theirs, finding
SERVERS: dict[str, tuple[str, list[Json], Fault]] = {
    "target offline": (
        "offline",
        [],
        Fault("share.targets_reachable", "fail", STOR2, "offline", '= "online"'),
    ),
    "target offline, 8.x": (
        "v8 offline",
        [],
        Fault("share.targets_reachable", "fail", "storage target 201 on node_storage_2", "offline", '= "online"'),
    ),
    "target probably offline": (
        "probably-offline",
        [],
        Fault("share.targets_reachable", "fail", STOR2, "probably-offline", '= "online"'),
    ),
    "metadata target offline": (
        "meta-offline",
        [],
        Fault("share.targets_reachable", "fail", "meta target 2 on meta2", "offline", '= "online"'),
    ),
    "target needs resync": (
        "needs-resync",
        [],
        Fault("share.targets_consistent", "fail", STOR2, "needs-resync", '= "good"'),
    ),
    "target resyncing": (
        "resyncing",
        [],
        Fault("share.targets_consistent", "fail", STOR2, "resyncing", '= "good"'),
    ),
    "target bad": ("bad", [], Fault("share.targets_consistent", "fail", STOR2, "bad", '= "good"')),
    "target bad, 8.x": (
        "v8 bad",
        [],
        Fault("share.targets_consistent", "fail", "storage target 201", "bad", '= "good"', "resync: unknown"),
    ),
    "target in pool emergency": (
        "emergency",
        [],
        Fault("share.capacity_pool", "fail", STOR2, "emergency", '= "normal"'),
    ),
    "target in pool low, where that is not accepted": (
        "low",
        [],
        Fault("share.capacity_pool", "fail", STOR2, "low", '= "normal"', expect={"capacity_pool": "normal"}),
    ),
    "target in pool low, where that is not accepted, 8.x": (
        "v8 low",
        [],
        Fault("share.capacity_pool", "fail", "target 201", "low", '= "normal"', expect={"capacity_pool": "normal"}),
    ),
    "target nearly full": (
        "space-low-and-emergency-inodes-169982",
        [],
        Fault("share.target_free_space", "fail", STOR2, 2.55, ">= 100", expect={"target_free_gib": {"storage": 100}}),
    ),
    "storage target out of inodes": (
        "few-inodes",
        [],
        Fault("share.target_free_inodes", "fail", "storage target 102 on stor1", 2750, ">= 200000"),
    ),
    "metadata target with fewer inodes than are wanted": (
        "healthy",
        [],
        Fault(
            "share.target_free_inodes",
            "fail",
            "meta target 1 on meta1",
            250_000,
            ">= 1000000",
            expect={"target_free_inodes": {"meta": 1_000_000}},
        ),
    ),
    "inodes between the two ends of what was printed": (
        "healthy",
        [],
        Fault(
            "share.target_free_inodes",
            "undetermined",
            "meta target 1 on meta1",
            None,
            ">= 200000",
            "between 186,250 and 250,000",
            expect={"target_free_inodes": 200_000},
        ),
    ),
    "server unreachable": (
        "unreachable",
        [],
        Fault("share.nodes_reachable", "fail", "storage server stor2", False, "= true"),
    ),
    "server unreachable, 8.x": (
        "v8 unreachable",
        [],
        Fault("share.nodes_reachable", "fail", "storage server node_storage_2", False, "= true"),
    ),
    "mirror without its second half": (
        "mirror-needs-resync",
        [],
        Fault(
            "share.mirrors", "fail", "mirror group 1, secondary target 201", "online, needs-resync", '= "online, good"'
        ),
    ),
    "metadata mirrors could not be read": (
        "mirrored",
        [
            answer("--mirrorgroups", "--nodetype=meta", err="some other words\n"),
            answer("--listmirrorgroups", "--nodetype=meta", err="some other words\n"),
        ],
        Fault("share.mirrors", "undetermined", "any meta mirror group", None, '= "online, good"', "some other words"),
    ),
    "a mirror group is listed with one member": (
        "mirrored",
        [
            answer("--mirrorgroups", "--nodetype=storage", out=ONE_MEMBER),
            answer("--listmirrorgroups", "--nodetype=storage", err="refused\n", rc=3),
        ],
        Fault("share.mirrors", "undetermined", "any storage mirror group", None, '= "online, good"', "one member"),
    ),
    "fewer mirror groups than expected": (
        "mirrored",
        [],
        Fault("share.mirror_count", "fail", "", 1, "= 2", expect={"mirrors": {"meta": 2, "storage": 2}}),
    ),
    "fewer servers than expected": (
        "healthy",
        [],
        Fault("share.node_count", "fail", "", 2, "= 3", expect={"nodes": {"meta": 2, "storage": 3}}),
    ),
    "fewer targets than expected": (
        "healthy",
        [],
        Fault("share.target_count", "fail", "", 4, "= 12", expect={"targets": {"storage": 12}}),
    ),
    "a management daemon that forgot targets that are expected": (
        "mgmtd-killed-back-60s",
        [],
        Fault("share.target_count", "fail", "", 0, "= 4", expect={"targets": {"storage": 4}}),
    ),
    "a management daemon that forgot servers that are expected": (
        "mgmtd-killed-back-60s",
        [],
        Fault("share.node_count", "fail", "", 0, "= 2", expect={"nodes": {"meta": 2}}),
    ),
    "a management daemon that forgot mirrors that are expected": (
        "mgmtd-killed-back-60s",
        [],
        Fault("share.mirror_count", "fail", "", 0, "= 1", expect={"mirrors": {"meta": 1}}),
    ),
    "a management daemon that forgot a quota that is expected": (
        "mgmtd-killed-back-60s",
        [],
        Fault(
            "share.quota",
            "fail",
            "",
            "the management daemon knows no limit and no target",
            '= "enforced"',
            expect={"quota": True},
        ),
    ),
    "quota exceeded": (
        "quota-exceeded",
        [],
        Fault("share.quota", "fail", "Default (ID: 1), bytes", 10737418240, "< 10737418240"),
    ),
    "quota exceeded, 8.x": (
        "v8 quota-exceeded",
        [],
        Fault("share.quota", "fail", "storage_pool_default, files", 100000, "< 100000"),
    ),
    "quota not enabled, 8.x": (
        "v8",
        [instead("cli_8_documented/quota_list_usage_not_enabled", "quota", "list-usage")],
        Fault("share.quota", "undetermined", "", None, "< 0", "quota is not enabled"),
    ),
    "quota expected, and no limit proves it": (
        "healthy-no-mirrors",
        [],
        Fault("share.quota", "undetermined", "", None, '= "enforced"', "no limit is reported", expect={"quota": True}),
    ),
    "files that not every disk counts": (
        "healthy",
        [answer("--getquota", out=QUOTA_PARTLY)],
        Fault("share.quota", "undetermined", "files", None, "< 10", "not every disk"),
    ),
    "files beyond the limit on the disks that count them": (
        "healthy",
        [answer("--getquota", out=QUOTA_PARTLY.replace("7+", "12+"))],
        Fault("share.quota", "fail", "files", 12, "< 10"),
    ),
    "management daemon dead": (
        "mgmtd-dead",
        [],
        Fault("share.servers", "undetermined", "", None, "= 0", "Management node communication failed"),
    ),
    "management daemon dead, 8.x": (
        "v8 mgmtd-dead",
        [],
        Fault("share.servers", "undetermined", "", None, "= 0", "without a working management node"),
    ),
    "management daemon dead and exit code 0": (
        "mgmtd-dead-rc0",
        [],
        Fault("share.servers", "undetermined", "", None, "= 0", "METADATA SERVERS"),
    ),
    "nothing printed": (
        "silent",
        [],
        Fault("share.servers", "undetermined", "", None, "= 0", "no list of targets"),
    ),
    "no target listed, 8.x": (
        "v8 silent",
        [],
        Fault("share.servers", "undetermined", "", None, "= 0", "knows no storage target"),
    ),
    "secret not readable": (
        "permission",
        [],
        Fault("share.servers", "undetermined", "", None, "= 0", "Permission denied"),
    ),
    "wrong secret": (
        "wrong-secret",
        [],
        Fault("share.servers", "undetermined", "", None, "= 0", "Soft disconnect"),
    ),
    "output cut off, 8.x": (
        "v8 truncated",
        [],
        Fault("share.servers", "undetermined", "", None, "= 0", "not JSON"),
    ),
    "foreign text": (
        "garbage",
        [],
        Fault("share.servers", "undetermined", "", None, "= 0", "unrecognised line: Segmentation fault"),
    ),
    "target without a server": (
        "v8 unmapped",
        [],
        Fault("share.servers", "undetermined", "", None, "= 0", "belongs to no server"),
    ),
    "partial answer": (
        "v8 partial",
        [],
        Fault("share.servers", "undetermined", "", None, "= 0", "exit code 2"),
    ),
    "no answer in time": (
        "hang",
        [],
        Fault("share.servers", "undetermined", "", None, "= 0", "did not answer in 15 s"),
    ),
    "the management daemon knows no metadata": (
        "no-meta-registered",
        [],
        Fault("share.targets_reachable", "undetermined", "any meta target", None, '= "online"', "knows no meta target"),
    ),
    "states were kept waiting": (
        "mirrored",
        [{**answer("--state", "--pools", "--nodetype=storage", seconds=1200), "at_once": STATES_HELD}],
        Fault("share.targets_consistent", "undetermined", STOR2, None, '= "good"', "did not answer"),
    ),
}


def check(findings: list[dict[str, t.Any]], fault: Fault) -> None:
    """The finding is there as the fault says, valid and with a remedy, and the whole is no pass."""
    for finding in findings:
        assert schema.problems("finding", finding) == []
        if finding["verdict"] in ("fail", "undetermined"):
            assert finding["remedy"], finding
    fitting = [
        finding
        for finding in findings
        if finding["id"] == fault.identity
        and finding["verdict"] == fault.verdict
        and fault.place in " ".join(map(str, finding["where"].values()))
    ]
    assert fitting, [(f["id"], f["verdict"], f["where"], f["why"]) for f in findings if f["verdict"] != "pass"]
    assert fitting[0]["value"] == fault.value
    assert fitting[0]["bound"] == fault.bound
    assert fault.why in fitting[0]["why"]
    assert verdicts.overall(findings) == ("fail" if "fail" in [f["verdict"] for f in findings] else "undetermined")


def servers(scenarios: str, first: t.Sequence[Json] = (), **expect: t.Any) -> list[Json]:
    facts = told(*scenarios.split(), first=first)
    return share_findings.servers_findings(facts, expect, host="login", share_type="beegfs")


@pytest.mark.parametrize("name", SERVERS)
def test_a_fault_of_the_servers(name):
    scenarios, first, fault = SERVERS[name]
    check(servers(scenarios, first, **fault.expect), fault)


@pytest.mark.parametrize(
    ("scenarios", "counts"),
    [("healthy", {"meta": 2, "storage": 4}), ("mirrored", {"storage": 4}), ("v8", {"meta": 1, "storage": 3})],
)
def test_healthy_servers_pass(scenarios, counts):
    findings = servers(scenarios, targets=counts)
    assert [f for f in findings if f["verdict"] not in ("pass", "recorded")] == []
    assert verdicts.overall(findings) == "pass"


def mounted(tmp_path, state: str | None = None, line: str = "") -> dict[str, t.Any]:
    """Facts of a BeeGFS mount with the client's files as the fixture `state` has them."""
    share, proc = tmp_path / "share", tmp_path / "proc"
    share.mkdir(exist_ok=True)
    client = proc / "fs/beegfs/3F6-6B00FE9C-client"
    client.mkdir(parents=True)
    for folder in ("healthy", *(state or "healthy").split("+")):
        if folder == "management_unconnected":
            (client / "mgmt_nodes").write_text("bee1 [ID: 1]\n   Connections: <none>\n")
            continue
        for path in (FIXTURES / "proc_fs" / folder).iterdir():
            (client / path.name).write_text(path.read_text())
    default = f"beegfs_nodev {share} beegfs rw,relatime,cfgFile=/etc/beegfs/beegfs-client.conf 0 0\n"
    (proc / "mounts").write_text("/dev/sda / ext4 rw 0 0\n" + (line.format(share=share) or default))
    found = mounts.facts(str(share), "beegfs", 10, str(proc))
    if found["statfs"]:
        found["statfs"].update(magic=mounts.BEEGFS_MAGIC, inodes=10**7, inodes_free=10**7, free=10**12)
    return found


CLIENT: dict[str, tuple[str | None, str, Fault]] = {
    "no connection at all": (
        "no_connections",
        "",
        Fault("share.connections", "fail", "metadata server bee1", 0, "> 0"),
    ),
    "storage server without connection, target offline": (
        "storage_node_unconnected+target_offline",
        "",
        Fault("share.connections", "fail", "storage server stor2", 0, "> 0"),
    ),
    "storage server without connection, target online but nobody can know": (
        "storage_node_unconnected+management_unconnected",
        "",
        Fault("share.connections", "fail", "storage server stor2", 0, "> 0"),
    ),
    "TCP where RDMA is expected": (
        "tcp",
        "",
        Fault("share.rdma", "fail", "storage server stor1", "TCP", '= "RDMA"', expect={"rdma": True}),
    ),
    "fallback route": (
        "tcp_fallback",
        "",
        Fault("share.fallback_route", "fail", "storage server stor2", 1, "= 0", "10.99.0.1:8103"),
    ),
    "target offline, as the client sees it": (
        "target_offline",
        "",
        Fault("share.targets_reachable", "fail", STOR2, "offline", '= "online"'),
    ),
    "target needs resync, as the client sees it": (
        "target_needs_resync",
        "",
        Fault("share.targets_consistent", "fail", STOR2, "needs-resync", '= "good"'),
    ),
    "metadata target offline": (
        "meta_offline",
        "",
        Fault("share.answers", "undetermined", "share", None, "= true", "it was not touched"),
    ),
    "client without servers": (
        "no_nodes",
        "",
        Fault("share.connections", "undetermined", "any storage server", None, "> 0", "no storage server is listed"),
    ),
    "client's files are garbage": (
        "garbage",
        "",
        Fault("share.targets_reachable", "undetermined", "any storage", None, '= "online"', "no storage target"),
    ),
    "client of another configuration": (
        "other_configuration",
        "",
        Fault("share.client", "undetermined", "", None, "= 1", "0 clients with the configuration"),
    ),
    "mounted with another configuration": (
        None,
        "beegfs_nodev {share} beegfs rw,cfgFile=/etc/beegfs/beegfs-client.conf 0 0\n",
        Fault(
            "share.config",
            "fail",
            "beegfs-client.conf",
            "/etc/beegfs/beegfs-client.conf",
            '= "/etc/beegfs/fast.conf"',
            expect={"config_file": "/etc/beegfs/fast.conf"},
        ),
    ),
    "not mounted": (
        None,
        "beegfs_nodev /elsewhere beegfs rw 0 0\n",
        Fault("share.mounted", "fail", "share", False, "= true", "nothing is mounted"),
    ),
    "another file system": (
        None,
        "server:/export {share} nfs4 rw 0 0\n",
        Fault("share.type", "fail", "share", "nfs4", '= "beegfs"'),
    ),
}


@pytest.mark.parametrize("name", CLIENT)
def test_a_fault_of_the_mount(name, tmp_path):
    state, line, fault = CLIENT[name]
    facts = {**EXAMPLE, "mount": mounted(tmp_path, state, line)}
    if facts["mount"]["problem"]:
        nothing = {"folder": EXAMPLE["use"]["folder"], "error": facts["mount"]["problem"]}
        facts.update(use={**nothing, "checks": {}}, speed=nothing)
    check(share_findings.findings(facts, fault.expect, node="compute02", share_type="beegfs"), fault)


def test_a_healthy_mount_passes(tmp_path):
    facts = {**EXAMPLE, "mount": mounted(tmp_path)}
    findings = share_findings.findings(facts, {"rdma": True}, node="compute02", share_type="beegfs")
    assert [f for f in findings if f["verdict"] not in ("pass", "recorded")] == []


def edited(change: t.Callable[[t.Any], object]) -> dict[str, t.Any]:
    facts = json.loads(json.dumps(EXAMPLE))
    change(facts)
    return facts


def seen(name: str, **values: t.Any) -> t.Callable[[t.Any], object]:
    return lambda facts: facts["use"]["checks"][name]["seen"].update(values)


def refused(name: str, error: str) -> t.Callable[[t.Any], object]:
    return lambda facts: facts["use"]["checks"][name].update(seen=None, error=error)


JOBS = "/mnt/beegfs/jobs/.check-compute01-4711"
READ = EXAMPLE["use"]["checks"]["fsync_read_back"]["seen"]["written"]
USE: dict[str, tuple[t.Callable[[t.Any], object], Fault]] = {
    "read back changed": (
        seen("fsync_read_back", read="0" * 64),
        Fault("share.fsync_read_back", "fail", JOBS, "0" * 64, f'= "{READ}"'),
    ),
    "write refused": (
        refused("fsync_read_back", "Input/output error"),
        Fault("share.fsync_read_back", "fail", JOBS, "refused: Input/output error", '= "read back the same"'),
    ),
    "hard links refused": (
        refused("hard_link", "Operation not supported"),
        Fault("share.hard_link", "fail", JOBS, "refused: Operation not supported", '= "links 2, content "linked""'),
    ),
    "lock not kept": (
        seen("flock", while_held="granted"),
        Fault(
            "share.flock",
            "fail",
            JOBS,
            'while_held "granted", after_release "granted"',
            '= "while_held "refused", after_release "granted""',
        ),
    ),
    "modes changed": (
        seen("permissions", file="0600"),
        Fault(
            "share.permissions",
            "fail",
            JOBS,
            'file "0600", folder "0755", setgid_folder "2755"',
            '= "file "0640", folder "0755", setgid_folder "2755""',
        ),
    ),
    "a hole does not read as zeros": (
        seen("sparse", hole_is_zeros=False),
        Fault(
            "share.sparse",
            "fail",
            JOBS,
            'size 67108867, hole_is_zeros false, end "end"',
            '= "size 67108867, hole_is_zeros true, end "end""',
        ),
    ),
    "files lost from a folder": (
        seen("many_files", listed=199),
        Fault(
            "share.many_files",
            "fail",
            JOBS,
            "listed 199, stat 200, right 200, left 0",
            '= "listed 200, stat 200, right 200, left 0"',
        ),
    ),
    "noexec": (
        refused("execute", "Permission denied"),
        Fault("share.execute", "fail", JOBS, "refused: Permission denied", '= "exit_code 7"'),
    ),
    "a check without an answer": (
        lambda facts: facts["use"]["checks"]["append"].update(seen=None, missing="it did not answer in 30 s"),
        Fault("share.append", "undetermined", JOBS, None, '= "content "first second third""', "did not answer"),
    ),
    "nothing could be tried": (
        lambda facts: facts["use"].update(checks={}, error="jobs: Permission denied"),
        Fault("share.use", "undetermined", JOBS, None, "= 17", "Permission denied"),
    ),
    "a check left out": (
        lambda facts: facts["use"]["checks"].pop("rename"),
        Fault("share.use", "fail", JOBS, 16, "= 17"),
    ),
    "the folder was left": (
        lambda facts: facts["use"]["folder"].update(removed=False, error="Device or resource busy"),
        Fault("share.private_folder", "fail", JOBS, False, "= true", "busy"),
    ),
    "slow writing": (
        lambda facts: facts["speed"].update(write_buffered_mib_s=12.5),
        Fault("share.write_throughput", "fail", JOBS, 12.5, ">= 50"),
    ),
    "slow reading past the cache": (
        lambda facts: facts["speed"].update(read_direct_mib_s=12.5),
        Fault("share.read_throughput_direct", "fail", JOBS, 12.5, ">= 50"),
    ),
    "no O_DIRECT": (
        lambda facts: facts["speed"].update(write_direct_mib_s=None, problems={"write_direct": "Invalid argument"}),
        Fault("share.write_throughput_direct", "undetermined", JOBS, None, ">= 50", "Invalid argument"),
    ),
    "slow metadata": (
        lambda facts: facts["speed"]["metadata"].update(operations_per_s=55.0),
        Fault("share.metadata_rate", "fail", JOBS, 55.0, ">= 100", "creates/s"),
    ),
    "nothing measured": (
        lambda facts: facts.update(speed=None),
        Fault("share.speed", "undetermined", "", None, "= true", "nothing was measured"),
    ),
    "too little free space": (
        lambda facts: facts["mount"]["statfs"].update(free=2 << 30),
        Fault("share.free_space", "fail", "/mnt/beegfs", 2.0, ">= 10"),
    ),
    "too few inodes": (
        lambda facts: facts["mount"]["statfs"].update(inodes_free=99),
        Fault("share.free_inodes", "fail", "/mnt/beegfs", 99, ">= 100000"),
    ),
    "read-only": (
        lambda facts: facts["mount"]["statfs"].update(read_only=True),
        Fault("share.read_only", "fail", "/mnt/beegfs", True, "= false"),
    ),
    "a file instead of a folder": (
        lambda facts: facts["mount"]["statfs"].update(directory=False),
        Fault("share.directory", "fail", "/mnt/beegfs", False, "= true"),
    ),
    "not BeeGFS to the kernel": (
        lambda facts: facts["mount"]["statfs"].update(magic=0xEF53),
        Fault("share.magic", "fail", "compute02", "0xef53", '= "0x19830326"'),
    ),
    "chunks of another size": (
        lambda facts: facts["striping"]["models"].update(chunk_kib=64),
        Fault("share.striping", "fail", "models", 64, "= 512", expect={"chunk_kib": 512}),
    ),
    "striped over one target": (
        lambda facts: facts["striping"]["models"].update(targets=1),
        Fault("share.striping", "fail", "models", 1, ">= 4", expect={"stripe_targets": 4}),
    ),
    "striping not told": (
        lambda facts: facts["striping"].update(models={"error": "Inappropriate ioctl for device"}),
        Fault("share.striping", "undetermined", "models", None, ">= 4", "ioctl", expect={"stripe_targets": 4}),
    ),
}


@pytest.mark.parametrize("name", USE)
def test_a_fault_in_use(name):
    change, fault = USE[name]
    findings = share_findings.findings(edited(change), fault.expect, node="compute02", share_type="beegfs")
    check(findings, fault)
    assert all(finding["where"].get("node") == "compute02" for finding in findings)


def test_the_table_is_long_enough_and_every_check_of_use_can_fail():
    assert len(SERVERS) + len(CLIENT) >= 20
    for name in EXAMPLE["use"]["checks"]:
        findings = share_findings.findings(
            edited(refused(name, "Input/output error")), {}, node="compute02", share_type="beegfs"
        )
        (finding,) = [finding for finding in findings if finding["id"] == f"share.{name}"]
        assert finding["verdict"] == ("recorded" if name in ("mmap_write", "directory_fsync") else "fail")
