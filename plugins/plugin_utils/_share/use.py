# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge whether the share works as a file system should, and how fast it is."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.facts import at, text, words
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.judging import beegfs_only

Json = dict[str, t.Any]
# What each check of files/kit/share/use.py must have seen. Anything else it saw is not judged.
EXPECTED: dict[str, Json] = {
    "fsync_read_back": {},  # judged by its two checksums
    "rename": {"content": "new", "source_left": False},
    "append": {"content": "first second third"},
    "hard_link": {"links": 2, "content": "linked"},
    "symbolic_link": {"target": "target", "content": "pointed at"},
    "flock": {"while_held": "refused", "after_release": "granted"},
    "fcntl_lock": {"while_held": "refused", "after_release": "granted"},
    "permissions": {"file": "0640", "folder": "0755", "setgid_folder": "2755"},
    "sparse": {"size": 67108867, "hole_is_zeros": True, "end": "end"},
    "large_file": {"size": 5368713216, "read_back": True, "start_is_zeros": True},
    "many_files": {"listed": 200, "stat": 200, "right": 200, "left": 0},
    "unlink_open": {"name_left": False, "content": "before after"},
    "mmap_read": {"same": True},
    "mmap_write": {"content": "by a map"},
    "directory_fsync": {"fsync": "done"},
    "utime": {"mtime": 1_000_000_000},
    "execute": {"exit_code": 7},
}
# No workload needs these, and some network file systems do not have them.
RECORDED = ("mmap_write", "directory_fsync")
FIGURES = {
    "write_buffered": ("share.write_throughput", "write_mib_s"),
    "write_direct": ("share.write_throughput_direct", "write_mib_s"),
    "read_buffered": ("share.read_throughput", "read_mib_s"),
    "read_direct": ("share.read_throughput_direct", "read_mib_s"),
}


def use_findings(judge: Judge, use: t.Any) -> list[Json]:
    """Judge the `use` of share facts."""
    checks, error = at(use, "checks"), text(at(use, "error"))
    folder = text(at(use, "folder", "path")) or ""
    answered = [name for name in EXPECTED if isinstance(at(checks, name), dict)]
    found = [
        judge.check(
            "share.use",
            "eq",
            len(EXPECTED),
            len(answered) if answered and not error else None,
            source="python -m kit share",
            unit="checks",
            missing=error or "no check was carried out",
            path=folder,
        )
    ]
    if not answered:
        return found
    found += [_check(judge, name, checks[name], folder) for name in answered]
    removed = at(use, "folder", "removed")
    left = text(at(use, "folder", "error"))
    found.append(
        judge.check(
            "share.private_folder",
            "eq",
            True,
            removed if isinstance(removed, bool) else None,
            source="python -m kit share",
            detail=left,
            path=folder,
        )
    )
    return found


def _check(judge: Judge, name: str, outcome: Json, folder: str) -> Json:
    seen, error = outcome.get("seen"), text(outcome.get("error"))
    bound: str | None
    if name == "fsync_read_back":
        written = text(at(seen, "written"))
        bound, value = written or "read back the same", text(at(seen, "read")) if written else None
    else:
        bound, value = words(EXPECTED[name], EXPECTED[name]), words(seen, EXPECTED[name])
    if error:  # it was tried, and the file system refused it
        value = f"refused: {error}"
    return judge.check(
        f"share.{name}",
        "eq",
        bound,
        value,
        source=f"use: {name}",
        missing=text(outcome.get("missing")) or "what it saw was not reported",
        record=name in RECORDED,
        path=folder,
    )


def speed_findings(judge: Judge, speed: t.Any, *, gate: bool = True) -> list[Json]:
    """Judge the `speed` of share facts; without `gate`, rates are only recorded but must have been measured."""
    error = text(at(speed, "error"))
    tool, problems = text(at(speed, "tool")), at(speed, "problems")
    folder = text(at(speed, "folder", "path")) or ""
    if error or not tool:
        missing = error or text(at(problems, "tool")) or "nothing was measured"
        return [judge.check("share.speed", "eq", True, None, source="throughput", missing=missing, path=folder)]
    how = f"{'own code' if tool == 'own' else tool}, {at(speed, 'size_mib')} MiB in blocks of 1 MiB"
    found = [
        judge.check(
            identity,
            "ge",
            judge.expect[key],
            at(speed, f"{figure}_mib_s"),
            source=how,
            unit="MiB/s",
            missing=text(at(problems, figure)),
            record=not gate,
            path=folder,
        )
        for figure, (identity, key) in FIGURES.items()
    ]
    return found + _metadata(judge, speed, folder, gate)


def _metadata(judge: Judge, speed: Json, folder: str, gate: bool) -> list[Json]:
    told = at(speed, "metadata")
    source = f"own code, {at(told, 'files')} files by one process in one folder"
    missing = text(at(speed, "problems", "metadata"))

    def rate(key: str) -> float | None:
        value = at(told, f"{key}_per_s")
        return round(value, 1) if scalars.is_number(value) else None

    parts = ", ".join(f"{rate(key)} {key}/s" for key in ("creates", "stats", "unlinks"))
    seconds = at(told, "million_files", "seconds")
    return [
        judge.check(
            "share.metadata_rate",
            "ge",
            judge.expect["metadata_ops_s"],
            rate("operations"),
            source=source,
            unit="operations/s",
            missing=missing,
            detail=parts,
            record=not gate,
            path=folder,
        ),
        judge.check(
            "share.million_files",
            "gt",
            0,
            round(seconds) if scalars.is_number(seconds) else None,
            source=source,
            unit="s",
            missing=missing,
            detail=f"extrapolated from {at(told, 'files')} files to 1,000,000 created, looked up and removed",
            record=True,
            path=folder,
        ),
    ]


def striping_findings(judge: Judge, striping: t.Any) -> list[Json]:
    """Judge the `striping` of share facts for each requested folder. Expected striping must have been read."""
    if judge.expect["share_type"] == "other":
        return beegfs_only(judge, ["share.striping"], "ioctl")
    if not striping or not isinstance(striping, dict):
        return _no_striping(judge, striping)
    return [finding for path, told in striping.items() for finding in _striping_of(judge, path, told)]


def _no_striping(judge: Judge, striping: t.Any) -> list[Json]:
    """Return nothing where none was reported, unless something was expected or the facts are damaged."""
    stated = [f"{key} {judge.expect[key]}" for key in ("chunk_kib", "stripe_targets") if key in judge.expect]
    if not stated and (striping is None or striping == {}):
        return []
    expected = ", ".join(stated) or "striping of folders"
    return [judge.check("share.striping", "eq", expected, None, source="ioctl", missing="it was not reported")]


def _striping_of(judge: Judge, path: str, told: t.Any) -> list[Json]:
    """Judge the striping of one folder; record it where nothing is expected."""
    source, missing = text(at(told, "source")) or "ioctl", text(at(told, "error"))
    if judge.expect["share_type"] == "simulated" and source == "ioctl" and missing:  # its kernel knows no BeeGFS
        left_out = beegfs_only(judge, ["share.striping"], source)[0]
        return [{**left_out, "where": {**left_out["where"], "path": path}}]
    wanted = [
        (test, judge.expect[key], at(told, fact) if not missing else None, unit)
        for test, key, fact, unit in (
            ("eq", "chunk_kib", "chunk_kib", "KiB chunks"),
            ("ge", "stripe_targets", "targets", "targets"),
        )
        if key in judge.expect
    ]
    if not wanted:
        value = words(told, ("pattern", "chunk_kib", "targets")) if not missing else None
        return [judge.check("share.striping", "eq", "", value, source=source, missing=missing, record=True, path=path)]
    return [
        judge.check("share.striping", test, bound, value, source=source, unit=unit, missing=missing, path=path)
        for test, bound, value, unit in wanted
    ]
