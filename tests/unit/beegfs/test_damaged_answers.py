# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever the tool prints and whatever the facts hold: no exception, and nothing that is not whole passes."""

from __future__ import annotations

import json

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import verdicts
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.beegfs.test_findings import servers
from tests.unit.beegfs.told import Tool, output, told

SERVERS = told("both-mirrored-healthy")


def asked():
    """What beegfs-ctl is asked, less quota, of which an empty answer only records less."""
    tool = Tool("both-mirrored-healthy")
    tool.told()
    return [argv[1:] for argv in tool.asked if "--csv" not in argv]


ASKED = asked()


@settings(max_examples=150)
@given(which=st.sampled_from(ASKED), data=st.data())
def test_an_output_cut_within_a_line_or_replaced_never_passes(which, data):
    tool = Tool("both-mirrored-healthy")
    sample = tool(["beegfs-ctl", *which], 30).out
    cut = data.draw(st.integers(0, len(sample)).filter(lambda at: sample[:at].rpartition("\n")[2].strip() or at == 0))
    foreign = data.draw(st.text(max_size=60).filter(str.strip))
    text = data.draw(st.sampled_from([sample[:cut], foreign]))
    changed = {"words": which, "out": text, "err": "", "rc": 0}
    otherwise = {**changed, "words": ["--listmirrorgroups", "..."]}  # what is asked where the newer way was not read
    facts = Tool("both-mirrored-healthy", first=[changed, otherwise]).told()
    assert verdicts.overall(servers(facts)) != "pass"


@given(data=st.data())
def test_json_cut_within_a_line_never_passes(data):
    sample = output("cli_8_documented/target_list_healthy")["out"]
    cut = data.draw(st.integers(1, len(sample)).filter(lambda at: not sample[:at].rstrip("\n").endswith("}") or at < 3))
    changed = {"words": ["target", "list", "..."], "out": sample[:cut], "err": "", "rc": 0}
    assert verdicts.overall(servers(told("v8", first=[changed]))) != "pass"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda items: st.lists(items, max_size=3) | st.dictionaries(st.text(max_size=6), items, max_size=3),
    max_leaves=6,
)


def places(document, path=()):
    """Every place in a document."""
    found = [path] if path else []
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        found += places(value, (*path, key))
    return found


@settings(max_examples=200)
@given(path=st.sampled_from(places(SERVERS)), value=ANYTHING)
def test_servers_with_anything_anywhere_never_raise(path, value):
    facts = json.loads(json.dumps(SERVERS))
    inner = facts
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    servers(facts, {"targets": {"meta": 1}, "nodes": {"meta": 1}, "mirrors": {"meta": 1}, "quota": True})
