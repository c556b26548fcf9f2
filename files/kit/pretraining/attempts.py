# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do something that a distant service may refuse for a while: again and again, within a deadline, and counted."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from typing import Callable, TypeVar

from kit.errors import KitError

FIRST_WAIT, LONGEST_WAIT = 0.25, 8.0  # seconds between two attempts, doubled each time
DAMAGED_TRIES = 3  # how often content may arrive damaged: a cable does it once, a broken store always

# Why a store did not do what it was asked, and what became of an attempt that failed.
UNREACHABLE = "unreachable"  # no answer, or an answer that asks for patience: worth another attempt
DAMAGED = "damaged"  # content that is not what it should be: worth a few more attempts
REFUSED = "refused"
MISSING = "missing"
CONFLICT = "conflict"  # another object has this name
CREDENTIALS = "credentials"
STOPPED = "stopped"
LOCAL = "local"  # this machine's disk, not the store
AGAIN = (UNREACHABLE, DAMAGED)

Done = TypeVar("Done")


class StoreError(KitError):
    """A store did not do what it was asked; ``reason`` is one of this module's words."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class StoppedError(Exception):
    """The store was stopped amid an attempt."""


class NoTimeError(TimeoutError):
    """The deadline of the operation came amid an attempt."""


@dataclass(frozen=True)
class Failure:
    """What an exception means: a reason, the text for people, and what to do about it."""

    reason: str
    text: str
    advice: str = ""


class Clock:
    """The time that an operation has left, for it and for the attempt that runs."""

    def __init__(self, deadline: float, stopped: threading.Event, now: Callable[[], float] = time.monotonic) -> None:
        """Start; ``deadline`` in seconds from now."""
        self._now, self._stopped = now, stopped
        self._begun = now()
        self._until = self._begun + deadline

    def left(self) -> float:
        """Return the seconds left, never below zero."""
        return max(0.0, self._until - self._now())

    def passed(self) -> float:
        """Return the seconds since the start."""
        return self._now() - self._begun

    def check(self) -> None:
        """Raise StoppedError if the store was stopped, NoTimeError after the deadline."""
        if self._stopped.is_set():
            raise StoppedError
        if self.left() <= 0:
            raise NoTimeError("the deadline has passed")


@dataclass
class Patience:
    """How long a store keeps trying, and how often it had to."""

    deadline: float  # seconds for one operation with all its attempts
    retries: int = 0  # attempts after the first, of all operations
    stopped: threading.Event = field(default_factory=threading.Event)
    now: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = random.random  # 0 to 1: many nodes do not come back at the same moment
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def persist(
        self, what: str, where: str, attempt: Callable[[Clock], Done], explain: Callable[[Exception], Failure]
    ) -> Done:
        """Return what ``attempt`` returns, tried until it succeeds, fails for good, or the deadline has passed.

        ``what`` is done to the object ``where``; ``explain`` tells what an exception of an attempt means, unless it is
        a StoreError, which is final. Raise StoreError naming both, the attempts, the time they took and the deadline.
        """
        clock = Clock(self.deadline, self.stopped, self.now)
        tries, damaged, wait = 0, 0, FIRST_WAIT
        before: tuple[Failure, Exception] | None = None
        while True:
            tries += 1
            try:
                return attempt(clock)
            except StoreError:
                raise
            except StoppedError:
                raise StoreError(f"{where}: {what} was given up", STOPPED) from None
            except Exception as error:
                failure, cause = explain(error), error
            if before and isinstance(cause, NoTimeError):  # why it was tried again says more
                failure, cause = before
            before = failure, cause
            damaged += failure.reason == DAMAGED
            if (
                failure.reason not in AGAIN
                or damaged >= DAMAGED_TRIES
                or self._waited_in_vain(min(wait * (0.5 + self.jitter() / 2), clock.left()), clock)
            ):
                raise StoreError(self._told(what, where, tries, clock, failure), failure.reason) from cause
            wait = min(2 * wait, LONGEST_WAIT)
            with self._lock:
                self.retries += 1

    def _waited_in_vain(self, seconds: float, clock: Clock) -> bool:
        """Wait; return whether no time is left then."""
        return clock.left() <= 0 or self.stopped.wait(seconds) or clock.left() <= 0

    def _told(self, what: str, where: str, tries: int, clock: Clock, failure: Failure) -> str:
        attempts = "1 attempt" if tries == 1 else f"{tries} attempts"
        advice = f"; {failure.advice}" if failure.advice else ""
        return (
            f"{where}: {what} failed after {attempts} in {clock.passed():.1f} s (deadline {self.deadline:g} s): "
            f"{failure.text}{advice}"
        )
