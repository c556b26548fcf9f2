"""Each pattern that ships matches what it must and nothing that it must not, through the search itself."""

from __future__ import annotations

import io
import re
import time

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import log
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import xid_table
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import log_patterns, remedies

FILES = sorted(log_patterns.FOLDER.glob("*.yml"))
CONTENTS = {path.stem: yaml.safe_load(path.read_text()) for path in FILES}
SETS = log_patterns.load()
SEARCH = log.compile_sets(SETS)
PATTERNS = [(name, entry) for name, content in CONTENTS.items() for entry in content["patterns"]]
EXCEPTIONS = [(name, entry) for name, content in CONTENTS.items() for entry in content["except"]]
HARMLESS = """\
epoch 1/5 step 100/469 loss 0.2345 accuracy 0.9312 12000 samples/s cuda:0 eta 12 s
node1:534:1763 [3] NCCL INFO comm 0x7f1928e6e060 rank 3 nranks 4 cudaDev 3 busId 3b000 - Init COMPLETE
node1:534:1763 [3] NCCL INFO NCCL_DEBUG set by environment to INFO
NVIDIA-SMI 570.86.15  Driver Version: 570.86.15  CUDA Version: 12.8
mean squared error: 0.0123, 0 errors, CUDA available: True
saved to /mnt/beegfs/models/mnist/job-12/mnist_cnn_single_gpu.pt
hpc-validation-end job=12 attempt=0 exit=0
"""
# What a healthy run may print, each beside a message that is none.
INNOCENT = [
    "no NCCL errors were seen",
    "0 uncorrectable",
    "ECC errors: 0 corrected, 0 uncorrectable",
    "volatile: 0 uncorrectable ECC errors",
    "CUDA errors are retried",
    "NCCL errors are retried",
    "I/O errors are retried",
    "network errors are retried up to 5 times",
    "out of memory errors are retried with half the batch",
    "no errors, no timeouts, nothing failed",
    "0 errors, 0 warnings",
    "validation error 0.0123 training error 0.0101",
    "mean squared error: 0.0123",
    "error rate: 0.01",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING=1 TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=480",
    "CUDA_LAUNCH_BLOCKING=0 CUBLAS_WORKSPACE_CONFIG=:4096:8",
    "CUDA error checking is enabled",
    "CUDA error=0",
    "step 12 CUDA memory 1.2 GiB",
    "Process group watchdog thread terminated normally",
    "node1:1:2 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.",
    "node1:1:2 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>",
    "node1:1:2 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
    "node1:1:2 [0] NCCL INFO Connected all rings, 0 errors",
    "[Gloo] Rank 0 is connected to 1 peer ranks. Expected number of connected peer ranks is : 1",
    "[W socket.cpp:764] [c10d] The client socket has failed to connect to [node1]:29500 (errno: 97 - x).",
    "[rank0]:[W ProcessGroupNCCL.cpp:1] Warning: WARNING: destroy_process_group() was not called before program exit",
    "[1] UCX  INFO  UCX_* env variables: UCX_TLS=all",
    "slurmstepd: error: common_file_write_content: unable to write 1 bytes to cgroup"
    " /sys/fs/cgroup/memory/slurm/uid_1000/memory.use_hierarchy: Device or resource busy",
    "slurmstepd: error: Unable to create TMPDIR [/run/user/1000]: Permission denied",
    "srun: job 12 has been allocated resources",
    "srun: Job 12 step creation temporarily disabled, retrying (Requested nodes are busy)",
    "UserWarning: 'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't",
    "exitcode: 0",
    "Killed bacteria are counted; segmentation quality 0.9; the vote was Aborted twice",
    "DataLoader workers: 4, timeout 120 s, prefetch 2",
    "The timeout is 1800 s",
    "Traceback is printed where an exception is raised",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.133.20",
    "NVRM: Xid (PCI:0000:20:00): 45, Ch 00000008",
    "CUDA error: 0",
    "CUDA error 0: no error",
    "NCCL error 0: no error",
    "no CUDA error: all kernels returned cudaSuccess",
    "no NCCL error: all ranks arrived",
    "cudaErrorNotReady is polled",
    "NCCL timeout in seconds: 1800",
    "CUFFT_PLAN_CACHE=16 CUFFT_CB_LD_REAL CUFFT_WORKAREA_MINIMAL CUFFT_XT_FORMAT_INPUT CUFFT_VERSION 11303",
    "CUDNN_STATUS_VERSION: 9",
    "no GPU is lost",
    "0 GPU is lost",
    "Aggregate uncorrectable ECC error detected: 0",
    "CUDA out of memory: 0 times",
    "Input/output errors: 0",
    "Read-only file system check: ok",
    "ulimit: Too many open files limit is 1024",
    "Autotuning failed with out of resource: shared memory, Required: 262144, Hardware limit: 232448.",
    "[W socket.cpp:464] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use)",
    "exits with return code = 0",
    "nfs: server nas1 OK",
]
# What a set finds alone, each as it is printed; no other set may take it for its own.
OF_ONE_SET = {
    "cuda_errors": [
        "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling "
        "NumCudaDevices() that might have already set an error? Error 304: OS call failed or operation not supported",
        "RuntimeError: GET was unable to find an engine to execute this computation",
        "RuntimeError: FIND was unable to find an engine to execute this computation",
        "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 1, Hardware limit: 0.",
        "Internal Triton PTX codegen error",
        "ptxas fatal   : Ptx assembly aborted due to errors",
        "CUDA kernel failed : invalid configuration argument",
        "Error: misaligned address",
        "Error: the launch timed out and was terminated",
        "Error: invalid device function",
        "Error: too many resources requested for launch",
        "CUDA error: 0 devices were found",
        "CUDA error: 0, then CUDA error: 700",
        "no CUDA error: x, but CUDA error: 700",
        "10 GPU is lost",
    ],
    "python_traceback": [
        'x.sh: line 1: 24391 Floating point exceptionbash -c "kill -FPE $$"',
        'x.sh: line 1: 24393 CPU time limit exceeded bash -c "kill -XCPU $$"',
        'x.sh: line 1: 24394 File size limit exceededbash -c "kill -XFSZ $$"',
        'x.sh: line 1: 24403 Bad system call         bash -c "kill -SYS $$"',
        "      5254 Floating point exception| python train.py",
        "Bad system call",
        "Bad system call (core dumped)",
        "[node1:01234] *** Process received signal ***",
        "[node1:01234] Signal: Segmentation fault (11)",
        "mpirun noticed that process rank 1 with PID 1234 on node node1 exited on signal 9 (Killed).",
        "free(): invalid pointer",
        "double free or corruption (!prev)",
        "malloc(): corrupted top size",
        "corrupted size vs. prev_size",
        "*** stack smashing detected ***: terminated",
        "[ERROR] [launch.py:259:main] ['python', 'train.py'] exits with return code = -9",
    ],
    "io_errors": [
        "RuntimeError: [enforce fail at inline_container.cc:603] . "
        "PytorchStreamWriter failed writing file data/12: file write failed",
        "[enforce fail at inline_container.cc:603] . PytorchStreamWriter failed writing file data/1: file write failed",
        "I/O error: Connection timed out (os error 110)",
        'Os { code: 110, kind: TimedOut, message: "Connection timed out" }',
        "BlockingIOError: [Errno 11] Resource temporarily unavailable: '/mnt/beegfs/x'",
        "OSError: [Errno 19] No such device: '/mnt/beegfs/x'",
        "OSError: [Errno 6] No such device or address: '/mnt/beegfs/x'",
        "OSError: [Errno 74] Bad message",
        "nfs: server nas1 not responding, still trying",
        "10 Input/output errors: 10",
    ],
    "nvidia_driver": [
        "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:2330) installed in this system has fallen off the bus "
        "and is not responding to commands.",
        "NVRM: fallen off the bus and is not responding to commands.",
        "pynvml.NVMLError_DriverNotLoaded: Driver Not Loaded",
        "pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.",
        "pynvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found",
        "No devices were found",
        "10 uncorrectable ECC error detected",
    ],
    "nccl_errors": [
        "RuntimeError: Rank 0 timed out in monitoredBarrier after 5000 ms.",
        "NCCL timeout in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, NCCL version 2.27.5",
    ],
    "slurm_errors": [
        "sbatch: fatal: Invalid node list specified",
        "salloc: fatal: Invalid node list specified",
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        "srun: forcing job termination",
    ],
}


def hits(line, name):
    return SEARCH.scan(io.BytesIO(line.encode() + b"\n"))["hits"][name]


def test_the_promised_sets_are_there():
    assert set(SETS) == {
        "cuda_errors",
        "cuda_warnings",
        "io_errors",
        "nccl_errors",
        "nvidia_driver",
        "oom",
        "python_traceback",
        "slurm_errors",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_set_says_what_it_is(path):
    content = CONTENTS[path.stem]
    assert set(content) == {"name", "title", "patterns", "except"}
    assert content["name"] == path.stem
    ids = [entry["id"] for entry in [*content["patterns"], *content["except"]]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(("name", "entry"), PATTERNS, ids=[f"{name}.{entry['id']}" for name, entry in PATTERNS])
def test_a_pattern_does_what_its_examples_say(name, entry):
    assert set(entry) in [{"id", "regex", "texts", "source", "matches", "rejects", do} for do in ("remedy", "symptom")]
    assert entry["source"].startswith("https://")
    assert "symptom" in entry or entry["remedy"].endswith(".")
    assert entry["matches"]
    assert entry["rejects"]
    (own,) = [pattern for pattern in SETS[name]["patterns"] if pattern["id"] == entry["id"]]
    alone = {name: {"patterns": [own], "except": SETS[name]["except"]}}
    for line in entry["matches"]:
        found = log.compile_sets(alone).scan(io.BytesIO(line.encode() + b"\n"))["hits"][name]
        assert [hit["pattern"] for hit in found] == [entry["id"]], line
        assert hits(line, name), line
    for line in entry["rejects"]:
        assert not log.compile_sets(alone).scan(io.BytesIO(line.encode()))["hits"][name], line


@pytest.mark.parametrize("entry", [entry for _name, entry in PATTERNS], ids=lambda entry: entry["id"])
def test_a_line_that_a_pattern_matches_holds_one_of_its_texts(entry):
    for line in entry["matches"]:
        assert any(text in line for text in entry["texts"]), line


@pytest.mark.parametrize(("name", "entry"), EXCEPTIONS, ids=[f"{name}.{entry['id']}" for name, entry in EXCEPTIONS])
def test_an_exception_covers_its_examples(name, entry):
    assert set(entry) == {"id", "regex", "source", "matches"}
    for line in entry["matches"]:
        assert not hits(line, name), line


def test_a_healthy_log_has_no_hit():
    found = SEARCH.scan(io.BytesIO(HARMLESS.encode()))
    assert set(found["counts"].values()) == {0}, found["hits"]


@pytest.mark.parametrize("line", INNOCENT)
def test_an_innocent_line_has_no_hit(line):
    found = SEARCH.scan(io.BytesIO(line.encode() + b"\n"))
    assert set(found["counts"].values()) == {0}, found["hits"]


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, lines in OF_ONE_SET.items() for line in lines])
def test_a_line_is_found_by_its_set_alone(name, line):
    found = SEARCH.scan(io.BytesIO(line.encode() + b"\n"))["counts"]
    assert {each for each, count in found.items() if count} == {name}


def spoilt(text):
    """The text without its end, and with a letter changed in its middle: nearly a match."""
    return [text[:-1], text[: len(text) // 2] + "~" + text[len(text) // 2 + 1 :]]


def nearly(entry):
    """What a pattern looks for, whole and spoilt, repeated: where a search that begins anew each time grows."""
    pieces = dict.fromkeys([*entry.get("texts", []), *entry["matches"]])
    for piece in pieces:
        yield piece
        yield from spoilt(piece)
    yield "".join(f"{text[:-1]} " for text in pieces)
    yield " "
    yield "a"


NAMED = [*PATTERNS, *EXCEPTIONS]
EACH = pytest.mark.parametrize(
    "entry", [entry for _name, entry in NAMED], ids=[f"{name}.{entry['id']}" for name, entry in NAMED]
)


@EACH
def test_no_pattern_is_worse_than_linear(entry):
    regex = re.compile(log_patterns._joined(entry["regex"]).encode())
    for piece in nearly(entry):
        assert growth(regex, piece.encode()) <= 3, piece


def growth(regex, piece):
    """How many times the CPU time of a line is that of half the line; 0 where both are too short to be measured."""
    half, whole = lines(piece)
    best = 99.0
    for _each in range(7):
        spent = [cpu(regex, text) for text in (half, whole)]
        if spent[1] < 2e-4:
            return 0
        best = min(best, spent[1] / spent[0])
        if best <= 3:
            break
    return best


def lines(piece, sizes=(1 << 15, 1 << 16)):
    """Lines of the piece, by default one and another that is twice as long."""
    return [piece * (size // len(piece) + 1) for size in sizes]


def cpu(regex, text):
    """All matches, as one that ends at the first would hide how the rest is searched."""
    start = time.process_time()
    for _match in regex.finditer(text):
        pass
    return time.process_time() - start


def repeats(parsed):
    """Each repetition of a regular expression, as its most."""
    for _code, argument in parsed:
        for part in argument if isinstance(argument, (tuple, list)) else ():
            inner = part if isinstance(part, list) else [part]
            for each in inner:
                if hasattr(each, "data"):
                    yield from repeats(each)
        if str(_code) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            yield argument[1]


def test_what_grows_faster_is_noticed():
    regex, piece = re.compile(rb"Error.*gloo"), b"Error "
    # The least time of each: one that was disturbed would make a quotient of any size. Of four times the length, as on
    # a busy machine twice may take less than three times as long: 16 is what is expected, and 4 what would be linear.
    quarter, whole = (min(cpu(regex, line) for _each in range(7)) for line in lines(piece, (1 << 14, 1 << 16)))
    assert whole / quarter > 8


@EACH
def test_each_repetition_of_a_pattern_has_a_bound(entry):
    parsed = re._parser.parse(log_patterns._joined(entry["regex"]))
    assert max(repeats(parsed), default=0) <= 400


def test_the_search_itself_does_not_grow_on_a_long_line():
    def spent(count):
        start = time.process_time()
        SEARCH.scan(io.BytesIO(b"Error gloo NCCL [Ee]rror: " * count))
        return time.process_time() - start

    assert min(spent(8000) / spent(4000) for _each in range(3)) <= 3


def test_a_set_of_ones_own_takes_no_shipped_ones_place():
    own = {"mine": {"patterns": [{"id": "x", "regex": "x", "texts": ["x"]}]}}
    assert set(log_patterns.with_own(SETS, own)) == {*SETS, "mine"}
    with pytest.raises(log_patterns.PatternSetError, match="oom"):
        log_patterns.with_own(SETS, {**own, "oom": {"patterns": []}})


def test_a_symptom_has_the_remedy_that_a_probe_gives_for_it():
    (lost,) = [pattern for pattern in SETS["cuda_errors"]["patterns"] if pattern["id"] == "gpu_lost"]
    assert lost["remedy"] == remedies.remedy("gpu.answers")


def test_a_symptom_without_a_remedy_is_named(tmp_path):
    (tmp_path / "mine.yml").write_text(
        "name: x\npatterns: [{id: a, texts: [a], regex: a, symptom: no.such}]\nexcept: []"
    )
    with pytest.raises(log_patterns.PatternSetError, match=r"no\.such"):
        log_patterns.load(tmp_path)


@pytest.mark.parametrize("action", xid_table.ACTIONS)
def test_the_xids_of_a_pattern_are_those_of_the_table(action):
    (pattern,) = [p for p in SETS["nvidia_driver"]["patterns"] if p["id"] == f"xid_{action}"]
    table = {code for code, xid in xid_table.load().items() if xid.severity != "info" and xid.action == action}
    lines = {code: f"NVRM: Xid (PCI:0000:20:00): {code}, pid=1" for code in range(1000)}
    assert {code for code, line in lines.items() if re.search(pattern["regex"], line)} == table


@pytest.mark.parametrize("content", ["", "- 1", "name: x", "name: x\npatterns: [{id: a}]\nexcept: []", "{"])
def test_a_set_that_cannot_be_read_is_named(tmp_path, content):
    (tmp_path / "mine.yml").write_text(content)
    with pytest.raises(log_patterns.PatternSetError, match=r"mine\.yml"):
        log_patterns.load(tmp_path)


def test_a_folder_without_sets_is_an_error(tmp_path):
    with pytest.raises(log_patterns.PatternSetError, match="has no pattern set"):
        log_patterns.load(tmp_path)


def test_a_message_of_ours_has_the_remedy_of_the_same_line_in_a_log():
    sets = log_patterns.load()
    told = next(p["remedy"] for p in sets["io_errors"]["patterns"] if p["id"] == "full")
    assert log_patterns.remedy_of("cp: error writing 'x': No space left on device") == told
    assert log_patterns.remedy_of("nothing that anybody knows") is None
