"""Dead letters: every message that was accepted or offered and not handled, with the reason."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

log = logging.getLogger("fastactor")
log.addHandler(logging.NullHandler())

# Reasons. They are part of the contract: users filter by them.
OVERFLOW: Final = "overflow"
ERROR: Final = "error"
STOPPED: Final = "stopped"
SHUTDOWN: Final = "shutdown"

RING: Final = 1000
# Akka's rule: the first ten are logged, then the log is quiet for five minutes. A flood of dead letters
# must not become a flood of log lines.
LOGGED: Final = 10
QUIET: Final = 300.0


@dataclass(frozen=True)
class DeadLetter:
    """One message that was not handled: for which path, why, and the error if a processor raised."""

    path: Any
    message: Any
    reason: str
    error: BaseException | None = None
    _replay: Callable[[DeadLetter], bool] | None = field(default=None, repr=False, compare=False)

    def replay(self) -> bool:
        """Dispatch the message again to its path, with the processor it was meant for."""
        if self._replay is None:
            raise LookupError(f"this dead letter of {self.path!r} belongs to no system")
        return self._replay(self)


class DeadLetters:
    """The last `maxlen` dead letters, oldest first. Thread-safe; `total` counts those that fell out too."""

    def __init__(self, name: str, maxlen: int = RING) -> None:
        self._name = name
        self._ring: deque[DeadLetter] = deque(maxlen=maxlen)
        self._lock = threading.RLock()  # a message may die in here, and its destructor dispatch
        self._total = 0
        self._logged = 0
        self._quiet_until = 0.0

    @property
    def total(self) -> int:
        """How many there have been since the system began."""
        return self._total

    def append(self, letter: DeadLetter) -> None:
        with self._lock:
            self._ring.append(letter)
            self._total += 1
            speak, last = self._may_log()
        if speak:
            log.warning(
                "%s: dead letter for %r (%s)%s",
                self._name,
                letter.path,
                letter.reason,
                "; further ones are not logged for five minutes" if last else "",
                exc_info=letter.error,
            )

    def _may_log(self) -> tuple[bool, bool]:
        if self._logged >= LOGGED:
            now = time.monotonic()
            if now < self._quiet_until:
                return False, False
            self._logged = 0
        self._logged += 1
        if self._logged == LOGGED:
            self._quiet_until = time.monotonic() + QUIET
        return True, self._logged == LOGGED

    def clear(self) -> None:
        with self._lock:
            self._ring.clear()

    def __iter__(self) -> Iterator[DeadLetter]:
        with self._lock:
            return iter(list(self._ring))

    def __len__(self) -> int:
        return len(self._ring)

    def __repr__(self) -> str:
        return f"<DeadLetters {len(self)} kept, {self._total} in all>"
