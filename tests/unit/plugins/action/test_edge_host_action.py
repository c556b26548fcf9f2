# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What edge_host does over a connection, with real programs here; that nothing of a host fails the task."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import typing as t
import zipfile
from pathlib import Path
from unittest import mock

import pytest
from ansible.errors import AnsibleActionFail, AnsibleAuthenticationFailure, AnsibleConnectionFailure, AnsibleError
from ansible_collections.mlops.hpc_validation.plugins.action import edge_host
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import payload, results

from tests.unit.plugins.plugin_utils._edge import made_edge
from tests.unit.plugins.plugin_utils._edge.made_edge import JOB, LOOK, PACKAGES, RUN, answered, found, write_bundle

Json = dict[str, t.Any]
MARK = "HPC_VALIDATION_EDGE "
# Answers as a device does, and says how its standard input is.
STAND_IN = """
import json, os, select, sys, zipfile
with zipfile.ZipFile(sys.argv[0]) as packed:
    asked = json.loads(packed.read("request.json"))
ended = bool(select.select([0], [], [], 0.2)[0]) and not os.read(0, 1)
said = {"schema": 1, "problem": None, "folder": asked["folder"] + "/" + asked["run"], "deployed": None}
print("HPC_VALIDATION_EDGE " + json.dumps({**said, "measured": {"ended": ended, "asked": asked}}))
"""


def _raise(error: Exception | None) -> None:
    if error:
        raise error


class Device:
    """A connection to a folder of this machine: commands run here, files are copied; anything can be made to fail."""

    def __init__(self, folder: Path, transport: str) -> None:
        self.folder, self.transport = folder, transport
        self.become: t.Any = None
        self.commands: list[str] = []
        self.put: list[str] = []
        self.answer: Json | BaseException | None = None
        self.fails_to_put: Exception | None = None
        self._shell = mock.MagicMock(tmpdir=None)
        self._shell.remove.side_effect = lambda path, **_how: f"rm -rf {path}"

    def put_file(self, local: str, remote: str) -> None:
        _raise(self.fails_to_put)
        self.put.append(remote)
        Path(remote).write_bytes(Path(local).read_bytes())


@pytest.fixture
def act(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., tuple[Json, Device]]:
    """(arguments) → the result, and the device."""
    monkeypatch.setattr(edge_host.constants, "DEFAULT_LOCAL_TMP", str(tmp_path))

    def run(device: Device | None = None, *, check_mode: bool = False, **arguments: t.Any) -> tuple[Json, Device]:
        device = device or Device(tmp_path / "device", "local")
        arguments = {"python": sys.executable, "folder": str(tmp_path / "ours"), **arguments}
        task = mock.MagicMock(args=arguments, async_val=0, check_mode=check_mode)
        action = edge_host.ActionModule(task, device, mock.MagicMock(), None, None, None)
        monkeypatch.setattr(action, "_make_tmp_path", lambda: _made(device))
        monkeypatch.setattr(action, "_remove_tmp_path", lambda folder: _removed(device, folder))
        monkeypatch.setattr(
            action, "_low_level_execute_command", lambda command, sudoable: _ran(device, command, sudoable)
        )
        return dict(action.run(task_vars={"inventory_hostname": "edge01"})), device

    return run


def _made(device: Device) -> str:
    device.folder.mkdir()
    device._shell.tmpdir = str(device.folder)
    return str(device.folder)


def _removed(device: Device, folder: str) -> None:
    subprocess.run(["rm", "-rf", folder], check=True)
    device.commands.append("removed")


def _ran(device: Device, command: str, sudoable: bool) -> Json:
    assert sudoable is False  # no terminal, so that the end of a connection is the end of standard input
    device.commands.append(command)
    if isinstance(device.answer, BaseException):
        raise device.answer
    if device.answer is not None:
        return device.answer
    done = subprocess.run(["/bin/sh", "-c", command], input="", capture_output=True, text=True, check=False, timeout=60)
    return {"rc": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def said(document: t.Any, rc: int = 0) -> Json:
    return {"rc": rc, "stdout": MARK + json.dumps(document), "stderr": ""}


# -- looked


def test_a_look_at_this_machine(act: t.Callable[..., tuple[Json, Device]], tmp_path: Path) -> None:
    result, device = act(state="looked")
    assert result["look"]["python"] == sys.version.split()[0]
    assert result["look"]["system"] == "Linux"
    assert (result["problem"] is None) == (result["requirement"] is not None)
    assert device.put == [str(tmp_path / "device/look.py")]
    assert not device.folder.exists()
    assert device._shell.tmpdir is None
    assert not (tmp_path / "ours").exists()


def test_what_fits_nothing_is_told_with_what_it_is(act: t.Callable[..., tuple[Json, Device]], tmp_path: Path) -> None:
    device = Device(tmp_path / "device", "ssh")
    device.answer = said({**LOOK, "python": "3.7.3"})
    result, _device = act(device, state="looked")
    assert result["problem"]["id"] == "python"
    assert (result["look"]["python"], result["requirement"], result.get("failed")) == ("3.7.3", None, None)


def test_a_host_without_that_python_says_so(act: t.Callable[..., tuple[Json, Device]]) -> None:
    result, device = act(state="looked", python="python3.99")
    assert (result["problem"]["id"], result["look"]) == ("python", None)
    assert "python3.99 cannot be run there" in result["problem"]["text"]
    assert not device.folder.exists()


def test_words_are_no_commands(act: t.Callable[..., tuple[Json, Device]], tmp_path: Path) -> None:
    result, device = act(state="looked", folder=f"$(touch {tmp_path}/evil)", root="/; touch evil")
    assert result["look"]["system"] == "Linux"
    assert not (tmp_path / "evil").exists()
    assert "'$(touch" in device.commands[0]


@pytest.mark.parametrize(
    ("error", "identity"),
    [
        (AnsibleConnectionFailure("Failed to connect to the host via ssh: Connection refused"), "unreachable"),
        (AnsibleAuthenticationFailure("Permission denied (publickey)"), "unreachable"),
        (AnsibleConnectionFailure("Failed to create temporary directory. In some cases"), "files"),
        (AnsibleConnectionFailure("mkdir: No space left on device"), "space"),
        (AnsibleError("failed to transfer file to /x: No space left on device"), "space"),
        (AnsibleError("failed to transfer file"), "files"),
    ],
)
def test_a_connection_that_fails_is_a_problem(
    act: t.Callable[..., tuple[Json, Device]], tmp_path: Path, error: Exception, identity: str
) -> None:
    for place in ("answer", "fails_to_put"):
        device = Device(tmp_path / "device", "ssh")
        setattr(device, place, error)
        result, _device = act(device, state="looked")
        assert (result["problem"]["id"], result.get("failed")) == (identity, None)
        assert result["problem"]["text"] in str(error) or identity == "unreachable"
        assert not device.folder.exists()
        assert device._shell.tmpdir is None  # Ansible must not try to remove it once more


def test_a_connection_that_is_gone_for_good_is_still_a_problem(
    act: t.Callable[..., tuple[Json, Device]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device(tmp_path / "device", "ssh")
    device.answer = AnsibleConnectionFailure("Connection closed")
    monkeypatch.setattr(f"{__name__}._removed", mock.Mock(side_effect=AnsibleConnectionFailure("Connection closed")))
    result, _device = act(device, state="looked")
    assert (result["problem"]["id"], device._shell.tmpdir) == ("unreachable", None)


def test_become_is_refused(act: t.Callable[..., tuple[Json, Device]], tmp_path: Path) -> None:
    device = Device(tmp_path / "device", "ssh")
    device.become = mock.MagicMock()
    with pytest.raises(AnsibleActionFail, match="take ansible_become out of"):
        act(device, state="looked")
    assert device.commands == []


@pytest.mark.parametrize("state", ["looked", "measured", "absent"])
def test_in_check_mode_nothing_is_put_there(
    act: t.Callable[..., tuple[Json, Device]], tmp_path: Path, state: str
) -> None:
    asked = {"run": str(tmp_path / RUN), "workload": "W-1", "job": JOB, "found": {}}
    result, device = act(check_mode=True, state=state, **(asked if state == "measured" else {}))
    assert (result["skipped"], result["changed"], device.commands, device.put) == (True, False, [], [])
    assert list(tmp_path.iterdir()) == []


# -- absent


@pytest.mark.parametrize(
    ("there", "removed", "identity"),
    [
        ([], False, None),
        (["ours/"], False, None),
        (["ours/.mlops-hpc-validation", "ours/run/request.json", "ours/lock"], True, None),
        (["ours/photo.jpg"], False, "files"),
        (["ours/.mlops-hpc-validation/", "ours/photo.jpg"], False, "files"),
        (["ours"], False, "files"),
    ],
)
def test_only_what_has_our_mark_is_removed(
    act: t.Callable[..., tuple[Json, Device]], tmp_path: Path, there: list[str], removed: bool, identity: str | None
) -> None:
    for name in there:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.touch()
    before = sorted(tmp_path.rglob("*"))
    result, _device = act(state="absent")
    assert (result["changed"], (result["problem"] or {}).get("id")) == (removed, identity)
    assert sorted(tmp_path.rglob("*")) == ([] if removed else before)


def test_what_somebody_else_put_there_stays(act: t.Callable[..., tuple[Json, Device]], tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    for name in (".mlops-hpc-validation", "lock", "run/request.json", "run/int8.onnx", "photos/one.jpg", "notes"):
        (ours / name).parent.mkdir(exist_ok=True, parents=True)
        (ours / name).touch()
    (ours / "begun").mkdir()
    (ours / "linked").symlink_to("run")
    for changed in (True, False):
        result, _device = act(state="absent")
        assert (result["changed"], result["problem"]) == (changed, None)
        assert {"photos", "notes", "linked", ".mlops-hpc-validation"} <= {each.name for each in ours.iterdir()}
        assert (ours / "photos/one.jpg").exists()
        assert not (ours / "run").exists()
        assert not (ours / "begun").exists()


def test_a_link_to_a_folder_of_ours_stays(act: t.Callable[..., tuple[Json, Device]], tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/.mlops-hpc-validation").touch()
    (tmp_path / "ours").symlink_to("real")
    result, _device = act(state="absent")
    assert (result["changed"], result["problem"]["id"]) == (False, "files")
    assert (tmp_path / "real/.mlops-hpc-validation").exists()


def test_where_something_measures_nothing_is_removed(act: t.Callable[..., tuple[Json, Device]], tmp_path: Path) -> None:
    import fcntl

    (tmp_path / "ours").mkdir()
    (tmp_path / "ours/.mlops-hpc-validation").touch()
    with (tmp_path / "ours/lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        result, _device = act(state="absent")
    assert (result["changed"], result["problem"]["id"]) == (False, "busy")
    assert (tmp_path / "ours/lock").exists()


def test_a_relative_folder_is_no_place(act: t.Callable[..., tuple[Json, Device]]) -> None:
    result, _device = act(state="absent", folder="ours")
    assert "expected an absolute path" in result["problem"]["text"]


# -- measured


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Json:
    """The arguments of a measurement, with a stand-in for the programs."""
    monkeypatch.setattr(payload, "parts", lambda: {"__main__.py": STAND_IN.encode()})
    run = tmp_path / "results" / RUN
    path = write_bundle(results.bundle_path(run, "PROFILE-EMBEDDED"))
    results.metrics_path(run, "PROFILE-EMBEDDED").write_text(json.dumps(made_edge.metrics(path)))
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels/a-1-py3-none-any.whl").write_bytes(b"wheel")
    told = {"file": "a-1-py3-none-any.whl", "sha256": hashlib.sha256(b"wheel").hexdigest(), "bytes": 5}
    return {
        "state": "measured",
        "run": str(run),
        "workload": "PROFILE-EMBEDDED",
        "job": JOB,
        "found": found(path),
        "wheelhouse": {"folder": str(tmp_path / "wheels"), "wheels": [told], "packages": PACKAGES},
    }


def written(asked: Json) -> Json:
    path = Path(asked["run"]) / "edge" / asked["workload"] / "edge01.json"
    return t.cast(Json, json.loads(path.read_text()))


@pytest.mark.parametrize("transport", ["local", "docker", "podman"])
def test_a_device_is_measured_and_left_as_it_was(
    act: t.Callable[..., tuple[Json, Device]], asked: Json, tmp_path: Path, transport: str
) -> None:
    result, device = act(Device(tmp_path / "device", transport), **asked)
    assert result["problem"] is None
    assert result["path"] == str(Path(asked["run"]) / "edge/PROFILE-EMBEDDED/edge01.json")
    assert len(json.dumps(result)) < 300  # no answers, no histogram
    found = written(asked)["measured"]
    assert found["asked"]["run"] == f"{RUN}-PROFILE-EMBEDDED"  # another workload has another
    assert found["asked"]["folder"] == str(tmp_path / "ours")
    # The connection closes standard input at once; what runs there has it open.
    assert found["ended"] is False
    assert device.put == [str(tmp_path / "device/payload.pyz")]
    assert not device.folder.exists()
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("results", "wheels")] == []
    assert _sleepers(tmp_path) == []


def _sleepers(folder: Path) -> list[str]:
    """What still runs with a file of the folder open as its output."""
    running = []
    for link in Path("/proc").glob("[0-9]*/fd/1"):
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if target.startswith(str(folder)):
            running.append(target)
    return running


def test_over_ssh_standard_input_is_that_of_the_connection(
    act: t.Callable[..., tuple[Json, Device]], asked: Json, tmp_path: Path
) -> None:
    result, device = act(Device(tmp_path / "device", "ssh"), **asked)
    assert (result["problem"], written(asked)["measured"]["ended"]) == (None, True)
    assert "mkfifo" not in device.commands[0]
    assert "rm -rf" in device.commands[0]  # also if the connection is lost meanwhile


def test_what_the_device_says_is_kept_as_it_is(
    act: t.Callable[..., tuple[Json, Device]], asked: Json, tmp_path: Path
) -> None:
    device = Device(tmp_path / "device", "ssh")
    device.answer = said(answered())
    assert act(device, **asked)[0]["problem"] is None
    assert written(asked) == answered()
    device.answer = said(answered(problem={"id": "space", "text": "full"}, measured=None), 1)
    assert act(device, **asked)[0]["problem"] == {"id": "space", "text": "full"}
    assert written(asked)["problem"] == {"id": "space", "text": "full"}


@pytest.mark.parametrize(
    ("answer", "identity"),
    [
        ({"rc": 1, "stdout": "", "stderr": "Traceback"}, "crashed"),
        ({"rc": 127, "stdout": "", "stderr": "not found"}, "python"),
        (said({"schema": 9}), "result"),
        (said(answered(folder="/h/other")), "result"),
        (AnsibleConnectionFailure("Connection closed"), "unreachable"),
    ],
)
def test_a_device_that_does_not_answer_is_written_down(
    act: t.Callable[..., tuple[Json, Device]], asked: Json, tmp_path: Path, answer: t.Any, identity: str
) -> None:
    device = Device(tmp_path / "device", "ssh")
    device.answer = answer
    result, _device = act(device, **asked)
    assert (result["problem"]["id"], result.get("failed")) == (identity, None)
    assert written(asked) == {"schema": 1, "problem": result["problem"]}


@pytest.mark.parametrize(
    ("changes", "identity"),
    [
        ({"job": {**JOB, "state": "FAILED", "exit_code": 1}}, "job"),
        ({"job": {**JOB, "job_id": "13"}}, "bundle"),
        ({"found": {"stat": {"exists": False}}}, "bundle"),
        ({"found": {"msg": "Timed out"}}, "bundle"),
        ({"timeout": 60}, "limit"),
        ({"problem": {"id": "wheels", "text": "musl"}}, "wheels"),
        ({"problem": {"id": "unreachable", "text": "no route"}}, "unreachable"),
        ({"wheelhouse": None}, "wheels"),
        (
            {"wheelhouse": {"folder": "/none", "wheels": [{"file": "a.whl", "sha256": "0"}], "packages": {}}},
            "controller",
        ),
        ({"wheelhouse": {"folder": "/none"}}, "controller"),
    ],
)
def test_what_cannot_be_measured_is_not_sent_anywhere(
    act: t.Callable[..., tuple[Json, Device]], asked: Json, changes: Json, identity: str
) -> None:
    result, device = act(**{**asked, **changes})
    assert (result["problem"]["id"], result.get("failed")) == (identity, None)
    assert written(asked)["problem"] == result["problem"]
    assert (device.commands, device.put) == ([], [])


def test_a_bundle_that_is_torn_is_not_sent(act: t.Callable[..., tuple[Json, Device]], asked: Json) -> None:
    path = results.bundle_path(Path(asked["run"]), "PROFILE-EMBEDDED")
    path.write_bytes(path.read_bytes()[:-50])
    result, device = act(**asked)
    assert (result["problem"]["id"], device.put) == ("bundle", [])


def test_a_bundle_that_was_not_judged_is_not_sent(act: t.Callable[..., tuple[Json, Device]], asked: Json) -> None:
    write_bundle(
        results.bundle_path(Path(asked["run"]), "PROFILE-EMBEDDED"), {**made_edge.files(), "int8.onnx": b"another"}
    )
    result, device = act(**asked)
    assert (result["problem"]["id"], device.put, device.commands) == ("bundle", [], [])
    assert "deploy.zip is not the one that was judged" in written(asked)["problem"]["text"]


def test_a_bundle_of_which_it_is_not_known_whether_it_was_judged_is_not_sent(
    act: t.Callable[..., tuple[Json, Device]], asked: Json
) -> None:
    results.metrics_path(Path(asked["run"]), "PROFILE-EMBEDDED").unlink()
    result, device = act(**asked)
    assert (result["problem"]["id"], device.put, device.commands) == ("metrics", [], [])


class Late(BaseException):
    """As Ansible's own, which is no Exception."""


def test_a_host_whose_time_is_up_is_written_down_and_not_waited_for_again(
    act: t.Callable[..., tuple[Json, Device]], asked: Json, tmp_path: Path
) -> None:
    device = Device(tmp_path / "device", "ssh")
    device.answer = Late("Timed out after 3600 second(s).")
    with pytest.raises(Late):
        act(device, **asked)
    assert written(asked)["problem"] == {
        "id": "timeout",
        "text": "Timed out after 3600 second(s). (hpc_validation_edge_timeout)",
    }
    assert "removed" not in device.commands  # the connection may hang
    assert device._shell.tmpdir is None


def test_the_payload_is_that_of_the_bundle(
    act: t.Callable[..., tuple[Json, Device]], asked: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    device = Device(tmp_path / "device", "ssh")
    monkeypatch.setattr(device, "put_file", lambda local, _remote: seen.append(zipfile.ZipFile(local).namelist()))
    device.answer = said(answered())
    act(device, **asked)
    assert {"__main__.py", "request.json", "bundle/int8.onnx", "wheels/a-1-py3-none-any.whl"} <= set(seen[0])


@pytest.mark.parametrize("missing", ["run", "workload", "job", "found"])
def test_a_measurement_needs_to_be_told_of_what(
    act: t.Callable[..., tuple[Json, Device]], asked: Json, missing: str
) -> None:
    with pytest.raises(AnsibleActionFail, match=missing):
        act(**{key: value for key, value in asked.items() if key != missing})
