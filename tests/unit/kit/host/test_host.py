# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host tells of itself, over commands put on PATH."""

from __future__ import annotations

import http.server
import json
import threading
import typing as t
from pathlib import Path

import jsonschema
import pytest
from kit.host import facts as host_facts
from kit.job import Job

SCHEMAS = Path(__file__).resolve().parents[4] / "files" / "schemas"
UNMUNGE = 'cat > /dev/null; echo "STATUS:          Success (0)"'


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[[str, str], None]:
    """(name, shell text): puts such a command on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def make(name: str, text: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    return make


def test_munge_makes_a_round_trip(commands: t.Callable[[str, str], None]) -> None:
    commands("munge", "echo MUNGE:abc:")
    commands("unmunge", UNMUNGE)
    assert host_facts.munge() == {"ok": True, "error": None}


@pytest.mark.parametrize(
    ("munge", "unmunge", "words"),
    [
        ("echo no socket >&2; exit 6", UNMUNGE, "munge exited with 6: no socket"),
        (
            "echo MUNGE:abc:",
            'cat > /dev/null; echo "STATUS: Expired credential (15)"; exit 15',
            "unmunge exited with 15",
        ),
        ("echo MUNGE:abc:", 'cat > /dev/null; echo "STATUS: Rewound credential (16)"', "unmunge printed"),
        ("echo MUNGE:abc:", "cat > /dev/null", "unmunge printed ''"),
    ],
)
def test_a_broken_munge_says_why(commands: t.Callable[[str, str], None], munge: str, unmunge: str, words: str) -> None:
    commands("munge", munge)
    commands("unmunge", unmunge)
    told = host_facts.munge()
    assert told["ok"] is False
    assert words in told["error"]


def test_a_command_that_hangs_is_given_up(commands: t.Callable[[str, str], None]) -> None:
    commands("hang", "exec sleep 60")
    assert host_facts.ask(["hang"], seconds=0.2) == {"ok": False, "out": "", "error": "hang did not end within 0.2 s"}


def test_a_command_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert host_facts.munge() == {"ok": False, "error": "munge: No such file or directory"}
    assert host_facts.apptainer()["error"] == "apptainer is not on PATH"


VERSION = '[ "$1" = --version ] && echo "apptainer version 1.4.5-2"'


def test_apptainer_tells_its_version_and_what_a_container_sees(commands: t.Callable[[str, str], None]) -> None:
    seen = "device /dev/nvidia0\\nlibrary /.singularity.d/libs/libcuda.so.1\\n"
    commands("apptainer", f'{VERSION} || printf "{seen}"')
    told = host_facts.apptainer("/images/x.sif")
    assert told["version"] == "1.4.5"
    assert told["image"] == {
        "path": "/images/x.sif",
        "devices": ["/dev/nvidia0"],
        "libraries": ["libcuda.so.1"],
        "error": None,
    }


def test_an_image_that_does_not_start_is_an_error(commands: t.Callable[[str, str], None]) -> None:
    commands("apptainer", VERSION + " || { echo FATAL: no image >&2; exit 255; }")
    assert "FATAL: no image" in host_facts.apptainer("/images/x.sif")["image"]["error"]


class _Answer(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, *_other: t.Any) -> None:
        pass


def test_a_server_that_answers_is_reached_whatever_it_answers_and_a_password_stays_unsaid() -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), _Answer)
    threading.Thread(target=server.handle_request, daemon=True).start()
    told = host_facts.reachable(f"http://user:secret@127.0.0.1:{server.server_port}/simple")
    server.server_close()
    assert told == {"host": "127.0.0.1", "ok": True, "error": None}


def test_nobody_there_is_told() -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), _Answer)
    port = server.server_port
    server.server_close()
    told = host_facts.reachable(f"http://127.0.0.1:{port}/")
    assert told["ok"] is False
    assert "refused" in told["error"]


def test_the_devices_that_open_and_those_that_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nvidia0", "nvidia1", "nvidia2", "nvidiactl"):
        (tmp_path / name).touch()
    refusals: dict[str, OSError] = {"nvidia1": PermissionError(1, "no"), "nvidia2": OSError(6, "no such device")}
    real = host_facts.os.open

    def opened(path: str, *rest: t.Any) -> int:
        error = refusals.get(Path(path).name)
        if error:
            raise error
        return real(path, *rest)

    monkeypatch.setattr(host_facts.os, "open", opened)
    told = host_facts.devices(tmp_path)
    assert [Path(path).name for path in told["present"]] == ["nvidia0", "nvidia1", "nvidia2"]
    assert [Path(path).name for path in told["openable"]] == ["nvidia0", "nvidia2"]


def test_the_document_fits_its_schema(commands: t.Callable[[str, str], None]) -> None:
    commands("munge", "exit 1")
    schema = json.loads((SCHEMAS / "host.json").read_text())
    facts = host_facts.facts(Job("7", 0), image=None, reach=[], index=False)
    jsonschema.validate(facts, schema)
    jsonschema.validate(json.loads((SCHEMAS / "examples" / "host.json").read_text()), schema)


def test_a_damaged_file_is_as_good_as_none(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": ')
    assert host_facts.read_json(tmp_path / "x.json") is None


def test_a_machine_is_told_by_its_boot_id(tmp_path: Path) -> None:
    (tmp_path / "boot_id").write_text("6f3c1b5e-8f0e\n")
    assert host_facts.boot_id(tmp_path / "boot_id") == "6f3c1b5e-8f0e"
    (tmp_path / "boot_id").write_text("\n")
    assert host_facts.boot_id(tmp_path / "boot_id") is None
    (tmp_path / "boot_id").write_bytes(b"\xff")
    assert host_facts.boot_id(tmp_path / "boot_id") is None
    assert host_facts.boot_id(tmp_path / "none") is None


def test_the_systems_name_comes_from_os_release(tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text('ID=debian\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"\n\n')
    assert host_facts.os_name(tmp_path / "os-release") == "Debian GNU/Linux 13 (trixie)"
    assert host_facts.os_name(tmp_path / "none") is None
