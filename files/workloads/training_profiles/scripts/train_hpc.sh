#!/usr/bin/env bash
# Train on a Slurm cluster as a profile says: train_hpc.sh PROFILE [OPTIONS OF SBATCH]
# The profile's resources are asked for on one node; --nodes=2 --ntasks-per-node=2 --gres=gpu:2 takes two.
# PYTHON is one with PyTorch and pydantic, by default the one that the playbook has installed on the share from today's lock.
set -euo pipefail

[ "$#" -ge 1 ] || { echo "usage: train_hpc.sh PROFILE [OPTIONS OF SBATCH]" >&2; exit 2; }
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
kit=$(dirname "$home")  # on the share; in the repository it is one folder further up
[ -d "$kit/kit" ] || kit=$(dirname "$kit")
# Slurm would run a copy of this script, from a folder of its own.
[ -d "$kit/kit" ] || { echo "train_hpc.sh: run it with bash, not sbatch: it submits itself" >&2; exit 2; }
python=${PYTHON:-}
lock=$(sha256sum "$kit/requirements/deepspeed.txt" | cut -c1-12)
for each in "$kit"/../venvs/deepspeed-"$lock"-*/bin/python; do
    [ -n "$python" ] || [ ! -x "$each" ] || python=$each
done
python=${python:-python3}
profile=$(realpath -- "$1")
shift

asked=$(PYTHONPATH=$kit "$python" -B -m kit profile options "$profile")
mapfile -t options <<< "$asked"
exec sbatch "${options[@]}" "$@" "$home/scripts/train_hpc_job.sh" "$python" "$kit" "$home" "$profile"
