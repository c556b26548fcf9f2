# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reject folders that another user could have created or may change. PRIVATE to the collection."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import shlex
import stat
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

MAX_LINKS = 40  # as the kernel


class Refusal(NamedTuple):
    """Why a folder must not be used, and the command that fixes it."""

    why: str
    command: str


class GroupError(Exception):
    """A group trusted with the share does not exist on this host."""


def trusted_groups(name: str | None) -> frozenset[int]:
    """Return the groups whose members may write: root's, this user's own and the named one. Raise GroupError."""
    groups = {0, os.getegid()}
    if name:
        try:
            groups.add(int(name) if name.isascii() and name.isdigit() else grp.getgrnam(name).gr_gid)
        except (KeyError, ValueError) as exc:  # ValueError: a name that no group can have
            raise GroupError(f"group {name!r} does not exist on this host (getent group)") from exc
    return frozenset(groups)


def first_refusal(folders: Iterable[tuple[str, bool]], groups: Collection[int]) -> Refusal | None:
    """Return the first refusal for any of `folders` (path, shared) or their parents from `/` down.

    The parents may be open to everybody if nobody can remove or rename what others created. Raise OSError.
    """
    seen: set[tuple[str, bool]] = set()
    for folder, shared in folders:
        *before, last = _way(folder)
        for place in [*((each, True) for each in before), (last, shared)]:
            found = None if place in seen else refusal(place[0], shared=place[1], groups=groups)
            if found:
                return found
            seen.add(place)
    return None


def refusal(folder: str, *, shared: bool = False, groups: Collection[int] | None = None) -> Refusal | None:
    """Return why `folder` must not be used; None if it may be, or if it does not exist yet. Raise OSError.

    It, and a link in its place, must belong to root, to this user or to the owner of its parent folder; or it is
    writable by one of `groups` of which its owner is a member, since any other member could have admitted that owner.
    Neither everybody nor a group other than `groups` (default: this user's own, and root's) may write there. With
    `shared` they may, if nobody can remove or rename what others created.
    """
    path = os.path.normpath(folder)
    groups = trusted_groups(None) if groups is None else groups
    try:
        found = os.lstat(path)
        trusted = {0, os.geteuid(), os.stat(os.path.dirname(path)).st_uid}
    except FileNotFoundError:
        return None
    me, quoted = _user(os.geteuid()), shlex.quote(path)
    if found.st_uid not in trusted and not _is_of_a_member(found, groups):
        return Refusal(f"{path} belongs to user {_described(found)}", f"chown -h {me} {quoted}")
    if stat.S_ISLNK(found.st_mode):
        if not os.path.exists(path):
            return Refusal(f"{path} is a link to something that does not exist", f"rm {quoted}")
        found = os.stat(path)
        if found.st_uid not in trusted and not _is_of_a_member(found, groups):
            why = f"{path} is a link to a folder that belongs to user {_described(found)}"
            return Refusal(why, f"chown {me} {shlex.quote(os.path.realpath(path))}")
    if not stat.S_ISDIR(found.st_mode) or (shared and found.st_mode & stat.S_ISVTX):
        return None
    owned = f"{path}, which belongs to user {_described(found)}"
    if found.st_mode & stat.S_IWOTH:
        return Refusal(f"everybody may write to {owned}", f"chmod o-w {quoted}")
    if found.st_mode & stat.S_IWGRP and found.st_gid not in groups:
        group = _group(found.st_gid)
        trust = f"or, if all of them may change what runs there, hpc_validation_share_group: {group}"
        return Refusal(f"the members of group {group} may write to {owned}", f"chmod g-w {quoted}, {trust}")
    return None


def _is_of_a_member(found: os.stat_result, groups: Collection[int]) -> bool:
    """Return whether one of `groups` that the owner is in may write to the folder and remove its content."""
    if not stat.S_ISDIR(found.st_mode) or not found.st_mode & stat.S_IWGRP or found.st_mode & stat.S_ISVTX:
        return False
    try:
        owner = pwd.getpwuid(found.st_uid)
        return found.st_gid in groups and found.st_gid in os.getgrouplist(owner.pw_name, owner.pw_gid)
    except KeyError:
        return False


def _way(folder: str) -> Iterator[str]:
    """Yield every folder and link that the kernel follows from `/` to `folder`, up to the first that does not exist.

    Raise OSError if links form a loop.
    """
    at, rest, links = "/", folder.split("/")[::-1], 0
    yield at
    while rest:
        name = rest.pop()
        if name in ("", "."):
            continue
        if name == "..":
            at = os.path.dirname(at)
            continue
        place = os.path.join(at, name)
        yield place
        if not os.path.lexists(place):
            return
        if not os.path.islink(place):
            at = place
            continue
        links += 1
        if links > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), folder)
        target = os.readlink(place)
        at = "/" if target.startswith("/") else at
        rest += target.split("/")[::-1]


def _described(found: os.stat_result) -> str:
    """Return owner, mode and group, as `ls -l` shows them."""
    return f"{_user(found.st_uid)} (mode {stat.S_IMODE(found.st_mode):04o}, group {_group(found.st_gid)})"


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
