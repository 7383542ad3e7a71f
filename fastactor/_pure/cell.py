"""The cell. You are here: dispatch, and the processor at the other end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from .. import _api
from .._api import MOVED_ASIDE, STAYS, ErrorPolicy, Overflow, Processor
from ..hold import Hold
from ..overflow import OK, refused
from .queue import EMPTY, BoundedNodeQueue
from .status import CLOSED, SCHEDULED, StatusWord
from .system import SystemCore

if TYPE_CHECKING:
    from . import ActorSystem
    from .executor import PriorityExecutor

_running = threading.local()
_now = time.monotonic_ns

# What a turn of a cell ends with.
IDLE: Final = -3.0  # empty, suspended or closed; any value from 0 up: still runnable after that delay


class ActorCell:
    """One path, one mailbox, one status word, one processor. Made by `ActorSystem.cell`."""

    __slots__ = (
        "__weakref__",
        "_active_at",
        "_close_reason",
        "_executor",
        "_failures",
        "_finish",
        "_last_run",
        "_mailbox",
        "_on_error",
        "_overflow",
        "_path",
        "_process",
        "_processed",
        "_quota",
        "_ready_since",
        "_retired",
        "_start",
        "_status",
        "_system",
        "_timer",
        "_total",
        "_tries",
        "_weight",
    )

    def __init__(
        self,
        system: SystemCore,
        path: Any,
        processor: Processor,
        *,
        weight: float = 1.0,
        capacity: int = _api.DEFAULT_CAPACITY,
        quota: float = _api.DEFAULT_QUOTA,
        overflow: Overflow = "raise",
        on_error: ErrorPolicy = "dead-letter",
    ) -> None:
        if not isinstance(system, SystemCore):
            raise TypeError(f"system must be an ActorSystem, not {type(system).__name__}")
        hash(path)
        self._system: ActorSystem = system  # type: ignore[assignment]  # the only kind there is
        self._path = path
        self._process = _api.bind_processor(processor)
        self._weight = _api.check_weight(weight)
        self._mailbox = BoundedNodeQueue(capacity)
        self._quota = int(_api.check_quota(quota) * 1e9)
        self._overflow = _api.check_choice("overflow", overflow, _api.OVERFLOWS)
        self._on_error: ErrorPolicy = _api.check_on_error(on_error)
        self._status = StatusWord()
        self._executor: PriorityExecutor = system._executor
        self._start: int | None = None  # S of start-time fair queueing; None: never woken
        self._finish = 0  # F
        self._total = 0
        self._last_run = 0
        self._ready_since = 0
        self._processed = 0
        self._tries = 0  # answers of False to the message at the head
        self._failures = 0  # exceptions raised by the message at the head
        self._timer: list[Any] | None = None
        self._close_reason = ""
        self._retired = False
        self._active_at = _now()

    @property
    def path(self) -> Any:
        """The key of this cell."""
        return self._path

    @property
    def system(self) -> ActorSystem:
        """The system this cell belongs to."""
        return self._system

    @property
    def status(self) -> StatusWord:
        """The live status word. Its `resume` does not schedule; the cell's own does."""
        return CellStatus(self)

    @property
    def capacity(self) -> int:
        return self._mailbox.capacity

    @property
    def quota(self) -> float:
        """Seconds of one turn."""
        return self._quota / 1e9

    @property
    def overflow(self) -> str:
        """What happens when the mailbox is full."""
        return _api.OVERFLOW_NAMES[self._overflow]

    @property
    def on_error(self) -> ErrorPolicy:
        """What happens when the processor raises."""
        return self._on_error

    @property
    def total(self) -> float:
        """Seconds of worker time used so far."""
        return self._total / 1e9

    @property
    def processed(self) -> int:
        """How many messages have been handled, those moved aside after an error included."""
        return self._processed

    @property
    def weight(self) -> float:
        """The share of this cell against others; a new weight counts from the next turn on."""
        return self._weight

    @weight.setter
    def weight(self, value: float) -> None:
        self._weight = _api.check_weight(value)

    def __len__(self) -> int:
        return self._mailbox.count()

    def __bool__(self) -> bool:
        return True  # an empty mailbox does not make a cell false

    def __repr__(self) -> str:
        return f"<ActorCell {self._path!r}: {len(self)} queued, status {self._status.value}>"

    def dispatch(self, message: Any, *, timeout: float | None = None) -> bool:
        """Put a message into the mailbox and see that it is handled.

        False when the message became a dead letter instead. What happens on a full mailbox is the cell's
        overflow policy; `timeout` bounds the wait of "block". Thread-safe.
        """
        if self._system._state:
            self._system._admit()
        return self._offer(message, timeout)

    def dispatch_many(self, messages: Iterable[Any]) -> int:
        """Dispatch each of `messages` in order; how many were accepted."""
        if self._system._state:
            self._system._admit()
        accepted = 0
        try:
            for message in messages:
                outcome = self._push(message)
                if outcome == OK or self._refused(message, outcome, accepted):
                    accepted += 1
        finally:
            self._wake()
        return accepted

    def _refused(self, message: Any, outcome: int, accepted: int) -> bool:
        self._wake()  # what was accepted must not wait for this one
        return refused(self, message, outcome, None, accepted)

    def suspend(self) -> None:
        """Handle no further message until as many `resume`s; the current one ends normally."""
        if self._retired:
            self._system._revive(self).suspend()
        else:
            self._status.suspend()

    def resume(self) -> bool:
        """Take one suspension away; True when none is left, and then the cell goes on."""
        if self._retired:
            return self._system._revive(self).resume()
        free = self._status.resume()
        if free:
            self._wake()
        return free

    def hold(self) -> Hold:
        """Suspend the cell and return the token that ends just this suspension."""
        return Hold(self)

    def stop(self) -> bool:
        """Close the cell after its current message; what is queued becomes dead letters."""
        return self._system._stop(self)

    # the runtime's half

    def _offer(self, message: Any, timeout: float | None = None) -> bool:
        timeout = _api.check_timeout(timeout)
        outcome = self._push(message)
        if outcome != OK:
            return refused(self, message, outcome, timeout, 0)
        return self._wake()

    def _push(self, message: Any) -> int:
        return self._mailbox._push(message)

    def _evict(self) -> list[Any]:
        return self._mailbox._evict()

    def _wait_for_room(self, timeout: float | None) -> None:
        self._mailbox._wait_for_room(timeout)

    def _runs_here(self) -> bool:
        return current_cell() is self

    def _wake(self) -> bool:
        """Schedule the cell if it has a message and nobody else has; False when nobody will handle it."""
        if self._mailbox._count and self._status.try_schedule() and not self._executor._push(self):
            self._system._stop(self, "shutdown")  # its executor has been shut down
            return False
        return True

    def _close(self, reason: str) -> list[Any] | None:
        """Close for good. The messages that nobody handles any more, or None when it was closed before.

        A worker that runs the cell keeps the message in its hand, and dead-letters it if it stays.
        """
        self._mailbox._close()
        if not self._status.is_closed:
            self._close_reason = reason  # before a worker can find it closed
        before = self._status._close()
        if before & CLOSED:
            return None
        if before & SCHEDULED:
            self._executor._hurry(self)
            left = []
        else:
            left = self._mailbox._pop()
        while evicted := self._mailbox._evict():
            left += evicted
        return left

    def _retire(self) -> bool:
        """Close the cell if it is idle and empty, so that no message can be lost between the two."""
        if not self._status.try_schedule():
            return False
        self._retired = True  # before it is closed: whoever finds it closed must know why
        if not self._mailbox._close(only_if_empty=True):
            self._retired = False
            self._executor._push(self)
            return False
        self._close_reason = "idle"
        self._status._close()
        self._status._set_idle()
        return True

    def _abandon(self) -> None:
        """After a fork, in the child: this cell is the parent's; its path lives on in a new cell."""
        self._retired = True
        self._mailbox = BoundedNodeQueue(1)
        self._mailbox._close()
        self._status = StatusWord()
        self._status._close()

    def _turn(self, started: int) -> tuple[float, int]:
        """Handle messages for at most the quota, at least one. How it ended, and when."""
        deadline = started + self._quota
        now = started
        while self._status.should_process():
            message = self._mailbox._take()
            if message is EMPTY:
                return IDLE, now
            verdict = self._handle(message)
            del message
            now = _now()
            if verdict == MOVED_ASIDE:
                self._mailbox._pop()
                self._processed += 1
                self._tries = self._failures = 0
            elif verdict == STAYS or not self._status.should_process():
                return IDLE, now
            else:
                return verdict, now
            if now >= deadline:
                return 0.0, now
        return IDLE, now

    def _handle(self, message: Any) -> float:
        """MOVED_ASIDE when the message is done with, STAYS, or the delay before it is tried again."""
        try:
            answer = self._process(message, self)
        except BaseException as error:  # noqa: BLE001  # the worker survives whatever a processor raises
            self._failures += 1
            return self._system._failed(self, message, error, self._failures)
        if answer is not False:
            return MOVED_ASIDE
        if not self._status.should_process():
            self._tries = 0  # it waits for a resume: that is patience, not a spin
            return STAYS
        self._tries += 1
        if self._tries <= _api.FREE_TRIES:
            return 0.0
        exponent = min(self._tries - _api.FREE_TRIES - 1, 16)
        return min(_api.LAST_DELAY, _api.FIRST_DELAY * 2.0**exponent)

    def _wait(self, now: int) -> float:
        """Seconds since the cell became ready, if it waits for a worker."""
        since = self._ready_since
        return (now - since) / 1e9 if since else 0.0


class CellStatus(StatusWord):
    """The status word of a cell, as others may use it."""

    __slots__ = ("_cell",)

    def __init__(self, cell: ActorCell) -> None:
        self._cell = cell

    @property
    def _word(self) -> int:  # type: ignore[override]
        return self._cell._status._word

    def try_schedule(self) -> bool:
        raise RuntimeError(_api.NOT_YOURS)

    def set_idle(self) -> None:
        raise RuntimeError(_api.NOT_YOURS)

    def suspend(self) -> None:
        self._cell._status.suspend()

    def resume(self) -> bool:
        return self._cell._status.resume()

    def close(self) -> None:
        self._cell.stop()


def current_cell() -> ActorCell | None:
    """The cell whose processor this thread is running, or None."""
    return getattr(_running, "cell", None)


def run_as(cell: ActorCell | None) -> None:
    """From now on this thread runs `cell`."""
    _running.cell = cell
