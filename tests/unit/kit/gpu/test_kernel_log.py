# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel log: Xids in every form, how far back it reaches, and that an empty or foreign answer is no empty log."""

from __future__ import annotations

import json
import os
import stat
import typing as t
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.gpu import kernel_log
from kit.process.bounded import GivenUpError

BOOT = 1000.0
FIRST = b"[    0.000000] Linux version 6.1.0"


def read(*lines: bytes, access: str = "user", since: float | None = None) -> dict[str, t.Any]:
    return kernel_log.read(access, since, BOOT, 5.0, lambda _argv, _seconds: iter(lines))


def xid(stamp: float, code: int, pci: str = "0000:10:00") -> bytes:
    return f"[{stamp:12.6f}] NVRM: Xid (PCI:{pci}): {code}, pid=1, name=python, text".encode()


@pytest.mark.parametrize(
    ("text", "pci", "code"),
    [
        ("NVRM: Xid (PCI:0000:10:00): 79, pid=2310, name=python, GPU has fallen off the bus.", "0000:10:00", 79),
        ("NVRM: Xid (PCI:0000:10:00): 79, GPU has fallen off the bus.", "0000:10:00", 79),
        ("NVRM: Xid (0000:10:00): 79", "0000:10:00", 79),
        ("NVRM: Xid (PCI:0000:C1:00): 31, Ch 00000010", "0000:c1:00", 31),
        ("NVRM: Xid (PCI:00000008:06:00): 94", "0008:06:00", 94),
        ("NVRM: Xid (PCI:0000:10:00 GPU-I:05): 43, pid='<unknown>'", "0000:10:00", 43),
        ("NVRM: Xid (PCI:0000:10:00.0): 48", "0000:10:00", 48),
        ("NVRM: Xid (10:00): 13", "0000:10:00", 13),
        ("NVRM: Xid: something new", None, None),
        ("NVRM: Xid (PCI:0000:10:00): none", None, None),
    ],
)
def test_every_form_of_an_xid_is_known_or_kept_as_unknown(text: str, pci: str | None, code: int | None) -> None:
    assert kernel_log.xid_of(text, 5.0) == {"time": 5.0, "pci": pci, "code": code, "switch": False, "text": text}


@pytest.mark.parametrize(
    ("text", "pci", "code"),
    [
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", "0000:c1:00", 20034),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Grave, Link 30", "0000:c1:00", None),
        ("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 10004, TSENSE hot. Shutting Down", "0000:c1:00", 10004),
        ("nvidia-nvswitch0: SXid (something new)", None, None),
    ],
)
def test_a_switchs_error_is_listed_if_it_is_fatal_or_of_an_unknown_form(
    text: str, pci: str | None, code: int | None
) -> None:
    assert kernel_log.xid_of(text, 5.0) == {"time": 5.0, "pci": pci, "code": code, "switch": True, "text": text}


@pytest.mark.parametrize(
    "rest",
    [
        "Non-fatal, Link 44 Minion Link DLREQ interrupt",
        "Severity 0 Engine instance 44 Sub-engine instance 00",
        "Data {0x0000002b, 0x0000002b, 0x00000000}",
        "Correctable, Link 44 something",
    ],
)
def test_other_lines_of_a_switch_are_none(rest: str) -> None:
    assert kernel_log.xid_of(f"nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, {rest}", 5.0) is None


@pytest.mark.parametrize("rest", ["10004, NVSWITCH Temperature 95C", "10005, Thermal slowdown Disengaged"])
def test_a_switchs_temperature_is_no_error(rest: str) -> None:
    assert kernel_log.xid_of(f"nvidia-nvswitch3: SXid (PCI:0000:04:00.0): {rest}", 5.0) is None


@pytest.mark.parametrize(
    "text", ["NVRM: GPU at PCI:0000:10:00: GPU-1", "nvidia-modeset: Xid", "", "usb 1-1: new device"]
)
def test_other_lines_are_no_xids(text: str) -> None:
    assert kernel_log.xid_of(text, 5.0) is None


def test_xids_have_the_time_of_their_stamp() -> None:
    found = read(FIRST, b"[   12.500000] usb 1-1: new device", xid(20.25, 79))
    assert (found["error"], found["complete"], found["since"], found["more"]) == (None, True, BOOT, 0)
    assert [(item["time"], item["code"]) for item in found["xids"]] == [(1020.25, 79)]


def test_xids_before_the_asked_time_do_not_count() -> None:
    found = read(FIRST, xid(20, 79), xid(40, 13), since=1030.0)
    assert ([item["code"] for item in found["xids"]], found["complete"]) == ([13], True)


def test_a_buffer_that_has_lost_its_beginning_is_incomplete() -> None:
    assert read(b"[  500.000000] usb", xid(600, 79))["complete"] is False
    assert read(b"[  500.000000] usb", xid(600, 79))["oldest"] == BOOT + 500
    assert read(b"[  500.000000] usb", since=1400.0)["complete"] is False
    assert read(b"[  500.000000] usb", since=1600.0)["complete"] is True
    assert read(FIRST, since=10.0)["complete"] is False  # before the boot: dmesg cannot know


@pytest.mark.parametrize("lines", [(), (b"",), (b"no stamp at all", b"\xff\xfe"), (b"[x] y",)])
def test_a_log_without_a_kernel_line_was_not_read(lines: tuple[bytes, ...]) -> None:
    found = read(*lines)
    assert (found["error"], found["complete"], found["xids"]) == ("dmesg printed no kernel lines", False, [])


def test_without_a_boot_time_no_stamp_can_be_placed() -> None:
    found = kernel_log.read("user", None, None, 5.0, lambda *_: iter([FIRST]))
    assert "/proc/stat" in found["error"]


def test_no_access_is_not_read() -> None:
    found = read(FIRST, xid(1, 79), access="none")
    assert (found["source"], found["complete"], found["xids"]) == (None, False, [])
    assert found["error"].startswith("not read")


def test_a_storm_hides_neither_another_code_nor_the_latest() -> None:
    storm = [xid(10 + number / 100, 31) for number in range(5000)]
    found = read(FIRST, *storm[:4000], xid(55, 79), *storm[4000:])
    assert (len(found["xids"]), found["more"]) == (200, 4801)
    assert sum(item["code"] == 79 for item in found["xids"]) == 1
    assert found["xids"][-1]["time"] == pytest.approx(1059.99)
    assert [item["time"] for item in found["xids"]] == sorted(item["time"] for item in found["xids"])


def test_what_was_read_before_the_time_ran_out_is_kept() -> None:
    def slow(_argv: t.Sequence[str], _seconds: float) -> t.Iterator[bytes]:
        yield FIRST
        yield xid(3, 79)
        raise GivenUpError("dmesg did not end in 5 s")

    found = kernel_log.read("user", None, BOOT, 5.0, slow)
    assert (found["error"], found["complete"], len(found["xids"])) == ("dmesg did not end in 5 s", False, 1)


def journal(message: t.Any, stamp: int, **more: t.Any) -> bytes:
    return json.dumps({"MESSAGE": message, "__REALTIME_TIMESTAMP": str(stamp), **more}).encode()


def test_the_journal_of_this_boot_goes_by_the_kernels_stamps() -> None:
    found = read(
        journal("Linux version 6", 1_007_000_000, _SOURCE_MONOTONIC_TIMESTAMP="0"),
        journal(list(b"NVRM: Xid (PCI:0000:10:00): 79 \xff"), 1_020_000_000, _SOURCE_MONOTONIC_TIMESTAMP="13000000"),
        journal(None, 1_021_000_000),
        access="journal",
    )
    assert (found["source"], found["error"], found["complete"]) == ("journalctl", None, True)
    assert [(item["time"], item["code"]) for item in found["xids"]] == [(1013.0, 79)]


def test_both_looks_at_a_journal_share_the_time_there_is() -> None:
    asked: list[float] = []

    def run(_argv: t.Sequence[str], seconds: float) -> t.Iterator[bytes]:
        asked.append(seconds)
        return iter([journal("usb", 700_000_000)])

    kernel_log.read("journal", 500.0, BOOT, 5.0, run)
    assert asked[0] == 5.0
    assert 4.0 < asked[1] < 5.0


def test_a_journal_reaches_back_if_it_has_something_older() -> None:
    asked: list[t.Sequence[str]] = []

    def run(argv: t.Sequence[str], _seconds: float) -> t.Iterator[bytes]:
        asked.append(argv)
        stamp = 400_000_000 if "--lines=1" in argv else 700_000_000
        return iter([journal("NVRM: Xid (PCI:0000:10:00): 79", stamp)])

    found = kernel_log.read("journal", 500.0, BOOT, 5.0, run)
    assert (found["complete"], [item["time"] for item in found["xids"]]) == (True, [700.0])
    assert "--since=@500" in asked[0]
    assert "--until=@500" in asked[1]


@pytest.mark.parametrize(
    "line", [b"-- No entries --", b'{"MESSAGE": [300], "__REALTIME_TIMESTAMP": "1"}', b'{"MESSAGE": "x"}']
)
def test_a_journal_in_another_form_was_not_read(line: bytes) -> None:
    found = read(line, access="journal")
    assert found["error"].startswith("journalctl printed output of an unknown form")
    assert found["complete"] is False


def test_an_unprivileged_users_journal_is_empty_and_not_read() -> None:
    assert read(access="journal")["error"] == "journalctl printed no kernel lines"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[[str, str], None]:
    """Put a shell script of a name first on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def make(name: str, text: str) -> None:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return make


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (
            "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1",
            "dmesg answered 1: dmesg: read",
        ),
        ("exec sleep 60", "dmesg did not end in 0.2 s"),
        ("while :; do echo foreign; done", "dmesg did not end in 0.2 s"),
        ("exit 0", "dmesg printed no kernel lines"),
        ("kill -SEGV $$", "dmesg answered -11"),
    ],
)
def test_a_command_that_fails_is_an_error(program: t.Callable[[str, str], None], script: str, error: str) -> None:
    program("dmesg", script)
    found = kernel_log.read("user", None, BOOT, 0.2 if "did not end" in error else 30)
    assert found["error"].startswith(error)
    assert found["complete"] is False


def test_sudo_asks_no_password(program: t.Callable[[str, str], None]) -> None:
    program(
        "sudo",
        '[ "$1 $2 $LC_ALL" = "-n dmesg C" ] && printf "[ 0.000000] Linux\\n[ 9.0] NVRM: Xid (0000:10:00): 79\\n"',
    )
    found = kernel_log.read("sudo", None, BOOT, 5.0)
    assert (found["error"], found["complete"], len(found["xids"])) == (None, True, 1)


def test_a_missing_command_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert kernel_log.read("user", None, BOOT, 5.0)["error"] == "dmesg: No such file or directory"


@given(st.lists(st.binary(max_size=80) | st.builds(lambda text: b"[ 1.0] NVRM: Xid " + text, st.binary(max_size=40))))
def test_no_line_makes_it_fail(lines: list[bytes]) -> None:
    for access in ("user", "journal"):
        found = read(*lines, access=access)
        json.dumps(found, allow_nan=False)
        assert found["complete"] is False or found["error"] is None


@given(st.floats(0, 1e9), st.integers(0, 999_999), st.integers(0, 255))
def test_every_well_formed_xid_is_found(stamp: float, code: int, bus: int) -> None:
    (found,) = read(FIRST, xid(stamp, code, f"0000:{bus:02x}:00"))["xids"]
    assert (found["code"], found["pci"]) == (code, f"0000:{bus:02x}:00")
