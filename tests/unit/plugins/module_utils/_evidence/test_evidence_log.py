"""The search of logs."""

from __future__ import annotations

import hashlib
import io
import random
import re

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import log
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.opening import EvidenceError
from kit import quote

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
    assert found["end"] == {"job_id": "12", "attempt": 0, "exit_code": 0, "after": None}


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
    assert found == (end and {"job_id": str(end[0]), "attempt": end[1], "exit_code": end[2], "after": None})


@pytest.mark.parametrize(
    ("content", "after"),
    [
        (END + b"\n  \t\r\n\n", None),
        (END + b"slurmstepd: error: Detected 1 oom_kill event in StepId=12.batch.\n", None),
        (END + b"\nslurmstepd-n1.x: error: *** JOB 12 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***", None),
        (END + b"\x1b[0m\n", None),
        (END + b"still training\n", 3),
        (END + b"\nslurmstepd: error: x\n[rank 0] step 2", 5),
        (END + b"not slurmstepd: error: x\n", 3),
        (b"a\n" + END + b"b\n" + END, None),
        (END + b"x" * (3 << 18) + b"\n", 3),
    ],
)
def test_only_blanks_and_lines_of_slurm_may_follow_the_end(content, after):
    end = scan(b"work\n" + content)["end"]
    assert (end["after"] and end["after"]["line"]) == after


@pytest.mark.parametrize("between", [0, 1, 5])
def test_what_follows_the_end_is_found_in_a_later_block_too(between):
    blanks = b"\n" * (between * log.BLOCK_BYTES // 2)
    assert scan(END + blanks + b"more\n")["end"]["after"] == {"line": 2 + len(blanks), "text": "more"}


NONCE = "0123456789abcdef" * 2
OWN_END = END[:-1] + f" nonce={NONCE}\n".encode()


@pytest.mark.parametrize(
    ("content", "ends", "other"),
    [
        (OWN_END, True, False),
        (END, False, True),
        (END[:-1] + b" nonce=" + b"0" * 32 + b"\n", False, True),
        (OWN_END + END, True, False),
        (b"work\n", False, False),
    ],
)
def test_a_line_without_the_jobs_nonce_is_no_end(content, ends, other):
    found = log.compile_sets(SETS).scan(io.BytesIO(content), NONCE)
    assert (found["end"] is not None, "other_end" in found) == (ends, other)


def test_an_end_that_the_job_printed_after_its_own_is_what_follows_it():
    found = log.compile_sets(SETS).scan(io.BytesIO(OWN_END + END), NONCE)
    assert found["end"]["after"]["line"] == 2


def test_no_line_is_an_end_where_the_nonce_is_not_known():
    assert log.compile_sets(SETS).scan(io.BytesIO(END + OWN_END), "")["end"] is None


@pytest.mark.parametrize("between", [b"", b"x\n" * (1 << 18)])
def test_what_follows_the_end_line_is_not_hidden_by_the_same_line_again(between):
    search = log.compile_sets(SETS)
    for again in (OWN_END, b"slurmstepd: error: x\n" + OWN_END):
        content = OWN_END + b"more\n" + between + again
        assert search.scan(io.BytesIO(content), NONCE)["end"]["after"] == {"line": 2, "text": "more"}
    assert search.scan(io.BytesIO(END + b"more\n" + OWN_END), NONCE)["end"]["after"] is None
    assert search.scan(io.BytesIO(OWN_END + END), NONCE)["end"]["after"]["line"] == 2
    # A log of both streams has the line of each.
    assert search.scan(io.BytesIO(OWN_END + b"\n" + OWN_END), NONCE)["end"]["after"] is None


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


@pytest.mark.parametrize(
    "line",
    [
        b"\x1b[31mCUDA error: bad\x1b[0m\n",
        b"\x1b[1mCUDA\x1b[0m \x1b[31merror\x1b[0m: bad\n",
        b"CUDA\x1b(B\x1b[m error: bad\n",
        b"CUDA \x1b]8;;https://x\x1b\\error\x1b]8;;\x1b\\: bad\n",
        b"C\x1b[38;5;1mU\x1b[0mDA error: bad\n",
        b"\x1b]0;a title without its end CUDA error: bad\n",
    ],
)
def test_a_pattern_is_found_in_spite_of_colours(line):
    found = scan(b"start\n" + line + END)
    assert [hit["line"] for hit in found["hits"]["errors"]] == [2]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
@pytest.mark.parametrize("before", [b"", b"training\n", b"x" * (3 << 18)])
def test_text_in_which_nothing_is_found_is_no_clean_log(encoding, before):
    with pytest.raises(EvidenceError) as raised:
        scan(before + "RuntimeError: CUDA error: x".encode(encoding) + b"\n" + END)
    assert raised.value.problem == "not_searchable"


@pytest.mark.parametrize(
    ("line", "count"),
    [
        (b"ignored CUDA error: x, then CUDA error: y\n", 1),
        (b"CUDA error: y and an ignored CUDA error: x\n", 1),
        (b"ignored CUDA error: x and Stale file handle\n", 1),
        (b"ignored CUDA error: x ignored CUDA error: y\n", 0),
    ],
)
def test_an_exception_hides_its_own_span_and_no_more(line, count):
    assert scan(line)["counts"]["errors"] == count


def test_what_the_kit_has_quoted_is_no_message():
    quoted = quote.quoted('he said "CUDA error: x"\nTraceback').encode()
    assert scan(b"sample: " + quoted + b"\n")["counts"] == {"errors": 0, "traces": 0}
    assert scan(quoted + b" CUDA error: y\n")["counts"]["errors"] == 1
    assert scan(b'hpc-validation-quote "CUDA error: x\n')["counts"]["errors"] == 1


@pytest.mark.parametrize("filler", ["a", "中", "😀", '"', "\n", "\ud800"])
@pytest.mark.parametrize("before", [0, 7000, 8000, 20_000])
def test_a_long_quotation_is_passed_over_whatever_its_letters_and_its_place(filler, before):
    """Errors at its beginning and its end, several quotations on one line, and a real error after them."""
    errors = "RuntimeError: CUDA error: y"
    text = quote.quoted(errors + filler * (quote.LENGTH - 2 * len(errors)) + errors)
    line = "x" * before + " ".join([text] * 4)
    assert scan(line.encode() + b"\n")["counts"]["errors"] == 0
    assert scan(line.encode() + b" CUDA error: real\n")["counts"]["errors"] == 1


@pytest.mark.parametrize("seen", [1, 10, 21, 100, 5000, 11_000])
def test_a_quotation_is_passed_over_where_a_line_of_many_blocks_is_cut(seen):
    quoted = quote.quoted("CUDA error: y " + "中" * 1900 + " CUDA error: y").encode()
    line = b"x" * (2 * log.BLOCK_BYTES - seen) + quoted
    assert scan(line + b"x" * log.BLOCK_BYTES)["counts"]["errors"] == 0
    assert scan(line + b" CUDA error: real" + b"x" * log.BLOCK_BYTES)["counts"]["errors"] == 1


def test_a_mark_without_its_end_hides_nothing_even_of_many_blocks():
    mark = b'hpc-validation-quote "'
    for line in (
        mark + b"CUDA error: y",
        mark + b"x" * (3 * log.BLOCK_BYTES) + b"CUDA error: y",
        mark + b"CUDA error: y\\",
    ):
        assert scan(line)["counts"]["errors"] == 1
    content = mark + b'\nCUDA error: a" \rCUDA error: b\n"'
    assert [hit["line"] for hit in scan(content)["hits"]["errors"]] == [2]
    assert scan(b"x" * (2 * log.BLOCK_BYTES - 5) + b"CUDA error: y" + mark)["counts"]["errors"] == 1


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
        {"patterns": []},
        {"patterns": [{"id": "x", "regex": "", "texts": ["x"]}]},
        {"patterns": [{"id": "x", "regex": "x*", "texts": ["x"]}]},
        {"patterns": [{"id": "x", "regex": "x|", "texts": ["x"]}]},
        {"patterns": [{"id": "x", "regex": "CUDA error", "texts": ["Xid"]}]},
        {"patterns": [{"id": "x", "regex": "CUDA error|Xid", "texts": ["CUDA"]}]},
        {"patterns": [{"id": "x", "regex": "CUDA (?:error)?", "texts": ["error"]}]},
        {"patterns": [{"id": "x", "regex": "(?i)CUDA error", "texts": ["CUDA error"]}]},
        {"patterns": [{"id": "x", "regex": "x", "texts": ["x"]}], "except": [{"regex": ""}]},
        {"patterns": [{"id": "x", "regex": "x", "texts": ["x"]}], "except": [{"regex": ".*"}]},
    ],
)
def test_a_malformed_set_is_refused_by_name(content):
    with pytest.raises(log.PatternsError, match="pattern set mine"):
        log.compile_sets({"mine": content})


def one(regex, text, **more):
    return {"s": {"patterns": [{"id": "p", "regex": regex, "texts": [text]}], **more}}


@pytest.mark.parametrize(
    ("regex", "excepted"),
    [
        ("abc", "."),
        ("abc", ".{1,}"),
        ("abc", "abc"),
        ("abc", "[a-c]{3}"),
        (r"abc \d+", r"abc \w+"),
        ("abc", "c"),
        ("abc\n", None),
        ("abc\r", None),
        ("\x1babc", None),
        ("\x1b\\[1mabc", None),
        ("abc(?!)", None),
        ("abc$x", None),
        ("x^abc", None),
        ("(?!abc)abc", None),
        (r"abc\bx", None),
    ],
)
def test_a_pattern_that_finds_no_line_is_refused(regex, excepted):
    sets = one(regex, "abc", **({"except": [{"regex": excepted}]} if excepted else {}))
    with pytest.raises(log.PatternsError, match="pattern set s: p: no line is known that it finds"):
        log.compile_sets(sets)
    sets["s"]["patterns"][0]["matches"] = ["abc", "abc 12"]
    with pytest.raises(log.PatternsError, match="pattern set s: p: matches: 'abc' is not found"):
        log.compile_sets(sets)


@pytest.mark.parametrize(
    ("regex", "excepted"),
    [
        ("abc|\nabc", None),
        ("(?<!no )abc", None),
        (r"(?<=\d )abc(?= \d)", None),
        (r"^\s*abc\b.{0,20}$", None),
        ("abc|dabc", "^abc"),
        ("abc.{0,9}", "ignored abc"),
        ("abc[^\x1b\r\n]", None),
    ],
)
def test_a_pattern_that_finds_some_line_needs_no_example(regex, excepted):
    log.compile_sets(one(regex, "abc", **({"except": [{"regex": excepted}]} if excepted else {})))


def test_where_no_line_can_be_made_an_example_tells_that_one_is_found():
    sets = one(r"(['`])abc\1", "abc")
    with pytest.raises(log.PatternsError, match="give a list of such lines as matches"):
        log.compile_sets(sets)
    sets["s"]["patterns"][0]["matches"] = ["'abc'", "x `abc`"]
    assert scan(b"y 'abc'\n", sets)["counts"]["s"] == 1


@pytest.mark.parametrize("matches", [[], "abc", [5], {}, [None], ["abc", 5]])
def test_examples_that_are_none_are_refused(matches):
    sets = one("abc", "abc")
    sets["s"]["patterns"][0]["matches"] = matches
    with pytest.raises(log.PatternsError, match="pattern set s: p: matches: expected a list of lines"):
        log.compile_sets(sets)


@pytest.mark.parametrize("line", ["abd", "ignored abc", "a\nbc", "a\x1bbc", "abc " + "x\0" * 9])
def test_each_example_must_be_found(line):
    sets = one("abc", "abc", **{"except": [{"regex": "ignored abc"}]})
    sets["s"]["patterns"][0]["matches"] = ["abc", line]
    with pytest.raises(log.PatternsError, match="is not found by its regex, or is excepted"):
        log.compile_sets(sets)


def test_a_set_needs_no_exceptions_and_a_pattern_no_remedy():
    found = scan(b"a failure\n", one("failure", "failure"))
    assert found["hits"]["s"] == [{"line": 1, "text": "a failure", "pattern": "p", "remedy": ""}]


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_a_text_that_no_line_can_hold_is_refused(end):
    with pytest.raises(log.PatternsError, match="pattern set s: p: texts: a line holds no line end"):
        log.compile_sets({"s": {"patterns": [{"id": "p", "regex": f"x|a{end}b", "texts": ["x", f"a{end}b"]}]}})


@pytest.mark.parametrize("texts", [[], [""], ["x", 5], "x"])
def test_texts_that_are_none_are_told_apart_from_a_regex_that_is_wrong(texts):
    with pytest.raises(log.PatternsError, match="pattern set s: p: texts: expected a list of texts"):
        log.compile_sets({"s": {"patterns": [{"id": "p", "regex": "x", "texts": texts}]}})


def test_what_an_exception_hides_makes_no_match_of_its_own():
    sets = one(r"failed\s*$", "failed", **{"except": [{"regex": " as expected"}]})
    assert scan(b"step 1 failed as expected\nstep 2 failed \n", sets)["counts"]["s"] == 1


def test_a_log_that_cannot_be_searched_is_not_read_to_its_end():
    stream = io.BytesIO(b"x" * log.BLOCK_BYTES + b"x\0" * (8 * log.BLOCK_BYTES))
    with pytest.raises(EvidenceError):
        log.compile_sets(SETS).scan(stream)
    assert stream.tell() <= 4 * log.BLOCK_BYTES


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_log_that_begins_as_utf_16_does_cannot_be_searched_in_any_script(encoding):
    with pytest.raises(EvidenceError) as raised:
        scan("\ufeff日本語の誤り".encode(encoding))
    assert raised.value.problem == "not_searchable"


def test_such_a_beginning_further_on_is_any_two_bytes():
    content = b"a\n" * (log.BLOCK_BYTES // 2) + b"\xff\xfe CUDA error: x\n"
    assert scan(content)["counts"]["errors"] == 1


def test_line_numbers_count_a_blank_first_line():
    found = scan(b"\nCUDA error: x\n" + END + b"more\n")
    assert [hit["line"] for hit in found["hits"]["errors"]] == [2]
    assert found["end"]["after"] == {"line": 4, "text": "more"}


def test_a_last_line_without_its_end_is_a_line():
    assert scan(b"a\nb")["lines"] == 2


def test_a_line_that_mentions_the_end_line_is_not_mistaken_for_it():
    end = scan(END + b"echo hpc-validation-end\n")["end"]
    assert end["after"] == {"line": 2, "text": "echo hpc-validation-end"}


def test_of_what_follows_the_end_the_first_line_is_told():
    blanks = b"\n" * (2 * log.BLOCK_BYTES)
    for content in (END + b"more\n" + blanks, END + b"more\n" + blanks + b"and more\n"):
        assert scan(content)["end"]["after"] == {"line": 2, "text": "more"}


def test_a_single_letter_at_the_start_of_a_block_follows_the_end_too():
    blanks = b"\n" * (log.BLOCK_BYTES - len(END))
    assert scan(END + blanks + b"x\n")["end"]["after"] == {"line": 2 + len(blanks), "text": "x"}


@pytest.mark.parametrize("distance", [-30, -20, -14, -10, -5, -1, 0, 5])
def test_a_message_where_a_long_line_is_cut_is_found(distance):
    """The harmless one is found first, and what is looked at with it ends within the other."""
    before = b"ignored CUDA error: x "
    at = before.index(b"CUDA") + log.MAX_SEGMENT + distance
    content = before + b"-" * (at - len(before)) + b"CUDA error: real\n"
    assert scan(b"x" * 9000 + b"\n" + content)["counts"]["errors"] == 1


@pytest.mark.parametrize(
    ("block", "at", "expected"),
    [
        (b"", 0, (0, 0)),
        (b"abc", 1, (0, 3)),
        (b"a\nbcd\ne", 3, (2, 5)),
        (b"a\rbcd\re", 3, (2, 5)),
        (b"\nbcd\n", 2, (1, 4)),
        (b"a\rb\nc\rd\ne", 4, (4, 5)),
        (b"\nx", 0, (0, 0)),
        (b"\rx", 0, (0, 0)),
        (b"x" * 30_000, 0, (0, log.MAX_SEGMENT)),
        (b"x" * 30_000, 29_999, (29_999 - log.MAX_SEGMENT, 30_000)),
        (b"x" * 30_000, 15_000, (15_000 - log.MAX_SEGMENT, 15_000 + log.MAX_SEGMENT)),
        (b"a\n" + b"x" * 9_000 + b"\n", 9_001, (9_001 - log.MAX_SEGMENT, 9_002)),
        (b"a\n" + b"x" * 100 + b"\n" + b"y" * 9_000, 50, (2, 102)),
    ],
)
def test_a_line_is_looked_at_a_stretch_at_a_time(block, at, expected):
    assert log._segment(block, at) == expected


@pytest.mark.parametrize(
    ("start", "end", "begins"),
    [
        (0, log.LATE, "0123"),
        (0, log.LATE + 1, "0123"),
        (log.LEAD, log.LATE + 1, "0123"),
        (log.LEAD + 1, log.LATE, "0123"),
        (log.LEAD + 1, log.LATE + 1, "…1234"),
        (log.LEAD + 13, log.LATE + 1, "…3456"),
    ],
)
def test_a_match_that_ends_late_is_quoted_from_a_little_before_it(start, end, begins):
    line = b"0123456789" * 50
    match = re.compile(b".{%d}" % (end - start)).match(line, start)
    assert log._quote_match(line, match).startswith(begins)


def test_a_quote_that_just_fits_is_whole():
    assert log.quote(b"x" * log.MAX_QUOTE) == "x" * log.MAX_QUOTE
    assert log.quote(b"x" * (log.MAX_QUOTE + 1)) == "x" * (log.MAX_QUOTE - 1) + "…"
