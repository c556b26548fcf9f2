# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the result of an edge host has, each a number or a text that says why there is none. Pure. PRIVATE."""

from __future__ import annotations

import base64
import binascii
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import npy, payload, sensed

Json = dict[str, t.Any]
NEAR = 0.02  # of the deviation of the cluster's answers
ANSWERS = 1000  # at least: of a few, all may be near by chance
ROUNDING = 1e-6  # of a time that was divided by and multiplied with
CPU_SHARE, RUN_DELAY = 0.95, 0.01  # of the time, as files/edge/disturbance.py
ONE_CPU = 1.05  # of the time: more than one thread has, but for the clocks' difference
ASCENDING = ("p50_ms", "p95_ms", "p99_ms", "max_ms")
LATENCIES = (*ASCENDING, "per_second")
SAMPLES = 2  # of the sensors: before and after
SLACK = 2.0  # of a time on average to the longest one: between two inferences little is done
MODELS, OF_MODELS = ("float", "pruned", "int8"), ("p50_ms", "p99_ms")


class Figures:
    """The result of a host; what it does not have is a text with the reason."""

    def __init__(self, result: t.Any, why: str, limits: Json) -> None:
        """Keep the result; `why` there is none, if so; `limits`: of the bundle."""
        self.result = result if isinstance(result, dict) else None
        self.why = why
        self.asked: t.Any = limits.get("soak_seconds")
        self.rails: t.Any = limits.get("power_rails")

    def _at(self, *keys: str) -> t.Any:
        found: t.Any = self.result
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def number(self, *keys: str, per: float = 1.0) -> t.Any:
        """Return a number that is 0 or more."""
        if self.result is None:
            return self.why
        found = self._at(*keys)
        if not scalars.is_number(found) or found < 0:
            return f"{'.'.join(keys)} is {scalars.describe(found)}; expected a number, 0 or more"
        return found / per if per != 1.0 else found

    def positive(self, *keys: str, per: float = 1.0) -> t.Any:
        """Return a number above 0, which would be within every upper bound."""
        found = self._at(*keys)
        if self.result is not None and (not scalars.is_number(found) or found <= 0):
            told = f"{'.'.join(keys)} is {scalars.describe(found)}"
            return f"{told}{', which no device has' if scalars.is_number(found) else ''}; expected a number above 0"
        return self.number(*keys, per=per)

    def text(self, name: str, otherwise: t.Any = None) -> str:
        """Return a text that the result has, or else the look."""
        found = self._at(name) or otherwise
        if isinstance(found, str):
            return str(scalars.bounded(found))
        return self.why if self.result is None else f"{name} is {scalars.describe(found)}; expected text"

    def board(self, look: Json) -> str | None:
        """Return what the board calls itself; None for a PC."""
        found = self._at("board") or look.get("board")
        return str(scalars.bounded(found)) if isinstance(found, str) else None

    def power_mode(self) -> str | None:
        """Return the power mode; None where there is none, or none is known."""
        found = self._at("power_mode")
        return str(scalars.bounded(found)) if isinstance(found, str) else None

    def as_powered(self, asked: t.Any) -> bool | str:
        """Return whether the power mode is the one asked for, if one is; else why that is not known."""
        found = self.power_mode()
        if self.result is None:
            return self.why
        if asked is None:
            return True
        if not isinstance(asked, str):
            return f"limits.power_mode is {scalars.describe(asked)}; expected text"
        if found is None:
            return f"the device tells no power mode; expected {scalars.bounded(asked)}"
        if found.isdigit() and not asked.isdigit():
            return f"the power mode is number {found}, whose name is not known; expected {scalars.bounded(asked)}"
        return found == asked

    def repeats(self) -> int | str:
        """Return how many measurements were disturbed before the one that counts."""
        found = self._at("repeats")
        if self.result is None:
            return self.why
        return len(found) if isinstance(found, list) else f"repeats is {scalars.describe(found)}; expected a list"

    def disturbance(self, of: str) -> str | None:
        """Return why a measurement's times say nothing; None only if it says that nothing disturbed it."""
        if self.result is None:
            return self.why
        calm, by = self._at(of, "undisturbed"), self._at(of, "disturbed_by")
        if calm is False:
            return f"disturbed: {scalars.bounded(by) if isinstance(by, str) and by else 'it does not say by what'}"
        if calm is not True:
            return f"{of}.undisturbed is {scalars.describe(calm)}; expected true or false"
        return self._contradiction(of)

    def _contradiction(self, of: str) -> str | None:
        """Return which figure of a measurement says that it was disturbed, though it says that it was not."""
        share, delay, throttled = (self._at(of, name) for name in ("cpu_share", "run_delay", "throttled_periods"))
        least = CPU_SHARE if delay is not None else 1 - RUN_DELAY
        if not scalars.is_number(share) or not least <= share <= ONE_CPU:
            name, value, expected = "cpu_share", share, f"{least:g} to {ONE_CPU:g}"
        elif delay is not None and (not scalars.is_number(delay) or not 0 <= delay <= RUN_DELAY):
            name, value, expected = "run_delay", delay, f"0 to {RUN_DELAY:g}"
        elif throttled is not None and (not scalars.is_number(throttled) or throttled != 0):
            name, value, expected = "throttled_periods", throttled, "0"
        else:
            return None
        return f"disturbed: {of}.{name} is {scalars.describe(value)}; expected {expected}"

    def latencies(self) -> Json:
        """Return the times of an inference, unless something disturbed them."""
        why = self.disturbance("latency") or self._too_short() or self._impossible()
        return {name: why or self.positive("latency", name) for name in LATENCIES}

    def _too_short(self) -> str | None:
        """Return why the times are fewer than were asked for, or of less time."""
        count, rate = self.positive("latency", "inferences"), self.positive("latency", "per_second")
        if isinstance(count, str) or isinstance(rate, str):
            return str(count if isinstance(count, str) else rate)
        if count < payload.COUNT:
            return f"latency.inferences is {count}; expected {payload.COUNT} at least"
        if count / rate < payload.SECONDS * (1 - ROUNDING):
            return f"its inferences took {count / rate:.3g} s; expected {payload.SECONDS:g} s at least"
        return None

    def _disordered(self, where: tuple[str, ...], names: tuple[str, ...]) -> str | None:
        """Return which of the times at ``where``, whose ``names`` ascend, contradict each other."""
        times = [(name, self._at(*where, name)) for name in names]
        for (lower, less), (upper, more) in zip(times, times[1:]):
            if scalars.is_number(less) and scalars.is_number(more) and less > more:
                told = f"{lower} is {scalars.show(less)} and {upper} is {scalars.show(more)}"
                return f"{'.'.join(where)}.{told}: they contradict each other"
        return None

    def _impossible(self) -> str | None:
        """Return why the times of an inference cannot be had together; how many there are a second is a number."""
        most, rate = self._at("latency", "max_ms"), self._at("latency", "per_second")
        if scalars.is_number(most) and 0 < most * rate * SLACK < 1000:
            told = f"latency.per_second is {scalars.show(rate)} and max_ms is {scalars.show(most)}"
            return f"{told}: they contradict each other"
        return self._disordered(("latency",), ASCENDING)

    def models(self) -> Json:
        """Return the times of each model, measured in turn."""
        why = self.disturbance("compared")
        return {model: self._of_model(model, why) for model in MODELS}

    def _of_model(self, model: str, why: str | None) -> Json:
        why = why or self._disordered(("models", model), OF_MODELS)
        return {name: why or self.positive("models", model, name) for name in OF_MODELS}

    def near(self, truth: npy.Floats | str) -> float | str:
        """Return the share of answers that are the cluster's."""
        if self.result is None:
            return self.why
        if isinstance(truth, str):
            return truth
        if not truth.shape or truth.shape[0] < ANSWERS:
            answers = truth.shape[0] if truth.shape else 1
            return f"the cluster's answers to compare with are {answers}; expected {ANSWERS} at least"
        encoded, shape = self._at("answers_b64"), self._at("answers_shape")
        if not isinstance(encoded, str):
            return f"answers_b64 is {scalars.describe(encoded)}; expected text"
        try:
            return npy.near(npy.floats(base64.b64decode(encoded, validate=True), shape), truth, NEAR)
        except (ValueError, binascii.Error) as exc:
            return f"its answers cannot be compared: {exc}"

    def soak(self) -> Json:
        """Return what the sensors said while it computed."""
        quantities = {
            "temperature_c": ("temperature", "highest"),
            "throttle_events": ("throttle", "events"),
            "power_w": ("power", "mean"),
        }
        energy = "millijoules_per_inference"
        why = self._no_soak()
        if why:
            return dict.fromkeys([*quantities, energy], why)
        found = {name: self._sensed(*keys) for name, keys in quantities.items()}
        known = scalars.is_number(self._at("soak", energy))
        return {**found, energy: self.positive("soak", energy) if known else self._no_energy()}

    def _no_soak(self) -> str | None:
        if self.result is None:
            return self.why
        found, asked = self._at("soak"), self.asked
        if not scalars.is_number(asked):
            return f"how long the soak was to be is not known: soak_seconds is {scalars.describe(asked)}"
        if found is None:
            return f"there was no soak: the profile's soak_seconds is {scalars.show(asked)}"
        if not isinstance(found, dict):
            return f"soak is {scalars.describe(found)}; expected an object"
        return self._too_short_a_soak(asked)

    def _too_short_a_soak(self, asked: float) -> str | None:
        seconds, inferences = self.positive("soak", "seconds"), self.positive("soak", "inferences")
        if isinstance(seconds, str) or isinstance(inferences, str):
            return str(seconds if isinstance(seconds, str) else inferences)
        if seconds < asked:
            return f"soak.seconds is {scalars.show(seconds)}; expected {scalars.show(asked)} at least"
        samples = self._at("soak", "samples")
        if not scalars.is_number(samples) or samples < SAMPLES:
            return f"soak.samples is {scalars.describe(samples)}; expected {SAMPLES} at least"
        return None

    def _sensed(self, quantity: str, key: str) -> t.Any:
        """Return a sensor's value. If it could not be read all the time, what was read is only part of the reason."""
        part = self._at("soak", quantity)
        why = sensed.part(part, quantity)
        if why:
            return why
        error, value = part["error"], part.get(key)
        if error is not None:
            read = f"; read: {scalars.show(value)}" if scalars.is_number(value) else ""
            return f"{scalars.bounded(error)}{read}"
        found = (self.number if quantity == "throttle" else self.positive)("soak", quantity, key)
        return found if isinstance(found, str) else sensed.DOUBTS[quantity](part, self.rails) or found

    def _no_energy(self) -> str:
        errors = [self._at("soak", name, "error") for name in ("power", "energy")]
        told = "; ".join(str(scalars.bounded(error)) for error in errors if isinstance(error, str) and error)
        return told or "its result does not have the energy of an inference"
