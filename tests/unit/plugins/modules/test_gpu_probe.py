"""The half on the node: a child with a time limit, whose failures become facts."""

from __future__ import annotations

import importlib
import json
import sys
import textwrap
import time

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.mlops.hpc_validation.plugins.module_utils._probe import gpu
from ansible_collections.mlops.hpc_validation.plugins.modules import gpu_probe


@pytest.fixture
def kit(tmp_path):
    """(code of a stand-in for the kit) → the folder that holds it."""

    def make(code):
        package = tmp_path / "kit"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "__main__.py").write_text(textwrap.dedent(code))
        return str(tmp_path)

    return make


@pytest.fixture
def run(capsys):
    """(options) → what the module answered."""

    def run(**options):
        with patch_module_args({"limit": 20, **options}), pytest.raises(SystemExit):
            gpu_probe.main()
        return json.loads(capsys.readouterr().out)

    return run


ECHO = "import json, sys; print(json.dumps({'schema': 1, 'argv': sys.argv[1:]}))"


def test_the_facts_of_the_kit_are_returned(run, kit):
    answer = run(kit=kit(ECHO))
    assert answer["changed"] is False
    times = "--deadline 5 --init-deadline 30 --limit 20"
    assert " ".join(answer["facts"]["argv"]) == f"probe {times} --kernel-log user --since boot"


def test_every_option_reaches_the_kit(run, kit):
    options = {"health": False, "sample_seconds": 2, "interval": 0.5, "kernel_log": "sudo", "since": "60"}
    before = time.time()
    argv = run(kit=kit(ECHO), deadline=1.5, init_deadline=9, _ansible_check_mode=True, **options)["facts"]["argv"]
    since = float(argv.pop(argv.index("--since") + 1))
    assert before - 61 <= since <= time.time() - 59
    times = "--deadline 1.5 --init-deadline 9 --limit 20"
    told = f"probe {times} --kernel-log sudo --since --sample 2 --interval 0.5 --no-health"
    assert " ".join(argv) == told


def test_another_interpreter_runs_the_kit(run, kit, tmp_path):
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    folder = kit("import json, sys; print(json.dumps({'schema': 1, 'python': sys.executable}))")
    assert run(kit=folder, python=str(python))["facts"]["python"] == str(python)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise SystemExit(3)", "the kit ended with 3; it printed no error"),
        ("1 / 0", "ZeroDivisionError"),
        ("print('{')", "did not print facts"),
        ("print('[]')", "did not print facts"),
        ("", "did not print facts"),
        ("print('{\"schema\": 1}'); raise SystemExit(1)", "ended with 1"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended with -11"),
        ("import sys; sys.stdout.write('[' * 100000)", "did not print facts"),
        ("import sys; sys.stdout.write('{\"a\": \"' + 'x' * (17 << 20) + '\"}')", "did not print facts"),
    ],
)
def test_a_kit_that_fails_becomes_facts_that_say_so(run, kit, code, told):
    facts = run(kit=kit(code))["facts"]
    assert told in facts["error"]
    assert (facts["schema"], facts["source"], facts["gpus"]) == (1, "none", [])


def test_no_kit_and_no_interpreter_are_facts_that_say_so(run, tmp_path):
    assert "No module named kit" in run(kit=str(tmp_path / "nothing"))["facts"]["error"]
    assert "No such file" in run(kit=str(tmp_path), python=str(tmp_path / "python"))["facts"]["error"]


def test_a_kit_that_hangs_is_stopped_with_all_its_children(run, kit, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "GRACE", 1.0)
    folder = kit(
        """
        import os, pathlib, time
        pid = os.fork()
        if pid:
            pathlib.Path(__file__).with_name("pids").write_text(f"{os.getpid()} {pid}")
        time.sleep(600)
        """
    )
    begun = time.monotonic()
    facts = run(kit=folder, limit=1)["facts"]
    assert time.monotonic() - begun < 10
    assert "was still running after 2 s" in facts["error"]
    pids = (tmp_path / "kit" / "pids").read_text().split()
    deadline = time.monotonic() + 5
    while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(_runs(pid) for pid in pids)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("options", "told"), [({"limit": 0}, "limit"), ({"kit": "kit"}, "kit"), ({"since": "nan"}, "since")]
)
def test_malformed_options_are_named(run, options, told):
    answer = run(**options)
    assert answer["failed"]
    assert told in answer["msg"]


def test_what_is_documented_is_what_is_taken():
    module = importlib.import_module(gpu_probe.__name__)
    documented = yaml.safe_load(module.DOCUMENTATION)["options"]
    spec = gpu.argument_spec()
    assert set(documented) == set(spec)
    for name, option in spec.items():
        assert documented[name]["type"] == option["type"], name
        assert documented[name].get("default") == option.get("default"), name
        assert documented[name].get("choices") == option.get("choices"), name


def test_the_real_kit_answers_with_gpus_or_with_the_reason_why_not(run, root):
    facts = run(kit=str(root / "files"), kernel_log="none")["facts"]
    assert facts["schema"] == 1
    assert bool(facts["error"]) != bool(facts["gpus"])
    assert not str(facts["error"]).startswith("the kit ")
