"""The table and the one-line summary."""

from __future__ import annotations

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import criteria_table


def entry(**changes):
    whole = {
        "id": "S0-13",
        "title": "accuracy",
        "verdict": "pass",
        "value": 0.97,
        "bound": "> 0.95",
        "unit": None,
        "source": "metrics.test_accuracy",
        "why": "0.97 is > 0.95",
        "remedy": None,
        "bound_from": "manifest",
        "severity": "gate",
        "against_baseline": False,
    }
    return {**whole, **changes}


def test_a_pass_is_one_line_with_value_bound_and_unit():
    table = criteria_table.render("MLOPS-1.1", "pass", [entry(id="S0-12", value=52.4, bound="< 180", unit="s")])
    assert table == "MLOPS-1.1: PASS\npass           S0-12  accuracy: 52.4 s  [< 180 s]"


def test_what_is_no_pass_says_why_and_what_to_do():
    table = criteria_table.render(
        "W", "fail", [entry(verdict="fail", why="word " * 40, remedy="do it", bound_from="override")]
    )
    lines = table.split("\n")
    assert "(override)" in lines[1]
    assert lines[2].strip().startswith("why: word")
    assert lines[-1].strip() == "do:  do it"
    assert max(map(len, lines)) <= 120


def test_what_fails_for_one_reason_has_it_once():
    gone = {"verdict": "undetermined", "value": None, "why": "metrics.json is missing", "remedy": "see the log"}
    judged = [entry(id=f"S{n}", **gone) for n in range(3)]
    judged += [entry(id="S3", **{**gone, "remedy": "other"}), entry(id="S4"), entry(id="S5", **gone)]
    judged += [
        entry(id="S6", **{**gone, "why": "other"}),
        entry(id="S7", **{**gone, "why": "other", "verdict": "fail"}),
    ]
    words = [
        line.split()[1 if line[0] != " " else 0] for line in criteria_table.render("W", "x", judged).split("\n")[1:]
    ]
    reason = ["why:", "do:"]
    assert words == ["S0", "S1", "S2", *reason, "S3", *reason, "S4", "S5", *reason, "S6", *reason, "S7", *reason]


def test_a_speed_up_says_how_it_came_out_though_it_passes():
    ratio = entry(value=1.93, against_baseline=True, why="19300 / 10000 = 1.93 (1.9 to 1.96)")
    table = criteria_table.render("W", "pass", [ratio])
    assert table.split("\n")[2].strip() == "why: 19300 / 10000 = 1.93 (1.9 to 1.96)"


def test_the_summary_names_failures_first_and_bounds_their_number():
    judged = [entry(id=f"U{n}", verdict="undetermined", value=None) for n in range(9)] + [entry(id="F", verdict="fail")]
    line = criteria_table.summary("W", "fail", judged)
    assert line.startswith("W: fail. F fail (accuracy: 0.97 against > 0.95")
    assert line.endswith("and 5 more")
    assert "\n" not in line


def test_no_criteria_at_all_is_said():
    assert "no criterion" in criteria_table.summary("W", "undetermined", [entry(verdict="not_applicable")])
    assert criteria_table.render("W", "undetermined", []) == "W: UNDETERMINED"
