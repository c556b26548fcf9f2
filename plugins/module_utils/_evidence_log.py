# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Searches a job's log for named sets of patterns and for the kit's end marker. PRIVATE to the collection.

Each pattern names texts of which one is in every line that it matches. The file is searched for these texts, block
by block; only lines that hold one meet the regular expressions. That is what makes it fast.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, BinaryIO

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _numbers

BLOCK_BYTES = 1 << 18
MAX_SEGMENT = 1 << 13
# Where a line is cut, so much of it is searched twice: a message may stand across the cut.
OVERLAP = 1 << 10
MAX_HITS = 20
# A match that ends later in its line than this is quoted from so many bytes before it: reports cut what is long.
LATE, LEAD = 200, 40
MAX_QUOTE = 500

# Short texts that stand for many, to keep the number of searches low; a matter of speed alone.
_ANCHORS = (b"rror", b"NCCL", b"CUDA")
_END_TEXT = b"hpc-validation-end"
_END = re.compile(rb"hpc-validation-end job=([A-Za-z0-9_+.\[\]-]{1,64}) attempt=(\d{1,6}) exit=(-?\d{1,6})\s*")
# Terminal escapes: control sequences, operating system commands, then any other two-byte escape.
_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -~])")


class PatternsError(ValueError):
    """A pattern set is not what it should be; the message names set and pattern."""


@dataclass(frozen=True)
class _Pattern:
    set_name: str
    id: str
    regex: re.Pattern[bytes]
    texts: tuple[bytes, ...]
    remedy: str
    excepted: tuple[re.Pattern[bytes], ...]


def compile_sets(sets: dict[str, Any]) -> LogSearch:
    """Return a search for `sets`: name → {patterns: [{id, regex, texts, remedy}], except: [{regex}]}."""
    by_text: dict[bytes, list[_Pattern]] = {}
    for name, content in sets.items():
        try:
            excepted = tuple(re.compile(entry["regex"].encode()) for entry in content.get("except") or [])
            for entry in content["patterns"]:
                texts = entry["texts"]
                if (
                    not isinstance(texts, list)
                    or not texts
                    or not all(text and isinstance(text, str) for text in texts)
                ):
                    raise PatternsError(f"pattern set {name}: {entry['id']}: texts: expected a list of texts")
                encoded = tuple(text.encode() for text in texts)
                regex = re.compile(entry["regex"].encode())
                pattern = _Pattern(name, entry["id"], regex, encoded, entry.get("remedy", ""), excepted)
                for text in encoded:
                    by_text.setdefault(text, []).append(pattern)
        except (KeyError, TypeError, AttributeError, re.error) as exc:
            raise PatternsError(f"pattern set {name}: {type(exc).__name__}: {exc}") from exc
    return LogSearch(list(sets), by_text)


class LogSearch:
    """Pattern sets ready to be searched for."""

    def __init__(self, names: list[str], by_text: dict[bytes, list[_Pattern]]) -> None:
        self._names = names
        # A text that holds another one needs no search of its own: its patterns are tried where the other is found.
        anchors = [anchor for anchor in _ANCHORS if any(anchor in text for text in by_text)]
        known = [*anchors, *by_text]
        self._by_text = {
            text: [pattern for other, patterns in by_text.items() if text in other for pattern in patterns]
            for text in known
            if not any(other != text and other in text for other in known)
        }

    def scan(self, stream: BinaryIO) -> dict[str, Any]:
        """Return size, lines, SHA-256, hits by set with their counts, and the last end marker of the stream."""
        scan = _Scan(self._names, self._by_text)
        digest = hashlib.sha256()
        size = 0
        rest = b""
        while True:
            block = stream.read(BLOCK_BYTES)
            if not block:
                break
            size += len(block)
            digest.update(block)
            block = rest + block
            # A line that goes on in the next block waits for it, up to a length at which it is cut.
            cut = block.rfind(b"\n") + 1
            keep = cut
            if len(block) - cut > BLOCK_BYTES:
                cut, keep = len(block), len(block) - OVERLAP
            rest = block[keep:]
            scan.block(block[:cut])
        scan.block(rest)
        return scan.result(size, digest.hexdigest())


class _Scan:
    """One pass over one log."""

    def __init__(self, names: list[str], by_text: dict[bytes, list[_Pattern]]) -> None:
        self._by_text = by_text
        self._hits: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        self._counts = dict.fromkeys(names, 0)
        self._last_line = dict.fromkeys(names, 0)
        self._lines = 0
        self._ends_open = False
        self._end: dict[str, Any] | None = None

    def block(self, block: bytes) -> None:
        if not block:
            return
        found: dict[tuple[int, int], set[_Pattern]] = {}
        for text, patterns in self._by_text.items():
            at = block.find(text)
            while at >= 0:
                span = _segment(block, at)
                found.setdefault(span, set()).update(patterns)
                at = block.find(text, max(span[1], at + 1))
        self._find_ends(block)
        line, position = self._lines + 1, 0
        for span in sorted(found):
            line += block.count(b"\n", position, span[0])
            position = span[0]
            self._judge(block[span[0] : span[1]], found[span], line)
        self._lines += block.count(b"\n")
        self._ends_open = not block.endswith(b"\n")

    def _judge(self, text: bytes, patterns: set[_Pattern], line: int) -> None:
        plain = _ESCAPES.sub(b"", text) if b"\x1b" in text else text
        hit_sets = set()
        for pattern in sorted(patterns, key=lambda entry: (entry.set_name, entry.id)):
            name = pattern.set_name
            # A long line is looked at piece by piece, and still is one hit.
            if name in hit_sets or self._last_line[name] == line:
                continue
            match = pattern.regex.search(plain) if any(wanted in plain for wanted in pattern.texts) else None
            if match is None:
                continue
            hit_sets.add(name)
            if any(entry.search(plain) for entry in pattern.excepted):
                continue
            self._counts[name] += 1
            self._last_line[name] = line
            if len(self._hits[name]) < MAX_HITS:
                hit = {
                    "line": line,
                    "text": _quote_match(plain, match),
                    "pattern": pattern.id,
                    "remedy": pattern.remedy,
                }
                self._hits[name].append(hit)

    def _find_ends(self, block: bytes) -> None:
        at = block.rfind(_END_TEXT)
        while at >= 0:
            start, stop = _segment(block, at)
            match = _END.fullmatch(block, start, stop)
            if match:
                job_id, attempt, code = (part.decode() for part in match.groups())
                self._end = {"job_id": job_id, "attempt": int(attempt), "exit_code": int(code)}
                return
            at = block.rfind(_END_TEXT, 0, at)

    def result(self, size: int, sha256: str) -> dict[str, Any]:
        return {
            "bytes": size,
            "lines": self._lines + self._ends_open,
            "sha256": sha256,
            "hits": self._hits,
            "counts": self._counts,
            "end": self._end,
        }


def _segment(block: bytes, at: int) -> tuple[int, int]:
    """Return where the line around `at` begins and ends; a carriage return ends one too (progress bars)."""
    low = max(0, at - MAX_SEGMENT)
    start = max(block.rfind(b"\n", low, at), block.rfind(b"\r", low, at)) + 1
    high = min(len(block), at + MAX_SEGMENT)
    stop = block.find(b"\n", at, high)
    stop = high if stop < 0 else stop
    returned = block.find(b"\r", at, stop)
    return max(start, low), stop if returned < 0 else returned


def _quote_match(line: bytes, match: re.Match[bytes]) -> str:
    """Quote a line; of a long one the part with the match, which may stand anywhere in it."""
    if match.end() <= LATE:
        return quote(line)
    text = "…" + quote(line[max(0, match.start() - LEAD) :])
    return text if len(text) <= MAX_QUOTE else text[: MAX_QUOTE - 1] + "…"


def quote(line: bytes) -> str:
    """Return a line of a log as text that no terminal acts on, bounded in length."""
    text = _numbers.printable(_ESCAPES.sub(b"", line).decode("utf-8", "replace")).strip()
    return text if len(text) <= MAX_QUOTE else text[: MAX_QUOTE - 1] + "…"
