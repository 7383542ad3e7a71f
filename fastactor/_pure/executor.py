"""The ready queue and the workers. You are here: ready.push -> worker.take -> ... -> look again."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Final

from .. import _api
from ..process import remember_executor
from .cell import IDLE, ActorCell, run_as
from .status import CLOSED

log = logging.getLogger("fastactor")
_now = time.monotonic_ns

# A cell that waits may be this many slices per worker behind V, one that ran long this many ahead.
# The first keeps heavy weights exact on several workers; the second forgives a single very long message
# (1 s at the default quota), so that it does not shut its key out for as long again.
_LAG_SLICES: Final = 2
_DEBT_SLICES: Final = 200
_MIN_CHARGE: Final = 1000  # ns; even a free message moves its cell back in the queue


class _Pool:
    """Ready queue, delayed cells and the workers' meeting point. Threads hold this, not the executor."""

    def __init__(self, threads: int, policy: int, name: str) -> None:
        self.threads = threads
        self.policy = policy
        self.name = name
        self.lock = threading.RLock()
        self.work = threading.Condition(self.lock)
        self.ready: list[tuple[int, int, ActorCell]] = []
        self.timers: list[list[Any]] = []  # [due, sequence, cell or None when cancelled]
        self.delayed = 0  # timers that are not cancelled; they hold up the end of the pool
        self.chore: Callable[[], None] | None = None
        self.chore_due: int | None = None
        self.sequence = itertools.count()  # next() is one step, whatever runs in between
        self.virtual = 0  # V
        self.max_finish = 0
        self.busy = 0
        self.processed = 0
        self.running: dict[int, ActorCell] = {}
        self.stopping = False
        self.stopped = False
        self.on_quiet: Callable[[], bool] | None = None
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
        cell._ready_since = _now()
        heapq.heappush(self.ready, (self.place(cell, after_turn), next(self.sequence), cell))
        self.work.notify()

    def add_timer(self, cell: ActorCell, delay: float) -> None:
        cell._timer = [_now() + int(delay * 1e9), next(self.sequence), cell]
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

    def aside(self, call: Callable[[], object] | None) -> bool:
        """Call something of the system's without the lock; counts as busy, so that the pool does not end.

        False if it wants to be called again.
        """
        if call is None:
            return True
        self.busy += 1
        self.lock.release()
        try:
            return call() is not False
        except BaseException:
            log.exception("%s: a chore failed", self.name)
            return True
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
        if self.aside(self.on_quiet):
            self.on_quiet = None
        if self.on_quiet or self.ready or self.delayed or self.busy:
            return False
        self.stopped = True
        self.work.notify_all()
        return True

    def run(self, cell: ActorCell) -> None:
        """One turn of one cell, and where the cell goes then."""
        started = cell._last_run = _now()
        before = cell._processed
        run_as(cell)
        verdict, ended = cell._turn(started)
        run_as(None)
        handled = cell._processed - before
        used = ended - started
        cell._total += used
        cell._active_at = ended
        cell._finish = finish = (cell._start or 0) + int(max(used, _MIN_CHARGE) / cell._weight)
        if verdict == IDLE:
            if cell._status._set_idle() & CLOSED:
                for message in cell._mailbox._pop():
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
        pool.running.pop(me, None)  # gone already in the child of a fork
        del cell  # a sleeping worker keeps nothing alive


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
        self._starting = threading.RLock()
        self._stop_when_dropped = weakref.finalize(self, _stop, self._pool, None)
        self._stop_when_dropped.atexit = False
        remember_executor(self)

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
        if self._stopped or not cell._status.try_schedule():
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

    @property
    def _stopped(self) -> bool:
        return self._pool.stopped

    def _start_workers(self) -> None:
        pool = self._pool
        with self._starting:
            if pool.workers:
                return
            # Listed before they start: whoever dispatches meanwhile, even this thread, starts no others.
            pool.workers = [
                threading.Thread(target=_work, args=(pool,), name=f"{pool.name}-worker-{n}", daemon=True)
                for n in range(1, pool.threads + 1)
            ]
            try:
                for worker in pool.workers:
                    worker.start()
            except BaseException:
                # Fewer will do, if there is one. An interrupt may come after a thread has begun.
                begun = threading.enumerate()
                pool.workers = [worker for worker in pool.workers if worker in begun]
                if not pool.workers:
                    self._take_back()
                raise

    def _take_back(self) -> None:
        """There is no worker: nothing is ready any more, and the next dispatch tries again."""
        with self._pool.lock:
            ready, self._pool.ready = self._pool.ready, []
        for _, _, cell in ready:
            cell._ready_since = 0
            cell._status._set_idle()

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
        return list(self._pool.running.copy().values())

    def _abandon(self) -> None:
        """After a fork, in the child: the workers are the parent's."""
        self._stop_when_dropped.detach()
        pool = self._pool
        pool.lock = threading.RLock()
        pool.work = threading.Condition(pool.lock)
        pool.ready, pool.timers, pool.workers, pool.running = [], [], [], {}
        self._starting = threading.RLock()
        pool.chore_due, pool.on_quiet = None, None
        pool.stopped = True  # if the forking thread is a worker, it ends when its processor returns

    def _stop(self, on_quiet: Callable[[], bool] | None) -> None:
        _stop(self._pool, on_quiet)

    def _join(self, timeout: float | None) -> bool:
        """Wait for the workers to end. A worker cannot wait for itself: False there."""
        with self._starting:
            workers = list(self._pool.workers)
        return _api.join_all(workers, timeout)


def _stop(pool: _Pool, on_quiet: Callable[[], bool] | None) -> None:
    """End the workers once nothing is ready, running or delayed and `on_quiet` agrees."""
    while on_quiet is not None and not pool.workers and not pool.ready:
        # Nobody else would call it; it may post events, and so wake the workers after all.
        if on_quiet():
            on_quiet = None
    with pool.lock:
        pool.stopping = True
        pool.on_quiet = on_quiet or pool.on_quiet
        pool.stopped = pool.stopped or (not pool.workers and not pool.ready)
        pool.work.notify_all()
