from __future__ import annotations

import json

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import ctl_v7, json_v8, model
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.output import Said, said
from hpcval_cluster import beegfs_states
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.beegfs.told import FIXTURES, instead, output, told


def listing(out: str, err: str = "", kind: str = "storage") -> model.Parsed:
    return ctl_v7.listing(kind, said(out, err))


def fixture(name: str) -> Said:
    found = output(name)
    return said(found["out"], found["err"])


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
    parsed = ctl_v7.listing("storage", fixture(f"ctl_7.4.7/listtargets_storage_{name}"))
    assert parsed.problems == []
    assert [row["id"] for row in parsed.rows] == [101, 102, 201]
    assert parsed.rows[2]["reachability"] == reachability
    assert parsed.rows[2]["consistency"] == consistency
    assert parsed.rows[0]["reachability"] == "online"


def test_every_column_is_read_by_its_heading():
    parsed = ctl_v7.listing("storage", fixture("ctl_7.4.7/listtargets_storage_all_columns_low_pool"))
    assert parsed.problems == []
    row = parsed.rows[0]
    assert (row["node"], row["reachability"], row["consistency"], row["pool"]) == ("stor1", "online", "good", "low")
    assert (row["total"], row["free"]) == (270582939648, 225056286310)
    assert (row["inodes"], row["inodes_free"]) == (16_800_000, 16_100_000)
    assert row["space_told"] is True


HEADING = (
    "TargetID  Reachability  Consistency  Cap. Pool     Total      Free    %  ITotal  IFree    %   NodeID\n"
    "========  ============  ===========  =========     =====      ====    =  ======  =====    =   ======\n"
)
ROW = "  101       Online         Good      normal       7.8GiB       7.8GiB 100%     0.5M     0.5M 100%   "
NODE = "beegfs-storage stor1 [ID: 1]\n"
LOG = "(0) 03:23:53 Main [Messaging (RPC)] >> Communication error: Receive timed out from: 10.99.0.2:8003\n"


def test_the_log_stands_among_the_rows_and_is_none_of_them():
    parsed = listing(HEADING + LOG + ROW + NODE + LOG)
    assert parsed.problems == []
    assert [row["id"] for row in parsed.rows] == [101]
    dated = LOG.replace("(0) 03", "(0) Nov24 03")
    assert listing(dated + HEADING + ROW + NODE) == parsed


@pytest.mark.parametrize(
    ("middle", "reachability", "pool", "total"),
    [
        ("Probably-offline         Good", "probably-offline", None, None),
        ("Online         Good     unknown", "online", "unknown", None),
        ("<invalid_value>", None, None, None),
        ("<invalid_value> low", None, "low", None),
    ],
)
def test_a_row_lacks_columns_in_its_middle_and_has_its_server(middle, reachability, pool, total):
    parsed = listing(f"{HEADING}  201 {middle} {NODE}")
    assert parsed.problems == []
    (row,) = parsed.rows
    assert (row["id"], row["node"], row["reachability"]) == (201, "stor1", reachability)
    assert (row["pool"], row["total"], row["space_told"]) == (pool, total, None)


@pytest.mark.parametrize(
    "row",
    [
        f"  x01 Online Good normal {NODE}",
        f"  101 {NODE}",
        f"  101 Online Good 7.8GiB 7.8GiB 100% 0.5M 0.5M 100% {NODE}",
        f"  101 Online Good normal 7.8GiB {NODE}",
        f"  101 Online Good normal 7.8GiB 7.8GiB 100% 0.5M 0.5M many {NODE}",
        f"{ROW} more {NODE}",
        "  101 Online Good\n",
        "=====\n=====x\n",
    ],
)
def test_a_row_whose_values_are_none_of_their_columns_is_a_problem(row):
    parsed = listing(HEADING + row)
    assert parsed.rows == []
    assert "unrecognised" in parsed.problems[0]


def test_zeros_throughout_are_no_space_told_and_zeros_of_inodes_alone_are_none_counted():
    zeros = "  201 Online Good normal 0.0GiB 0.0GiB 0% 0.0M 0.0M 0% beegfs-storage stor2 [ID: 2]\n"
    err = " [ERROR from beegfs-storage stor2 [ID: 2]: Communication error]\n"
    first, second = listing(HEADING + ROW + NODE + zeros, err).rows
    assert (second["space_told"], second["free"], second["inodes"]) == (False, None, None)
    assert "Communication error" in second["space_why"]
    assert first["space_why"] is None
    (row,) = listing(HEADING + zeros.replace("0.0GiB 0.0GiB 0%", "7.8GiB 0.0GiB 0%")).rows
    assert (row["space_told"], row["free"], row["inodes"]) == (True, 0, 0)
    (row,) = listing(HEADING + zeros.replace("0.0M 0.0M 0%", "0.0M 0.0M 50%")).rows
    assert row["space_told"] is True


@pytest.mark.parametrize(
    ("printed", "least", "most"),
    [
        ("0.5M 0.2M 32%", 150_000, 178_750),  # 169,982
        ("0.5M 0.1M 18%", 78_750, 101_750),  # 95,978
        ("0.5M 0.1M 10%", 50_000, 57_750),  # 50,000
        ("0.5M 0.0M 10%", 42_750, 50_000),  # 49,999
        ("0.5M 0.1M 29%", 128_250, 150_000),  # 149,999
        ("0.5M 0.2M 29%", 150_000, 162_250),  # 150,000
        ("0.5M 0.0M 0%", 0, 2_750),
        ("0.5M 0.5M 100%", 450_000, 550_000),
        ("0.5M 0.5M 3%", 450_000, 550_000),  # contradict each other
    ],
)
def test_what_is_printed_of_inodes_is_an_interval(printed, least, most):
    (row,) = listing(f"{HEADING}  101 Online Good normal 7.8GiB 7.8GiB 100% {printed} {NODE}").rows
    assert (round(row["inodes_free_least"]), round(row["inodes_free_most"])) == (least, most)


def test_what_is_printed_of_space_is_an_interval():
    (row,) = listing(f"{HEADING}  101 Online Good normal 7.8GiB 1.0GiB 13% 0.5M 0.5M 100% {NODE}").rows
    assert row["free_least"] / 2**30 == pytest.approx(0.96875)
    assert row["free_most"] / 2**30 == pytest.approx(1.05)


@pytest.mark.parametrize(
    ("out", "err", "problem"),
    [
        ("", "", "no list of targets"),
        ("", "Cannot do it\n", "Cannot do it"),
        (HEADING + ROW + NODE + ROW, "", "ends in the middle"),
        ("Loading the module beegfs\n" + HEADING + ROW + NODE, "", "expected a heading"),
        (HEADING.replace("NodeID", "Server"), "", "expected a heading"),
        (HEADING.replace("Total", "%"), "", "expected a heading"),
    ],
)
def test_an_output_that_is_not_whole_is_a_problem(out, err, problem):
    assert problem in listing(out, err).problems[0]


def test_an_empty_table_is_an_answer_and_so_are_the_words_for_no_metadata():
    assert listing(HEADING) == model.Parsed()
    assert listing(HEADING, f" {ctl_v7.NO_META}\n", "meta") == model.Parsed()


@pytest.mark.parametrize(
    "name", ["ctl_7.4.7_edited/foreign_text", "ctl_7.4.7/df_mgmtd_down_lies", "ctl_7.4.7/error_mgmtd_down"]
)
def test_text_of_no_known_form_has_no_rows_and_a_problem(name):
    heard, out = fixture(name), output(name)["out"]
    parsers = (
        lambda: ctl_v7.listing("meta", heard),
        lambda: ctl_v7.nodes("meta", heard),
        lambda: ctl_v7.mirrors("meta", heard),
        lambda: ctl_v7.mirror_groups("meta", heard),
        lambda: ctl_v7.quota(heard),
        lambda: json_v8.targets(out),
        lambda: json_v8.nodes(out),
        lambda: json_v8.mirrors(out),
        lambda: json_v8.quota(out),
    )
    for parse in parsers:
        parsed = parse()
        assert parsed.problems
        assert not parsed.rows
    assert ctl_v7.striping(heard)["error"]
    assert json_v8.striping(out)["error"]


BANNER = output("ctl_7.4.7/enterprise_banner")["err"]


def test_the_banner_says_nothing_on_either_stream():
    whole = HEADING + ROW + NODE
    assert listing(BANNER + whole) == listing(whole, BANNER) == listing(whole)


def test_nodes_quota_and_striping_of_7():
    unreachable = ctl_v7.nodes("storage", fixture("ctl_7.4.7_edited/listnodes_storage_unreachable"))
    assert [(node["name"], node["reachable"]) for node in unreachable.rows] == [("stor1", True), ("stor2", False)]
    assert ctl_v7.nodes("mgmt", fixture("ctl_7.4.7/listnodes_mgmt")).rows[0]["reachable"] is None
    short = output("ctl_7.4.7/listnodes_storage_reachable")["out"].replace("nodes: 2", "nodes: 3")
    assert "but 2 are listed" in ctl_v7.nodes("storage", said(short, "")).problems[0]
    assert ctl_v7.nodes("storage", said("", "")) == model.Parsed()
    assert ctl_v7.nodes("storage", said("", "no route\n")).problems == ["no route"]
    unlimited = ctl_v7.quota(fixture("ctl_7.4.7/getquota_unlimited_csv"))
    assert unlimited.problems == []
    assert unlimited.rows[0]["size_limit"] is unlimited.rows[0]["files_limit"] is None
    assert ctl_v7.quota(fixture("ctl_7.4.7_edited/getquota_csv_admin")).rows[0]["files_limit"] == 100000
    seen = ctl_v7.striping(fixture("ctl_7.4.7/getentryinfo_file"))
    assert (seen["pattern"], seen["chunk_kib"], seen["targets"]) == ("raid0", 512, 1)
    assert ctl_v7.striping(fixture("ctl_7.4.7/getentryinfo_directory"))["targets"] == 2
    assert "Path does not exist" in ctl_v7.striping(fixture("ctl_7.4.7/getentryinfo_missing_path"))["error"]


@pytest.mark.parametrize(("files", "known", "least"), [("7", 7, None), ("-", None, None), ("7+", None, 7)])
def test_a_count_of_files_may_be_none_or_of_some_disks(files, known, least):
    (row,) = ctl_v7.quota(said(f"name,id,size,hard,files,hard\nroot,0,5,unlimited,{files},10\n", "")).rows
    assert (row["files"], row["files_at_least"], row["files_limit"]) == (known, least, 10)


@pytest.mark.parametrize(
    "row", ["root,0,-,unlimited,0,9", "root,0,5,none,0,9", "root,0,5,9,+,9", "root,0,5,9,x+,9", "root,0,5,9,0", "root"]
)
def test_a_row_of_quota_of_no_known_form_is_a_problem(row):
    parsed = ctl_v7.quota(said(f"name,id,size,hard,files,hard\n{row}\n", ""))
    assert parsed.rows == []
    assert "unrecognised" in parsed.problems[0]


def test_quota_of_which_a_part_was_skipped_is_in_doubt():
    out = "name,id,size,hard,files,hard\nroot,0,5,9,0,9\n"
    skipped = "Some IDs were skipped because of invalid values. Check server logs."
    assert ctl_v7.quota(said(out, f"{BANNER}\n{skipped}\n")).problems == [skipped]
    assert ctl_v7.quota(said(out, BANNER)).problems == []
    assert ctl_v7.quota(said("", "")).problems == ["no quota was printed"]
    assert ctl_v7.quota(said("", "why\n")).problems == ["why"]


GROUPS = """MirrorGroupID MGMemberType TargetID   Cap. Pool   NodeID
============= ============ ========   =========   ======
            1      primary      101      normal   beegfs-storage stor1 [ID: 1]
            1    secondary      201      normal   beegfs-storage stor2 [ID: 2]
"""


def test_mirror_groups_with_their_members():
    parsed = ctl_v7.mirrors("storage", said(GROUPS, ""))
    assert parsed.problems == []
    assert parsed.rows == [{"type": "storage", "group": 1, "primary": 101, "secondary": 201}]
    none = "\n".join(GROUPS.split("\n")[:2]) + "\n"
    assert ctl_v7.mirrors("storage", said(none, "")) == model.Parsed()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("secondary", "primary", "two primary members"),
        ("secondary", "tertiary", "without group or role"),
        ("  1    secondary", "  2    secondary", "one member"),
        ("            1    secondary      201      normal   beegfs-storage stor2 [ID: 2]\n", "", "one member"),
    ],
)
def test_a_mirror_group_that_is_not_whole_is_a_problem(old, new, problem):
    parsed = ctl_v7.mirrors("storage", said(GROUPS.replace(old, new), ""))
    assert any(problem in text for text in parsed.problems)


@pytest.mark.parametrize("what", ["Target", "Node"])
def test_mirror_groups_in_the_older_way_have_other_headings_for_metadata(what):
    text = f"     BuddyGroupID   Primary{what}ID Secondary{what}ID\n  =====  ===== ====\n   1   2   1\n"
    parsed = ctl_v7.mirror_groups("meta", said(text, BANNER))
    assert parsed.problems == []
    assert parsed.rows == [{"type": "meta", "group": 1, "primary": 2, "secondary": 1}]
    for wrong in ("   1   2\n", "  1 2 x\n", ""):
        assert ctl_v7.mirror_groups("meta", said(text.replace("   1   2   1\n", wrong), "")).problems


def test_no_mirror_groups_is_told_on_the_error_stream():
    assert ctl_v7.mirror_groups("meta", said("", f"{BANNER}\n{ctl_v7.NO_MIRRORS}\n")) == model.Parsed()
    assert ctl_v7.mirror_groups("meta", said("", BANNER)).problems
    assert "other" in ctl_v7.mirror_groups("meta", said("", "other words\n")).problems[0]
    both = f"{ctl_v7.NO_MIRRORS}\nother words\n"
    assert ctl_v7.mirror_groups("meta", said("", both)).problems


def test_version_8_in_all_its_forms():
    lines = output("cli_8_documented/target_list_healthy")["out"]
    expected = json_v8.targets(lines)
    assert expected.problems == []
    assert [(row["type"], row["id"]) for row in expected.rows] == [
        ("meta", 1),
        ("storage", 101),
        ("storage", 102),
        ("storage", 201),
    ]
    assert json_v8.targets(output("cli_8_documented/target_list_string_enums")["out"]) == expected
    documents = [json.loads(line) for line in lines.splitlines()]
    pages = json.dumps(documents[:2]) + "\n" + json.dumps(documents[2:])
    assert json_v8.targets(pages) == expected
    as_text = [{**item, "space": str(item["space"]), "space_free": str(item["space_free"])} for item in documents]
    short_ids = [{**item, "id": f"{'m' if item['type'] == 2 else 's'}:{item['id']['num_id']}"} for item in as_text]
    assert json_v8.targets("\n".join(map(json.dumps, short_ids))) == expected
    offline = json_v8.targets(output("cli_8_documented/target_list_offline")["out"]).rows[3]
    assert offline["reachability"] == "offline"
    assert offline["free"] is None


def test_version_8_says_that_it_has_no_mirrors_by_an_error():
    assert told("v8")["mirrors"] == []
    assert told("v8")["problems"] == []
    failed = told("v8", first=[instead("cli_8_documented/error_mgmtd_down", "mirror", "list")])
    assert failed["mirrors"] is None
    assert "working management node" in failed["problems"][0]["problem"]


def test_version_8_quota_and_striping():
    row = '{"name": "a", "id": 1, "type": "user", "pool": "p", "space": "5/unlimited", "inode": "?/7"}'
    assert "unrecognised" in json_v8.quota(row).problems[0]
    row = row.replace("?/7", "3/∞")
    note = "\nINFO: Quota usage information is fetched every 30s from the server nodes\n"
    group = '{"name": "g", "id": 1, "type": "group", "pool": "p", "space": "?/?", "inode": "?/?"}\n'
    assert json_v8.quota(group + row + note).rows == [
        {"pool": "p", "size": 5, "size_limit": None, "files": 3, "files_limit": None}
    ]
    seen = json_v8.striping(output("cli_8_documented/entry_info_healthy")["out"])
    assert (seen["pattern"], seen["chunk_kib"], seen["targets"]) == ("raid0", 512, 4)
    assert json_v8.striping('{"stripe_pattern": "RAID0 (4x524288)"}')["chunk_kib"] == 512
    assert json_v8.striping("")["error"] == "expected one entry, found 0"
    assert json_v8.striping('{"stripe_pattern": 4}')["error"]


def test_version_8_quota_without_bounds_and_without_quota():
    row = '{"name": "a", "id": 1, "type": "user", "pool": "p", "space": "5/9223372036854775807", "inode": "3/-"}'
    assert json_v8.quota(row).problems  # the inodes' limit is no known word
    rows = json_v8.quota(row.replace("3/-", "3/9223372036854775807")).rows
    assert rows == [{"pool": "p", "size": 5, "size_limit": None, "files": 3, "files_limit": None}]
    assert json_v8.quota(row.replace("5/9223372036854775807", "5/9223372036854775808")).problems
    warning = output("cli_8_documented/quota_list_usage_not_enabled")["err"]
    assert json_v8.quota(warning).problems == ["quota is not enabled: the servers record none for this user"]
    assert json_v8.quota("WARNING: something else\n").problems == ["no quota was reported"]
    assert "not JSON" in json_v8.quota(f"{warning}half a docum").problems[0]


def test_version_8_names_the_network_cards_by_which_a_server_does_not_answer():
    row = {"id": {"num_id": 1, "node_type": 3}, "type": 3, "alias": "a"}

    def node(nics, reachable):
        return json_v8.nodes(json.dumps({**row, "nics": nics, "reachable": reachable})).rows[0]

    both = node("rdma:ib0 (10.98.0.1:8003)\nethernet:eth0 (10.99.0.1:8003)", "no\nyes")
    assert (both["reachable"], both["unreachable_by"]) == (True, "rdma:ib0 (10.98.0.1:8003)")
    assert node("eth0", "yes\nno\nno")["unreachable_by"] == "2 of 3 network cards"
    assert node(None, "yes\nno")["unreachable_by"] == "1 of 2 network cards"
    assert node("ib0\neth0", "yes\nyes")["unreachable_by"] is None
    assert (node("ib0\neth0", "no\nno")["reachable"], node("ib0", "no")["unreachable_by"]) == (False, None)


PARSERS = {
    "listing": lambda text: ctl_v7.listing("storage", said(text, text)),
    "nodes": lambda text: ctl_v7.nodes("storage", said(text, "")),
    "mirrors": lambda text: ctl_v7.mirrors("storage", said(text, "")),
    "mirror groups": lambda text: ctl_v7.mirror_groups("storage", said(text, text)),
    "quota": lambda text: ctl_v7.quota(said(text, text)),
    "targets 8": json_v8.targets,
    "nodes 8": json_v8.nodes,
    "mirrors 8": json_v8.mirrors,
    "quota 8": json_v8.quota,
    "striping": lambda text: ctl_v7.striping(said(text, "")),
    "striping 8": json_v8.striping,
}
RECORDED = [
    row[stream] for state in beegfs_states.recorded().values() for row in state["rows"] for stream in ("out", "err")
]
SAMPLES = sorted(
    {path.read_text() for path in FIXTURES.glob("*/*.txt") if path.parent.name != "transcripts"} | set(RECORDED)
)


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
