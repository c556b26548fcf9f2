/* Copyright (c) 2026, the mlops.hpc_validation authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NVLinks, the fabric they make, and how two GPUs are connected otherwise.
 *
 * nvlinks=NUMBER, nvlink_peer=PCI_ADDRESS, nvlink_peer_type, nvlink_version; of one link: nvlink.LINK.state (1 where
 * missing) and the counters nvlink.LINK.replay, .recovery, .crc_flit, .crc_data, .ecc_data (0 where missing).
 */
#define _GNU_SOURCE
#include "state.h"

#include <stdio.h>
#include <string.h>

enum { MAX_LINKS = 36 };

/* A value of one link; one that is missing has its usual value. */
static ullong of_link(const char *text, uint link, const char *what, ullong usual) {
    char key[64];
    ullong value = usual;
    snprintf(key, sizeof key, "nvlink.%u.%s", link, what);
    pick(text, 0, key, &value);
    return value;
}

static result begin_link(gpu *device, const char *function, uint link, char *text) {
    ullong count = 0;
    if (link >= MAX_LINKS)
        return INVALID_ARGUMENT;
    result code = begin_gpu(device, function, text);
    if (code == SUCCESS)
        code = pick(text, 0, "nvlinks", &count);
    return code == SUCCESS && link >= count ? NOT_SUPPORTED : code;
}

static result begin_active_link(gpu *device, const char *function, uint link, char *text) {
    result code = begin_link(device, function, link, text);
    return code == SUCCESS && of_link(text, link, "state", 1) == 0 ? NOT_SUPPORTED : code;
}

result nvmlDeviceGetNvLinkState(gpu *device, uint link, uint *active) {
    char text[STATE_SIZE];
    result code = begin_link(device, "nvmlDeviceGetNvLinkState", link, text);
    if (code == SUCCESS)
        *active = (uint)of_link(text, link, "state", 1);
    return code;
}

result nvmlDeviceGetNvLinkVersion(gpu *device, uint link, uint *out) {
    char text[STATE_SIZE];
    ullong value = 0;
    result code = begin_link(device, "nvmlDeviceGetNvLinkVersion", link, text);
    if (code == SUCCESS)
        code = pick(text, 0, "nvlink_version", &value);
    if (code == SUCCESS)
        *out = (uint)value;
    return code;
}

result nvmlDeviceGetNvLinkRemotePciInfo_v2(gpu *device, uint link, pci_info *out) {
    char text[STATE_SIZE], address[VALUE_SIZE];
    result code = begin_active_link(device, "nvmlDeviceGetNvLinkRemotePciInfo_v2", link, text);
    if (code != SUCCESS)
        return code;
    return find_value(text, "nvlink_peer", address) && parse_pci(address, out) ? SUCCESS : NOT_SUPPORTED;
}

result nvmlDeviceGetNvLinkRemoteDeviceType(gpu *device, uint link, uint *out) {
    char text[STATE_SIZE];
    ullong value = 0;
    result code = begin_active_link(device, "nvmlDeviceGetNvLinkRemoteDeviceType", link, text);
    if (code == SUCCESS)
        code = pick(text, 0, "nvlink_peer_type", &value);
    if (code == SUCCESS)
        *out = (uint)value;
    return code;
}

result nvmlDeviceGetNvLinkErrorCounter(gpu *device, uint link, uint counter, ullong *out) {
    static const char *const names[] = {"replay", "recovery", "crc_flit", "crc_data", "ecc_data"};
    char text[STATE_SIZE];
    if (counter >= sizeof names / sizeof *names)
        return INVALID_ARGUMENT;
    result code = begin_active_link(device, "nvmlDeviceGetNvLinkErrorCounter", link, text);
    if (code == SUCCESS)
        *out = of_link(text, link, names[counter], 0);
    return code;
}

/* All versions of the structure from the fullest one. */
static result fabric(gpu *device, const char *function, fabric_v3 *out) {
    char text[STATE_SIZE];
    ullong state = 0, status = 0, mask = 0, health = 0;
    result code = begin_gpu(device, function, text);
    if (code == SUCCESS)
        code = pick(text, 0, "fabric_state", &state);
    if (code != SUCCESS)
        return code;
    pick(text, 0, "fabric_status", &status);
    pick(text, 0, "fabric_health_mask", &mask);
    pick(text, 0, "fabric_health", &health);
    *out = (fabric_v3){.status = (result)status,
                       .state = (uint)state,
                       .health_mask = (uint32_t)mask,
                       .health_summary = (uint8_t)health};
    return SUCCESS;
}

result nvmlDeviceGetGpuFabricInfo(gpu *device, fabric_v1 *out) {
    fabric_v3 full;
    result code = fabric(device, "nvmlDeviceGetGpuFabricInfo", &full);
    if (code == SUCCESS)
        *out = (fabric_v1){.status = full.status, .state = full.state};
    return code;
}

result nvmlDeviceGetGpuFabricInfoV(gpu *device, void *out) {
    uint version = *(uint *)out;
    if (version != VERSION(fabric_v2, 2) && version != VERSION(fabric_v3, 3))
        return ARGUMENT_VERSION_MISMATCH;
    fabric_v3 full;
    result code = fabric(device, "nvmlDeviceGetGpuFabricInfoV", &full);
    if (code != SUCCESS)
        return code;
    full.version = version;
    if (version == VERSION(fabric_v3, 3))
        *(fabric_v3 *)out = full;
    else
        *(fabric_v2 *)out = (fabric_v2){
            .version = version, .status = full.status, .state = full.state, .health_mask = full.health_mask};
    return SUCCESS;
}

result nvmlDeviceGetTopologyCommonAncestor(gpu *one, gpu *other, uint *level) {
    ullong value = 0, unused = 0;
    result code = gpu_number(one, "nvmlDeviceGetTopologyCommonAncestor", "topology_level", &value);
    if (code == SUCCESS)
        code = gpu_number(other, "nvmlDeviceGetTopologyCommonAncestor", "topology_level", &unused);
    if (code == SUCCESS)
        *level = one == other ? 0 : (uint)value;
    return code;
}
