# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009 - unittest, for pytest is not in the runtime
"""Downloads by the real huggingface_hub from a small hub on this machine: pinned, continued, refused.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/oumi -p 'check_*.py'
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
import typing as t
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import kit

FILES = Path(kit.__file__).resolve().parents[1]
REPO, COMMIT = "mistralai/Mistral-7B-v0.1", "0123456789abcdef" * 2 + "01234567"
PAGE = f"https://huggingface.co/{REPO}"
TOKEN = "hf_CaNaRy5ecret"
WEIGHTS = "model.safetensors"
MEGABYTES = 25  # of weights: the library keeps what came of a file in pieces of 10


def weights() -> bytes:
    """Return a safetensors file."""
    size = MEGABYTES << 20
    header = json.dumps({"w": {"dtype": "I8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(range(256)) * (size // 256)


def files() -> dict[str, bytes]:
    """Return a model's files, and some that are not to be fetched."""
    return {
        "config.json": json.dumps({"model_type": "mistral"}).encode(),
        "tokenizer.json": json.dumps({"model": {"type": "BPE"}}).encode(),
        WEIGHTS: weights(),
        "pytorch_model.bin": b"\x80\x02",
        "onnx/model.safetensors": b"x",
        "modeling.py": b"x",
    }


class Hub(ThreadingHTTPServer):
    """Serves one model, as much as huggingface_hub asks for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files = files()
        self.digests = {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}
        self.refuse: int | None = None
        self.cut: int | None = None  # bytes of a file after which the connection is closed
        self.tokens: set[str | None] = set()
        self.fetched: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    """One request."""

    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""

    def send(self, status: int, body: bytes, cut: int | None = None, **headers: str) -> None:
        """Answer; with ``cut``, close the connection after so many bytes."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:cut])
            self.close_connection = cut is not None

    def do_GET(self) -> None:
        """Answer a request for the list of files or for a file."""
        self.server.tokens.add(self.headers.get("Authorization"))
        path = urlsplit(self.path).path
        name = path.removeprefix(f"/{REPO}/resolve/{COMMIT}/")
        if re.fullmatch(rf"/api/models/{REPO}/revision/(main|{COMMIT})", path):
            self.send(200, json.dumps(self.listing()).encode(), Content_Type="application/json")
        elif re.fullmatch(rf"/api/models/{REPO}/tree/(main|{COMMIT})", path):
            self.send(200, json.dumps(self.tree()).encode(), Content_Type="application/json")
        elif name not in self.server.files:
            self.send(404, b"", X_Error_Code="RevisionNotFound")
        elif self.server.refuse:
            self.send(self.server.refuse, b"", X_Error_Code="GatedRepo", X_Error_Message="Access is restricted")
        else:
            self.serve_file(name)

    do_HEAD = do_GET  # noqa: N815 - the library's name

    def listing(self) -> dict[str, t.Any]:
        """Return what the hub says of the model; only large files have a SHA-256 there."""
        siblings = []
        for name, content in self.server.files.items():
            lfs = {"sha256": self.server.digests[name], "size": len(content), "pointerSize": 130}
            more = {"lfs": lfs} if name.endswith(".safetensors") else {}
            siblings.append({"rfilename": name, "size": len(content), "blobId": "0" * 40, **more})
        return {"id": REPO, "sha": COMMIT, "siblings": siblings}

    def tree(self) -> list[dict[str, t.Any]]:
        """Return the same as newer releases of the library ask for it."""
        entries = []
        for sibling in self.listing()["siblings"]:
            lfs = {"lfs": {**sibling["lfs"], "oid": sibling["lfs"]["sha256"]}} if "lfs" in sibling else {}
            about = {"type": "file", "path": sibling["rfilename"], "oid": sibling["blobId"]}
            entries.append({**about, "size": sibling["size"], **lfs})
        return entries

    def serve_file(self, name: str) -> None:
        """Send a file or the rest of it."""
        content, asked = self.server.files[name], self.headers.get("Range")
        about = {"ETag": f'"{self.server.digests[name]}"', "X_Repo_Commit": COMMIT, "Accept_Ranges": "bytes"}
        if self.command == "HEAD":
            self.send(200, content, **about)
            return
        self.server.fetched.append(name)
        first = int(re.findall(r"\d+", asked)[0]) if asked else 0
        if asked:
            about["Content_Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
        cut = None if self.server.cut is None else max(0, self.server.cut - first)
        self.send(206 if asked else 200, content[first:], cut, **about)


class Downloads(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name, "sha're; x")
        self.target = self.folder / "mistral_7b"
        self.hub = Hub()
        thread = threading.Thread(target=self.hub.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(self.hub.server_close)
        self.addCleanup(self.hub.shutdown)

    def stage(self, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Download by the script's command line."""
        left_out = {"HF_TOKEN", "HF_HOME", "HF_HUB_OFFLINE"}
        kept = {name: value for name, value in os.environ.items() if name not in left_out}
        local = {"HF_ENDPOINT": self.hub.address, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        script = str(FILES / "models/mistral_7b/stage.py")
        return subprocess.run(
            [sys.executable, script, "--target", str(self.target), "--source", "download", *options],
            env={**kept, **local, "HOME": str(self.folder / "home"), **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def staged(self, *options: str, **environment: str) -> dict[str, t.Any]:
        """Download; return the script's answer."""
        done = self.stage(*options, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return t.cast("dict[str, t.Any]", json.loads(done.stdout))

    def refused(self, *options: str, **environment: str) -> str:
        """Try to download; return the one line that says why not."""
        done = self.stage(*options, **environment)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertFalse(self.target.exists())
        return done.stderr.splitlines()[-1]

    def beside(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if path.suffix != ".lock" and path != self.target)

    def test_it_is_pinned_checked_and_in_place(self) -> None:
        answer = self.staged()
        self.assertEqual((answer["changed"], answer["revision"]), (True, COMMIT))
        self.assertEqual((answer["model_type"], answer["parameters"]), ("mistral", MEGABYTES << 20))
        expected = ["config.json", WEIGHTS, "provenance.json", "tokenizer.json"]
        self.assertEqual(sorted(path.name for path in self.target.iterdir()), expected)
        self.assertEqual((self.target / WEIGHTS).read_bytes(), self.hub.files[WEIGHTS])
        self.assertEqual(self.hub.tokens, {None})
        self.assertEqual(self.beside(), [])  # nothing in the home either
        self.hub.shutdown()
        self.assertFalse(self.staged()["changed"])

    def test_the_token_is_sent_and_kept_nowhere(self) -> None:
        self.staged(HF_TOKEN=TOKEN)
        self.assertEqual(self.hub.tokens, {f"Bearer {TOKEN}"})
        written = [path for path in self.folder.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
        self.assertEqual(written, [])

    def test_a_download_that_breaks_off_is_continued(self) -> None:
        self.hub.cut = 12 << 20
        self.assertIn("Run it again, fetched files are kept", self.refused())
        self.assertEqual(set(self.hub.fetched), {"config.json", "tokenizer.json", WEIGHTS})
        self.hub.cut, self.hub.fetched = None, []
        self.assertTrue(self.staged()["changed"])
        self.assertEqual(self.hub.fetched, [WEIGHTS])
        self.assertEqual((self.target / WEIGHTS).read_bytes(), self.hub.files[WEIGHTS])
        self.assertEqual(self.beside(), [])

    def test_a_gated_model_says_what_to_do(self) -> None:
        for status in (401, 403):
            self.hub.refuse = status
            for environment in ({}, {"HF_TOKEN": TOKEN}):
                with self.subTest(status=status, **environment):
                    told = self.refused(**environment)
                    self.assertIn(f"(HTTP {status}) with{'' if environment else 'out a token'}", told)
                    self.assertIn("hpc_validation_hub_token", told)
                    self.assertIn(f"accept the licence on {PAGE}", told)
                    self.assertNotIn(TOKEN, told)

    def test_an_unknown_revision_and_a_hub_out_of_reach(self) -> None:
        self.assertIn("with the revision 'v9'", self.refused("--revision", "v9"))
        told = self.refused(HF_ENDPOINT="http://127.0.0.1:9")
        self.assertIn(f"cannot download {REPO} from http://127.0.0.1:9", told)
        self.assertIn("--source stand-in", told)

    def test_what_is_not_what_the_hub_lists_is_not_put_in_place(self) -> None:
        self.hub.digests[WEIGHTS] = "0" * 64
        self.assertIn(f"the hub lists {'0' * 64}", self.refused())


if __name__ == "__main__":
    unittest.main()
