/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * libnvidia-ml.so.1 for simulated GPUs: answers NVML's C interface from state files, so that nvidia-ml-py and what is
 * built on it run unchanged and faults can be injected while they run (`cluster gpu NODE INDEX key=value`).
 *
 * /run/hpcval/system.state   driver_version, cuda_version, nvml_version. Without it: DRIVER_NOT_LOADED.
 * /run/hpcval/gpuN.state     one GPU. The keys stand in the functions below; a key that is missing or empty makes its
 *                            calls NOT_SUPPORTED. A number is either `VALUE` or `IDLE/BUSY`. Special keys:
 *                              fail=CODE            every call about this GPU returns this NVML code (15: GPU is lost)
 *                              fail.FUNCTION=CODE   only this call does; in system.state: calls about no GPU
 *                              present=0            the GPU is not there
 * /run/hpcval/gpuN.held      locked while some process holds /dev/nvidiaN open (hold.c): the GPU is busy then.
 *
 * A state is read anew at every call; writers replace the file by renaming. A process is shown only the devices that the
 * kernel lets it open: EPERM (its devices cgroup) hides one, ENXIO (permitted, no driver behind it) does not.
 * Which those are is settled at nvmlInit, as with the real library. Calls that are not here do not exist in the
 * library, as with an old driver (nvidia-ml-py: FunctionNotFound).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    ARGUMENT_VERSION_MISMATCH = 25,
};
enum { SYSTEM = -1, MAX_GPUS = 16, STATE_SIZE = 8192, VALUE_SIZE = 128 };

typedef int result;
typedef unsigned int uint;
typedef unsigned long long ullong;
typedef struct gpu {
    int minor;
} gpu;

static gpu gpus[MAX_GPUS];
static uint gpu_count;
static int users;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---- state files ---- */

/* Past the shim in hold.c: asking must not look like using. */
static int plain_open(const char *path, int flags) { return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0); }

static int read_state(int minor, char *text) {
    char path[64];
    if (minor == SYSTEM)
        snprintf(path, sizeof path, "/run/hpcval/system.state");
    else
        snprintf(path, sizeof path, "/run/hpcval/gpu%d.state", minor);
    int fd = plain_open(path, O_RDONLY);
    if (fd < 0)
        return 0;
    ssize_t size = 0, got;
    while (size < STATE_SIZE - 1 && (got = read(fd, text + size, STATE_SIZE - 1 - size)) > 0)
        size += got;
    close(fd);
    text[size] = '\0';
    return 1;
}

static int find_value(const char *text, const char *key, char *value) {
    size_t length = strlen(key);
    for (const char *line = text; line != NULL && *line; line = strchr(line, '\n'), line += line != NULL) {
        if (strncmp(line, key, length) != 0 || line[length] != '=')
            continue;
        const char *start = line + length + 1;
        size_t size = strcspn(start, "\n");
        if (size == 0 || size >= VALUE_SIZE)
            return 0;
        memcpy(value, start, size);
        value[size] = '\0';
        return 1;
    }
    return 0;
}

static int is_held(int minor) {
    char path[64];
    snprintf(path, sizeof path, "/run/hpcval/gpu%d.held", minor);
    int fd = plain_open(path, O_RDWR);
    if (fd < 0)
        return 0;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int held = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return held;
}

/* The injected failure of a call, else SUCCESS. */
static result injected(const char *text, const char *function) {
    char key[VALUE_SIZE], value[VALUE_SIZE];
    snprintf(key, sizeof key, "fail.%s", function);
    if (find_value(text, key, value) || find_value(text, "fail", value))
        return atoi(value);
    return SUCCESS;
}

/* Every call begins here: initialised, state readable, no failure injected. */
static result begin(int minor, const char *function, char *text) {
    if (users == 0)
        return UNINITIALIZED;
    if (!read_state(minor, text))
        return DRIVER_NOT_LOADED;
    return injected(text, function);
}

static result begin_gpu(const gpu *device, const char *function, char *text) {
    if (device < gpus || device >= gpus + gpu_count)
        return users == 0 ? UNINITIALIZED : INVALID_ARGUMENT;
    return begin(device->minor, function, text);
}

static result number(const char *text, int minor, const char *key, ullong *out) {
    char value[VALUE_SIZE];
    if (!find_value(text, key, value))
        return NOT_SUPPORTED;
    char *busy = strchr(value, '/');
    *out = strtoull(busy != NULL && is_held(minor) ? busy + 1 : value, NULL, 0);
    return SUCCESS;
}

static result copy_out(const char *text, const char *key, char *out, uint size) {
    char value[VALUE_SIZE];
    if (!find_value(text, key, value))
        return NOT_SUPPORTED;
    if (strlen(value) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(out, value);
    return SUCCESS;
}

/* ---- shapes that most calls have ---- */

static result gpu_number(const gpu *device, const char *function, const char *key, ullong *out) {
    char text[STATE_SIZE];
    result code = begin_gpu(device, function, text);
    return code != SUCCESS ? code : number(text, device->minor, key, out);
}

#define NUMBER(function, type, key)                                                                                    \
    result function(gpu *device, type *out) {                                                                          \
        ullong value = 0;                                                                                              \
        result code = out == NULL ? INVALID_ARGUMENT : gpu_number(device, #function, key, &value);                     \
        if (code == SUCCESS)                                                                                           \
            *out = (type)value;                                                                                        \
        return code;                                                                                                   \
    }

#define PAIR(function, first, second)                                                                                  \
    result function(gpu *device, uint *a, uint *b) {                                                                   \
        ullong one = 0, two = 0;                                                                                       \
        result code = gpu_number(device, #function, first, &one);                                                      \
        if (code == SUCCESS)                                                                                           \
            code = gpu_number(device, #function, second, &two);                                                        \
        if (code == SUCCESS) {                                                                                         \
            *a = (uint)one;                                                                                            \
            *b = (uint)two;                                                                                            \
        }                                                                                                              \
        return code;                                                                                                   \
    }

#define TEXT(function, key)                                                                                            \
    result function(gpu *device, char *out, uint size) {                                                               \
        char text[STATE_SIZE];                                                                                         \
        result code = out == NULL ? INVALID_ARGUMENT : begin_gpu(device, #function, text);                             \
        return code != SUCCESS ? code : copy_out(text, key, out, size);                                                \
    }

#define SYSTEM_TEXT(function, key)                                                                                     \
    result function(char *out, uint size) {                                                                            \
        char text[STATE_SIZE];                                                                                         \
        result code = out == NULL ? INVALID_ARGUMENT : begin(SYSTEM, #function, text);                                 \
        return code != SUCCESS ? code : copy_out(text, key, out, size);                                                \
    }

/* One of several keys, chosen by an enumeration's value. */
#define CHOSEN(function, type, out_type, ...)                                                                          \
    result function(gpu *device, type which, out_type *out) {                                                          \
        static const char *const keys[] = {__VA_ARGS__};                                                               \
        ullong value = 0;                                                                                              \
        if (out == NULL || (size_t)which >= sizeof keys / sizeof *keys)                                                \
            return INVALID_ARGUMENT;                                                                                   \
        result code = gpu_number(device, #function, keys[which], &value);                                              \
        if (code == SUCCESS)                                                                                           \
            *out = (out_type)value;                                                                                    \
        return code;                                                                                                   \
    }

/* ---- library and system ---- */

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

/* ---- what a device is ---- */

TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetSerial, "serial")
TEXT(nvmlDeviceGetVbiosVersion, "vbios_version")
NUMBER(nvmlDeviceGetBrand, uint, "brand")
NUMBER(nvmlDeviceGetArchitecture, uint, "architecture")
NUMBER(nvmlDeviceGetNumGpuCores, uint, "cores")
NUMBER(nvmlDeviceGetPersistenceMode, uint, "persistence_mode")
NUMBER(nvmlDeviceGetComputeMode, uint, "compute_mode")
PAIR(nvmlDeviceGetCudaComputeCapability, "compute_capability_major", "compute_capability_minor")
PAIR(nvmlDeviceGetMigMode, "mig_mode", "mig_mode_pending")

typedef struct {
    char bus_id_legacy[16];
    uint domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} pci_info;

result nvmlDeviceGetPciInfo_v3(gpu *device, pci_info *out) {
    char text[STATE_SIZE], value[VALUE_SIZE];
    ullong id = 0, subsystem = 0;
    result code = begin_gpu(device, "nvmlDeviceGetPciInfo_v3", text);
    if (code != SUCCESS)
        return code;
    memset(out, 0, sizeof *out);
    if (!find_value(text, "bus_id", value) || sscanf(value, "%x:%x:%x", &out->domain, &out->bus, &out->device) != 3)
        return NOT_SUPPORTED;
    value[sizeof out->bus_id - 1] = '\0';
    strcpy(out->bus_id, value);
    snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04X:%02X:%02X.0", out->domain & 0xffff, out->bus & 0xff,
             out->device & 0xff);
    number(text, device->minor, "pci_device_id", &id);
    number(text, device->minor, "pci_subsystem_id", &subsystem);
    out->pci_device_id = (uint)id;
    out->pci_subsystem_id = (uint)subsystem;
    return SUCCESS;
}
result nvmlDeviceGetPciInfo_v2(gpu *device, pci_info *out) { return nvmlDeviceGetPciInfo_v3(device, out); }

/* ---- what it does ---- */

static result memory(gpu *device, const char *function, ullong *total, ullong *used, ullong *reserved) {
    result code = gpu_number(device, function, "memory_total", total);
    if (code == SUCCESS)
        code = gpu_number(device, function, "memory_used", used);
    if (code == SUCCESS && gpu_number(device, function, "memory_reserved", reserved) != SUCCESS)
        *reserved = 0;
    return code;
}

result nvmlDeviceGetMemoryInfo(gpu *device, ullong out[3]) {
    ullong total = 0, used = 0, reserved = 0;
    result code = memory(device, "nvmlDeviceGetMemoryInfo", &total, &used, &reserved);
    if (code == SUCCESS) {
        out[0] = total;
        out[2] = used + reserved;
        out[1] = total - out[2];
    }
    return code;
}

typedef struct {
    uint version;
    ullong total, reserved, free, used;
} memory_v2;

result nvmlDeviceGetMemoryInfo_v2(gpu *device, memory_v2 *out) {
    ullong total = 0, used = 0, reserved = 0;
    if (out->version != (sizeof *out | 2 << 24))
        return ARGUMENT_VERSION_MISMATCH;
    result code = memory(device, "nvmlDeviceGetMemoryInfo_v2", &total, &used, &reserved);
    if (code == SUCCESS) {
        out->total = total;
        out->reserved = reserved;
        out->used = used;
        out->free = total - used - reserved;
    }
    return code;
}

result nvmlDeviceGetUtilizationRates(gpu *device, uint out[2]) {
    ullong gpu_percent = 0, memory_percent = 0;
    result code = gpu_number(device, "nvmlDeviceGetUtilizationRates", "utilization_gpu", &gpu_percent);
    if (code == SUCCESS)
        code = gpu_number(device, "nvmlDeviceGetUtilizationRates", "utilization_memory", &memory_percent);
    if (code == SUCCESS) {
        out[0] = (uint)gpu_percent;
        out[1] = (uint)memory_percent;
    }
    return code;
}

NUMBER(nvmlDeviceGetPowerUsage, uint, "power_mw")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, uint, "power_limit_mw")
NUMBER(nvmlDeviceGetPowerManagementLimit, uint, "power_limit_mw")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, uint, "power_default_limit_mw")
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "power_min_limit_mw", "power_max_limit_mw")
NUMBER(nvmlDeviceGetTotalEnergyConsumption, ullong, "energy_mj")
NUMBER(nvmlDeviceGetPerformanceState, uint, "performance_state")
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, ullong, "clocks_event_reasons")
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, ullong, "clocks_event_reasons")
NUMBER(nvmlDeviceGetSupportedClocksEventReasons, ullong, "clocks_event_reasons_supported")
NUMBER(nvmlDeviceGetSupportedClocksThrottleReasons, ullong, "clocks_event_reasons_supported")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, uint, "pcie_generation")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, uint, "pcie_generation_max")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, uint, "pcie_width")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, uint, "pcie_width_max")
NUMBER(nvmlDeviceGetPcieReplayCounter, uint, "pcie_replays")

CHOSEN(nvmlDeviceGetTemperature, uint, uint, "temperature")
CHOSEN(nvmlDeviceGetTemperatureThreshold, uint, uint, "temperature_shutdown", "temperature_slowdown",
       "temperature_memory_max", "temperature_gpu_max")
CHOSEN(nvmlDeviceGetClockInfo, uint, uint, "clock_graphics", "clock_sm", "clock_memory", "clock_video")
CHOSEN(nvmlDeviceGetMaxClockInfo, uint, uint, "clock_graphics_max", "clock_sm_max", "clock_memory_max",
       "clock_video_max")

typedef struct {
    uint version, sensor;
    int temperature;
} temperature_v1;

result nvmlDeviceGetTemperatureV(gpu *device, temperature_v1 *out) {
    ullong value = 0;
    if (out->version != (sizeof *out | 1 << 24))
        return ARGUMENT_VERSION_MISMATCH;
    if (out->sensor != 0)
        return INVALID_ARGUMENT;
    result code = gpu_number(device, "nvmlDeviceGetTemperatureV", "temperature", &value);
    if (code == SUCCESS)
        out->temperature = (int)value;
    return code;
}

typedef struct {
    uint pid;
    ullong memory;
    uint gpu_instance, compute_instance;
} process_info;

static int holds(const char *pid, const char *wanted) {
    char folder[300], link[600], target[256];
    snprintf(folder, sizeof folder, "/proc/%s/fd", pid);
    DIR *descriptors = opendir(folder);
    if (descriptors == NULL)
        return 0;
    int found = 0;
    for (struct dirent *entry; !found && (entry = readdir(descriptors)) != NULL;) {
        snprintf(link, sizeof link, "%s/%s", folder, entry->d_name);
        ssize_t length = readlink(link, target, sizeof target - 1);
        found = length > 0 && (target[length] = '\0', strcmp(target, wanted) == 0);
    }
    closedir(descriptors);
    return found;
}

/* Unlike the real library it sees only processes whose open files the caller may list: its own user's, or all for root. */
result nvmlDeviceGetComputeRunningProcesses_v3(gpu *device, uint *count, process_info *out) {
    char text[STATE_SIZE], wanted[64];
    result code = begin_gpu(device, "nvmlDeviceGetComputeRunningProcesses_v3", text);
    if (code != SUCCESS)
        return code;
    snprintf(wanted, sizeof wanted, "/run/hpcval/gpu%d.held", device->minor);
    DIR *processes = opendir("/proc");
    if (processes == NULL)
        return NOT_SUPPORTED;
    ullong used = 0;
    number(text, device->minor, "memory_used", &used);
    uint room = out == NULL ? 0 : *count, found = 0;
    for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !holds(entry->d_name, wanted))
            continue;
        if (found < room)
            out[found] = (process_info){(uint)atoi(entry->d_name), used, UINT32_MAX, UINT32_MAX};
        found++;
    }
    closedir(processes);
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

/* ---- health ---- */

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

typedef struct {
    uint field, scope;
    int64_t timestamp, latency;
    uint value_type;
    result code;
    ullong value;
} field_value;

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
