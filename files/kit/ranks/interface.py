# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network interface of this node that leads to another, so that a bad pair is named by its interfaces too.

The kernel's route decides, unless the communication library is configured to use certain interfaces. Over InfiniBand
and RoCE, NCCL's data may go through an adapter of another interface: NCCL_DEBUG=INFO shows which.
"""

from __future__ import annotations

import array
import fcntl
import ipaddress
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SIOCGIFCONF = 0x8912  # asks for all IPv4 addresses, from <linux/sockios.h>
IFREQ = 40  # bytes of each: a name of 16 bytes, a family and a port of 2, the address
MOST = 4096
IPV6 = Path("/proc/net/if_inet6")
DISCARD = 9  # a port; nothing is sent to it


@dataclass(frozen=True)
class Interface:
    """An interface and its address; if it is unknown, `problem` says why."""

    name: str | None = None
    address: str | None = None
    problem: str | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.address}" if self.name else f"an unknown interface: {self.problem}"


def interface_to(host: str, wanted: str = "") -> Interface:
    """Return the interface that leads to ``host``, a name or an address; ``wanted`` are those to use (`wanted_by`).

    It is the route's interface if wanted, else the first wanted one. Never raises because of the network.
    """
    try:
        local = _address_towards(host)
        found = addresses()
    except (OSError, ValueError, IndexError) as error:  # invalid names, a table of unexpected form
        return Interface(problem=f"{host}: {getattr(error, 'strerror', None) or error}")
    usable = [(name, address) for name, address in found if allows(wanted, name)]
    if not usable:
        return Interface(problem=f"none of {', '.join(sorted({name for name, _address in found}))} is {wanted}")
    routed = [pair for pair in usable if pair[1] == local]
    if not routed and not wanted:
        return Interface(problem=f"no interface has {local}, from which {host} is reached")
    alike = [pair for pair in usable if (":" in pair[1]) == (":" in local)]
    return Interface(*(routed or alike or usable)[0])


def wanted_by(backend: str, environment: Mapping[str, str]) -> str:
    """Return the interfaces that the communication library is configured to use, in NCCL's syntax; empty for any."""
    if backend == "nccl":
        return environment.get("NCCL_SOCKET_IFNAME", "")
    names = environment.get("GLOO_SOCKET_IFNAME", "")
    return f"={names}" if names else ""  # gloo's are whole names


def allows(wanted: str, name: str) -> bool:
    """Return whether NCCL_SOCKET_IFNAME admits an interface: prefixes; after = exact names; after ^ excluded ones."""
    barred, names = wanted.startswith("^"), wanted.lstrip("^")
    exact, parts = names.startswith("="), [part for part in names.lstrip("=").split(",") if part]
    return not parts or any(name == part if exact else name.startswith(part) for part in parts) != barred


def _address_towards(host: str) -> str:
    """Return the address that this node would send from. Raise the last OSError if there is no route."""
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _canonical, target in socket.getaddrinfo(host, DISCARD, type=socket.SOCK_DGRAM):
        try:
            with socket.socket(family, kind, protocol) as unsent:
                unsent.connect(target)
                return str(unsent.getsockname()[0]).partition("%")[0]
        except OSError as error:
            failure = error
    raise failure


def addresses() -> list[tuple[str, str]]:
    """Return interfaces and addresses of this node, IPv4 first; an interface may have several. Raise OSError."""
    return [*_ipv4(), *_ipv6(IPV6.read_text() if IPV6.exists() else "")]


def _ipv4() -> list[tuple[str, str]]:
    answer = array.array("B", bytes(IFREQ * MOST))
    place, length = answer.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        said = fcntl.ioctl(asking.fileno(), SIOCGIFCONF, struct.pack("iL", length, place))
    filled = answer.tobytes()[: struct.unpack("iL", said)[0]]
    entries = [filled[begin : begin + IFREQ] for begin in range(0, len(filled), IFREQ)]
    return [
        (_name(entry[:16].rstrip(b"\0").decode(errors="backslashreplace")), socket.inet_ntoa(entry[20:24]))
        for entry in entries
    ]


def _name(label: str) -> str:
    return label.partition(":")[0]  # a second address may be labelled eth0:1


def _ipv6(table: str) -> list[tuple[str, str]]:
    lines = [line.split() for line in table.splitlines()]
    return [(fields[-1], str(ipaddress.IPv6Address(int(fields[0], 16)))) for fields in lines]
