#!/usr/bin/env bash
# Submits this training as the playbook does, and watches it. The playbook has deployed the job script that is submitted.
# Usage: launch_training.sh [--no-monitor] [--resume_from_checkpoint DIR], on the login node
#   DIR  a job's output folder, such as <share>/models/gpt-pretraining/job-4711, or gs://bucket/prefix; a checkpoint
#        in that folder stands for it: the newest whole one there counts
set -euo pipefail
home=$(cd "$(dirname "$0")/.." && pwd)
monitor=1
resume=()
while [ $# -gt 0 ]; do
    case $1 in
        --no-monitor) monitor=0 ;;
        --resume_from_checkpoint)
            [ $# -ge 2 ] || { echo "$1: expected a folder or gs://bucket/prefix" >&2; exit 2; }
            earlier=$2
            if [[ $earlier != gs://* ]]; then
                earlier=${earlier%/checkpoints/*checkpoint_step_*}
                [ -d "$earlier" ] || { echo "$1: $earlier: no such folder" >&2; exit 2; }
            fi
            resume=("--export=HPC_VALIDATION_RESUME=$earlier")
            shift ;;
        *) echo "unknown option $1; see the head of $0" >&2; exit 2 ;;
    esac
    shift
done
job=$(sbatch --parsable ${resume[@]+"${resume[@]}"} "$home/gpt_pretraining.sbatch")
echo "job $job"
[ "$monitor" = 1 ] || exit 0
scripts=$(dirname "$home")
PYTHONPATH="$scripts" exec "${PYTHON:-python3}" -B -m kit watch --wait 604800 --share "$(dirname "$scripts")" "$job"
