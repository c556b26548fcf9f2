/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * libnvidia-ml.so.1 for simulated GPUs: answers NVML's C interface from state files (state.h), so that nvidia-ml-py and
 * what is built on it run unchanged and faults can be injected while they run (`cluster gpu NODE INDEX key=value`).
 *
 * A process is shown only the devices that the kernel lets it open: EPERM (its devices cgroup) hides one, ENXIO
 * (permitted, no driver behind it) does not. Which those are is settled at nvmlInit, as with the real library. Calls that
 * are in none of these files do not exist in the library, as with an old driver (nvidia-ml-py: FunctionNotFound).
 */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int may_open(int minor) {
    char path[64];
    snprintf(path, sizeof path, "/dev/nvidia%d", minor);
    int fd = plain_open(path, O_RDWR);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || errno == ENXIO || errno == ENODEV;
}

result nvmlInitWithFlags(uint flags) {
    char text[STATE_SIZE], value[VALUE_SIZE];
    (void)flags;
    if (!read_state(SYSTEM, text))
        return DRIVER_NOT_LOADED;
    result code = injected(text, "nvmlInitWithFlags");
    if (code != SUCCESS)
        return code;
    pthread_mutex_lock(&mutex);
    if (users++ == 0) {
        gpu_count = 0;
        for (int minor = 0; minor < MAX_GPUS; minor++) {
            if (!read_state(minor, text) || !may_open(minor))
                continue;
            if (find_value(text, "present", value) && strcmp(value, "0") == 0)
                continue;
            gpus[gpu_count++].minor = minor;
        }
    }
    pthread_mutex_unlock(&mutex);
    return SUCCESS;
}

result nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
result nvmlInit(void) { return nvmlInitWithFlags(0); }

result nvmlShutdown(void) {
    pthread_mutex_lock(&mutex);
    result code = users > 0 ? SUCCESS : UNINITIALIZED;
    users -= users > 0;
    pthread_mutex_unlock(&mutex);
    return code;
}

const char *nvmlErrorString(result code) {
    static const char *const words[] = {
        [0] = "Success",
        [1] = "Uninitialized",
        [2] = "Invalid Argument",
        [3] = "Not Supported",
        [4] = "Insufficient Permissions",
        [6] = "Not Found",
        [7] = "Insufficient Size",
        [9] = "Driver Not Loaded",
        [10] = "Timeout",
        [13] = "Function Not Found",
        [14] = "Corrupted infoROM",
        [15] = "GPU is lost",
        [16] = "GPU requires reset",
        [18] = "Driver/library version mismatch",
        [20] = "Insufficient Memory",
        [25] = "Argument version mismatch",
        [28] = "GPU Not Found",
    };
    if (code >= 0 && (size_t)code < sizeof words / sizeof *words && words[code] != NULL)
        return words[code];
    return "Unknown Error";
}

SYSTEM_TEXT(nvmlSystemGetDriverVersion, "driver_version")
SYSTEM_TEXT(nvmlSystemGetNVMLVersion, "nvml_version")

result nvmlSystemGetCudaDriverVersion_v2(int *out) {
    char text[STATE_SIZE];
    ullong value = 0;
    result code = begin(SYSTEM, "nvmlSystemGetCudaDriverVersion_v2", text);
    if (code == SUCCESS)
        code = number(text, SYSTEM, "cuda_version", &value);
    if (code == SUCCESS)
        *out = (int)value;
    return code;
}
result nvmlSystemGetCudaDriverVersion(int *out) { return nvmlSystemGetCudaDriverVersion_v2(out); }

/* ---- finding devices ---- */

result nvmlDeviceGetCount_v2(uint *out) {
    char text[STATE_SIZE];
    result code = begin(SYSTEM, "nvmlDeviceGetCount_v2", text);
    if (code == SUCCESS)
        *out = gpu_count;
    return code;
}
result nvmlDeviceGetCount(uint *out) { return nvmlDeviceGetCount_v2(out); }

result nvmlDeviceGetHandleByIndex_v2(uint index, gpu **out) {
    char text[STATE_SIZE];
    if (users > 0 && index >= gpu_count)
        return INVALID_ARGUMENT;
    result code = begin_gpu(gpus + index, "nvmlDeviceGetHandleByIndex_v2", text);
    if (code == SUCCESS)
        *out = gpus + index;
    return code;
}
result nvmlDeviceGetHandleByIndex(uint index, gpu **out) { return nvmlDeviceGetHandleByIndex_v2(index, out); }

static result handle_by(const char *function, const char *key, const char *wanted, gpu **out) {
    char text[STATE_SIZE], value[VALUE_SIZE];
    if (users == 0)
        return UNINITIALIZED;
    for (gpu *device = gpus; device < gpus + gpu_count; device++) {
        if (!read_state(device->minor, text) || !find_value(text, key, value) || strcasecmp(value, wanted) != 0)
            continue;
        result code = injected(text, function);
        if (code == SUCCESS)
            *out = device;
        return code;
    }
    return NOT_FOUND;
}

result nvmlDeviceGetHandleByUUID(const char *uuid, gpu **out) {
    return handle_by("nvmlDeviceGetHandleByUUID", "uuid", uuid, out);
}
result nvmlDeviceGetHandleBySerial(const char *serial, gpu **out) {
    return handle_by("nvmlDeviceGetHandleBySerial", "serial", serial, out);
}
result nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, gpu **out) {
    char full[VALUE_SIZE];
    uint domain = 0, bus = 0, slot = 0, function = 0;
    if (sscanf(bus_id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3 &&
        (domain = 0, sscanf(bus_id, "%x:%x.%x", &bus, &slot, &function)) < 2)
        return INVALID_ARGUMENT;
    snprintf(full, sizeof full, "%08X:%02X:%02X.%X", domain, bus, slot, function);
    return handle_by("nvmlDeviceGetHandleByPciBusId_v2", "bus_id", full, out);
}
result nvmlDeviceGetHandleByPciBusId(const char *bus_id, gpu **out) {
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, out);
}

result nvmlDeviceGetIndex(gpu *device, uint *out) {
    char text[STATE_SIZE];
    result code = begin_gpu(device, "nvmlDeviceGetIndex", text);
    if (code == SUCCESS)
        *out = (uint)(device - gpus);
    return code;
}

result nvmlDeviceGetMinorNumber(gpu *device, uint *out) {
    char text[STATE_SIZE];
    result code = begin_gpu(device, "nvmlDeviceGetMinorNumber", text);
    if (code == SUCCESS)
        *out = (uint)device->minor;
    return code;
}
