# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's Prometheus and node_exporter with the configuration and the rules that the collection gives them."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import typing as t
import urllib.error
import urllib.parse
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from tests.debian import unpacked

MONITORING = Path(__file__).resolve().parents[1] / "files/workloads/gpt_pretraining/monitoring"
PATIENCE = 60.0  # seconds until a condition that must come true is given up


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _each in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Asked:
    """A Prometheus that runs."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"

    def get(self, path: str, **query: str) -> t.Any:
        """Its answer to a query of its interface."""
        address = f"{self._address}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            return json.load(answer)["data"]

    def series(self, expression: str) -> list[dict[str, t.Any]]:
        """The series that an expression has now."""
        found: list[dict[str, t.Any]] = self.get("/api/v1/query", query=expression)["result"]
        return found

    def until(self, expression: str, patience: float = PATIENCE) -> list[dict[str, t.Any]]:
        """Ask until there is an answer with a series."""
        deadline = time.monotonic() + patience
        while True:
            try:
                found = self.series(expression)
            except (urllib.error.URLError, ConnectionError):
                found = []  # not up yet
            if found:
                return found
            assert time.monotonic() < deadline, expression
            time.sleep(0.05)


@contextmanager
def prometheus_of(textfiles: Path, folder: Path, *targets: int) -> t.Iterator[Asked]:
    """Prometheus, which asks every half second, and node_exporter with this folder of text files.

    What they write goes to ``folder``; ``targets`` are ports that are asked besides.
    """
    own, exporter = free_ports(2)
    configuration = yaml.safe_load((MONITORING / "prometheus.yml").read_text(encoding="utf-8"))
    configuration["global"] = dict.fromkeys(configuration["global"], "500ms")
    configuration["rule_files"] = [str(MONITORING / name) for name in configuration["rule_files"]]
    addresses = [f"127.0.0.1:{port}" for port in (exporter, *targets)]
    configuration["scrape_configs"][0]["static_configs"] = [{"targets": addresses}]
    (folder / "prometheus.yml").write_text(json.dumps(configuration), encoding="utf-8")
    commands = [
        [
            str(unpacked("prometheus") / "usr/bin/prometheus"),
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{own}",
            "--log.level=warn",
        ],
        [
            str(unpacked("prometheus-node-exporter") / "usr/bin/prometheus-node-exporter"),
            f"--web.listen-address=127.0.0.1:{exporter}",
            "--collector.disable-defaults",
            "--collector.filesystem",
            "--collector.textfile",
            f"--collector.textfile.directory={textfiles}",
        ],
    ]
    running: list[subprocess.Popen[bytes]] = []
    try:
        with open(folder / "log", "wb") as log:
            for command in commands:
                running.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=folder))
        yield Asked(own)
    finally:
        for process in running:
            process.kill()
            process.wait()
