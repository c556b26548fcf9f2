# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of one GPU's memory errors: what ECC counts, and what memory was taken out of use.

Thresholds are those of DCGM 4.6's health watches unless the line says otherwise.
"""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import card
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.facts import COUNT, FLAG, LACKS, Gpu
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Judge

Json = dict[str, t.Any]

RETIRED_PAGES = 63  # of 64 that a card can retire
REMAPPED_ROWS = 512  # uncorrectable errors for which a card remaps rows in its life; DCGM warns, Azure's checks fail
AGGREGATE = "gpu.ecc_uncorrected_aggregate"
WITHOUT_ECC = "the inventory sets hpc_validation_gpu.ecc: false"
REPAIRS = (
    "gpu.retired_pages",
    "gpu.retired_pages_pending",
    "gpu.row_remap_pending",
    "gpu.row_remap_failure",
    "gpu.row_remap_count",
    "gpu.row_remap_exhausted",
)


def ecc(judge: Judge, gpu: Gpu) -> list[Json]:
    """Judge the ECC mode and error counters."""
    call = "nvmlDeviceGetTotalEccErrors"
    found = [_ecc_mode(judge, gpu)]
    counters = {
        "gpu.ecc_uncorrected_volatile": ("uncorrected_volatile", 0),
        "gpu.ecc_corrected": ("corrected_volatile", judge.expect["corrected_max"]),
    }
    if _without_ecc(judge):
        return found + [
            judge.not_applicable(check, WITHOUT_ECC, call) for check in (*counters, AGGREGATE, "gpu.sram_threshold")
        ]
    for check, (counter, bound) in counters.items():
        found.append(judge.check_reading(check, "le", bound, gpu.get(f"ecc.{counter}", COUNT), call, unit="errors"))
    found.append(_aggregate(judge, gpu, call))
    threshold = gpu.get("ecc.sram_threshold_exceeded", FLAG)
    call = "nvmlDeviceGetSramEccErrorStatus"
    return [*found, judge.check_reading("gpu.sram_threshold", "eq", False, threshold, call, needed=False)]


def _without_ecc(judge: Judge) -> bool:
    return judge.expect.get("ecc") is False


def _ecc_mode(judge: Judge, gpu: Gpu) -> Json:
    """Judge the ECC mode; where ECC should be off, a card without ECC passes."""
    current, call = gpu.get("ecc.mode", FLAG), "nvmlDeviceGetEccMode"
    if _without_ecc(judge) and current.reason == LACKS:
        return judge.decided("gpu.ecc_mode", "pass", None, "= false", f"the card has no ECC ({LACKS})", call)
    return card.mode(judge, gpu, "gpu.ecc_mode", "ecc", "mode", call, needed=True)


def _aggregate(judge: Judge, gpu: Gpu, call: str) -> Json:
    """Judge the lifetime counter, which never goes back: errors that were dealt with must not fail the card.

    Errors are dealt with in two ways (NVIDIA's GPU memory error management, "RMA policy"): SRAM errors are accepted
    below the threshold that the driver reports; other failed memory is taken out of use by row or by page. The latter
    cannot be matched by number: one row gives many errors until the reset that puts its spare into use (Azure's node
    checks accept 20 million if no row is pending or failed). So one row or page accounts for all of them; whether one
    is still pending or has failed is judged by the checks of repairs, and later errors by the volatile counters.
    """
    total, sram = (gpu.get(f"ecc.{key}_aggregate", COUNT) for key in ("uncorrected", "sram_uncorrected"))
    if not total.value:
        return judge.check_reading(AGGREGATE, "eq", 0, total, call, unit="errors")
    exceeded = gpu.get("ecc.sram_threshold_exceeded", FLAG)
    rows, pages = gpu.get("remapped_rows.uncorrected", COUNT), gpu.get("retired_pages.double_bit", COUNT)
    excused = min(sram.value or 0, total.value) if exceeded.value is False else 0
    dealt = [f"{excused} in SRAM, below its threshold"] if excused else []
    left = total.value - excused
    in_memory = total.value - min(sram.value or 0, total.value)
    if in_memory and (rows.value or pages.value):
        left -= in_memory
        dealt.append(f"rows remapped: {rows.value}" if rows.value else f"pages retired: {pages.value}")
    if not left:
        why = f"errors over the card's lifetime: {', '.join(dealt)}"
        return judge.record(AGGREGATE, total.value, why, call, unit="errors")
    # A value that could not be read may account for them; one that the card does not have cannot.
    unread = [each for each in (sram, exceeded, rows, pages) if each.missing and not each.unsupported]
    if unread:
        return {**judge.check_reading(AGGREGATE, "eq", 0, unread[0], call), "unit": "errors"}
    detail = f"{left} not accounted for by a remapped row, a retired page, or SRAM below its threshold"
    return judge.check_reading(AGGREGATE, "eq", 0, total, call, unit="errors", detail=detail)


def repairs(judge: Judge, gpu: Gpu) -> list[Json]:
    """Judge memory taken out of use: by page before Ampere, by row since; one of the two must be readable."""
    single, double = (gpu.get(f"retired_pages.{kind}_bit", COUNT) for kind in ("single", "double"))
    pages = single if single.missing else double.but((single.value or 0) + (double.value or 0))
    rows = gpu.get("remapped_rows.uncorrected", COUNT)
    by_page, by_row = not pages.missing, not rows.missing
    call = "nvmlDeviceGetRetiredPages"
    waiting = gpu.get("retired_pages.pending", FLAG)
    states = {leaf: gpu.get(f"remapped_rows.{leaf}", FLAG) for leaf in ("pending", "failed")}
    if _without_ecc(judge) and all(each.unsupported for each in (single, double, waiting, rows, *states.values())):
        reason = f"{WITHOUT_ECC}, and the card cannot repair memory"
        return [judge.not_applicable(check, reason, call) for check in REPAIRS]
    found = [
        judge.check_reading("gpu.retired_pages", "lt", RETIRED_PAGES, pages, call, needed=not by_row, unit="pages"),
        judge.check_reading(
            "gpu.retired_pages_pending", "eq", False, waiting, f"{call}PendingStatus", needed=not by_row
        ),
    ]
    call = "nvmlDeviceGetRemappedRows"
    for check, leaf in (("gpu.row_remap_pending", "pending"), ("gpu.row_remap_failure", "failed")):
        found.append(judge.check_reading(check, "eq", False, states[leaf], call, needed=not by_page))
    found.append(
        judge.check_reading("gpu.row_remap_count", "lt", REMAPPED_ROWS, rows, call, needed=not by_page, unit="rows"),
    )
    spent, call = gpu.get("remapped_rows.banks_exhausted", COUNT), "nvmlDeviceGetRowRemapperHistogram"
    return [*found, judge.check_reading("gpu.row_remap_exhausted", "eq", 0, spent, call, needed=False, unit="banks")]
