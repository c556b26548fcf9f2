# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The canary as a ReFrame test, as a careful author writes one: exit code, logs, files, references for the figures."""

# ruff: noqa: RUF012

import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, run_before, sanity_function, variable


@rfm.simple_test
class Canary(rfm.RunOnlyRegressionTest):
    """One job with one GPU."""

    behaviour = variable(str, value="well")
    program = variable(str, value="canary.py")
    descr = "A workload without torch"
    valid_systems = ["local:gpu"]
    valid_prog_environs = ["builtin"]
    sourcesdir = None
    executable = "python3"
    num_tasks = 1
    time_limit = "5m"
    reference = {"local:gpu": {"score": (0.99, -0.04, 0.01, ""), "seconds": (12.5, -1.0, 3.8, "s")}}

    @run_before("run")
    def prepare(self):
        self.executable_opts = [self.program, "--behaviour", self.behaviour]
        self.prerun_cmds = ["echo > gpu.jsonl"]
        self.env_vars = {"OUTPUT_DIR": "$PWD", "HPC_VALIDATION_ATTEMPT": "0"}
        self.job.options = [*self.job.options, "--gres=gpu:1", "--mem=500M"]

    @sanity_function
    def it_ran_well(self):
        return sn.all(
            [
                sn.assert_eq(self.job.exitcode, 0),
                sn.assert_found(r'"loss": \[3.0, 2.0, 1.0\]', "metrics.json"),
                sn.assert_not_found(r"CUDA error", self.stderr),
                sn.assert_ge(os.path.getsize("model.bin"), 1000),
            ]
        )

    @performance_function("")
    def score(self):
        return sn.extractsingle(r'"score": ([^,}]+)', "metrics.json", 1, float)

    @performance_function("s")
    def seconds(self):
        return sn.extractsingle(r'"seconds": ([^,}]+)', "metrics.json", 1, float)
