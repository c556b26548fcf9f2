# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in for all_reduce_perf of nccl-tests, which needs GPUs: prints its table with made-up numbers."""

from __future__ import annotations

import sys
from pathlib import Path

COLUMNS = "    time   algbw   busbw #wrong"
HEADER = f"#       size         count      type   redop    root {COLUMNS} {COLUMNS}"
ROW = (
    "   268435456    67108864     float     sum      -1   1234.5  217.45  217.45      0   1233.1  217.69  217.69      0"
)
PROGRAM = """
import os, sys, time

asked = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert set(asked) == {"-b", "-e", "-f", "-g"} and asked["-f"] == "2", sys.argv
print(f"# nThread 1 nGpus {asked['-g']} minBytes {asked['-b']} maxBytes {asked['-e']} step: 2(factor) validation: 1")
print("#")
print("# Using devices")
for gpu in range(int(asked["-g"])):
    print(f"#  Rank {gpu:2} Group  0 Pid 12345 on  compute01 device {gpu:2} [0x1b] NVIDIA H200")
print("compute01:12345:12345 [0] NCCL INFO cudaDriverVersion 12080")
print("#")
print("#                                                              out-of-place                       in-place")
print(HEADER)
print("#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)")
size = int(asked["-b"])
while size <= int(asked["-e"]):
    in_place = f"{size / 1e6:10.2f} {size / 2e6:7.2f} {size / 2e6:7.2f} {WRONG if size == AT else 0:6}"
    print(f"{size:12} {size // 4:13}     float     sum      -1 {11.95:8.2f} {0.5:7.2f} {0.25:7.2f} {0:6} {in_place}")
    size *= 2
BEHAVIOUR
print("# Out of bounds values : 0 OK")
print("# Avg bus bandwidth    : 41.1425")
"""


def install(path: Path, behaviour: str = "pass", *, wrong: str = "0", at: int = 1 << 20) -> str:
    """Write the program to ``path``; ``behaviour`` comes after its table, ``wrong`` into the row of size ``at``."""
    made_up = f"HEADER, WRONG, AT = {HEADER!r}, {wrong!r}, {at}\n"
    path.write_text(f"#!{sys.executable}\n{made_up}{PROGRAM.replace('BEHAVIOUR', behaviour)}")
    path.chmod(0o755)
    return str(path)
