"""ActorSystem, the part both runtimes share: life of cells, failures, dead letters, statistics, shutdown.

The hot half, `dispatch` and the registry, is the SystemCore of _pure.py or _native.pyx; it calls the methods
named with an underscore here when something other than "take the message" has to happen.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from . import _api
from ._api import (
    CLOSED,
    DRAINING,
    MOVED_ASIDE,
    OPEN,
    STAYS,
    CellStats,
    ErrorPolicy,
    Overflow,
    Policy,
    Processor,
    Retry,
    ShutdownReport,
    SystemClosed,
    SystemFull,
    SystemStats,
)
from .deadletters import ERROR, SHUTDOWN, STOPPED, DeadLetter, DeadLetters
from .events import (
    ActorFailed,
    ActorStarted,
    ActorStopped,
    ActorSuspended,
    DeadLettered,
    Event,
    Events,
)
from .process import remember_system

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._pure import ActorCell, PriorityExecutor
    from ._pure import SystemCore as _Core
else:
    _Core = object

log = logging.getLogger("fastactor")

# After a timeout has closed every cell, idle workers need only a moment to end.
END_GRACE: Final = 0.5
# Events wait in a mailbox like everything else; when subscribers are this far behind, the oldest are lost.
EVENT_CAPACITY: Final = 100_000


class SystemLayer(_Core):
    """One mailbox per key, handled in order, one message at a time, on a small pool of fair workers.

    `dispatch(path, message, processor)` creates or gets the cell of `path` and hands it the message. All
    methods are thread-safe. Use it as a context manager, or call `shutdown` when you are done.
    """

    _core: tuple[type[ActorCell], type[PriorityExecutor], Callable[[], ActorCell | None]]

    def __init__(
        self,
        name: str = "default",
        threads: int | None = None,
        fair: bool = True,
        *,
        policy: Policy | None = None,
        quota: float = _api.DEFAULT_QUOTA,
        capacity: int = _api.DEFAULT_CAPACITY,
        overflow: Overflow = "raise",
        on_error: ErrorPolicy = "dead-letter",
        ask_timeout: float | None = 30.0,
        idle_timeout: float | None = None,
        max_actors: int | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        self.name = name
        self._options: dict[str, Any] = {
            "capacity": _api.check_int("capacity", capacity, 1, _api.MAX_CAPACITY),
            "quota": _api.check_quota(quota),
            "overflow": overflow,
            "on_error": _api.check_on_error(on_error),
        }
        _api.check_choice("overflow", overflow, _api.OVERFLOWS)
        self.ask_timeout = None if ask_timeout is None else _api.check_seconds("ask_timeout", ask_timeout)
        self.idle_timeout = None if idle_timeout is None else _api.check_seconds("idle_timeout", idle_timeout)
        self.max_actors = None if max_actors is None else _api.check_int("max_actors", max_actors, 1, 2**62)
        if policy is None:
            policy = "fair" if fair else "fifo"
        self._lock = threading.RLock()  # creation and removal of cells; re-entrant for a path's __eq__
        self._dropped_count = 0
        self._failed_count = 0
        self._shutdown_letters = 0
        self._deadline: float | None = None
        self.dead_letters = DeadLetters(name)
        self.events = Events(weak_call(self._post))
        self._event_cell: ActorCell | None = None
        self._executor = self._new_executor(_api.default_threads() if threads is None else threads, policy)
        remember_system(self)

    def _new_executor(self, threads: int, policy: str) -> PriorityExecutor:
        executor = self._core[1](threads, policy, name=self.name)
        executor._set_chore(weak_call(self._chore))
        return executor

    @property
    def executor(self) -> PriorityExecutor:
        """The workers of this system."""
        return self._executor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    def __repr__(self) -> str:
        state = ("open", "draining", "closed")[self._state]
        return f"<ActorSystem {self.name!r}: {len(self)} cells, {state}>"

    def __del__(self) -> None:
        if getattr(self, "_state", CLOSED) == OPEN and (queued := self._tally()):
            warnings.warn(
                f"system {self.name!r} was dropped with {queued} messages queued; "
                "use it as a context manager or call shutdown()",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )

    # -- cells ------------------------------------------------------------------------------------

    def cell(
        self,
        path: Any,
        processor: Processor | None = None,
        *,
        weight: float = 1.0,
        capacity: int | None = None,
        quota: float | None = None,
        overflow: Overflow | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> ActorCell:
        """Create or get the cell of `path`; the options count only for a cell that is created here."""
        if self._state:
            self._admit()
        cell = self.get(path)
        if cell is not None:
            return cell
        options = {"capacity": capacity, "quota": quota, "overflow": overflow, "on_error": on_error}
        given = {name: value for name, value in options.items() if value is not None}
        return self._create(path, processor, weight=weight, **given)

    def _create(self, path: Any, processor: Processor | None, **options: Any) -> ActorCell:
        """The cell of a path that a moment ago had none."""
        with self._lock:
            if self._state:
                self._admit()
            cell = self._cells.get(path)
            if cell is not None:
                return cell
            if processor is None:
                raise LookupError(f"there is no cell at {path!r}; give a processor to create one")
            if self.max_actors is not None and len(self._cells) >= self.max_actors:
                raise SystemFull(self.name, self.max_actors)
            cell = self._core[0](self, path, processor, **{**self._options, **options})
            self._cells[path] = cell
            if self.idle_timeout is not None:
                self._executor._chore_in(self._sweep_every())
        self.events.emit(ActorStarted(self.name, path))
        return cell

    def _revive(self, cell: ActorCell) -> ActorCell:
        """The living cell of a path whose cell was removed while somebody kept a handle on it."""
        self._forget(cell, "idle")  # it may be between being closed and being removed
        return self._create(
            cell.path,
            cell._process,
            weight=cell.weight,
            capacity=cell.capacity,
            quota=cell.quota,
            overflow=cell.overflow,
            on_error=cell.on_error,
        )

    def stop(self, path: Any) -> bool:
        """Close the cell of `path` after its current message; False for an unknown path.

        What is queued becomes dead letters, and the path is free for a new cell at once.
        """
        if self._state:
            self._admit()
        cell = self.get(path)
        return cell is not None and self._stop(cell)

    def _stop(self, cell: ActorCell, reason: str = STOPPED) -> bool:
        left = cell._close(reason)
        if left is None:
            living = self.get(cell.path) if cell._retired else None  # it was removed, its path may live on
            return living is not None and living is not cell and self._stop(living, reason)
        self._forget(cell, reason)
        for message in left:
            self._dropped(cell, message, reason)
        return True

    def _forget(self, cell: ActorCell, reason: str) -> None:
        with self._lock:
            if self._cells.get(cell.path) is not cell:
                return
            del self._cells[cell.path]
        self.events.emit(ActorStopped(self.name, cell.path, reason))

    # -- scheduling -------------------------------------------------------------------------------

    def schedule(self, path_or_cell: Any, has_message_hint: bool = False) -> bool:
        """Make the cell ready if it is open and has a message (or the hint says so).

        Also ends the wait before a retry. True when this call made the cell ready.
        """
        if self._state:
            self._admit()
        cell = self._find(path_or_cell)
        if cell is None:
            return False
        if has_message_hint or len(cell):
            return cell._executor.execute(cell) or cell._executor._hurry(cell)
        return False

    def suspend(self, path: Any) -> bool:
        """Suspend the cell of `path`; False for an unknown path."""
        if self._state:
            self._admit()
        cell = self.get(path)
        if cell is None:
            return False
        cell.suspend()
        return True

    def resume(self, path: Any) -> bool:
        """Take one suspension from the cell of `path`; False for an unknown path."""
        if self._state:
            self._admit()
        cell = self.get(path)
        if cell is None:
            return False
        cell.resume()
        return True

    def _find(self, path_or_cell: Any) -> ActorCell | None:
        if isinstance(path_or_cell, self._core[0]):
            return path_or_cell
        return self.get(path_or_cell)

    def _admit(self) -> None:
        """While the system drains, its own processors may still pass work on; nobody else may."""
        if self._state != DRAINING or not self._on_own_worker():
            raise SystemClosed(self.name)

    # -- failures and dead letters, called by workers ------------------------------------------------

    def _failed(self, cell: ActorCell, message: Any, error: BaseException, failures: int) -> float:
        """Follow the cell's error policy: a delay before the retry, MOVED_ASIDE or STAYS."""
        with self._lock:
            self._failed_count += 1
        try:
            return self._follow(cell, message, error, failures)
        except BaseException:
            log.exception("%s: the error policy of %r failed", self.name, cell.path)
            self._bury(cell, message, ERROR, error)
            return MOVED_ASIDE

    def _follow(self, cell: ActorCell, message: Any, error: BaseException, failures: int) -> float:
        self.events.emit(ActorFailed(self.name, cell.path, message, error, failures))
        policy = cell.on_error
        if isinstance(policy, Retry) and failures < policy.attempts:
            return policy.delay(failures)
        if policy == "suspend":
            cell.suspend()
            self.events.emit(ActorSuspended(self.name, cell.path, message, error))
            return STAYS
        self._bury(cell, message, ERROR, error)
        if policy == "stop":
            self._stop(cell, ERROR)
        return MOVED_ASIDE

    def _dropped(self, cell: ActorCell, message: Any, reason: str) -> None:
        """A message that no processor has seen becomes a dead letter."""
        with self._lock:
            self._dropped_count += 1
            self._shutdown_letters += reason == SHUTDOWN
        self._bury(cell, message, reason, None)

    def _bury(self, cell: ActorCell, message: Any, reason: str, error: BaseException | None) -> None:
        letter = DeadLetter(cell.path, message, reason, error, weak_call(self._replay, cell._process))
        self.dead_letters.append(letter)
        if cell is not self._event_cell:  # an event about a lost event would only push out another
            self.events.emit(DeadLettered(self.name, cell.path, letter))

    def _replay(self, processor: Processor, letter: DeadLetter) -> bool:
        return self.dispatch(letter.path, letter.message, processor)

    def _post(self, event: Event) -> None:
        """Hand an event to the pool; `dispatch` would refuse it while the system shuts down."""
        cell = self._event_cell
        if cell is None:
            with self._lock:
                cell = self._event_cell
                if cell is None:
                    cell = self._event_cell = self._core[0](
                        self,
                        "/system/events",
                        self.events.deliver,
                        capacity=EVENT_CAPACITY,
                        overflow="drop-oldest",
                    )
        cell._offer(event)

    # -- statistics -------------------------------------------------------------------------------

    def stats(self) -> SystemStats:
        """Counts of this moment; walks over all cells for `queued`."""
        executor = self._executor
        return SystemStats(
            actors=len(self),
            ready=len(executor),
            queued=self._tally(),
            processed=executor.processed,
            dropped=self._dropped_count,
            failed=self._failed_count,
            busy=executor.busy,
            threads=executor.threads,
        )

    def top(self, n: int = 10, by: str = "time") -> list[CellStats]:
        """The first `n` cells by worker time used, by messages queued, or by how long they wait to run."""
        _api.check_int("n", n, 0, 2**62)
        field = {"time": 0, "depth": 1, "wait": 2}
        column = ("total", "depth", "wait")[_api.check_choice("by", by, field)]
        now = time.monotonic_ns()
        rows = (CellStats(c.path, c.total, c.processed, len(c), c._wait(now)) for c in self)
        return heapq.nlargest(n, rows, key=lambda row: getattr(row, column))

    # -- chores: idle removal, and the deadline of a shutdown that nobody waits for ---------------------

    def _chore(self) -> None:
        """Run by a worker when it is due; asks for the next time itself."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._close_all()
        if self.idle_timeout is not None and not self._state:
            self._remove_idle(time.monotonic_ns() - int(self.idle_timeout * 1e9))
            if len(self):
                self._executor._chore_in(self._sweep_every())

    def _sweep_every(self) -> float:
        """Often enough to be on time, not so often that it is felt."""
        return max(0.01, (self.idle_timeout or 0.0) / 4)

    def _remove_idle(self, before: int) -> None:
        for cell in self:
            if cell._active_at < before and cell._retire():
                self._forget(cell, "idle")

    # -- the end ----------------------------------------------------------------------------------

    def shutdown(self, wait: bool = True, drain: bool = True, timeout: float | None = None) -> ShutdownReport:
        """Take no more work, handle what is queued, and end the workers.

        Without `drain`, or at the timeout, what is left goes to the dead letters; so does what waits in a
        suspended cell. While the system drains its own processors may still dispatch. May be called
        again, for instance with drain=False. A processor that never returns is reported, not awaited, once
        the timeout is over. Called from a processor it does not wait.
        """
        timeout = _api.check_timeout(timeout)
        with self._lock:
            first = self._state == OPEN
            if first:
                self._state = DRAINING
        if not drain:
            self._close_all()
        if first:
            self._executor._stop(self._drained)
        if wait and not self._on_own_worker():
            ended = self._executor._join(timeout)
            if not ended:
                self._close_all()
                ended = self._executor._join(END_GRACE)
            if ended and len(self):
                self._close_all()  # somebody had shut the executor down before, by itself
        else:
            ended = False
            if timeout is not None:
                self._deadline = time.monotonic() + timeout
                self._executor._chore_in(timeout)
        stuck = () if ended else tuple(c.path for c in self._executor._running())
        if not ended and wait and stuck:
            log.warning("%s: shut down with processors still running: %r", self.name, stuck)
        return ShutdownReport(ended, self._shutdown_letters, stuck)

    def _drained(self) -> bool:
        """The workers have nothing left to do: close every cell. False when one turns out to have a message.

        That is one whose dispatch was accepted and whose producer has not come to schedule the cell yet. What
        waits in a suspended cell will not be handled.
        """
        with self._lock:
            self._state = CLOSED
        late = False
        for cell in self:
            if cell._retire():
                self._forget(cell, SHUTDOWN)
            elif cell.status.is_closed or cell.status.suspend_count or cell._executor._stopped:
                self._stop(cell, SHUTDOWN)
                self._forget(cell, SHUTDOWN)
            else:
                late = True
        if late:
            time.sleep(0.001)
        return not late

    def _close_all(self) -> None:
        """Dead-letter everything that is still queued and refuse everything from now on."""
        with self._lock:
            self._state = CLOSED
        while cells := list(self):
            for cell in cells:
                if not self._stop(cell, SHUTDOWN):
                    self._forget(cell, SHUTDOWN)  # somebody else is closing it at this moment

    def _on_own_worker(self) -> bool:
        cell = self._core[2]()
        return cell is not None and cell.system is self

    def _after_fork(self, cells: list[ActorCell]) -> None:
        """In the child: the same system without cells. The workers and what is queued are the parent's."""
        self._lock = threading.RLock()
        self.dead_letters = DeadLetters(self.name)
        self.events._lock = threading.RLock()
        old = self._executor
        self._executor = self._new_executor(old.threads, old.policy)
        self._cells = {}
        for cell in cells:
            cell._abandon()
        self._event_cell = None


def weak_call(method: Callable[..., Any], *first: Any) -> Callable[..., Any]:
    """A callable that does not keep the owner of `method` alive; gone with it, it does nothing."""
    reference = weakref.WeakMethod(method)

    def call(*rest: Any) -> Any:
        alive = reference()
        return None if alive is None else alive(*first, *rest)

    return call
