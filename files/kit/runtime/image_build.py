# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build an Apptainer image of a locked environment, as an ordinary user, from containers/runtime.def."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kit.errors import KitError
from kit.host.facts import apptainer
from kit.process import unfinished
from kit.runtime.installers import run
from kit.runtime.venv import MEGABYTE, read_lock

LEAST_APPTAINER = (1, 4)  # the first that takes --mksquashfs-args
# The variables that may configure an installer; Apptainer passes on only those that start with APPTAINERENV_.
HANDED_ON = ("UV_", "PIP_")
NOT_THERE = ("UV_CONFIG_FILE", "PIP_CONFIG_FILE")  # paths of the login node
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE")
WITHIN = "/var/cache/hpc_validation"  # where the build sees the bound folders: created by the definition's %setup
COMPRESSION = "-comp zstd -Xcompression-level 1"  # gzip, the default, takes minutes longer for gigabytes


@dataclass(frozen=True)
class Recipe:
    """The sources that an image is built from."""

    name: str
    base: str  # in Apptainer's form: docker://python:3.13-slim, docker-archive:/path, localimage:/path, …
    scripts: Path  # the folder with kit/, requirements/ and containers/
    cache: Path
    wheelhouse: Path | None = None

    @property
    def lock(self) -> Path:
        """The lock file of the environment."""
        return self.scripts / "requirements" / f"{self.name}.txt"

    @property
    def definition(self) -> Path:
        """The definition file."""
        return self.scripts / "containers" / "runtime.def"

    @cached_property
    def digest(self) -> str:
        """The hash that identifies this recipe: lock, definition and base."""
        try:
            parts = [self.lock.read_bytes(), self.definition.read_bytes(), self.base.encode()]
        except OSError as error:
            raise KitError(f"{error.filename}: {error.strerror}; deploy the collection's files again") from error
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def build(recipe: Recipe, target: Path, folder: Path) -> Path:
    """Build next to ``target`` and return the new file; raise KitError with Apptainer's output if that fails."""
    agent, _colon, source = recipe.base.partition(":")
    if not source:
        raise KitError(f"base image {recipe.base!r}: expected AGENT:SOURCE, such as docker://python:3.13-slim")
    _require_apptainer()
    building = unfinished.beside(target)
    place = Path(os.environ.get("APPTAINER_TMPDIR") or tempfile.gettempdir())
    unfinished.remove_beside(target)
    unfinished.remove_abandoned(place.glob("hpc_validation-image-*"))
    recipe.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hpc_validation-image-", dir=place) as temporary:
        _require_space(Path(temporary), folder, recipe)
        words = {"BOOTSTRAP": agent, "FROM": source.removeprefix("//"), "NAME": recipe.name}
        arguments = [word for key, value in words.items() for word in ("--build-arg", f"{key}={value}")]
        lent, environment = _lent(recipe)
        environment = {**os.environ, **environment, "APPTAINER_TMPDIR": temporary}
        command = ["apptainer", "build", "--disable-cache", "--mksquashfs-args", COMPRESSION, *lent, *arguments]
        try:
            run([*command, str(building), str(recipe.definition)], environment, folder=recipe.scripts)
        except BaseException:
            building.unlink(missing_ok=True)
            raise
    return building


def _require_apptainer() -> None:
    found = apptainer()
    version = found["version"]
    if not version:
        raise KitError(
            f"an image cannot be built here: {found['error']}; install Apptainer, or provide a finished image"
        )
    if tuple(int(number) for number in version.split(".")[:2]) < LEAST_APPTAINER:
        least = ".".join(map(str, LEAST_APPTAINER))
        raise KitError(f"an image cannot be built here: Apptainer is {version}, expected {least} or newer")


def _require_space(temporary: Path, folder: Path, recipe: Recipe) -> None:
    needed = read_lock(recipe.lock).needs_mb
    for place, remedy in (
        (temporary, "set APPTAINER_TMPDIR in hpc_validation_install_environment"),
        (folder, "free some space"),
    ):
        free = shutil.disk_usage(place).free // MEGABYTE
        if free < needed:
            raise KitError(
                f"{place} has {free} MB free, the image {recipe.name} needs about {needed} MB there: {remedy}"
            )


def _lent(recipe: Recipe) -> tuple[list[str], dict[str, str]]:
    """Return the bind options of the build, and the variables that name the bound folders inside."""
    binds = [f"{recipe.cache}:{WITHIN}/uv"]
    inside = {"HPC_VALIDATION_CACHE": f"{WITHIN}/uv", "UV_LINK_MODE": "copy"}
    if recipe.wheelhouse:
        binds.append(f"{recipe.wheelhouse}:{WITHIN}/wheels:ro")
        inside["HPC_VALIDATION_WHEELHOUSE"] = f"{WITHIN}/wheels"
    inside |= {
        name: value
        for name, value in os.environ.items()
        if (name.startswith(HANDED_ON) and name not in NOT_THERE) or name.lower() in PROXIES
    }
    bundles = {name: os.environ[name] for name in CERTIFICATES if Path(os.environ.get(name, "")).is_file()}
    if bundles:
        binds.append(f"{next(iter(bundles.values()))}:{WITHIN}/certificates.crt:ro")
        inside |= dict.fromkeys(bundles, f"{WITHIN}/certificates.crt")
    options = [word for bind in binds for word in ("--bind", bind)]
    return options, {f"APPTAINERENV_{name}": value for name, value in inside.items()}
