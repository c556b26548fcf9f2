/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What every part of the stand-in library uses: state files, and the shapes that most calls have.
 *
 * /run/hpcval/system.state   driver_version, cuda_version, nvml_version. Without it: DRIVER_NOT_LOADED.
 * /run/hpcval/gpuN.state     one GPU. The keys stand where they are read; a key that is missing or empty makes its calls
 *                            NOT_SUPPORTED. A number is either `VALUE` or `IDLE/BUSY`. Special keys:
 *                              fail=CODE            every call about this GPU returns this NVML code (15: GPU is lost)
 *                              fail.FUNCTION=CODE   only this call does; in system.state: calls about no GPU
 *                              hang=1               every call about this GPU blocks for ever
 *                              hang.FUNCTION=1      only this call does; in system.state: calls about no GPU
 *                              present=0            the GPU is not there
 * /run/hpcval/gpuN.held      locked while some process holds /dev/nvidiaN open (hold.c): the GPU is busy then.
 *
 * A state is read anew at every call; writers replace the file by renaming.
 */
#ifndef HPCVAL_STATE_H
#define HPCVAL_STATE_H
#include "types.h"

#include <stddef.h>

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    ARGUMENT_VERSION_MISMATCH = 25,
    MEMORY = 20,
};
enum { SYSTEM = -1, MAX_GPUS = 16, STATE_SIZE = 16384, VALUE_SIZE = 256 };

typedef struct gpu {
    int minor;
} gpu;

/* Those that this process may use, settled at nvmlInit. */
extern gpu gpus[MAX_GPUS];
extern uint gpu_count;
extern int users;

int plain_open(const char *path, int flags);
int read_state(int minor, char *text);
int find_value(const char *text, const char *key, char *value);
int is_held(int minor);

/* The injected failure of a call, else SUCCESS; never returns where the call is to hang. */
result injected(const char *text, const char *function);

/* Every call begins with one of these: initialised, a known GPU, state readable, no failure injected. */
result begin(int minor, const char *function, char *text);
result begin_gpu(const gpu *device, const char *function, char *text);

result pick(const char *text, int held, const char *key, ullong *out);
result number(const char *text, int minor, const char *key, ullong *out);
result gpu_number(const gpu *device, const char *function, const char *key, ullong *out);
result copy_out(const char *text, const char *key, char *out, uint size);

/* An address such as 00000000:10:00.0; 0 where it is none. */
int parse_pci(const char *address, pci_info *out);

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

#endif
