# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ONNX models on one thread of the CPU, one sample at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

OPSET, NEWEST_IR = 20, 10  # of which GELU is one operation; what devices of some years ago can read
INPUT, OUTPUT = "windows", "answers"


def session(path: Path, optimized: Path | None = None) -> onnxruntime.InferenceSession:
    """Return a session of one thread on the CPU; ``optimized`` is where the graph that it runs is written."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if optimized:
        options.optimized_model_filepath = str(optimized)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def answers(path: Path, windows: np.ndarray) -> np.ndarray:
    """Return the answers to ``windows`` (samples, time steps, features), one sample after the other."""
    running = session(path)
    return np.concatenate([running.run([OUTPUT], {INPUT: windows[at : at + 1]})[0] for at in range(len(windows))])
