from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import expect as judge_expect
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import remedies as judge_remedies
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import verdicts as judge_verdicts
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import findings as share_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import use
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.coherence import coherence_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.guard import guard_finding
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.likeness import likeness, same_everywhere
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.titles import TITLES
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.share import use as share_use

from tests.unit.conftest import ROOT


def compared(facts: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Compare the share facts of nodes."""
    return same_everywhere({node: likeness(each) for node, each in facts.items()})


EXAMPLE = json.loads((ROOT / "files/schemas/examples/share.json").read_text())


def verdicts(findings):
    return {finding["id"]: finding["verdict"] for finding in findings}


def judge(facts, expect=None, share_type="beegfs", **options):
    findings = share_findings.findings(facts, expect, node="compute01", share_type=share_type, **options)
    for finding in findings:
        assert schema.problems("finding", finding) == []
    return findings


def test_the_example_passes_and_nothing_is_left_unjudged():
    findings = judge(EXAMPLE)
    assert {f["id"] for f in findings if f["verdict"] not in ("pass", "recorded")} == set()
    assert judge_verdicts.overall(findings) == "pass"
    assert verdicts(findings)["share.million_files"] == "recorded"
    (million,) = [f for f in findings if f["id"] == "share.million_files"]
    assert "extrapolated" in million["why"]


def test_every_check_has_a_title_and_a_remedy():
    remedies = judge_remedies.load()
    assert set(TITLES) <= set(remedies)
    # A symptom of a check has the check's id before its own.
    symptoms = {key for key in remedies if key.startswith("share.")} - set(TITLES)
    assert {".".join(key.split(".")[:2]) for key in symptoms} <= set(TITLES)


def test_the_controller_expects_what_the_kit_checks():
    assert set(use.EXPECTED) == set(share_use.CHECKS)
    assert use.EXPECTED["many_files"]["listed"] == share_use.MANY
    assert use.EXPECTED["sparse"]["size"] == share_use.SPARSE_BYTES + 3
    assert use.EXPECTED["large_file"]["size"] == share_use.LARGE_OFFSET + 4096
    for name, seen in EXAMPLE["use"]["checks"].items():
        assert set(use.EXPECTED[name]) <= set(seen["seen"])


@pytest.mark.parametrize(
    "facts", [None, [], "", 7, {}, {"schema": 1}, {"schema": 2, "type": "beegfs"}, {**EXAMPLE, "type": "other"}]
)
def test_what_are_no_facts_of_this_share_is_undetermined(facts):
    (finding,) = judge(facts)
    assert (finding["id"], finding["verdict"]) == ("share.mounted", "undetermined")
    assert judge_verdicts.overall([finding]) == "undetermined"


def test_why_there_are_no_facts_is_told():
    (finding,) = judge({"error": "the host cannot be reached: timed out"})
    assert "cannot be reached" in finding["why"]


def test_of_a_share_that_is_none_of_beegfs_beegfs_own_checks_do_not_apply():
    facts = {**EXAMPLE, "type": "other", "mount": {**EXAMPLE["mount"], "client": None, "fstype": "nfs4"}}
    found = verdicts(judge(facts, share_type="other"))
    assert {key for key, verdict in found.items() if verdict == "not_applicable"} == {
        "share.type",
        "share.magic",
        "share.client",
        "share.config",
        "share.connections",
        "share.rdma",
        "share.fallback_route",
        "share.global_locks_set",
        "share.striping",
    }
    assert verdicts(judge(facts, {"fstype": ["nfs4"]}, "other"))["share.type"] == "pass"
    assert verdicts(judge(facts, {"fstype": ["lustre"]}, "other"))["share.type"] == "fail"
    servers = share_findings.servers_findings(None, {}, host="login", share_type="other")
    assert {f["verdict"] for f in servers} == {"not_applicable"}


def test_a_simulated_share_says_so():
    facts = {**EXAMPLE, "type": "simulated", "mount": {**EXAMPLE["mount"], "client": None, "fstype": "ext4"}}
    findings = judge(facts, share_type="simulated")
    assert all("simulated" in f["why"] for f in findings)
    assert verdicts(findings)["share.flock"] == "pass"
    assert verdicts(findings)["share.magic"] == "not_applicable"


def test_only_what_was_asked_is_judged_and_what_was_asked_is():
    asked = {**EXAMPLE, "use": None, "speed": None, "striping": None}
    assert judge_verdicts.overall(judge(asked, checks=["mount"])) == "pass"
    assert judge_verdicts.overall(judge(asked)) == "undetermined"  # it was to be there
    assert verdicts(judge(asked))["share.use"] == verdicts(judge(asked))["share.speed"] == "undetermined"


def test_an_idle_storage_server_needs_no_connection_before_it_is_used():
    facts = json.loads(json.dumps(EXAMPLE))
    facts["mount"]["client"]["nodes"]["storage"][1]["connections"] = []
    mount_only = [f for f in judge(facts, checks=["mount"]) if f["id"] == "share.connections"]
    assert [f["verdict"] for f in mount_only] == ["pass", "recorded"]


def connections(change, **options):
    """The verdicts about connections once `change` was made to the client of the example."""
    facts = json.loads(json.dumps(EXAMPLE))
    change(facts["mount"]["client"])
    return {f["where"].get("target", "all"): f for f in judge(facts, **options) if f["id"] == "share.connections"}


def unconnected(*kinds):
    def change(client):
        for kind in kinds:
            for server in client["nodes"][kind]:
                server["connections"] = []

    return change


def test_a_server_of_another_pool_needs_no_connection_while_it_is_said_to_be_online():
    found = connections(lambda client: client["nodes"]["storage"][1].update(connections=[]))
    assert found["storage server stor2"]["verdict"] == "recorded"
    assert "idle" in found["storage server stor2"]["why"]

    def named_otherwise(client):
        client["nodes"]["storage"][1].update(connections=[])
        for target in client["targets"]["storage"]:
            target["node"] = f"beegfs-storage {target['node']} [ID: 7]"

    assert connections(named_otherwise)["storage server stor2"]["verdict"] == "recorded"


@pytest.mark.parametrize("state", ["offline", "probably-offline", None, 7])
def test_a_server_without_connection_that_nobody_says_is_online_fails(state):
    def change(client):
        client["nodes"]["storage"][1].update(connections=[])
        client["targets"]["storage"][2]["reachability"] = state

    assert connections(change)["storage server stor2"]["verdict"] == "fail"
    assert connections(change, checks=["mount"])["storage server stor2"]["verdict"] == "fail"

    def without_targets(client):
        client["nodes"]["storage"][1].update(connections=[])
        del client["targets"]["storage"][2]

    assert connections(without_targets)["storage server stor2"]["verdict"] == "fail"


def test_an_idle_metadata_server_is_recorded_before_use_and_not_after():
    found = connections(unconnected("meta"), checks=["mount"])
    assert found["metadata server bee1"]["verdict"] == "recorded"
    assert connections(unconnected("meta"))["metadata server bee1"]["verdict"] == "fail"
    assert connections(unconnected("storage"))["storage server stor1"]["verdict"] == "fail"


def test_without_the_management_server_nothing_is_idle():
    found = connections(unconnected("management", "meta"), checks=["mount"])
    assert {f["verdict"] for f in found.values()} == {"fail"}
    assert set(found) == {"management server bee1", "metadata server bee1"}


def test_by_what_an_idle_client_is_connected_is_asked_only_where_it_is_expected():
    facts = json.loads(json.dumps(EXAMPLE))
    unconnected("meta", "storage")(facts["mount"]["client"])
    assert judge_verdicts.overall(judge(facts, checks=["mount"])) == "pass"
    assert verdicts(judge(facts, {"rdma": True}, checks=["mount"]))["share.rdma"] == "undetermined"


def test_rows_of_no_known_form_in_the_clients_lists_are_no_servers():
    found = connections(lambda client: client["nodes"]["storage"].append("stor3"))
    assert found["any storage server"]["verdict"] == "undetermined"
    found = connections(lambda client: client["nodes"]["storage"][0].update(connections=[{"count": 1}, "x"]))
    assert found["storage server stor1"]["verdict"] == "undetermined"


def slow(**changed):
    facts = json.loads(json.dumps(EXAMPLE))
    facts["speed"].update(write_buffered_mib_s=1.0, read_direct_mib_s=None)
    facts["speed"]["metadata"]["operations_per_s"] = 1.0
    facts["speed"].update(changed)
    return facts


def test_where_all_nodes_are_measured_at_once_rates_are_only_recorded():
    rates = ("write_throughput", "read_throughput_direct", "metadata_rate")
    gated = verdicts(judge(slow()))
    assert [gated[f"share.{rate}"] for rate in rates] == ["fail", "undetermined", "fail"]
    recorded_only = judge(slow(), gate_speed=False)
    assert {verdicts(recorded_only)[f"share.{rate}"] for rate in rates} == {"recorded"}
    assert judge_verdicts.overall(recorded_only) == "pass"
    (rate,) = [f for f in recorded_only if f["id"] == "share.write_throughput"]
    assert (rate["value"], rate["severity"]) == (1.0, "record")
    assert verdicts(judge(slow(tool=None), gate_speed=False))["share.speed"] == "undetermined"


@pytest.mark.parametrize("striping", [None, {}, [], "x", False])
def test_an_expected_striping_that_nobody_looked_at_is_undetermined(striping):
    facts = {**EXAMPLE, "striping": striping}
    (finding,) = [f for f in judge(facts, {"chunk_kib": 512, "stripe_targets": 4}) if f["id"] == "share.striping"]
    assert (finding["verdict"], finding["bound"]) == ("undetermined", '= "chunk_kib 512, stripe_targets 4"')
    assert finding["remedy"]


def test_striping_that_is_not_expected_need_not_be_told():
    assert "share.striping" not in verdicts(judge({**EXAMPLE, "striping": None}))
    assert verdicts(judge({**EXAMPLE, "striping": []}))["share.striping"] == "undetermined"
    gone = {
        "pattern": None,
        "chunk_kib": None,
        "targets": None,
        "source": "ioctl",
        "error": "No such file or directory",
    }
    facts = {**EXAMPLE, "striping": {**EXAMPLE["striping"], "datasets": gone}}
    (finding,) = [f for f in judge(facts) if f["where"].get("path") == "datasets"]
    assert finding["verdict"] == "recorded"
    assert judge_verdicts.overall(judge(facts)) == "pass"
    (finding,) = [f for f in judge(facts, {"chunk_kib": 512}) if f["where"].get("path") == "datasets"]
    assert (finding["verdict"], "No such file" in finding["why"]) == ("undetermined", True)


def test_the_kernel_of_a_simulated_share_cannot_tell_its_striping_but_the_tool_can():
    gone = {"pattern": None, "chunk_kib": None, "targets": None, "source": "ioctl", "error": "Inappropriate ioctl"}
    facts = {**EXAMPLE, "type": "simulated", "striping": {"jobs": gone}}
    (finding,) = [f for f in judge(facts, {"chunk_kib": 512}, "simulated") if f["id"] == "share.striping"]
    assert (finding["verdict"], finding["where"]["path"]) == ("not_applicable", "jobs")
    for size, verdict in ((64, "fail"), (512, "pass"), (None, "undetermined")):
        facts["striping"] = {"jobs": {**gone, "source": "beegfs-ctl", "chunk_kib": size, "error": None}}
        assert verdicts(judge(facts, {"chunk_kib": 512}, "simulated"))["share.striping"] == verdict


def test_a_figure_beside_an_error_is_not_believed():
    facts = json.loads(json.dumps(EXAMPLE))
    facts["striping"]["models"]["error"] = "Input/output error"
    assert verdicts(judge(facts, {"chunk_kib": 512}))["share.striping"] == "undetermined"


def test_striping_is_judged_wherever_it_was_told():
    facts = {**EXAMPLE, "use": None, "speed": None}
    assert verdicts(judge(facts, {"chunk_kib": 64}, checks=["mount"]))["share.striping"] == "fail"


def test_the_inventory_excuses_a_check_with_its_reason():
    facts = json.loads(json.dumps(EXAMPLE))
    facts["use"]["checks"]["hard_link"].update(seen=None, error="Operation not permitted")
    expect = {"not_applicable": {"share.hard_link": "links are copies here", "share.connections": "none"}}
    found = {f["id"]: f for f in judge(facts, expect)}
    assert found["share.hard_link"]["verdict"] == "not_applicable"
    assert "links are copies here" in found["share.hard_link"]["why"]
    assert found["share.connections"]["verdict"] == "not_applicable"


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        ({"write_mibs": 1}, "did you mean 'write_mib_s'"),
        ({"rdma": "yes"}, "hpc_validation_share_expect.rdma"),
        ({"free_gib": True}, "free_gib"),
        ({"free_gib": float("nan")}, "free_gib"),
        ({"chunk_kib": -1}, "chunk_kib"),
        ({"targets": {"storag": 1}}, "targets"),
        ({"fstype": []}, "fstype"),
        ({"capacity_pool": "emergency"}, "capacity_pool"),
        ({"not_applicable": {"share.flok": "x"}}, "did you mean 'share.flock'"),
        ({"not_applicable": {"share.flock": " "}}, "expected a reason"),
        ([], "expected an object"),
    ],
)
def test_malformed_expectations_are_refused_by_name(expect, words):
    with pytest.raises(judge_expect.ExpectError, match=words.replace(".", r"\.")):
        judge(EXAMPLE, expect)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda items: st.lists(items, max_size=3) | st.dictionaries(st.text(max_size=6), items, max_size=3),
    max_leaves=6,
)


def places(document: t.Any, path: tuple[t.Any, ...] = ()) -> list[tuple[t.Any, ...]]:
    """Every place in a document."""
    found = [path] if path else []
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        found += places(value, (*path, key))
    return found


def changed_at(document: t.Any, path: tuple[t.Any, ...], value: t.Any) -> t.Any:
    document = json.loads(json.dumps(document))
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


@settings(max_examples=300)
@given(path=st.sampled_from(places(EXAMPLE)), value=ANYTHING)
def test_facts_with_anything_anywhere_never_raise(path, value):
    judge(changed_at(EXAMPLE, path, value), {"rdma": True, "chunk_kib": 512})


JUDGED = [
    path
    for path in places(EXAMPLE)
    if path[0] in ("schema", "type", "mount", "use", "speed")
    and len(path) <= 2
    and path[-1] not in ("clients", "device", "options", "config_file", "touched", "problem", "path", "folder", "error")
    and path[-1] not in ("size_mib", "problems", "mount_point", "tool")
]


@pytest.mark.parametrize("path", JUDGED, ids=lambda path: ".".join(map(str, path)))
@pytest.mark.parametrize("value", [None, "x", {}, []], ids=str)
def test_facts_without_a_part_never_pass(path, value):
    assert judge_verdicts.overall(judge(changed_at(EXAMPLE, path, value))) != "pass"


@pytest.mark.parametrize(
    ("code", "identity", "verdict"),
    [
        (80, "share.mounted", "fail"),
        (81, "share.connections", "fail"),
        (82, "share.same_files", "fail"),
        (83, "share.writable", "fail"),
        (84, "share.answers", "undetermined"),
        (85, "share.guard", "undetermined"),
        (1, "share.guard", "undetermined"),
        (None, "share.guard", "undetermined"),
        (True, "share.guard", "undetermined"),
    ],
)
def test_the_guards_exit_code_becomes_a_finding(code, identity, verdict):
    finding = guard_finding(code, "guard: /mnt/beegfs: why\n", {"node": "compute02"})
    assert (finding["id"], finding["verdict"], finding["where"]) == (identity, verdict, {"node": "compute02"})
    assert finding["why"].endswith("guard: /mnt/beegfs: why")
    assert finding["remedy"]
    assert schema.problems("finding", finding) == []


def direction(writer, reader):
    locks = {"while_held": "refused", "after_release": "granted"}
    return {
        "writer": writer,
        "reader": reader,
        "steps": {step: {"seen": True, "seconds": 0.4} for step in ("create", "overwrite", "rename", "unlink")},
        "locks": {"flock": dict(locks), "fcntl": dict(locks)},
    }


@pytest.fixture
def document():
    return {"schema": 1, "nodes": ["a", "b"], "directions": [direction("a", "b"), direction("b", "a")], "error": None}


def coherence(document, expect=None, nodes=("a", "b")):
    findings = coherence_findings(document, expect, nodes=list(nodes))
    for finding in findings:
        assert schema.problems("finding", finding) == []
        assert finding["remedy"] or finding["verdict"] in ("pass", "recorded", "not_applicable")
    return findings


def test_two_nodes_that_see_the_same_pass_in_both_directions(document):
    findings = coherence(document)
    assert len(findings) == 12
    assert judge_verdicts.overall(findings) == "pass"


@pytest.mark.parametrize("step", ["create", "overwrite", "rename", "unlink"])
@pytest.mark.parametrize(("seen", "seconds", "value"), [(False, None, "not seen"), (True, 7.5, 7.5)])
def test_what_is_seen_too_late_or_never_names_the_reader(document, step, seen, seconds, value):
    document["directions"][1]["steps"][step] = {"seen": seen, "seconds": seconds}
    (finding,) = [f for f in coherence(document) if f["verdict"] == "fail"]
    assert finding["where"] == {"node": "a"}
    assert finding["value"] == value
    assert "written on b" in finding["why"]


def test_what_was_looked_for_too_briefly_is_undetermined(document):
    document["directions"][0]["steps"]["rename"] = {"seen": False, "seconds": None}
    document["wait"] = 5
    assert judge_verdicts.overall(coherence(document)) == "fail"
    findings = coherence(document, {"coherence_seconds": 30})
    (finding,) = [f for f in findings if f["verdict"] != "pass"]
    assert (finding["id"], finding["verdict"]) == ("share.coherence_rename", "undetermined")
    assert "awaited for only 5 s" in finding["why"]


def test_a_lock_that_only_its_own_node_knows_fails_unless_only_recorded(document):
    document["directions"][0]["locks"]["fcntl"]["while_held"] = "granted"
    (finding,) = [f for f in coherence(document) if f["verdict"] == "fail"]
    assert (finding["id"], finding["where"]) == ("share.locks_across_nodes", {"node": "b"})
    assert "tuneUseGlobalFileLocks" in finding["remedy"]
    assert judge_verdicts.overall(coherence(document, {"global_locks": False})) == "pass"


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        {},
        {"error": "task 1 did not get to 'hello'"},
        {"nodes": ["a", "a"], "directions": []},
        {"nodes": ["a", "c"]},
        {"nodes": ["a", "b"], "directions": None},
        {"nodes": ["a", "b"], "directions": [{"writer": "a", "reader": "b", "steps": 7, "locks": []}]},
    ],
    ids=str,
)
def test_a_coherence_document_that_says_nothing_is_undetermined(broken):
    assert {f["verdict"] for f in coherence(broken)} == {"undetermined"}


def test_one_node_twice_is_no_test_of_two(document):
    document["nodes"] = ["a", "a"]
    assert {f["verdict"] for f in coherence(document, nodes=("a", "a"))} == {"undetermined"}


@given(value=ANYTHING, data=st.data())
def test_coherence_with_anything_anywhere_never_raises(value, data):
    whole = {"schema": 1, "nodes": ["a", "b"], "directions": [direction("a", "b"), direction("b", "a")], "error": None}
    coherence(changed_at(whole, data.draw(st.sampled_from(places(whole))), value))


def other(**mount):
    return {**EXAMPLE, "mount": {**EXAMPLE["mount"], **mount}}


def test_nodes_that_mount_alike_pass():
    (finding,) = compared({"a": EXAMPLE, "b": EXAMPLE, "c": EXAMPLE})
    assert (finding["verdict"], finding["value"]) == ("pass", 3)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (other(options=["rw", "nosuid"]), "mount options"),
        (other(config_file="/etc/beegfs/old.conf"), "client configuration"),
        (other(client={**EXAMPLE["mount"]["client"], "fs_uuid": "other"}), "file system UUID"),
        (other(client={**EXAMPLE["mount"]["client"], "config": {"sysMgmtdHost": "old"}}), "sysMgmtdHost"),
        (other(client={**EXAMPLE["mount"]["client"], "nodes": {"management": [{"name": "old"}]}}), "management"),
        (other(statfs={**EXAMPLE["mount"]["statfs"], "id": "1"}), "file system id"),
    ],
)
def test_the_node_that_mounts_otherwise_is_named(facts, words):
    findings = compared({"a": EXAMPLE, "b": EXAMPLE, "compute02": facts})
    assert {f["where"]["node"] for f in findings} == {"compute02"}
    assert {f["verdict"] for f in findings} == {"fail"}
    assert any(words in f["why"] for f in findings)
    assert all(schema.problems("finding", f) == [] and f["remedy"] for f in findings)


@pytest.mark.parametrize(
    ("one", "another"),
    [
        (["rw", "vers=4.2", "clientaddr=10.0.0.1", "addr=10.1.0.1"], ["rw", "vers=4.2", "clientaddr=10.0.0.2"]),
        (["rw", "rsize=1048576", "mountport=20048"], ["rw", "rsize=262144", "mountport=4711"]),
        (["rw", "logLevel=3", "cfgFile=/etc/beegfs/beegfs-client.conf"], ["rw", "seclabel"]),
        (["rw", "relatime"], ["relatime", "rw"]),
    ],
)
def test_options_that_are_each_clients_own_do_not_make_mounts_differ(one, another):
    (finding,) = compared({"a": other(options=one), "b": other(options=another)})
    assert finding["verdict"] == "pass"


@pytest.mark.parametrize("option", ["ro", "noexec", "local_lock=all", "vers=3", "soft", "connPortShift=100"])
def test_options_that_change_what_a_mount_does_make_it_differ(option):
    facts = {"a": other(options=["rw"]), "b": other(options=["rw"]), "c": other(options=["rw", option])}
    (finding,) = compared(facts)
    assert (finding["verdict"], finding["where"]) == ("fail", {"node": "c"})


@pytest.mark.parametrize("facts", [{}, {"a": EXAMPLE}, {"a": EXAMPLE, "b": None}, {"a": None, "b": "x"}])
def test_with_fewer_than_two_mounts_nothing_is_compared(facts):
    (finding,) = compared(facts)
    assert finding["verdict"] == "undetermined"


def test_the_fixtures_say_where_they_come_from():
    assert "beegfs-ctl 7.4.7" in (ROOT / "tests/fixtures/beegfs/SOURCE").read_text()


def test_a_simulated_client_is_judged_like_a_real_one_but_for_its_mount():
    facts = {**json.loads(json.dumps(EXAMPLE)), "type": "simulated"}
    assert verdicts(judge(facts, share_type="simulated"))["share.client"] == "pass"
    mount = verdicts(judge(facts, share_type="simulated"))
    assert [mount[f"share.{name}"] for name in ("type", "magic", "config")] == ["not_applicable"] * 3
    for server in facts["mount"]["client"]["nodes"]["meta"]:
        server["connections"] = []
    assert verdicts(judge(facts, share_type="simulated"))["share.connections"] == "fail"
    facts["mount"]["client"] = None
    assert verdicts(judge(facts, share_type="simulated"))["share.client"] == "undetermined"
