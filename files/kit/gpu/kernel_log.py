# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xid messages of the NVIDIA driver in the kernel log, fatal ones of NVSwitches, and how far back the log reaches.

There is always a kernel line: an empty answer means that the log could not be read, as with an unprivileged journalctl.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

from kit.process.bounded import GivenUpError, command_lines

DMESG = {"user": ("dmesg",), "sudo": ("sudo", "-n", "dmesg")}
JOURNAL = ("journalctl", "--no-pager", "--quiet", "--output=json", "_TRANSPORT=kernel")
ACCESS = ("user", "journal", "sudo", "none")
KEPT = 200
LONGEST_TEXT = 400
STAMPED = re.compile(r"\[ *(\d{1,12}\.\d{1,9})\] ?(.*)")
XID = re.compile(r"NVRM: Xid \((?:PCI:)?(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2})[^)]*\): (\d{1,6})\b", re.I)
# Link training at boot leaves many non-fatal lines; one error gives lines of several forms, one of them with the word
# Fatal. Two codes are about temperature, which comes and goes; only the shutdown of the switch is fatal.
SXID = re.compile(r"SXid \((?:PCI:)?([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2})[^)]*\): (\d{1,6}), (\S+)", re.I)
NOT_FATAL = ("non-fatal,", "correctable,", "severity", "data")
THERMAL, SHUTS_DOWN = (10004, 10005), "shutting down"
AT_BOOT = 1.0  # seconds; the first kernel line comes at 0
Commands = Callable[..., Iterator[bytes]]


@dataclass
class Kept:
    """At most KEPT Xids: the first of every GPU and code, so that a flood does not hide others, and the latest."""

    firsts: dict[tuple[Any, Any], dict[str, Any]] = field(default_factory=dict)
    latest: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KEPT))
    count: int = 0

    def add(self, xid: dict[str, Any]) -> None:
        """Count one Xid and keep it if there is room."""
        self.count += 1
        key = (xid["pci"], xid["code"])
        if key not in self.firsts and len(self.firsts) < KEPT:
            self.firsts[key] = xid
        else:
            self.latest.append(xid)

    def listed(self) -> list[dict[str, Any]]:
        """Return what was kept, by time."""
        room = KEPT - len(self.firsts)
        recent = list(self.latest)[-room:] if room else []
        return sorted([*self.firsts.values(), *recent], key=lambda xid: xid["time"])


def xid_of(text: str, when: float) -> dict[str, Any] | None:
    """Return the Xid of a kernel message; code and pci are None if its form is unknown."""
    switch = "SXid (" in text
    if not switch and "NVRM: Xid" not in text:
        return None
    said = (SXID if switch else XID).search(text)
    pci = f"{int(said.group(1) or '0', 16):04x}:{said.group(2).lower()}" if said else None
    code = int(said.group(3)) if said else None
    if said and code is not None and switch:
        word, fatal = said.group(4).lower(), SHUTS_DOWN in text.lower()
        if word in NOT_FATAL or (code in THERMAL and not fatal):
            return None
        code = code if fatal or word == "fatal," else None
    return {"time": when, "pci": pci, "code": code, "switch": switch, "text": text[:LONGEST_TEXT]}


def boot_time(root: Path = Path("/")) -> float | None:
    """Return the node's boot time, in seconds since the epoch."""
    try:
        said = re.search(r"^btime (\d+)$", (root / "proc/stat").read_text(), re.MULTILINE)
    except OSError:
        return None
    return float(said.group(1)) if said else None


def dmesg_messages(lines: Iterable[bytes], booted: float) -> Iterator[tuple[float, str]]:
    """Yield (seconds since the epoch, text) of dmesg's lines; a line without a timestamp has that of the last one."""
    when = None
    for line in lines:
        text = line.decode(errors="backslashreplace")
        stamped = STAMPED.match(text)
        if stamped:
            when = booted + float(stamped.group(1))
            text = stamped.group(2)
        if when is not None:
            yield when, text


def journal_messages(lines: Iterable[bytes], booted: float | None) -> Iterator[tuple[float, str]]:
    """Yield (seconds since the epoch, text) of journalctl's JSON; raise ValueError for anything else.

    With ``booted``, all lines are from this boot and the kernel's timestamp counts: journald starts seconds later.
    """
    for line in lines:
        if not line.strip():
            continue
        entry = json.loads(line)
        message = entry.get("MESSAGE") if isinstance(entry, dict) else None
        if isinstance(message, list):  # journald's form of bytes that are not UTF-8
            message = bytes(message).decode(errors="backslashreplace")
        if not isinstance(message, str):
            continue
        since_boot = entry.get("_SOURCE_MONOTONIC_TIMESTAMP")
        if booted is not None and since_boot is not None:
            yield booted + int(since_boot) / 1e6, message
        else:
            yield int(entry["__REALTIME_TIMESTAMP"]) / 1e6, message


def read(
    access: str, since: float | None, booted: float | None, seconds: float, commands: Commands = command_lines
) -> dict[str, Any]:
    """Return the Xids since a time (default: boot) and whether the log reaches back to it; ``error`` says why not.

    ``oldest`` is the time of the oldest line seen. Reading takes at most ``seconds``.
    """
    asked = booted if since is None else since
    until = time.monotonic() + seconds
    found: dict[str, Any] = {"access": access, "source": None, "error": None, "since": asked, "complete": False}
    found["oldest"] = None
    kept = Kept()
    first = None
    if access == "none":
        found["error"] = "not read: no access to the kernel log"
    elif booted is None or asked is None:
        found["error"] = "/proc/stat does not say when the node was booted"
    else:
        found["source"] = "journalctl" if access == "journal" else "dmesg"
        try:
            for when, text in _messages(access, asked, booted, seconds, commands):
                first = when if first is None else min(first, when)
                xid = xid_of(text, when)
                if xid and when >= asked:
                    kept.add(xid)
            if first is None:
                found["error"] = f"{found['source']} printed no kernel lines"
            else:
                found["oldest"] = first
                left = max(0.0, until - time.monotonic())
                found["complete"] = _reaches_back(access, asked, booted, first, left, commands)
        except GivenUpError as error:
            found["error"] = str(error)
        except (ValueError, TypeError, KeyError) as error:
            found["error"] = f"{found['source']} printed output of an unknown form: {error}"
    xids = kept.listed()
    return {**found, "xids": xids, "more": kept.count - len(xids)}


def _messages(
    access: str, asked: float, booted: float, seconds: float, commands: Commands
) -> Iterator[tuple[float, str]]:
    if access != "journal":
        return dmesg_messages(commands(DMESG[access], seconds), booted)
    fields = "--output-fields=MESSAGE,_SOURCE_MONOTONIC_TIMESTAMP"
    if asked >= booted:
        return journal_messages(commands((*JOURNAL, fields, "--boot"), seconds), booted)
    return journal_messages(commands((*JOURNAL, fields, f"--since=@{asked:.0f}"), seconds), None)


def _reaches_back(access: str, asked: float, booted: float, first: float, seconds: float, commands: Commands) -> bool:
    if first <= max(asked, booted + AT_BOOT) and (asked >= booted or first <= asked):
        return True
    if access != "journal":
        return False
    older = (*JOURNAL, "--lines=1", f"--until=@{asked:.0f}")
    return any(True for _each in journal_messages(commands(older, seconds), None))
