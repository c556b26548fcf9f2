"""The local cluster itself: what the other integration tests stand on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests/cluster/cluster"
NAME = os.environ.get("HPC_VALIDATION_CLUSTER", "local")
RELEASES = ("22.05", "24.11", "26.05")
NODES = ("compute01", "compute02")

sys.path.insert(0, str(PROGRAM.parent))
from hpcval_cluster.state import Cluster, ClusterError, cache_root, check_name, gpu_uuid  # noqa: E402

OPEN_ALL = """
import errno, os
for index in range(2):
    try:
        os.close(os.open(f"/dev/nvidia{index}", os.O_RDWR))
        print(index, "open")
    except OSError as error:
        print(index, errno.errorcode[error.errno])
"""
SEEN = """
import json, os, sys
sys.path.insert(0, "/mnt/beegfs/pynvml-under-test")
import pynvml as nvml
nvml.nvmlInit()
handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
use = lambda: [nvml.nvmlDeviceGetUtilizationRates(handle).gpu for handle in handles]
seen = {
    "driver": nvml.nvmlSystemGetDriverVersion(),
    "cuda": nvml.nvmlSystemGetCudaDriverVersion(),
    "names": [nvml.nvmlDeviceGetName(handle) for handle in handles],
    "uuids": [nvml.nvmlDeviceGetUUID(handle) for handle in handles],
    "buses": [nvml.nvmlDeviceGetPciInfo(handle).busId for handle in handles],
    "memory": [nvml.nvmlDeviceGetMemoryInfo(handle).total for handle in handles],
    "reserved": [nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2).reserved for handle in handles],
    "temperature": [nvml.nvmlDeviceGetTemperatureV(handle, 0) for handle in handles],
    "temperature_old": [nvml.nvmlDeviceGetTemperature(handle, 0) for handle in handles],
    "power": [nvml.nvmlDeviceGetPowerUsage(handle) for handle in handles],
    "limit": [nvml.nvmlDeviceGetEnforcedPowerLimit(handle) for handle in handles],
    "sm_clock": [nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) for handle in handles],
    "reasons": [nvml.nvmlDeviceGetCurrentClocksEventReasons(handle) for handle in handles],
    "ecc": [nvml.nvmlDeviceGetTotalEccErrors(handle, 1, 0) for handle in handles],
    "idle": use(),
}
found = [nvml.nvmlDeviceGetHandleByUUID(uuid) for uuid in seen["uuids"]]
seen["by_uuid"] = [nvml.nvmlDeviceGetIndex(handle) for handle in found]
found = [nvml.nvmlDeviceGetHandleByPciBusId(bus) for bus in seen["buses"]]
seen["by_bus"] = [nvml.nvmlDeviceGetIndex(handle) for handle in found]
held = [os.open(f"/dev/nvidia{nvml.nvmlDeviceGetMinorNumber(handle)}", os.O_RDWR) for handle in handles]
seen["busy"] = use()
holders = [[p.pid for p in nvml.nvmlDeviceGetComputeRunningProcesses(handle)] for handle in handles]
seen["holders"] = [found == [os.getpid()] for found in holders]
for descriptor in held:
    os.close(descriptor)
seen["released"] = use()
for name, call in {"mig": nvml.nvmlDeviceGetMigMode, "unknown": nvml.nvmlDeviceGetPdi}.items():
    try:
        call(handles[0])
    except nvml.NVMLError as error:
        seen[name] = error.value
print(json.dumps(seen))
"""


def manage(*words: str, check: bool = True, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run tests/cluster/cluster."""
    command = [str(PROGRAM), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=timeout, stdin=subprocess.DEVNULL
    )
    assert not check or done.returncode == 0, f"{words} ended {done.returncode}: {done.stdout}{done.stderr}"
    return done


def ssh(*words: str, host: str = "login", name: str = NAME) -> subprocess.CompletedProcess[str]:
    """Run a command line on a node as a user would."""
    config = cache_root() / "clusters" / name / "ssh_config"
    command = ["ssh", "-F", str(config), "-o", "BatchMode=yes", host, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL)


def job(*words: str, name: str = NAME) -> subprocess.CompletedProcess[str]:
    """Run a small job with one GPU; later options win."""
    command = ["srun", "--mem=200", "--time=2", "--gres=gpu:1", *words]
    return manage("exec", "--name", name, "--user", "admin", "login", "--", *command, check=False)


def recorded(name: str = NAME) -> Cluster:
    """What is recorded of a cluster."""
    cluster = Cluster.load(name)
    assert cluster is not None
    return cluster


def wheel(folder: Path) -> bytes:
    """Return nvidia-ml-py's source, downloaded into a folder."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    subprocess.run([*command, "nvidia-ml-py==13.615.71"], check=True, capture_output=True, timeout=120)
    (found,) = folder.glob("*.whl")
    return zipfile.ZipFile(found).read("pynvml.py")


@pytest.fixture(scope="module", autouse=True)
def _up() -> None:
    manage("up", "--name", NAME)


@pytest.fixture(scope="module")
def pynvml(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[str]:
    """nvidia-ml-py, unmodified, on the share; removed afterwards."""
    source = wheel(tmp_path_factory.mktemp("wheel"))
    target = recorded().share / "pynvml-under-test"
    target.mkdir(exist_ok=True)
    (target / "pynvml.py").write_bytes(source)
    (target / "seen.py").write_text(SEEN)
    yield "/mnt/beegfs/pynvml-under-test/seen.py"
    for file in target.glob("*.py"):
        file.unlink()
    target.rmdir()


def seen_by(script: str, *words: str) -> dict[str, t.Any]:
    """What NVML shows a job."""
    done = job(*words, "python3", "-B", script)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def gives_back(node: str, index: int) -> t.Callable[[], None]:
    """Remember a GPU's state; the result restores it."""
    before = manage("gpu", "--name", NAME, node, str(index)).stdout.splitlines()
    return lambda: manage("gpu", "--name", NAME, node, str(index), "healthy", *before) and None


def test_status_tells_what_is_up():
    status = manage("status", "--name", NAME).stdout
    for word in (NAME, recorded().release, "compute01", "compute02", "/mnt/beegfs", "ssh -F"):
        assert word in status


def test_status_of_a_cluster_that_is_not_there_fails_and_says_what_to_type():
    done = manage("status", "--name", "no-such", check=False)
    assert done.returncode == 1
    assert "cluster up --name no-such" in done.stderr


def test_up_again_is_quick_and_leaves_the_nodes_alone():
    before = ssh("cat", "/proc/sys/kernel/random/boot_id", "/proc/1/stat").stdout
    manage("up", "--name", NAME, timeout=15)
    after = ssh("cat", "/proc/sys/kernel/random/boot_id", "/proc/1/stat").stdout
    started = 21  # the process's start, counted from the end of its name
    assert before.rsplit(")", 1)[1].split()[started - 2] == after.rsplit(")", 1)[1].split()[started - 2]


def test_up_refuses_to_turn_a_cluster_into_another_release():
    other = next(release for release in RELEASES if release != recorded().release)
    done = manage("up", "--name", NAME, "--slurm", other, check=False)
    assert done.returncode == 1
    assert f"cluster down --name {NAME}" in done.stderr


@pytest.mark.parametrize("host", ["login", "compute01", "compute02"])
def test_admin_logs_in_by_key_and_is_nobody_special(host):
    done = ssh("id -un; hostname; id -u; command -v sudo pip", host=host)
    assert done.stdout.split() == ["admin", host, "1000"]


def test_the_share_is_admins_and_the_same_everywhere():
    marker = f"cluster-test-{os.getpid()}"
    assert ssh("touch", f"/mnt/beegfs/{marker}").returncode == 0
    for node in NODES:
        assert ssh("rm", f"/mnt/beegfs/{marker}", "&&", "touch", f"/mnt/beegfs/{marker}", host=node).returncode == 0
    (recorded().share / marker).unlink()


def test_nodes_advertise_what_job_scripts_ask_for():
    done = ssh("sinfo", "--noheader", "--format='%D %c %m %G %P'")
    assert done.stdout.split() == ["2", "16", "131072", "gpu:2", "gpu*"]


def test_a_job_opens_its_own_gpu_only():
    done = job("python3", "-c", OPEN_ALL)
    results = sorted(line.split()[1] for line in done.stdout.splitlines())
    assert results == (["open", "open"] if recorded().confinement == "none" else ["EPERM", "open"])


def test_two_jobs_on_one_node_get_different_gpus():
    if recorded().confinement == "none":
        script = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True); input()"
    else:
        script = f"{OPEN_ALL}\nprint('done', flush=True)\ninput()"
    command = ["srun", "--mem=200", "--time=2", "--gres=gpu:1", "--nodelist=compute01", "python3", "-c", script]
    exec_command = [str(PROGRAM), "exec", "--name", NAME, "--user", "admin", "login", "--", *command]
    lines = 1 if recorded().confinement == "none" else 3
    both = []
    jobs = [
        subprocess.Popen(exec_command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _each in range(2)
    ]
    for running in jobs:
        assert running.stdout is not None
        both.append([running.stdout.readline().strip() for _each in range(lines)])
    for running in jobs:
        running.communicate("\n", timeout=60)
    assert all(both[0])
    assert both[0] != both[1]


def test_a_job_with_all_gpus_of_a_node_sees_them_all(pynvml):
    both = seen_by(pynvml, "--gres=gpu:2", "--nodelist=compute01")["uuids"]
    assert both == [gpu_uuid(NAME, "compute01", 0), gpu_uuid(NAME, "compute01", 1)]


def test_too_many_gpus_are_refused_at_submission():
    done = ssh("sbatch", "--gres=gpu:3", "--wrap=true")
    assert done.returncode != 0
    assert "Requested node configuration is not available" in done.stderr


def test_memory_is_confined():
    done = job("--mem=60", "python3", "-c", "len(bytearray(400 << 20))")
    if recorded().confinement == "none":
        assert done.returncode == 0
    else:
        assert "oom" in done.stderr.lower()
        assert done.returncode != 0


def test_accounting_answers_as_recorded():
    done = ssh("sacct", "--noheader", "--allusers", "--format=jobid")
    if recorded().accounting:
        assert done.returncode == 0
        assert done.stdout.split()
    else:
        assert "accounting storage is disabled" in done.stderr


def test_nvidia_ml_py_works_unmodified(pynvml):
    seen = seen_by(pynvml)
    confined = recorded().confinement != "none"
    count = 1 if confined else 2
    assert seen["names"] == ["Simulated GPU 80GB"] * count
    assert set(seen["uuids"]) <= {gpu_uuid(NAME, node, index) for node in NODES for index in range(2)}
    assert seen["by_uuid"] == seen["by_bus"] == list(range(count))
    assert seen["memory"] == [80 << 30] * count
    assert seen["reserved"] == [512 << 20] * count
    assert seen["temperature"] == seen["temperature_old"] == [32] * count
    assert (seen["power"], seen["limit"], seen["sm_clock"]) == ([70000] * count, [700000] * count, [345] * count)
    assert (seen["reasons"], seen["ecc"]) == ([1] * count, [0] * count)
    assert (seen["driver"], seen["cuda"]) == ("570.133.20", 12080)
    assert seen["mig"] == 3  # NOT_SUPPORTED
    assert seen["unknown"] == 13  # FUNCTION_NOT_FOUND


def test_a_gpu_is_busy_exactly_while_it_is_held_open(pynvml):
    seen = seen_by(pynvml)
    assert set(seen["idle"]) == set(seen["released"]) == {0}
    assert set(seen["busy"]) == {90}
    assert all(seen["holders"])


def test_a_fault_shows_in_nvml_and_goes_away(pynvml):
    restore = gives_back("compute02", 0)
    try:
        changes = ("ecc_uncorrected_volatile=3", "utilization_gpu=5", "clocks_event_reasons=0x40")
        manage("gpu", "--name", NAME, "compute02", "0", *changes)
        seen = seen_by(pynvml, "--gres=gpu:2", "--nodelist=compute02")
        assert (seen["ecc"], seen["busy"], seen["reasons"]) == ([3, 0], [5, 90], [0x40, 1])
        manage("gpu", "--name", NAME, "compute02", "0", "fail=15")
        lost = job("--gres=gpu:2", "--nodelist=compute02", "python3", "-B", pynvml)
        assert "GPU is lost" in lost.stderr
    finally:
        restore()
    assert seen_by(pynvml, "--gres=gpu:2", "--nodelist=compute02")["ecc"] == [0, 0]


def test_the_login_node_has_no_driver(pynvml):
    done = ssh("python3", "-B", pynvml)
    assert "Driver Not Loaded" in done.stderr


@pytest.mark.parametrize("name", ["", "Local", "1st", "a b", "a;b", "../a", "a" * 17])
def test_names_that_something_could_not_bear_are_refused(name):
    with pytest.raises(ClusterError):
        check_name(name)


def test_an_exec_without_a_command_is_refused():
    done = manage("exec", "--name", NAME, "login", check=False)
    assert done.returncode == 1
    assert "cluster exec HOST -- COMMAND" in done.stderr


def beegfs(*words: str, host: str = "login") -> None:
    """Choose what the stand-ins for BeeGFS answer on a host."""
    manage("beegfs", "--name", NAME, host, *words)


def test_beegfs_answers_as_chosen_on_one_host_only():
    table = ("--listtargets", "--nodetype=storage", "--state", "--longnodes", "--pools", "--spaceinfo")
    targets = ("beegfs-ctl", *table)
    try:
        beegfs("offline")
        done = ssh(*targets)
        assert done.returncode == 3
        assert "201          Offline" in done.stdout
        assert "ERROR from beegfs-storage stor2" in done.stderr
        assert ssh(*targets, host="compute01").returncode == 0
        beegfs("v8", "partial")
        assert ssh("beegfs", "target", "list").returncode == 2
        assert "not found" in ssh(*targets).stderr
        beegfs("not-installed", "client-absent")
        assert ssh("command -v beegfs beegfs-ctl").returncode != 0
        assert ssh("ls", "/proc/fs").stdout == ""
    finally:
        beegfs("healthy")
    assert ssh(*targets).returncode == 0


def test_proc_shows_the_chosen_client():
    nodes = ("cat", "/proc/fs/beegfs/*/storage_nodes")
    assert ssh(*nodes, host="compute02").stdout.count("RDMA: 8") == 2
    try:
        beegfs("client-tcp-fallback", host="compute02")
        assert "fallback route" in ssh(*nodes, host="compute02").stdout
        assert "fallback route" not in ssh(*nodes, host="compute01").stdout
    finally:
        beegfs("healthy", host="compute02")


@pytest.mark.parametrize("state", ["unmounted", "other", "read_only"])
def test_the_share_can_be_taken_from_one_node(state):
    marker = f"/mnt/beegfs/cluster-test-{os.getpid()}"
    assert ssh("touch", marker).returncode == 0
    try:
        manage("share", "--name", NAME, "compute01", state)
        assert ssh("ls", marker, host="compute01").returncode == (0 if state == "read_only" else 2)
        assert ssh("touch", f"{marker}-2", host="compute01").returncode == (0 if state == "other" else 1)
        assert ssh("ls", marker, host="compute02").returncode == 0
    finally:
        manage("share", "--name", NAME, "compute01", "mounted")
        removed = ssh("rm", marker, host="compute01")
    assert removed.returncode == 0
    assert ssh("ls", f"{marker}-2", host="compute01").returncode == 2
    assert ssh("ls", "/mnt/beegfs/venvs", host="compute01").returncode == 0
    manage("share", "--name", NAME, "compute01", "mounted")


@pytest.mark.slow
def test_slurm_can_lose_its_gpus_and_its_confinement():
    def advertised() -> str:
        return ssh("sinfo", "--noheader", "--format=%G").stdout.strip()

    try:
        manage("slurm", "--name", NAME, "gres=1")
        assert advertised() == "gpu:1"
        manage("slurm", "--name", NAME, "gres=0", "confinement=off")
        assert advertised() == "(null)"
        manage("slurm", "--name", NAME, "confinement=off")
        assert sorted(line.split()[1] for line in job("python3", "-c", OPEN_ALL).stdout.splitlines()) == ["open"] * 2
    finally:
        manage("slurm", "--name", NAME, "healthy")
    assert advertised() == "gpu:2"
    test_a_job_opens_its_own_gpu_only()


@pytest.mark.parametrize("words", [["slurm", "gres=3"], ["slurm", "off"], ["beegfs", "login", "ofline"]])
def test_faults_that_are_not_known_are_refused(words):
    done = manage(words[0], "--name", NAME, *words[1:], check=False)
    assert done.returncode == 1
    assert "expected" in done.stderr


def traces(name: str) -> str:
    """Everything that a cluster of this name could have left on the machine."""
    listings = (
        ["podman", "ps", "--all", "--format={{.Names}}"],
        ["podman", "network", "ls", "--format={{.Name}}"],
        ["ps", "-eo", "args"],
        ["cat", "/proc/mounts"],
        ["find", "/sys/fs/cgroup", "-maxdepth", "2", "-type", "d"],
        ["find", str(cache_root() / "clusters"), "-maxdepth", "1"],
    )
    outputs = [subprocess.run(listing, capture_output=True, text=True, check=False).stdout for listing in listings]
    words = (f"hpcval-{name}", f"/clusters/{name}")
    return "\n".join(line for text in outputs for line in text.splitlines() if any(word in line for word in words))


@pytest.mark.slow
def test_another_cluster_comes_beside_with_a_share_that_can_be_full_and_goes_without_a_trace():
    name = "beside"
    try:
        manage("up", "--name", name, "--share-size", "16M")
        assert ssh("srun", "--mem=100", "hostname", name=name).stdout.split() == ["compute01"]
        assert job("hostname").stdout.split() == ["compute01"]
        full = ssh("dd", "if=/dev/zero", "of=/mnt/beegfs/full", "bs=1M", name=name)
        assert "No space left on device" in full.stderr
        manage("exec", "--name", name, "login", "--", "node-service.sh", "stop", "slurmctld")
        assert manage("status", "--name", name, check=False).returncode == 1
        subprocess.run(["podman", "kill", f"hpcval-{name}-compute01"], check=True, capture_output=True)
        manage("up", "--name", name)
        assert ssh("ls", "/mnt/beegfs/full", name=name).returncode == 0
    finally:
        removed = manage("down", "--name", name).stdout
    assert f"container hpcval-{name}-login" in removed
    assert traces(name) == ""
    assert manage("status", "--name", NAME).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("accounting", ["--accounting", "--no-accounting"])
@pytest.mark.parametrize("release", RELEASES)
def test_every_release_runs_a_confined_job(release, accounting):
    name = f"{NAME}-release"  # tests run side by side, each on a cluster of its own
    manage("down", "--name", name)
    try:
        manage("up", "--name", name, "--slurm", release, accounting)
        assert ssh("sinfo", "--version", name=name).stdout.split()[1].startswith(f"{release}.")
        done = job("python3", "-c", OPEN_ALL, name=name)
        assert sorted(line.split()[1] for line in done.stdout.splitlines()) == (
            ["open", "open"] if recorded(name).confinement == "none" else ["EPERM", "open"]
        )
        assert ssh("sacct", name=name).returncode == (0 if accounting == "--accounting" else 1)
        oversized = ssh("sbatch", "--gres=gpu:3", "--wrap=true", name=name)
        assert "Requested node configuration is not available" in oversized.stderr
    finally:
        manage("down", "--name", name)
    assert traces(name) == ""
