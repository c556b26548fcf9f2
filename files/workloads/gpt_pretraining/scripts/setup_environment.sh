#!/usr/bin/env bash
# Installs the environment of this training on the share, as the playbook does when it stages: the same lock, the same command.
# Usage: setup_environment.sh [options of `kit runtime`], on the login node
set -euo pipefail
scripts=$(cd "$(dirname "$0")/../.." && pwd)
share=$(dirname "$scripts")
PYTHONPATH="$scripts" exec "${PYTHON:-python3}" -B -m kit runtime --name deepspeed \
    --lock "$scripts/requirements/deepspeed.txt" --root "$share/venvs" "$@"
