/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NVML's structures, as the C interface has them; layout.c prints their layout, a test compares it with nvidia-ml-py's.
 */
#ifndef HPCVAL_TYPES_H
#define HPCVAL_TYPES_H
#include <stdint.h>

typedef unsigned int uint;
typedef unsigned long long ullong;
typedef int result;

/* The version member of a structure of which there are several: its size and its number. */
#define VERSION(type, number) ((uint)(sizeof(type) | (number) << 24))

typedef struct {
    char bus_id_legacy[16];
    uint domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} pci_info;

typedef struct {
    ullong total, free, used;
} memory_v1;

typedef struct {
    uint version;
    ullong total, reserved, free, used;
} memory_v2;

typedef struct {
    uint gpu, memory;
} utilization;

typedef struct {
    uint version, sensor;
    int temperature;
} temperature_v1;

typedef struct {
    uint version;
    int margin;
} margin_temperature;

typedef struct {
    uint pid;
    ullong memory;
    uint gpu_instance, compute_instance;
} process_info;

typedef struct {
    uint version;
    ullong aggregate_parity, aggregate_secded, aggregate_corrected;
    ullong volatile_parity, volatile_secded, volatile_corrected;
    ullong bucket_l2, bucket_sm, bucket_pcie, bucket_mcu, bucket_other;
    uint threshold_exceeded;
} sram_ecc;

typedef struct {
    uint max, high, partial, low, none;
} row_histogram;

typedef struct {
    uint field, scope;
    int64_t timestamp, latency;
    uint value_type;
    result code;
    ullong value;
} field_value;

typedef struct {
    uint8_t cluster[16];
    result status;
    uint32_t clique;
    uint state;
} fabric_v1;

typedef struct {
    uint version;
    uint8_t cluster[16];
    result status;
    uint32_t clique;
    uint state;
    uint32_t health_mask;
} fabric_v2;

typedef struct {
    uint version;
    uint8_t cluster[16];
    result status;
    uint32_t clique;
    uint state;
    uint32_t health_mask;
    uint8_t health_summary;
} fabric_v3;

typedef struct {
    void *device;
    ullong type, data;
    uint gpu_instance, compute_instance;
} event_data;

typedef struct event_set event_set;

typedef struct {
    uint version, supported;
} gpm_support;

typedef struct {
    uint id;
    result code;
    double value;
    struct {
        char *short_name, *long_name, *unit;
    } info;
} gpm_metric;

enum { GPM_METRICS = 477 };

typedef struct gpm_sample gpm_sample;

typedef struct {
    uint version, count;
    gpm_sample *first, *second;
    gpm_metric metrics[GPM_METRICS];
} gpm_request;

#endif
