# Declarations of csrc/, for the runtime and for whoever cimports it. Every function is nogil; structures with
# atomic fields are opaque, because Cython would turn `c.v += 1` into a load and a store.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "stdbool.h":
    ctypedef bint c_bool "bool"


cdef extern from "fa_atomic.h" nogil:
    ctypedef struct fa_flag:
        pass
    uint32_t fa_flag_get(fa_flag *flag)
    void fa_flag_set(fa_flag *flag, uint32_t value)


cdef extern from "fa_platform.h" nogil:
    const int64_t FA_NEVER
    int64_t fa_now()


cdef extern from "fa_status.h" nogil:
    const uint32_t FA_CLOSED
    const uint32_t FA_SCHEDULED
    const uint32_t FA_SUSPEND_UNIT
    ctypedef struct fa_status:
        pass
    void fa_status_init(fa_status *status)
    uint32_t fa_status_value(fa_status *status)
    bint fa_status_try_schedule(fa_status *status)
    uint32_t fa_status_set_idle(fa_status *status)
    bint fa_status_suspend(fa_status *status)
    bint fa_status_resume(fa_status *status)
    uint32_t fa_status_close(fa_status *status)
    bint fa_status_should_process(fa_status *status)


cdef extern from "fa_mailbox.h" nogil:
    const int FA_OK
    const int FA_FULL
    const int FA_SHUT
    const int FA_NOMEM
    ctypedef struct fa_mailbox:
        uint32_t capacity
    void fa_mailbox_init(fa_mailbox *box, uint32_t capacity, uint32_t first)
    uint32_t fa_mailbox_len(fa_mailbox *box)
    bint fa_mailbox_is_closed(fa_mailbox *box)
    int fa_mailbox_push(fa_mailbox *box, void *value)
    int fa_mailbox_push_many(fa_mailbox *box, void **values, uint32_t count, uint32_t *pushed)
    void fa_mailbox_lock(fa_mailbox *box)
    void fa_mailbox_unlock(fa_mailbox *box)
    void *fa_mailbox_take(fa_mailbox *box)
    void *fa_mailbox_pop(fa_mailbox *box, bint take_next)
    void *fa_mailbox_take_hand(fa_mailbox *box)
    void *fa_mailbox_evict(fa_mailbox *box)
    void *fa_mailbox_poll(fa_mailbox *box)
    void *fa_mailbox_head(fa_mailbox *box)
    void fa_mailbox_close(fa_mailbox *box)
    bint fa_mailbox_close_if_empty(fa_mailbox *box)
    void fa_mailbox_after_fork(fa_mailbox *box)
    int fa_mailbox_visit(fa_mailbox *box, int (*see)(void *, void *) noexcept nogil, void *context)
    void fa_mailbox_destroy(fa_mailbox *box, void (*drop)(void *) noexcept nogil)


cdef extern from "fa_room.h" nogil:
    ctypedef struct fa_waiter:
        pass
    void fa_room_enter(fa_mailbox *box, fa_waiter *waiter)
    bint fa_room_wait(fa_waiter *waiter, int64_t deadline)
    void fa_room_leave(fa_waiter *waiter)
    void fa_room_wake(fa_mailbox *box, bint all)
    void fa_room_after_fork()


cdef extern from "fa_cell.h" nogil:
    ctypedef struct fa_cell:
        fa_status status
        fa_mailbox mailbox
        uint32_t quota_us
        uint32_t failures
        uint8_t overflow
    void fa_cell_init(fa_cell *cell, uint32_t capacity, uint32_t quota_us, float weight, uint8_t overflow)
    int64_t fa_cell_total(fa_cell *cell)
    int64_t fa_cell_since(fa_cell *cell)
    uint64_t fa_cell_handled(fa_cell *cell)
    bint fa_cell_is_ready(fa_cell *cell)
    float fa_cell_weight(fa_cell *cell)
    void fa_cell_set_weight(fa_cell *cell, float weight)


cdef extern from "fa_worker.h" nogil:
    const int FA_HANDLED
    const int FA_NOT_NOW
    const int FA_STAYS
    const int FA_RETRY
    ctypedef enum fa_evidence:
        FA_NO_SPARE
        FA_HELD_ELSEWHERE
        FA_SPARE
    ctypedef struct fa_turn:
        int64_t ended
        int64_t delay
        uint64_t handled
    ctypedef struct fa_pool
    ctypedef struct fa_worker:
        fa_pool *pool
        void *context
        fa_cell *cell
    ctypedef struct fa_ops:
        void (*attach)(fa_worker *) noexcept nogil
        void (*detach)(fa_worker *) noexcept nogil
        void (*turn)(fa_worker *, fa_cell *, int64_t, fa_turn *) noexcept nogil
        void (*abandon)(fa_cell *) noexcept nogil
        void (*release)(fa_cell *) noexcept nogil
        c_bool (*chore)(fa_pool *) noexcept nogil
        c_bool (*quiet)(fa_pool *) noexcept nogil
        fa_evidence (*spare)(fa_pool *) noexcept nogil
    ctypedef struct fa_pool:
        void *owner
        fa_worker *workers
        uint32_t threads
        uint32_t width
    ctypedef int (*fa_handler)(fa_cell *, void *, int64_t *) noexcept nogil
    ctypedef void (*fa_dropper)(void *) noexcept nogil
    fa_pool *fa_pool_new(uint32_t threads, uint32_t width, uint32_t policy, const fa_ops *ops, void *owner)
    void fa_pool_free(fa_pool *pool)
    int fa_pool_push(fa_pool *pool, fa_cell *cell)
    fa_cell *fa_pool_unpush(fa_pool *pool)
    bint fa_pool_hurry(fa_pool *pool, fa_cell *cell)
    void fa_pool_chore_at(fa_pool *pool, int64_t due)
    void fa_pool_stop(fa_pool *pool)
    bint fa_pool_is_unused(fa_pool *pool)
    bint fa_pool_is_stopped(fa_pool *pool)
    uint32_t fa_pool_ready(fa_pool *pool)
    uint32_t fa_pool_running(fa_pool *pool)
    uint64_t fa_pool_processed(fa_pool *pool)
    void fa_pool_see_running(fa_pool *pool, void (*see)(void *, fa_cell *) noexcept nogil, void *context)
    void fa_pool_after_fork(fa_pool *pool)
    void fa_worker_main(fa_pool *pool, void *context)
    void fa_run_turn(fa_cell *cell, int64_t started, fa_turn *turn, fa_handler handle, fa_dropper drop)
