# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two output streams of BeeGFS's tools: rows, messages, and what comes between them. Pure. PRIVATE.

beegfs-ctl writes its log to stdout, among the rows of a table, and a short error to stderr. A failed configuration
ends in a footer of three lines, and some modes begin with a box about enterprise features.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.model import short

_BOX = re.compile(r"\|.*\||-{20,}")
_LOG = re.compile(r"\(\d{1,2}\) (?:[A-Z][a-z]{2} ?\d{1,2} )?\d\d:\d\d:\d\d .*? >> (.*)")
_FOOTER = re.compile(r"^\[BeeGFS [^\[\]]*\]$", re.MULTILINE)
_MARKED = re.compile(r"\s*(?:Error:|Unrecoverable error:|\[ERROR\b)")
NO_ANSWER = "did not answer"
# Patterns of messages, and the cause they point to. A fault on the way to the management daemon, or in how the tool is
# called, affects every other question too.
_CAUSES = (
    ("secret", r"Soft disconnect from [^;]*; Peer: beegfs-mgmtd|No connAuthFile configured"),
    ("permission", r"[Pp]ermission denied|root privileges|a password is required|not allowed to|not in the sudoers"),
    (
        "configuration",
        r"(?:Unable to open|unable to read) auth file|Failed to load map file|[Cc]onfig(?:uration)? (?:argument|file)",
    ),
    ("name", r"Failed to resolve hostname|no such host"),
    ("network", r"Couldn't find any usable NIC"),
    ("management", r"Management node communication failed|without a working management node"),
)
GENERAL = tuple(cause for cause, _words in _CAUSES)


@dataclass(frozen=True)
class Said:
    """What a command printed: the lines of its answer, and its messages, those marked as errors first."""

    lines: tuple[str, ...]
    messages: tuple[str, ...]
    cut: bool  # the last line has no line end

    def reason(self) -> str:
        """Return the messages as one line, each once."""
        return short("; ".join(self.messages[:3])) or "without a message"


def said(out: str, err: str) -> Said:
    """Return what both streams hold. A last line without a line end is left out."""
    *whole, rest = out.split("\n")
    lines: list[str] = []
    marked: list[str] = []
    messages: list[str] = []
    logged: list[str] = []
    for line in whole:
        log = _LOG.fullmatch(line.strip())
        if log:
            logged.append(short(log[1]))
        elif _MARKED.match(line):
            marked.append(short(line))
        elif line.strip() and not _BOX.fullmatch(line.strip()):
            lines.append(line)
    for line in _FOOTER.sub("", err).split("\n"):
        if line.strip() and not _BOX.fullmatch(line.strip()):
            (marked if _MARKED.match(line) else messages).append(short(line))
    found: list[str] = []
    for message in [*marked, *messages, *logged]:
        if not any(message in earlier for earlier in found):
            found.append(message)
    return Said(tuple(lines), tuple(found), bool(rest.strip()))


def cause(text: str) -> str | None:
    """Return the cause that a message points to, if it is known."""
    if NO_ANSWER in text:
        return "silent"
    return next((name for name, words in _CAUSES if re.search(words, text)), None)
