# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find credentials in a profile: by the form that a service gives them, by the key's name, and by how random they are.

What is found is never shown. Prose that names a credential and gives a value with a digit holds one, `secret:
none-since-2026` too, which is a false alarm. A line that ends in `# not-a-secret` is not asked how random it is. A
random word has upper and lower case and digits: those of one case cannot be told from digests and names. Nor can what
hyphens cut into three short parts or more be told from the name of a model or of a run.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from kit.profiles.findings import Finding, Place

# What services begin theirs with, and what stands around one in addresses and headers.
FORMS = {
    "an AWS access key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})",
    "a GitLab token": r"\bgl(?:pat|dt|rt|ptt|oas|cbt)-[\w-]{16,}",
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{20,}",
    "a Slack token": r"\b(?:xox[a-z]|xapp)-(?=[\w-]{0,40}[0-9])[\w-]{10,}",
    "a webhook of Slack": r"https://hooks\.slack\.com/(?:services|workflows)/[\w/]{10,}",
    "an API key of the form sk-": r"(?<![\w-])sk-(?:[A-Za-z0-9]+-)*(?=\w*[0-9])\w{20,}",
    "a Google API key": r"\bAIza[\w-]{30,}",
    "a token of Google's OAuth": r"\bya29\.[\w-]{20,}",
    "a JSON web token": r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\bAGE-SECRET-KEY-1[A-Z0-9]{20,}",
    "a password in an address": r"(?i:(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30})://[^\s/:@]*:(?!\$\{|<|\{\{)[^\s/@]+@",
    "a token in an address": r"[?&](?i:token|api_?key|access_?key|passw(?:or)?d|secret|sig)=(?!\$\{|<|\{\{)[^&\s]{8,}",
    "a key in an address": r"[?&](?i:key)=(?=[\w-]*[0-9])[\w-]{16,}",
    "a token as the user of an address": r"://(?=[\w-]*[0-9])[\w-]{20,}@",
    "a bearer token": r"(?i:\bbearer\s+)(?=[\w.~+/-]*[0-9])[\w.~+/-]{16,}=*",
    "a Vault token": r"\bhv[sbr]\.[\w-]{20,}|(?<![\w.])s\.(?=\w*[0-9])[A-Za-z0-9]{24}\b",
    "a SendGrid key": r"\bSG\.[\w-]{16,}\.[\w-]{16,}",
    "a W&B key": r"\bwandb_v\d+_[A-Za-z0-9_]{20,}",
    "a Databricks token": r"\bdapi[0-9a-f]{32}\b",
    "a Stripe key": r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    "an npm token": r"\bnpm_(?=\w{0,40}[0-9])[A-Za-z0-9]{30,}",
    "a PyPI token": r"\bpypi-(?=[\w-]{0,40}[0-9])[\w-]{40,}",
    "a DigitalOcean token": r"\bdo[opr]_v1_[0-9a-f]{64}\b",
    "an NVIDIA API key": r"\bnvapi-[\w-]{40,}",
    "a key of Azure's storage": r"\bAccountKey=[A-Za-z0-9+/]{40,}={0,2}",
    "a user and password of HTTP": r"(?i:\bauthorization:\s*basic\s+)[A-Za-z0-9+/]{8,}={0,2}",
}
_FORMS = {kind: re.compile(form) for kind, form in FORMS.items()}
# Tokens of a text, and what cuts it into them, are none of a service's.
_KEY = re.compile(
    r"(?i)pass(?:word|wd|phrase)(?!less)|pwd|secret(?!ar)|(?:access|api|auth|refresh)[-_]?token|token(?!i[sz]|s(?![a-z])|-mix)"
    r"|(?:api|private|access)[-_]?key|credential|key[-_]?file"
)
# Values under such a key that say where the secret is, and not what it is.
_ELSEWHERE = re.compile(r"\$\{.*\}|<.*>|\{\{.*\}\}|vault:.*|env:.*|[~.]?/.*|https?://.*", re.DOTALL)
_SHORTEST_NAMED = 8
# No part of a path, and no name of a file; slashes only where it is as long as what is coded in base 64.
_WORD = re.compile(
    r"(?<![\w/+=!@$%^&*.-])(?:[A-Za-z0-9+_=!@$%^&*-]{20,}|[A-Za-z0-9+][A-Za-z0-9+/]{30,}[A-Za-z0-9+]={0,2})"
    r"(?![\w/+=!@$%^&*-]|\.[a-z]{2,5}\b)"
)
# What prose says of a key: `password: x`, `the password is: x`, `{"password": "x"}`.
_SAID = re.compile(r"""(?<![\w-])([\w-]{1,60})(?:["']|\s{1,9}is)?\s{0,9}[:=]\s{0,9}(?=["']?(\S{8,200}))""")
# Random by nature and no secret: names of GPUs, UUIDs and digests.
_INNOCENT = re.compile(
    r"(?i:(?:GPU|MIG)-)?[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|(?i:sha(?:1|256|384|512)[-:=])[A-Za-z0-9+/=]+"
)
# As Llama-4-Scout-17B-16E and GPT2-1B-ZeRO3-8xH100-SXM5-80GB are; a random word is hardly ever cut so evenly.
_NAME = re.compile(r"[A-Za-z0-9]{1,10}(?:[-_][A-Za-z0-9]{1,10}){2,}")
HIDDEN = "(not shown)"
_BY_WORD = "looks like a credential, by the word before it"
_RANDOM = "looks like a credential, as it is random; if it is none, end the line with `# not-a-secret`"
_NO_SECRET = re.compile(r"#\s*not-a-secret\s*$")
RANDOM = 4.0  # bits per character
CHANGES = 0.42  # of kind from one character to the next: a random word has 0.62, ClassNamesLike2This 0.35 at most


def in_text(text: str) -> Iterator[Finding]:
    """Find what has a service's form on any line, and in comments what else gives a credential away."""
    for number, line in enumerate(text.split("\n"), 1):
        kind = form_of(line)
        comment = line.partition("#")[2]
        if kind:
            yield _finding((), f"looks like {kind}", number)
        elif said(comment):
            yield _finding((), _BY_WORD, number)
        elif random_word(comment) and not _NO_SECRET.search(line):
            yield _finding((), _RANDOM, number)


def in_values(value: Any, text: str, lines: dict[Place, int]) -> Iterator[Finding]:
    """Find values, and keys, that their form, a key's name or their randomness gives away; ``text`` is the whole file.

    A value that is not in the file, as it was changed, has the line of the nearest key around it.
    """
    written = text.split("\n")
    for place, found, is_key in _texts(value, ()):
        line = lines.get(place, 0)
        kind = form_of(found)
        if kind:
            yield _finding(place, f"looks like {kind}", line)
        elif not is_key and named(place, found):
            yield _finding(place, "looks like a credential, by its key", line)
        elif said(found):
            yield _finding(place, _BY_WORD, line)
        elif random_word(found) and not (found in text and _NO_SECRET.search(written[line - 1])):
            yield _finding(place, _RANDOM, line)


def form_of(text: str) -> str | None:
    """Return which service's form is in a text, None if none is."""
    return next((kind for kind, form in _FORMS.items() if form.search(text)), None)


def is_named(place: Place) -> bool:
    """Return whether the name of a key, or of a section around it, says that it is a credential or leads to one."""
    return any(isinstance(part, str) and _KEY.search(part) for part in place)


def said(text: str) -> list[str]:
    """Return the values of credentials in prose that says what they are."""
    found = ((key, value.strip("\"',;")) for key, value in _SAID.findall(text))
    return [value for key, value in found if re.search("[0-9]", value) and named((key,), value)]


def redacted(text: str) -> str:
    """Return a text without what looks like a credential by itself, or by the word before it."""
    for value in dict.fromkeys(said(text)):
        text = re.sub(rf"{re.escape(value)}[^\s\"']*", HIDDEN, text)  # of a long one `said` has the beginning
    for form in _FORMS.values():
        text = form.sub(HIDDEN, text)
    return _WORD.sub(lambda found: HIDDEN if random_word(found[0]) else found[0], text)


def named(place: Place, value: str) -> bool:
    """Return whether a key's name says that its value is a credential."""
    return is_named(place) and len(value) >= _SHORTEST_NAMED and not _ELSEWHERE.fullmatch(value)


def random_word(text: str) -> bool:
    """Return whether there is a word of upper and lower case and digits that is as random as a key."""
    for word in _WORD.findall(_INNOCENT.sub(" ", text)):
        kinds = (any(map(kind, word)) for kind in (str.islower, str.isupper, str.isdigit))
        if all(kinds) and not _NAME.fullmatch(word) and _bits(word) >= RANDOM and _changes(word) >= CHANGES:
            return True
    return False


def _bits(word: str) -> float:
    """Return the entropy of a word's characters, in bits each."""
    counts = Counter(word).values()
    return -sum(count / len(word) * math.log2(count / len(word)) for count in counts)


def _changes(word: str) -> float:
    """Return the share of neighbours that are of two kinds: upper or lower case, digits, others."""
    kinds = [(each.isupper(), each.islower(), each.isdigit()) for each in word]
    return sum(one != other for one, other in zip(kinds, kinds[1:])) / (len(word) - 1)


def _texts(value: Any, place: Place) -> Iterator[tuple[Place, str, bool]]:
    """Return all texts with their places, and whether each is the key of its place."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*place, key), key, True
            yield from _texts(inner, (*place, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _texts(inner, (*place, position))
    elif isinstance(value, str):
        yield place, value, False


def _finding(place: Place, why: str, line: int) -> Finding:
    advice = (
        "its value is not shown: remove it, replace it where it is in use, and give a file or the inventory's vault"
    )
    return Finding(place, f"{why}; {advice}", requirement="S4-12", line=line)
