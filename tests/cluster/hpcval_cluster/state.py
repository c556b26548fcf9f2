# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, folders and the recorded state of a local cluster."""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path

LOGIN = "login"
COMPUTE = ("compute01", "compute02")
HOSTS = (LOGIN, *COMPUTE)
EDGE = "edge01"  # no node: a host with ssh and Python alone
FLEET = "fleet"  # the container that all nodes of a fleet are in, and their partition
MOST_FLEET = 1000
GPUS_PER_NODE = 2
ADMIN = "admin"
ADMIN_UID = 1000
SHARE = "/mnt/beegfs"
KEPT = ("venvs", "containers")  # folders of the share that all clusters have in common and that outlive them
PREFIX = "hpcval"
CHECKOUT = str(Path(__file__).resolve().parents[3])  # whose clusters these are: others use this machine's podman too
CHECKOUT_LABEL = f"{PREFIX}-checkout"
# Builders have no labels: an image inherits those of the container that it was made of, and so would all made from it.
BUILDER = f"{PREFIX}-build-{hashlib.sha256(CHECKOUT.encode()).hexdigest()[:8]}-"

SUITES = {"22.05": "bookworm", "24.11": "trixie", "26.05": "sid"}
APPTAINER_SUITES = ("trixie", "sid")  # what image/packages.sh can install Apptainer in
DEFAULT_RELEASE = "24.11"


class ClusterError(Exception):
    """Something the user has to know: what, where, and what to do about it."""


def cache_root() -> Path:
    """Folder outside the checkout that keeps downloads, environments and the state of clusters."""
    chosen = os.environ.get("HPC_VALIDATION_CACHE")
    if chosen:
        return Path(chosen)
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache") / "hpc_validation"


def check_name(name: str) -> str:
    """The cluster's name, refused unless podman, Slurm and the network can all bear it."""
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,15}", name):
        raise ClusterError(
            f"cluster name {name!r}: expected a lower-case letter, then at most 15 lower-case letters, digits or dashes"
        )
    return name


def write_atomically(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file so that a reader sees the old or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as stream:
        os.fchmod(stream.fileno(), mode)
        stream.write(content.encode() if isinstance(content, str) else content)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


@dataclass
class Cluster:
    """What is recorded of one local cluster, in `<cache>/clusters/<name>/cluster.json`."""

    name: str
    release: str = DEFAULT_RELEASE
    accounting: bool = True
    share_size: str = ""
    fleet: int = 0
    cgroup: str = "none"
    confinement: str = "none"
    image: str = ""
    edge: str = ""  # what edge01 is confined to, empty where there is none yet
    edge_image: str = ""
    checkout: str = ""
    addresses: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Everything of this cluster that lies on the host."""
        return cache_root() / "clusters" / self.name

    @property
    def share(self) -> Path:
        """The host's side of the share."""
        return self.folder / "share"

    @property
    def ssh_config(self) -> Path:
        """The configuration that `ssh -F` and Ansible use."""
        return self.folder / "ssh_config"

    @property
    def network(self) -> str:
        """Name of the podman network."""
        return f"{PREFIX}-{self.name}"

    @property
    def machines(self) -> tuple[str, ...]:
        """What has a container of its own, but for edge01, which Slurm knows nothing of."""
        return (*HOSTS, FLEET) if self.fleet else HOSTS

    @property
    def fleet_nodes(self) -> tuple[str, ...]:
        """The nodes of the fleet: n001, …"""
        width = max(3, len(str(self.fleet)))
        return tuple(f"n{number:0{width}}" for number in range(1, self.fleet + 1))

    @property
    def compute(self) -> tuple[str, ...]:
        """All compute nodes, in Slurm's order."""
        return (*COMPUTE, *self.fleet_nodes)

    @property
    def labels(self) -> list[str]:
        """What podman keeps with its containers and its network."""
        return [f"--label={PREFIX}={self.name}", f"--label={CHECKOUT_LABEL}={CHECKOUT}"]

    def container(self, host: str) -> str:
        """Name of the container that a host is, or is in."""
        return f"{PREFIX}-{self.name}-{host if host in (*HOSTS, EDGE) else FLEET}"

    def save(self) -> None:
        """Record the state."""
        write_atomically(self.folder / "cluster.json", json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def load(cls, name: str) -> Cluster | None:
        """The recorded state, None where no cluster of that name is recorded."""
        path = cache_root() / "clusters" / check_name(name) / "cluster.json"
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise ClusterError(f"{path} is unreadable ({error}); remove it with: cluster down --name {name}") from error


def gpu_uuid(cluster: str, host: str, index: int) -> str:
    """The simulated GPU's UUID: the same every time for one cluster, host and index."""
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{index}.{host}.{cluster}.hpcval')}"
