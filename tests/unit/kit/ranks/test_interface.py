# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which interface leads to another node. The loopback is every machine's; other interfaces are made up."""

from __future__ import annotations

import socket
import typing as t
from pathlib import Path

import pytest
from kit.ranks import interface
from kit.ranks.interface import Interface, allows, interface_to, wanted_by

MADE_UP = [("lo", "127.0.0.1"), ("eth0", "10.0.0.1"), ("ib0", "10.1.0.1"), ("eth0", "fd00::1"), ("ib0", "fd01::1")]


@pytest.fixture
def routes(monkeypatch: pytest.MonkeyPatch) -> t.Callable[[str], None]:
    """The made-up interfaces; says which address the kernel would send from."""
    monkeypatch.setattr(interface, "addresses", lambda: MADE_UP)
    return lambda address: monkeypatch.setattr(interface, "_address_towards", lambda _host: address)


def test_the_loopback_leads_to_this_node() -> None:
    assert interface_to("127.0.0.1") == Interface("lo", "127.0.0.1")
    assert str(interface_to("127.0.0.1")) == "lo 127.0.0.1"


def test_addresses_are_what_the_kernel_says() -> None:
    found = interface.addresses()
    assert ("lo", "127.0.0.1") in found
    assert {name for name, _address in found} <= {name for _number, name in socket.if_nameindex()}


def test_ipv6_addresses_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "if_inet6"
    table.write_text("fd000000000000000000000000000002 04 40 00 82     eth0\n")
    monkeypatch.setattr(interface, "IPV6", table)
    assert ("eth0", "fd00::2") in interface.addresses()
    table.unlink()  # as where the kernel has no IPv6
    assert all(":" not in address for _name, address in interface.addresses())


def test_a_label_of_a_second_address_is_no_name() -> None:
    assert interface._name("eth0:1") == "eth0"


def test_a_name_that_nobody_knows_is_told() -> None:
    found = interface_to("no-such-node.invalid")
    assert found.name is None
    assert str(found).startswith("an unknown interface: no-such-node.invalid: ")


def test_a_node_that_no_route_leads_to_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(_socket: object, _target: object) -> None:
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(socket.socket, "connect", unreachable)
    assert interface_to("192.0.2.7") == Interface(problem="192.0.2.7: Network is unreachable")


def test_an_address_that_no_interface_has_is_told(routes: t.Callable[[str], None]) -> None:
    routes("10.9.9.9")
    assert interface_to("other") == Interface(problem="no interface has 10.9.9.9, from which other is reached")


@pytest.mark.parametrize(
    ("wanted", "local", "expected"),
    [
        ("", "10.0.0.1", ("eth0", "10.0.0.1")),
        ("", "fd00::1", ("eth0", "fd00::1")),
        ("ib", "10.0.0.1", ("ib0", "10.1.0.1")),  # the route is not what NCCL uses
        ("ib", "fd00::1", ("ib0", "fd01::1")),
        ("ib,eth", "10.0.0.1", ("eth0", "10.0.0.1")),
        ("^lo,ib", "fd00::1", ("eth0", "fd00::1")),
    ],
)
def test_what_the_library_is_told_to_use_comes_before_the_route(
    routes: t.Callable[[str], None], wanted: str, local: str, expected: tuple[str, str]
) -> None:
    routes(local)
    assert interface_to("other", wanted) == Interface(*expected)


def test_an_interface_that_is_not_there_is_told(routes: t.Callable[[str], None]) -> None:
    routes("10.0.0.1")
    assert str(interface_to("other", "=eth7")) == "an unknown interface: none of eth0, ib0, lo is =eth7"


@pytest.mark.parametrize(
    ("wanted", "admitted"),
    [
        ("", {"eth0", "eth01", "ib0", "lo"}),
        ("eth", {"eth0", "eth01"}),
        ("eth0,ib", {"eth0", "eth01", "ib0"}),
        ("=eth0", {"eth0"}),
        ("=eth0,ib", {"eth0"}),
        ("^eth", {"ib0", "lo"}),
        ("^=eth0,lo", {"eth01", "ib0"}),
    ],
)
def test_nccl_names_beginnings_whole_names_or_what_it_must_not_use(wanted: str, admitted: set[str]) -> None:
    assert {name for name in ("eth0", "eth01", "ib0", "lo") if allows(wanted, name)} == admitted


def test_each_library_has_its_own_variable() -> None:
    said = {"NCCL_SOCKET_IFNAME": "^lo", "GLOO_SOCKET_IFNAME": "eth0,eth1"}
    assert wanted_by("nccl", said) == "^lo"
    assert wanted_by("gloo", said) == "=eth0,eth1"
    assert (wanted_by("nccl", {}), wanted_by("gloo", {})) == ("", "")
