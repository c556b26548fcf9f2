# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this machine offers and lacks: tools, container runtime, limits, certificates, apt's settings."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from hpcval_cluster.state import ClusterError, cache_root, write_atomically

TOOLS = {"podman": "podman", "conmon": "conmon", "iptables": "iptables", "ssh-keygen": "openssh-client"}
NETWORK_PROGRAMS = (
    "/usr/lib/podman/netavark",
    "/usr/libexec/podman/netavark",
    "/usr/lib/cni/bridge",
    "/usr/libexec/cni/bridge",
)
CA_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
PROXY_VARIABLES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
INDEX_VARIABLES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX")
# podman's own defaults, which it sets in every container.
PODMAN_NOFILE = 1048576
NPROC_CEILING = 20000


def say(message: str) -> None:
    """Progress, for people; on stderr, so that a command's own output stays clean."""
    print(f"cluster: {message}", file=sys.stderr, flush=True)


def cgroup_version() -> str:
    """v2 where the unified hierarchy has the controllers, v1 where they are separate, none where there are none."""
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return "v2"
    return "v1" if Path("/sys/fs/cgroup/devices").is_dir() else "none"


def require_root() -> None:
    """Refuse early: containers with device files and cgroups of their own need root."""
    if os.geteuid() != 0:
        raise ClusterError("the local cluster needs root (device files, cgroups, networks): run it with sudo")


def has_podman() -> bool:
    """Whether there can be any container of ours."""
    return shutil.which("podman") is not None


def _missing_packages() -> list[str]:
    missing = [package for tool, package in TOOLS.items() if not shutil.which(tool)]
    if not shutil.which("runc") and (cgroup_version() != "v2" or not shutil.which("crun")):
        missing.append("runc")
    if not any(Path(program).exists() for program in NETWORK_PROGRAMS):
        missing.append("netavark")
    return missing


def install(packages: list[str]) -> None:
    """Install Debian packages, saying so; where that is not possible say exactly what is missing."""
    if not packages:
        return
    words = " ".join(packages)
    if not shutil.which("apt-get"):
        raise ClusterError(f"this machine has no apt-get; install these yourself and try again: {words}")
    say(f"installing {', '.join(packages)} with apt-get")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages]
    first = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if first.returncode == 0:
        return
    subprocess.run(["apt-get", "update", "--quiet"], env=environment, capture_output=True, check=False)
    second = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if second.returncode != 0:
        why = second.stderr.strip()[-2000:]
        raise ClusterError(f"apt-get could not install {words}; install them yourself:\n{why}")


def require_tools() -> None:
    """Install what running containers needs and is missing."""
    install(_missing_packages())
    if not has_podman():
        raise ClusterError("podman is still missing; install it and try again")


def _limits_podman_cannot_have() -> dict[str, int]:
    """podman raises every container's limits; where that is not permitted these are the ones to stay at."""
    needed = {"nofile": (resource.RLIMIT_NOFILE, PODMAN_NOFILE), "nproc": (resource.RLIMIT_NPROC, 4194304)}
    lower = {}
    for name, (limit, wanted) in needed.items():
        soft, hard = resource.getrlimit(limit)
        if hard == resource.RLIM_INFINITY:
            continue
        try:
            resource.setrlimit(limit, (soft, max(wanted, hard)))
            resource.setrlimit(limit, (soft, hard))
        except (ValueError, OSError):
            lower[name] = hard
    return lower


def podman_environment() -> dict[str, str]:
    """The environment podman is called with."""
    environment = dict(os.environ)
    lower = _limits_podman_cannot_have()
    if lower and "CONTAINERS_CONF" not in environment:
        # Both, because the list replaces podman's own; podman lowers its own limit of processes, so stay well below.
        lower.setdefault("nofile", PODMAN_NOFILE)
        lower["nproc"] = min(lower.get("nproc", NPROC_CEILING), NPROC_CEILING)
        limits = ", ".join(f'"{name}={value}:{value}"' for name, value in sorted(lower.items()))
        path = cache_root() / "containers.conf"
        text = f"[containers]\ndefault_ulimits = [{limits}]\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_atomically(path, text)
        environment["CONTAINERS_CONF"] = str(path)
    return environment


def podman(*arguments: str, check: bool = True, text_in: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run podman, its output captured; a failure is a ClusterError that shows what podman said."""
    result = subprocess.run(
        podman_command(*arguments),
        env=podman_environment(),
        capture_output=True,
        text=True,
        errors="replace",
        input=text_in,
        stdin=None if text_in is not None else subprocess.DEVNULL,
        check=False,
    )
    if check and result.returncode != 0:
        shown = " ".join(arguments[:4])
        raise ClusterError(f"`podman {shown} …` ended {result.returncode}:\n{result.stderr.strip()[-3000:]}")
    return result


def podman_command(*arguments: str) -> list[str]:
    """podman's command line for this machine: crun refuses cgroup hierarchies that are not purely v2."""
    runtime = ["--runtime", "runc"] if cgroup_version() != "v2" else []
    return ["podman", *runtime, *arguments]


def registry_image(suite: str) -> str:
    """The image to pull as a base, empty where no image registry answers quickly."""
    try:
        # Through proxies and with certificates as the environment has them; a registry asks who is there (401).
        urllib.request.urlopen("https://registry-1.docker.io/v2/", timeout=4).close()
    except urllib.error.HTTPError as error:
        if "Docker-Distribution-Api-Version" not in error.headers:
            return ""
    except (OSError, ValueError):
        return ""
    return f"docker.io/library/debian:{suite}-slim"


def ca_bundle() -> Path | None:
    """The certificates this machine trusts."""
    named = [os.environ.get(name, "") for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")]
    for candidate in (*named, *CA_BUNDLES):
        if candidate and Path(candidate).is_file():
            return Path(candidate)
    return None


def session_environment() -> dict[str, str]:
    """What a session on a node needs to reach the network as this machine does."""
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    variables = {"LANG": "C.UTF-8", "SSL_CERT_FILE": bundle, "REQUESTS_CA_BUNDLE": bundle, "PIP_CERT": bundle}
    for name in PROXY_VARIABLES:
        for spelling in (name, name.upper()):
            if os.environ.get(spelling):
                variables[spelling] = os.environ[spelling]
    for name in INDEX_VARIABLES:
        if os.environ.get(name, "").startswith(("http://", "https://")):
            variables[name] = os.environ[name]
    return variables


def apt_settings() -> str:
    """This machine's apt settings that decide whether a download works: proxies, dates, retries, timeouts."""
    wanted = re.compile(
        r"^Acquire::(?:Check-Valid-Until|Check-Date|Max-FutureTime|Max-ValidTime|Min-ValidTime|Retries|ForceIPv[46]|"
        r"(?:https?|ftp)::(?:Proxy(?:::[^ ]+)?|Timeout|Verify-Peer|Verify-Host|Pipeline-Depth)|"
        r"https?::[^ ]+::(?:Verify-Peer|Verify-Host)) "
    )
    if not shutil.which("apt-config"):
        return ""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False).stdout
    return "".join(f"{line}\n" for line in dump.splitlines() if wanted.match(line))


def debian_mirror() -> str:
    """The Debian mirror that HPC_VALIDATION_DEBIAN_MIRROR names, else the one this machine itself uses."""
    named = os.environ.get("HPC_VALIDATION_DEBIAN_MIRROR")
    if named:
        return named.rstrip("/")
    sources = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for source in sources:
        try:
            text = source.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        for line in text.splitlines():
            if line.lstrip().startswith("#"):
                continue
            for match in re.finditer(r"https?://[^\s\]]+", line):
                address = match.group().rstrip("/")
                if address.endswith("/debian"):
                    return address
    raise ClusterError(
        "this machine's apt sources name no Debian mirror: set HPC_VALIDATION_DEBIAN_MIRROR=http://HOST/debian"
    )
