from __future__ import annotations

import json

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _beegfs, _beegfs_ctl, _beegfs_json
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.plugins.module_utils.beegfs_fake import FIXTURES, answer, told


@pytest.mark.parametrize(
    ("name", "reachability", "consistency"),
    [
        ("state_healthy", "online", "good"),
        ("state_probably_offline", "probably-offline", "good"),
        ("state_offline", "offline", "good"),
        ("state_needs_resync", "online", "needs-resync"),
        ("state_resyncing", "online", "resyncing"),
    ],
)
def test_the_recorded_states_of_a_target(name, reachability, consistency):
    parsed = _beegfs_ctl.listing("storage", answer(f"ctl_7.4.7/listtargets_storage_{name}").out)
    assert parsed.problems == []
    assert [row["id"] for row in parsed.rows] == [101, 102, 201]
    assert parsed.rows[2]["reachability"] == reachability
    assert parsed.rows[2]["consistency"] == consistency
    assert parsed.rows[0]["reachability"] == "online"


def test_every_column_is_read_by_its_heading():
    parsed = _beegfs_ctl.listing("storage", answer("ctl_7.4.7/listtargets_storage_all_columns_low_pool").out)
    assert parsed.rows[0] == _beegfs.target(
        "storage",
        101,
        node="stor1",
        reachability="online",
        consistency="good",
        pool="low",
        total=270582939648,
        free=225056286310,
        inodes=16_800_000,
        inodes_free=16_100_000,
    )


def test_an_offline_targets_row_ends_early():
    parsed = _beegfs_ctl.listing("storage", answer("ctl_7.4.7_edited/listtargets_storage_offline").out)
    assert parsed.problems == []
    assert parsed.rows[2]["reachability"] == "offline"
    assert parsed.rows[2]["pool"] is parsed.rows[2]["free"] is parsed.rows[2]["node"] is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("headings_only", "no storage target is listed"),
        ("no_rows_no_headings", "no storage target is listed"),
        ("truncated", "breaks off"),
        ("space_query_failed", "ERROR from beegfs-storage stor2"),
    ],
)
def test_an_output_that_is_not_whole_is_a_problem(name, problem):
    parsed = _beegfs_ctl.listing("storage", answer(f"ctl_7.4.7_edited/listtargets_storage_{name}").out)
    assert any(problem in text for text in parsed.problems)


@pytest.mark.parametrize(
    "name", ["ctl_7.4.7_edited/foreign_text", "ctl_7.4.7/df_mgmtd_down_lies", "ctl_7.4.7/error_mgmtd_down"]
)
def test_text_of_no_known_form_has_no_rows_and_a_problem(name):
    out = answer(name).out
    parsers = (
        lambda: _beegfs_ctl.listing("meta", out),
        lambda: _beegfs_ctl.nodes("meta", out),
        lambda: _beegfs_ctl.mirrors("meta", out),
        lambda: _beegfs_ctl.quota(out),
        lambda: _beegfs_json.targets(out),
        lambda: _beegfs_json.nodes(out),
        lambda: _beegfs_json.mirrors(out),
        lambda: _beegfs_json.quota(out),
    )
    for parse in parsers:
        parsed = parse()
        assert parsed.problems
        assert not parsed.rows
    assert _beegfs_ctl.striping(out)["error"]
    assert _beegfs_json.striping(out)["error"]


def test_the_banner_says_nothing():
    banner = (FIXTURES / "ctl_7.4.7/enterprise_banner.rc0.stderr.txt").read_text()
    healthy = answer("ctl_7.4.7_edited/listtargets_storage_healthy").out
    assert _beegfs_ctl.listing("storage", banner + healthy) == _beegfs_ctl.listing("storage", healthy)


def test_nodes_mirrors_quota_and_striping_of_7():
    assert [node["reachable"] for node in told("beegfs-ctl")["nodes"]] == [True, True, True]
    unreachable = _beegfs_ctl.nodes("storage", answer("ctl_7.4.7_edited/listnodes_storage_unreachable").out)
    assert [(node["name"], node["reachable"]) for node in unreachable.rows] == [("stor1", True), ("stor2", False)]
    assert _beegfs_ctl.nodes("mgmt", answer("ctl_7.4.7/listnodes_mgmt").out).rows[0]["reachable"] is None
    short = answer("ctl_7.4.7/listnodes_storage_reachable").out.replace("nodes: 2", "nodes: 3")
    assert "but 2 are listed" in _beegfs_ctl.nodes("storage", short).problems[0]
    assert _beegfs_ctl.mirrors("storage", answer("ctl_7.4.7/listmirrorgroups_storage").out).rows == [
        {"type": "storage", "group": 1, "primary": 101, "secondary": 201}
    ]
    assert _beegfs_ctl.mirrors("storage", answer("ctl_7.4.7/listmirrorgroups_storage_none").out) == _beegfs.Parsed()
    assert _beegfs_ctl.mirrors("storage", "").problems
    unlimited = _beegfs_ctl.quota(answer("ctl_7.4.7/getquota_unlimited_csv").out)
    assert unlimited.problems == []
    assert unlimited.rows[0]["size_limit"] is unlimited.rows[0]["files_limit"] is None
    assert _beegfs_ctl.quota(answer("ctl_7.4.7_edited/getquota_csv_admin").out).rows[0]["files_limit"] == 100000
    seen = _beegfs_ctl.striping(answer("ctl_7.4.7/getentryinfo_file").out)
    assert (seen["pattern"], seen["chunk_kib"], seen["targets"]) == ("raid0", 512, 1)
    assert _beegfs_ctl.striping(answer("ctl_7.4.7/getentryinfo_directory").out)["targets"] == 2
    assert "Path does not exist" in _beegfs_ctl.striping(answer("ctl_7.4.7/getentryinfo_missing_path").out)["error"]


def test_version_8_in_all_its_forms():
    lines = answer("cli_8_documented/target_list_healthy").out
    expected = _beegfs_json.targets(lines)
    assert expected.problems == []
    assert [(row["type"], row["id"]) for row in expected.rows] == [
        ("meta", 1),
        ("storage", 101),
        ("storage", 102),
        ("storage", 201),
    ]
    assert _beegfs_json.targets(answer("cli_8_documented/target_list_string_enums").out) == expected
    documents = [json.loads(line) for line in lines.splitlines()]
    pages = json.dumps(documents[:2]) + "\n" + json.dumps(documents[2:])
    assert _beegfs_json.targets(pages) == expected
    as_text = [{**item, "space": str(item["space"]), "space_free": str(item["space_free"])} for item in documents]
    short_ids = [{**item, "id": f"{'m' if item['type'] == 2 else 's'}:{item['id']['num_id']}"} for item in as_text]
    assert _beegfs_json.targets("\n".join(map(json.dumps, short_ids))) == expected
    offline = _beegfs_json.targets(answer("cli_8_documented/target_list_offline").out).rows[3]
    assert offline["reachability"] == "offline"
    assert offline["free"] is None


def test_version_8_says_that_it_has_no_mirrors_by_an_error():
    assert told("beegfs")["mirrors"] == []
    assert told("beegfs")["problems"] == []
    changed = {"mirror_list": "cli_8_documented/error_mgmtd_down"}
    assert told("beegfs", changed)["mirrors"] is None
    assert "working management node" in told("beegfs", changed)["problems"][0]["problem"]


def test_version_8_quota_and_striping():
    row = '{"name": "a", "id": 1, "type": "user", "pool": "p", "space": "5/unlimited", "inode": "?/7"}'
    assert "no known form" in _beegfs_json.quota(row).problems[0]
    row = row.replace("?/7", "3/∞")
    note = "\nINFO: Quota usage information is fetched every 30s from the server nodes\n"
    group = '{"name": "g", "id": 1, "type": "group", "pool": "p", "space": "?/?", "inode": "?/?"}\n'
    assert _beegfs_json.quota(group + row + note).rows == [
        {"pool": "p", "size": 5, "size_limit": None, "files": 3, "files_limit": None}
    ]
    seen = _beegfs_json.striping(answer("cli_8_documented/entry_info_healthy").out)
    assert (seen["pattern"], seen["chunk_kib"], seen["targets"]) == ("raid0", 512, 4)
    assert _beegfs_json.striping('{"stripe_pattern": "RAID0 (4x524288)"}')["chunk_kib"] == 512
    assert _beegfs_json.striping("")["error"] == "0 entries are told"
    assert _beegfs_json.striping('{"stripe_pattern": 4}')["error"]


def test_version_8_quota_without_bounds_and_without_quota():
    row = '{"name": "a", "id": 1, "type": "user", "pool": "p", "space": "5/9223372036854775807", "inode": "3/-"}'
    assert _beegfs_json.quota(row).problems  # the inodes' limit is no known word
    rows = _beegfs_json.quota(row.replace("3/-", "3/9223372036854775807")).rows
    assert rows == [{"pool": "p", "size": 5, "size_limit": None, "files": 3, "files_limit": None}]
    assert _beegfs_json.quota(row.replace("5/9223372036854775807", "5/9223372036854775808")).problems
    warning = answer("cli_8_documented/quota_list_usage_not_enabled").err
    assert _beegfs_json.quota(warning).problems == ["quota is not enabled: the servers keep none for this user"]
    assert _beegfs_json.quota("WARNING: something else\n").problems == ["no quota is told"]
    assert "no JSON" in _beegfs_json.quota(f"{warning}half a docum").problems[0]


def test_version_8_names_the_network_cards_by_which_a_server_does_not_answer():
    row = {"id": {"num_id": 1, "node_type": 3}, "type": 3, "alias": "a"}

    def node(nics, reachable):
        return _beegfs_json.nodes(json.dumps({**row, "nics": nics, "reachable": reachable})).rows[0]

    both = node("rdma:ib0 (10.98.0.1:8003)\nethernet:eth0 (10.99.0.1:8003)", "no\nyes")
    assert (both["reachable"], both["unreachable_by"]) == (True, "rdma:ib0 (10.98.0.1:8003)")
    assert node("eth0", "yes\nno\nno")["unreachable_by"] == "2 of 3 network cards"
    assert node(None, "yes\nno")["unreachable_by"] == "1 of 2 network cards"
    assert node("ib0\neth0", "yes\nyes")["unreachable_by"] is None
    assert (node("ib0\neth0", "no\nno")["reachable"], node("ib0", "no")["unreachable_by"]) == (False, None)


@pytest.mark.parametrize("value", [True, -1, 1.5, None, "", "-", "1e3", "١٢", [], {}, "9" * 30])
def test_what_is_no_whole_number_is_none(value):
    assert _beegfs.whole(value) is None


def test_sizes_and_counts():
    assert [_beegfs.size(text) for text in ("0 Byte", "512K", "512k", "1.5GiB", 7, True, "x", None)] == [
        0, 524288, 524288, 1610612736, 7, None, None, None,
    ]  # fmt: skip
    assert [_beegfs.count(text) for text in ("16.8M", "0.0M", "12", "x", True)] == [16_800_000, 0, 12, None, None]


PARSERS = {
    "listing": lambda text: _beegfs_ctl.listing("storage", text),
    "nodes": lambda text: _beegfs_ctl.nodes("storage", text),
    "mirrors": lambda text: _beegfs_ctl.mirrors("storage", text),
    "quota": _beegfs_ctl.quota,
    "targets 8": _beegfs_json.targets,
    "nodes 8": _beegfs_json.nodes,
    "mirrors 8": _beegfs_json.mirrors,
    "quota 8": _beegfs_json.quota,
    "striping": _beegfs_ctl.striping,
    "striping 8": _beegfs_json.striping,
}
SAMPLES = [path.read_text() for path in sorted(FIXTURES.glob("*/*.txt")) if path.parent.name != "transcripts"]


@given(sample=st.sampled_from(SAMPLES), data=st.data())
def test_no_parser_raises_for_outputs_cut_spliced_or_reordered(sample, data):
    lines = sample.splitlines(keepends=True) or [""]
    cut = data.draw(st.integers(0, len(sample)))
    noise = data.draw(st.text(max_size=30))
    text = data.draw(st.sampled_from([sample[:cut], sample[:cut] + noise + sample[cut:], "".join(reversed(lines))]))
    for parse in PARSERS.values():
        parse(text)


KEYS = st.sampled_from(["id", "type", "node", "space", "reachable", "num_id", "inode", "stripe_pattern"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda items: st.lists(items, max_size=4) | st.dictionaries(KEYS, items, max_size=4),
    max_leaves=12,
)


@given(st.text() | JSON.map(json.dumps))
def test_no_parser_raises_for_foreign_text(text):
    for parse in PARSERS.values():
        parse(text)
