/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Reading state files.
 */
#define _GNU_SOURCE
#include "state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

gpu gpus[MAX_GPUS];
uint gpu_count;
int users;

/* Past the shim in hold.c: asking must not look like using. */
int plain_open(const char *path, int flags) { return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0); }

int read_state(int minor, char *text) {
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

int find_value(const char *text, const char *key, char *value) {
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

int is_held(int minor) {
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

static int set_for(const char *text, const char *what, const char *function, char *value) {
    char key[VALUE_SIZE];
    snprintf(key, sizeof key, "%s.%s", what, function);
    return find_value(text, key, value) || find_value(text, what, value);
}

result injected(const char *text, const char *function) {
    char value[VALUE_SIZE];
    while (set_for(text, "hang", function, value))
        pause();
    return set_for(text, "fail", function, value) ? atoi(value) : SUCCESS;
}

result begin(int minor, const char *function, char *text) {
    if (users == 0)
        return UNINITIALIZED;
    if (!read_state(minor, text))
        return DRIVER_NOT_LOADED;
    return injected(text, function);
}

result begin_gpu(const gpu *device, const char *function, char *text) {
    if (device < gpus || device >= gpus + gpu_count)
        return users == 0 ? UNINITIALIZED : INVALID_ARGUMENT;
    return begin(device->minor, function, text);
}

result pick(const char *text, int held, const char *key, ullong *out) {
    char value[VALUE_SIZE];
    if (!find_value(text, key, value))
        return NOT_SUPPORTED;
    char *busy = strchr(value, '/');
    *out = strtoull(busy != NULL && held ? busy + 1 : value, NULL, 0);
    return SUCCESS;
}

result number(const char *text, int minor, const char *key, ullong *out) {
    return pick(text, minor != SYSTEM && is_held(minor), key, out);
}

result gpu_number(const gpu *device, const char *function, const char *key, ullong *out) {
    char text[STATE_SIZE];
    result code = begin_gpu(device, function, text);
    return code != SUCCESS ? code : number(text, device->minor, key, out);
}

result copy_out(const char *text, const char *key, char *out, uint size) {
    char value[VALUE_SIZE];
    if (!find_value(text, key, value))
        return NOT_SUPPORTED;
    if (strlen(value) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(out, value);
    return SUCCESS;
}
