# What a worker asks of Python: fa_ops. You are here: worker.take -> processor(message, cell).

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


cdef c_bool chore(fa_pool *pool) noexcept:
    return call_aside((<_Pool>pool.owner).chore)


cdef c_bool quiet(fa_pool *pool) noexcept:
    return call_aside((<_Pool>pool.owner).on_quiet)


cdef bint call_aside(call) noexcept:
    """Call something of the system's; false if it wants to be called again."""
    try:
        return call is None or call() is not False
    except BaseException:
        log.exception("a chore failed")
        return True


cdef fa_evidence spare(fa_pool *pool) noexcept nogil:
    """Could another worker get anywhere? With a GIL: if none of the running ones holds it. Without: if a core is
    free."""
    cdef PyThreadState *holder = fa_gil_holder(interpreter) if has_gil else NULL
    cdef PyThreadState *state
    cdef uint32_t i, attached = 0
    if has_gil and holder == NULL:
        return FA_SPARE
    for i in range(pool.threads):
        if pool.workers[i].cell != NULL:
            state = <PyThreadState *>pool.workers[i].context
            if has_gil:
                if state == holder:
                    return FA_NO_SPARE
            else:
                attached += fa_is_attached(state)
    if has_gil:
        return FA_HELD_ELSEWHERE
    return FA_SPARE if attached < pool.width else FA_NO_SPARE


cdef fa_ops ops
ops.attach = attach
ops.detach = detach
ops.turn = <void (*)(fa_worker *, fa_cell *, int64_t, fa_turn *) noexcept nogil><void *>turn
ops.abandon = <void (*)(fa_cell *) noexcept nogil><void *>abandon
ops.release = <void (*)(fa_cell *) noexcept nogil><void *>release_cell
ops.chore = <c_bool (*)(fa_pool *) noexcept nogil><void *>chore
ops.quiet = <c_bool (*)(fa_pool *) noexcept nogil><void *>quiet
ops.spare = spare
