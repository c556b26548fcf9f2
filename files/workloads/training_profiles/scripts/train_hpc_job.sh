#!/usr/bin/env bash
# The job of train_hpc.sh: PYTHON KIT HOME PROFILE
set -eu

export PYTHONPATH=$2 PYTHONDONTWRITEBYTECODE=1
cd "$3"
exec "$1" -m kit profile train "$4"
