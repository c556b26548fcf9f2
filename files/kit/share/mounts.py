# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that the share is mounted and its servers are up, first in /proc: touching a dead mount blocks forever.

Self-contained (standard library, nothing else of the kit), so that it also runs from stdin if the share is unreadable:

    python3 - guard --path /mnt/beegfs --token scripts/token:1f3a [-- command to run if all is well] < mounts.py
"""

import argparse
import ctypes
import functools
import json
import os
import re
import select
import signal
import socket
import sys
import time
from typing import Any, Callable, NoReturn, Optional

OLD_PYTHON = 86
if sys.version_info < (3, 9):  # reported before any code below that an older version cannot run
    sys.stderr.write(f"Python {sys.version.split()[0]}\n")
    sys.exit(OLD_PYTHON)

BEEGFS_MAGIC = 0x19830326  # f_type of statfs(2)
TYPES = ("beegfs", "simulated", "other")
NODE_LISTS = {"management": "mgmt_nodes", "meta": "meta_nodes", "storage": "storage_nodes"}
STATE_LISTS = {"meta": "meta_target_state", "storage": "storage_target_state"}
MOST_BYTES = 1 << 20  # read from a /proc file
AUTOMOUNT = "autofs"  # the type of an automounter's mount before anything else is mounted there

# Exit codes of guard: the controller gets nothing else if the share does not answer.
GOOD = 0
NOT_MOUNTED = 80
NO_SERVERS = 81
OTHER_FILES = 82
NOT_WRITABLE = 83
NO_ANSWER = 84
UNKNOWN = 85


class ChildError(Exception):
    """A child failed; the message says how."""


class NoAnswerError(ChildError):
    """A child did not answer in time and was given up."""


def in_child(work: Callable[[], Any], seconds: float) -> Any:
    """Return what `work` returns (JSON), called in a child that is killed and given up after `seconds`.

    Raise ChildError.
    """
    (answer,) = each_in_child([work], seconds)
    if isinstance(answer, ChildError):
        raise answer
    return answer


def each_in_child(works: list[Callable[[], Any]], seconds: float) -> list[Any]:
    """Return what each of `works` returns (JSON), or a ChildError; each is done in a child, in `seconds`.

    One child does one after another. If it ends on the way, the next child does the rest. A process that waits for a
    dead file system cannot be killed: nothing waits for it, and the rest is not done, with the same NoAnswerError.
    """
    answers: list[Any] = []
    while len(answers) < len(works):
        answers += _by_a_child(works[len(answers) :], seconds)
        if isinstance(answers[-1], NoAnswerError):
            answers += [answers[-1]] * (len(works) - len(answers))
    return answers


def _by_a_child(works: list[Callable[[], Any]], seconds: float) -> list[Any]:
    """Return the answers of one child: fewer than `works` if it ended early, with the error as the last."""
    receive, send = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    _libc()  # here, so that no child loads it anew
    process = os.fork()
    if process == 0:
        _child(works, receive, send)
    os.close(send)
    answers: list[Any] = []
    try:
        lines = _Lines(receive)
        for _each in works:
            line = lines.next(time.monotonic() + seconds)
            if not line:
                break
            kind, value = json.loads(line)
            answers.append(value if kind == "value" else ChildError(value))
    except BaseException as error:
        _give_up(process)
        if not isinstance(error, NoAnswerError):
            raise
        return [*answers, NoAnswerError(f"it did not answer in {seconds:g} s")]
    finally:
        os.close(receive)
    status = os.waitpid(process, 0)[1]
    if len(answers) < len(works):
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {status >> 8}"
        answers.append(ChildError(f"it ended with {how} and without an answer"))
    return answers


def _child(works: list[Callable[[], Any]], receive: int, send: int) -> NoReturn:
    """Answer over the pipe. Close everything else, or a reader of this program's output would wait for the child."""
    try:
        os.close(receive)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        die_with_parent()
        for work in works:
            data = _answer(work).encode() + b"\n"
            while data:
                data = data[os.write(send, data) :]
    finally:
        os._exit(0)


def _answer(work: Callable[[], Any]) -> str:
    try:
        return json.dumps(["value", work()])
    except OSError as error:
        return json.dumps(["error", f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")])
    except Exception as error:
        return json.dumps(["error", f"{type(error).__name__}: {error}"])


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends for any reason."""
    if sys.platform == "linux":
        _libc().prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


class _Lines:
    """The lines that come through a pipe."""

    def __init__(self, receive: int) -> None:
        self._receive, self._rest = receive, b""

    def next(self, deadline: float) -> bytes:
        """Return the next line, or nothing if the pipe is closed before its end. Raise NoAnswerError."""
        while b"\n" not in self._rest:
            ready, _other, _other = select.select([self._receive], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise NoAnswerError
            block = os.read(self._receive, 1 << 16)
            if not block:
                return b""
            self._rest += block
        line, _newline, self._rest = self._rest.partition(b"\n")
        return line


def _give_up(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    deadline = time.monotonic() + 0.2
    while os.waitpid(process, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.005)


def read(path: str) -> str:
    """Return the text of a /proc file. Raise OSError."""
    with open(path, "rb") as stream:
        return stream.read(MOST_BYTES).decode("utf-8", "replace")


def parse_mounts(text: str) -> list[dict[str, Any]]:
    """Return the mounts of /proc/mounts: device, mount_point, fstype, options; with octal escapes decoded."""
    mounts = []
    for line in text.splitlines():
        fields = [re.sub(r"\\([0-3][0-7]{2})", lambda found: chr(int(found[1], 8)), field) for field in line.split(" ")]
        if len(fields) >= 4 and fields[1].startswith("/"):
            device, point, fstype, options = fields[:4]
            mounts.append({"device": device, "mount_point": point, "fstype": fstype, "options": options.split(",")})
    return mounts


def mount_of(path: str, mounts: list[dict[str, Any]]) -> Optional[dict[str, Any]]:
    """Return the mount that contains the absolute `path`: the longest prefix, and the last one mounted there."""
    chosen = None
    for mount in mounts:
        point = mount["mount_point"].rstrip("/")
        if (path == point or path.startswith(point + "/")) and (
            chosen is None or len(point) >= len(chosen["mount_point"].rstrip("/"))
        ):
            chosen = mount
    return chosen


def resolve(path: str, mounts: list[dict[str, Any]]) -> str:
    """Return `path` with its links resolved, as far as possible without touching a mounted file system."""
    points = {mount["mount_point"] for mount in mounts} - {"/"}
    left, done = [part for part in path.split("/") if part], ""
    for _each in range(40):  # as many links as the kernel follows
        while left:
            step = f"{done}/{left[0]}"
            if step in points:
                return "/".join([done, *left])
            try:
                target = os.readlink(step)
            except OSError:
                done, left = step, left[1:]
                continue
            whole = target if target.startswith("/") else f"{done}/{target}"
            left, done = [part for part in os.path.normpath(whole).split("/") if part] + left[1:], ""
            break
        else:
            break
    return os.path.normpath("/".join([done, *left]) or "/")


def parse_nodes(text: str) -> list[dict[str, Any]]:
    """Return the servers of a *_nodes file with their connections; None for connections it does not list."""
    nodes: list[dict[str, Any]] = []
    for line in text.splitlines():
        head = re.match(r"(\S.*?) \[ID: ([^\]]+)\]\s*$", line)
        if head:
            nodes.append({"name": head[1], "id": head[2], "root": False, "connections": None})
        elif nodes and line.strip() == "Root: <yes>":
            nodes[-1]["root"] = True
        elif nodes and line.strip().startswith("Connections:"):
            found = re.findall(r"(TCP|RDMA): (\d+)(?: \(([^()\[\]]*?)( \[fallback route\])?\))?;", line)
            nodes[-1]["connections"] = [
                {"protocol": kind, "count": int(count), "peer": peer or None, "fallback": bool(fallback)}
                for kind, count, peer, fallback in found
            ]
            if not found and "<none>" not in line:
                nodes[-1]["connections"] = None
    return nodes


def parse_states(text: str) -> list[dict[str, Any]]:
    """Return the targets of a *_target_state file as the client sees them."""
    found = re.findall(r"^\[Target ID: (\d+)\] @ (.*): ([A-Za-z-]+) / ([A-Za-z-]+) *$", text, re.MULTILINE)
    return [
        {"target": int(target), "node": node, "reachability": reach.lower(), "consistency": state.lower()}
        for target, node, reach, state in found
    ]


def parse_config(text: str) -> dict[str, str]:
    """Return the 'key = value' lines of a client's config."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _other, value in pairs}


def clients(fstype: str, proc: str = "/proc") -> dict[str, dict[str, Any]]:
    """Return the kernel clients of that type by ID: config, servers, targets; None for what is unreadable."""
    folder = os.path.join(proc, "fs", fstype)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return {}

    def parsed(name: str, file: str, parse: Callable[[str], Any]) -> Any:
        try:
            return parse(read(os.path.join(folder, name, file)))
        except OSError:
            return None

    return {
        name: {
            "id": name,
            "config": parsed(name, "config", parse_config),
            "fs_uuid": parsed(name, "fs_uuid", str.strip) or None,
            "nodes": {kind: parsed(name, file, parse_nodes) for kind, file in NODE_LISTS.items()},
            "targets": {kind: parsed(name, file, parse_states) for kind, file in STATE_LISTS.items()},
        }
        for name in names
        if os.path.isdir(os.path.join(folder, name))
    }


def option(mount: dict[str, Any], name: str) -> Optional[str]:
    """Return the value of a mount option."""
    return next((text[len(name) + 1 :] for text in mount["options"] if text.startswith(name + "=")), None)


def client_module(mount: dict[str, Any], share_type: str) -> str:
    """Return the name of the client's module, which is its folder under /proc/fs.

    A simulated client reports the same as a real one; only its mount has another type.
    """
    return "beegfs" if share_type == "simulated" else str(mount["fstype"])


def put_client(known: dict[str, Any], share_type: str, deadline: float, proc: str) -> None:
    """Put the current facts of the mount's client into `known`, which names the mount: `clients` and `client`.

    Raise ChildError, or LookupError with the reason if the client cannot be found; `known` then has none.
    """
    known["client"] = None
    module = client_module(known, share_type)
    found = in_child(lambda: clients(module, proc), deadline)
    known["clients"] = sorted(found)
    known["client"] = client_of(known, found, module)


def client_of(mount: dict[str, Any], found: dict[str, dict[str, Any]], module: str) -> dict[str, Any]:
    """Return the client that serves `mount`, found by its configuration. Raise LookupError with the reason if none."""
    config, host = option(mount, "cfgFile"), option(mount, "sysMgmtdHost")
    fitting = [
        client
        for client in found.values()
        if config in (None, (client["config"] or {}).get("cfgFile"))
        and host in (None, (client["config"] or {}).get("sysMgmtdHost"))
    ]
    if len(fitting) == 1:
        return fitting[0]
    named = f" with the configuration {config}" if config else ""
    raise LookupError(f"/proc/fs/{module} holds {len(fitting)} clients{named}, of {len(found)}")


def why_dead(client: dict[str, Any]) -> Optional[str]:
    """Return why touching this client's mount would block, or None.

    A client drops idle connections, so a metadata server without a connection is down only if it is not reported
    online, or if that is unknown because the management server has no connection either.
    """
    nodes, targets = client["nodes"], client["targets"]
    managed = any(node["connections"] for node in nodes["management"] or [])
    states = {str(target["target"]): target["reachability"] for target in targets["meta"] or []}

    def gone(node: dict[str, Any]) -> bool:
        state = states.get(node["id"])
        unconnected = node["connections"] == [] and not (managed and state == "online")
        return state == "offline" or unconnected

    servers = nodes["meta"]
    if servers is not None and all(gone(node) for node in servers):
        return "no metadata server has a connection or is online"
    for node in servers or []:
        if node["root"] and gone(node):
            return f"the metadata server {node['name']} of the root directory has no connection or is offline"
    if targets["storage"] and all(target["reachability"] == "offline" for target in targets["storage"]):
        return "all storage targets are offline"
    return None


def statfs(path: str) -> dict[str, Any]:
    """Return type, ID, space in bytes and inodes of the file system at `path`. Raise OSError."""
    buffer = ctypes.create_string_buffer(512)
    if _libc().statfs(os.fsencode(path), buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    said = os.statvfs(path)
    return {
        "magic": ctypes.c_long.from_buffer(buffer).value & 0xFFFFFFFF,
        "id": f"{said.f_fsid & 0xFFFFFFFFFFFFFFFF:016x}",
        "total": said.f_blocks * said.f_frsize,
        "free": said.f_bavail * said.f_frsize,
        "inodes": said.f_files,
        "inodes_free": said.f_favail,
        "read_only": bool(said.f_flag & os.ST_RDONLY),
        "directory": os.path.isdir(path),
    }


def is_beegfs(fstype: str) -> bool:
    """Return whether that is a BeeGFS client's type: its module's name, which differs if several are installed."""
    return fstype.startswith("beegfs")


def open_folder(path: str) -> None:
    """Open `path`, which makes an automounter mount it. Raise OSError."""
    os.close(os.open(path, os.O_RDONLY))


def find_mount(path: str, deadline: float, proc: str) -> Optional[dict[str, Any]]:
    """Return the mount that contains `path`, without touching it. Raise ChildError if the mounts cannot be read."""
    try:
        mounts = in_child(lambda: parse_mounts(read(os.path.join(proc, "mounts"))), deadline)
    except ChildError as error:
        raise type(error)(f"{proc}/mounts cannot be read: {error}") from None
    return mount_of(resolve(os.path.normpath(path), mounts), mounts)


def facts(path: str, share_type: str, deadline: float, proc: str = "/proc") -> dict[str, Any]:
    """Return what is known about the mount of `path`; `problem` says why it was not touched, or did not answer.

    The share is touched (statfs) only if its servers are up, and then in a child.
    """
    result: dict[str, Any] = {
        "path": path,
        "mounted": None,
        "mount_point": None,
        "device": None,
        "fstype": None,
        "options": None,
        "config_file": None,
        "client": None,
        "clients": None,
        "statfs": None,
        "touched": False,
        "problem": None,
    }
    if not path.startswith("/"):
        return {**result, "problem": f"{path} is not an absolute path"}
    refused = None
    try:
        mount = find_mount(path, deadline, proc)
        if mount and mount["fstype"] == AUTOMOUNT:  # idle: opening it mounts it
            try:
                in_child(lambda: open_folder(path), deadline)
            except NoAnswerError as error:
                raise NoAnswerError(f"the automount at {mount['mount_point']}: {error}") from None
            except ChildError as error:
                refused = str(error)
            mount = find_mount(path, deadline, proc)
    except ChildError as error:
        return {**result, "problem": str(error)}
    if mount and mount["fstype"] == AUTOMOUNT:
        why = refused or "it was opened, but nothing was mounted"
        return {**result, "mounted": False, "problem": f"the automount at {mount['mount_point']}: {why}"}
    if mount is None or mount["mount_point"] == "/":
        return {**result, "mounted": False, "problem": f"nothing is mounted at {path} or above it"}
    result.update(mount, mounted=True, config_file=option(mount, "cfgFile"))
    if share_type == "beegfs" and not is_beegfs(mount["fstype"]):
        return {**result, "problem": f"{mount['mount_point']}: expected type beegfs, found {mount['fstype']}"}
    if share_type != "other":
        try:
            put_client(result, share_type, deadline, proc)
        except (ChildError, LookupError) as error:
            return {**result, "problem": str(error)}
        dead = why_dead(result["client"])
        if dead:
            return {**result, "problem": f"{dead}: it was not touched"}
    result["touched"] = True
    try:
        result["statfs"] = in_child(lambda: statfs(path), deadline)
        if result["client"]:  # touching it made it connect again
            put_client(result, share_type, deadline, proc)
    except (ChildError, LookupError) as error:
        result["problem"] = f"{path}: {error}"
    return result


class RefusalError(Exception):
    """The guard's verdict: an exit code and why."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


def guard(
    path: str,
    share_type: str,
    token: Optional[tuple[str, str]] = None,
    write_to: Optional[str] = None,
    deadline: float = 10.0,
    proc: str = "/proc",
) -> None:
    """Return if the share is the right one and is writable. Raise RefusalError.

    `token` is a file below `path` and its content; `write_to` a folder below it (default: the token's). With neither,
    nothing is written.
    """
    _require_the_share(path, share_type, facts(path, share_type, deadline, proc))
    if token:
        file = os.path.join(path, token[0])
        content = _touch(OTHER_FILES, deadline, lambda: read(file).strip())
        if content != token[1]:
            raise RefusalError(
                OTHER_FILES, f"{file} has other content: this is another file system than the login node's"
            )
    folder = write_to or (os.path.dirname(token[0]) if token else None)
    if folder is not None:
        _touch(NOT_WRITABLE, deadline, lambda: _write(os.path.join(path, folder)))


def _require_the_share(path: str, share_type: str, found: dict[str, Any]) -> None:
    """Return if a folder of a mounted share of that type has answered. Raise RefusalError."""
    silent = NO_ANSWER if "did not answer" in (found["problem"] or "") else None
    if found["mount_point"] is None or (share_type == "beegfs" and not is_beegfs(found["fstype"])):
        raise RefusalError((silent or UNKNOWN) if found["mounted"] is None else NOT_MOUNTED, found["problem"])
    if not found["touched"]:
        raise RefusalError(NO_SERVERS if found["client"] else (silent or UNKNOWN), found["problem"])
    if found["statfs"] is None:
        raise RefusalError(silent or NOT_MOUNTED, found["problem"])
    if share_type == "beegfs" and found["statfs"]["magic"] != BEEGFS_MAGIC:
        raise RefusalError(
            NOT_MOUNTED, f"expected BeeGFS's type {BEEGFS_MAGIC:#x} from statfs, found {found['statfs']['magic']:#x}"
        )
    if not found["statfs"]["directory"]:
        raise RefusalError(NOT_MOUNTED, f"{path} is not a folder")


def _touch(code: int, deadline: float, work: Callable[[], Any]) -> Any:
    try:
        return in_child(work, deadline)
    except NoAnswerError as error:
        raise RefusalError(NO_ANSWER, str(error)) from None
    except ChildError as error:
        raise RefusalError(code, str(error)) from None


def _write(folder: str) -> None:
    path = os.path.join(folder, f".guard-{socket.gethostname()}-{os.getpid()}")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, b"guard\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
        os.unlink(path)


def run_module(folder: str, name: str, arguments: list[str]) -> None:
    """Run a module of `folder` as a program, in this process: on 1,000 nodes another start of Python costs minutes.

    `folder` is on the share, so it must not be in PYTHONPATH before: each import would look there first.
    """
    import runpy  # noqa: PLC0415 - most uses of this file have none

    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = folder
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def main(arguments: list[str]) -> int:
    """Run the command line: guard ends with one of the codes above, facts prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("guard", "facts"))
    parser.add_argument("--path", required=True)
    parser.add_argument("--type", choices=TYPES, default="beegfs")
    parser.add_argument("--token", metavar="FILE:TEXT", help="a file below the path, and its required content")
    parser.add_argument("--write-to", metavar="FOLDER", help="folder below the path to write to")
    parser.add_argument("--deadline", type=float, default=10.0, help="seconds for each touch of the share")
    parser.add_argument("--modules", metavar="FOLDER", help="where the module lies if the command is -m MODULE …")
    parser.add_argument("--proc", default="/proc", help=argparse.SUPPRESS)
    split = arguments.index("--") if "--" in arguments else len(arguments)
    chosen, command = parser.parse_args(arguments[:split]), arguments[split + 1 :]
    if chosen.command == "facts":
        print(json.dumps(facts(chosen.path, chosen.type, chosen.deadline, chosen.proc)))
        return GOOD
    file, _sep, text = (chosen.token or "").rpartition(":")
    try:
        token = (file, text) if chosen.token else None
        guard(chosen.path, chosen.type, token, chosen.write_to, chosen.deadline, chosen.proc)
    except RefusalError as refusal:
        print(f"guard: {chosen.path}: {refusal}", file=sys.stderr)
        return refusal.code
    except Exception as error:  # any error: the share was not found usable
        print(f"guard: {chosen.path}: {type(error).__name__}: {error}", file=sys.stderr)
        return UNKNOWN
    if chosen.modules and command[:1] == ["-m"] and len(command) > 1:
        run_module(chosen.modules, command[1], command[2:])
    elif command:
        try:
            os.execvp(command[0], command)  # noqa: S606 - no shell in between, on purpose
        except OSError as error:
            print(f"guard: {command[0]}: {error.strerror}", file=sys.stderr)
            return 127
    return GOOD


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
