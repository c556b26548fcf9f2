# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make junit.xml from the verdict: a suite per workload or check group, a case per criterion or finding."""

from __future__ import annotations

import re
import typing as t
from xml.etree import ElementTree

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
    where = ", ".join(str(name) for name in judged.get("where", {}).values())
    name = f"{judged['id']} {judged['title']}" + (f" ({where})" if where else "")
    case = ElementTree.SubElement(parent, "testcase", name=_text(name), classname=_text(class_name), time="0")
    element = ELEMENT.get(judged["verdict"])
    if element:
        message = f"{judged['why']} (value {judged['value']}, bound {judged['bound']})"
        child = ElementTree.SubElement(case, element, message=_text(message))
        child.text = _text(judged["remedy"] or judged["source"])
    return element


def _suite(root: ElementTree.Element, name: str, cases: list[Json], seconds: float) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name=_text(name), time=f"{seconds:.3f}")
    kinds = [_case(suite, name, case) for case in cases]
    suite.set("tests", str(len(cases)))
    for element, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(kinds.count(element)))


def junit_xml(verdict: Json) -> bytes:
    """Return the document for `verdict` (schema verdict.json). A suite without judged cases has one error.

    The suite of a workload that was not run, because it had passed, has one skipped case.
    """
    root = ElementTree.Element("testsuites", name=_text(verdict["title"]))
    for workload in verdict["workloads"]:
        cases = workload["criteria"] or [
            {
                "id": workload["id"],
                "title": "was judged",
                "verdict": "not_applicable" if "earlier" in workload else "undetermined",
                "value": None,
                "bound": "judged",
                "why": workload["why"],
                "remedy": None,
                "source": "report",
            }
        ]
        seconds = (workload["job"] or {}).get("run_seconds") or 0.0
        _suite(root, f"{workload['id']} {workload['title']}", cases, seconds)
    groups: dict[str, list[Json]] = {}
    for finding in verdict["findings"]:
        groups.setdefault(finding["id"].partition(".")[0], []).append(finding)
    for group, findings in groups.items():
        _suite(root, f"preflight {group}", findings, 0.0)
    ElementTree.indent(root)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="utf-8") + b"\n"
