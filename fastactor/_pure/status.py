"""The status word of a cell. You are here: status.try_schedule and status.set_idle."""

from __future__ import annotations

import threading
from typing import Final

CLOSED: Final = 1
SCHEDULED: Final = 2
_SUSPEND_UNIT: Final = 4
_SUSPEND_MAX: Final = (2**32 - 1) // _SUSPEND_UNIT


class StatusWord:
    """Open 0; bit 0 Closed, final; bit 1 Scheduled; each unit of 4 one suspension."""

    __slots__ = ("_lock", "_word")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._word = 0

    def try_schedule(self) -> bool:
        """Open -> Scheduled. True for exactly one caller, who alone may push the cell on the ready queue."""
        with self._lock:
            if self._word:
                return False
            self._word = SCHEDULED
            return True

    def set_idle(self) -> None:
        """Clear Scheduled. Whoever calls it must look at the mailbox again afterwards."""
        self._set_idle()

    def _set_idle(self) -> int:
        with self._lock:
            self._word &= ~SCHEDULED
            return self._word

    def suspend(self) -> None:
        """Add one suspension; as many `resume`s are needed. It takes effect before the next message."""
        with self._lock:
            if self._word < _SUSPEND_UNIT * _SUSPEND_MAX:
                self._word += _SUSPEND_UNIT
                return
        raise OverflowError(f"more than {_SUSPEND_MAX} suspensions")

    def resume(self) -> bool:
        """Take one suspension away; True when none is left. One too many stays at zero."""
        with self._lock:
            if self._word >= _SUSPEND_UNIT:
                self._word -= _SUSPEND_UNIT
            return self._word < _SUSPEND_UNIT

    def close(self) -> None:
        """Set Closed, for good. On the word of a cell: stop the cell."""
        self._close()

    def _close(self) -> int:
        """Set Closed and return the word as it was before."""
        with self._lock:
            before = self._word
            self._word |= CLOSED
            return before

    def should_process(self) -> bool:
        """Whether the next message may be handled: neither closed nor suspended."""
        return self._word & ~SCHEDULED == 0

    @property
    def suspend_count(self) -> int:
        return self._word // _SUSPEND_UNIT

    @property
    def is_scheduled(self) -> bool:
        return self._word & SCHEDULED != 0

    @property
    def is_closed(self) -> bool:
        return self._word & CLOSED != 0

    @property
    def value(self) -> int:
        return self._word

    def __repr__(self) -> str:
        return (
            f"<StatusWord {self.value}: closed={self.is_closed}, scheduled={self.is_scheduled}, "
            f"suspensions={self.suspend_count}>"
        )
