/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * hold.so: stands in for the kernel driver behind /dev/nvidiaN of a simulated GPU (loaded by /etc/ld.so.preload).
 *
 * The device files carry NVIDIA's own numbers (195:N), so that Slurm's devices cgroup confines them as at a real site:
 * the kernel answers EPERM to a job that was not given the device. With no driver behind the number, whoever IS allowed
 * gets ENXIO. This shim asks the kernel first and leaves a refusal as it is; where the kernel permits, it opens
 * /run/hpcval/gpuN.held instead and takes a shared lock on it. The lock belongs to the open file, so it lasts exactly
 * as long as some process holds the device open, however that process ends, and the stand-in NVML library can see it
 * from any process of the node. A statically linked program is not caught: it sees ENXIO.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef int (*openat_call)(int, const char *, int, ...);

static int gpu_index(const char *path) {
    static const char prefix[] = "/dev/nvidia";
    if (path == NULL || strncmp(path, prefix, sizeof prefix - 1) != 0)
        return -1;
    const char *digits = path + sizeof prefix - 1;
    if (!isdigit((unsigned char)digits[0]) || (digits[1] && !(isdigit((unsigned char)digits[1]) && !digits[2])))
        return -1;
    return digits[1] ? (digits[0] - '0') * 10 + digits[1] - '0' : digits[0] - '0';
}

static int hold(openat_call real, int index, int flags) {
    char path[64];
    snprintf(path, sizeof path, "/run/hpcval/gpu%d.held", index);
    int fd = real(AT_FDCWD, path, O_RDWR | (flags & O_CLOEXEC));
    if (fd < 0)
        return fd;
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

static int open_device(int directory, const char *path, int flags, mode_t mode) {
    static openat_call real;
    if (real == NULL)
        real = (openat_call)dlsym(RTLD_NEXT, "openat64");
    int fd = real(directory, path, flags, mode);
    int index = gpu_index(path);
    if (index < 0 || (flags & O_PATH) || (fd < 0 && errno != ENXIO && errno != ENODEV))
        return fd;
    if (fd >= 0)
        close(fd);
    return hold(real, index, flags);
}

#define MODE                                                                                                           \
    mode_t mode = 0;                                                                                                   \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                                               \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }

int open(const char *path, int flags, ...) { MODE return open_device(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return open_device(AT_FDCWD, path, flags, mode); }
int openat(int fd, const char *path, int flags, ...) { MODE return open_device(fd, path, flags, mode); }
int openat64(int fd, const char *path, int flags, ...) { MODE return open_device(fd, path, flags, mode); }
