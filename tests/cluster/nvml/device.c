/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a GPU is and what it does.
 */
#define _GNU_SOURCE
#include "state.h"

#include <stdio.h>
#include <string.h>

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
NUMBER(nvmlDeviceGetNumaNodeId, int, "numa_node")
PAIR(nvmlDeviceGetCudaComputeCapability, "compute_capability_major", "compute_capability_minor")
PAIR(nvmlDeviceGetMigMode, "mig_mode", "mig_mode_pending")

int parse_pci(const char *address, pci_info *out) {
    memset(out, 0, sizeof *out);
    if (strlen(address) >= sizeof out->bus_id || sscanf(address, "%x:%x:%x", &out->domain, &out->bus, &out->device) != 3)
        return 0;
    strcpy(out->bus_id, address);
    snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04X:%02X:%02X.0", out->domain & 0xffff, out->bus & 0xff,
             out->device & 0xff);
    return 1;
}

result nvmlDeviceGetPciInfo_v3(gpu *device, pci_info *out) {
    char text[STATE_SIZE], value[VALUE_SIZE];
    ullong id = 0, subsystem = 0;
    result code = begin_gpu(device, "nvmlDeviceGetPciInfo_v3", text);
    if (code != SUCCESS)
        return code;
    if (!find_value(text, "bus_id", value) || !parse_pci(value, out))
        return NOT_SUPPORTED;
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

result nvmlDeviceGetMemoryInfo(gpu *device, memory_v1 *out) {
    ullong total = 0, used = 0, reserved = 0;
    result code = memory(device, "nvmlDeviceGetMemoryInfo", &total, &used, &reserved);
    if (code == SUCCESS) {
        out->total = total;
        out->used = used + reserved;
        out->free = total - out->used;
    }
    return code;
}

result nvmlDeviceGetMemoryInfo_v2(gpu *device, memory_v2 *out) {
    ullong total = 0, used = 0, reserved = 0;
    if (out->version != VERSION(memory_v2, 2))
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

result nvmlDeviceGetUtilizationRates(gpu *device, utilization *out) {
    ullong gpu_percent = 0, memory_percent = 0;
    result code = gpu_number(device, "nvmlDeviceGetUtilizationRates", "utilization_gpu", &gpu_percent);
    if (code == SUCCESS)
        code = gpu_number(device, "nvmlDeviceGetUtilizationRates", "utilization_memory", &memory_percent);
    if (code == SUCCESS) {
        *out = (utilization){(uint)gpu_percent, (uint)memory_percent};
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

result nvmlDeviceGetTemperatureV(gpu *device, temperature_v1 *out) {
    ullong value = 0;
    if (out->version != VERSION(temperature_v1, 1))
        return ARGUMENT_VERSION_MISMATCH;
    if (out->sensor != 0)
        return INVALID_ARGUMENT;
    result code = gpu_number(device, "nvmlDeviceGetTemperatureV", "temperature", &value);
    if (code == SUCCESS)
        out->temperature = (int)value;
    return code;
}

result nvmlDeviceGetMarginTemperature(gpu *device, margin_temperature *out) {
    ullong value = 0;
    if (out->version != VERSION(margin_temperature, 1))
        return ARGUMENT_VERSION_MISMATCH;
    result code = gpu_number(device, "nvmlDeviceGetMarginTemperature", "temperature_margin", &value);
    if (code == SUCCESS)
        out->margin = (int)value;
    return code;
}
