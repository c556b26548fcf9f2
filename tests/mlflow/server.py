# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real MLflow server on the local cluster's login node, as docs/profiles.md says to start one, and its own client."""

from __future__ import annotations

import json
import shutil
import typing as t
from pathlib import Path

from tests.integration.conftest import CACHE, CLUSTER, ROOT, cluster, wait_for
from tests.integration.environments import installed

LOCK = Path(__file__).with_name("mlflow.txt")
PAYLOAD = "evaluations/mlflow"  # below the share: what installs it
PORT = 5000
ADDRESS = f"http://login:{PORT}"
FOLDER = "/var/tmp/mlflow"
PATIENCE = 120.0  # seconds: its first start makes its database

# Starts the rest in a session of its own, by whose id it can be ended.
SPAWN = """
import os, subprocess, sys
folder, *command = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
with open(f"{folder}/log", "ab") as log:
    begun = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                             start_new_session=True, env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"})
with open(f"{folder}/session", "w") as stream:
    stream.write(str(begun.pid))
"""
SIGNAL = "import os, signal, sys; os.killpg(int(open(sys.argv[1]).read()), getattr(signal, sys.argv[2]))"
ANSWERS = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5).read()"
BROKEN = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_error(500)
    do_GET = do_POST = answer
http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
"""
# Every value of every run of an experiment, by MLflow's own client.
ASKED = """
import json, sys
from mlflow import MlflowClient
client = MlflowClient(sys.argv[1])
found = []
for experiment in client.search_experiments():
    for run in client.search_runs([experiment.experiment_id]):
        histories = {key: client.get_metric_history(run.info.run_id, key) for key in run.data.metrics}
        metrics = {key: [[each.step, each.value] for each in history] for key, history in histories.items()}
        found.append({"experiment": experiment.name, "status": run.info.status, "parameters": run.data.params,
                      "metrics": metrics})
print(json.dumps(found))
"""


def python() -> str:
    """The interpreter of the environment with MLflow on the share; it is installed once, and kept."""
    payload = CACHE / "clusters" / CLUSTER / "share" / PAYLOAD
    shutil.copytree(ROOT / "files/kit", payload / "kit", dirs_exist_ok=True)
    (payload / "requirements").mkdir(exist_ok=True)
    shutil.copy(LOCK, payload / "requirements")
    return installed("mlflow", f"/mnt/beegfs/{PAYLOAD}")


def start() -> None:
    """Start a server with what it had stored, if it had, and wait until it answers."""
    serve = ["--host", "login", "--port", str(PORT), "--workers", "1", "--allowed-hosts", f"login,login:{PORT}"]
    store = ["--backend-store-uri", f"sqlite:///{FOLDER}/mlflow.db", "--artifacts-destination", f"{FOLDER}/artifacts"]
    _spawn(python(), "-m", "mlflow", "server", *serve, *store)
    wait_for(_answers, PATIENCE)


def broken() -> None:
    """Start a server that answers every request with 500."""
    _spawn("python3", "-c", BROKEN, str(PORT))


def kill() -> None:
    """End it as a kernel would."""
    _signal("SIGKILL")


def stop() -> None:
    """Let it accept connections, and answer nothing."""
    _signal("SIGSTOP")


def end() -> None:
    """End it, and forget what it had stored."""
    cluster("login", "python3", "-c", SIGNAL, f"{FOLDER}/session", "SIGKILL", user="admin", check=False)
    cluster("login", "rm", "-rf", FOLDER, user="admin")


def asked() -> list[dict[str, t.Any]]:
    """Every run: experiment, status, parameters, and its metrics as pairs of step and value."""
    found: list[dict[str, t.Any]] = json.loads(cluster("login", python(), "-c", ASKED, ADDRESS, user="admin"))
    return found


ACTS = {each.__name__: each for each in (start, broken, kill, stop, end)}


def _spawn(*command: str) -> None:
    cluster("login", "python3", "-c", SPAWN, FOLDER, *command, user="admin")


def _signal(name: str) -> None:
    cluster("login", "python3", "-c", SIGNAL, f"{FOLDER}/session", name, user="admin")


def _answers() -> bool:
    return _quiet("python3", "-c", ANSWERS, f"{ADDRESS}/health")


def _quiet(*command: str) -> bool:
    return "ok" in cluster(
        "login", "sh", "-c", '"$@" 2>/dev/null && echo ok', "sh", *command, user="admin", check=False
    )
