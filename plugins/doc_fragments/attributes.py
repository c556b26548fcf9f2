# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes that every module of the collection declares."""

from __future__ import annotations


class ModuleDocFragment:
    """Descriptions of the attributes; each module states what it supports."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check mode and report what it would do, without doing it.
  diff_mode:
    description: Reports what changed, or would change, if a diff is requested.
  idempotent:
    description: A second run with the same options and an unchanged cluster changes nothing.
  async:
    description: Supports being run with C(async).
  action:
    description: Has an action plugin, so that part of it runs on the controller.
"""
