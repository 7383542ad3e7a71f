# The cell. You are here: dispatch.

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
        if self._retired:
            self.home._revive(self).suspend()
            return
        if not fa_status_suspend(&self.cell.status):
            raise OverflowError(f"more than {2**32 // FA_SUSPEND_UNIT - 1} suspensions")

    def resume(self) -> bool:
        """Take one suspension away; True when none is left, and then the cell goes on."""
        if self._retired:
            return self.home._revive(self).resume()
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

    def _offer(self, message, timeout=None):
        return offer(self, message, timeout)

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
        return wake(self)

    def _close(self, reason):
        """Close for good. The messages that nobody handles any more, or None when it was closed before.

        A worker that runs the cell keeps the message in its hand, and dead-letters it if it stays.
        """
        fa_mailbox_close(&self.cell.mailbox)
        fa_room_wake(&self.cell.mailbox, True)
        cdef uint8_t number = CLOSE_REASONS.index(reason)
        cdef uint32_t before
        with cython.critical_section(self):
            if not fa_status_value(&self.cell.status) & FA_CLOSED:
                self.close_reason = number  # before a worker can find it closed
            before = fa_status_close(&self.cell.status)
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
        self._retired = True  # before it is closed: whoever finds it closed must know why
        if not fa_mailbox_close_if_empty(&self.cell.mailbox):
            self._retired = False
            make_ready(self)
            return False
        self.close_reason = CLOSE_REASONS.index("idle")
        fa_status_close(&self.cell.status)
        fa_status_set_idle(&self.cell.status)
        return True

    def _abandon(self):
        """After a fork, in the child: this cell is the parent's; its path lives on in a new cell."""
        self._retired = True
        fa_mailbox_after_fork(&self.cell.mailbox)
        fa_status_init(&self.cell.status)
        fa_status_close(&self.cell.status)

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
    if fa_status_try_schedule(&cell.cell.status) and not make_ready(cell):
        return undeliverable(cell)
    return True


cdef bint undeliverable(ActorCell cell) except -1:
    """Its executor has been shut down: nobody will ever handle what it has."""
    cell.home._stop(cell, "shutdown")
    return False


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


cdef inline bint wake(ActorCell cell) except -1:
    """Schedule the cell if it has a message and nobody else has; False when nobody will handle it."""
    if fa_mailbox_len(&cell.cell.mailbox) and fa_status_try_schedule(&cell.cell.status):
        if not make_ready(cell):
            return undeliverable(cell)
    return True


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
