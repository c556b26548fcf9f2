# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words, numbers and rows, as both tools' parsers make them."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import ctl_v7, model
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.model import Amount
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.output import said


def test_foreign_text_becomes_one_printable_line_of_bounded_length():
    assert model.short("a\tb\n  \x1b[31mc\x00") == "a b [31mc"
    assert len(model.short("x" * 1000)) == 300


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (" Good ", "good"),
        ("Needs-resync", "needs-resync"),
        ("-", None),
        ("", None),
        (" ", None),
        (7, None),
        (None, None),
    ],
)
def test_a_state_is_a_word_in_lower_case(value, word):
    assert model.word(value) == word


@pytest.mark.parametrize("value", [True, -1, 1.5, None, "", "-", "1e3", "١٢", [], {}, "9" * 30])
def test_what_is_no_whole_number_is_none(value):
    assert model.whole(value) is None


def test_whole_numbers_may_be_given_as_digits():
    assert [model.whole(value) for value in (0, 7, "0", " 12 ", "9" * 18)] == [0, 7, 0, 12, 10**18 - 1]


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0 Byte", Amount(0, 0, 0)),
        ("7", Amount(7, 7, 7)),
        (7, Amount(7, 7, 7)),
        ("512K", Amount(524288, 523776, 524800)),
        ("1M", Amount(1 << 20, 0.5 * (1 << 20), 1.5 * (1 << 20))),
        ("3GiB", Amount(3 << 30, 2.5 * (1 << 30), 3.5 * (1 << 30))),
        ("1.5GiB", Amount(1610612736, 1.45 * (1 << 30), 1.55 * (1 << 30))),
        ("0.0GiB", Amount(0, 0, 0.05 * (1 << 30))),
        ("1.25GiB", Amount(1342177280, 1.245 * (1 << 30), 1.255 * (1 << 30))),
        ("5242880.0GiB", Amount(5 << 50, 5242879.95 * (1 << 30), 5242880.05 * (1 << 30))),
        (True, None),
        ("x", None),
        (None, None),
        ("1.GiB", None),
        ("GiB", None),
    ],
)
def test_sizes(text, amount):
    found = model.size(text)
    assert (found is None) == (amount is None)
    if amount:
        assert (found.value, found.least, found.most) == (
            amount.value,
            pytest.approx(amount.least),
            pytest.approx(amount.most),
        )


@pytest.mark.parametrize(
    ("text", "value", "least", "most"),
    [("16.8M", 16_800_000, 16_750_000, 16_850_000), ("0.1M", 100_000, 50_000, 150_000), ("12", 12, 12, 12)],
)
def test_counts(text, value, least, most):
    found = model.count(text)
    assert (found.value, found.least, found.most) == (value, pytest.approx(least), pytest.approx(most))


@pytest.mark.parametrize("text", ["x", True, "16.8K", "16.8MiB", "-1M", ""])
def test_what_is_no_count(text):
    assert model.count(text) is None


def test_a_percentage_narrows_an_amount_and_never_widens_it():
    total = Amount(1000, 1000, 1000)
    assert model.narrowed(Amount(500, 400, 600), total, 50) == Amount(500, 495, 505)
    assert model.narrowed(Amount(1000, 900, 1100), total, 100) == Amount(1000, 995, 1000)
    assert model.narrowed(Amount(0, 0, 100), total, 0) == Amount(0, 0, 5)
    assert model.narrowed(Amount(500, 499, 501), total, 50) == Amount(500, 499, 501)
    assert model.narrowed(Amount(500, 505, 600), total, 50) == Amount(500, 505, 505)
    assert model.narrowed(Amount(500, 506, 600), total, 50) == Amount(500, 506, 600)  # they contradict each other


def test_a_row_has_every_key_and_what_is_not_known_is_none():
    row = model.target("meta", 1, name="a", sync_state="healthy", free=Amount(5, 4, 6), total=Amount(9, 9, 9))
    assert row == {
        "type": "meta",
        "id": 1,
        "name": "a",
        "node": None,
        "reachability": None,
        "consistency": None,
        "sync_state": "healthy",
        "pool": None,
        "total": 9,
        "free": 5,
        "free_least": 4,
        "free_most": 6,
        "inodes": None,
        "inodes_free": None,
        "inodes_free_least": None,
        "inodes_free_most": None,
        "space_told": None,
    }
    assert model.entry(source="x") == {
        "pattern": None,
        "chunk_kib": None,
        "targets": None,
        "source": "x",
        "error": None,
    }


UNANSWERED = [{"space_told": False, "space_why": "why", "pool": "normal"}]
UNTOLD = [{"space_told": False, "space_why": None, "pool": "normal"}]
ODD = [{"space_told": True, "space_why": "why", "pool": "normal"}]
TOLD = [{"space_told": True, "space_why": None, "pool": "normal"}]
UNKNOWN = [{"space_told": None, "space_why": None, "pool": "unknown"}]
NO_META = f" {ctl_v7.NO_META}\n"


@pytest.mark.parametrize(
    ("code", "err", "rows", "explained"),
    [
        (5, "", TOLD, True),
        (6, "", TOLD, True),
        (7, "", TOLD, True),
        (7, "", [], False),
        (4, "", TOLD, False),
        (8, "", TOLD, False),
        (1, "", UNKNOWN, False),
        (3, NO_META, [], True),
        (3, NO_META, TOLD, False),
        (3, "other words\n", [], False),
        (3, "why\n", UNANSWERED, True),
        (3, "why\n", UNTOLD, False),
        (3, "why\n", TOLD, False),
        (3, "why\n", ODD, False),
        (3, "why\n", UNKNOWN, False),
        (3, "why\n", TOLD + UNANSWERED, True),
        (3, "", UNKNOWN, True),
        (3, "", TOLD + UNKNOWN, True),
        (3, "", TOLD, False),
        (3, "", UNANSWERED, False),
        (3, "", [], False),
    ],
)
def test_an_exit_code_is_explained_by_rows_that_tell_the_same(code, err, rows, explained):
    heard = said("", err)
    assert ctl_v7.is_explained(code, heard, model.Parsed(rows)) is explained
    assert ctl_v7.is_explained(code, heard, model.Parsed(rows, ["unrecognised row"])) is False


PLAIN = "TargetID   Reachability  Consistency   NodeID\n========   ============  ===========   ======\n"


@pytest.mark.parametrize(
    ("heading", "row", "known"),
    [
        ("TargetID NodeID", "101 1", {"node": "1"}),
        ("TargetID NodeID", "101 beegfs-storage stor 1 [ID: 1]", {"node": "stor 1"}),
        ("TargetID Reachability NodeID", "101 Online 1", {"reachability": "online", "node": "1"}),
        ("TargetID Consistency NodeID", "101 Bad 1", {"consistency": "bad", "node": "1"}),
        ("TargetID Reachability Consistency", "101 Online Bad", {"consistency": "bad", "node": None}),
        ("TargetID Reachability Cap. Pool", "101 Online low", {"pool": "low"}),
        ("TargetID St. Pool Cap. Pool NodeID", "101 1 emergency 1", {"pool": "emergency", "node": "1"}),
        ("Reachability TargetID NodeID", "Online 101 1", {"reachability": "online"}),
        ("TargetID Reachability Consistency Cap. Pool NodeID", "101 Offline Good 1", {"pool": None, "node": "1"}),
    ],
)
def test_a_table_with_whatever_columns(heading, row, known):
    parsed = ctl_v7.listing("storage", said(f"{heading}\n====\n{row}\n", ""))
    assert parsed.problems == []
    assert known.items() <= parsed.rows[0].items()
    assert parsed.rows[0]["id"] == 101


@pytest.mark.parametrize(
    ("heading", "row"),
    [
        ("TargetID NodeID", "101 x"),
        ("TargetID NodeID", "101 Online 1"),
        ("TargetID Reachability NodeID", "101 1"),
        ("TargetID Consistency NodeID", "101 1"),
        ("TargetID Reachability Consistency NodeID", "101 Online 1"),
        ("TargetID Reachability Consistency NodeID", "101 Online Good"),
        ("TargetID Reachability Consistency", "101 Online"),
        ("TargetID Cap. Pool NodeID", "101 full 1"),
    ],
)
def test_a_row_that_does_not_fit_its_table(heading, row):
    parsed = ctl_v7.listing("storage", said(f"{heading}\n====\n{row}\n", ""))
    assert parsed.rows == []
    assert parsed.problems


@pytest.mark.parametrize(
    "heading",
    [
        "NodeID TargetID",
        "Reachability NodeID",
        "TargetID TargetID",
        "TargetID Total Total",
        "TargetID Size",
        "TargetID NodeID Total",
    ],
)
def test_a_heading_that_tells_nothing(heading):
    parsed = ctl_v7.listing("storage", said(f"{heading}\n101 1\n", ""))
    assert (parsed.rows, len(parsed.problems)) == ([], 2)


SPACE = "TargetID Total Free % ITotal IFree % NodeID\n====\n"


@pytest.mark.parametrize("at", range(6))
def test_one_amount_that_is_none_makes_the_row_no_row(at):
    words = ["7.8GiB", "7.8GiB", "100%", "0.5M", "0.5M", "100%"]
    words[at] = "much"
    parsed = ctl_v7.listing("storage", said(f"{SPACE}101 {' '.join(words)} 1\n", ""))
    assert (parsed.rows, len(parsed.problems)) == ([], 1)


@pytest.mark.parametrize("at", range(7))
def test_only_zeros_throughout_say_that_nothing_was_told(at):
    words = ["0.0GiB", "0.0GiB", "0%", "0.0M", "0.0M", "0%", ""]
    if at < 6:
        words[at] = words[at].replace("0.0", "0.1") if "." in words[at] else "1%"
    (row,) = ctl_v7.listing("storage", said(f"{SPACE}101 {' '.join(words)} 1\n", "")).rows
    assert row["space_told"] is (at < 6)


def test_why_a_server_told_nothing_is_of_the_targets_of_which_it_told_nothing():
    text = f"{SPACE}201 7.8GiB 7.8GiB 100% 0.5M 0.5M 100% {{0}}\n202 0.0GiB 0.0GiB 0% 0.0M 0.0M 0% {{0}}\n"
    err = " [ERROR from beegfs-storage stor2 [ID: 2]: Communication error]\n"
    told, untold = ctl_v7.listing("storage", said(text.format("beegfs-storage stor2 [ID: 2]"), err)).rows
    assert told["space_why"] is None
    assert untold["space_why"] == err.strip()
    told, untold = ctl_v7.listing("storage", said(text.format("beegfs-storage stor3 [ID: 3]"), err)).rows
    assert untold["space_why"] is None


NODES = """meta1 [ID: 1]
   Ports: UDP: 8005; TCP: 8005
   Interfaces:
   + b0[ip addr: 10.99.0.1; type: TCP]
   Reachable: <yes>
beegfs-meta meta 2 [ID: 22]
   Reachable: <no>

Number of nodes: 2
Root: 1
"""


def nodes(text, err=""):
    return ctl_v7.nodes("meta", said(text, err))


def test_servers_with_whatever_is_said_of_them():
    parsed = nodes(NODES)
    assert parsed.problems == []
    assert parsed.rows == [
        {"type": "meta", "name": "meta1", "id": 1, "reachable": True},
        {"type": "meta", "name": "meta 2", "id": 22, "reachable": False},
    ]
    assert nodes(NODES, "a wrapper says something\n") == parsed
    assert nodes("meta1 [ID: 1]\n").rows[0]["reachable"] is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (" meta1 [ID: 1]\n", "unrecognised"),
        ("   Reachable: <yes>\nmeta1 [ID: 1]\n", "unrecognised"),
        ("   Reachable: <yes>\n", "unrecognised"),
        ("Root: 1\n", "unrecognised"),
        ("   Ports: 1\n", "unrecognised"),
        ("meta1 [ID: 1]\nsomething\n", "unrecognised"),
        ("meta1 [ID: 1]\nNumber of nodes: 2\n", "but 1 are listed"),
        ("meta1 [ID: 1]\nNumber of nodes: 0\n", "but 1 are listed"),
        ("meta1 [ID: 1]\nmeta2", "ends in the middle"),
    ],
)
def test_a_list_of_servers_that_is_not_whole(text, problem):
    assert problem in nodes(text).problems[0]
    assert len(nodes(text).problems) == 1
    assert nodes(text, "words\n").problems == nodes(text).problems


MIRRORED = "MirrorGroupID MGMemberType TargetID NodeID\n====\n"


@pytest.mark.parametrize("row", ["x primary 101 1", "1 both 101 1"])
def test_a_member_without_group_or_role_is_of_no_group(row):
    parsed = ctl_v7.mirrors("storage", said(f"{MIRRORED}{row}\n", ""))
    assert parsed.rows == []
    assert ["without group or role" in problem for problem in parsed.problems] == [True]


GROUPS = "BuddyGroupID PrimaryTargetID SecondaryTargetID\n=== === ===\n"


@pytest.mark.parametrize(
    ("out", "err", "rows", "problems"),
    [
        ("", f"{ctl_v7.NO_MIRRORS}\n", 0, []),
        ("", "why\n", 0, ["no list of mirror groups: why"]),
        ("some text\n", f"{ctl_v7.NO_MIRRORS}\n", 0, ["no list of mirror groups: some text"]),
        ("1 101 201\n", "", 0, ["no list of mirror groups: 1 101 201"]),
        (f"{GROUPS}1 101 201\n2 202 102\n", "", 2, []),
        ("BuddyGroupID PrimaryTargetID SecondaryTargetID\n1 101 201\n", "", 1, []),
        (f"{GROUPS}1 101 201\n2 202\n", "", 1, ["unrecognised row: 2 202"]),
        (f"{GROUPS}2 202\n", "", 0, ["unrecognised row: 2 202"]),
        (f"{GROUPS}", "", 0, ["neither mirror groups nor their absence was reported"]),
        (f"{GROUPS}1 101 201\n2 2", "", 1, ["the output ends in the middle of a line"]),
    ],
)
def test_mirror_groups_in_the_older_way(out, err, rows, problems):
    parsed = ctl_v7.mirror_groups("storage", said(out, err))
    assert (len(parsed.rows), parsed.problems) == (rows, problems)
    if rows:
        assert parsed.rows[0] == {"type": "storage", "group": 1, "primary": 101, "secondary": 201}


QUOTA = "name,id,size,hard,files,hard\n"
ROW = "root,0,5,9,7,10\n"


@pytest.mark.parametrize(
    ("out", "err", "rows", "problems"),
    [
        (QUOTA + ROW, "", 1, []),
        (QUOTA + ROW, "a wrapper says something\n", 1, []),
        (ROW, "", 0, ["unrecognised line: root,0,5,9,7,10"]),
        (ROW + QUOTA + ROW, "", 1, ["unrecognised line: root,0,5,9,7,10"]),
        (QUOTA + "root,0,5,9,7x,10\n", "why\n", 0, ["unrecognised row: root,0,5,9,7x,10"]),
        (QUOTA + "root,0,5,9,7+3,10\n", "", 0, ["unrecognised row: root,0,5,9,7+3,10"]),
        (QUOTA, "", 0, ["no quota was printed"]),
    ],
)
def test_quota_line_by_line(out, err, rows, problems):
    parsed = ctl_v7.quota(said(out, err))
    assert (len(parsed.rows), parsed.problems) == (rows, problems)


def test_a_count_of_files_on_some_disks_is_that_number():
    (row,) = ctl_v7.quota(said(f"{QUOTA}root,0,5,9,123+,1000\n", "")).rows
    assert (row["files"], row["files_at_least"]) == (None, 123)
    (row,) = ctl_v7.quota(said(f"{QUOTA}root,0,5,9,123,1000\n", "")).rows
    assert (row["files"], row["files_at_least"]) == (123, None)


ENTRY = """Entry type: directory
EntryID: root
Stripe pattern details:
+ Type: RAID0
+ Chunksize: 512K
+ Number of storage targets: desired: 4; actual: 3
"""


def test_the_striping_of_an_entry():
    found = ctl_v7.striping(said(ENTRY, ""))
    assert found == {"pattern": "raid0", "chunk_kib": 512, "targets": 3, "source": "beegfs-ctl", "error": None}
    assert ctl_v7.striping(said(ENTRY.replace("; actual: 3", ""), ""))["targets"] == 4


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("+ Type: RAID0\n", ""),
        ("+ Chunksize: 512K\n", ""),
        ("512K", "0K"),
        ("512K", "many"),
        ("desired: 4; actual: 3", "some"),
        ("Entry type", "Kind"),
    ],
)
def test_an_entry_that_is_not_whole_has_no_striping(old, new):
    found = ctl_v7.striping(said(ENTRY.replace(old, new), ""))
    assert found["pattern"] is found["chunk_kib"] is found["targets"] is None
    assert found["error"].startswith("no entry information: ")
    assert "EntryID" in found["error"]
    assert ctl_v7.striping(said("", ""))["error"] == "no entry information: without a message"
    assert ctl_v7.striping(said(ENTRY.replace(old, new), "why\n"))["error"] == "no entry information: why"


def test_an_amount_that_was_not_rounded_is_just_that():
    assert model.exactly(5) == Amount(5, 5, 5)
    assert model.exactly(0) == Amount(0, 0, 0)
    assert model.exactly(None) is None
