# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installing a locked environment from a folder of wheels: whole, verified, once, or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import typing as t
import zipfile
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.process import locks
from kit.runtime import installers, venv

UV = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def make_wheel(folder: Path, name: str = "tiny", source: str = "VALUE = 42\ndef main(): print(VALUE)\n") -> Path:
    """Write a wheel of one module with one console script."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        f"{name}.py": source,
        f"{name}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{name}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}-1.0.dist-info/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    record = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(text)}")
    files[f"{name}-1.0.dist-info/RECORD"] = "\n".join([*record, f"{name}-1.0.dist-info/RECORD,,", ""])
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel


class Site:
    """A share with room for environments, a wheel folder and a lock."""

    def __init__(self, folder: Path) -> None:
        self.root, self.wheelhouse, self.lock = (
            folder / "a share; 'x'" / "venvs",
            folder / "wheels",
            folder / "tiny.txt",
        )
        self.wheel = make_wheel(self.wheelhouse)
        self.write_lock()

    def write_lock(self, header: str = "# verify: tiny", digest: str | None = None) -> None:
        digest = digest or hashlib.sha256(self.wheel.read_bytes()).hexdigest()
        self.lock.write_text(f"{header}\ntiny==1.0 \\\n    --hash=sha256:{digest}\n")

    def install(self, installer: str = "auto", **options: t.Any) -> dict[str, t.Any]:
        source = installers.Source(wheelhouse=self.wheelhouse)
        tools = installers.Tools(installer, None if installer == "pip" else UV)
        return venv.install("py", self.lock, self.root, source=source, tools=tools, **options)

    def left(self) -> list[str]:
        """What is in the root beside locks and caches."""
        if not self.root.exists():
            return []
        return sorted(
            path.name for path in self.root.iterdir() if not path.name.endswith(".lock") and path.name != ".cache"
        )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_an_environment_is_installed_once_and_works_where_it_lies(site: Site, installer: str) -> None:
    first = site.install(installer)
    assert first["changed"] is True
    assert first["installer"].startswith(installer)
    assert site.left() == [first["key"]]
    run = subprocess.run([Path(first["path"], "bin", "tiny")], capture_output=True, text=True, check=True)
    assert run.stdout == "42\n"
    about = json.loads(Path(first["path"], "runtime.json").read_text())
    assert about["lock_sha256"] == hashlib.sha256(site.lock.read_bytes()).hexdigest()
    assert about["packages"]["tiny"] == "1.0"
    again = site.install(installer)
    assert again["changed"] is False
    assert again["path"] == first["path"]
    assert site.left() == [first["key"]]


def test_the_key_names_lock_python_and_architecture(site: Site) -> None:
    planned = site.install(check=True)
    assert planned["changed"] is True
    assert site.left() == []
    digest = hashlib.sha256(site.lock.read_bytes()).hexdigest()[:12]
    major, minor = sys.version_info[:2]
    assert planned["key"] == f"py-{digest}-py{major}.{minor}-{os.uname().machine}"
    site.write_lock("# verify: tiny\n# changed")
    assert site.install(check=True)["key"] != planned["key"]


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_wheel_with_another_hash_is_refused(site: Site, installer: str) -> None:
    site.write_lock(digest="0" * 64)
    with pytest.raises(KitError, match=r"(?i)hash"):
        site.install(installer)
    assert site.left() == []


def test_an_environment_that_does_not_import_is_never_used(site: Site) -> None:
    site.wheel = make_wheel(site.wheelhouse, source="raise ImportError('libcudart.so is missing')\n")
    site.write_lock()
    with pytest.raises(KitError, match=r"(?s)does not work.*libcudart"):
        site.install()
    assert site.left() == []


def test_a_missing_wheel_is_named(site: Site) -> None:
    site.wheel.unlink()
    with pytest.raises(KitError, match="tiny"):
        site.install()
    assert site.left() == []


def test_an_environment_whose_python_is_gone_is_made_anew(site: Site) -> None:
    first = site.install()
    python = Path(first["python"])
    python.unlink()
    python.symlink_to("/nonexistent/python3")
    assert site.install()["changed"] is True
    assert subprocess.run([first["python"], "-c", "import tiny"], check=False).returncode == 0
    assert site.left() == [first["key"]]


def test_a_half_made_folder_under_the_final_name_is_replaced(site: Site) -> None:
    target = Path(site.install(check=True)["path"])
    (target / "bin").mkdir(parents=True)
    assert site.install()["changed"] is True
    assert (target / "runtime.json").is_file()
    assert site.left() == [target.name]


def test_what_a_dead_installer_left_is_removed_and_a_living_ones_elsewhere_is_not(site: Site) -> None:
    key = site.install(check=True)["key"]
    site.root.mkdir(parents=True)
    dead = site.root / f".building-{key}-{os.uname().nodename}-1"
    alive = site.root / f".building-{key}-othernode-1"
    abandoned = site.root / f".building-{key}-thirdnode-1"
    for folder in (dead, alive, abandoned):
        (folder / "bin").mkdir(parents=True)
    os.utime(abandoned, (0, 0))
    site.install()
    assert site.left() == sorted([alive.name, key])


def command(site: Site, root: Path) -> tuple[list[str], dict[str, str]]:
    arguments = [
        "--name",
        "py",
        "--lock",
        str(site.lock),
        "--root",
        str(site.root),
        "--wheelhouse",
        str(site.wheelhouse),
    ]
    environment = {**os.environ, "PYTHONPATH": str(root / "files")}
    return [sys.executable, "-m", "kit", "runtime", *arguments, "--uv", str(UV)], environment


def test_installers_at_once_make_one_environment(site: Site, root: Path) -> None:
    arguments, environment = command(site, root)
    processes = [subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE) for _each in range(3)]
    answers = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(answer["changed"] for answer in answers) == [False, False, True]
    assert len({answer["path"] for answer in answers}) == 1
    assert site.left() == [answers[0]["key"]]


def test_where_locks_do_not_reach_the_first_rename_wins(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    verify = venv._verify
    rival: dict[str, t.Any] = {}

    def overtaken(building: Path, lock: venv.Lock) -> dict[str, str]:
        versions = verify(building, lock)
        if not rival:
            rival["started"] = True
            monkeypatch.setattr("socket.gethostname", lambda: "othernode")
            rival.update(site.install())
        return versions

    monkeypatch.setattr(locks.fcntl, "flock", lambda *_: None)  # every installer believes it is alone
    monkeypatch.setattr(venv, "_verify", overtaken)
    answer = site.install()
    assert rival["changed"] is True
    assert answer["path"] == rival["path"]
    assert Path(answer["python"]).samefile(rival["python"])
    assert site.left() == [answer["key"]]


def read_within(descriptor: int, seconds: float) -> bytes | None:
    """Return what there is to read, b"" at the end, None when nothing comes in time."""
    ready, _other, _other = select.select([descriptor], [], [], seconds)
    return os.read(descriptor, 100) if ready else None


def test_a_terminated_installer_leaves_nothing_and_stops_its_child(site: Site, root: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "held by uv while it lives"
    os.mkfifo(fifo)
    slow = tmp_path / "uv"  # stand-in for uv: makes the folder, says so and hangs
    slow.write_text(f"#!/bin/bash\nmkdir -p \"${{@: -1}}\"; exec 9>'{fifo}'; echo begun >&9; exec sleep 100\n")
    slow.chmod(0o755)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    arguments, environment = command(site, root)
    process = subprocess.Popen([*arguments[:-1], str(slow)], env=environment)
    assert read_within(reading, 30) == b"begun\n"
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM
    assert read_within(reading, 30) == b"", "uv's stand-in lives on"
    os.close(reading)
    assert site.left() == []


def test_a_python_outside_the_lock_is_refused(site: Site) -> None:
    site.write_lock("# python: 3.0 3.1")
    with pytest.raises(KitError, match=r"covers 3\.0 to 3\.1.*--python"):
        site.install()
    site.write_lock("# python: 4.0 4.9")
    with pytest.raises(KitError, match=r"covers 4\.0"):
        site.install()


def test_too_little_space_is_told_before_anything_is_installed(site: Site) -> None:
    site.write_lock(f"# needs-mb: {10**9}")
    with pytest.raises(KitError, match=r"MB free.*needs about 1000000000 MB"):
        site.install()
    assert site.left() == []


def test_a_lock_without_hashes_is_refused(site: Site) -> None:
    site.lock.write_text("tiny==1.0\n")
    with pytest.raises(KitError, match="no hashes"):
        site.install()


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_lock_that_lacks_one_hash_is_refused(site: Site, installer: str) -> None:
    make_wheel(site.wheelhouse, "other")
    site.lock.write_text(site.lock.read_text() + "other==1.0\n")
    with pytest.raises(KitError, match=r"(?is)hash.*other==1\.0"):
        site.install(installer)
    assert site.left() == []


def test_a_missing_lock_python_or_uv_is_named(site: Site, tmp_path: Path) -> None:
    with pytest.raises(KitError, match=r"none\.txt"):
        venv.install("py", tmp_path / "none.txt", site.root)
    with pytest.raises(KitError, match="no-such-python"):
        site.install(python="no-such-python")
    with pytest.raises(KitError, match="no-such-uv"):
        venv.install("py", site.lock, site.root, tools=installers.Tools(uv="no-such-uv"))


@pytest.mark.parametrize("name", ["../x", "", "a b", "-x"])
def test_a_name_that_is_no_folder_name_is_refused(site: Site, name: str) -> None:
    with pytest.raises(KitError, match="runtime name"):
        venv.install(name, site.lock, site.root)


def test_a_share_that_cannot_be_written_is_told(site: Site) -> None:
    site.root.parent.mkdir(parents=True)
    site.root.write_text("a file, not a folder")
    with pytest.raises(KitError, match="is the share mounted"):
        site.install()


def test_uv_comes_from_the_wheel_folder_by_its_pin(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = site.wheelhouse / "uv-9.9-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("uv-9.9.data/scripts/uv", f"#!/bin/sh\nexec '{UV}' \"$@\"\n")
    pins = site.wheelhouse / "pins.json"
    pin = {"filename": wheel.name, "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}
    pins.write_text(json.dumps({"uv": {"version": "9.9", "wheels": {"any": pin}}}))
    monkeypatch.setitem(installers.wheels.fetch.__kwdefaults__, "pins", pins)
    monkeypatch.setattr(installers.shutil, "which", lambda _: None)
    source = installers.Source(wheelhouse=site.wheelhouse)
    answer = venv.install("py", site.lock, site.root, source=source, python=sys.executable)
    assert answer["installer"].startswith("uv ")
    assert (site.root / ".tools" / "uv-9.9").stat().st_mode & 0o111


def test_without_uv_and_without_venv_it_is_said_what_to_install(site: Site, tmp_path: Path) -> None:
    bare = tmp_path / "python3"  # stand-in for a distribution's Python without its venv module
    bare.write_text(
        "#!/bin/bash\n[ \"$2\" = venv ] && { echo 'No module named venv' >&2; exit 1; }\n"
        f"exec '{sys.executable}' \"$@\"\n"
    )
    bare.chmod(0o755)
    with pytest.raises(KitError, match=r"(?s)put uv on PATH.*python3-venv.*No module named venv"):
        site.install("pip", python=str(bare))
    assert site.left() == []


@pytest.mark.parametrize("name", ["pytorch", "standin"])
def test_the_locks_of_the_collection_say_what_the_installer_needs(root: Path, name: str) -> None:
    lock = venv.read_lock(root / "files" / "requirements" / f"{name}.txt")
    assert lock.verify
    assert lock.lowest == (3, 10)
    assert lock.highest == (3, 14)
    assert lock.needs_mb > 100
    text = lock.path.read_text()
    assert "index-url" not in text
    assert "://" not in text
