/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * clock.so: the wall clock of one node, off by the seconds that stand in /run/hpcval/clock (loaded by
 * /etc/ld.so.preload). The nodes share this machine's kernel, so that none has a clock of its own.
 *
 * A process that began with the shim sees every later change of the file at once, as if the clock had been set. Only
 * Python is shown it: Slurm's own processes wait until absolute times of the kernel's clock, which stays as it is, and
 * the times of files are the kernel's too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const char *seconds_off;

__attribute__((constructor)) static void find(void) {
    if (strncmp(program_invocation_short_name, "python", 6) != 0)
        return;
    int fd = open("/run/hpcval/clock", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    void *page = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED)
        seconds_off = page;
}

static time_t off(void) { return seconds_off == NULL ? 0 : (time_t)strtol(seconds_off, NULL, 10); }

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int answer = real(clock, now);
    if (answer == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += off();
    return answer;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    int answer = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return answer;
}

time_t time(time_t *where) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (where != NULL)
        *where = precise.tv_sec;
    return precise.tv_sec;
}
