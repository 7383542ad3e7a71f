# cython: language_level=3, freethreading_compatible=True, embedsignature=True, binding=False, annotation_typing=False
"""The native runtime: the classes of _pure.py over csrc/. C owns when, this file owns what: references,
arguments, exceptions and the GIL.

    dispatch -> mailbox.push -> status.try_schedule -> ready.push -> worker.take -> processor(message, cell)
             -> mailbox.pop -> (quota over | empty | suspended) -> status.set_idle -> look again -> ready.push

References: a node owns one to its message; the Scheduled bit owns one to its cell, from `make_ready` to
`release_cell`. Every push and pop of a Python object happens on an attached thread, which is why the garbage
collector may walk the mailboxes.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from ._fa cimport *

import logging
import os
import sys
import threading
import time

from . import _api
from .hold import Hold
from .overflow import refused
from .system import SystemLayer

cdef extern from "Python.h" nogil:
    ctypedef struct PyThreadState
    ctypedef struct PyInterpreterState
    PyThreadState *PyThreadState_Get()
    PyThreadState *PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState *state)
    PyInterpreterState *PyInterpreterState_Get()
    PyObject *PyObject_Vectorcall(PyObject *call, PyObject **arguments, size_t count, PyObject *names)
    const size_t PY_VECTORCALL_ARGUMENTS_OFFSET
    PyObject *Py_False
    void Py_XDECREF(PyObject *value)

cdef extern from "stdbool.h":
    ctypedef bint c_bool "bool"

cdef extern from "_interp.h" nogil:
    PyObject *fa_get_current()
    void fa_set_current(PyObject *cell)
    int fa_gil_is_free(PyInterpreterState *interpreter)
    int fa_is_attached(PyThreadState *thread)

cdef extern from "_gc.h":
    void fa_gc_cell_install(object cls, Py_ssize_t offset)
    void fa_gc_queue_install(object cls, Py_ssize_t offset)

implementation = "native"

log = logging.getLogger("fastactor")

cdef tuple OVERFLOW_NAMES = _api.OVERFLOW_NAMES
cdef tuple CLOSE_REASONS = ("", "stopped", "shutdown", "idle", "error")
cdef double MOVED_ASIDE = _api.MOVED_ASIDE
cdef double STAYS = _api.STAYS

# On the main thread a wait ends this often to see whether a signal, such as Ctrl-C, has come.
cdef int64_t SIGNAL_EVERY = 50_000_000

# Whether threads exclude each other while they run Python: on a free-threaded build, only if asked to.
cdef bint has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
cdef PyInterpreterState *interpreter = PyInterpreterState_Get()


# -- status word ----------------------------------------------------------------------------------------------


@cython.final
cdef class StatusWord:
    """Open 0; bit 0 Closed, final; bit 1 Scheduled; each unit of 4 one suspension."""

    def __cinit__(self):
        fa_status_init(&self.own)
        self.word = &self.own

    def __init__(self):
        pass

    def try_schedule(self) -> bool:
        """Open -> Scheduled. True for exactly one caller, who alone may push the cell on the ready queue."""
        return fa_status_try_schedule(self.word)

    def set_idle(self) -> None:
        """Clear Scheduled. Whoever calls it must look at the mailbox again afterwards."""
        if fa_status_value(self.word) & FA_SCHEDULED:
            fa_status_set_idle(self.word)

    def suspend(self) -> None:
        """Add one suspension; as many `resume`s are needed. It takes effect before the next message."""
        if not fa_status_suspend(self.word):
            raise OverflowError(f"more than {2**32 // FA_SUSPEND_UNIT - 1} suspensions")

    def resume(self) -> bool:
        """Take one suspension away; True when none is left. One too many stays at zero."""
        return fa_status_resume(self.word)

    def close(self) -> None:
        """Set Closed, for good."""
        fa_status_close(self.word)

    def should_process(self) -> bool:
        """Whether the next message may be handled: neither closed nor suspended."""
        return fa_status_should_process(self.word)

    @property
    def suspend_count(self) -> int:
        return fa_status_value(self.word) // FA_SUSPEND_UNIT

    @property
    def is_scheduled(self) -> bool:
        return fa_status_value(self.word) & FA_SCHEDULED != 0

    @property
    def is_closed(self) -> bool:
        return fa_status_value(self.word) & FA_CLOSED != 0

    @property
    def value(self) -> int:
        return fa_status_value(self.word)

    def __repr__(self):
        return (
            f"<StatusWord {self.value}: closed={self.is_closed}, scheduled={self.is_scheduled}, "
            f"suspensions={self.suspend_count}>"
        )


# -- mailbox --------------------------------------------------------------------------------------------------


cdef void drop(void *message) noexcept:
    Py_DECREF(<object>message)


cdef inline object owned(void *message):
    """The object of a reference that has been ours, and is the caller's now."""
    cdef object value = <object>message
    Py_DECREF(value)
    return value


@cython.final
cdef class BoundedNodeQueue:
    """Bounded first-in-first-out queue: many producers, one consumer, False when exactly full.

    The consumer takes the head *into its hand*, where it still counts, and drops it from there when it is
    handled. What is in the hand belongs to the consumer alone; everything behind it may be evicted or
    drained by anybody.
    """

    def __cinit__(self, capacity):
        fa_mailbox_init(&self.box, 1, 0)  # so that __dealloc__ has one, whatever the capacity is
        self.box.capacity = _api.check_int("capacity", capacity, 1, _api.MAX_CAPACITY)

    def __init__(self, capacity: int):
        pass

    def __dealloc__(self):
        fa_mailbox_destroy(&self.box, <fa_dropper><void *>drop)

    @property
    def capacity(self) -> int:
        return self.box.capacity

    def add(self, value) -> bool:
        """Append; False when the queue is full."""
        Py_INCREF(value)
        cdef int result = fa_mailbox_push(&self.box, <void *>value)
        if result == FA_OK:
            return True
        Py_DECREF(value)
        if result == FA_NOMEM:
            raise MemoryError
        return False

    def peek(self, default=None):
        """The head, which stays; `default` when the queue is empty."""
        fa_mailbox_lock(&self.box)  # so that nobody polls it before we have a reference
        cdef PyObject *head = <PyObject *>fa_mailbox_head(&self.box)
        if head != NULL:
            Py_INCREF(<object>head)
        fa_mailbox_unlock(&self.box)
        return default if head == NULL else owned(head)

    def poll(self, default=None):
        """Remove and return the head; `default` when the queue is empty."""
        cdef void *head = fa_mailbox_poll(&self.box)
        return default if head == NULL else owned(head)

    def is_empty(self) -> bool:
        return fa_mailbox_len(&self.box) == 0

    def count(self) -> int:
        return fa_mailbox_len(&self.box)

    def __len__(self):
        return fa_mailbox_len(&self.box)

    def __repr__(self):
        return f"<BoundedNodeQueue {len(self)} of {self.capacity}>"


# -- cell -----------------------------------------------------------------------------------------------------


@cython.final
cdef class ActorCell:
    """One path, one mailbox, one status word, one processor. Made by `ActorSystem.cell`."""

    def __cinit__(
        self,
        system,
        path,
        processor,
        *,
        weight=1.0,
        capacity=_api.DEFAULT_CAPACITY,
        quota=_api.DEFAULT_QUOTA,
        overflow="raise",
        on_error="dead-letter",
    ):
        fa_cell_init(&self.cell, 1, 1, 1.0, 0)  # so that __dealloc__ has one, whatever is wrong below
        if not isinstance(system, SystemCore):
            raise TypeError(f"system must be an ActorSystem, not {type(system).__name__}")
        hash(path)
        self.home = system
        self.key = path
        self._process = _api.bind_processor(processor)
        self.error_policy = _api.check_on_error(on_error)
        self.executor = self.home._executor
        fa_cell_init(
            &self.cell,
            _api.check_int("capacity", capacity, 1, _api.MAX_CAPACITY),
            <uint32_t>(<double>_api.check_quota(quota) * 1e6),
            _api.check_weight(weight),
            _api.check_choice("overflow", overflow, _api.OVERFLOWS),
        )

    def __init__(
        self,
        system,
        path,
        processor,
        *,
        weight: float = 1.0,
        capacity: int = _api.DEFAULT_CAPACITY,
        quota: float = _api.DEFAULT_QUOTA,
        overflow: str = "raise",
        on_error="dead-letter",
    ):
        pass

    def __dealloc__(self):
        fa_mailbox_destroy(&self.cell.mailbox, <fa_dropper><void *>drop)

    @property
    def path(self):
        """The key of this cell."""
        return self.key

    @property
    def system(self):
        """The system this cell belongs to."""
        return self.home

    @property
    def status(self) -> StatusWord:
        """The live status word. Its `resume` does not schedule; the cell's own does."""
        cdef StatusWord view = StatusWord.__new__(StatusWord)
        view.word = &self.cell.status
        view.cell = self
        return view

    @property
    def capacity(self) -> int:
        return self.cell.mailbox.capacity

    @property
    def quota(self) -> float:
        """Seconds of one turn."""
        return self.cell.quota_us / 1e6

    @property
    def overflow(self) -> str:
        """What happens when the mailbox is full."""
        return OVERFLOW_NAMES[self.cell.overflow]

    @property
    def on_error(self):
        """What happens when the processor raises."""
        return self.error_policy

    @property
    def total(self) -> float:
        """Seconds of worker time used so far."""
        return fa_cell_total(&self.cell) / 1e9

    @property
    def processed(self) -> int:
        """How many messages have been handled, those moved aside after an error included."""
        return fa_cell_handled(&self.cell)

    @property
    def weight(self) -> float:
        """The share of this cell against others; a new weight counts from the next turn on."""
        return round(fa_cell_weight(&self.cell), 6)  # kept in 32 bits

    @weight.setter
    def weight(self, value: float):
        fa_cell_set_weight(&self.cell, _api.check_weight(value))

    def __len__(self):
        return fa_mailbox_len(&self.cell.mailbox)

    def __bool__(self):
        return True  # an empty mailbox does not make a cell false

    def __repr__(self):
        return f"<ActorCell {self.key!r}: {len(self)} queued, status {fa_status_value(&self.cell.status)}>"

    def dispatch(self, message, *, timeout=None) -> bool:
        """Put a message into the mailbox and see that it is handled.

        False when the message became a dead letter instead. What happens on a full mailbox is the cell's
        overflow policy; `timeout` bounds the wait of "block". Thread-safe.
        """
        if fa_flag_get(&self.home.state):
            self.home._admit()
        return offer(self, message, timeout)

    def dispatch_many(self, messages) -> int:
        """Dispatch each of `messages` in order; how many were accepted."""
        if fa_flag_get(&self.home.state):
            self.home._admit()
        if isinstance(messages, (list, tuple)):
            return offer_many(self, messages)
        cdef Py_ssize_t accepted = 0
        try:
            for message in messages:
                accepted += offer_one_of_many(self, message, accepted)
        finally:
            wake(self)
        return accepted

    def suspend(self) -> None:
        """Handle no further message until as many `resume`s; the current one ends normally."""
        if not fa_status_suspend(&self.cell.status):
            raise OverflowError(f"more than {2**32 // FA_SUSPEND_UNIT - 1} suspensions")

    def resume(self) -> bool:
        """Take one suspension away; True when none is left, and then the cell goes on."""
        cdef bint free = fa_status_resume(&self.cell.status)
        if free:
            wake(self)
        return free

    def hold(self):
        """Suspend the cell and return the token that ends just this suspension."""
        return Hold(self)

    def stop(self) -> bool:
        """Close the cell after its current message; what is queued becomes dead letters."""
        return self.home._stop(self)

    # the runtime's half

    @property
    def _executor(self):
        with cython.critical_section(self):
            return self.executor

    @property
    def _overflow(self):
        return self.cell.overflow

    @property
    def _active_at(self):
        return fa_cell_since(&self.cell)

    def _offer(self, message):
        return offer(self, message, None)

    def _push(self, message):
        return push(self, message)

    def _evict(self):
        cdef void *message = fa_mailbox_evict(&self.cell.mailbox)
        if message == NULL:
            return ()
        fa_room_wake(&self.cell.mailbox, False)
        return (owned(message),)

    def _wait_for_room(self, timeout):
        wait_for_room(self, FA_NEVER if timeout is None else <int64_t>(<double>timeout * 1e9))

    def _runs_here(self):
        return fa_get_current() == <PyObject *>self

    def _wake(self):
        wake(self)

    def _close(self, reason):
        """Close for good. The messages that nobody handles any more, or None when it was closed before.

        A worker that runs the cell keeps the message in its hand, and dead-letters it if it stays.
        """
        fa_mailbox_close(&self.cell.mailbox)
        fa_room_wake(&self.cell.mailbox, True)
        cdef uint8_t number = CLOSE_REASONS.index(reason)
        cdef uint32_t before
        with cython.critical_section(self):
            before = fa_status_close(&self.cell.status)
            if not before & FA_CLOSED:
                self.close_reason = number
        if before & FA_CLOSED:
            return None
        cdef list left = []
        cdef void *message
        if before & FA_SCHEDULED:
            self._executor._hurry(self)
        else:
            message = fa_mailbox_take_hand(&self.cell.mailbox)
            if message != NULL:
                left.append(owned(message))
        while True:
            message = fa_mailbox_evict(&self.cell.mailbox)
            if message == NULL:
                return left
            left.append(owned(message))

    def _retire(self):
        """Close the cell if it is idle and empty, so that no message can be lost between the two."""
        if not fa_status_try_schedule(&self.cell.status):
            return False
        if not fa_mailbox_close_if_empty(&self.cell.mailbox):
            make_ready(self)
            return False
        self._retired = True
        self.close_reason = CLOSE_REASONS.index("idle")
        fa_status_close(&self.cell.status)
        fa_status_set_idle(&self.cell.status)
        return True

    def _abandon(self):
        """After a fork, in the child: this cell is the parent's; its path lives on in a new cell."""
        # The nodes leak: at the fork another thread may have been in the middle of them.
        self._retired = True
        fa_cell_init(
            &self.cell, self.cell.mailbox.capacity, self.cell.quota_us, fa_cell_weight(&self.cell),
            self.cell.overflow
        )
        fa_mailbox_close(&self.cell.mailbox)
        fa_status_close(&self.cell.status)
        if fa_get_current() == <PyObject *>self:
            # Its turn is this very thread, which the fork has taken along: it lets go of it at the end.
            Py_INCREF(self)

    def _wait(self, int64_t now):
        """Seconds since the cell became ready, if it waits for a worker."""
        return max(0, now - fa_cell_since(&self.cell)) / 1e9 if fa_cell_is_ready(&self.cell) else 0.0


cdef inline int push(ActorCell cell, message) except -1:
    Py_INCREF(message)
    cdef int result = fa_mailbox_push(&cell.cell.mailbox, <void *>message)
    if result != FA_OK:
        Py_DECREF(message)
        if result == FA_NOMEM:
            raise MemoryError
    return result


cdef inline bint offer(ActorCell cell, message, timeout) except -1:
    if timeout is not None:
        timeout = _api.check_timeout(timeout)
    cdef int result = push(cell, message)
    if result != FA_OK:
        return refused(cell, message, result, timeout, 0)
    if fa_status_try_schedule(&cell.cell.status):
        make_ready(cell)
    return True


cdef bint offer_one_of_many(ActorCell cell, message, Py_ssize_t accepted) except -1:
    cdef int result = push(cell, message)
    if result == FA_OK:
        return True
    wake(cell)  # what was accepted must not wait for this one
    return refused(cell, message, result, None, accepted)


cdef Py_ssize_t offer_many(ActorCell cell, messages) except -1:
    """A list or a tuple goes in as one chain, as far as there is room; the rest one by one."""
    cdef tuple kept = tuple(messages)  # a list could change under us
    cdef Py_ssize_t count = len(kept), accepted = 0, place = 0, i
    cdef uint32_t pushed = 0
    cdef PyObject **items = <PyObject **>tuple_items(kept)
    cdef uint32_t part = <uint32_t>min(count, cell.cell.mailbox.capacity)
    for i in range(part):
        Py_INCREF(<object>items[i])
    cdef int result = fa_mailbox_push_many(&cell.cell.mailbox, <void **>items, part, &pushed)
    for i in range(pushed, part):
        Py_DECREF(<object>items[i])
    if result == FA_NOMEM:
        wake(cell)
        raise MemoryError
    try:
        accepted = pushed
        for place in range(pushed, count):
            accepted += offer_one_of_many(cell, <object>items[place], accepted)
    finally:
        wake(cell)
    return accepted


cdef extern from *:
    """
    #define fa_tuple_items(values) (((PyTupleObject *)(values))->ob_item)
    """
    PyObject **tuple_items "fa_tuple_items" (tuple values)


cdef inline int wake(ActorCell cell) except -1:
    """Schedule the cell if it has a message and nobody else has scheduled it."""
    if fa_mailbox_len(&cell.cell.mailbox) and fa_status_try_schedule(&cell.cell.status):
        make_ready(cell)
    return 0


cdef bint make_ready(ActorCell cell) except -1:
    """Queue a cell that the caller has just made Scheduled; the bit takes a reference."""
    cdef PriorityExecutor executor = cell.executor
    Py_INCREF(cell)
    cdef int result = fa_pool_push(executor.pool.pool, &cell.cell)
    if result == FA_OK:
        if not fa_flag_get(&executor.started):
            executor._start_workers()
        return True
    fa_status_set_idle(&cell.cell.status)
    Py_DECREF(cell)
    if result == FA_NOMEM:
        raise MemoryError
    return False


cdef int wait_for_room(ActorCell cell, int64_t timeout) except -1:
    """Wait with the GIL released until there may be room, or the timeout; signals are seen meanwhile."""
    cdef int64_t deadline = FA_NEVER if timeout == FA_NEVER else fa_now() + timeout
    cdef bint on_main = threading.current_thread() is threading.main_thread()
    cdef int64_t until
    cdef bint woken = False
    cdef fa_waiter waiter
    fa_room_enter(&cell.cell.mailbox, &waiter)
    try:
        while not woken and fa_now() < deadline:
            until = min(deadline, fa_now() + SIGNAL_EVERY) if on_main else deadline
            with nogil:
                woken = fa_room_wait(&waiter, until)
            if on_main:
                PyErr_CheckSignals()
    finally:
        fa_room_leave(&waiter)
    return 0


def current_cell():
    """The cell whose processor this thread is running, or None."""
    cdef PyObject *cell = fa_get_current()
    return None if cell == NULL else <object>cell


# -- what a worker asks of Python: fa_ops -------------------------------------------------------------------------

# Where the fa_cell is inside of its ActorCell.
cdef Py_ssize_t cell_offset = 0


cdef inline PyObject *owner_of(fa_cell *cell) noexcept nogil:
    return <PyObject *>(<char *>cell - cell_offset)


cdef void attach(fa_worker *worker) noexcept nogil:
    PyEval_RestoreThread(<PyThreadState *>worker.context)


cdef void detach(fa_worker *worker) noexcept nogil:
    PyEval_SaveThread()


cdef int handle(fa_cell *cell, void *message, int64_t *delay) noexcept:
    """Call the processor. The hand keeps the message alive, the Scheduled bit the cell."""
    cdef PyObject *owner = owner_of(cell)
    cdef PyObject *arguments[3]
    arguments[1] = <PyObject *>message
    arguments[2] = owner
    cdef PyObject *answer = PyObject_Vectorcall(
        <PyObject *>(<ActorCell>owner)._process, arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL
    )
    if answer == NULL:
        return failure(<ActorCell>owner, <object>message, delay)
    cdef int outcome = FA_NOT_NOW if answer == Py_False else FA_HANDLED
    Py_DECREF(<object>answer)
    return outcome


cdef void raise_current() except *:
    """The exception that is set becomes one that Cython sees."""
    pass


cdef int failure(ActorCell cell, message, int64_t *delay) noexcept:
    """Follow the error policy for the exception that is set."""
    cdef double verdict = MOVED_ASIDE
    cell.cell.failures += 1
    try:
        try:
            raise_current()
        except BaseException as error:
            verdict = cell.home._failed(cell, message, error, cell.cell.failures)
    except BaseException:
        log.exception("%s: the error policy of %r failed", cell.home.name, cell.key)
    if verdict >= 0:
        delay[0] = <int64_t>(verdict * 1e9)
        return FA_RETRY
    return FA_STAYS if verdict == STAYS else FA_HANDLED


cdef void turn(fa_worker *worker, fa_cell *cell, int64_t started, fa_turn *result) noexcept:
    fa_set_current(owner_of(cell))
    fa_run_turn(cell, started, result, <fa_handler><void *>handle, <fa_dropper><void *>drop)
    fa_set_current(NULL)


cdef void abandon(fa_cell *cell) noexcept:
    """A worker is done with a closed cell: a message that was not handled is a dead letter."""
    cdef ActorCell owner = <ActorCell>owner_of(cell)
    cdef void *message = fa_mailbox_take_hand(&cell.mailbox)
    if message != NULL:
        try:
            owner.home._dropped(owner, owned(message), CLOSE_REASONS[owner.close_reason])
        except BaseException:
            log.exception("%s: a dead letter of %r was lost", owner.home.name, owner.key)


cdef void release_cell(fa_cell *cell) noexcept:
    Py_DECREF(<object>owner_of(cell))


cdef void chore(fa_pool *pool) noexcept:
    call_aside(pool, (<Pool>pool.owner).chore)


cdef void quiet(fa_pool *pool) noexcept:
    cdef Pool owner = <Pool>pool.owner
    hook, owner.on_quiet = owner.on_quiet, None
    call_aside(pool, hook)


cdef int call_aside(fa_pool *pool, call) except -1:
    if call is not None:
        try:
            call()
        except BaseException:
            log.exception("a chore failed")
    return 0


cdef c_bool spare(fa_pool *pool) noexcept nogil:
    """Could another worker get anywhere? With a GIL: if it is free. Without: if a core is."""
    if has_gil:
        return fa_gil_is_free(interpreter)
    cdef uint32_t i, attached = 0
    for i in range(pool.threads):
        if pool.workers[i].cell != NULL:
            attached += fa_is_attached(<PyThreadState *>pool.workers[i].context)
    return attached < pool.width


cdef fa_ops ops
ops.attach = attach
ops.detach = detach
ops.turn = <void (*)(fa_worker *, fa_cell *, int64_t, fa_turn *) noexcept nogil><void *>turn
ops.abandon = <void (*)(fa_cell *) noexcept nogil><void *>abandon
ops.release = <void (*)(fa_cell *) noexcept nogil><void *>release_cell
ops.chore = <void (*)(fa_pool *) noexcept nogil><void *>chore
ops.quiet = <void (*)(fa_pool *) noexcept nogil><void *>quiet
ops.spare = spare


# -- executor -------------------------------------------------------------------------------------------------


@cython.final
cdef class Pool:
    """The fa_pool, kept alive by the executor and by the threads; these do not keep the executor alive."""

    def __dealloc__(self):
        if self.pool != NULL:
            fa_pool_free(self.pool)


def work(Pool pool):
    """The life of one worker thread: native, and detached but for the turns of cells."""
    cdef void *state = PyThreadState_Get()
    with nogil:
        fa_worker_main(pool.pool, state)


@cython.final
@cython.no_gc_clear  # __dealloc__ needs the pool; the cycles through it are broken in the system
cdef class PriorityExecutor:
    """Worker threads that take the ready cell which is first by policy and run it for a quota.

    The threads start with the first cell; `shutdown` lets them finish what is ready and ends them.
    """

    def __cinit__(self, threads, policy="fair", *, name="fastactor"):
        cdef uint32_t count = _api.check_int("threads", threads, 1, 4096)
        cdef uint32_t number = _api.check_choice("policy", policy, _api.POLICIES)
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        self.label = name
        self.order = policy
        self.workers = []
        self.starting = threading.Lock()
        self.pool = Pool()
        cdef uint32_t width = 1 if has_gil else (os.cpu_count() or 1)
        self.pool.pool = fa_pool_new(count, width, number, &ops, <void *>self.pool)
        if self.pool.pool == NULL:
            raise MemoryError

    def __init__(self, threads: int, policy: str = "fair", *, name: str = "fastactor"):
        pass

    def __dealloc__(self):
        if self.pool is not None and self.pool.pool != NULL:
            fa_pool_stop(self.pool.pool)

    @property
    def name(self) -> str:
        """What the threads are named after."""
        return self.label

    @property
    def policy(self) -> str:
        """Which ready cell goes first."""
        return self.order

    @property
    def threads(self) -> int:
        """How many workers there are."""
        return self.pool.pool.threads

    @property
    def busy(self) -> int:
        """How many workers are running a cell."""
        return fa_pool_running(self.pool.pool)

    @property
    def processed(self) -> int:
        """How many messages the workers have handled."""
        return fa_pool_processed(self.pool.pool)

    def __len__(self):
        return fa_pool_ready(self.pool.pool)

    def __bool__(self):
        return True

    def __repr__(self):
        return f"<PriorityExecutor {self.label!r}: {self.threads} threads, {self.order}, {len(self)} ready>"

    def execute(self, cell) -> bool:
        """Run the cell here, now and whenever it is scheduled from now on; False when it cannot be.

        That is: when it is closed, suspended, already scheduled, or this executor has been shut down.
        """
        if not isinstance(cell, ActorCell):
            raise TypeError(f"execute takes an ActorCell, not {type(cell).__name__}")
        cdef ActorCell owned_cell = cell
        if not fa_status_try_schedule(&owned_cell.cell.status):
            return False
        with cython.critical_section(owned_cell):
            owned_cell.executor = self
        return make_ready(owned_cell)

    def shutdown(self, wait: bool = True, timeout=None) -> bool:
        """Let the workers handle what is ready and end; True when all of them have ended."""
        timeout = _api.check_timeout(timeout)
        self._stop(None)
        return self._join(timeout) if wait else False

    # the runtime's half

    def _hurry(self, ActorCell cell):
        """If the cell waits for a delay to pass, make it ready now."""
        return fa_pool_hurry(self.pool.pool, &cell.cell)

    def _start_workers(self):
        with self.starting:
            if fa_flag_get(&self.started):
                return
            self.workers = [
                threading.Thread(target=work, args=(self.pool,), name=f"{self.label}-worker-{n}", daemon=True)
                for n in range(1, self.threads + 1)
            ]
            for worker in self.workers:
                worker.start()
            fa_flag_set(&self.started, 1)

    def _set_chore(self, chore):
        """What a worker calls when `_chore_in` says so."""
        self.pool.chore = chore

    def _chore_in(self, delay):
        """See that the chore is done in `delay` seconds at the latest."""
        fa_pool_chore_at(self.pool.pool, fa_now() + <int64_t>(<double>delay * 1e9))
        if not fa_flag_get(&self.started):
            self._start_workers()

    def _running(self):
        cells = []
        fa_pool_see_running(self.pool.pool, <void (*)(void *, fa_cell *) noexcept nogil><void *>see, <void *>cells)
        return cells

    def _abandon(self):
        """After a fork, in the child: the workers are the parent's."""
        fa_pool_after_fork(self.pool.pool)
        fa_room_after_fork()
        Py_INCREF(self.pool)  # for ever: its locks may be held by threads that are not here
        self.workers = []

    def _stop(self, on_quiet):
        """End the workers once nothing is ready, running or delayed and `on_quiet` has been called."""
        if on_quiet is not None and fa_pool_is_unused(self.pool.pool):
            on_quiet()  # nobody else would; it may post events, and so wake the workers after all
            on_quiet = None
        if on_quiet is not None:
            self.pool.on_quiet = on_quiet
        fa_pool_stop(self.pool.pool)

    def _join(self, timeout):
        """Wait for the workers to end. A worker cannot wait for itself: False there."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self.starting:
            workers = list(self.workers)
        for worker in workers:
            if worker is threading.current_thread():
                return False
            worker.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
            if worker.is_alive():
                return False
        return True


cdef void see(void *cells, fa_cell *cell) noexcept:
    """Under the pool's lock: a reference only, nothing that could call back."""
    (<list>cells).append(<object>owner_of(cell))


# -- system: the hot half -------------------------------------------------------------------------------------


cdef class SystemCore:
    """What of an ActorSystem is on the way of each message: the registry and `dispatch`."""

    def __cinit__(self, *args, **kwargs):
        self._cells = {}

    def __init__(self):
        pass

    @property
    def _state(self):
        return fa_flag_get(&self.state)

    @_state.setter
    def _state(self, uint32_t value):
        fa_flag_set(&self.state, value)

    def dispatch(self, path, message, processor=None, *, timeout=None) -> bool:
        """Create or get the cell of `path` and dispatch the message to it.

        The first processor of a path wins. Without a processor the cell must exist (LookupError).
        """
        cell = self._cells.get(path)
        if cell is None:
            cell = self._create(path, processor)
        if fa_flag_get(&self.state):
            self._admit()
        return offer(<ActorCell>cell, message, timeout)

    def dispatch_many(self, path, messages, processor=None) -> int:
        """Dispatch each message in order; how many were accepted (also in MailboxFull.accepted)."""
        cell = self._cells.get(path)
        if cell is None:
            cell = self._create(path, processor)
        return (<ActorCell>cell).dispatch_many(messages)

    def get(self, path):
        """The cell of `path`, or None."""
        return self._cells.get(path)

    def __len__(self):
        return len(self._cells)

    def __bool__(self):
        return True

    def __contains__(self, path):
        return path in self._cells

    def __iter__(self):
        return iter(list(self._cells.values()))

    def _tally(self):
        """Messages queued in all registered cells."""
        cdef int64_t queued = 0
        for cell in list(self._cells.values()):
            queued += fa_mailbox_len(&(<ActorCell>cell).cell.mailbox)
        return queued


class ActorSystem(SystemLayer, SystemCore):
    __doc__ = SystemLayer.__doc__
    _core = (ActorCell, PriorityExecutor, current_cell)


# -- garbage collection: the messages in the nodes -------------------------------------------------------------


cdef int show_nodes() except -1:
    """Learn from an example where the mailboxes are inside of the objects, and tell the collector."""
    global cell_offset
    cdef ActorCell cell = ActorCell(SystemCore(), None, print)
    cdef BoundedNodeQueue queue = BoundedNodeQueue(1)
    cell_offset = <char *>&cell.cell - <char *><void *>cell
    fa_gc_cell_install(ActorCell, <char *>&cell.cell.mailbox - <char *><void *>cell)
    fa_gc_queue_install(BoundedNodeQueue, <char *>&queue.box - <char *><void *>queue)
    return 0


show_nodes()
