# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the validation record: a run of the single-GPU baseline as a document for people.

It has the sections of the record that used to be written by hand. Pure. No content of the evidence raises an
exception: jobs wrote it, so a missing value or a wrong type is `not measured`, and text is escaped.
"""

from __future__ import annotations

import json
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import expand_nodes
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.markdown import (
    NOT_MEASURED,
    code,
    figure,
    text,
)

Json = dict[str, t.Any]

WORKLOADS = ("sft_single_gpu",)  # by name; the others are measured differently
FILE = "record.md"
MAX_STEPS = 200  # rows of the table

# Each goal of the document, with the criteria that decide it: their IDs, or the beginnings of these.
GOALS = (
    ("Slurm allocates one GPU and launches the training job", ("S1-1", "S1-23")),
    ("The Python environment is available on the compute node", ("S1-2", "S1-10")),
    ("PyTorch detects and uses CUDA", ("S1-3",)),
    ("The fine-tuning of a language model runs end to end", ("S1-4", "S1-24", "S1-26")),
    ("The outputs are written to a shared file system", ("S1-29",)),
    ("GPU memory, computing and system are stable", ("S1-6", "S1-27", "S1-28", "GPU")),
)
STEP_COLUMNS = (("Loss", "loss"), ("Grad norm", "grad_norm"), ("Learning rate", "learning_rate"), ("Epoch", "epoch"))
FIGURES = (
    "train_runtime_s",
    "train_loss",
    "train_samples_per_second",
    "train_steps_per_second",
    "approx_tokens",
    "approx_tokens_per_second",
    "tokens_total",
    "tokens_non_padding",
    "tokens_per_second",
    "tokens_per_second_median",
    "startup_seconds",
    "train_seconds",
    "save_seconds",
    "step_seconds_median",
    "step_seconds_p95",
    "gpu_memory_peak_bytes",
    "gpu_memory_total_bytes",
    "memory_growth",
    "mfu",
)
LIBRARIES = ("transformers", "accelerate", "datasets", "peft", "safetensors")
ARGUMENTS = ("run_name", "max_steps", "seq_len", "bsz", "grad_accum", "seed", "subset_size", "learning_rate", "lora")


def markdown(verdict: Json, workload: Json, evidence: t.Any) -> str:
    """Return the record of a workload of the verdict, from its `evidence` document (None if there is none)."""
    metrics, provenance = _at(evidence, "metrics"), _at(evidence, "provenance")
    sections = [
        _head(verdict, workload),
        _objective(workload),
        _repository(metrics),
        _model(metrics),
        _environment(metrics, provenance),
        _configuration(workload, provenance),
        _execution(workload, metrics),
        _metrics(metrics),
        _hardware(metrics, provenance),
        _results(workload),
        _conclusion(verdict, workload),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _at(document: t.Any, *keys: str) -> t.Any:
    """Return the value at the path `keys`, or None."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _list(value: t.Any) -> list[t.Any]:
    return value if isinstance(value, list) else []


def _head(verdict: Json, workload: Json) -> list[str]:
    lines = [
        "# Single-Node, Single-GPU Training Validation",
        "",
        f"Record of run {code(verdict.get('run'))}: {text(workload.get('title'))} ({code(workload.get('id'))}).",
        "",
        f"**Verdict: {text(workload.get('verdict'))}.** {text(workload.get('why'))}",
    ]
    if verdict.get("accelerator") != "cuda":
        lines += ["", f"On {text(verdict.get('accelerator'))} hardware: this says nothing about real GPUs."]
    return lines


def _objective(workload: Json) -> list[str]:
    lines = ["## Objective", "", "The goals, with the result of the criteria that decide each:", ""]
    return lines + [f"- {goal}: **{_decided(workload, ids)}**" for goal, ids in GOALS]


def _decided(workload: Json, ids: tuple[str, ...]) -> str:
    """Return the worst verdict of the gates that `ids` name, by their full ID or the part before the dot."""
    verdicts = {
        _at(criterion, "verdict")
        for criterion in _list(workload.get("criteria"))
        if str(_at(criterion, "id")).partition(".")[0] in ids and _at(criterion, "severity") == "gate"
    }
    for verdict in ("fail", "undetermined", "waived", "pass", "not_applicable"):
        if verdict in verdicts:
            return verdict.replace("_", " ")
    return NOT_MEASURED


def _repository(metrics: t.Any) -> list[str]:
    script = _at(metrics, "paths", "script")
    folder, slash, _name = script.rpartition("/") if isinstance(script, str) else ("", "", "")
    submission = f"{folder}/{folder.rpartition('/')[2]}.sbatch" if slash else None
    return [
        "## Repository Context",
        "",
        f"- **Root, the share**: {code(_at(metrics, 'paths', 'share'))}",
        f"- **Training script**: {code(script)}",
        f"- **Slurm submission script**: {code(submission)}",
        f"- **Python environment**: {code(_at(metrics, 'paths', 'environment'))}",
        f"- **Training outputs**: {code(_at(metrics, 'paths', 'results'))}",
        f"- **Model and evidence of the job**: {code(_at(metrics, 'paths', 'output'))}",
    ]


def _model(metrics: t.Any) -> list[str]:
    lora = _at(metrics, "arguments", "lora")
    kind = ("LoRA adapter" if lora else "all parameters") if isinstance(lora, bool) else NOT_MEASURED
    return [
        "## Model and Dataset",
        "",
        f"- **Model**: {code(_at(metrics, 'model'))}: {text(_at(metrics, 'model_source', 'description'))}",
        f"- **Revision**: {code(_at(metrics, 'model_source', 'revision'))}",
        f"- **Architecture**: {code(_at(metrics, 'architecture'))}",
        f"- **Parameters**: {figure(_at(metrics, 'parameters'), ',')}",
        f"- **Dataset**: {code(_at(metrics, 'dataset'))}: {text(_at(metrics, 'data', 'description'))}",
        f"- **Rows drawn from**: {figure(_at(metrics, 'data', 'rows_used'), ',')}",
        f"- **Training type**: supervised fine-tuning (SFT), {kind}",
        f"- **Sequence length**: {figure(_at(metrics, 'sequence_length'), ',', ' tokens')}",
    ]


def _environment(metrics: t.Any, provenance: t.Any) -> list[str]:
    versions = [f"- {name}: {code(_at(metrics, 'libraries', name))}" for name in LIBRARIES]
    paths = (("REPO_ROOT", "share"), ("RUNS_ROOT", "runs_root"), ("HF_HOME", "hf_home"))
    return [
        "## Environment Setup",
        "",
        "### Python Environment",
        "",
        f"- Environment: {code(_at(provenance, 'runtime', 'key'))}, imported on {code(_at(metrics, 'node'))}",
        f"- Python: {code(_at(metrics, 'libraries', 'python'))}",
        f"- PyTorch: {code(_at(metrics, 'torch'))}",
        *versions,
        "",
        "### Environment Variables",
        "",
        *(f"- {code(name)}: {code(_at(metrics, 'paths', key))}" for name, key in paths),
    ]


def _configuration(workload: Json, provenance: t.Any) -> list[str]:
    job, slurm = workload.get("job"), _at(provenance, "slurm")
    nodes = _at(job, "nodes")
    count = len(expand_nodes(nodes)) if isinstance(nodes, str) else 0
    return [
        "## Slurm Job Configuration",
        "",
        f"- **Job name**: {code(_at(job, 'name'))}",
        f"- **Nodes**: {count or NOT_MEASURED}",
        f"- **GPUs**: {figure(_at(job, 'gpus'))}",
        f"- **CPUs per task**: {text(_at(slurm, 'SLURM_CPUS_PER_TASK'))}",
        f"- **Memory**: {_with_unit(_at(slurm, 'SLURM_MEM_PER_NODE'), 'MB')}",
        f"- **Time limit**: {figure(_at(job, 'time_limit_seconds'), ',', ' s')}",
        f"- **Partition**: {code(_at(job, 'partition'))}",
        f"- **SHA-256 of the job script**: {code(_at(job, 'script_sha256'))}",
        f"- **Logs**: {code(_at(job, 'stdout'))}, {code(_at(job, 'stderr'))}",
    ]


def _with_unit(value: t.Any, unit: str) -> str:
    return NOT_MEASURED if value in (None, "") else f"{text(value)} {unit}"


def _execution(workload: Json, metrics: t.Any) -> list[str]:
    job = workload.get("job")
    given = [f"- {code(f'--{name}')}: {text(_at(metrics, 'arguments', name))}" for name in ARGUMENTS]
    return [
        "## Training Execution",
        "",
        f"Job {code(_at(job, 'job_id'))} ran on {code(_at(job, 'nodes'))} with {figure(_at(job, 'gpus'))} GPU "
        f"({text(_at(metrics, 'gpu'))}); it waited {figure(_at(job, 'queued_seconds'), '.1f', ' s')} and ran "
        f"{figure(_at(job, 'run_seconds'), '.1f', ' s')}. Slurm reports {code(_at(job, 'state'))}, exit code "
        f"{figure(_at(job, 'exit_code'))}.",
        "",
        *given,
    ]


def _metrics(metrics: t.Any) -> list[str]:
    columns = [_list(_at(metrics, key)) for _title, key in STEP_COLUMNS]
    count = max(map(len, columns))
    lines = ["## Training Metrics", "", "### Step-Level Metrics", ""]
    if count:
        lines.append("| Step | " + " | ".join(title for title, _key in STEP_COLUMNS) + " |")
        lines.append("| ---: |" + " ---: |" * len(STEP_COLUMNS))
        for step in range(min(count, MAX_STEPS)):
            cells = [figure(column[step] if step < len(column) else None) for column in columns]
            lines.append(f"| {step + 1} | " + " | ".join(cells) + " |")
        if count > MAX_STEPS:
            lines += ["", f"… and {count - MAX_STEPS} more steps."]
    else:
        lines.append(NOT_MEASURED)
    lines += [
        "",
        "### Aggregate Metrics",
        "",
        "`train_runtime_s` and the rates based on it include saving the model, and `approx_tokens` leaves out gradient",
        "accumulation, as in the document that this record follows; the other values count everything.",
        "",
        "```json",
        json.dumps({name: _plain(_at(metrics, name)) for name in FIGURES}, indent=2),
        "```",
    ]
    return lines


def _plain(value: t.Any) -> t.Any:
    """Return a number or a fixed text: nothing in the JSON block may end the block."""
    if scalars.is_number(value):
        return value
    return "not finite" if scalars.is_non_finite(value) else NOT_MEASURED


def _hardware(metrics: t.Any, provenance: t.Any) -> list[str]:
    return [
        "## Hardware and Software",
        "",
        f"- **GPU**: {text(_at(metrics, 'gpu'))}",
        f"- **Trained on**: {code(_at(metrics, 'device'))}",
        f"- **Driver**: {code(_at(provenance, 'driver_version'))}",
        f"- **CUDA of PyTorch**: {code(_at(metrics, 'cuda_version'))}",
        f"- **PyTorch**: {code(_at(metrics, 'torch'))}",
        f"- **Python**: {code(_at(metrics, 'libraries', 'python'))}",
        f"- **System**: {text(_at(provenance, 'os'))}, kernel {code(_at(provenance, 'kernel'))}",
    ]


def _results(workload: Json) -> list[str]:
    lines = ["## Results and Interpretation", ""]
    judged = [_criterion(criterion) for criterion in _list(workload.get("criteria"))]
    return lines + (judged or [f"Nothing was judged: {text(workload.get('why'))}"])


def _criterion(criterion: t.Any) -> str:
    verdict, unit = _at(criterion, "verdict"), _at(criterion, "unit")
    line = f"- **{text(str(verdict).replace('_', ' '))}** {code(_at(criterion, 'id'))} {text(_at(criterion, 'title'))}"
    if verdict != "not_applicable":
        value = text(_at(criterion, "value")) + (f" {text(unit)}" if unit else "")
        line += f": {value} (bound: {text(_at(criterion, 'bound'))})"
    return line if verdict == "pass" else f"{line}. {text(_at(criterion, 'why'))}"


def _conclusion(verdict: Json, workload: Json) -> list[str]:
    passed = workload.get("verdict") == "pass"
    real = verdict.get("accelerator") == "cuda"
    if passed and real:
        said = "Single-node, single-GPU training has been **validated** on the GPU and the node named above."
    elif passed:
        said = "All steps were run **without a real GPU**; this does not validate single-GPU training."
    else:
        said = f"Single-node, single-GPU training has **not** been validated: {text(workload.get('why'))}"
    lines = ["## Conclusion", "", said]
    if passed and real:
        lines += [
            "",
            "Next: training on several GPUs of one node (DDP), on several nodes, and with sharded parameters (FSDP).",
        ]
    return lines
