"""The runtime in Python: the specification in code, and the fallback where nothing can be compiled.

The flow, from top to bottom of this file, with the words that csrc/ uses for the same things:

    dispatch -> mailbox.push -> status.try_schedule -> ready.push -> worker.take -> processor(message, cell)
             -> mailbox.pop -> (quota over | empty | suspended) -> status.set_idle -> look again -> ready.push
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from . import _api
from ._api import MOVED_ASIDE, STAYS, ErrorPolicy, Overflow, Processor
from .hold import Hold
from .overflow import CLOSED, FULL, OK, refused
from .system import SystemLayer

implementation: Final = "pure"

log = logging.getLogger("fastactor")
_EMPTY: Final[Any] = object()
_now = time.monotonic_ns

# -- status word ----------------------------------------------------------------------------------

_CLOSED: Final = 1
_SCHEDULED: Final = 2
_SUSPEND_UNIT: Final = 4
_SUSPEND_MAX: Final = (2**32 - 1) // _SUSPEND_UNIT


class StatusWord:
    """Open 0; bit 0 Closed, final; bit 1 Scheduled; each unit of 4 one suspension."""

    __slots__ = ("_lock", "_word")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._word = 0

    def try_schedule(self) -> bool:
        """Open -> Scheduled. True for exactly one caller, who alone may push the cell on the ready queue."""
        with self._lock:
            if self._word:
                return False
            self._word = _SCHEDULED
            return True

    def set_idle(self) -> None:
        """Clear Scheduled. Whoever calls it must look at the mailbox again afterwards."""
        self._set_idle()

    def _set_idle(self) -> int:
        with self._lock:
            self._word &= ~_SCHEDULED
            return self._word

    def suspend(self) -> None:
        """Add one suspension; as many `resume`s are needed. It takes effect before the next message."""
        with self._lock:
            if self._word // _SUSPEND_UNIT == _SUSPEND_MAX:
                raise OverflowError(f"more than {_SUSPEND_MAX} suspensions")
            self._word += _SUSPEND_UNIT

    def resume(self) -> bool:
        """Take one suspension away; True when none is left. One too many stays at zero."""
        with self._lock:
            if self._word >= _SUSPEND_UNIT:
                self._word -= _SUSPEND_UNIT
            return self._word < _SUSPEND_UNIT

    def close(self) -> None:
        """Set Closed, for good."""
        self._close()

    def _close(self) -> int:
        """Set Closed and return the word as it was before."""
        with self._lock:
            before = self._word
            self._word |= _CLOSED
            return before

    def should_process(self) -> bool:
        """Whether the next message may be handled: neither closed nor suspended."""
        return self._word & ~_SCHEDULED == 0

    @property
    def suspend_count(self) -> int:
        return self._word // _SUSPEND_UNIT

    @property
    def is_scheduled(self) -> bool:
        return self._word & _SCHEDULED != 0

    @property
    def is_closed(self) -> bool:
        return self._word & _CLOSED != 0

    @property
    def value(self) -> int:
        return self._word

    def __repr__(self) -> str:
        return (
            f"<StatusWord {self.value}: closed={self.is_closed}, scheduled={self.is_scheduled}, "
            f"suspensions={self.suspend_count}>"
        )


# -- mailbox --------------------------------------------------------------------------------------


class BoundedNodeQueue:
    """Bounded first-in-first-out queue: many producers, one consumer, False when exactly full.

    The consumer takes the head *into its hand*, where it still counts, and drops it from there when it is
    handled. What is in the hand belongs to the consumer alone; everything behind it may be evicted or
    drained by anybody.
    """

    __slots__ = ("_capacity", "_closed", "_hand", "_items", "_lock", "_room", "_waiters")

    def __init__(self, capacity: int) -> None:
        self._capacity = _api.check_int("capacity", capacity, 1, _api.MAX_CAPACITY)
        self._items: deque[Any] = deque()
        self._hand: Any = _EMPTY
        self._closed = False
        self._lock = threading.Lock()
        self._room: threading.Condition | None = None
        self._waiters = 0

    @property
    def capacity(self) -> int:
        return self._capacity

    def add(self, value: Any) -> bool:
        """Append; False when the queue is full."""
        return self._push(value) == OK

    def peek(self, default: Any = None) -> Any:
        """The head, which stays; `default` when the queue is empty."""
        value = self._take()
        return default if value is _EMPTY else value

    def poll(self, default: Any = None) -> Any:
        """Remove and return the head; `default` when the queue is empty."""
        with self._lock:
            value = self._hand
            if value is not _EMPTY:
                self._hand = _EMPTY
            elif self._items:
                value = self._items.popleft()
            else:
                return default
            self._made_room()
            return value

    def is_empty(self) -> bool:
        return self.count() == 0

    def count(self) -> int:
        with self._lock:
            return self._count()

    def __len__(self) -> int:
        return self.count()

    def __repr__(self) -> str:
        return f"<BoundedNodeQueue {self.count()} of {self._capacity}>"

    # the runtime's half

    def _count(self) -> int:
        return len(self._items) + (self._hand is not _EMPTY)

    def _push(self, value: Any) -> int:
        with self._lock:
            if self._closed:
                return CLOSED
            if self._count() >= self._capacity:
                return FULL
            self._items.append(value)
            return OK

    def _take(self) -> Any:
        """The head, moved into the hand; _EMPTY when there is none."""
        with self._lock:
            if self._hand is _EMPTY and self._items:
                self._hand = self._items.popleft()
            return self._hand

    def _pop(self) -> None:
        """Drop what is in the hand: it has been handled."""
        with self._lock:
            self._hand = _EMPTY
            self._made_room()

    def _evict(self) -> tuple[()] | tuple[Any]:
        """Remove the oldest message that is not in the hand."""
        with self._lock:
            if not self._items:
                return ()
            self._made_room()
            return (self._items.popleft(),)

    def _close(self, only_if_empty: bool = False) -> bool:
        """Take no more messages; wake everybody who waits for room."""
        with self._lock:
            if only_if_empty and self._count():
                return False
            self._closed = True
            if self._room is not None:
                self._room.notify_all()
            return True

    def _made_room(self) -> None:
        if self._waiters and self._room is not None:
            self._room.notify()

    def _wait_for_room(self, timeout: float | None) -> None:
        with self._lock:
            if self._room is None:
                self._room = threading.Condition(self._lock)
            self._waiters += 1
            try:
                self._room.wait_for(lambda: self._closed or self._count() < self._capacity, timeout)
            finally:
                self._waiters -= 1


# -- cell -----------------------------------------------------------------------------------------

_running = threading.local()

# What a turn of a cell ends with.
_IDLE: Final = -3.0  # empty, suspended or closed; any value from 0 up: still runnable after that delay


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
        system: ActorSystem,
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
        self._system = system
        self._path = path
        self._process = _api.bind_processor(processor)
        self._weight = _api.check_weight(weight)
        self._mailbox = BoundedNodeQueue(capacity)
        self._quota = int(_api.check_quota(quota) * 1e9)
        self._overflow = _api.check_choice("overflow", overflow, _api.OVERFLOWS)
        self._on_error = _api.check_on_error(on_error)
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
        return self._status

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
        self._status.suspend()

    def resume(self) -> bool:
        """Take one suspension away; True when none is left, and then the cell goes on."""
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
        self._wake()
        return True

    def _push(self, message: Any) -> int:
        return self._mailbox._push(message)

    def _evict(self) -> tuple[()] | tuple[Any]:
        return self._mailbox._evict()

    def _wait_for_room(self, timeout: float | None) -> None:
        self._mailbox._wait_for_room(timeout)

    def _runs_here(self) -> bool:
        return current_cell() is self

    def _wake(self) -> None:
        """Schedule the cell if it has a message and nobody else has scheduled it."""
        if self._mailbox.count() and self._status.try_schedule():
            self._executor._push(self)

    def _close(self, reason: str) -> list[Any] | None:
        """Close for good. The messages that nobody handles any more, or None when it was closed before.

        A worker that runs the cell keeps the message in its hand, and dead-letters it if it stays.
        """
        self._mailbox._close()
        before = self._status._close()
        if before & _CLOSED:
            return None
        self._close_reason = reason
        if before & _SCHEDULED:
            self._executor._hurry(self)
            left = []
        else:
            left = self._take_hand()
        while evicted := self._mailbox._evict():
            left += evicted
        return left

    def _take_hand(self) -> list[Any]:
        hand, self._mailbox._hand = self._mailbox._hand, _EMPTY
        return [] if hand is _EMPTY else [hand]

    def _retire(self) -> bool:
        """Close the cell if it is idle and empty, so that no message can be lost between the two."""
        if not self._status.try_schedule():
            return False
        if not self._mailbox._close(only_if_empty=True):
            self._executor._push(self)
            return False
        self._retired = True
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
            if message is _EMPTY:
                return _IDLE, now
            verdict = self._handle(message)
            del message
            now = _now()
            if verdict == MOVED_ASIDE:
                self._mailbox._pop()
                self._processed += 1
                self._tries = self._failures = 0
            elif verdict == STAYS or not self._status.should_process():
                return _IDLE, now
            else:
                return verdict, now
            if now >= deadline:
                return 0.0, now
        return _IDLE, now

    def _handle(self, message: Any) -> float:
        """MOVED_ASIDE when the message is done with, STAYS, or the delay before it is tried again."""
        try:
            answer = self._process(message, self)
        except BaseException as error:
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


def current_cell() -> ActorCell | None:
    """The cell whose processor this thread is running, or None."""
    return getattr(_running, "cell", None)


# -- ready queue and workers ----------------------------------------------------------------------

# A cell that waits may be this many slices per worker behind V, one that ran long this many ahead.
# The first keeps heavy weights exact on several workers; the second forgives a single very long message
# (1 s at the default quota), so that it does not shut its key out for as long again.
_LAG_SLICES: Final = 2
_DEBT_SLICES: Final = 200
_MIN_CHARGE: Final = 1000  # ns; even a free message moves its cell back in the queue


class _Pool:
    """The ready queue, the delayed cells and the workers' meeting point. Threads hold this, not the executor."""

    def __init__(self, threads: int, policy: int, name: str) -> None:
        self.threads = threads
        self.policy = policy
        self.name = name
        self.lock = threading.Lock()
        self.work = threading.Condition(self.lock)
        self.ready: list[tuple[int, int, ActorCell]] = []
        self.timers: list[list[Any]] = []  # [due, sequence, cell or None when cancelled]
        self.delayed = 0  # timers that are not cancelled; they hold up the end of the pool
        self.chore: Callable[[], None] | None = None
        self.chore_due: int | None = None
        self.sequence = 0
        self.virtual = 0  # V
        self.max_finish = 0
        self.busy = 0
        self.processed = 0
        self.running: dict[int, ActorCell] = {}
        self.stopping = False
        self.stopped = False
        self.on_quiet: Callable[[], None] | None = None
        self.workers: list[threading.Thread] = []

    # placing, under the lock

    def place(self, cell: ActorCell, after_turn: bool) -> int:
        """The key by which the cell waits: smallest first, then first come."""
        if self.policy == 0:
            slice_ = int(cell._quota / cell._weight)
            if cell._start is None:
                start = self.virtual + slice_  # start debit: new cells cannot overtake the waiting
            elif after_turn:
                start = max(cell._finish, self.virtual - _LAG_SLICES * self.threads * slice_)
            else:
                start = max(cell._finish, self.virtual)  # idle time earns nothing, debt is kept
            cell._start = min(start, self.virtual + _DEBT_SLICES * slice_)
            return cell._start
        if self.policy == 1:
            return cell._total
        if self.policy == 2:
            return cell._last_run
        return 0

    def add_ready(self, cell: ActorCell, after_turn: bool) -> None:
        self.sequence += 1
        cell._ready_since = _now()
        heapq.heappush(self.ready, (self.place(cell, after_turn), self.sequence, cell))
        self.work.notify()

    def add_timer(self, cell: ActorCell, delay: float) -> None:
        self.sequence += 1
        cell._timer = [_now() + int(delay * 1e9), self.sequence, cell]
        heapq.heappush(self.timers, cell._timer)
        self.delayed += 1
        self.work.notify()  # whoever sleeps may have to sleep shorter

    def cancel_timer(self, cell: ActorCell) -> None:
        entry = cell._timer
        assert entry is not None
        entry[2] = cell._timer = None
        self.delayed -= 1

    def due(self) -> float | None:
        """Move every due cell to the ready queue; seconds until the next is, None without any."""
        now = _now()
        while self.timers:
            due, _, cell = self.timers[0]
            if cell is not None and due > now:
                break
            heapq.heappop(self.timers)
            if cell is not None:
                cell._timer = None
                self.delayed -= 1
                self.add_ready(cell, after_turn=True)
        dues = [self.timers[0][0]] if self.timers else []
        if self.chore_due is not None:
            if self.chore_due <= now:
                self.chore_due = None
                self.aside(self.chore)
                return 0.0  # time has passed: look again
            dues.append(self.chore_due)
        return (min(dues) - now) / 1e9 if dues else None

    def aside(self, call: Callable[[], None] | None) -> None:
        """Call something of the system's without the lock; counts as busy, so that the pool does not end."""
        if call is None:
            return
        self.busy += 1
        self.lock.release()
        try:
            call()
        except BaseException:
            log.exception("%s: a chore failed", self.name)
        finally:
            self.lock.acquire()
            self.busy -= 1

    # the worker

    def take(self) -> ActorCell | None:
        """The first cell by policy; waits for one. None when the pool has ended."""
        with self.lock:
            while not self.stopped:
                pause = self.due()
                if self.ready:
                    key, _, cell = heapq.heappop(self.ready)
                    if self.policy == 0:
                        self.virtual = max(self.virtual, key)
                    self.busy += 1
                    cell._ready_since = 0
                    return cell
                if self.busy == 0:
                    # The end of a busy period: V catches up with what was served (Goyal et al., SFQ).
                    self.virtual = max(self.virtual, self.max_finish)
                    if self.stopping and not self.delayed and self.quiet():
                        break
                self.work.wait(pause)
            return None

    def quiet(self) -> bool:
        """Nothing is ready, running or delayed: let the system clear up, which may make work again."""
        hook, self.on_quiet = self.on_quiet, None
        self.aside(hook)
        if self.ready or self.delayed or self.busy:
            return False
        self.stopped = True
        self.work.notify_all()
        return True

    def run(self, cell: ActorCell) -> None:
        """One turn of one cell, and where the cell goes then."""
        started = cell._last_run = _now()
        before = cell._processed
        _running.cell = cell
        verdict, ended = cell._turn(started)
        _running.cell = None
        handled = cell._processed - before
        used = ended - started
        cell._total += used
        cell._active_at = ended
        cell._finish = finish = (cell._start or 0) + int(max(used, _MIN_CHARGE) / cell._weight)
        if verdict == _IDLE:
            if cell._status._set_idle() & _CLOSED:
                for message in cell._take_hand():
                    cell._system._dropped(cell, message, cell._close_reason)
            else:
                cell._wake()
        with self.lock:
            self.busy -= 1
            self.processed += handled
            self.max_finish = max(self.max_finish, finish)
            if verdict > 0 and not cell._status.is_closed:
                self.add_timer(cell, verdict)
            elif verdict >= 0:
                self.add_ready(cell, after_turn=True)
            elif self.stopping and self.busy == 0:
                self.work.notify_all()


def _work(pool: _Pool) -> None:
    me = threading.get_ident()
    while (cell := pool.take()) is not None:
        pool.running[me] = cell
        pool.run(cell)
        del pool.running[me], cell  # a sleeping worker keeps nothing alive


class PriorityExecutor:
    """Worker threads that take the ready cell which is first by policy and run it for a quota.

    The threads start with the first cell; `shutdown` lets them finish what is ready and ends them.
    """

    def __init__(self, threads: int, policy: str = "fair", *, name: str = "fastactor") -> None:
        threads = _api.check_int("threads", threads, 1, 4096)
        number = _api.check_choice("policy", policy, _api.POLICIES)
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        self._pool = _Pool(threads, number, name)
        self._policy = policy
        self._name = name
        self._stop_when_dropped = weakref.finalize(self, _stop, self._pool, None)
        self._stop_when_dropped.atexit = False

    @property
    def threads(self) -> int:
        """How many workers there are."""
        return self._pool.threads

    @property
    def policy(self) -> str:
        """Which ready cell goes first."""
        return self._policy

    @property
    def name(self) -> str:
        """What the threads are named after."""
        return self._name

    @property
    def busy(self) -> int:
        """How many workers are running a cell."""
        return len(self._pool.running)

    @property
    def processed(self) -> int:
        """How many messages the workers have handled."""
        return self._pool.processed

    def __len__(self) -> int:
        return len(self._pool.ready)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<PriorityExecutor {self._name!r}: {self.threads} threads, {self._policy}, {len(self)} ready>"

    def execute(self, cell: ActorCell) -> bool:
        """Run the cell here, now and whenever it is scheduled from now on; False when it cannot be.

        That is: when it is closed, suspended, already scheduled, or this executor has been shut down.
        """
        if not isinstance(cell, ActorCell):
            raise TypeError(f"execute takes an ActorCell, not {type(cell).__name__}")
        if not cell._status.try_schedule():
            return False
        cell._executor = self
        return self._push(cell)

    def shutdown(self, wait: bool = True, timeout: float | None = None) -> bool:
        """Let the workers handle what is ready and end; True when all of them have ended."""
        timeout = _api.check_timeout(timeout)
        _stop(self._pool, None)
        return self._join(timeout) if wait else False

    # the runtime's half

    def _push(self, cell: ActorCell) -> bool:
        """Queue a cell that the caller has just made Scheduled."""
        pool = self._pool
        with pool.lock:
            if pool.stopped:
                cell._status._set_idle()
                return False
            pool.add_ready(cell, after_turn=False)
            started = bool(pool.workers)
        if not started:
            self._start_workers()
        return True

    def _hurry(self, cell: ActorCell) -> bool:
        """If the cell waits for a delay to pass, make it ready now."""
        with self._pool.lock:
            if cell._timer is None or self._pool.stopped:
                return False
            self._pool.cancel_timer(cell)
            self._pool.add_ready(cell, after_turn=True)
            return True

    def _start_workers(self) -> None:
        pool = self._pool
        with pool.lock:
            if pool.workers:
                return
            pool.workers = [
                threading.Thread(
                    target=_work, args=(pool,), name=f"{pool.name}-worker-{n}", daemon=True
                )
                for n in range(1, pool.threads + 1)
            ]
        for worker in pool.workers:
            worker.start()

    def _set_chore(self, chore: Callable[[], None]) -> None:
        """What a worker calls when `_chore_in` says so."""
        self._pool.chore = chore

    def _chore_in(self, delay: float) -> None:
        """See that the chore is done in `delay` seconds at the latest."""
        pool = self._pool
        due = _now() + int(delay * 1e9)
        with pool.lock:
            if pool.chore_due is None or due < pool.chore_due:
                pool.chore_due = due
                pool.work.notify()
        self._start_workers()

    def _running(self) -> list[ActorCell]:
        return list(self._pool.running.values())

    def _abandon(self) -> None:
        """After a fork, in the child: the workers are the parent's."""
        self._stop_when_dropped.detach()
        pool = self._pool
        pool.lock = threading.Lock()
        pool.work = threading.Condition(pool.lock)
        pool.ready, pool.timers, pool.workers, pool.running = [], [], [], {}
        pool.stopped = True  # if the forking thread is a worker, it ends when its processor returns

    def _stop(self, on_quiet: Callable[[], None] | None) -> None:
        _stop(self._pool, on_quiet)

    def _join(self, timeout: float | None) -> bool:
        """Wait for the workers to end. A worker cannot wait for itself: False there."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for worker in self._pool.workers:
            if worker is threading.current_thread():
                return False
            worker.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
            if worker.is_alive():
                return False
        return True


def _stop(pool: _Pool, on_quiet: Callable[[], None] | None) -> None:
    """End the workers once nothing is ready, running or delayed and `on_quiet` has been called."""
    with pool.lock:
        asleep = not pool.workers and not pool.ready
    if asleep and on_quiet is not None:
        on_quiet()  # nobody else would; it may post events, and so wake the workers after all
        on_quiet = None
    with pool.lock:
        pool.stopping = True
        pool.on_quiet = on_quiet or pool.on_quiet
        pool.stopped = pool.stopped or (not pool.workers and not pool.ready)
        pool.work.notify_all()


# -- system: the hot half -------------------------------------------------------------------------


class SystemCore:
    """What of an ActorSystem is on the way of each message: the registry and `dispatch`."""

    def __init__(self) -> None:
        self._cells: dict[Any, ActorCell] = {}
        self._state = 0  # 0 open, 1 draining (only its own processors may dispatch), 2 closed
        self._executor: PriorityExecutor

    if TYPE_CHECKING:  # the layer's half, as seen from here
        name: str

        def _admit(self) -> None: ...
        def _create(self, path: Any, processor: Processor | None) -> ActorCell: ...
        def _revive(self, cell: ActorCell) -> ActorCell: ...
        def _stop(self, cell: ActorCell) -> bool: ...
        def _dropped(self, cell: ActorCell, message: Any, reason: str) -> None: ...
        def _failed(
            self, cell: ActorCell, message: Any, error: BaseException, failures: int
        ) -> float: ...

    def dispatch(
        self, path: Any, message: Any, processor: Processor | None = None, *, timeout: float | None = None
    ) -> bool:
        """Create or get the cell of `path` and dispatch the message to it.

        The first processor of a path wins. Without a processor the cell must exist (LookupError).
        """
        cell = self._cells.get(path)
        if cell is None:
            cell = self._create(path, processor)
        return cell.dispatch(message, timeout=timeout)

    def dispatch_many(
        self, path: Any, messages: Iterable[Any], processor: Processor | None = None
    ) -> int:
        """Dispatch each message in order; how many were accepted (also in MailboxFull.accepted)."""
        cell = self._cells.get(path)
        if cell is None:
            cell = self._create(path, processor)
        return cell.dispatch_many(messages)

    def get(self, path: Any) -> ActorCell | None:
        """The cell of `path`, or None."""
        return self._cells.get(path)

    def __len__(self) -> int:
        return len(self._cells)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, path: object) -> bool:
        return path in self._cells

    def __iter__(self) -> Iterator[ActorCell]:
        return iter(list(self._cells.values()))

    def _tally(self) -> int:
        """Messages queued in all registered cells."""
        return sum(map(len, self))


class ActorSystem(SystemLayer, SystemCore):
    __doc__ = SystemLayer.__doc__
    _core = (ActorCell, PriorityExecutor, current_cell)
