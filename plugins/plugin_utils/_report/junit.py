# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make junit.xml from the verdict: a suite per workload or part of the preflight, a case per criterion or check."""

from __future__ import annotations

import re
import typing as t
from collections import Counter
from xml.etree import ElementTree

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import groups

Json = dict[str, t.Any]
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# In JUnit's terms an undetermined criterion is an error, not a failure, and never a success.
ELEMENT = {
    "fail": "failure",
    "undetermined": "error",
    "not_applicable": "skipped",
    "recorded": None,
    "waived": "skipped",
}


def _text(value: object) -> str:
    return NOT_XML.sub("\N{REPLACEMENT CHARACTER}", str(value))


def _case(parent: ElementTree.Element, class_name: str, judged: Json) -> str | None:
    """Add the case of one criterion."""
    case = _named_case(parent, class_name, judged)
    element = ELEMENT.get(judged["verdict"])
    if element:
        message = judged["why"]
        if judged["bound"] is not None:
            message += f" (value {judged['value']}, bound {judged['bound']})"
        _outcome(case, element, message, judged["remedy"] or judged["source"])
    return element


def _unjudged(workload: Json) -> Json:
    """Return what stands for the criteria of a workload without any."""
    return {
        "id": workload["id"],
        "title": "was judged",
        "verdict": "not_applicable" if workload["verdict"] in ("recorded", "not_applicable") else "undetermined",
        "bound": None,
        "why": workload["why"],
        "remedy": None,
        "source": "report",
    }


def _check_case(parent: ElementTree.Element, class_name: str, findings: list[Json], entries: list[Json]) -> str | None:
    """Add the case of one check, with all places where it did not pass; `entries` are its other findings, folded."""
    case = _named_case(parent, class_name, (findings or entries)[0])
    faults = groups.grouped(findings)
    if faults:
        element = ELEMENT[faults[0]["verdict"]] or ""
        counts = ", ".join(f"{count} {word}" for word, count in Counter(each["verdict"] for each in findings).items())
        lines = [
            f"{fault['verdict']}: {fault['at']}{fault['why']} (value {fault['value']}, bound {fault['bound']}); "
            f"{fault['remedy'] or fault['source']}"
            for fault in faults
        ]
        _outcome(case, element, f"{counts}; {faults[0]['at']}{faults[0]['why']}", "\n".join(lines))
        return element
    if all(entry["verdict"] == "not_applicable" for entry in entries):
        _outcome(case, "skipped", entries[0]["why"] or "it does not apply", entries[0]["source"] or "")
        return "skipped"
    return None


def _named_case(parent: ElementTree.Element, class_name: str, judged: Json) -> ElementTree.Element:
    name = _text(f"{judged['id']} {judged['title']}")
    return ElementTree.SubElement(parent, "testcase", name=name, classname=_text(class_name), time="0")


def _outcome(case: ElementTree.Element, element: str, message: str, text: str) -> None:
    ElementTree.SubElement(case, element, message=_text(message)).text = _text(text)


def _suite(root: ElementTree.Element, name: str, seconds: float) -> ElementTree.Element:
    return ElementTree.SubElement(root, "testsuite", name=_text(name), time=f"{seconds:.3f}")


def _count(suite: ElementTree.Element, kinds: list[str | None]) -> None:
    suite.set("tests", str(len(kinds)))
    for element, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(kinds.count(element)))


def junit_xml(verdict: Json) -> bytes:
    """Return the document for `verdict` (schema verdict.json). A suite without judged cases has one error.

    The suite of a workload that was not to be run, because it had passed or is left out, has one skipped case.
    """
    root = ElementTree.Element("testsuites", name=_text(verdict["title"]))
    for workload in verdict["workloads"]:
        cases = workload["criteria"] or [_unjudged(workload)]
        name = f"{workload['id']} {workload['title']}"
        suite = _suite(root, name, (workload["job"] or {}).get("run_seconds") or 0.0)
        _count(suite, [_case(suite, name, case) for case in cases])
    for group, checks in groups.by_part(verdict).items():
        name = f"preflight {group}"
        suite = _suite(root, name, 0.0)
        _count(suite, [_check_case(suite, name, *found) for found in checks.values()])
    ElementTree.indent(root)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="utf-8") + b"\n"
