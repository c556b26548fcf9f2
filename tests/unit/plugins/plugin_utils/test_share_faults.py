"""Every fault of the share that can be told: it is found, judged, and named with value, bound and what to do."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _criteria
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs_cli import Result
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import _schema, _share_findings
from kit.share import mounts

from tests.unit.conftest import ROOT
from tests.unit.plugins.module_utils.beegfs_fake import FIXTURES, told

EXAMPLE = json.loads((ROOT / "files/schemas/examples/share.json").read_text())
EDITED = "ctl_7.4.7_edited"


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
SERVERS: dict[str, tuple[str, dict[str, str | Result], Fault]] = {
    # name: tool, answers that differ from the healthy ones, finding
    "target offline": (
        "beegfs-ctl",
        {"listtargets_storage": f"{EDITED}/listtargets_storage_offline"},
        Fault("share.targets_reachable", "fail", "storage target 201", "offline", '= "online"'),
    ),
    "target offline, recorded": (
        "beegfs-ctl",
        {"listtargets_storage": "ctl_7.4.7/listtargets_storage_state_offline"},
        Fault("share.targets_reachable", "fail", "storage target 201", "offline", '= "online"'),
    ),
    "target offline, 8.x": (
        "beegfs",
        {"target_list": "cli_8_documented/target_list_offline"},
        Fault("share.targets_reachable", "fail", "storage target 201 on node_storage_2", "offline", '= "online"'),
    ),
    "target probably offline": (
        "beegfs-ctl",
        {"listtargets_storage": "ctl_7.4.7/listtargets_storage_state_probably_offline"},
        Fault("share.targets_reachable", "fail", "storage target 201", "probably-offline", '= "online"'),
    ),
    "metadata target offline": (
        "beegfs-ctl",
        {"listtargets_meta": f"{EDITED}/listtargets_meta_offline"},
        Fault("share.targets_reachable", "fail", "meta target 1", "offline", '= "online"'),
    ),
    "a state of no known word": (
        "beegfs-ctl",
        {"listtargets_storage": f"{EDITED}/listtargets_storage_unknown_words"},
        Fault("share.targets_reachable", "fail", STOR2, "asleep", '= "online"'),
    ),
    "target needs resync": (
        "beegfs-ctl",
        {"listtargets_storage": "ctl_7.4.7/listtargets_storage_state_needs_resync"},
        Fault("share.targets_consistent", "fail", "storage target 201", "needs-resync", '= "good"'),
    ),
    "target resyncing": (
        "beegfs-ctl",
        {"listtargets_storage": "ctl_7.4.7/listtargets_storage_state_resyncing"},
        Fault("share.targets_consistent", "fail", "storage target 201", "resyncing", '= "good"'),
    ),
    "target bad, 8.x": (
        "beegfs",
        {"target_list": "cli_8_documented/target_list_bad"},
        Fault("share.targets_consistent", "fail", "storage target 201", "bad", '= "good"', "resync: unknown"),
    ),
    "target in pool emergency": (
        "beegfs-ctl",
        {"listtargets_storage": f"{EDITED}/listtargets_storage_emergency"},
        Fault("share.capacity_pool", "fail", STOR2, "emergency", '= "normal"'),
    ),
    "target in pool low, where that is not accepted": (
        "beegfs",
        {"target_list": "cli_8_documented/target_list_low"},
        Fault("share.capacity_pool", "fail", "target 201", "low", '= "normal"', expect={"capacity_pool": "normal"}),
    ),
    "target nearly full": (
        "beegfs-ctl",
        {"listtargets_storage": f"{EDITED}/listtargets_storage_low"},
        Fault("share.target_free_space", "fail", STOR2, 20.6, ">= 100", expect={"target_free_gib": 100}),
    ),
    "storage target out of inodes": (
        "beegfs-ctl",
        {"listtargets_storage": f"{EDITED}/listtargets_storage_few_inodes"},
        Fault("share.target_free_inodes", "fail", STOR2, 100_000, ">= 200000"),
    ),
    "metadata target out of inodes": (
        "beegfs-ctl",
        {"listtargets_meta": f"{EDITED}/listtargets_meta_few_inodes"},
        Fault("share.target_free_inodes", "fail", "meta target 1 on bee1", 100_000, ">= 200000"),
    ),
    "server unreachable": (
        "beegfs-ctl",
        {"listnodes_storage": f"{EDITED}/listnodes_storage_unreachable"},
        Fault("share.nodes_reachable", "fail", "storage server stor2", False, "= true"),
    ),
    "server unreachable, 8.x": (
        "beegfs",
        {"node_list": "cli_8_documented/node_list_unreachable"},
        Fault("share.nodes_reachable", "fail", "storage server node_storage_2", False, "= true"),
    ),
    "mirror without its second half": (
        "beegfs-ctl",
        {
            "listmirrorgroups_storage": "ctl_7.4.7/listmirrorgroups_storage",
            "listtargets_storage": f"{EDITED}/listtargets_storage_needs_resync",
        },
        Fault(
            "share.mirrors", "fail", "mirror group 1, secondary target 201", "online, needs-resync", '= "online, good"'
        ),
    ),
    "quota exceeded": (
        "beegfs-ctl",
        {"getquota": f"{EDITED}/getquota_csv_exceeded"},
        Fault("share.quota", "fail", "Default (ID: 1), bytes", 10737418240, "< 10737418240"),
    ),
    "quota exceeded, 8.x": (
        "beegfs",
        {"quota_list-usage": "cli_8_documented/quota_list_usage_exceeded"},
        Fault("share.quota", "fail", "storage_pool_default, files", 100000, "< 100000"),
    ),
    "quota not enabled, 8.x": (
        "beegfs",
        {"quota_list-usage": "cli_8_documented/quota_list_usage_not_enabled"},
        Fault("share.quota", "undetermined", "", None, "< 0", "quota is not enabled"),
    ),
    "quota not told": (
        "beegfs-ctl",
        {"getquota": "ctl_7.4.7/error_mgmtd_down"},
        Fault("share.quota", "undetermined", "", None, "< 0", "Management node communication failed"),
    ),
    "a target is missing": (
        "beegfs-ctl",
        {},
        Fault("share.target_count", "fail", "", 3, "= 4", expect={"targets": {"storage": 4}}),
    ),
    "management daemon dead": (
        "beegfs-ctl",
        {"any": "ctl_7.4.7/error_mgmtd_down"},
        Fault("share.servers", "undetermined", "", None, "= 0", "Management node communication failed"),
    ),
    "management daemon dead, told with exit code 0": (
        "beegfs-ctl",
        {"any": "ctl_7.4.7/df_mgmtd_down_lies"},
        Fault("share.servers", "undetermined", "", None, "= 0", "no heading"),
    ),
    "management daemon dead, 8.x": (
        "beegfs",
        {"any": "cli_8_documented/error_mgmtd_down"},
        Fault("share.servers", "undetermined", "", None, "= 0", "working management node"),
    ),
    "no target, exit code 0": (
        "beegfs",
        {"target_list": "cli_8_documented/target_list_empty"},
        Fault("share.servers", "undetermined", "", None, "= 0", "no storage target is listed"),
    ),
    "secret not readable": (
        "beegfs-ctl",
        {"any": "ctl_7.4.7/error_auth_file_permission"},
        Fault("share.servers", "undetermined", "", None, "= 0", "exit code 1"),
    ),
    "wrong secret": (
        "beegfs-ctl",
        {"any": "ctl_7.4.7/error_wrong_secret"},
        Fault("share.servers", "undetermined", "", None, "= 0", "Node download failed"),
    ),
    "output cut off": (
        "beegfs-ctl",
        {"listtargets_storage": f"{EDITED}/listtargets_storage_truncated"},
        Fault("share.servers", "undetermined", "", None, "= 0", "breaks off"),
    ),
    "output cut off, 8.x": (
        "beegfs",
        {"target_list": "cli_8_documented/target_list_truncated"},
        Fault("share.servers", "undetermined", "", None, "= 0", "no JSON"),
    ),
    "foreign text": (
        "beegfs-ctl",
        {"any": f"{EDITED}/foreign_text"},
        Fault("share.servers", "undetermined", "", None, "= 0", "no heading"),
    ),
    "space of a target not told": (
        "beegfs-ctl",
        {"listtargets_storage": f"{EDITED}/listtargets_storage_space_query_failed"},
        Fault("share.servers", "undetermined", "", None, "= 0", "Communication error"),
    ),
    "target without a server": (
        "beegfs",
        {"target_list": "cli_8_documented/target_list_unmapped"},
        Fault("share.servers", "undetermined", "", None, "= 0", "belongs to no server"),
    ),
    "partial answer": (
        "beegfs",
        {"target_list": "cli_8_documented/target_list_partial"},
        Fault("share.servers", "undetermined", "", None, "= 0", "exit code 2"),
    ),
    "no answer in time": (
        "beegfs-ctl",
        {"any": Result(None, "", "beegfs-ctl did not answer in 30 s")},
        Fault("share.servers", "undetermined", "", None, "= 0", "did not answer in 30 s"),
    ),
}


def check(findings: list[dict[str, t.Any]], fault: Fault) -> None:
    """The finding is there as the fault says, valid and with a remedy, and the whole is no pass."""
    for finding in findings:
        assert _schema.problems("finding", finding) == []
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
    assert _criteria.overall(findings) == ("fail" if "fail" in [f["verdict"] for f in findings] else "undetermined")


def servers(tool: str, changed: dict[str, str | Result], **expect: t.Any) -> list[dict[str, t.Any]]:
    return _share_findings.servers_findings(told(tool, changed), expect, host="login", share_type="beegfs")


@pytest.mark.parametrize("name", SERVERS)
def test_a_fault_of_the_servers(name):
    tool, changed, fault = SERVERS[name]
    check(servers(tool, changed, **fault.expect), fault)


@pytest.mark.parametrize("tool", ["beegfs-ctl", "beegfs"])
def test_healthy_servers_pass(tool):
    findings = servers(tool, {}, targets={"meta": 1, "storage": 3})
    assert [f for f in findings if f["verdict"] not in ("pass", "recorded")] == []
    assert _criteria.overall(findings) == "pass"


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
    check(_share_findings.findings(facts, fault.expect, node="compute02", share_type="beegfs"), fault)


def test_a_healthy_mount_passes(tmp_path):
    facts = {**EXAMPLE, "mount": mounted(tmp_path)}
    findings = _share_findings.findings(facts, {"rdma": True}, node="compute02", share_type="beegfs")
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
    findings = _share_findings.findings(edited(change), fault.expect, node="compute02", share_type="beegfs")
    check(findings, fault)
    assert all(finding["where"].get("node") == "compute02" for finding in findings)


def test_the_table_is_long_enough_and_every_check_of_use_can_fail():
    assert len(SERVERS) + len(CLIENT) >= 20
    for name in EXAMPLE["use"]["checks"]:
        findings = _share_findings.findings(
            edited(refused(name, "Input/output error")), {}, node="compute02", share_type="beegfs"
        )
        (finding,) = [finding for finding in findings if finding["id"] == f"share.{name}"]
        assert finding["verdict"] == ("recorded" if name in ("mmap_write", "directory_fsync") else "fail")
