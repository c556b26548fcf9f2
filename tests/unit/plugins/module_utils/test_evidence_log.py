"""The search of logs."""

from __future__ import annotations

import hashlib
import io
import random
import re

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _evidence_log as log

SETS = {
    "errors": {
        "patterns": [
            {"id": "cuda", "regex": r"CUDA error: \w+", "texts": ["CUDA error"], "remedy": "reset it"},
            {
                "id": "io",
                "regex": "Input/output error|Stale file handle",
                "texts": ["Input/output error", "file handle"],
                "remedy": "",
            },
        ],
        "except": [{"regex": "ignored CUDA error"}],
    },
    "traces": {"patterns": [{"id": "t", "regex": r"^Traceback", "texts": ["Traceback"], "remedy": ""}], "except": []},
}
END = b"hpc-validation-end job=12 attempt=0 exit=0\n"


def scan(content, sets=None):
    return log.compile_sets(sets or SETS).scan(io.BytesIO(content))


def test_hits_have_line_text_pattern_and_remedy():
    found = scan(b"start\nRuntimeError: CUDA error: illegal\nfine\nTraceback (most\n" + END)
    assert found["hits"]["errors"] == [
        {"line": 2, "text": "RuntimeError: CUDA error: illegal", "pattern": "cuda", "remedy": "reset it"}
    ]
    assert [hit["line"] for hit in found["hits"]["traces"]] == [4]
    assert found["counts"] == {"errors": 1, "traces": 1}
    assert found["lines"] == 5
    assert found["end"] == {"job_id": "12", "attempt": 0, "exit_code": 0}


def test_a_clean_log_has_empty_hits_for_every_set():
    found = scan(b"all fine\n" + END)
    assert found["hits"] == {"errors": [], "traces": []}
    assert found["counts"] == {"errors": 0, "traces": 0}


def test_an_empty_log():
    found = scan(b"")
    assert (found["bytes"], found["lines"], found["end"]) == (0, 0, None)
    assert found["sha256"] == hashlib.sha256(b"").hexdigest()


def test_a_known_harmless_line_is_no_hit():
    assert scan(b"ignored CUDA error: x\n")["counts"]["errors"] == 0


def test_hits_are_bounded_and_all_are_counted():
    found = scan(b"CUDA error: x\n" * 1000)
    assert found["counts"]["errors"] == 1000
    assert len(found["hits"]["errors"]) == 20


def test_one_line_is_one_hit_of_a_set():
    assert scan(b"CUDA error: x CUDA error: y Input/output error\n")["counts"]["errors"] == 1


@pytest.mark.parametrize(
    ("line", "end"),
    [
        (b"hpc-validation-end job=12 attempt=0 exit=0", (12, 0, 0)),
        (b"hpc-validation-end job=12 attempt=3 exit=137\n", (12, 3, 137)),
        (b"hpc-validation-end job=12 attempt=0 exit=-9\r\n", (12, 0, -9)),
        (b"echo hpc-validation-end job=12 attempt=0 exit=0\n", None),
        (b"hpc-validation-end job=12 attempt=0 exit=0 really\n", None),
        (b"hpc-validation-end job=12 attempt=0\n", None),
        (b"hpc-validation-end job= attempt=0 exit=0\n", None),
        (b"hpc-validation-end job=12 attempt=x exit=0\n", None),
        (b"hpc-validation-end job=12 attempt=0 exit=" + b"0" * 99 + b"\n", None),
    ],
)
def test_the_end_marker_is_a_line_of_its_own(line, end):
    found = scan(b"work\n" + line)["end"]
    assert found == (end and {"job_id": str(end[0]), "attempt": end[1], "exit_code": end[2]})


def test_the_last_end_marker_counts_and_what_slurm_says_after_it_is_read():
    content = b"hpc-validation-end job=11 attempt=0 exit=1\n" + END + b"echo hpc-validation-end\nCUDA error: late\n"
    found = scan(content)
    assert found["end"]["job_id"] == "12"
    assert found["counts"]["errors"] == 1


def test_what_a_terminal_would_act_on_is_taken_out_of_a_quote():
    found = scan(b"\x1b[31mCUDA \x1b[1merror: bad\x1b[0m \x1b]0;title\x07\x07\x9b\xff\x00 x\n")
    (hit,) = found["hits"]["errors"]
    assert hit["text"].startswith("CUDA error: bad")
    assert hit["text"].isprintable()
    assert "\x1b" not in hit["text"]


def test_a_pattern_is_found_in_spite_of_colours_only_if_its_text_is_whole():
    assert scan(b"\x1b[31mCUDA error: bad\x1b[0m\n")["counts"]["errors"] == 1


def test_a_quote_is_bounded():
    (hit,) = scan(b"CUDA error: " + b"x" * 5000 + b"\n")["hits"]["errors"]
    assert len(hit["text"]) == log.MAX_QUOTE


@pytest.mark.parametrize("before", [300, 5000, 3 << 20])
def test_a_long_line_is_quoted_where_it_matters(before):
    content = b"x" * before + b" CUDA error: an illegal memory access" + b"y" * 1000
    (hit,) = scan(content)["hits"]["errors"]
    assert hit["text"].startswith("…x")
    assert "CUDA error: an illegal memory access" in hit["text"][:100]
    assert len(hit["text"]) <= log.MAX_QUOTE


def test_each_stretch_between_carriage_returns_is_a_line():
    found = scan(b"10%\r20%\rCUDA error: x\r30%\rTraceback\n")
    assert found["hits"]["errors"][0]["text"] == "CUDA error: x"
    assert found["counts"]["traces"] == 1
    assert found["lines"] == 1


@pytest.mark.parametrize("offset", range(-14, 3))
@pytest.mark.parametrize("newlines", [True, False])
def test_a_hit_across_two_blocks_is_found(offset, newlines):
    filler = (b"x" * 63 + b"\n" if newlines else b"x" * 64) * (log.BLOCK_BYTES // 64)
    content = filler[: len(filler) + offset] + b"CUDA error: x" + b"y" * 100
    assert scan(content)["counts"]["errors"] == 1
    content = filler * 2
    content = content[: len(content) + offset] + b"CUDA error: x" + b"y" * 100
    assert scan(content)["counts"]["errors"] >= 1


def test_a_line_of_many_megabytes_takes_bounded_memory_and_is_searched_to_its_end():
    found = scan(b"x" * (8 << 20) + b"CUDA error: x")
    assert found["counts"]["errors"] == 1
    assert found["hits"]["errors"][0]["line"] == 1
    assert len(found["hits"]["errors"][0]["text"]) <= log.MAX_QUOTE


def test_binary_and_nul_bytes_do_no_harm():
    noise = random.Random(1).randbytes(1 << 20)
    found = scan(noise + b"\n\0\0CUDA error: x\0\n" + END)
    assert found["counts"]["errors"] == 1
    assert found["bytes"] == len(noise) + 18 + len(END)
    assert found["end"] is not None
    assert found["sha256"] == hashlib.sha256(noise + b"\n\0\0CUDA error: x\0\n" + END).hexdigest()


def test_it_finds_what_the_regular_expressions_alone_would_find():
    choice = random.Random(3)
    parts = [
        "CUDA error: a",
        "Input/output error",
        "Traceback",
        "rror",
        "CUDA",
        "loss 0.1",
        "error",
        "file handle",
        "Stale file handle",
    ]
    text = [" ".join(choice.choices(parts, k=choice.randint(0, 3))) for _each in range(20_000)]
    found = scan("\n".join(text).encode())
    for name, content in SETS.items():
        regexes = [re.compile(pattern["regex"]) for pattern in content["patterns"]]
        expected = [number for number, line in enumerate(text, 1) if any(regex.search(line) for regex in regexes)]
        assert found["counts"][name] == len(expected)
        assert [hit["line"] for hit in found["hits"][name]] == expected[: log.MAX_HITS]


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"patterns": [{"id": "x"}]},
        {"patterns": [{"id": "x", "regex": "(", "texts": ["x"]}]},
        {"patterns": [{"id": "x", "regex": "x", "texts": []}]},
        {"patterns": [{"id": "x", "regex": "x", "texts": "x"}]},
        {"patterns": [{"id": "x", "regex": "x", "texts": [""]}]},
        {"patterns": [{"id": "x", "regex": 5, "texts": ["x"]}]},
    ],
)
def test_a_malformed_set_is_refused_by_name(content):
    with pytest.raises(log.PatternsError, match="pattern set mine"):
        log.compile_sets({"mine": content})
