# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read options as sbatch does, by getopt: long names may be abbreviated, short ones joined (-Oa0-3). Pure.

Anything that may be an option is treated as one, even if it is the value of the word before it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

# Options that would change the nature of a submission, or that slurm_job sets.
REFUSED = {
    "array": "one entry is one job: write one entry per task under jobs",
    "clusters": "jobs are waited for on the cluster of this login node",
    "comment": "the comment carries the content hash by which a second run finds the job",
    "hold": "a held job never starts by itself",
    "wait": "waiting is this module's own task (wait: true)",
    "wrap": "give the text as script",
    "test-only": "use check mode",
    "parsable": "it is set by this module",
    "chdir": "use the chdir option",
    "help": "it submits nothing",
    "usage": "it submits nothing",
    "version": "it submits nothing",
}
# In a script these are harmless: those of the command line take precedence.
_HARMLESS_IN_SCRIPTS = ("comment", "parsable", "chdir")
_SHORT = {
    "a": "array",
    "M": "clusters",
    "H": "hold",
    "W": "wait",
    "D": "chdir",
    "h": "help",
    "u": "usage",
    "V": "version",
    "J": "job-name",
}
# Short options with a value, which is the rest of their word or else the next word; and valid forms of the rest.
_WITH_VALUE = "AaBbCcDdeFGiJkLMmNnopqSstwx"
_REST = {
    **dict.fromkeys(("-B", "-c", "-N", "-n", "-S"), re.compile(r"[0-9*][0-9kKmM*:,-]*", re.ASCII)),
    "-k": re.compile(r"off|"),
    "-s": re.compile(r"yes|no|user|mcs|topo|"),
}
_SPACE = " \t\v\f\r"  # what C's isspace() accepts within a line
# How a directive begins, the second by an old name that sbatch still reads (_opt_batch_script in its opt.c).
_DIRECTIVES = (b"#SBATCH", b"#SLURM")
_FOREIGN = (b"#PBS", b"#BSUB")


def is_short_for(key: str, name: str) -> bool:
    """Return whether getopt would take `key` for `name`, as far as is known without all of sbatch's names."""
    return bool(key) and name.startswith(key)


def refusal(key: str) -> str | None:
    """Return why the long option `key`, possibly abbreviated, cannot be given; None if it can."""
    name = next((name for name in REFUSED if is_short_for(key, name)), None)
    return None if name is None else _told(key, name)


def refusal_of_directive(word: str) -> str | None:
    """Return why a word of a script's directives is not allowed; None if it is."""
    plain = word.replace("\\", "")  # Slurm removes them within quotes too
    if plain.lower() in ("hetjob", "packjob"):
        return "one entry is one job"
    for key, rest in _options(plain):
        names = [name for name in REFUSED if is_short_for(key, name)]
        wrong = [name for name in names if name not in _HARMLESS_IN_SCRIPTS]
        if wrong:
            return _told(key, wrong[0])
        if key in _REST and rest and not _REST[key].fullmatch(rest):
            return f"{rest!r} is not a value of {key}: write every option as a separate word"
    return None


def _told(key: str, name: str) -> str:
    return REFUSED[name] if key == name else f"it is short for {name}, and {REFUSED[name]}"


def _options(word: str) -> Iterator[tuple[str, str | None]]:
    """Yield the options in one word, each with what follows it there: its value, if it takes one."""
    if word.startswith("--"):
        key, sign, value = word[2:].partition("=")
        yield key, value if sign else None
    elif word.startswith("-"):
        for position, letter in enumerate(word[1:], 2):
            yield _SHORT.get(letter, f"-{letter}"), word[position:] or None
            if letter in _WITH_VALUE:
                return


def value_of(name: str, words: Iterable[str]) -> str | None:
    """Return the last value given to a long option in these words; None if there is none."""
    found, is_next = None, False
    for word in words:
        if is_next:
            found, is_next = word, False
            continue
        for key, value in _options(word):
            if is_short_for(key, name):
                found, is_next = (found, True) if value is None else (value, False)
    return found


def directives(script: bytes) -> list[str]:
    """Return the words of the script's #SBATCH and #SLURM lines, which end at its first command."""
    words: list[str] = []
    for line in _header(script):
        begins = next((each for each in _DIRECTIVES if line.startswith(each)), None)
        if begins is not None:
            text = line[len(begins) :].decode("utf-8", "replace")
            lexer = shlex.shlex(text, posix=True)
            lexer.whitespace, lexer.whitespace_split = _SPACE, True
            try:
                words.extend(lexer)
            except ValueError:
                words.extend(text.split())
    return words


def foreign_directive(script: bytes) -> str | None:
    """Return the first line for another scheduler, from which sbatch would also take options; None without one."""
    found = next((line for line in _header(script) if line.startswith(_FOREIGN)), None)
    return None if found is None else found.decode("utf-8", "replace")


def _header(script: bytes) -> Iterator[bytes]:
    for line in script.split(b"\n"):
        if line.strip() and not line.lstrip().startswith(b"#"):
            return
        yield line
