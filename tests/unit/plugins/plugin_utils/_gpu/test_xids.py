"""The table of Xids: whole, and read strictly."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import xid_table, xids
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import remedies

XIDS = xid_table.load()
# The codes at which DCGM 4.6's health watches fail and warn.
DCGM_FAIL = {48, 64, 74, 79, 95, 119, 120, 140}
DCGM_WARN = {31, 32, 38, 39, 42, 43, 54, 56, 57, 58, 60, 61, 62, 63, 67, 73, 78, 94, 121, 137}


def test_the_catalogue_is_whole():
    assert set(range(1, 173)) <= set(XIDS)
    assert all(xid.meaning and not xid.meaning.endswith(".") for xid in XIDS.values())


def test_what_others_hold_to_be_fatal_is_fatal_and_nothing_that_they_warn_of_is_left_out():
    assert {code for code in DCGM_FAIL if XIDS[code].severity != "fail"} == set()
    assert {code for code in DCGM_WARN if XIDS[code].severity == "info"} == set()


def test_every_action_has_a_remedy():
    for action in xid_table.ACTIONS:
        assert remedies.remedy(f"gpu.xid.{action}")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "- 79",
        "{",
        "79: lost",
        "79: {meaning: lost, severity: bad, action: reset}",
        "79: {meaning: lost, severity: fail, action: pray}",
        "79: {meaning: lost, severity: fail}",
        "'79': {meaning: lost, severity: fail, action: reset}",
        "79: {meaning: lost, severity: fail, action: reset, nonfatal: no}",
    ],
)
def test_a_table_that_is_none_is_named(tmp_path, content):
    path = tmp_path / "xids.yml"
    path.write_text(content)
    with pytest.raises(xid_table.XidsError, match=r"xids\.yml"):
        xid_table.load(path)


@pytest.mark.parametrize(
    ("pci", "expected"),
    [
        ("0000:20:00", (0, 0x20, 0)),
        ("00000000:20:00.0", (0, 0x20, 0)),
        ("PCI:0000:A1:00", (0, 0xA1, 0)),
        ("0008:01:00.0", (8, 1, 0)),
        ("3b:00.0", (0, 0x3B, 0)),
        ("GPU-1", None),
        ("", None),
        (None, None),
        (79, None),
    ],
)
def test_a_pci_address_is_known_in_all_its_spellings(pci, expected):
    assert xids.address(pci) == expected
