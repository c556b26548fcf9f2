# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# The environment of the single-GPU training, for a shell. Source it; it finds the share from its own location:
#   source <share>/scripts/sft_single_gpu/env.sh
#   python <share>/scripts/sft_single_gpu/train_sft_min.py --run_name sft_1gpu_smoke --max_steps 10 --seq_len 512
# The job script sets up the same by itself; it does not depend on this file.

REPO_ROOT="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)" || return 1
export REPO_ROOT
export RUNS_ROOT="$REPO_ROOT/results/training"
export HF_HOME="$REPO_ROOT/huggingface"
export HF_DATASETS_CACHE="$HF_HOME/datasets"
export HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 DO_NOT_TRACK=true
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-PASSIVE}"
export HPC_VALIDATION_SHARE="$REPO_ROOT"
export MODEL_DIR="$HF_HOME/models/mistral_7b"
export DATA_DIR="$REPO_ROOT/datasets/alpaca_cleaned"
export PYTHONPATH="$REPO_ROOT/scripts"
mkdir -p "$RUNS_ROOT" "$HF_HOME" || return 1

# Environments are keyed by their lock's hash; complete ones contain runtime.json. Take the newest.
VIRTUAL_ENV=""
for __finished in "$REPO_ROOT"/venvs/sft-*/runtime.json; do
    if [ -e "$__finished" ] && { [ -z "$VIRTUAL_ENV" ] || [ "$__finished" -nt "$VIRTUAL_ENV/runtime.json" ]; }; then
        VIRTUAL_ENV="${__finished%/runtime.json}"
    fi
done
unset __finished
if [ -z "$VIRTUAL_ENV" ]; then
    echo "env.sh: no complete environment $REPO_ROOT/venvs/sft-*: run playbooks/validate_baseline.yml once with hpc_validation_runtime: venv" >&2
    return 1
fi
export VIRTUAL_ENV
export PATH="$VIRTUAL_ENV/bin:$PATH"
