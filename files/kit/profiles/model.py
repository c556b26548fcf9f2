# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a model is trained on a class of machine: the keys of a profile, their kinds and their ranges.

This is the one source of what a profile may hold: the check, the JSON Schema for editors and the page of reference are
made from it. What several keys must be together stands in rules.py.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

HPC, EMBEDDED, LOCAL = "hpc", "embedded", "local"
SCRATCH, FINE_TUNE, TRANSFER = "scratch", "fine_tune", "transfer"
REGRESSION, CLASSIFICATION = "regression", "classification"

# What is not seen: commands to terminals, characters of no width, and those that turn the direction of a text.
UNSEEN = r"\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
NAME = rf"^[^ {UNSEEN}]([^{UNSEEN}]*[^ {UNSEEN}])?$"
ADDRESS = rf"^https?://[^\s@?#{UNSEEN}]+$"

_UNSEEN = re.compile(f"[{UNSEEN}]")


def seen(text: str) -> str:
    """Return a text. Raise PydanticCustomError if it has what is not seen, but for tabs and ends of lines."""
    if _UNSEEN.search(re.sub(r"[\t\n]", "", text)):
        raise PydanticCustomError("unseen", "a text without characters that are not seen")
    return text


def clear(path: str) -> str:
    """Return a path. Raise PydanticCustomError if it is not what it looks like, or the root of all files."""
    if _UNSEEN.search(path) or path != path.rstrip():
        raise PydanticCustomError("unseen", "a path without characters that are not seen, and no space at its end")
    parts = path.split("/")
    if ".." in parts or not any(part not in ("", ".") for part in parts):
        raise PydanticCustomError("elsewhere", "a path without .. in it, and not / itself")
    return path


Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=NAME)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"\S"), AfterValidator(seen)]
Folder = Annotated[
    str,
    StringConstraints(min_length=2, max_length=1000, pattern=r"^/[^\x00-\x1f\x7f-\x9f]+$"),
    AfterValidator(clear),
]
Positive = Annotated[int, Field(ge=1, le=10**9)]
Count = Annotated[int, Field(ge=0, le=10**9)]


def key(text: str, requirement: str = "", default: Any = ..., **bounds: Any) -> Any:
    """Return a key that means ``text`` and serves a requirement of the document, such as S4-20.

    Every number has bounds, which no NaN is within. Those that divide are not zero in 32 bits, as trainings compute.
    """
    more: dict[str, Any] | None = {"requirement": requirement} if requirement else None
    return Field(default, description=text, json_schema_extra=more, **bounds)


def different(names: list[str]) -> list[str]:
    """Return the names. Raise PydanticCustomError if one is there twice: of a sum it would be part twice."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PydanticCustomError("twice", "different names, found {name} twice", {"name": twice})
    return names


class Section(BaseModel):
    """Keys that belong together; any other key is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=())


class Metadata(Section):
    """What the profile is."""

    document: Name = key("Number of the document that the profile is", "S4-2")
    name: Name = key("Name of the profile; results and trackers bear it", "S4-12")
    version: Name = key("Version of the profile", "S4-12")
    owner: Text = key("Who answers for it", "S4-31")
    description: Text = key("What it is for, in a sentence")
    created: Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")] = key('Day, as "2026-01-31"')
    target: Literal["hpc", "embedded", "local"] = key(
        "Class of machine; local is any, small, without the document's ranges"
    )
    purpose: Literal["scratch", "fine_tune", "transfer"] = key("Which range the learning rate is in", "S4-17")


class Model(Section):
    """The transformer encoder, and what goes in and comes out."""

    type: Literal["transformer_encoder"] = key("Kind of model", "S4-8")
    task: Literal["regression", "classification"] = key("What it learns")
    hidden_size: int = key("Width", "S4-8", ge=8, le=16384)
    num_layers: int = key("Blocks", "S4-8", ge=1, le=256)
    num_heads: int = key("Attention heads; divides hidden_size", "S4-8", ge=1, le=256)
    feedforward_size: int = key("Width between the two layers of a block's feed-forward part", "S4-8", ge=8, le=65536)
    max_position: int = key("Longest window that it has positions for", "S4-8", ge=1, le=65536)
    window: int = key("Time steps of a sample", ge=1, le=65536)
    input_features: int = key("Values of a time step", ge=1, le=65536)
    outputs: int | None = key("Values of an answer; null for classification", default=None, ge=1, le=65536)
    num_classes: int | None = key("Classes; null for regression", default=None, ge=2, le=65536)
    dropout: float = key("Share of activations that is left out in training", ge=0, lt=1)
    activation: Literal["gelu", "relu"] = key("Activation of the feed-forward part")
    attention: Literal["sdpa", "math"] = key("sdpa: PyTorch chooses the fastest way; math: the plain one")


class Optimizer(Section):
    """AdamW, or Adam."""

    name: Literal["adam", "adamw"] = key("adam adds the decay to the gradient (L2), adamw to the weights")
    lr: float = key("Highest learning rate", "S4-17", gt=0, le=1)
    weight_decay: float = key("Decay of the weights", ge=0, le=1)
    betas: Annotated[list[Annotated[float, Field(ge=0, lt=1)]], Field(min_length=2, max_length=2)] = key(
        "Decay of both moments"
    )
    eps: float = key("Keeps the division finite", ge=1e-20, le=1e-2)


class Scheduler(Section):
    """The learning rate over the steps."""

    name: Literal["cosine", "constant"] = key("Its form after the warm-up")
    warmup_steps: Count = key("Steps in which it rises", "S4-17")
    t_max: Positive = key("Step at which the cosine is at its end")
    eta_min: float = key("Learning rate from there on", ge=0, le=1)


class Loss(Section):
    """The loss."""

    name: Literal["mse", "mae", "cross_entropy"] = key(
        "mse or mae for regression, cross_entropy for classification", "S4-30"
    )


class GradientClipping(Section):
    """Clipping of the gradients' norm."""

    max_norm: float = key("Highest norm of all gradients together", "S4-30", ge=1e-6, le=1e6)


class MixedPrecision(Section):
    """Precision of the activations."""

    enabled: bool = key("Compute in half precision", "S4-28")
    dtype: Literal["float16", "bfloat16"] = key("Which", "S4-3")
    loss_scale: Literal["dynamic"] | Annotated[float, Field(ge=1, le=2**24)] | None = key(
        "Scale of the loss for float16, found anew (dynamic) or fixed; null for bfloat16, which needs none",
        default=None,
    )


class Evaluation(Section):
    """Looks at the validation data in training."""

    every_steps: Positive = key("Steps between two", "S4-23")


class Checkpointing(Section):
    """What is saved of a training."""

    directory: Folder = key("Folder on the share", "S4-20")
    every_steps: int = key("Steps between two checkpoints", "S4-20", ge=1, le=10**9)
    keep: int = key("How many of the newest are kept", "S4-21", ge=1, le=1000)
    best_only: bool = key("Keep the best and the newest alone")
    format: Literal["safetensors"] = key("Format of the files", "S4-22")


class EarlyStopping(Section):
    """An end before the last step, where nothing is learnt any more."""

    enabled: bool = key("Whether")
    monitor: Literal["validation_loss", "mae", "rmse", "accuracy", "f1"] = key("Which metric must improve")
    mode: Literal["min", "max"] = key("Whether less or more is better")
    patience: int = key("Evaluations without an improvement before the end", ge=1, le=10000)
    min_delta: float = key("What counts as an improvement", ge=0, le=1e6)


class Training(Section):
    """How it is trained."""

    epochs: int = key("Times that the training data is read", ge=1, le=10**6)
    max_steps: Positive = key("Steps at most")
    batch_size: int = key("Samples of a micro batch on a GPU", "S4-13", ge=1, le=65536)
    gradient_accumulation_steps: int = key("Micro batches of a step", "S4-13", ge=1, le=4096)
    log_every_steps: Positive = key("Steps between two rows of metrics", "S4-26")
    begins_with: Folder | None = key(
        "Folder of the checkpoint whose weights it begins with; null: with none, from scratch", "S4-18", default=None
    )
    activation_checkpointing: bool = key("Compute activations again instead of keeping them", "S4-28")
    optimizer: Optimizer
    scheduler: Scheduler
    loss: Loss
    gradient_clipping: GradientClipping
    mixed_precision: MixedPrecision
    evaluation: Evaluation
    checkpointing: Checkpointing
    early_stopping: EarlyStopping


Feature = Annotated[float, Field(ge=-1e30, le=1e30)]
Features = Annotated[list[Feature], Field(min_length=1, max_length=65536)]
Deviation = Annotated[float, Field(ge=1e-30, le=1e30)]
Deviations = Annotated[list[Deviation], Field(min_length=1, max_length=65536)]


class Normalization(Section):
    """What is taken from each feature, and by what it is divided."""

    mean: Features | Feature = key("One value for each feature, or one for all", "S4-30")
    std: Deviations | Deviation = key("One value for each feature, or one for all", "S4-30")


class Data(Section):
    """What it is trained on."""

    train: Folder = key("Path of the training data, up to -inputs.npy", "S4-8")
    validation: Folder = key("Path of the validation data, up to -inputs.npy", "S4-8")
    test: Folder = key("Path of the test data, up to -inputs.npy", "S4-8")
    train_samples: Positive = key("Samples in the training data: steps are counted from it")
    normalization: Normalization
    shuffle: bool = key("Another order in each epoch")
    num_workers: int = key("Processes of each rank that read", "S4-29", ge=0, le=256)
    prefetch_factor: int | None = key(
        "Batches that each of them reads ahead; null without any", default=None, ge=1, le=64
    )
    pin_memory: bool = key("Read into memory that a GPU copies fast from", "S4-29")


class Distributed(Section):
    """Several ranks."""

    enabled: bool = key("Whether", "S4-3")
    backend: Literal["nccl", "gloo"] = key("How ranks talk to one another", "S4-3")
    init_method: Literal["env://"] = key("How they find one another")
    world_size: int = key("Ranks, one for each GPU", "S4-3", ge=1, le=4096)
    find_unused_parameters: bool = key("Look for weights without a gradient in each step")


class Resources(Section):
    """What a job gets."""

    num_gpus: int = key("GPUs", "S4-3", ge=1, le=4096)
    gpu_type: Literal["a100-80", "a100-40", "rtx4090", "jetson", "other"] = key(
        "Which: batch sizes depend on it", "S4-13"
    )
    gpu_memory_gb: float = key("Memory of a GPU", gt=0, le=4096)
    cpus_per_gpu: int = key("CPUs for each GPU", ge=1, le=1024)
    memory_gb: float = key("The node's memory for the job", ge=0.5, le=65536)
    partition: Name | None = key("Slurm's partition; null for the cluster's default, or without Slurm", default=None)
    time: Annotated[str, StringConstraints(pattern=r"^([0-9]{1,3}-)?[0-9]{1,3}:[0-5][0-9]:[0-5][0-9]$")] = key(
        'Time limit, as "48:00:00"'
    )


class TensorBoard(Section):
    """TensorBoard's files."""

    enabled: bool = key("Whether")


class Mlflow(Section):
    """An MLflow server."""

    enabled: bool = key("Whether", "S4-3")
    tracking_uri: Annotated[str, StringConstraints(pattern=ADDRESS)] | None = key(
        "Its address; null: rows stay in the output folder, and can be sent later", default=None
    )
    token_file: Folder | None = key("File of mode 0600 with a token, on the compute nodes", default=None)
    ca_file: Folder | None = key("Certificates of the authorities to trust; null: the system's", default=None)
    experiment: Name = key("Name of the experiment")


class Wandb(Section):
    """Weights & Biases."""

    enabled: bool = key("Whether", "S4-3")
    mode: Literal["offline", "online"] = key("online needs key_file")
    key_file: Folder | None = key("File of mode 0600 with a key, on the compute nodes", default=None)
    project: Name = key("Name of the project")


class Logging(Section):
    """Who is told."""

    level: Literal["debug", "info", "warning"] = key("Least important lines that are written")
    directory: Folder = key("Folder of the logs on the share", "S4-8")
    tensorboard: TensorBoard
    mlflow: Mlflow
    wandb: Wandb


class Monitoring(Section):
    """What is looked at while it trains."""

    gpu: bool = key("Utilisation and memory of the GPUs", "S4-25")
    temperature: bool = key("Temperatures", "S4-25")
    power: bool = key("Power", "S4-5")
    throughput: bool = key("Samples and steps per second", "S4-26")
    interval_seconds: float = key("Seconds between two looks", "S4-25", ge=0.1, le=3600)
    gradient_norm_every_steps: Positive = key("Steps between two norms", "S4-27")
    weight_histogram_every_steps: Positive = key("Steps between two histograms", "S4-27")
    health_check_seconds: float = key("Seconds between two looks at all ranks", ge=0.01, le=86400)
    stall_seconds: float = key("Seconds without a step after which a rank stands still", ge=1, le=86400)


class Reproducibility(Section):
    """Whether a second training comes out the same."""

    seed: int = key("Seed of everything that is random", ge=0, lt=2**32)
    deterministic: bool = key("Only operations that give the same each time")
    benchmark: bool = key("Let cuDNN try which of its ways is the fastest")


class Debug(Section):
    """Switches for finding faults; a training that is timed has none."""

    profiler: bool = key("Trace some steps with PyTorch's profiler", "S4-29")
    detect_anomaly: bool = key("Name the operation that makes a gradient no number", "S4-30")
    limit_batches: int | None = key("Stop after so many micro batches; null for no limit", default=None, ge=1, le=10**9)


class FaultTolerance(Section):
    """What happens when a rank dies."""

    resume: bool = key("Go on from the newest whole checkpoint")
    max_restarts: int = key("How often", ge=0, le=100)
    restart_delay_seconds: float = key("Seconds before each", ge=0, le=86400)


class Environment(Section):
    """Versions that the profile was written for. They are compared with those that are there, never installed."""

    python: Text = key("Python")
    cuda: Text | None = key("CUDA", default=None)
    cudnn: Text | None = key("cuDNN", default=None)
    torch: Text = key("PyTorch")
    tensorrt: Text | None = key("TensorRT", default=None)


Metric = Literal["loss", "mae", "rmse", "r2", "accuracy", "f1"]


class Validation(Section):
    """How it is validated."""

    metrics: Annotated[list[Metric], Field(min_length=1, max_length=6)] = key("What is computed", "S4-24")
    every_epochs: int | None = key(
        "Epochs between two; null: training.evaluation alone decides", default=None, ge=1, le=10**6
    )


class Pruning(Section):
    """Taking away heads and units."""

    enabled: bool = key("Whether", "S4-5")
    amount: float = key("Share that is asked for", "S4-5", gt=0, lt=1)


class Quantization(Section):
    """Whole numbers of 8 bits."""

    enabled: bool = key("Whether", "S4-5")
    dtype: Literal["int8"] = key("Which", "S4-5")
    method: Literal["static", "dynamic"] = key("static needs calibration data; dynamic has the lowest latency")
    calibration_data: Folder | None = key("Path of the calibration data, up to -inputs.npy", default=None)
    calibration_samples: int = key("Samples of it", ge=10, le=10**6)
    max_metric_loss: float = key("Share by which the error may grow", "S4-5", ge=0, lt=1)


class PostTraining(Section):
    """What becomes of the model."""

    export: Annotated[list[str], Field(min_length=1, max_length=4)] = key("onnx, torchscript, tensorrt", "S4-22")
    pruning: Pruning
    quantization: Quantization
    max_latency_ms: float | None = key(
        "Highest 99th percentile of an inference's time", "S4-6", default=None, gt=0, le=1e6
    )
    max_size_mb: float | None = key("Highest size of the file", default=None, gt=0, le=1e6)


class Compliance(Section):
    """What the card of the model says."""

    data_classification: Text = key("Who may see the data")
    license: Text = key("Licence of the model")
    approved_by: Text | None = key("Who approved it", default=None)


class PowerManagement(Section):
    """Bounds of a device."""

    mode: Text | None = key("Power mode of nvpmodel, such as MAXN; null: any, or a device without", "S4-5")
    max_temperature_c: float = key("Highest temperature", "S4-5", gt=0, le=150)
    max_power_w: float | None = key("Highest mean power", "S4-5", default=None, gt=0, le=10000)
    power_rails: Annotated[list[Name], Field(min_length=1, max_length=64), AfterValidator(different)] | None = key(
        "Rails that make the board's power; null: those known of the board", default=None
    )
    soak_seconds: float = key("How long a device computes while its sensors are read", "S4-5", ge=5, le=86400)


class EmbeddedOptimizations(Section):
    """What saves memory on a device."""

    memory_efficient_attention: bool = key("Attention that keeps no matrix of all pairs", "S4-5")
    empty_cache_every_steps: int | None = key("Steps after which CUDA's cache is emptied", default=None, ge=1, le=10**9)
    max_memory_gb: float = key("Highest memory of the training", "S4-6", ge=0.05, le=1024)


class TransferLearning(Section):
    """A training that begins with another's weights."""

    freeze_layers: int = key("Blocks from the first on that stay as they are", "S4-5", ge=0, le=256)
    unfreeze_epochs: list[Annotated[int, Field(ge=1, le=10**6)]] = key(
        "Epochs at which one more block opens, from the last frozen one down; at the last of them all open", "S4-5"
    )


class Profile(Section):
    """A whole profile."""

    metadata: Metadata
    model: Model
    training: Training
    data: Data
    distributed: Distributed
    resources: Resources
    logging: Logging
    monitoring: Monitoring
    reproducibility: Reproducibility
    debug: Debug
    fault_tolerance: FaultTolerance
    environment: Environment
    validation: Validation
    post_training: PostTraining
    compliance: Compliance
    notes: Text = key("Why the choices are as they are", "S4-12")
    power_management: PowerManagement | None = None
    embedded_optimizations: EmbeddedOptimizations | None = None
    transfer_learning: TransferLearning | None = None
