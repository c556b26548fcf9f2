# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build what an edge host is sent: one zip that its Python runs, the same from the same. PRIVATE to the collection."""

from __future__ import annotations

import hashlib
import math
import re
import shutil
import typing as t
import zipfile
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import strict_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import encode_compact
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.bundle import CONTENTS, Bundle
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.problem import ProblemError

Json = dict[str, t.Any]
FOLDER = FILES / "edge"
LIST = "payload.json"  # which file each program is
PROGRAM = re.compile(r"[a-z_]+\.py", re.ASCII)
LONG_AGO = (1980, 1, 1, 0, 0, 0)
REQUEST = "request.json"
COUNT, SECONDS, KEEP = 1000, 10.0, 2  # inferences and time at least; folders of earlier runs that stay
MEASURING = 120  # seconds, besides the soak, that three measurements of a device take that is as slow as 10 ms
WHEEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}\.whl", re.ASCII)


def parts(folder: Path = FOLDER) -> dict[str, bytes]:
    """Return the programs by their names in the zip, as the list has them. Raise OSError or ValueError."""
    listed = strict_json.parse((folder / LIST).read_bytes())
    names = [*listed, *listed.values()] if isinstance(listed, dict) else [None]
    if not all(isinstance(name, str) and PROGRAM.fullmatch(name) for name in names):
        raise ValueError(
            f"{folder / LIST}: expected the name of each program in the payload, and of its file beside this"
        )
    return {name: (folder / file).read_bytes() for name, file in listed.items()}


def wheels(wheelhouse: Json) -> dict[str, tuple[Path, str]]:
    """Return the path and the SHA-256 of each wheel, by its name, as `kit wheelhouse` told them. Raise ProblemError."""
    found: dict[str, tuple[Path, str]] = {}
    for each in wheelhouse["wheels"]:
        path = Path(wheelhouse["folder"]) / each["file"]
        if not WHEEL.fullmatch(each["file"]) or _sha256(path) != each["sha256"]:
            raise ProblemError("wheels", f"{path} is not the wheel that was fetched; run it again")
        found[each["file"]] = (path, each["sha256"])
    return found


def limits(timeout: int, soak: float) -> Json:
    """Return how long a device may take and wait, of the time that one host has in all. Raise ProblemError."""
    limit, wait = timeout // 2, timeout // 6
    if soak + MEASURING > limit:
        raise ProblemError(
            "limit",
            f"a soak of {soak:g} s and {MEASURING} s for the rest are more than half of hpc_validation_edge_timeout, "
            f"{timeout} s; set it to {2 * math.ceil(soak + MEASURING)} at least",
        )
    return {"limit": limit, "wait": wait}


def soak(bundle: Bundle) -> float:
    """Return the seconds of the soak. Raise ProblemError."""
    found = bundle.contents["limits"].get("soak_seconds")
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found <= 86400:
        raise ProblemError("bundle", f"{CONTENTS}: soak_seconds is {found!r}; expected 0 to 86400 s")
    return float(found)


def request(run: str, settings: Json, bundle: Bundle, packages: Json) -> Json:
    """Return what a device is asked to do, but for `files`; `settings` has folder, root and timeout."""
    lasting = soak(bundle)
    return {
        "schema": 1,
        "run": run,
        "folder": settings["folder"],
        "count": COUNT,
        "seconds": SECONDS,
        "soak": lasting,
        **limits(settings["timeout"], lasting),
        "root": settings["root"],
        "keep": KEEP,
        "bundle": bundle.contents,
        "packages": packages,
    }


def build(path: Path, asked: Json, programs: dict[str, bytes], bundle: Bundle, wheelhouse: Json) -> None:
    """Write the payload. Nothing is packed: what is large in it is packed already. Raise OSError or ProblemError."""
    fitting = wheels(wheelhouse)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in programs.items()}
    digests |= {f"wheels/{name}": sha256 for name, (_path, sha256) in fitting.items()}
    try:
        with zipfile.ZipFile(bundle.path) as unpacked, zipfile.ZipFile(path, "w") as packed:
            for name in bundle.names():
                inside = f"bundle/{name}"
                with unpacked.open(name) as source, packed.open(_entry(inside), "w", force_zip64=True) as stream:
                    digests[inside] = _copied(source, stream)
            for name, (wheel, _sha256) in sorted(fitting.items()):
                with wheel.open("rb") as source, packed.open(_entry(f"wheels/{name}"), "w", force_zip64=True) as stream:
                    shutil.copyfileobj(source, stream)
            for name, content in sorted(programs.items()):
                packed.writestr(_entry(name), content)
            packed.writestr(_entry(REQUEST), encode_compact({**asked, "files": dict(sorted(digests.items()))}))
    except (zipfile.BadZipFile, EOFError) as exc:
        raise ProblemError("bundle", f"deploy.zip is torn: {exc}") from exc


def _entry(name: str) -> zipfile.ZipInfo:
    """Return an entry that is the same whoever makes it, and whenever."""
    entry = zipfile.ZipInfo(name, LONG_AGO)
    entry.create_system = 3
    entry.external_attr = 0o100644 << 16
    return entry


def _copied(source: t.IO[bytes], target: t.IO[bytes]) -> str:
    """Copy a stream and return its SHA-256."""
    found = hashlib.sha256()
    while chunk := source.read(1 << 20):
        found.update(chunk)
        target.write(chunk)
    return found.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        found = hashlib.sha256()
        while chunk := stream.read(1 << 20):
            found.update(chunk)
    return found.hexdigest()
