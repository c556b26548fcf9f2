# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests.mutation changes, and that a trial of it can be won and lost."""

from __future__ import annotations

import ast

import pytest

from tests.mutation.changes import changes
from tests.mutation.targets import MutationError, read_targets
from tests.unit.conftest import ROOT


def mutants(source):
    """Return the source of each mutant of `source`."""
    tree = ast.parse(source)
    before = ast.dump(tree)
    found = [ast.unparse(tree) for _change in changes(tree)]
    assert ast.dump(tree) == before
    return found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", {"x = a <= b", "x = a >= b"}),
        ("x = a == b", {"x = a != b"}),
        ("x = a is None", {"x = a is not None"}),
        ("x = a in b", {"x = a not in b"}),
        ("x = a and b", {"x = a or b", "x = a", "x = b"}),
        ("x = not a", {"x = a"}),
        ("x = a + b", {"x = a - b"}),
        ("x = 1", {"x = 2"}),
        ("x = 1e30", {"x = 2e+30"}),
        ("x = True", {"x = False"}),
        ("x = 'pass'", {"x = 'fail'", "x = 'undetermined'"}),
        ("x = 'undetermined'", {"x = 'pass'", "x = 'fail'"}),
        ("x = 'waived'", {"x = 'pass'"}),
        ("x = all(y)", {"x = any(y)"}),
        ("x = {'a', 'b'}", {"x = {'a'}", "x = {'b'}"}),
        ("x = {'a': y, 'b': z}", {"x = {'a': y}", "x = {'b': z}"}),
        ("demand(x)", {"pass"}),
        ("raise E", {"pass"}),
        ("if a:\n    return_ = b", {"if False:\n    return_ = b", "if True:\n    return_ = b"}),
        ("x = [a for a in b if a]", {"x = [a for a in b if False]", "x = [a for a in b if True]"}),
        ("x = a if b else c", {"x = a if False else c", "x = a if True else c"}),
    ],
)
def test_each_kind_of_change(source, expected):
    assert set(mutants(source)) == expected
    tree = ast.parse(source)
    for _change in changes(tree):
        compile(tree, "mutant", "exec")  # else it would seem to be killed


@pytest.mark.parametrize(
    "source",
    ["x: 'pass' = y", "def f() -> 'pass':\n    'pass: words'", "x = f'pass {a < b}'", "@memo(1)\ndef f():\n    z"],
)
def test_words_and_types_are_left_alone(source):
    assert mutants(source) == []


def test_a_change_says_where_it_is():
    (change,) = changes(ast.parse("class A:\n    def f(self):\n        return not x"))
    assert (change.line, str(change)) == (3, "A.f: not x -> x")


def test_the_targets_are_there():
    for target in read_targets([]):
        assert (ROOT / target.path).is_file()
        assert all((ROOT / path).is_file() for path in target.tests)
        names = [str(change) for change, _mutant in target.mutants()]
        assert [names.count(name) for name in target.equivalent] == [1] * len(target.equivalent)
        assert all(target.equivalent.values())


JUDGE = (
    *(
        "applies",
        "baseline",
        "bounds",
        "checker",
        "comparisons",
        "criterion",
        "job",
        "legs",
        "logs",
        "notes",
        "overrides",
        "query",
    ),
    *("reader", "references", "rows", "saved", "soundness", "sources", "spec", "verdicts"),
)


def test_the_whole_judge_is_a_target():
    judge = {f"plugins/plugin_utils/_judge/{name}.py" for name in JUDGE}
    assert judge == {target.path for target in read_targets(["_judge"])}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("_common/scalars", ["plugins/module_utils/_common/scalars.py"]),
        ("scal*", ["plugins/module_utils/_common/scalars.py"]),
        ("sbatch", []),
        (
            "job",
            [
                "plugins/module_utils/_slurm/job.py",
                "plugins/plugin_utils/_judge/job.py",
                "roles/workload/templates/job.sbatch.j2",
            ],
        ),
    ],
)
def test_targets_are_called_by_file_or_folder(name, found):
    if not found:
        with pytest.raises(MutationError, match=name):
            read_targets([name])
    else:
        assert sorted(target.path for target in read_targets([name])) == found
