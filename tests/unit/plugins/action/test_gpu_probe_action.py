"""The controller's half: refuse, have the node asked, judge, print."""

from __future__ import annotations

from unittest import mock

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible_collections.mlops.hpc_validation.plugins.action.gpu_probe import ActionModule
from ansible_collections.mlops.hpc_validation.plugins.module_utils._probe import gpu
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema

from tests.unit.plugins.plugin_utils._gpu.gpu_node import NODE, healthy, second


@pytest.fixture
def run():
    def run(answer, *, no_log=False, **arguments):
        task = mock.MagicMock(args=arguments, async_val=0, check_mode=False, no_log=no_log)
        action = ActionModule(task, mock.MagicMock(), mock.MagicMock(), None, None, None)
        action._display = mock.MagicMock()
        effect = answer if isinstance(answer, Exception) else [answer]
        action._execute_module = mock.MagicMock(side_effect=effect)
        result = action.run(task_vars={"inventory_hostname": "compute02.example.org"})
        result["displayed"] = [call.args[0] for call in action._display.display.call_args_list]
        result["sent"] = action._execute_module.call_args.kwargs["module_args"]
        assert [problem for entry in result["findings"] for problem in schema.problems("finding", entry)] == []
        return result

    return run


def answer(facts):
    return {"changed": False, "facts": facts}


def test_a_healthy_node_passes(run):
    result = run(answer(healthy()), expect={"count": 2})
    assert (result["verdict"], result["failed"], result["changed"], result["node"]) == ("pass", False, False, NODE)
    assert result["facts"] == healthy()
    assert result["displayed"] == [result["table"]]
    assert "gpu_probe on compute02: PASS" in result["table"]
    assert "fail" not in result["table"]


def test_a_fault_fails_the_task_and_names_node_gpu_check_value_bound_and_remedy(run):
    result = run(answer(second(pcie__width=8)))
    assert (result["verdict"], result["failed"]) == ("fail", True)
    for text in (result["msg"], result["table"]):
        for part in ("compute02", "GPU 1 (00000000:20:00.0, GPU-00000001-", "gpu.pcie_width", "8", ">= 16"):
            assert part in text
    assert "lspci -vv" in result["table"]


def test_one_line_stands_for_all_checks_of_a_gpu_that_does_not_answer(run):
    result = run(answer(second(error="GpuIsLost")))
    assert result["verdict"] == "fail"
    assert "compute02, GPU 1 (00000000:20:00.0, GPU-00000001-1111-2222-3333-444444444444)" in result["table"]
    assert "more checks, since the GPU as a whole does not answer" in result["table"]
    assert len(result["table"].splitlines()) < 10


def test_fail_false_returns_the_verdict_and_nothing_more(run):
    result = run(answer(second(pcie__width=8)), fail=False)
    assert (result["verdict"], result["failed"], "msg" in result) == ("fail", False, False)


def test_what_is_for_the_controller_is_not_sent(run):
    result = run(answer(healthy()), expect={"xid_since": 3600}, simulated=True, kernel_log="journal")
    assert not set(result["sent"]) & set(gpu.CONTROLLER_ONLY)
    assert result["sent"]["since"] == "3600"
    assert result["sent"]["kernel_log"] == "journal"
    assert all(entry["source"].startswith("simulated") for entry in result["findings"])
    assert "simulated" in result["table"]


def test_without_health_only_the_inventory_is_judged(run):
    result = run(answer(second(ecc__uncorrected_volatile=1)), health=False)
    assert result["verdict"] == "pass"


def test_facts_of_another_node_are_undetermined(run):
    result = run(answer(healthy()), node="compute01")
    assert (result["verdict"], [entry["id"] for entry in result["findings"]]) == ("undetermined", ["gpu.readable"])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (AnsibleConnectionFailure("no route to host"), "no route to host"),
        (AnsibleConnectionFailure("ssh did not answer in 5 s"), "ssh did not answer"),
        (AnsibleActionFail("broken"), "broken"),
        ({"failed": True, "msg": "MODULE FAILURE", "module_stderr": "Killed"}, "MODULE FAILURE Killed"),
        ({"unreachable": True, "msg": "gone"}, "gone"),
        ({}, "no answer"),
        ({"facts": []}, "no answer"),
        ({"facts": {}}, "found null"),
        ({"facts": {"schema": 1, "node": NODE}}, "source"),
    ],
)
def test_a_node_that_tells_nothing_is_undetermined(run, given, told):
    result = run(given)
    assert (result["verdict"], result["failed"]) == ("undetermined", True)
    assert told in result["findings"][0]["why"]
    assert result["findings"][0]["remedy"]
    assert result["node"].split(".")[0] == NODE


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"expect": {"cuont": 8}}, "unknown key 'cuont'"),
        ({"expect": {"count": "8"}}, "hpc_validation_gpu.count"),
        ({"limit": 0}, "limit"),
        ({"deadline": float("nan")}, "deadline"),
        ({"init_deadline": 0}, "init_deadline"),
        ({"interval": 2}, "interval"),
        ({"kit": "scripts"}, "kit"),
        ({"python": "python3"}, "python"),
        ({"since": "yesterday"}, "since"),
        ({"since": "-5"}, "since"),
        ({"kernel_log": "root"}, "kernel_log"),
    ],
)
def test_malformed_options_are_refused_before_anything_is_read(run, arguments, told):
    with pytest.raises(AnsibleActionFail, match=told):
        run(AssertionError("asked"), **arguments)
