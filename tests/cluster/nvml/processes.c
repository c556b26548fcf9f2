/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The processes on a GPU.
 *
 * Unlike the real library it finds only processes whose open files the caller may list: its own user's, or all for root.
 * The keys processes_compute and processes_graphics, `PID:BYTES,…`, add others.
 */
#define _GNU_SOURCE
#include "state.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    process_info *out;
    uint room, found;
} list;

static void add(list *processes, uint pid, ullong memory) {
    if (processes->found < processes->room)
        processes->out[processes->found] = (process_info){pid, memory, UINT32_MAX, UINT32_MAX};
    processes->found++;
}

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

static void add_holders(list *processes, const char *text, int minor) {
    char wanted[64];
    ullong used = 0;
    DIR *entries = opendir("/proc");
    if (entries == NULL)
        return;
    snprintf(wanted, sizeof wanted, "/run/hpcval/gpu%d.held", minor);
    number(text, minor, "memory_used", &used);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && holds(entry->d_name, wanted))
            add(processes, (uint)atoi(entry->d_name), used);
    closedir(entries);
}

static void add_named(list *processes, const char *text, const char *key) {
    char value[VALUE_SIZE], *rest = NULL;
    if (!find_value(text, key, value))
        return;
    for (char *word = strtok_r(value, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        char *memory = strchr(word, ':');
        add(processes, (uint)atoi(word), memory == NULL ? 0 : strtoull(memory + 1, NULL, 0));
    }
}

static result running(gpu *device, const char *function, const char *key, int holders, uint *count, process_info *out) {
    char text[STATE_SIZE];
    result code = begin_gpu(device, function, text);
    if (code != SUCCESS)
        return code;
    list processes = {out, out == NULL ? 0 : *count, 0};
    if (holders)
        add_holders(&processes, text, device->minor);
    add_named(&processes, text, key);
    *count = processes.found;
    return processes.found > processes.room ? INSUFFICIENT_SIZE : SUCCESS;
}

result nvmlDeviceGetComputeRunningProcesses_v3(gpu *device, uint *count, process_info *out) {
    return running(device, "nvmlDeviceGetComputeRunningProcesses_v3", "processes_compute", 1, count, out);
}
result nvmlDeviceGetGraphicsRunningProcesses_v3(gpu *device, uint *count, process_info *out) {
    return running(device, "nvmlDeviceGetGraphicsRunningProcesses_v3", "processes_graphics", 0, count, out);
}
result nvmlDeviceGetMPSComputeRunningProcesses_v3(gpu *device, uint *count, process_info *out) {
    return running(device, "nvmlDeviceGetMPSComputeRunningProcesses_v3", "processes_mps", 0, count, out);
}
