# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Query one of BeeGFS's command-line tools, with one time limit for all questions. PRIVATE to the collection.

An exit code of 0 proves nothing; only what was listed counts. beegfs-df and beegfs-check-servers exit with 0 while the
management daemon is dead, so the underlying tools are called instead.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import output
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.model import Parsed, Row, short
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.run import Result, search_path

TOOLS = ("beegfs", "beegfs-ctl")
# beegfs-ctl waits 600 s for a server's answer, twice; with this limit, 7 s. Known from 7.2.8, 7.3.2 and 7.4.0 on.
TIMEOUTS = "connMessagingTimeouts"
LIMITED = f"--{TIMEOUTS}=3000,3000,3000"

Runner = Callable[[list[str], float], Result]
Parse = Callable[[Result], Parsed]


def installed(cli: str) -> str | None:
    """Return the tool to use: `cli`, or for auto the newest one installed."""
    wanted = TOOLS if cli == "auto" else (cli,)
    return next((name for name in wanted if shutil.which(name, path=search_path())), None)


@dataclass(frozen=True)
class Question:
    """A question: the part of the facts it is for, the type of server, the command words, and the answer's parser."""

    part: str
    kind: str | None
    words: tuple[str, ...]
    parse: Parse
    limited: bool = False  # it queries servers, so LIMITED is added where the tool supports it


@dataclass(frozen=True)
class Answer:
    """The rows reported, and why they are incomplete or uncertain."""

    question: Question
    source: str
    rows: list[Row]
    problems: list[str]
    rc: int | None = None
    silent: bool = False

    @property
    def general(self) -> bool:
        """Return whether nothing was reported, for a cause that affects every other question too."""
        return not self.rows and any(output.cause(problem) in output.GENERAL for problem in self.problems)

    def _cause(self, problem: str) -> str | None:
        return output.cause(problem) or ("foreign" if self.rc == 0 else None)

    def told(self) -> list[Row]:
        """Return the problems as rows of the facts."""
        return [
            {
                "part": self.question.part,
                "type": self.question.kind,
                "source": self.source,
                "problem": problem,
                "cause": self._cause(problem),
            }
            for problem in self.problems
        ]


@dataclass
class Cli:
    """One tool and how it is called: the client's configuration (7.x) and the prefix (sudo -n)."""

    tool: str
    runner: Runner
    deadline: float
    config_file: str | None = None
    sudo: bool = False
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep
    end: float = field(init=False)
    _knows_timeouts: bool = True

    def __post_init__(self) -> None:
        self.end = self.clock() + self.deadline

    def left(self) -> float:
        """Return the seconds left for all questions."""
        return max(0.0, self.end - self.clock())

    def call(self, words: Sequence[str], seconds: float, *, limited: bool = False) -> Result:
        """Run the tool with these words; if the release does not support `limited`, retry once without it."""
        if seconds <= 0:
            return Result(None, failure=f"not queried: the {self.deadline:g} s allowed for BeeGFS's servers had passed")
        config = [f"--cfgFile={self.config_file}"] if self.tool == "beegfs-ctl" and self.config_file else []
        argv = [*(["sudo", "-n"] if self.sudo else []), self.tool, *words, *config]
        if not (limited and self.tool == "beegfs-ctl" and self._knows_timeouts):
            return self.runner(argv, seconds)
        began = self.clock()
        result = self.runner([*argv, LIMITED], seconds)
        if result.rc in (0, None) or TIMEOUTS not in result.out + result.err:
            return result
        self._knows_timeouts = False
        return self.call(words, seconds - (self.clock() - began))

    def ask(self, question: Question, seconds: float) -> Answer:
        """Ask one question and parse the answer. Output printed before the time ran out is kept."""
        result = self.call(question.words, seconds, limited=question.limited)
        parsed = question.parse(result)
        problems = parsed.problems
        if result.rc is None:
            problems = [short(result.failure)]
        source = " ".join([self.tool, *question.words])
        silent = output.NO_ANSWER in result.failure
        return Answer(question, source, parsed.rows, problems, result.rc, silent)

    def together(self, questions: Sequence[Question], share: float = 1.0, least: float = 0.0) -> list[Answer]:
        """Ask all questions at the same time; return the answers in order.

        They get `share` of the time left, and at least `least` seconds if that many are left.
        """
        if not questions:
            return []
        seconds = max(share * self.left(), min(least, self.left()))
        with ThreadPoolExecutor(len(questions)) as threads:
            return list(threads.map(lambda question: self.ask(question, seconds), questions))
