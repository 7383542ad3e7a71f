# The pool and its threads. You are here: ready.push.

@cython.final
cdef class _Pool:
    """The fa_pool, kept alive by the executor and by the threads; these do not keep the executor alive."""

    def __dealloc__(self):
        if self.pool != NULL:
            fa_pool_free(self.pool)


def _work(_Pool pool):
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
        self.starting = threading.RLock()
        self.pool = _Pool()
        cdef uint32_t width = 1 if has_gil else (os.cpu_count() or 1)
        self.pool.pool = fa_pool_new(count, width, number, &ops, <void *>self.pool)
        if self.pool.pool == NULL:
            raise MemoryError
        remember_executor(self)

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
        if fa_pool_is_stopped(self.pool.pool) or not fa_status_try_schedule(&owned_cell.cell.status):
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

    @property
    def _stopped(self):
        return fa_pool_is_stopped(self.pool.pool)

    def _start_workers(self):
        with self.starting:
            if fa_flag_get(&self.started):
                return
            self.workers = [
                threading.Thread(target=_work, args=(self.pool,), name=f"{self.label}-worker-{n}", daemon=True)
                for n in range(1, self.threads + 1)
            ]
            # Said before they start: whoever dispatches meanwhile, even this thread, must not start them too.
            fa_flag_set(&self.started, 1)
            try:
                for worker in self.workers:
                    worker.start()
            except BaseException:
                # Fewer will do, if there is one. An interrupt may come after a thread has begun.
                begun = threading.enumerate()
                self.workers = [worker for worker in self.workers if worker in begun]
                if not self.workers:
                    self._take_back()
                raise

    def _take_back(self):
        """There is no worker: nothing is ready any more, and the next dispatch tries again."""
        cdef fa_cell *cell
        fa_flag_set(&self.started, 0)
        while True:
            cell = fa_pool_unpush(self.pool.pool)
            if cell == NULL:
                return
            fa_status_set_idle(&cell.status)
            release_cell(cell)

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
        """End the workers once nothing is ready, running or delayed and `on_quiet` agrees."""
        while on_quiet is not None and fa_pool_is_unused(self.pool.pool):
            # Nobody else would call it; it may post events, and so wake the workers after all.
            if on_quiet():
                on_quiet = None
        if on_quiet is not None:
            self.pool.on_quiet = on_quiet
        fa_pool_stop(self.pool.pool)

    def _join(self, timeout):
        """Wait for the workers to end. A worker cannot wait for itself: False there."""
        with self.starting:
            workers = list(self.workers)
        return _api.join_all(workers, timeout)


cdef void see(void *cells, fa_cell *cell) noexcept:
    """Under the pool's lock: a reference only, nothing that could call back."""
    (<list>cells).append(<object>owner_of(cell))
