# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why nothing may be put into a folder that another user could have made or may change. PRIVATE to the collection."""

from __future__ import annotations

import os
import stat


def refusal(folder: str, *, shared: bool = False) -> str | None:
    """Return why `folder` must not be used; None where it may be, or where it is not there yet. Raise OSError.

    It, and a link in its place, must belong to root, to this user or to the owner of the folder that it lies in, and
    not everybody may write there. With `shared` everybody may, if nobody can remove or rename what others made.
    """
    path = os.path.normpath(folder)
    try:
        found = os.lstat(path)
        trusted = {0, os.geteuid(), os.stat(os.path.dirname(path)).st_uid}
    except FileNotFoundError:
        return None
    if found.st_uid not in trusted:
        return f"{path} belongs to user {found.st_uid}"
    if stat.S_ISLNK(found.st_mode):
        if not os.path.exists(path):
            return f"{path} is a link to something that is not there"
        found = os.stat(path)
        if found.st_uid not in trusted:
            return f"{path} is a link to a folder that belongs to user {found.st_uid}"
    if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_IWOTH and not (shared and found.st_mode & stat.S_ISVTX):
        return f"everybody may write to {path}"
    return None
