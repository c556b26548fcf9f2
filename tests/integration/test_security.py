# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/security.md on the live cluster: one hostile run seen from all sides, and what another user puts in the way."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
import time
import typing as t
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.integration.conftest import ANSI, CACHE, CLUSTER, ROOT, Played, cluster, jobs

SECRET = "cAnArY" + secrets.token_hex(8)
SHARE = CACHE / "clusters" / CLUSTER / "share"
HOSTS = ("login", "compute01", "compute02")
ANOTHER_USER = "4711:4711"  # nobody's uid; it needs no entry in passwd to write where it may
LAYOUT = {"scripts", "configs", "containers", "datasets", "models", "jobs", "huggingface", "venvs", "evaluations"}
ON_THE_CONTROLLER = f"/{secrets.token_hex(8)}/settings.json"
ON_THE_LOGIN_NODE = "-m kit host --index"
TEMPLATE = "{{ lookup('ansible.builtin.pipe', 'touch /tmp/hpcval-pwned') }}"
SHELL = "$(touch /tmp/hpcval-pwned)`touch /tmp/hpcval-pwned`; touch /tmp/hpcval-pwned #"
TERMINAL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202essap\r"
CANARY = f"""
import json, os, sys
text = {TEMPLATE + SHELL + TERMINAL!r}
stamp = {{"job_id": os.environ["SLURM_JOB_ID"], "attempt": 0}}
with open(os.path.join(os.environ["OUTPUT_DIR"], "metrics.json"), "w") as stream:
    json.dump({{**stamp, "text": text, text: 1, "variables": sorted(os.environ.values())}}, stream)
for stream in (sys.stdout, sys.stderr):
    stream.reconfigure(encoding="utf-8")
    print("RuntimeError: CUDA error: " + text, file=stream)
"""


@dataclass
class Hostile:
    """A run whose job is hostile, and what was seen of it."""

    played: Played
    before: dict[str, dict[str, str]]
    after: dict[str, dict[str, str]]
    began: float
    command_lines: set[str] = field(default_factory=set)


def paths(host: str) -> dict[str, str]:
    """Every path that a run could have made on a host, and which file stands there; the share's from the login node.

    A path by itself says nothing: job ids start anew with a new controller, and so do the names of their markers.
    """
    roots = ["/home/admin", "/tmp", "/var/tmp", "/dev/shm", *(["/mnt/beegfs"] if host == "login" else [])]
    told = ["-type", "d", "-printf", "%p\t\n", "-o", "-printf", "%p\t%i %T@\n"]
    found = cluster(host, "find", *roots, "-path", "/mnt/beegfs/venvs/*", "-prune", "-o", *told)
    return dict(line.split("\t", 1) for line in found.splitlines())


def index() -> str:
    """The package index that is used here anyway, with a password that it does not ask for."""
    said = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--help"], capture_output=True, text=True, check=False
    )
    found = re.search(r"index-url\s+<url>[^(]*\(default\s+([^\s)]+)\)", said.stdout)
    url = found[1] if found else "https://pypi.org/simple"
    return url.replace("://", f"://user:{SECRET}@", 1)


def workload(folder: Path, **changes: t.Any) -> dict[str, t.Any]:
    """The variables that select a workload which writes what nobody should act on."""
    target = folder / "workloads" / "canary"
    shutil.copytree(ROOT / "tests/integration/canary", target)
    manifest = yaml.safe_load((target / "workload.yml").read_text())
    manifest["title"] = TEMPLATE[:60] + " $(id) `id` ; id"
    manifest["command"] = ["python", "canary.py", TEMPLATE, SHELL]
    manifest["output"]["artifacts"] = []
    manifest["criteria"] = [
        {"id": "T-1", "title": TEMPLATE, "query": "metrics.text", "eq": "x"},
        {"id": "T-2", "title": "No CUDA errors", "log": ["stdout", "stderr"], "absent": "cuda_errors"},
    ]
    (target / "workload.yml").write_text(yaml.safe_dump({**manifest, **changes}))
    (target / "canary.py").write_text(CANARY)
    return {
        "hpc_validation_workload_folders": [str(folder / "workloads")],
        "hpc_validation_only": ["TEST-1"],
        "hpc_validation_nodes": ["compute01"],
        "hpc_validation_results": str(folder / "results"),
        # How fast a busy machine's disk is says nothing here.
        "hpc_validation_share_expect": {"write_mib_s": 0.1, "read_mib_s": 0.1, "metadata_ops_s": 1},
    }


def run(variables: dict[str, t.Any], *arguments: str) -> Played:
    """A play; the variables come from a file, as a vault's would."""
    results = Path(variables["hpc_validation_results"])
    settings = results.with_name("settings.json")
    settings.write_text(json.dumps(variables))
    # Not as text, which would make a line's end of each carriage return.
    done = subprocess.run(
        [
            "ansible-playbook",
            "playbooks/validate_category1.yml",
            "-i",
            "inventories/local",
            "-e",
            f"@{settings}",
            *arguments,
        ],
        cwd=ROOT,
        env={**os.environ, **ANSI, "HF_TOKEN": SECRET},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=300,
    )
    folders = sorted(results.glob("*"))
    return Played(done.returncode, (done.stdout + done.stderr).decode("utf-8"), folders[-1] if folders else None)


def watch(done: threading.Event, seen: set[str]) -> None:
    """Looks at the command lines of all processes of this machine, which are those of the nodes too.

    Those with the secret are kept, and those that show that it looks at both.
    """
    while not done.wait(0.05):
        for process in Path("/proc").glob("[0-9]*"):
            try:
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                ours = ON_THE_LOGIN_NODE in line and (process / "root/mnt/beegfs").samefile(SHARE)
            except OSError:
                continue
            if ours or SECRET in line or ON_THE_CONTROLLER in line:
                seen.add(line)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    folder = tmp_path_factory.mktemp("hostile") / ON_THE_CONTROLLER.split("/")[1]
    folder.mkdir()
    variables = workload(folder)
    if not list(SHARE.glob("scripts/kit/wheels/*.whl")):
        run(variables)  # from the index as it is: that of the hostile run is only asked whether it answers
    # The submitting user's shell: a token on the login node, and everywhere a umask that leaves all to everybody.
    for host in HOSTS:
        token = f"export HF_TOKEN={SECRET};" if host == "login" else ""
        cluster(host, "sed", "-i", f"1i umask 0; {token} # hpcval-test", "/home/admin/.bashrc")
    secret = {
        "hpc_validation_index_url": index(),
        "hpc_validation_extra_index_urls": [index()],
        "hpc_validation_install_environment": {"HTTP_PROXY_PASSWORD": SECRET, "UV_HTTP_TIMEOUT": 60},
        "hpc_validation_hub_token": SECRET,
    }
    before, began = {host: paths(host) for host in HOSTS}, time.time()
    done, seen = threading.Event(), set()
    watcher = threading.Thread(target=watch, args=(done, seen))
    watcher.start()
    try:
        played = run({**variables, **secret}, "-vvv")
        after = {host: paths(host) for host in HOSTS}
    finally:
        done.set()
        watcher.join()
        for host in HOSTS:
            cluster(host, "sed", "-i", "/# hpcval-test$/d", "/home/admin/.bashrc")
    return Hostile(played, before, after, began, seen)


def new(hostile: Hostile, host: str) -> set[str]:
    """The paths at which there is a file or folder that was not there before."""
    return {path for path, file in hostile.after[host].items() if hostile.before[host].get(path) != file}


def test_the_hostile_run_was_judged(hostile):
    """What the other tests rest on: it got to the end, and its evidence was read."""
    assert hostile.played.criterion("JOB")["verdict"] == "pass", hostile.played.screen[-8000:]
    assert hostile.played.criterion("T-1")["verdict"] == "fail"
    assert hostile.played.criterion("T-2")["verdict"] == "fail"


def test_no_secret_is_in_a_command_line(hostile):
    assert [line for line in hostile.command_lines if SECRET in line] == []
    for known in (ON_THE_CONTROLLER, ON_THE_LOGIN_NODE):
        assert any(known in line for line in hostile.command_lines), known


def test_no_secret_is_on_the_screen_or_in_the_results(hostile):
    assert [line[:200] for line in hostile.played.screen.splitlines() if SECRET in line] == []
    assert "censored" in hostile.played.screen  # -vvv shows what tasks were given, unless they say no_log
    planted = hostile.played.folder / "evidence" / "planted"
    planted.write_text(SECRET)
    written = [path for path in hostile.played.folder.rglob("*") if path.is_file()]
    found = [path for path in written if SECRET.encode() in path.read_bytes()]
    planted.unlink()
    assert len(written) > 5
    assert found == [planted]


@contextmanager
def planted(host: str, *folders: str) -> t.Iterator[list[str]]:
    """The secret in a file of each folder, which a search has to find."""
    files = sorted(f"{folder}/hpcval-planted" for folder in folders)
    try:
        for file in files:
            cluster(host, "sh", "-c", 'echo "$0" > "$1"', SECRET, file)
        yield files
    finally:
        cluster(host, "rm", "-f", *files)


def test_no_secret_is_on_the_share_or_in_what_slurm_keeps(hostile):
    assert hostile.played.folder
    for host in HOSTS:
        kept = ["/var/log", "/var/spool", "/var/tmp", "/etc/slurm", "/tmp", "/dev/shm", "/home", "/root"]
        plant = ["/home/admin", "/var/spool"]
        if host == "login":
            kept, plant = [*kept, "/mnt/beegfs"], [*plant, "/mnt/beegfs/jobs", "/mnt/beegfs/venvs"]
        with planted(host, *plant) as files:
            found = cluster(host, "grep", "-rlaF", "--exclude-dir=venvs", SECRET, *kept, check=False).split()
            if host == "login":  # of the environments, which are large, what has been written since; no libraries
                since = ["-type", "f", "-size", "-4096k", "-newerct", f"@{int(hostile.began)}"]
                search = ["grep", "-laF", SECRET, "{}", "+"]
                found += cluster(host, "find", "/mnt/beegfs/venvs", *since, "-exec", *search, check=False).split()
        assert sorted(found) == files, host
    job = hostile.played.verdict["workloads"][0]["job"]["job_id"]
    told = cluster("login", "scontrol", "show", "job", "--details", job, check=False)
    told += cluster(
        "login", "sacct", "-P", "-j", job, "-o", "jobid,submitline,comment,workdir,admincomment", check=False
    )
    assert job in told
    assert SECRET not in told
    metrics = json.loads((SHARE / f"models/canary/job-{job}/metrics.json").read_text())
    assert job in metrics["variables"]
    assert SECRET not in metrics["variables"]  # the job did not get what was in the submitter's environment


def test_nothing_is_written_outside_of_its_own_folders(hostile):
    for host in HOSTS:
        outside = {path for path in new(hostile, host) if not path.startswith("/mnt/beegfs/")}
        assert {path for path in outside if not path.startswith("/home/admin/.ansible")} == set(), host
    tops = {path.split("/")[3] for path in new(hostile, "login") if path.startswith("/mnt/beegfs/")}
    assert tops <= LAYOUT
    models = {path.split("/")[4] for path in new(hostile, "login") if path.startswith("/mnt/beegfs/models/")}
    assert models <= {"canary"}
    assert not [path for path in new(hostile, "login") if "/.preflight/" in path]


def test_nobody_else_may_write_to_what_it_wrote(hostile):
    ours = sorted(path for path in new(hostile, "login") if path.startswith("/mnt/beegfs/"))
    assert any("/models/canary/job-" in path for path in ours)
    assert any("/jobs/.markers/" in path for path in ours)
    assert any(path.endswith(".out") for path in ours)
    listed = cluster("login", "find", *ours, "-maxdepth", "0", "-printf", "%u %m %p\n").splitlines()
    assert len(listed) == len(ours)
    assert [line for line in listed if not line.startswith("admin ") or int(line.split()[1], 8) & 0o022] == []
    journal = cluster("login", "find", "/mnt/beegfs/jobs/.journal", "-type", "f", "-printf", "%m\n").split()
    assert set(journal) == {"600"}


def test_another_user_finds_nothing_to_write_to(hostile):
    assert hostile.played.folder
    assert cluster("login", "id", "-u", user=ANOTHER_USER).strip() == "4711"
    unwritable = [
        "find",
        "/mnt/beegfs",
        "-path",
        "/mnt/beegfs/venvs/*/*",
        "-prune",
        "-o",
        "!",
        "-type",
        "l",
        "-writable",
    ]
    assert cluster("login", *unwritable, "-print", user=ANOTHER_USER, check=False) == ""
    script = "/mnt/beegfs/scripts/kit/__main__.py"
    assert "ok" not in cluster("login", "sh", "-c", f"echo >> {script} && echo ok", user=ANOTHER_USER, check=False)
    # Compiled files would be made with whatever umask the user has, and be run by every job.
    assert cluster("login", "find", "/mnt/beegfs/scripts", "-name", "__pycache__") == ""
    journal = ["find", "/mnt/beegfs/jobs/.journal", "-type", "f", "-readable"]
    assert cluster("login", *journal, user=ANOTHER_USER, check=False) == ""


def test_what_a_job_says_is_neither_a_template_nor_a_command(hostile):
    assert not Path("/tmp/hpcval-pwned").exists()
    for host in HOSTS:
        assert cluster(host, "find", "/tmp", "/home/admin", "-name", "hpcval-pwned") == ""
    assert hostile.played.criterion("T-1")["value"].startswith(TEMPLATE)
    assert hostile.played.criterion("T-1")["title"] == TEMPLATE
    assert hostile.played.verdict["workloads"][0]["title"].startswith(TEMPLATE[:60])


def test_what_a_job_says_does_nothing_to_a_terminal(hostile):
    acted_on = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
    assert acted_on.findall(hostile.played.screen) == []
    for name in ("verdict.json", "junit.xml", "evidence/TEST-1.json"):
        assert acted_on.findall((hostile.played.folder / name).read_bytes().decode("utf-8")) == [], name
    assert hostile.played.suites.findall(".//failure")


@pytest.fixture
def open_share() -> t.Iterator[str]:
    """A folder of the share to which everybody may add, as scratch folders are."""
    path = "/mnt/beegfs/hpcval-open"
    cluster("login", "install", "-d", "-m", "1777", path)
    yield path
    cluster("login", "rm", "-rf", path)


def refused(folder: Path, share: str, word: str) -> Played:
    variables = {**workload(folder), "hpc_validation_share": share}
    played = run(variables)
    assert played.code != 0
    assert played.verdict["verdict"] == "undetermined"
    assert word in played.verdict["why"], played.screen[-4000:]
    assert jobs() == []
    return played


@pytest.mark.slow
def test_code_that_another_user_put_on_the_share_is_not_run(open_share, tmp_path):
    evil = f"import os\nopen('{open_share}/pwned-' + str(os.getuid()), 'w')\n"
    make = f"mkdir -p {open_share}/scripts/kit && cat > {open_share}/scripts/kit/__init__.py"
    command = [str(ROOT / "tests/cluster/cluster"), "exec", "--user", ANOTHER_USER, "login", "--"]
    put = f"{make} <<'END'\n{evil}END\n"
    subprocess.run([*command, "sh", "-c", put], check=True, timeout=60, capture_output=True)
    refused(tmp_path, open_share, f"{open_share}/scripts belongs to user 4711")
    assert cluster("login", "find", open_share, "-name", "pwned-*") == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "word"),
    [
        (["ln", "-s", "/home/admin", "{}/models"], "models belongs to user 4711"),
        (["mkdir", "{}/jobs"], "jobs belongs to user 4711"),
        (["ln", "-s", "/home/admin/.ssh", "{}/datasets"], "datasets belongs to user 4711"),
    ],
)
def test_what_another_user_made_is_not_used(open_share, tmp_path, made, word):
    cluster("login", *(part.format(open_share) for part in made), user=ANOTHER_USER)
    refused(tmp_path, open_share, word)


@pytest.mark.slow
def test_a_share_that_everybody_may_change_is_refused(open_share, tmp_path):
    cluster("login", "chmod", "0777", open_share)
    refused(tmp_path, open_share, f"everybody may write to {open_share},")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["compute01;touch /tmp/hpcval-pwned", "$(touch /tmp/hpcval-pwned)", "../x"])
def test_a_node_name_is_only_a_name(tmp_path, name):
    variables = {**workload(tmp_path), "hpc_validation_nodes": [name]}
    played = run(variables)
    assert played.code != 0
    shown = "".join(name.split())  # a list of nodes may have spaces
    findings = [f for f in played.verdict["findings"] if f["id"] == "scheduler.node_known"]
    assert [(f["verdict"], f["where"]) for f in findings] == [("fail", {"node": shown})]
    assert f"add {shown} to slurm.conf" in " ".join(played.screen.split())
    assert jobs() == []
    assert cluster("login", "find", "/tmp", "/home/admin", "-name", "hpcval-pwned") == ""
    assert not Path("/tmp/hpcval-pwned").exists()
