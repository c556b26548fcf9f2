# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Payloads with stand-ins of NumPy and ONNX Runtime, which a model's file tells what to do."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.unit.conftest import ROOT

EDGE = ROOT / "files/edge"
NUMPY = """
import json, struct
__version__ = "2.0"
class Array:
    def __init__(self, rows): self.rows = rows
    def __len__(self): return len(self.rows)
    def __getitem__(self, which): return Array(self.rows[which])
    def astype(self, kind): return self
    def tobytes(self): return b"".join(struct.pack("<f", each) for row in self.rows for each in row)
    @property
    def shape(self): return (len(self.rows), len(self.rows[0]))
def load(path, allow_pickle): return Array(json.loads(open(path).read()))
def concatenate(parts): return Array([row for part in parts for row in part.rows])
"""
RUNTIME = """
import json, os, signal, time
__version__ = "1.5"
class Named: name = "x"
class SessionOptions:
    def add_session_config_entry(self, key, value): pass
class InferenceSession:
    def __init__(self, path, options, providers):
        self.told = json.load(open(path))
        if self.told.get("do"): exec(self.told["do"])
    def get_inputs(self): return [Named]
    get_outputs = get_inputs
    def run(self, names, given):
        return [given["x"]]
"""
LIMITS = {"power_rails": None, "soak_seconds": 0.0}


def wheel(path: Path, files: Mapping[str, str]) -> Path:
    """Write a wheel, not compressed: so that a byte of it can be changed."""
    with zipfile.ZipFile(path, "w") as stream:
        for name, text in files.items():
            stream.writestr(name, text)
    return path


class Payload:
    """What a payload is made of, to be changed before it is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.models: dict[str, dict[str, Any]] = {"float": {}, "pruned": {}, "int8": {}}
        self.wheels = {
            "numpy-2.0-py3-none-any.whl": {"numpy/__init__.py": NUMPY, "numpy-2.0.dist-info/METADATA": "x"},
            "onnxruntime-1.5-py3-none-any.whl": {
                "onnxruntime/__init__.py": RUNTIME,
                "onnxruntime-1.5.dist-info/METADATA": "x",
            },
        }
        self.asked: dict[str, Any] = {
            "schema": 1,
            "run": "run-1",
            "folder": str(self.home),
            "count": 50,
            "seconds": 0.0,
            "soak": 0.0,
            "limit": 100,
            "root": str(folder / "root"),
            "keep": 2,
            "wait": 0,
            "bundle": {"schema": 1, "deployed": "int8", "files": {}, "limits": LIMITS},
            "packages": {"numpy": "2.0", "onnxruntime": "1.5"},
        }
        self.wrong_hashes: dict[str, str] = {}
        self.further: dict[str, str] = {}
        self.bundled: dict[str, str] = {}

    @property
    def run(self) -> Path:
        return self.home / self.asked["run"]

    def contents(self) -> dict[str, bytes]:
        """Name in the payload → content, of all but request.json."""
        listed = json.loads((EDGE / "payload.json").read_text())
        found = {name: (EDGE / file).read_bytes() for name, file in listed.items()}
        bundle = {f"{name}.onnx": json.dumps(told) for name, told in self.models.items()}
        bundle |= {"inputs.npy": json.dumps([[at, at + 0.5] for at in range(5)]), "answers.npy": "[]", **self.bundled}
        self.asked["bundle"]["files"] = {name: {} for name in bundle}
        found |= {f"bundle/{name}": text.encode() for name, text in bundle.items()}
        for name, files in self.wheels.items():
            found[f"wheels/{name}"] = wheel(self.folder / name, files).read_bytes()
        return found

    def write(self, flip: str = "") -> Path:
        """Write it; of the file ``flip`` one byte is another one than its hash says."""
        contents = self.contents()
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        self.asked["files"] = {**hashes, **self.wrong_hashes}
        if flip:
            contents[flip] = contents[flip][:-1] + bytes([contents[flip][-1] ^ 1])
        path = self.folder / "payload.pyz"
        with zipfile.ZipFile(path, "w") as stream:
            for name, content in contents.items():
                stream.writestr(name, content)
            for name, text in self.further.items():
                stream.writestr(name, text)
            stream.writestr("request.json", json.dumps(self.asked))
        return path
