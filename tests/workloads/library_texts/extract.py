# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print what reads like an error in the libraries of the interpreter that runs this: {library: {version, texts}}.

Standard library only. The texts are those that stand in the libraries' read-only data, with {} for what is filled in.
"""

from __future__ import annotations

import importlib.metadata
import json
import mmap
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(sysconfig.get_paths()["purelib"])
STRING = re.compile(rb"(?<=\0)[\t\n\x20-\x7e]{8,600}(?=\0)")
ERROR = re.compile(
    r"(?i)error|fail|time[d-]? ?out|abort|closed|refused|crash|stuck|hang|desync|mismatch|terminat|unable|cannot"
    r"|could not|can't|invalid|unexpected|unhandled|lost|exceed|out of memory|corrupt|illegal|exception"
)
# printf's and fmt's places, and what a compiler makes of names.
PLACE = re.compile(r"%[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:hh|h|ll|l|z|j)?[diouxXeEfgGcsp]|\{\}")
SYMBOL = re.compile(r"^\S+$|::|__torch__")
# PyTorch's own parts lie in two libraries that have much else: so many texts around the path of one of its sources.
C10D = re.compile(r"^/pytorch/(?:torch/csrc/distributed/c10d|third_party/gloo)/")
NEAR = 40
# All of one form, whatever is asserted; and so much of a text is enough to know it.
ASSERTED = re.compile(r"^.*INTERNAL ASSERT FAILED at.*$")
LENGTH = 140


def strings(path: Path) -> Iterator[str]:
    """Yield the texts of a library in the order in which they stand."""
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for match in STRING.finditer(content):
            yield match[0].decode()


def said(found: list[str]) -> list[str]:
    """Return what is a message and speaks of an error, once each."""
    plain = (ASSERTED.sub("{} INTERNAL ASSERT FAILED at {}", " ".join(PLACE.sub("{}", text).split())) for text in found)
    return sorted({text[:LENGTH] for text in plain if ERROR.search(text) and not SYMBOL.search(text)})


def of_cudart(path: Path) -> list[str]:
    """Return all names of errors and their descriptions, which stand in one table."""
    found = list(strings(path))
    names = [place for place, text in enumerate(found) if re.fullmatch(r"cudaError[A-Z]\w+", text)]
    table = found[names[0] : names[-1] + 2]
    return sorted({text for text in table if re.fullmatch(r"cudaError[A-Z]\w+|[a-zA-Z][^%]* [^%]*", text)})


def of_c10d(paths: list[Path]) -> list[str]:
    """Return the messages that stand around the sources of c10d and gloo."""
    near: list[str] = []
    for path in paths:
        found = list(strings(path))
        places = {place for place, text in enumerate(found) if C10D.match(text)}
        wanted = {place for at in places for place in range(at - NEAR, at + NEAR + 1)}
        near += [found[place] for place in sorted(wanted) if 0 <= place < len(found)]
    return said(near)


def main() -> None:
    """Print them as JSON."""
    torch = FOLDER / "torch" / "lib"
    texts = {
        "nvidia-cuda-runtime-cu12": of_cudart(FOLDER / "nvidia/cuda_runtime/lib/libcudart.so.12"),
        "nvidia-nccl-cu12": said(list(strings(FOLDER / "nvidia/nccl/lib/libnccl.so.2"))),
        "torch": of_c10d([torch / "libtorch_cpu.so", torch / "libtorch_cuda.so"]),
    }
    print(
        json.dumps(
            {name: {"version": importlib.metadata.version(name), "texts": found} for name, found in texts.items()}
        )
    )


if __name__ == "__main__":
    main()
