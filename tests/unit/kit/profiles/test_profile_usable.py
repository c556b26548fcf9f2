# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A profile with changes of its keys, as a job uses it; and how a finding of a key's kind is worded."""

from __future__ import annotations

import pytest
from kit.profiles import document
from kit.profiles.check import UnusableError, check, field_at, judged, merged, section_of, usable
from kit.profiles.findings import WARNING, dotted
from kit.profiles.model import Metadata, Profile

from tests.unit.kit.profiles.samples import HPC, changed, line_of


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(HPC, encoding="utf-8")
    return path


def test_without_changes_it_is_the_files(file):
    assert usable(file).training.epochs == usable(file, {}).training.epochs == 100


def test_what_is_changed_is_in_it_and_all_else_stays(file):
    profile = usable(file, {"training": {"optimizer": {"lr": 1.5e-3}}, "notes": "tried"})
    assert (profile.training.optimizer.lr, profile.training.optimizer.eps, profile.notes) == (1.5e-3, 1e-8, "tried")


def test_a_change_that_does_not_fit_is_refused_with_all_that_is_wrong(file):
    with pytest.raises(UnusableError) as refused:
        usable(file, {"model": {"num_heads": 7}, "training": {"optimizer": {"lr": 0.5}}})
    lines = str(refused.value).split("\n")
    assert len(lines) == 2
    assert all(line.startswith(f"{file}:") and " error: " in line for line in lines)


def test_a_change_of_another_kind_is_refused(file):
    with pytest.raises(UnusableError, match=r"training.epochs: true; expected a whole number"):
        usable(file, {"training": {"epochs": True}})


def test_a_file_that_cannot_be_read_is_refused_by_its_name(tmp_path):
    with pytest.raises(UnusableError, match=r"none.yaml: cannot be read"):
        usable(tmp_path / "none.yaml")


def test_changes_of_what_are_no_sections_change_nothing(tmp_path):
    path = tmp_path / "list.yaml"
    path.write_text("- a\n", encoding="utf-8")
    assert [each.severity for each in check(path, {"notes": "x"}).findings] == ["error"]


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": [1]}, {"a": [2]}, {"a": [2]}),
    ],
)
def test_changes_go_into_sections_and_replace_all_else(first, second, both):
    before = repr(first)
    assert merged(first, second) == both
    assert repr(first) == before


def said(text, severity="error"):
    """(key, text) of what is found."""
    findings = judged(document.parse(text)).findings
    return [(dotted(each.place), each.text) for each in findings if each.severity == severity]


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        ({"training__epochs": "1.5"}, "training.epochs", "1.5; expected a whole number"),
        ({"training__epochs": "null"}, "training.epochs", "null; expected a whole number"),
        ({"training__epochs": "true"}, "training.epochs", "true; expected a whole number"),
        ({"training__epochs": "[1]"}, "training.epochs", "a list; expected a whole number"),
        ({"training__epochs": "{a: 1}"}, "training.epochs", "a section; expected a whole number"),
        ({"training__epochs": "0"}, "training.epochs", "0; expected at least 1"),
        ({"training__epochs": "1000001"}, "training.epochs", "1000001; expected at most 1000000"),
        ({"model__dropout": "1.0"}, "model.dropout", "1.0; expected less than 1"),
        ({"model__dropout": "many"}, "model.dropout", "'many'; expected a number"),
        ({"training__optimizer__lr": "0"}, "training.optimizer.lr", "0; expected more than 0"),
        ({"data__shuffle": "1"}, "data.shuffle", "1; expected true or false"),
        ({"model__activation": "tanh"}, "model.activation", "'tanh'; expected gelu or relu"),
        (
            {"training__optimizer__betas": "[0.9]"},
            "training.optimizer.betas",
            "a list; expected at least so many elements: 2",
        ),
        (
            {"training__optimizer__betas": "[0, 0, 0]"},
            "training.optimizer.betas",
            "a list; expected at most so many elements: 2",
        ),
        ({"training__optimizer__betas": "0.9"}, "training.optimizer.betas", "0.9; expected a list"),
        ({"training__optimizer__betas": "[0.9, x]"}, "training.optimizer.betas[1]", "'x'; expected a number"),
        ({"training__optimizer": "adam"}, "training.optimizer", "'adam'; expected a section"),
        ({"notes": "' '"}, "notes", "' '; expected a text that is not blank"),
        ({"notes": "''"}, "notes", "''; expected at least so many characters: 1"),
        ({"notes": "7"}, "notes", "7; expected a text: write it in quotes"),
        ({"environment__python": "3.10"}, "environment.python", "3.1; expected a text: write it in quotes"),
        ({"notes": "[a]"}, "notes", "a list; expected a text"),
        ({"metadata__name": "a" * 201}, "metadata.name", f"'{'a' * 58}…; expected at most so many characters: 200"),
        (
            {"metadata__name": "' a'"},
            "metadata.name",
            "' a'; expected a name on one line, without characters that are not seen",
        ),
        ({"metadata__created": "2026-1-1"}, "metadata.created", "'2026-1-1'; expected a day such as \"2026-01-31\""),
        ({"resources__time": '"1 day"'}, "resources.time", "'1 day'; expected a time such as \"48:00:00\", in quotes"),
        ({"logging__directory": "logs"}, "logging.directory", "'logs'; expected an absolute path on one line"),
        (
            {"training__mixed_precision__loss_scale": "high"},
            "training.mixed_precision.loss_scale",
            "'high'; expected dynamic or a number",
        ),
    ],
)
def test_a_value_of_another_kind_is_told_with_what_is_expected(change, key, words):
    assert said(changed(HPC, **change)) == [(key, words)]


def test_a_value_of_sixty_characters_is_shown_whole():
    text = "x" * 58
    assert said(changed(HPC, model__activation=text)) == [("model.activation", f"'{text}'; expected gelu or relu")]
    text = "x" * 59
    shown = f"'{text[:58]}…"
    assert said(changed(HPC, model__activation=text)) == [("model.activation", f"{shown}; expected gelu or relu")]


def test_a_missing_key_is_told_with_what_it_means():
    assert said(changed(HPC, training__epochs="-")) == [
        ("training.epochs", "missing: Times that the training data is read")
    ]
    (found,) = said(changed(HPC, training__scheduler="-"))
    assert found == ("training.scheduler", "missing: expected a section: The learning rate over the steps.")


def test_the_nearest_missing_key_beside_an_unknown_one_is_named():
    assert said(HPC.replace("  epochs: 100", "  epoch: 100")) == [("training.epoch", "unknown key; is it epochs?")]
    text = HPC.replace("  epochs: 100\n", "").replace("  shuffle: true", "  shuffle: true\n  epochs: 100")
    assert sorted(said(text)) == [
        ("data.epochs", "unknown key; expected none: all keys of the section are there"),
        ("training.epochs", "missing: Times that the training data is read"),
    ]


def test_what_is_refused_as_it_is_written_is_told_once():
    assert [key for key, _text in said(changed(HPC, training__epochs="0x10"))] == ["training.epochs"]


def test_that_keys_were_not_compared_is_told_only_where_they_were_not():
    assert said(changed(HPC, training__epochs="0"), WARNING) == [
        (
            "",
            "keys were not compared with one another before these errors are mended; these checks did not run: "
            "shapes, tasks, stopping, rates, reachable, batches, memory, precision, ranks, reading, times, watching, "
            "exports, device, transfers, validated, trackers",
        )
    ]
    assert said(changed(HPC, model__num_heads="7"), WARNING) == []


def test_findings_are_in_the_order_of_the_file():
    text = changed(HPC, distributed__world_size="2", model__num_heads="7")
    lines = [each.line for each in judged(document.parse(text)).findings]
    assert lines == [line_of(text, "model.num_heads"), line_of(text, "distributed.world_size")]


def test_a_key_is_known_by_its_place():
    assert field_at(("training", "epochs")) == ("Times that the training data is read", "S4-9")
    assert field_at(("training", "optimizer", "betas", 0)) == ("Decay of both moments", "S4-9")
    assert field_at(("training", "checkpointing", "keep")) == ("How many of the newest are kept", "S4-21")
    assert field_at(("training", "none")) is field_at(("training",)) is field_at(()) is None
    assert field_at(("notes", "epochs")) is None


def test_a_section_is_known_by_its_key():
    assert section_of(Profile, "metadata") is Metadata
    assert section_of(Profile, "power_management").__name__ == "PowerManagement"
    assert section_of(Profile, "notes") is section_of(Profile, "none") is None


SECRET = "hf_" + "aB3dE5gH7jK9mN1pQ2sT4uV6"


def test_a_credential_is_found_once_in_a_value_and_in_a_comment():
    for text, key in ((changed(HPC, notes=SECRET), "notes"), (f"{HPC}# {SECRET}\n", "")):
        (found,) = judged(document.parse(text)).findings
        assert (dotted(found.place), found.line) == (key, text[: text.index(SECRET)].count("\n") + 1)
        assert found.text.startswith("looks like a Hugging Face token")


def test_a_value_beside_a_credential_is_not_shown():
    text = changed(HPC, model__hidden_size="odd  # api_key: hunter2hunter2")
    assert ("model.hidden_size", "a value that is not shown; expected a whole number") in said(text)


def test_a_random_word_that_is_said_to_be_no_secret_is_not_shown_either():
    text = changed(HPC, model__hidden_size="aB3dE5gH7jK9mN1pQ2sT4uV6wX8yZ0aB3dE5gH7j  # not-a-secret")
    assert said(text) == [("model.hidden_size", "a value that is not shown; expected a whole number")]


@pytest.mark.parametrize(
    ("value", "element"), [("{a: 1}", ""), ("[a, 1.0]", "[0]"), ("a", ""), ("[]", ""), ("[1.0, {b: 2}]", "[1]")]
)
def test_a_value_of_none_of_several_kinds_is_told_at_its_key(value, element):
    (found,) = said(changed(HPC, data__normalization__mean=value))
    assert found[0] == f"data.normalization.mean{element}"


def test_a_missing_key_has_its_requirement():
    (found,) = [each for each in judged(document.parse(changed(HPC, training__batch_size="-"))).findings if each.place]
    assert (dotted(found.place), found.requirement) == ("training.batch_size", "S4-13")


def test_a_misspelt_key_is_looked_for_in_its_own_section():
    text = HPC.replace("    eps: 1.0e-8", "    epss: 1.0e-8")
    assert said(text) == [("training.optimizer.epss", "unknown key; is it eps?")]
    text = HPC.replace("    eps: 1.0e-8\n", "").replace("    warmup_steps:", "    epss: 1\n    warmup_steps:")
    assert sorted(key for key, _text in said(text)) == ["training.optimizer.eps", "training.scheduler.epss"]
