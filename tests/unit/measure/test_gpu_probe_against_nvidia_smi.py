"""The comparison with nvidia-smi, on a log written by hand."""

from __future__ import annotations

import pytest

from tests.measure import gpu_probe_against_nvidia_smi as measure

LOG = """<?xml version="1.0" ?>
<nvidia_smi_log>
  <driver_version>570.133.20</driver_version>
  <cuda_version>12.8</cuda_version>
  <attached_gpus>1</attached_gpus>
  <gpu id="00000000:3B:00.0">
    <product_name>NVIDIA H200</product_name>
    <uuid>GPU-1</uuid>
    <serial>1653721</serial>
    <minor_number>0</minor_number>
    <vbios_version>96.00</vbios_version>
    <persistence_mode>Enabled</persistence_mode>
    <performance_state>P0</performance_state>
    <mig_mode><current_mig>Disabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode>
    <pci>
      <pci_gpu_link_info>
        <pcie_gen><max_link_gen>5</max_link_gen><current_link_gen>1</current_link_gen></pcie_gen>
        <link_widths><max_link_width>16x</max_link_width><current_link_width>16x</current_link_width></link_widths>
      </pci_gpu_link_info>
      <replay_counter>0</replay_counter>
    </pci>
    <clocks_event_reasons>
      <clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
      <clocks_event_reason_sw_power_cap>Not Active</clocks_event_reason_sw_power_cap>
    </clocks_event_reasons>
    <fb_memory_usage><total>143771 MiB</total><used>4 MiB</used></fb_memory_usage>
    <utilization><gpu_util>0 %</gpu_util></utilization>
    <ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Enabled</pending_ecc></ecc_mode>
    <ecc_errors>
      <volatile>
        <sram_correctable>1</sram_correctable>
        <sram_uncorrectable_parity>0</sram_uncorrectable_parity>
        <sram_uncorrectable_secded>1</sram_uncorrectable_secded>
        <dram_correctable>2</dram_correctable>
        <dram_uncorrectable>3</dram_uncorrectable>
      </volatile>
      <aggregate>
        <sram_correctable>0</sram_correctable>
        <sram_uncorrectable_parity>1</sram_uncorrectable_parity>
        <sram_uncorrectable_secded>2</sram_uncorrectable_secded>
        <dram_correctable>0</dram_correctable>
        <dram_uncorrectable>4</dram_uncorrectable>
        <sram_threshold_exceeded>No</sram_threshold_exceeded>
      </aggregate>
    </ecc_errors>
    <remapped_rows>
      <remapped_row_pending>No</remapped_row_pending>
      <row_remapper_histogram>
        <row_remapper_histogram_none>0 bank(s)</row_remapper_histogram_none>
      </row_remapper_histogram>
    </remapped_rows>
    <temperature><gpu_temp>32 C</gpu_temp><memory_temp>N/A</memory_temp></temperature>
    <gpu_power_readings>
      <power_draw>70.50 W</power_draw>
      <current_power_limit>700.00 W</current_power_limit>
    </gpu_power_readings>
    <clocks><sm_clock>345 MHz</sm_clock></clocks>
  </gpu>
</nvidia_smi_log>
"""
DMON = """\
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk     fb   bar1   ccpm
# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz     MB     MB     MB
    0    600     60      -     90      5      0      0      0      0   2619   1900   1000      1      0
    0    620     61      -    100      5      0      0      0      0   2619   1980   1000      1      0
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk     fb   bar1   ccpm
    1      -      -      -      0      0      0      0      0      0      -      -      4      1      0
"""
GPU = {
    "index": 0,
    "minor": 0,
    "uuid": "GPU-1",
    "pci": "00000000:3B:00.0",
    "name": "NVIDIA H200",
    "serial": "1653721",
    "vbios": "96.00",
    "persistence_mode": True,
    "performance_state": 0,
    "mig": {"current": False, "pending": False},
    "memory": {"total": 143771 * 2**20 + 5000, "used": 5 * 2**20},
    "utilization": {"gpu": 0},
    "ecc": {
        "mode": True,
        "pending": True,
        "corrected_volatile": 3,
        "uncorrected_volatile": 4,
        "corrected_aggregate": 0,
        "uncorrected_aggregate": 7,
        "sram_uncorrected_aggregate": 3,
        "sram_threshold_exceeded": False,
    },
    "remapped_rows": {"pending": False, "banks_exhausted": 0},
    "throttle_reasons": ["gpu_idle"],
    "temperature": {"gpu_c": 33, "memory_c": None},
    "power": {"draw_w": 71.2, "limit_w": 700.0},
    "pcie": {"generation": 1, "generation_max": 5, "width": 16, "width_max": 16, "replays": 0},
    "clocks": {"sm_mhz": 345},
}


def facts(**changed):
    return {"driver": {"version": "570.133.20", "cuda": "12.8"}, "gpus": [{**GPU, **changed}]}


def differing(own, log=LOG):
    told = measure.parse_log(log)
    return [row[1] for row in measure.compare(own, told, told) if not row[4]]


@pytest.mark.parametrize(
    ("text", "value"), [("70.50 W", 70.5), ("16x", 16.0), ("P0", 0.0), ("0 bank(s)", 0.0), ("N/A", None), (None, None)]
)
def test_a_number_is_read_whatever_its_unit(text, value):
    assert measure.number(text) == value


@pytest.mark.parametrize(("text", "value"), [("Yes", True), ("Disabled", False), ("N/A", None), ("", None)])
def test_a_flag_is_yes_or_no(text, value):
    assert measure.flag(text) is value


def test_facts_that_agree_do_not_differ():
    assert differing(facts()) == []


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"name": "NVIDIA H100"}, "name"),
        ({"uuid": "GPU-2"}, "uuid"),
        ({"pci": "00000000:3C:00.0"}, "pci"),
        ({"serial": None}, "serial"),
        ({"memory": {"total": 2**36, "used": 5 * 2**20}}, "memory.total"),
        ({"persistence_mode": False}, "persistence_mode"),
        ({"ecc": {**GPU["ecc"], "uncorrected_volatile": 3}}, "ecc.uncorrected_volatile"),
        ({"ecc": {**GPU["ecc"], "sram_uncorrected_aggregate": 7}}, "ecc.sram_uncorrected_aggregate"),
        ({"remapped_rows": {"pending": True, "banks_exhausted": 0}}, "remapped_rows.pending"),
        ({"throttle_reasons": []}, "throttle_reasons"),
        ({"temperature": {"gpu_c": 45, "memory_c": None}}, "temperature.gpu_c"),
        ({"temperature": {"gpu_c": 32, "memory_c": 0}}, "temperature.memory_c"),
        ({"power": {"draw_w": 71.2, "limit_w": 350.0}}, "power.limit_w"),
        ({"pcie": {**GPU["pcie"], "width": 8}}, "pcie.width"),
    ],
)
def test_a_value_that_differs_is_named(changed, field):
    assert differing(facts(**changed)) == [field]


def test_dmon_is_read_by_its_columns():
    samples = measure.parse_dmon(DMON)
    assert [row["sm"] for row in samples[0]] == [90.0, 100.0]
    assert "pwr" not in samples[1][0]


@pytest.mark.parametrize(("util", "agreed"), [(94.0, True), (50.0, False), (None, False)])
def test_means_are_compared(util, agreed):
    own = facts()
    means = {"util": util, "memory_used": 1000 * 2**20, "power_w": 612.0, "sm_clock_mhz": 1950.0}
    own["samples"] = {"gpus": {"GPU-1": {name: {"mean": mean} for name, mean in means.items()}}}
    rows = {row[1]: row[4] for row in measure.compare_samples(own, measure.parse_dmon(DMON))}
    assert rows.pop("mean util") is agreed
    assert set(rows.values()) == {True}


def test_the_table_marks_what_differs():
    table = measure.markdown([("g", "a", "1", "1", True), ("g", "b", "1", "2", False)])
    assert [("differs" in line) for line in table.splitlines()] == [False, False, False, True]
