/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * GPM: rates between two samples. gpm_supported, and gpm.NUMBER for each metric, in per cent, `IDLE/BUSY` or one value.
 */
#define _GNU_SOURCE
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { REQUEST_VERSION = 1, SUPPORT_VERSION = 1 };

struct gpm_sample {
    gpu *device;
    int held;
    struct timespec when;
};

result nvmlGpmQueryDeviceSupport(gpu *device, gpm_support *out) {
    ullong value = 0;
    if (out->version != SUPPORT_VERSION)
        return ARGUMENT_VERSION_MISMATCH;
    result code = gpu_number(device, "nvmlGpmQueryDeviceSupport", "gpm_supported", &value);
    if (code == SUCCESS)
        out->supported = (uint)value;
    return code;
}

result nvmlGpmSampleAlloc(gpm_sample **out) {
    if (users == 0)
        return UNINITIALIZED;
    *out = calloc(1, sizeof **out);
    return *out == NULL ? MEMORY : SUCCESS;
}

result nvmlGpmSampleFree(gpm_sample *sample) {
    free(sample);
    return SUCCESS;
}

result nvmlGpmSampleGet(gpu *device, gpm_sample *sample) {
    ullong supported = 0;
    if (sample == NULL)
        return INVALID_ARGUMENT;
    result code = gpu_number(device, "nvmlGpmSampleGet", "gpm_supported", &supported);
    if (code != SUCCESS || supported == 0)
        return code != SUCCESS ? code : NOT_SUPPORTED;
    *sample = (struct gpm_sample){.device = device, .held = is_held(device->minor)};
    clock_gettime(CLOCK_MONOTONIC, &sample->when);
    return SUCCESS;
}

result nvmlGpmMetricsGet(gpm_request *request) {
    char text[STATE_SIZE], key[32];
    if (request->version != REQUEST_VERSION)
        return ARGUMENT_VERSION_MISMATCH;
    const gpm_sample *first = request->first, *second = request->second;
    if (first == NULL || second == NULL || first->device == NULL || first->device != second->device ||
        request->count > GPM_METRICS)
        return INVALID_ARGUMENT;
    result code = begin_gpu(second->device, "nvmlGpmMetricsGet", text);
    for (uint index = 0; code == SUCCESS && index < request->count; index++) {
        gpm_metric *metric = request->metrics + index;
        ullong value = 0;
        snprintf(key, sizeof key, "gpm.%u", metric->id);
        metric->code = pick(text, second->held, key, &value);
        metric->value = (double)value;
    }
    return code;
}
