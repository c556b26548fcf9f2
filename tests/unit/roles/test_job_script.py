"""The job script as the role renders it: what Slurm reads of it, and what a shell makes of hostile settings."""

from __future__ import annotations

import subprocess
import time
import typing as t
from pathlib import Path

import pytest

from tests.unit.conftest import ROOT
from tests.unit.roles.conftest import directives, job_script

MNIST = ROOT / "files/workloads/mnist_single_gpu"
VENV = {"key": "pytorch", "name": "pytorch", "kind": "venv", "locked": True}


@pytest.fixture
def render(example) -> t.Callable[..., str]:
    """(settings) → the job script of the example manifest."""

    def make(manifest=None, **settings):
        known = example("manifest")
        workload = {**known, "option": "none", "folder": str(MNIST), **(manifest or {})}
        workload["output"] = {"logs": "jobs", **workload["output"]}
        workload["needs"] = []
        stage = {
            "__stage_plan": {"by_workload": {"MLOPS-1.1": "pytorch"}},
            "__stage_runtimes": {"pytorch": {**VENV, "python": "/mnt/beegfs/venvs/pytorch-1/bin/python"}},
        }
        return job_script(workload, **{**stage, **settings})

    return make


def test_the_documents_own_directives(render):
    assert set(directives(render())) >= {
        "--job-name=mnist-single-gpu",
        '--nodes="1"',
        '--ntasks-per-node="1"',
        '--cpus-per-task="4"',
        '--gres="gpu:1"',
        '--mem="8G"',
        '--time="00:10:00"',
        '--output="/mnt/beegfs/jobs/mnist-single-gpu-%j.out"',
        '--error="/mnt/beegfs/jobs/mnist-single-gpu-%j.err"',
        "--export=NONE",
        "--no-requeue",
        '--chdir="/mnt/beegfs/scripts/mnist_single_gpu"',
        '--deadline="now+8400seconds"',
    }


def test_logs_and_configuration_lie_where_the_manifest_says(render, example):
    output = {**example("manifest")["output"], "logs": "slurm-logs"}
    script = render(manifest={"output": output, "config": "train.yaml"})
    assert '--output="/mnt/beegfs/slurm-logs/mnist-single-gpu-%j.out"' in directives(script)
    assert '--error="/mnt/beegfs/slurm-logs/mnist-single-gpu-%j.err"' in directives(script)
    assert "export CONFIG_FILE=/mnt/beegfs/configs/mnist_single_gpu/train.yaml" in script.splitlines()
    assert "CONFIG_FILE=" not in render()


RANKS = {
    "launcher": "torchrun",
    "resources": {
        "nodes": 1,
        "ntasks_per_node": 2,
        "cpus_per_task": 4,
        "gres": "gpu:2",
        "mem": "8G",
        "time": "00:10:00",
    },
    "command": ["python", "train.py", "--name", "a b"],
}


def launched(script):
    """The line that starts the workload, and the sampler's."""
    lines = script.replace("\\\n    ", "").splitlines()
    return [line for line in lines if "kit legs" in line or "kit sample" in line or "train.py" in line]


def test_ranks_are_started_once_by_their_launcher_between_the_runs_of_their_baseline(render):
    baseline = {"ranks": 1, "work": "weak"}
    sample, start = launched(render(manifest={**RANKS, "baseline": baseline, "sample_seconds": 0.2}))
    assert sample.endswith('--output "$OUTPUT_DIR/gpu.jsonl" --interval 0.2 &')
    assert start == (
        '"$kit_python" -m kit legs --ranks 2 --baseline 1 --work weak --steady-seconds 30 '
        '${launcher[@]+"${launcher[@]}"} "$runtime_python" -m kit launch train.py --name \'a b\' &'
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"manifest": RANKS},
        {
            "manifest": {**RANKS, "baseline": {"ranks": 1, "work": "weak"}},
            "hpc_validation_baselines": {"MLOPS-1.1": "saved.json"},
        },
    ],
)
def test_without_a_baseline_or_with_a_stored_one_all_ranks_run_alone(render, settings):
    _sample, start = launched(render(**settings))
    assert "--ranks 2" in start
    assert "--baseline" not in start


def test_each_leg_is_told_as_the_manifest_has_it(render):
    _sample, start = launched(render(manifest={**RANKS, "legs": ["shape:1", "measured", "killed::killed"]}))
    assert start.startswith(
        '"$kit_python" -m kit legs --ranks 2 --leg shape:1 --leg measured --leg killed::killed ${launcher'
    )


def test_a_job_that_goes_on_from_another_runs_only_the_legs_that_can(render):
    manifest = {**RANKS, "legs": ["shape:1", "plain", "measured", "export:1"]}
    _sample, start = launched(render(manifest=manifest, hpc_validation_resume={"MLOPS-1.1": 4711}))
    assert start.startswith(
        '"$kit_python" -m kit legs --ranks 2 --leg shape:1 --leg measured --leg export:1 ${launcher'
    )


def test_a_job_finds_the_inventorys_settings_of_its_training(render):
    script = render(manifest={**RANKS, "settings": "pretraining"})
    assert "export SETTINGS_FILE=/mnt/beegfs/configs/mnist_single_gpu/site.json" in script.splitlines()
    assert "SETTINGS_FILE=" not in render(manifest=RANKS)


def test_how_long_a_speed_is_measured_is_the_manifests(render):
    baseline = {"ranks": 1, "work": "strong", "steady_seconds": 12.5}
    _sample, start = launched(render(manifest={**RANKS, "baseline": baseline}))
    assert "--baseline 1 --work strong --steady-seconds 12.5 ${launcher" in start


def test_on_several_nodes_each_tells_what_it_is_and_samples_its_own_gpus(render):
    resources = {**RANKS["resources"], "nodes": 2, "ntasks_per_node": 1, "gres": "gpu:1"}
    script = render(manifest={**RANKS, "resources": resources, "baseline": {"ranks": 1, "work": "weak"}})
    sample, start = launched(script)
    each = '"$kit_python" -m kit nodes --count 2 "$kit_python" -m kit'
    assert sample.startswith(f'{each} sample --output "$OUTPUT_DIR/nodes/%N/gpu.jsonl"')
    assert "kit legs --ranks 2 --nodes 2 --baseline 1" in start
    assert f'{each} provenance --output "$OUTPUT_DIR/nodes/%N/provenance.json"' in script
    gather = '"$kit_python" -m kit gather --output "$OUTPUT_DIR" --count 2'
    assert script.count(gather) == 2  # what they are before the ranks start, what they sampled at the end
    assert "kit gather" not in render(manifest=RANKS)
    assert "kit nodes" not in render(manifest=RANKS)


def test_it_is_the_same_every_time(render):
    assert render() == render()


def test_site_settings_reach_the_job_and_the_workloads_own_win(render):
    found = directives(
        render(
            hpc_validation_slurm={
                "account": "ops",
                "partition": "gpu",
                "gres_type": "h200",
                "extra": {"exclusive": True},
            },
            hpc_validation_workload_slurm={"MLOPS-1.1": {"account": "mlops", "extra": {"licenses": "a:1"}}},
        )
    )
    assert {'--account="mlops"', '--partition="gpu"', '--gres="gpu:h200:1"', '--licenses="a:1"'} <= set(found)
    assert not [line for line in found if "gres_type" in line or "extra" in line]


def test_a_flag_has_no_value(render):
    assert "--exclusive" in directives(render(hpc_validation_slurm={"extra": {"exclusive": True}}))


@pytest.mark.parametrize("nothing", [None, False])
@pytest.mark.parametrize("name", ["exclusive", "partition", "account", "mem", "nodelist", "gres"])
def test_what_is_null_or_false_leaves_an_option_out(render, name, nothing):
    for settings in ({name: nothing}, {"extra": {name: nothing}}, {"partition": "gpu", "extra": {name: nothing}}):
        found = directives(render(hpc_validation_slurm=settings))
        assert [line for line in found if line.startswith(f"--{name}")] == [], found
        assert [line for line in found if "None" in line or "False" in line] == []


@pytest.mark.parametrize("slurm", [{"extra": None}, {"gres_type": None}, {"gres_type": False}, {"partition": None}])
def test_settings_that_say_nothing_change_nothing(render, slurm):
    assert directives(render(hpc_validation_slurm=slurm)) == directives(render())
    workload = {"MLOPS-1.1": slurm}
    assert directives(render(hpc_validation_workload_slurm=workload)) == directives(render())
    assert directives(render(hpc_validation_workload_slurm={"MLOPS-1.1": None})) == directives(render())


def test_a_workload_may_take_a_setting_of_the_site_back(render):
    site, own = {"partition": "gpu", "extra": {"exclusive": True}}, {"partition": None, "extra": {"exclusive": False}}
    found = directives(render(hpc_validation_slurm=site, hpc_validation_workload_slurm={"MLOPS-1.1": own}))
    assert found == directives(render())


def test_a_list_has_commas_and_zero_is_a_value(render):
    slurm = {"exclude": ["n1", "n2"], "extra": {"nice": 0, "licenses": ["a:1"]}}
    found = directives(render(hpc_validation_slurm=slurm))
    assert {'--exclude="n1,n2"', '--nice="0"', '--licenses="a:1"'} <= set(found)


def test_a_cpu_cluster_is_not_asked_for_gpus(render):
    assert not [line for line in directives(render(hpc_validation_accelerator="cpu")) if line.startswith("--gres")]


@pytest.mark.parametrize(
    "settings",
    [{}, {"hpc_validation_share": "/mnt/my share; touch /tmp/x $(id)"}, {"hpc_validation_python": "/opt/a b/python3'"}],
)
def test_shellcheck_and_bash_accept_it(render, settings, tmp_path):
    script = tmp_path / "job.sbatch"
    script.write_text(render(**settings))
    assert subprocess.run(["bash", "-n", str(script)], capture_output=True, check=False).returncode == 0
    checked = subprocess.run(
        ["shellcheck", "-s", "bash", "-e", "SC2329,SC2016", str(script)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


ENVIRONMENT = {"SLURM_JOB_ID": "7", "PATH": "/usr/bin:/bin"}


@pytest.fixture
def job(render, tmp_path) -> t.Callable[..., list[str]]:
    """(command, body, share) → argv of a job script whose interpreter is a stand-in.

    It notes its arguments, a line each call, in `noted` and goes on with `body`; the kit is called by the same name.
    """

    def make(command: list[str], body: str = "exit 0", share: Path = tmp_path / "share", **given: t.Any) -> list[str]:
        (share / "jobs/.markers").mkdir(parents=True)
        python = tmp_path / "py thon"
        python.write_text(f'#!/usr/bin/env bash\n(IFS="|"; echo "$*") >> "{tmp_path}/noted"\n{body}\n')
        python.chmod(0o755)
        script = tmp_path / "job.sbatch"
        settings: dict[str, t.Any] = {"hpc_validation_share": str(share), "hpc_validation_python": str(python)}
        runtimes = {"pytorch": {**VENV, "python": str(python)}}
        settings.update({"__stage_runtimes": runtimes, **given})
        script.write_text(render(manifest={"command": command}, **settings))
        return ["bash", str(script)]

    return make


def test_hostile_paths_and_arguments_stay_words(job, tmp_path):
    share = tmp_path / "a b;c'd"
    # A workload that ends at once would have its sampler ended before that has come to anything.
    sampled = f'if [ "$1" = train.py ]; then until grep -q "kit|sample" {tmp_path}/noted; do sleep 0.05; done; fi'
    argv = job(["python", "train.py", "--name", "x'; touch pwned; '", "$(touch pwned)"], sampled, share=share)
    ended = subprocess.run(argv, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=20)
    assert ended.returncode == 0, ended.stderr
    calls = (tmp_path / "noted").read_text().splitlines()
    assert "train.py|--name|x'; touch pwned; '|$(touch pwned)" in calls
    assert f"-m|kit|sample|--output|{share}/models/mnist/job-7/gpu.jsonl|--interval|1" in calls
    assert calls[-1] == "-m|kit|end|--exit-code|0"
    assert not (tmp_path / "pwned").exists()


def test_every_way_out_writes_the_end_marker_with_the_right_code(job, tmp_path):
    argv = job(["python", "train.py"], '[ "$1" = train.py ] && exit 3\nexit 0')
    assert subprocess.run(argv, env=ENVIRONMENT, capture_output=True, check=False, timeout=20).returncode == 3
    assert (tmp_path / "noted").read_text().splitlines()[-1] == "-m|kit|end|--exit-code|3"


def test_what_an_older_job_of_the_same_id_left_is_moved_aside(job, tmp_path):
    argv = job(["python", "train.py"])
    old = tmp_path / "share/models/mnist/job-7"
    old.mkdir(parents=True)
    (old / "metrics.json").write_text("{}")
    assert subprocess.run(argv, env=ENVIRONMENT, capture_output=True, check=False, timeout=20).returncode == 0
    assert not (old / "metrics.json").exists()
    (kept,) = old.parent.glob("job-7.replaced-*")
    assert (kept / "metrics.json").read_text() == "{}"


def test_a_cancelled_job_stops_its_child_and_still_writes_the_end_marker(job, tmp_path):
    began = tmp_path / "began"
    argv = job(["python", "train.py"], f'if [ "$1" = train.py ]; then echo $$ > "{began}"; exec sleep 300; fi')
    running = subprocess.Popen(argv, env=ENVIRONMENT)
    wait_for(lambda: began.exists() and began.read_text().strip())
    running.terminate()
    assert running.wait(timeout=20) == 143
    assert (tmp_path / "noted").read_text().splitlines()[-1] == "-m|kit|end|--exit-code|143"
    child = int(began.read_text())
    wait_for(lambda: not Path(f"/proc/{child}").exists())


IMAGE = {
    "key": "pytorch.sif",
    "name": "pytorch",
    "kind": "apptainer",
    "locked": True,
    "path": "/images/a b.sif",
    "python": "/opt/hpc_validation/runtime/bin/python",
}


@pytest.fixture
def apptainer(tmp_path, monkeypatch) -> Path:
    """The file in which a stand-in of Apptainer notes its arguments, and the variables that go into the container."""
    program = tmp_path / "bin" / "apptainer"
    program.parent.mkdir()
    called = tmp_path / "called"
    program.write_text(f'#!/usr/bin/env bash\n(IFS="|"; echo "$*"; env | grep ^APPTAINERENV_) >> "{called}"\n')
    program.chmod(0o755)
    monkeypatch.setitem(ENVIRONMENT, "PATH", f"{program.parent}:{ENVIRONMENT['PATH']}")
    monkeypatch.setitem(ENVIRONMENT, "HF_TOKEN_OF_THE_USER", "x")
    monkeypatch.setitem(ENVIRONMENT, "HOME_DIR", "x")
    return called


def test_in_an_image_only_the_launcher_is_another(job, apptainer, tmp_path):
    settings = {
        "__stage_runtimes": {"pytorch": IMAGE},
        "hpc_validation_apptainer": {"binds": ["/scratch", "/a b:/c"]},
    }
    argv = job(["python", "train.py", "$(touch pwned)"], share=tmp_path / "sh are", **settings)
    ended = subprocess.run(argv, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=20)
    assert ended.returncode == 0, ended.stderr
    share = f"{tmp_path}/sh are"
    launcher = f"exec|--nv|--cleanenv|--no-home|--bind|{share}|--bind|/scratch|--bind|/a b:/c|/images/a b.sif"
    lines = apptainer.read_text().splitlines()
    assert f"{launcher}|{IMAGE['python']}|train.py|$(touch pwned)" in lines
    inside = {
        line.partition("=")[0].removeprefix("APPTAINERENV_") for line in lines if line.startswith("APPTAINERENV_")
    }
    assert {"OUTPUT_DIR", "DATA_DIR", "SLURM_JOB_ID", "HPC_VALIDATION_MARKERS", "PYTHONPATH"} <= inside
    assert not inside & {"PATH", "HOME", "HOME_DIR", "LD_LIBRARY_PATH"}
    noted = (tmp_path / "noted").read_text()
    assert f"--image|/images/a b.sif|--image-name|pytorch|--images|{share}/containers|--|apptainer|{launcher}" in noted


@pytest.mark.parametrize(
    ("settings", "there", "missing"),
    [
        ({"hpc_validation_accelerator": "cpu"}, "exec --cleanenv --no-home --bind", "--nv"),
        ({"hpc_validation_apptainer": {"home": True}}, "exec --nv --cleanenv --bind", "--no-home"),
    ],
)
def test_home_and_driver_are_given_where_they_are_wanted(render, settings, there, missing):
    script = render(__stage_runtimes={"pytorch": IMAGE}, **settings)
    (launcher,) = [line for line in script.splitlines() if line.startswith("launcher=")]
    assert there in launcher
    assert missing not in launcher


def wait_for(condition: t.Callable[[], t.Any], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not come about"
        time.sleep(0.05)
