/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Memory errors, retired and remapped memory, and NVML's numbered fields.
 */
#define _GNU_SOURCE
#include "state.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

PAIR(nvmlDeviceGetEccMode, "ecc_mode", "ecc_mode_pending")

/* type: 0 corrected, 1 uncorrected; counter: 0 volatile, 1 aggregate. */
static result ecc(gpu *device, const char *function, uint type, uint counter, ullong *out) {
    static const char *const keys[2][2] = {{"ecc_corrected_volatile", "ecc_corrected_aggregate"},
                                           {"ecc_uncorrected_volatile", "ecc_uncorrected_aggregate"}};
    return type > 1 || counter > 1 ? INVALID_ARGUMENT : gpu_number(device, function, keys[type][counter], out);
}

result nvmlDeviceGetTotalEccErrors(gpu *device, uint type, uint counter, ullong *out) {
    return ecc(device, "nvmlDeviceGetTotalEccErrors", type, counter, out);
}

/* All errors are device memory's (2); its other locations count none. */
result nvmlDeviceGetMemoryErrorCounter(gpu *device, uint type, uint counter, uint location, ullong *out) {
    result code = ecc(device, "nvmlDeviceGetMemoryErrorCounter", type, counter, out);
    if (code == SUCCESS && location != 2)
        *out = 0;
    return code;
}

result nvmlDeviceGetRemappedRows(gpu *device, uint *corrected, uint *uncorrected, uint *pending, uint *failed) {
    static const char *const keys[] = {"remapped_corrected", "remapped_uncorrected", "remapped_pending",
                                       "remapped_failed"};
    uint *out[] = {corrected, uncorrected, pending, failed};
    for (int index = 0; index < 4; index++) {
        ullong value = 0;
        result code = gpu_number(device, "nvmlDeviceGetRemappedRows", keys[index], &value);
        if (code != SUCCESS)
            return code;
        *out[index] = (uint)value;
    }
    return SUCCESS;
}

result nvmlDeviceGetRowRemapperHistogram(gpu *device, row_histogram *out) {
    static const char *const keys[] = {"remap_banks_max", "remap_banks_high", "remap_banks_partial", "remap_banks_low",
                                       "remap_banks_none"};
    uint *members[] = {&out->max, &out->high, &out->partial, &out->low, &out->none};
    for (int index = 0; index < 5; index++) {
        ullong value = 0;
        result code = gpu_number(device, "nvmlDeviceGetRowRemapperHistogram", keys[index], &value);
        if (code != SUCCESS)
            return code;
        *members[index] = (uint)value;
    }
    return SUCCESS;
}

result nvmlDeviceGetSramEccErrorStatus(gpu *device, sram_ecc *out) {
    char text[STATE_SIZE];
    ullong uncorrected = 0, corrected = 0, exceeded = 0;
    if (out->version != VERSION(sram_ecc, 1))
        return ARGUMENT_VERSION_MISMATCH;
    result code = begin_gpu(device, "nvmlDeviceGetSramEccErrorStatus", text);
    if (code == SUCCESS)
        code = pick(text, 0, "sram_threshold_exceeded", &exceeded);
    if (code != SUCCESS)
        return code;
    pick(text, 0, "sram_uncorrected", &uncorrected);
    pick(text, 0, "sram_corrected", &corrected);
    *out = (sram_ecc){.version = out->version,
                      .aggregate_secded = uncorrected,
                      .aggregate_corrected = corrected,
                      .volatile_secded = uncorrected,
                      .volatile_corrected = corrected,
                      .bucket_l2 = uncorrected,
                      .threshold_exceeded = (uint)exceeded};
    return SUCCESS;
}

/* cause: 0 several single-bit errors, 1 a double-bit error. The addresses are made up. */
static result retired(gpu *device, const char *function, uint cause, uint *count, ullong *addresses) {
    static const char *const keys[] = {"retired_single_bit", "retired_double_bit"};
    ullong pages = 0;
    if (cause >= 2)
        return INVALID_ARGUMENT;
    result code = gpu_number(device, function, keys[cause], &pages);
    if (code != SUCCESS)
        return code;
    uint room = addresses == NULL ? 0 : *count;
    for (uint page = 0; page < pages && page < room; page++)
        addresses[page] = 0x10000ULL * (2 * page + cause + 1);
    *count = (uint)pages;
    return pages > room ? INSUFFICIENT_SIZE : SUCCESS;
}

result nvmlDeviceGetRetiredPages(gpu *device, uint cause, uint *count, ullong *addresses) {
    return retired(device, "nvmlDeviceGetRetiredPages", cause, count, addresses);
}

/* nvidia-ml-py asks for the size with an argument too few: the times are not looked at unless addresses are wanted. */
result nvmlDeviceGetRetiredPages_v2(gpu *device, uint cause, uint *count, ullong *addresses, ullong *times) {
    uint room = addresses == NULL ? 0 : *count;
    result code = retired(device, "nvmlDeviceGetRetiredPages_v2", cause, count, addresses);
    for (uint page = 0; code == SUCCESS && page < room && page < *count; page++)
        times[page] = 1700000000ULL * 1000000 + page;
    return code;
}

NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, uint, "retired_pending")

/* Any field, by number: the key `field.NUMBER`. Of NVML's value types always the unsigned 64-bit one (3). */
result nvmlDeviceGetFieldValues(gpu *device, int count, field_value *values) {
    char text[STATE_SIZE], key[32];
    result code = begin_gpu(device, "nvmlDeviceGetFieldValues", text);
    if (code != SUCCESS)
        return code;
    for (int index = 0; index < count; index++) {
        snprintf(key, sizeof key, "field.%u", values[index].field);
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        values[index].timestamp = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
        values[index].latency = 0;
        values[index].value_type = 3;
        values[index].value = 0;
        values[index].code = number(text, device->minor, key, &values[index].value);
    }
    return SUCCESS;
}
