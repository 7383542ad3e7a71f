/* fa_worker.c: taking cells, running them, parking. */
#include "fa_worker.h"

#include <string.h>

/* Between two looks of the guard: short at first, because a pool that ramps up should do so quickly; a
 * millisecond when there is no reason to. */
#define FA_FIRST_TICK 50000
#define FA_LAST_TICK  1000000
/* After so many looks at an empty queue the guard sleeps until somebody calls it. */
#define FA_DOZE_TICKS 16
/* Who waited so long to attach was not needed. */
#define FA_CONTENDED 1000000
/* A worker that stays attached from cell to cell lets others have the GIL this often: a processor written in
 * C would never be asked to. */
#define FA_LET_GO 5000000
/* One worker at a time looks for work for about 20 us before it parks: waking it costs its waker 5. */
#ifdef FA_MODEL
#define FA_SPINS 2
#else
#define FA_SPINS 800
#endif

fa_pool *fa_pool_new(uint32_t threads, uint32_t width, uint32_t policy, const fa_ops *ops, void *owner) {
    fa_pool *pool = fa_alloc(sizeof(fa_pool));
    if (pool == NULL) return NULL;
    memset(pool, 0, sizeof(*pool));
    pool->workers = fa_alloc(threads * sizeof(fa_worker));
    if (pool->workers == NULL) {
        fa_free(pool);
        return NULL;
    }
    memset(pool->workers, 0, threads * sizeof(fa_worker));
    for (uint32_t i = 0; i < threads; i++) {
        pool->workers[i].pool = pool;
        fa_parker_init(&pool->workers[i].parker);
    }
    fa_mutex_init(&pool->lock);
    fa_ready_init(&pool->ready, policy, threads);
    pool->ops = ops;
    pool->owner = owner;
    pool->threads = threads;
    pool->width = width < threads ? width : threads;
    pool->chore_due = FA_NEVER;
    return pool;
}

void fa_pool_free(fa_pool *pool) {
    if (!fa_load(&pool->forked)) { /* [W2] else a thread that is not here may hold or use them */
        fa_mutex_destroy(&pool->lock);
        for (uint32_t i = 0; i < pool->threads; i++) fa_parker_destroy(&pool->workers[i].parker);
    }
    fa_ready_destroy(&pool->ready);
    fa_free(pool->workers);
    fa_free(pool);
}

/* -- who is to be woken; all under the lock ----------------------------------------------------------- */

static fa_worker *fa__pop_idle(fa_pool *pool) {
    fa_worker *worker = pool->idle;
    if (worker != NULL) {
        pool->idle = worker->next_idle;
        worker->is_idle = false;
    }
    return worker;
}

/* There is a ready cell, or there is one more. The worker that has to hear of it, if any. */
static fa_worker *fa__call_worker(fa_pool *pool) {
    if (pool->running < pool->width) {
        if (pool->waking || pool->spinning) return NULL;
        fa_worker *worker = fa__pop_idle(pool);
        if (worker == NULL && pool->guard != NULL) {
            worker = pool->guard;
            pool->guard = NULL;
        }
        if (worker != NULL) worker->on_its_way = pool->waking = true;
        return worker;
    }
    if (pool->guard == NULL) {
        pool->dozing = false;
        return pool->guard = fa__pop_idle(pool);
    }
    if (pool->dozing) {
        pool->dozing = false;
        return pool->guard;
    }
    return NULL;
}

/* Something is due earlier than before. The worker that has to know, if any sleeps. */
static fa_worker *fa__call_guard(fa_pool *pool) {
    if (pool->guard == NULL) pool->guard = fa__pop_idle(pool);
    return pool->guard;
}

static bool fa__has_dues(fa_pool *pool) {
    return pool->ready.timers.count > 0 || pool->chore_due != FA_NEVER;
}

static void fa__publish_waiting(fa_pool *pool) {
    /* [W3] seq_cst is more than enough: a spinner that misses it looks again under the lock */
    fa_store(&pool->waiting, pool->ready.ready.count);
}

static void fa__unlock_and_call(fa_pool *pool, fa_worker *called) {
    fa_unlock(&pool->lock);
    if (called != NULL) fa_unpark(&called->parker);
}

/* In the child of a fork the workers are not there and the lock may be held by one of them. */
static bool fa__is_forked(fa_pool *pool) { return fa_load(&pool->forked) != 0; /* [W2] */ }

int fa_pool_push(fa_pool *pool, fa_cell *cell) {
    if (FA_UNLIKELY(fa__is_forked(pool))) return FA_SHUT;
    fa_lock(&pool->lock);
    if (FA_UNLIKELY(pool->stopped || !fa_ready_reserve(&pool->ready))) {
        int result = pool->stopped ? FA_SHUT : FA_NOMEM;
        fa_unlock(&pool->lock);
        return result;
    }
    fa_ready_push(&pool->ready, cell, FA_WOKEN, fa_now_about());
    fa__publish_waiting(pool);
    fa__unlock_and_call(pool, fa__call_worker(pool));
    return FA_OK;
}

fa_cell *fa_pool_unpush(fa_pool *pool) {
    fa_lock(&pool->lock);
    fa_cell *cell = pool->entered == 0 ? fa_ready_pop(&pool->ready) : NULL;
    fa_unlock(&pool->lock);
    return cell;
}

bool fa_pool_hurry(fa_pool *pool, fa_cell *cell) {
    if (fa__is_forked(pool)) return false;
    fa_lock(&pool->lock);
    bool hurried = !pool->stopped && fa_ready_hurry(&pool->ready, cell, fa_now_about());
    if (hurried) fa__publish_waiting(pool);
    fa__unlock_and_call(pool, hurried ? fa__call_worker(pool) : NULL);
    return hurried;
}

void fa_pool_chore_at(fa_pool *pool, int64_t due) {
    if (fa__is_forked(pool)) return;
    fa_lock(&pool->lock);
    bool sooner = due < pool->chore_due;
    if (sooner) pool->chore_due = due;
    fa__unlock_and_call(pool, sooner ? fa__call_guard(pool) : NULL);
}

static void fa__call_everybody(fa_pool *pool) {
    if (pool->guard != NULL) fa_unpark(&pool->guard->parker);
    for (fa_worker *worker; (worker = fa__pop_idle(pool)) != NULL;) fa_unpark(&worker->parker);
}

void fa_pool_stop(fa_pool *pool) {
    if (fa__is_forked(pool)) return;
    fa_lock(&pool->lock);
    pool->stopping = true;
    if (pool->entered == 0 && pool->ready.ready.count == 0) pool->stopped = true;
    fa__call_everybody(pool);
    fa_unlock(&pool->lock);
}

bool fa_pool_is_unused(fa_pool *pool) {
    fa_lock(&pool->lock);
    bool unused = pool->entered == 0 && pool->ready.ready.count == 0;
    fa_unlock(&pool->lock);
    return unused;
}

bool fa_pool_is_stopped(fa_pool *pool) {
    if (fa__is_forked(pool)) return true;
    fa_lock(&pool->lock);
    bool stopped = pool->stopped;
    fa_unlock(&pool->lock);
    return stopped;
}

uint32_t fa_pool_ready(fa_pool *pool) {
    if (fa__is_forked(pool)) return 0;
    fa_lock(&pool->lock);
    uint32_t count = pool->ready.ready.count;
    fa_unlock(&pool->lock);
    return count;
}

uint32_t fa_pool_running(fa_pool *pool) {
    uint32_t count = 0;
    if (fa__is_forked(pool)) return 0;
    fa_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->threads; i++) count += pool->workers[i].cell != NULL;
    fa_unlock(&pool->lock);
    return count;
}

uint64_t fa_pool_processed(fa_pool *pool) {
    if (fa__is_forked(pool)) return pool->processed;
    fa_lock(&pool->lock);
    uint64_t count = pool->processed;
    fa_unlock(&pool->lock);
    return count;
}

void fa_pool_see_running(fa_pool *pool, void (*see)(void *context, fa_cell *cell), void *context) {
    if (fa__is_forked(pool)) return;
    fa_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->threads; i++) {
        if (pool->workers[i].cell != NULL) see(context, pool->workers[i].cell);
    }
    fa_unlock(&pool->lock);
}

void fa_pool_after_fork(fa_pool *pool) { fa_store(&pool->forked, 1u); /* [W2] */ }

/* -- a worker ---------------------------------------------------------------------------------------- */

static void fa__attach(fa_worker *worker) {
    if (worker->attached_at) return;
    fa_pool *pool = worker->pool;
    int64_t asked = fa_now();
    fa_add(&pool->attaching, 1u); /* [W4] a hint for the guard */
    pool->ops->attach(worker);
    fa_sub(&pool->attaching, 1u); /* [W4] */
    worker->attached_at = worker->clock = fa_now();
    worker->contended = worker->clock - asked > FA_CONTENDED;
}

static void fa__detach(fa_worker *worker) {
    if (!worker->attached_at) return;
    worker->attached_at = 0;
    worker->pool->ops->detach(worker);
}

/* Calls something of the owner's without the lock. Counts as running: the pool does not end meanwhile. */
static bool fa__aside(fa_worker *worker, bool (*call)(fa_pool *pool)) {
    fa_pool *pool = worker->pool;
    pool->running++;
    fa_unlock(&pool->lock);
    fa__attach(worker);
    bool answer = call(pool);
    worker->clock = fa_now(); /* so that no cell is charged for it */
    fa_lock(&pool->lock);
    pool->running--;
    return answer;
}

/* Looks for work without the lock for a short while; one worker at a time. */
static void fa__spin(fa_pool *pool) {
    pool->spinning = true;
    fa_unlock(&pool->lock);
    for (uint32_t i = 0; i < FA_SPINS && fa_load(&pool->waiting) == 0; i++) fa_relax(); /* [W3] */
    fa_lock(&pool->lock);
    pool->spinning = false;
}

/* The guard, at a tick with cells waiting and `width` workers running: is it needed at work? */
static bool fa__promote(fa_worker *worker) {
    fa_pool *pool = worker->pool;
    /* [W4] somebody waits for the GIL already: one more would wait behind it */
    fa_evidence spare = fa_load(&pool->attaching) == 0 ? pool->ops->spare(pool) : FA_NO_SPARE;
    worker->evidence = spare == FA_NO_SPARE ? 0 : worker->evidence + (uint32_t)spare;
    return worker->evidence >= FA_ENOUGH;
}

static int64_t fa__guard_deadline(fa_worker *worker) {
    fa_pool *pool = worker->pool;
    int64_t due = fa_ready_next_due(&pool->ready);
    if (pool->chore_due < due) due = pool->chore_due;
    if (pool->running == 0 || worker->quiet_ticks >= FA_DOZE_TICKS) {
        pool->dozing = true;
        return due;
    }
    pool->dozing = false;
    int64_t tick = FA_LAST_TICK;
    if (pool->ready.ready.count > 0 && (worker->evidence >= FA_SPARE || worker->quiet_ticks == 0)) {
        tick = FA_FIRST_TICK;
        worker->quiet_ticks = 1; /* the next one is a long one, unless this one finds a reason */
    }
    int64_t next = fa_now() + tick;
    return next < due ? next : due;
}

/* Sleeps, as the guard if there is a need for one and none yet. */
static void fa__sleep(fa_worker *worker) {
    fa_pool *pool = worker->pool;
    if (pool->guard == NULL && (pool->ready.ready.count > 0 || fa__has_dues(pool))) {
        pool->guard = worker;
        worker->quiet_ticks = worker->evidence = 0;
    }
    bool is_guard = pool->guard == worker;
    int64_t deadline = FA_NEVER;
    if (is_guard) {
        deadline = fa__guard_deadline(worker);
    } else {
        if (pool->dozing && pool->ready.ready.count > 0) {
            pool->dozing = false; /* it leaves work behind, which the guard has not been told of */
            fa_unpark(&pool->guard->parker);
        }
        worker->next_idle = pool->idle;
        pool->idle = worker;
        worker->is_idle = true;
    }
    worker->may_run = false;
    bool called;
    do {
        fa_unlock(&pool->lock);
        called = fa_park(&worker->parker, deadline);
        fa_lock(&pool->lock);
    } while (worker->is_idle); /* an old token: it was called when it was awake */
    worker->has_spun = false;
    if (pool->guard != worker) return;
    if (called) {
        worker->quiet_ticks = worker->evidence = 0;
    } else if (pool->ready.ready.count == 0) {
        if (worker->quiet_ticks < FA_DOZE_TICKS) worker->quiet_ticks++;
    } else {
        if (worker->quiet_ticks > 1) worker->quiet_ticks = 1;
        if (pool->running >= pool->width && fa__promote(worker)) worker->may_run = true;
    }
}

/* The pool is stopping and has nothing left to do: true when it has ended. */
static bool fa__end(fa_worker *worker) {
    fa_pool *pool = worker->pool;
    if (!pool->quiet_done) {
        pool->quiet_done = fa__aside(worker, pool->ops->quiet); /* which may have made work */
        return false;
    }
    pool->stopped = true;
    fa__call_everybody(pool);
    return true;
}

/* Under the lock, which it may let go meanwhile: the next cell to run, or NULL when the pool has ended. */
static fa_cell *fa__take(fa_worker *worker) {
    fa_pool *pool = worker->pool;
    while (!pool->stopped) {
        /* here, for it may have been called while it was awake and doing a chore */
        if (worker->on_its_way) worker->on_its_way = pool->waking = false;
        if (fa__has_dues(pool)) {
            int64_t now = fa_now();
            fa_ready_due(&pool->ready, now);
            if (pool->chore_due <= now) {
                pool->chore_due = FA_NEVER;
                (void)fa__aside(worker, pool->ops->chore);
                continue;
            }
        }
        if (pool->ready.ready.count > 0) {
            if (worker->may_run || pool->running < pool->width) {
                fa_cell *cell = fa_ready_pop(&pool->ready);
                if (pool->guard == worker) pool->guard = NULL;
                pool->running++;
                pool->ready.out++;
                worker->cell = cell;
                fa__publish_waiting(pool);
                return cell;
            }
        } else if (pool->running == 0) {
            fa_ready_end_busy_period(&pool->ready);
            if (pool->stopping && pool->ready.timers.count == 0) {
                if (fa__end(worker)) break;
                continue;
            }
        }
        if (worker->attached_at) {
            fa_unlock(&pool->lock);
            fa__detach(worker);
            fa_lock(&pool->lock);
        } else if (!worker->has_spun && !pool->spinning && pool->ready.ready.count == 0) {
            worker->has_spun = true;
            fa__spin(pool);
        } else {
            fa__sleep(worker);
        }
    }
    return NULL;
}

/* Runs the cell that was taken and gives it back. True with the lock held; false in the child of a fork. */
static bool fa__run(fa_worker *worker, fa_cell *cell) {
    fa_pool *pool = worker->pool;
    fa__attach(worker);
    fa_turn turn;
    pool->ops->turn(worker, cell, worker->clock, &turn);
    if (FA_UNLIKELY(fa_load(&pool->forked))) return false; /* [W2] */
    int64_t finish = fa_ready_charge(&pool->ready, cell, worker->clock, turn.ended);
    worker->clock = turn.ended;

    fa_origin origin = FA_AFTER_TURN;
    if (turn.delay == FA_NEVER) {
        uint32_t word = fa_status_set_idle(&cell->status); /* [S3] */
        /* look again: a message that arrived meanwhile schedules the cell anew */
        if (word == 0 && fa_mailbox_len(&cell->mailbox) > 0 && fa_status_try_schedule(&cell->status)) {
            turn.delay = 0;
            origin = FA_WOKEN;
            if (turn.handled == 0) fa_yield(); /* a producer lost its core between [M1] and [M4] */
        } else {
            if (word & FA_CLOSED) pool->ops->abandon(cell);
            fa_lock(&pool->lock);
            worker->cell = NULL; /* nobody may find it here any more */
            fa_unlock(&pool->lock);
            pool->ops->release(cell); /* the cell may be gone now */
            cell = NULL;
        }
    }
    if (worker->clock - worker->attached_at > FA_LET_GO) fa__detach(worker);

    fa_lock(&pool->lock);
    worker->cell = NULL;
    pool->running--;
    pool->ready.out--;
    pool->processed += turn.handled;
    pool->ready.max_finish = finish - pool->ready.max_finish > 0 ? finish : pool->ready.max_finish;
    fa_worker *called = NULL;
    if (cell != NULL) {
        /* a closed cell does not wait: whoever closed it may have looked for it before it is among the timers
         */
        if (turn.delay > 0 && fa_status_should_process(&cell->status)) { /* [S6] */
            fa_ready_delay(&pool->ready, cell, turn.ended + turn.delay);
            if (pool->guard == NULL || pool->dozing) called = fa__call_guard(pool);
        } else {
            fa_ready_push(&pool->ready, cell, origin, turn.ended);
            fa__publish_waiting(pool);
        }
    }
    worker->may_run = !(worker->contended && pool->running > 0);
    worker->contended = false;
    worker->has_spun = false;
    if (called != NULL) fa_unpark(&called->parker);
    return true;
}

void fa_worker_main(fa_pool *pool, void *context) {
    fa_lock(&pool->lock);
    if (pool->entered == pool->threads) { /* more were started than there are places */
        fa_unlock(&pool->lock);
        return;
    }
    fa_worker *worker = &pool->workers[pool->entered++];
    worker->context = context;
    fa_cell *cell;
    while ((cell = fa__take(worker)) != NULL) {
        fa_worker *called = NULL;
        if (pool->ready.ready.count > 0) {
            called = fa__call_worker(pool); /* there is more to do */
        } else if (pool->guard == NULL && fa__has_dues(pool)) {
            called = fa__call_guard(pool); /* somebody must look at the time meanwhile */
        }
        fa__unlock_and_call(pool, called);
        if (!fa__run(worker, cell)) {
            /* The child of a fork: the lock may be held by a thread that is not there. */
            fa__detach(worker);
            return;
        }
    }
    fa_unlock(&pool->lock);
    fa__detach(worker);
}
