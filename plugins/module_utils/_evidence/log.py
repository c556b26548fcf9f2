# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Search a job's log for named sets of patterns and for the kit's end marker. PRIVATE to the collection.

Each pattern names texts, one of which is in every line that it matches. The file is searched for these texts, block by
block, and the regular expressions are run only against lines that hold one. That makes it fast.

Terminal escapes are removed first, since colours may split a message. Text that `kit.quote` has marked as quoted is not
a message. An exception hides only what it matches: two ranks may share a line.
"""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass
from typing import Any, BinaryIO

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import regex_literals, regex_samples
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.opening import EvidenceError

BLOCK_BYTES = 262144
MAX_SEGMENT = 8192
# Where a line is cut, this much of it is searched twice: a message may span the cut.
OVERLAP = 1024
MAX_HITS = 20
# A match that ends beyond LATE in its line is quoted from LEAD bytes before it: reports cut long text.
LATE, LEAD = 200, 40
MAX_QUOTE = 500

# Short texts that stand for many, to keep the number of searches low; this affects only speed.
_ANCHORS = (b"rror", b"NCCL", b"CUDA")
# With the most common bytes of logs removed from both, a text can only be in a block if its rest is in the rest of the
# block, which is short: most texts need no search of their own. Of a text that has enough of the rarest bytes only
# these are looked at, in a rest that is shorter still. (T is in every time of day as ISO 8601 writes it.)
_CAPITALS = b"ABCDEFGHIJKLMNOPQRSUVWXYZ"
_COMMON = tuple(bytes(set(range(256)) - set(kept + _CAPITALS)) for kept in (b"_bfgjkqvwxyz`*(", b"_bfjqwxz`*("))
_ENOUGH = 2  # bytes of a rest
_END_TEXT = b"hpc-validation-end"
_END = re.compile(
    rb"hpc-validation-end job=([A-Za-z0-9_+.\[\]-]{1,64}) attempt=(\d{1,6}) exit=(-?\d{1,6})"
    rb"(?: nonce=([0-9a-f]{16,64}))?\s*"
)
# What may follow the end line: Slurm's own messages about the job, added when the script has ended.
_SLURM = re.compile(rb"(?:slurmstepd(?:-[\w.-]{1,64})?|srun|slurmd): ")
# Terminal escapes: control sequences, terminated strings, character sets, then any other of two bytes. None of them
# continues on the next line, and an unterminated string does not count: what follows it is still searched.
_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\r\n]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[0-~])")
# Text that the kit has quoted, such as a training sample, as a JSON string: of up to 2000 characters in 12 bytes each.
_QUOTE_TEXT = b"hpc-validation-quote "
_QUOTED = re.compile(rb'hpc-validation-quote "(?:[^"\\\r\n]|\\[^\r\n])*"')
_QUOTE_BYTES = 32768
# Letters separated by zero bytes: UTF-16 or UTF-32, in which nothing would be found.
_WIDE = re.compile(rb"(?:[\x20-\x7e]\0{1,3}){8}")
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")


class PatternsError(ValueError):
    """A pattern set is invalid; the message names set and pattern."""


@dataclass(frozen=True)
class _Pattern:
    set_name: str
    id: str
    regex: re.Pattern[bytes]
    texts: tuple[bytes, ...]
    remedy: str
    excepted: tuple[re.Pattern[bytes], ...]


def compile_sets(sets: dict[str, Any]) -> LogSearch:
    """Return a search for `sets`: name → {patterns: [{id, regex, texts, remedy, matches}], except: [{regex}]}.

    Raise PatternsError, also for a pattern of which no line is known that it finds: `absent` would always pass.
    """
    by_text: dict[bytes, list[_Pattern]] = {}
    for name, content in sets.items():
        try:
            excepted = tuple(_compiled(entry["regex"]) for entry in content.get("except") or [])
            if not content["patterns"]:
                raise PatternsError(f"pattern set {name}: it has no patterns, so it would never find anything")
            for entry in content["patterns"]:
                pattern = _pattern(name, entry, excepted)
                _require_a_hit(pattern, entry)
                for text in pattern.texts:
                    by_text.setdefault(text, []).append(pattern)
        except PatternsError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, re.error) as exc:
            raise PatternsError(f"pattern set {name}: {type(exc).__name__}: {exc}") from exc
    return LogSearch(list(sets), by_text)


def _pattern(set_name: str, entry: dict[str, Any], excepted: tuple[re.Pattern[bytes], ...]) -> _Pattern:
    texts, where = entry["texts"], f"pattern set {set_name}: {entry['id']}"
    if not isinstance(texts, list) or not texts or not all(text and isinstance(text, str) for text in texts):
        raise PatternsError(f"{where}: texts: expected a list of texts")
    if any("\n" in text or "\r" in text for text in texts):
        raise PatternsError(f"{where}: texts: a line holds no line end, so this would never be found")
    regex = _compiled(entry["regex"])
    if not regex_literals.always_holds(entry["regex"], texts):
        raise PatternsError(
            f"{where}: texts: the regex also matches lines that hold none of them, and these would not be found; "
            f"give a text for each of its alternatives, spelled as in the regex"
        )
    encoded = tuple(text.encode() for text in texts)
    return _Pattern(set_name, entry["id"], regex, encoded, entry.get("remedy", ""), excepted)


def _require_a_hit(pattern: _Pattern, entry: dict[str, Any]) -> None:
    """Search for the lines that the entry names, or else for some that are made from its regex."""
    where = f"pattern set {pattern.set_name}: {pattern.id}"
    matches = entry.get("matches")
    if matches is None:
        if not any(_finds(pattern, line) for line in regex_samples.samples(entry["regex"])):
            raise PatternsError(
                f"{where}: no line is known that it finds: what it looks for is excepted, or is in no line; "
                f"if it is, give a list of such lines as matches"
            )
        return
    if not isinstance(matches, list) or not matches or not all(isinstance(line, str) for line in matches):
        raise PatternsError(f"{where}: matches: expected a list of lines")
    for line in matches:
        if not _finds(pattern, line.encode()):
            raise PatternsError(f"{where}: matches: {line!r} is not found by its regex, or is excepted")


def _finds(pattern: _Pattern, line: bytes) -> bool:
    search = LogSearch([pattern.set_name], {text: [pattern] for text in pattern.texts})
    try:
        return bool(search.scan(io.BytesIO(line))["counts"][pattern.set_name])
    except EvidenceError:
        return False


def _compiled(regex: str) -> re.Pattern[bytes]:
    compiled = re.compile(regex.encode())
    if compiled.search(b""):
        raise ValueError(f"regex {regex!r} matches an empty line, and so every line")
    return compiled


class LogSearch:
    """Pattern sets, compiled for searching."""

    def __init__(self, names: list[str], by_text: dict[bytes, list[_Pattern]]) -> None:
        self._names = names
        # A text that contains another one needs no search of its own: its patterns are tried where the other is found.
        anchors = [anchor for anchor in _ANCHORS if any(anchor in text for text in by_text)]
        known = [*anchors, *by_text]
        self._by_rest: dict[tuple[int, bytes], dict[bytes, list[_Pattern]]] = {}
        for text in known:
            if not any(other != text and other in text for other in known):
                patterns = [each for other, those in by_text.items() if text in other for each in those]
                self._by_rest.setdefault(_rest(text), {})[text] = patterns

    def scan(self, stream: BinaryIO, nonce: str | None = None) -> dict[str, Any]:
        """Return size, lines, SHA-256, hits by set with their counts, and the last end line that bears `nonce`.

        Raise EvidenceError for text that cannot be searched.
        """
        scan = _Scan(self._names, self._by_rest, nonce)
        digest = hashlib.sha256()
        size = 0
        rest = b""
        for block in iter(lambda: stream.read(BLOCK_BYTES), b""):
            size += len(block)
            digest.update(block)
            text = rest + block
            # A line that continues in the next block waits for it, up to the length at which it is cut.
            cut = text.rfind(b"\n") + 1
            keep = cut
            if len(text) - cut > BLOCK_BYTES:
                cut, keep = _cut(text)
            rest = text[keep:]
            scan.block(text[:cut])
        scan.block(rest)
        return scan.result(size, digest.hexdigest())


class _Scan:
    """One pass over one log."""

    def __init__(
        self, names: list[str], by_rest: dict[tuple[int, bytes], dict[bytes, list[_Pattern]]], nonce: str | None
    ) -> None:
        self._by_rest = by_rest
        self._nonce = nonce
        self._hits: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        self._counts = dict.fromkeys(names, 0)
        self._last_line = dict.fromkeys(names, 0)
        self._lines = 0
        self._ends_open = False
        self._end: dict[str, Any] | None = None
        self._other_end: dict[str, Any] | None = None

    def block(self, block: bytes) -> None:
        if not block:
            return
        wide = b"\0" in block and _WIDE.search(block.strip(b"\0"))  # a sparse file is quickly read
        if wide or (self._lines == 0 and block.startswith(_WIDE_MARKS)):
            raise EvidenceError("not_searchable", "it is in UTF-16 or UTF-32, in which no pattern can be found")
        if b"\x1b" in block:
            block = _ESCAPES.sub(b"", block)
        found: dict[tuple[int, int], set[_Pattern]] = {}
        # Quotations are hidden before a long line is looked at in parts: one that is cut has no end or no beginning.
        shown = _without((_QUOTED,), block) if _QUOTE_TEXT in block else block
        seldom = shown.translate(None, _COMMON[0])
        rests = (seldom, seldom.translate(None, _COMMON[1]))
        for (which, rest), texts in self._by_rest.items():
            if rest not in rests[which]:
                continue
            for text, patterns in texts.items():
                at = shown.find(text)
                while at >= 0:
                    start, stop = _segment(block, at)
                    found.setdefault((start, stop), set()).update(patterns)
                    at = shown.find(text, min(stop, at + MAX_SEGMENT - OVERLAP))
        self._find_end(block)
        line, position = self._lines + 1, 0
        for start, stop in sorted(found):
            line += block.count(b"\n", position, start)
            position = start
            self._judge(block[start:stop], shown[start:stop], found[start, stop], line)
        self._lines += block.count(b"\n")
        self._ends_open = not block.endswith(b"\n")

    def _judge(self, text: bytes, shown: bytes, patterns: set[_Pattern], line: int) -> None:
        for pattern in sorted(patterns, key=lambda entry: (entry.set_name, entry.id)):
            name = pattern.set_name
            # A long line is searched piece by piece, but still counts as one hit.
            if self._last_line[name] == line or not any(wanted in shown for wanted in pattern.texts):
                continue
            match = pattern.regex.search(shown) and pattern.regex.search(_without(pattern.excepted, shown))
            if not match:
                continue
            self._counts[name] += 1
            self._last_line[name] = line
            if len(self._hits[name]) < MAX_HITS:
                hit = {
                    "line": line,
                    "text": _quote_match(text, match),
                    "pattern": pattern.id,
                    "remedy": pattern.remedy,
                }
                self._hits[name].append(hit)

    def _find_end(self, block: bytes) -> None:
        """Find the first end line with the nonce, which nobody knew before, and check what follows it.

        If no nonce is asked for, the last end line counts: an earlier one may be another job's.
        """
        after = 0
        at = block.find(_END_TEXT)
        while at >= 0:
            start, stop = _segment(block, at)
            match = _END.fullmatch(block, start, stop)
            if match:
                end = {"job_id": match[1].decode(), "attempt": int(match[2]), "exit_code": int(match[3])}
                if not self._counts_as_end(match):
                    self._other_end = end
                elif self._end is None or self._nonce is None:
                    self._end, after = {**end, "after": None}, stop
            at = block.find(_END_TEXT, stop)
        if self._end is not None and self._end["after"] is None:
            self._end["after"] = self._foreign(block, after)

    def _counts_as_end(self, match: re.Match[bytes] | None) -> bool:
        return match is not None and (match[4] and match[4].decode()) == self._nonce

    def _foreign(self, block: bytes, position: int) -> dict[str, Any] | None:
        """Return the first line from `position` on that is not blank, Slurm's, or the other stream's end line."""
        for number, text in enumerate(block[position:].split(b"\n")):
            if text.strip() and not _SLURM.match(text) and not self._counts_as_end(_END.fullmatch(text)):
                return {"line": self._lines + 1 + block.count(b"\n", 0, position) + number, "text": quote(text)}
        return None

    def result(self, size: int, sha256: str) -> dict[str, Any]:
        return {
            "bytes": size,
            "lines": self._lines + self._ends_open,
            "sha256": sha256,
            "hits": self._hits,
            "counts": self._counts,
            "end": self._end,
            **({"other_end": self._other_end} if self._end is None and self._other_end else {}),
        }


def _rest(text: bytes) -> tuple[int, bytes]:
    """Return which rest of a block is to be searched for a text's own rest, and that."""
    seldom, rare = (text.translate(None, common) for common in _COMMON)
    return (1, rare) if len(rare) >= _ENOUGH else (0, seldom)


def _without(excepted: tuple[re.Pattern[bytes], ...], text: bytes) -> bytes:
    """Return the text at the same length, with line ends in place of what is excepted: no match spans them."""
    for entry in excepted:
        text = entry.sub(lambda match: b"\n" * len(match[0]), text)
    return text


def _cut(line: bytes) -> tuple[int, int]:
    """Return up to where a line that is too long is searched now, and from where on later, with what follows it."""
    quoted = line.rfind(_QUOTE_TEXT, len(line) - _QUOTE_BYTES)
    return (len(line), len(line) - OVERLAP) if quoted < 0 else (quoted, quoted)


def _segment(block: bytes, at: int) -> tuple[int, int]:
    """Return where the line around `at` begins and ends; a carriage return also ends one (progress bars)."""
    low = max(0, at - MAX_SEGMENT)
    start = max(block.rfind(b"\n", low, at), block.rfind(b"\r", low, at)) + 1
    high = min(len(block), at + MAX_SEGMENT)
    stop = block.find(b"\n", at, high)
    stop = high if stop < 0 else stop
    returned = block.find(b"\r", at, stop)
    return max(start, low), stop if returned < 0 else returned


def _quote_match(line: bytes, match: re.Match[bytes]) -> str:
    """Quote a line; of a long one, the part with the match, which may be anywhere in it."""
    left_out = match.start() - LEAD
    if match.end() <= LATE or left_out <= 0:
        return quote(line)
    return _bounded("…" + quote(line[left_out:]))


def quote(line: bytes) -> str:
    """Return a line of a log as text without terminal escapes, bounded in length."""
    return _bounded(scalars.printable(_ESCAPES.sub(b"", line).decode("utf-8", "replace")).strip())


def _bounded(text: str) -> str:
    return text if len(text) <= MAX_QUOTE else text[: MAX_QUOTE - 1] + "…"
