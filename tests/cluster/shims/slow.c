/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A slow share (loaded by /etc/ld.so.preload): each write and read of a MiB or more at an offset, by which the kit
 * measures throughput, takes a fifth of a second longer, so that there are 5 MiB/s at most.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#define MIB (1 << 20)

static void late(size_t bytes) {
    struct timespec left = {.tv_nsec = 200 * 1000 * 1000};
    if (bytes >= MIB)
        nanosleep(&left, NULL);
}

static size_t whole(const struct iovec *parts, int count) {
    size_t bytes = 0;
    for (int index = 0; index < count; index++)
        bytes += parts[index].iov_len;
    return bytes;
}

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))
#define WRITE(name)                                                                                                    \
    ssize_t name(int fd, const void *from, size_t bytes, off64_t offset) {                                             \
        late(bytes);                                                                                                   \
        return REAL(name)(fd, from, bytes, offset);                                                                    \
    }
#define READ(name)                                                                                                     \
    ssize_t name(int fd, const struct iovec *parts, int count, off64_t offset) {                                       \
        late(whole(parts, count));                                                                                     \
        return REAL(name)(fd, parts, count, offset);                                                                   \
    }
#define READ_WITH_FLAGS(name)                                                                                          \
    ssize_t name(int fd, const struct iovec *parts, int count, off64_t offset, int flags) {                            \
        late(whole(parts, count));                                                                                     \
        return REAL(name)(fd, parts, count, offset, flags);                                                            \
    }

WRITE(pwrite)
WRITE(pwrite64)
READ(preadv)
READ(preadv64)
READ_WITH_FLAGS(preadv2)
READ_WITH_FLAGS(preadv64v2)
