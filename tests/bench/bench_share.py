# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How near our own measurement of a share's throughput is to fio's, doing the same in the same folder.

    python -m tests.bench.bench_share [FOLDER] [MIB]

FOLDER: somewhere on the share (default: the folder for temporary files). Both sides run one after the other, several
times; the best of each counts. Without fio only our own figures are printed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "files"))

ROUNDS = 9
MIB = 256


def main() -> None:
    """Measure and print."""
    from kit.share import speed as share_speed

    parent = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.gettempdir())
    size = int(sys.argv[2]) if len(sys.argv) > 2 else MIB
    with_fio = shutil.which("fio") is not None
    version = (
        subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout if with_fio else ""
    )
    missed = []
    print(f"{size} MiB in blocks of 1 MiB in {parent}, best of {ROUNDS}; {version.strip() or 'fio is missing'}\n")
    print("| figure | own MiB/s | fio MiB/s | ratio |")
    print("| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(dir=parent) as name:
        folder = Path(name)
        for figure in share_speed.FIGURES:
            own: list[float] = []
            fio: list[float] = []
            if figure == "read_direct":
                share_speed.own("write_direct", folder, size << 20)
            for _each in range(ROUNDS):
                for measure, rates in ((share_speed.own, own), (share_speed.fio, fio))[: 1 + with_fio]:
                    if figure.startswith("write"):  # both begin with a new file
                        for path in folder.glob("*.data"):
                            path.unlink()
                    rates.append(measure(figure, folder, size << 20))
            ours = max(own)
            theirs = max(fio) if fio else None
            shown = f"{theirs:.0f} | {ours / theirs:.2f}" if theirs else "- | -"
            print(f"| {figure} | {ours:.0f} | {shown} |", flush=True)
            if theirs and not 0.9 <= ours / theirs <= 1.1:
                missed.append(figure)
        (folder / "metadata").mkdir()
        begin = time.perf_counter()
        metadata = share_speed.metadata(folder / "metadata")
        took = time.perf_counter() - begin
    print(
        f"\nmetadata: {metadata['operations_per_s']:.0f} operations/s over {metadata['files']} files in {took:.2f} s; "
        f"a million files, extrapolated: {metadata['million_files']['seconds']:.0f} s"
    )
    if missed:
        raise SystemExit(f"not within 10 % of fio: {', '.join(missed)}")


if __name__ == "__main__":
    main()
