# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight's jobs ask of Slurm."""

from __future__ import annotations

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.mlops.hpc_validation.plugins.filter.preflight_settings import preflight_settings

from tests.unit.conftest import ROOT
from tests.unit.roles.conftest import directives, settings_of


def asked(template: str, **settings: object) -> dict[str, str]:
    """The directives of the template, by name."""
    variables = settings_of("roles/hpc_validation/defaults/main.yml", "roles/preflight/vars/main.yml")
    given = Templar(loader=DataLoader(), variables={**variables, **settings}).template(variables["__preflight_public"])
    variables["__preflight_settings"] = preflight_settings(given, [])
    text = (ROOT / "roles/preflight/templates" / template).read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if line.startswith("#SBATCH "))
    rendered = Templar(loader=DataLoader(), variables={**variables, **settings}).template(trust_as_template(lines))
    return dict(line.removeprefix("--").partition("=")[::2] for line in directives(rendered))


@pytest.mark.parametrize("wait", [1, 5, 7.5, 60, 600])
def test_the_coherence_job_may_take_what_it_may_take_and_still_end_before_its_deadline(wait):
    """Slurm refuses a job whose time limit does not fit before its deadline."""
    said = asked(
        "coherence.sbatch.j2",
        hpc_validation_share_expect={"coherence_seconds": wait},
        hpc_validation_preflight_queue_timeout=100,
    )
    limit = int(said["time"]) * 60
    deadline = int(said["deadline"].removeprefix("now+").removesuffix("seconds"))
    assert limit >= 240 + 48 * wait
    assert deadline >= 100 + limit


def test_a_node_job_may_wait_as_long_as_asked_and_then_still_end_before_its_deadline():
    said = asked("node.sbatch.j2", hpc_validation_preflight_queue_timeout=100)
    assert said["time"] == "00:10:00"
    assert said["deadline"] == "now+1000seconds"
