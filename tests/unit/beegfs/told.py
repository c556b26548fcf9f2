# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the servers' part of the facts is where the tools answer as in a scenario; nothing is run."""

from __future__ import annotations

import importlib.util
import json
import re
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.cli import Cli
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.output import NO_ANSWER
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.run import Result
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.servers import servers
from hpcval_cluster import beegfs

from tests.unit.beegfs.host import STAND_IN
from tests.unit.conftest import ROOT

FIXTURES = ROOT / "tests/fixtures/beegfs"
Json = dict[str, t.Any]
_SPEC = importlib.util.spec_from_file_location("beegfs_stand_in", STAND_IN)
STAND_IN_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(STAND_IN_MODULE)


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


class Tool:
    """A tool that answers as in these scenarios; `first` goes before them. What it was asked is kept in `asked`."""

    def __init__(self, *scenarios: str, first: t.Sequence[Json] = ()) -> None:
        self.name = "beegfs" if "v8" in scenarios else "beegfs-ctl"
        plan = beegfs.plan(list(scenarios))
        self.answers = [*first, *json.loads(plan[f"{self.name}/answers.json"])["answers"]]
        self.asked: list[list[str]] = []
        self.clock = Clock()

    def __call__(self, argv: list[str], seconds: float, **_options: t.Any) -> Result:
        self.asked.append(argv)
        words = argv[argv.index(self.name) + 1 :]
        answer = next((each for each in self.answers if STAND_IN_MODULE.fits(each["words"], words)), None)
        assert answer is not None, words
        if answer.get("seconds", 0) > seconds:
            failure = f"{self.name} {NO_ANSWER} in {seconds:g} s"
            return Result(None, answer.get("at_once", ""), "", failure)
        return Result(answer["rc"], answer.get("at_once", "") + answer["out"], answer["err"])

    def cli(self, deadline: float = 30.0, **options: t.Any) -> Cli:
        return Cli(self.name, self, deadline, clock=self.clock, wait=self.clock.wait, **options)

    def told(self, user: str | None = "1000", **options: t.Any) -> Json:
        return servers(self.cli(**options), user)


def told(*scenarios: str, first: t.Sequence[Json] = ()) -> Json:
    """The servers' part of the facts that such answers make."""
    return Tool(*scenarios, first=first).told()


def output(name: str) -> Json:
    """The output of a fixture NAME.rcN[.stderr].txt, on the streams that it names."""
    (path,) = (FIXTURES / name).parent.glob(f"{Path(name).name}.rc*.txt")
    code = int(re.search(r"\.rc(\d)", path.name)[1])
    text = path.read_text()
    return {"rc": code, "out": "", "err": text} if ".stderr." in path.name else {"rc": code, "out": text, "err": ""}


def instead(name: str, *words: str) -> Json:
    """The answer to what these words and any others ask: the output of a fixture."""
    return {"words": [*words, "..."], **output(name)}


def answer(*words: str, out: str = "", err: str = "", rc: int = 0, seconds: float = 0) -> Json:
    """An answer to what these words and any others ask."""
    return {"words": [*words, "..."], "out": out, "err": err, "rc": rc, "seconds": seconds}
