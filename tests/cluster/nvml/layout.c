/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Prints the layout of types.h as JSON, by nvidia-ml-py's names: {"structure": {"size": …, "fields": [[offset, size], …]}}.
 */
#include "types.h"

#include <stddef.h>
#include <stdio.h>

static const char *between_structures = "{", *between_fields = "";

static void structure(const char *name, size_t size) {
    printf("%s\n  \"%s\": {\"size\": %zu, \"fields\": [", between_structures, name, size);
    between_structures = "]},";
    between_fields = "";
}

static void field(size_t offset, size_t size) {
    printf("%s[%zu, %zu]", between_fields, offset, size);
    between_fields = ", ";
}

#define STRUCTURE(type, name) structure(name, sizeof(type))
#define FIELD(type, member) field(offsetof(type, member), sizeof(((type *)0)->member))
#define F2(type, a, b) FIELD(type, a), FIELD(type, b)
#define F3(type, a, ...) FIELD(type, a), F2(type, __VA_ARGS__)
#define F4(type, a, ...) FIELD(type, a), F3(type, __VA_ARGS__)
#define F5(type, a, ...) FIELD(type, a), F4(type, __VA_ARGS__)
#define F6(type, a, ...) FIELD(type, a), F5(type, __VA_ARGS__)
#define F7(type, a, ...) FIELD(type, a), F6(type, __VA_ARGS__)

int main(void) {
    STRUCTURE(pci_info, "nvmlPciInfo_t");
    F7(pci_info, bus_id_legacy, domain, bus, device, pci_device_id, pci_subsystem_id, bus_id);
    STRUCTURE(memory_v1, "c_nvmlMemory_t");
    F3(memory_v1, total, free, used);
    STRUCTURE(memory_v2, "c_nvmlMemory_v2_t");
    F5(memory_v2, version, total, reserved, free, used);
    STRUCTURE(utilization, "c_nvmlUtilization_t");
    F2(utilization, gpu, memory);
    STRUCTURE(temperature_v1, "c_nvmlTemperature_v1_t");
    F3(temperature_v1, version, sensor, temperature);
    STRUCTURE(margin_temperature, "c_nvmlMarginTemperature_v1_t");
    F2(margin_temperature, version, margin);
    STRUCTURE(process_info, "c_nvmlProcessInfo_v3_t");
    F4(process_info, pid, memory, gpu_instance, compute_instance);
    STRUCTURE(sram_ecc, "c_nvmlEccSramErrorStatus_v1_t");
    F7(sram_ecc, version, aggregate_parity, aggregate_secded, aggregate_corrected, volatile_parity, volatile_secded,
       volatile_corrected);
    F6(sram_ecc, bucket_l2, bucket_sm, bucket_pcie, bucket_mcu, bucket_other, threshold_exceeded);
    STRUCTURE(row_histogram, "c_nvmlRowRemapperHistogramValues");
    F5(row_histogram, max, high, partial, low, none);
    STRUCTURE(field_value, "c_nvmlFieldValue_t");
    F7(field_value, field, scope, timestamp, latency, value_type, code, value);
    STRUCTURE(fabric_v1, "c_nvmlGpuFabricInfo_t");
    F4(fabric_v1, cluster, status, clique, state);
    STRUCTURE(fabric_v2, "c_nvmlGpuFabricInfo_v2_t");
    F6(fabric_v2, version, cluster, status, clique, state, health_mask);
    STRUCTURE(fabric_v3, "c_nvmlGpuFabricInfo_v3_t");
    F7(fabric_v3, version, cluster, status, clique, state, health_mask, health_summary);
    STRUCTURE(event_data, "c_nvmlEventData_t");
    F5(event_data, device, type, data, gpu_instance, compute_instance);
    STRUCTURE(gpm_support, "c_nvmlGpmSupport_t");
    F2(gpm_support, version, supported);
    STRUCTURE(gpm_metric, "c_nvmlGpmMetric_t");
    F4(gpm_metric, id, code, value, info);
    STRUCTURE(gpm_request, "c_nvmlGpmMetricsGet_t");
    F5(gpm_request, version, count, first, second, metrics);
    printf("]}\n}\n");
    return 0;
}
