# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets reach a command by its environment, and are never said where they cannot be read."""

from __future__ import annotations

import io
import os
import sys
import traceback

import pytest
from kit.errors import KitError
from kit.process import environment


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str], dict[str, str]]]:
    calls: list[tuple[str, list[str], dict[str, str]]] = []
    monkeypatch.setattr(os, "execvpe", lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(os, "environ", {"A": "1", "B": "2"})
    return calls


def test_the_command_gets_the_variables_beside_its_own(became: list[tuple[str, list[str], dict[str, str]]]) -> None:
    environment.run(("stage", "--x"), io.BytesIO(b'{"HF_TOKEN": "secret", "B": 3}'))
    ((program, argv, variables),) = became
    variables.pop("PYTEST_CURRENT_TEST", None)
    assert (program, argv) == ("stage", ["stage", "--x"])
    assert variables == {"A": "1", "B": "3", "HF_TOKEN": "secret"}


@pytest.mark.parametrize(
    "given",
    [
        b"secret",
        b'["secret"]',
        b'"secret"',
        b'{"secret": ',
        b'{"secret": 1, "secret": 2}',
        b"\xffsecret",
        b"[" * 200_000 + b"secret",
        b"",
    ],
)
def test_what_cannot_be_read_is_not_repeated(became: list[tuple[str, list[str], dict[str, str]]], given: bytes) -> None:
    with pytest.raises(KitError) as caught:
        environment.run(["stage"], io.BytesIO(given))
    assert "secret" not in "".join(traceback.format_exception(*sys.exc_info(), limit=0)) + str(caught.value)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert became == []


def test_no_command_is_an_error(became: list[tuple[str, list[str], dict[str, str]]]) -> None:
    with pytest.raises(KitError, match="no command"):
        environment.run([], io.BytesIO(b"{}"))
    assert became == []


def test_no_more_is_read_than_a_mebibyte(became: list[tuple[str, list[str], dict[str, str]]]) -> None:
    stream = io.BytesIO(b"{}" + b" " * (1 << 20))
    environment.run(["stage"], stream)
    assert stream.tell() == 1 << 20
    assert len(became) == 1
