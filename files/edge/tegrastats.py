# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the program tegrastats of a Jetson says of power and temperature, where sysfs does not."""

from __future__ import annotations

import os
import re
import subprocess
import time
from contextlib import suppress

INTERVAL, PATIENCE = 500, 5.0  # milliseconds between two lines; seconds for the first one
KEPT = 1 << 16  # bytes of output, of which the last line counts
OLD = 5 * INTERVAL / 1000  # seconds after which the last line is no reading of now
LEAST = 1.0  # degrees Celsius from 0: a sensor that is in whole degrees, or not there, says no more in thousandths
COLDEST = -50.0  # degrees Celsius: a part that is switched off reads -256
CONSTANT = re.compile("PMIC", re.IGNORECASE)  # of a Jetson, always 100: github.com/balena-os/balena-jetson/issues/142
NOT_MEASURED = {"off": True, "reason": "it reads the same at all times"}
ZONE = re.compile(r"(?<=\s)([\w-]+)@(-?\d+(?:\.\d+)?)C(?=\s|$)")  # cpu@38.25C
RAIL = re.compile(r"(?<=\s)([A-Z]\w*) (-?\d+)(?:mW)?/-?\d+(?:mW)?(?=\s|$)")  # VDD_IN 4300mW/4280mW, or no mW: now/mean


class Tegrastats:
    """The program, running beside: so that what it reads is read while something is measured."""

    def __init__(self, command: str) -> None:
        """Start it, and wait for its first line; without one there are no readings."""
        self._command, self._said, self._came = command, b"", 0.0
        try:
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                [command, "--interval", str(INTERVAL)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            self._process = None
            return
        assert self._process.stdout  # noqa: S101 - of a pipe
        os.set_blocking(self._process.stdout.fileno(), False)
        deadline = time.monotonic() + PATIENCE
        while self._process.poll() is None and not self._line() and time.monotonic() < deadline:
            time.sleep(0.05)

    def end(self) -> None:
        """End it for certain."""
        if self._process:
            self._process.kill()
            self._process.wait()
            if self._process.stdout:
                self._process.stdout.close()

    def filled(self, row: dict) -> dict:
        """Return a row of sensors, with its rails or zones from here where it has none."""
        told = self._line()
        found = dict(row)
        if not row["rails"]:
            found["rails"] = rails(told, self._command)
        if not any("celsius" in each for each in row["zones"].values()):
            found["zones"] = {**row["zones"], **zones(told, self._command)}
        return found

    def _line(self) -> str:
        """Return the last whole line; none once it has ended or says no more: what it said is no reading of now."""
        if not self._process or not self._process.stdout:
            return ""
        with suppress(BlockingIOError):
            while True:
                block = os.read(self._process.stdout.fileno(), KEPT)
                if not block:
                    return ""
                self._said = (self._said + block)[-KEPT:]
                if b"\n" in block:
                    self._came = time.monotonic()
        lines = self._said.decode("utf-8", "replace").split("\n")
        return lines[-2] if len(lines) > 1 and time.monotonic() - self._came <= OLD else ""


def rails(line: str, path: str) -> dict[str, dict]:
    """Return the power of each rail in watts, as it is now."""
    return {name: power(path, int(milliwatts) / 1000) for name, milliwatts in RAIL.findall(f" {line}")}


def zones(line: str, path: str) -> dict[str, dict]:
    """Return the temperature of each part that is on, in degrees Celsius."""
    return {name: temperature(name, path, float(celsius)) for name, celsius in ZONE.findall(f" {line}")}


def power(path: str, watts: float) -> dict:
    """Return the reading of a rail: less than nothing is no power, and would lower the sum of the others."""
    return {"path": path, "watts": watts} if watts >= 0 else {"path": path, "error": f"{watts:g} W"}


def temperature(name: str, path: str, celsius: float) -> dict:
    """Return the reading of a part: its temperature, that it is off, or that it was not read."""
    if CONSTANT.match(name):
        return {"path": path, **NOT_MEASURED}
    if abs(celsius) < LEAST:
        return {"path": path, "error": f"reads {celsius:g}"}
    return {"path": path, "celsius": celsius} if celsius > COLDEST else {"path": path, "off": True}
