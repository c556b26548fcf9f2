# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Prometheus and Grafana get: of the metrics that there are, with the bounds that the kit has.

tests/artifact/test_monitoring.py asks Prometheus itself.
"""

from __future__ import annotations

import json
import re

import pytest
import yaml
from kit.pretraining import alerts
from kit.pretraining.exporters import HEARTBEAT, PATTERN
from kit.pretraining.exposition import METRICS, PREFIX, SOLO

from tests.unit.conftest import ROOT

FOLDER = ROOT / "files/workloads/gpt_pretraining/monitoring"
OWN = {PREFIX + name for name in [*(name for name, _kind, _help in METRICS.values()), SOLO[0]]}


def minutes(seconds: float) -> str:
    return f"{seconds / 60:g}m"


# What a job left behind, of whose run another makes steps. alerts.py knows one job.
NOT_LEFT_BEHIND = (
    "unless on (run, job_id) "
    "(changes(hpc_pretraining_step[5m]) == 0 and on (run) changes(hpc_pretraining_step[5m]) > 0)"
)
# What alerts.py replays: the expression and the duration of its rule.
REPLAYED = {
    alerts.NOT_FINITE: (
        "(hpc_pretraining_finite == 0 and hpc_pretraining_active == 1 or "
        f"increase(hpc_pretraining_not_finite_steps_total[{minutes(alerts.NOT_FINITE_WINDOW)}]) > 0) {NOT_LEFT_BEHIND}",
        0,
    ),
    alerts.SKIPPED: (
        f"(increase(hpc_pretraining_skipped_steps_total[{minutes(alerts.SKIPPED_WINDOW)}]) > {alerts.SKIPPED_MOST} "
        "unless hpc_pretraining_loss_scale) or "
        f"(increase(hpc_pretraining_skipped_steps_total[{minutes(alerts.SKIPPED_WINDOW)}]) > "
        f"{alerts.SKIPPED_MOST_SCALED} and hpc_pretraining_loss_scale)",
        0,
    ),
    alerts.NO_STEP: (
        f"max by (run) (changes(hpc_pretraining_step[{minutes(alerts.NO_STEP_WINDOW)}])) == 0 "
        "and max by (run) (hpc_pretraining_active) == 1",
        alerts.NO_STEP_FOR,
    ),
    alerts.CHECKPOINT: (
        f"hpc_pretraining_step - hpc_pretraining_checkpoint_step > {alerts.CHECKPOINT_INTERVALS} * "
        f"hpc_pretraining_checkpoint_every_steps and hpc_pretraining_active == 1 {NOT_LEFT_BEHIND}",
        alerts.CHECKPOINT_FOR,
    ),
    alerts.SLOW: (
        "min by (instance, job, run, job_id) (hpc_pretraining_solo_seconds) / on (instance, job, run, job_id) "
        f"group_right () hpc_pretraining_solo_seconds < {alerts.PACE_LEAST} and on (instance, job, run, job_id) "
        f"hpc_pretraining_active == 1 {NOT_LEFT_BEHIND}",
        alerts.SLOW_FOR,
    ),
    alerts.SPIKE: (
        f"hpc_pretraining_loss > {alerts.SPIKE_FACTOR} * avg_over_time(hpc_pretraining_loss"
        f"[{minutes(alerts.SPIKE_WINDOW)}]) and hpc_pretraining_active == 1",
        alerts.SPIKE_FOR,
    ),
}


def read(name: str):
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


def rules() -> dict[str, dict]:
    return {rule["alert"]: rule for group in read("rules.yml")["groups"] for rule in group["rules"]}


@pytest.mark.parametrize("alert", REPLAYED)
def test_a_rule_has_the_bounds_of_its_replay(alert):
    expression, seconds = REPLAYED[alert]
    rule = rules()[alert]
    assert " ".join(rule["expr"].split()) == expression
    assert rule.get("for", "0m") == minutes(seconds)


def test_each_rule_says_how_bad_it_is_and_what_to_do():
    for alert, rule in rules().items():
        assert alert.startswith("Pretraining")
        assert rule["labels"]["severity"] in ("critical", "warning"), alert
        assert set(rule["annotations"]) == {"summary", "description"}, alert
        assert rule["annotations"]["description"].endswith("."), alert


def test_each_rule_is_tested_where_it_fires_and_where_it_does_not():
    tests = read("rules_test.yml")["tests"]
    firing = {each["alertname"] for test in tests for each in test.get("alert_rule_test", []) if each["exp_alerts"]}
    samples = [
        sample["labels"]
        for test in tests
        for each in test.get("promql_expr_test", [])
        if 'alertstate="firing"' in each["expr"]
        for sample in each["exp_samples"]
    ]
    firing |= {found[1] for labels in samples if (found := re.search(r'alertname="(\w+)"', labels))}
    assert firing == set(rules())
    first = tests[0]["promql_expr_test"][0]
    assert first["expr"] == 'count(count_over_time(ALERTS{alertstate="firing"}[75m])) or vector(0)'
    assert first["exp_samples"] == [{"labels": "{}", "value": 0}]


def test_a_files_heartbeat_is_faster_than_the_alert_about_it():
    rule = rules()["PretrainingTextfileStale"]
    assert "[5m]" in rule["expr"]
    assert HEARTBEAT * 4 < 300
    pattern = re.search(r'file=~"([^"]*)"', rule["expr"])[1]
    assert re.fullmatch(pattern, "/metrics/" + PATTERN.replace("*", "12"))


def expressions() -> dict[str, str]:
    """Everything that is asked of Prometheus."""
    found = {alert: rule["expr"] for alert, rule in rules().items()}
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            found[f"panel {panel['id']} {target['refId']}"] = target["expr"]
    return found


def test_only_metrics_that_are_exported_are_asked_for():
    asked = {name: set(re.findall(rf"{PREFIX}\w+", expression)) for name, expression in expressions().items()}
    assert {name: each - OWN for name, each in asked.items() if each - OWN} == {}
    assert OWN - set().union(*asked.values()) == set()


def dashboard() -> dict:
    return json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))


def test_the_dashboard_takes_its_data_source_from_a_variable():
    found = dashboard()
    variables = {each["name"]: each for each in found["templating"]["list"]}
    assert list(variables) == ["datasource", "run", "job_id"]
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    source = {"type": "prometheus", "uid": "${datasource}"}
    for panel in found["panels"]:
        assert panel["datasource"] == source, panel["title"]
        assert all(target["datasource"] == source for target in panel["targets"]), panel["title"]
    for name in ("run", "job_id"):
        assert variables[name]["datasource"] == source
    assert found["id"] is None
    assert found["uid"] == "hpc-pretraining"


def test_panels_have_a_place_a_name_and_a_query_each():
    panels = dashboard()["panels"]
    for name in ("id", "title"):
        assert len({(panel["type"], panel[name]) for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells, panel["title"]
        assert max(x for x, _y in cells) < 24, panel["title"]
        taken |= cells
        references = [target["refId"] for target in panel["targets"]]
        assert references
        assert len(set(references)) == len(references)
        assert all(target["expr"] for target in panel["targets"])


def test_the_example_scrapes_under_the_name_that_its_absence_is_noticed_by():
    (job,) = read("prometheus.yml")["scrape_configs"]
    assert f'absent(up{{job="{job["job_name"]}"}})' in rules()["PretrainingNotScraped"]["expr"]
    assert read("prometheus.yml")["rule_files"] == ["rules.yml"]
