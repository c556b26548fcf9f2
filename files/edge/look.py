# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say what a device is, on one line: python3 look.py [FOLDER [ROOT]]

FOLDER is where something would be put, for the free space; ROOT where /proc is read below. Readable by any Python 3:
one that is too old has to be able to say so.
"""

import json
import os
import platform
import sys


def main():
    """Print the line; return the exit code."""
    given = sys.argv[1:]
    found = look(given[0] if given else "~/.hpc_validation", given[1] if len(given) > 1 else "/")
    print("HPC_VALIDATION_EDGE " + json.dumps(found, sort_keys=True))
    return 0


def look(folder, root):
    """Return what this device is."""
    return {
        "schema": 1,
        "python": platform.python_version(),
        "implementation": platform.python_implementation().lower(),
        "machine": machine(),
        "libc": libc(),
        "system": platform.system(),
        "board": board(root),
        "device": device(root),
        "home": os.path.expanduser("~"),
        "free_mb": free_mb(folder),
    }


def machine():
    """Return the processor that this Python is for: a kernel of 64 bits may run one of 32."""
    name = platform.machine()
    return {"aarch64": "armv8l", "x86_64": "i686"}.get(name, name) if sys.maxsize < 1 << 32 else name


def libc():
    """Return name and version of the C library, None for one that does not tell."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, OSError, ValueError):
        return None


def board(root):
    """Return what the board calls itself, None for a PC."""
    try:
        with open(os.path.join(root, "proc/device-tree/model"), "rb") as stream:
            return stream.read(200).decode("utf-8", "replace").strip("\0\n ") or None
    except OSError:
        return None


def device(root):
    """Return what no other device says: its name, which containers do not share, and its kernel's start.

    /etc/machine-id is that of the image where somebody copied one. None where the kernel does not tell.
    """
    try:
        with open(os.path.join(root, "proc/sys/kernel/random/boot_id")) as stream:
            return platform.node() + " " + stream.read(200).strip()
    except (OSError, ValueError):
        return None


def free_mb(folder):
    """Return the space there, or where the first of its folders is that exists; None where nobody says."""
    path = os.path.expanduser(folder)
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize // 1000000


if __name__ == "__main__":
    sys.exit(main())
