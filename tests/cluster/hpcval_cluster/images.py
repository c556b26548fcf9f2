# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node images: a bare Debian, then the recipe in `image/`, each step cached under a hash of what went into it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import time
from pathlib import Path

from hpcval_cluster import host
from hpcval_cluster.state import (
    APPTAINER_SUITES,
    BUILDER,
    DEFAULT_RELEASE,
    PREFIX,
    SUITES,
    ClusterError,
    cache_root,
    write_atomically,
)

ROOT = Path(__file__).resolve().parent.parent
RECIPE = ROOT / "image"
NVML = ROOT / "nvml"
EDGE_RECIPE = ROOT / "edge"


def _hash(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:12]


def _contents(folder: Path) -> bytes:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return b"".join(path.name.encode() + b"\0" + path.read_bytes() for path in files)


def _exists(image: str) -> bool:
    return host.podman("image", "exists", image, check=False).returncode == 0


def _bundle() -> bytes:
    path = host.ca_bundle()
    return path.read_bytes() if path else b""


def _settings() -> tuple[Path, Path]:
    """Files with this machine's apt settings and certificates, to be mounted while building."""
    settings, bundle = cache_root() / "apt.conf", cache_root() / "ca.crt"
    write_atomically(settings, host.apt_settings())
    write_atomically(bundle, _bundle().decode("utf-8", "replace"))
    return settings, bundle


def _base(suite: str) -> str:
    """A bare Debian: pulled where an image registry answers, else bootstrapped from Debian's packages."""
    image = f"localhost/{PREFIX}-base:{suite}"
    if _exists(image):
        return image
    address = host.registry_image(suite)
    if address:
        host.say(f"pulling {address}")
        if host.podman("pull", "--quiet", address, check=False).returncode == 0:
            host.podman("tag", address, image)
            return image
        host.say("the pull failed; bootstrapping from Debian's packages instead")
    if not shutil.which("mmdebstrap"):
        host.install(["mmdebstrap", "debian-archive-keyring"])
    mirror = host.debian_mirror()
    host.say(f"bootstrapping Debian {suite} from {mirror}")
    settings, _other = _settings()
    archive = cache_root() / f"base-{suite}.tar"
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", f"--aptopt={settings}"]
    command += ['--aptopt=Acquire::Languages "none"', "--dpkgopt=force-unsafe-io"]
    command += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale", "info")]
    result = subprocess.run([*command, suite, str(archive), mirror], capture_output=True, text=True, check=False)
    try:
        if result.returncode != 0:
            raise ClusterError(f"Debian {suite} could not be bootstrapped from {mirror}:\n{result.stderr[-3000:]}")
        host.podman("import", "--quiet", str(archive), image)
    finally:
        archive.unlink(missing_ok=True)
    return image


def _derive(base: str, image: str, command: list[str], mounts: dict[Path, str]) -> None:
    """Run a recipe script in a container made from `base` and keep the result as `image`."""
    worker = BUILDER + image.rsplit(":", 1)[1]
    host.podman("rm", "--force", "--ignore", worker)
    volumes = [f"--volume={source}:{target}" for source, target in mounts.items()]
    try:
        options = [f"--name={worker}", "--network=host", "--privileged", *volumes]
        host.podman("run", *options, base, "sh", *command)
        host.podman("commit", "--quiet", worker, image)
    finally:
        host.podman("rm", "--force", "--ignore", worker, check=False)


def _python_archive(settings: Path, bundle: Path) -> None:
    """A bare Debian with Python, on the share: what Apptainer images are made from where there is no registry."""
    archive = cache_root() / "containers" / "python.tar"
    if archive.exists():
        return
    suite = SUITES[DEFAULT_RELEASE]
    image = f"localhost/{PREFIX}-python:{suite}"
    mounts = {RECIPE: "/hpcval-recipe:ro", settings: "/hpcval-apt:ro", bundle: "/hpcval-ca.crt:ro"}
    _derive(_base(suite), image, ["/hpcval-recipe/python.sh", suite, host.debian_mirror()], mounts)
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    host.podman("save", "--quiet", "--format=docker-archive", f"--output={partial}", image)
    host.podman("image", "rm", image)
    partial.rename(archive)


def _remove_superseded(image: str, prefix: str) -> None:
    """Remove what an older recipe made; an image that a container still uses stays (podman refuses)."""
    for other in host.podman("images", "--format={{.Repository}}:{{.Tag}}").stdout.split():
        if other.startswith(f"localhost/{prefix}") and other != image:
            host.podman("image", "rm", other, check=False)


def names(release: str) -> tuple[str, str]:
    """The images that the present recipe makes for a Slurm release: the packages' and, on top of it, the node's."""
    recipe = _hash(*((RECIPE / name).read_bytes() for name in ("apt.sh", "packages.sh")))
    packages = f"localhost/{PREFIX}-packages:{SUITES[release]}-{recipe}"
    recipe = _hash(packages.encode(), _contents(RECIPE), _contents(NVML), _bundle())
    return packages, f"localhost/{PREFIX}-node:{release}-{recipe}"


def build(release: str) -> str:
    """The node image for a Slurm release, built if need be; returns its name."""
    suite = SUITES[release]
    packages, node = names(release)
    settings, bundle = _settings()
    if suite in APPTAINER_SUITES:
        _python_archive(settings, bundle)
    if _exists(node):
        return node
    started = time.monotonic()
    if not _exists(packages):
        mounts = {RECIPE: "/hpcval-recipe:ro", _archives(suite): "/var/cache/apt/archives"}
        mounts |= {settings: "/hpcval-apt:ro", bundle: "/hpcval-ca.crt:ro"}
        base = _base(suite)
        host.say(f"installing Slurm {release} and its company (Debian {suite}) into an image")
        _derive(base, packages, ["/hpcval-recipe/packages.sh", suite, host.debian_mirror(), release], mounts)
    mounts = {RECIPE: "/hpcval-recipe:ro", NVML: "/hpcval-nvml:ro", bundle: "/hpcval-ca.crt:ro"}
    _derive(packages, node, ["/hpcval-recipe/node.sh"], mounts)
    _remove_superseded(node, f"{PREFIX}-node:{release}-")
    _remove_superseded(packages, f"{PREFIX}-packages:{suite}-")
    host.say(f"image {node} built in {time.monotonic() - started:.0f} s")
    return node


def edge_name(release: str) -> str:
    """The image that the present recipe makes for edge01 beside nodes of a Slurm release: of the same Debian."""
    suite = SUITES[release]
    recipe = _hash(suite.encode(), (RECIPE / "apt.sh").read_bytes(), _contents(EDGE_RECIPE))
    return f"localhost/{PREFIX}-edge:{suite}-{recipe}"


def build_edge(release: str) -> str:
    """edge01's image, built if need be; returns its name."""
    image, suite = edge_name(release), SUITES[release]
    if _exists(image):
        return image
    started = time.monotonic()
    settings, bundle = _settings()
    archives = _archives(suite)
    mounts = {RECIPE: "/hpcval-recipe:ro", EDGE_RECIPE: "/hpcval-edge:ro", archives: "/var/cache/apt/archives"}
    mounts |= {settings: "/hpcval-apt:ro", bundle: "/hpcval-ca.crt:ro"}
    _derive(_base(suite), image, ["/hpcval-edge/image.sh", suite, host.debian_mirror()], mounts)
    _remove_superseded(image, f"{PREFIX}-edge:{suite}-")
    host.say(f"image {image} built in {time.monotonic() - started:.0f} s")
    return image


def _archives(suite: str) -> Path:
    """The folder of Debian's packages that were downloaded for a suite."""
    folder = cache_root() / "packages" / suite
    (folder / "partial").mkdir(parents=True, exist_ok=True)
    return folder
