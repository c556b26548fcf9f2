/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Events, of one type: Xid errors. The key `xids` is `none`, then every code that was reported, such as `none,79,31`.
 */
#define _GNU_SOURCE
#include "state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { XID_CRITICAL_ERROR = 0x8, POLL_MS = 10 };

struct event_set {
    struct {
        gpu *device; /* NULL: not registered */
        uint seen;   /* of its Xids */
    } watched[MAX_GPUS];
};

/* How many Xids were reported; the code of the one after `seen`, where there is one. */
static result reported(gpu *device, const char *function, uint seen, uint *count, ullong *xid) {
    char text[STATE_SIZE], value[VALUE_SIZE];
    result code = begin_gpu(device, function, text);
    if (code == SUCCESS && !find_value(text, "xids", value))
        code = NOT_SUPPORTED;
    *count = 0;
    if (code == SUCCESS)
        for (char *comma = value; (comma = strchr(comma, ',')) != NULL; comma++)
            if ((*count)++ == seen)
                *xid = strtoull(comma + 1, NULL, 10);
    return code;
}

result nvmlEventSetCreate(event_set **out) {
    if (users == 0)
        return UNINITIALIZED;
    *out = calloc(1, sizeof **out);
    return *out == NULL ? MEMORY : SUCCESS;
}

result nvmlEventSetFree(event_set *set) {
    free(set);
    return SUCCESS;
}

result nvmlDeviceGetSupportedEventTypes(gpu *device, ullong *types) {
    uint count;
    ullong xid;
    result code = reported(device, "nvmlDeviceGetSupportedEventTypes", 0, &count, &xid);
    *types = code == SUCCESS ? XID_CRITICAL_ERROR : 0;
    return code == NOT_SUPPORTED ? SUCCESS : code;
}

result nvmlDeviceRegisterEvents(gpu *device, ullong types, event_set *set) {
    uint count;
    ullong xid;
    result code = reported(device, "nvmlDeviceRegisterEvents", 0, &count, &xid);
    if (code != SUCCESS)
        return code;
    if (set == NULL || types != XID_CRITICAL_ERROR)
        return set == NULL ? INVALID_ARGUMENT : NOT_SUPPORTED;
    set->watched[device - gpus].device = device;
    set->watched[device - gpus].seen = count;
    return SUCCESS;
}

/* One Xid that was not given yet; a GPU whose Xids were taken back has given them all. */
static result next(event_set *set, event_data *data) {
    for (uint index = 0; index < MAX_GPUS; index++) {
        gpu *device = set->watched[index].device;
        uint count, *seen = &set->watched[index].seen;
        ullong xid = 0;
        if (device == NULL)
            continue;
        result code = reported(device, "nvmlEventSetWait_v2", *seen, &count, &xid);
        if (code != SUCCESS)
            return code;
        if (count > *seen) {
            ++*seen;
            *data = (event_data){.device = device,
                                 .type = XID_CRITICAL_ERROR,
                                 .data = xid,
                                 .gpu_instance = UINT32_MAX,
                                 .compute_instance = UINT32_MAX};
            return SUCCESS;
        }
        *seen = count;
    }
    return TIMEOUT;
}

result nvmlEventSetWait_v2(event_set *set, event_data *data, uint milliseconds) {
    if (users == 0 || set == NULL)
        return users == 0 ? UNINITIALIZED : INVALID_ARGUMENT;
    for (uint waited = 0;; waited += POLL_MS) {
        result code = next(set, data);
        if (code != TIMEOUT || waited >= milliseconds)
            return code;
        nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
    }
}
