# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the commands that put the file of a card on another device and measure it there, by hand. Pure.

They hold no text of a job or a device: only names of ours, and digests and numbers that were looked at.
"""

from __future__ import annotations

import math

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.values import Json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.markdown import text

FOLDER = "hpc-validation-by-hand"
AN_HOUR = 3600  # seconds for all but the soak
INDEX = "https://pypi.org/simple"
FILES = "~/.ansible/collections/ansible_collections/mlops/hpc_validation/files"


def section(card: Json) -> list[str]:
    """Return the section with the commands, or with why there are none."""
    deploy = card["deploy"]
    lines = ["## The same file on another device", ""]
    if deploy["why_not"]:
        return [*lines, f"There is no command: {text(deploy['why_not'])}."]
    return [
        *lines,
        "In a terminal, in the folder of this page, which stays as it is. `DEVICE` is the device, `PYTHON` and "
        "`MACHINE` are what `python3 -V; uname -m` say there, and `LOCK` is `python38` for Python 3.8 and 3.9, "
        "`python310` for 3.10, `python311` for newer ones; `FILES` is the collection's folder `files`, `INDEX` a "
        "package index. Each command needs the one before it, and both lines of `sha256sum` must end with OK.",
        "",
        "```sh",
        *deploy["commands"],
        "```",
        "",
        "It measures and judges nothing. For a verdict put the device into the inventory's group `edge` and run "
        "`playbooks/validate_embedded.yml`, which trains anew and so deploys another file.",
    ]


def commands(bundle: str, bundle_sha256: str, model: str, model_sha256: str, soak: float) -> list[str]:
    """Return the commands, in the order in which they are typed; the names need no quoting."""
    check = f'echo "{model_sha256}  {model}" | sha256sum --check'
    wheels = 'for wheel in wheels/*.whl; do python3 -m zipfile -e "$wheel" site || exit; done'
    limit = math.ceil(soak) + AN_HOUR  # the runner ends itself then
    measure = f"PYTHONPATH=site python3 runner.py {model} inputs.npy result.json --soak {soak:g} --limit {limit}"
    return [
        f"DEVICE=user@device PYTHON=3.11 MACHINE=aarch64 LOCK=python311 INDEX={INDEX} FILES={FILES}",
        f'echo "{bundle_sha256}  {bundle}" | sha256sum --check &&',
        f'RUN=$PWD && cd "$(mktemp -d)" && python3 -m zipfile -e "$RUN/{bundle}" bundle &&',
        'PYTHONPATH="$FILES" python3 -m kit wheelhouse --lock "$FILES/edge/requirements/$LOCK.txt" '
        '--python "$PYTHON" --machine "$MACHINE" --index-url "$INDEX" --output wheels &&',
        f"ssh \"$DEVICE\" 'mkdir {FOLDER}' &&",
        f'scp -r wheels bundle/{model} bundle/inputs.npy "$FILES"/edge/*.py "$DEVICE:{FOLDER}/" &&',
        f"ssh \"$DEVICE\" 'cd {FOLDER} && {check} && {wheels} && {measure}' &&",
        f'scp "$DEVICE:{FOLDER}/result.json" . && echo "$PWD/result.json"',
    ]
