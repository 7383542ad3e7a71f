/* fa_worker.h: the pool and its workers. You are here: ready.push -> worker.take -> processor -> set_idle.
 *
 * A worker is a thread that somebody else started and that calls fa_worker_main. What only Python can do
 * (take the GIL, call a processor) it asks of the fa_ops that Cython installs; tests install their own.
 *
 * Rules: nobody attaches (takes the GIL) while holding the pool's lock; the lock is held for O(log n) and
 * never while user code runs.
 *
 * How many run. `width` workers may run without further evidence: one on a build with a GIL, one a core on
 * a free-threaded one. More would only contend, unless those that run are blocked in I/O or have left the GIL
 * otherwise. One parked worker, *the guard*, looks after that: while cells wait it wakes up every
 * millisecond at most, asks ops->spare whether another worker could get anywhere, and if so goes to work
 * itself and appoints the next guard. A worker that had to wait long to attach steps back after its turn.
 * An idle pool has no guard awake: it costs nothing.
 *
 * Waking is throttled: at most one woken worker is on its way at any time, and it wakes the next one when it
 * has found work and there is more.
 */
#ifndef FA_WORKER_H
#define FA_WORKER_H

#include "fa_ready.h"
#include "fa_room.h"

typedef struct fa_pool fa_pool;
typedef struct fa_worker fa_worker;

/* What became of a message, said by ops->turn's handler. */
enum {
    FA_HANDLED = 0, /* done with: remove it */
    FA_NOT_NOW = 1, /* stays at the head; tried again soon, then later and later */
    FA_STAYS = 2,   /* stays at the head; the cell was suspended */
    FA_RETRY = 3    /* stays at the head; tried again after a delay that the handler gives */
};

/* How a turn ended. */
typedef struct fa_turn {
    int64_t ended;
    int64_t delay;    /* FA_NEVER: empty, suspended or closed. Else: runnable after so many ns */
    uint64_t handled; /* messages */
} fa_turn;

/* What one look says for one more worker: so many points, of FA_ENOUGH in a row. A free GIL counts much: two
 * looks will do, one alone may have hit the moment in which it changes hands. A GIL held by none of the
 * running workers counts little, for one of them may be about to get it back: that takes a switch interval.
 */
typedef enum { FA_NO_SPARE = 0, FA_HELD_ELSEWHERE = 1, FA_SPARE = 5, FA_ENOUGH = 10 } fa_evidence;

typedef struct fa_ops {
    void (*attach)(fa_worker *worker);
    void (*detach)(fa_worker *worker);
    /* Attached: run the cell from `started` on for at most its quota. */
    void (*turn)(fa_worker *worker, fa_cell *cell, int64_t started, fa_turn *turn);
    /* Attached: the closed cell's hand may hold a message that nobody handles any more. */
    void (*abandon)(fa_cell *cell);
    /* Attached: the Scheduled bit is cleared; give back the reference that it stood for. */
    void (*release)(fa_cell *cell);
    /* Attached: the chore that fa_pool_chore_at asked for. True, always. */
    bool (*chore)(fa_pool *pool);
    /* Attached: the stopping pool has nothing left to do. It may make work; false: ask again after that. */
    bool (*quiet)(fa_pool *pool);
    /* Under the lock, on any thread: could one more worker get anywhere just now? */
    fa_evidence (*spare)(fa_pool *pool);
} fa_ops;

struct fa_worker {
    fa_pool *pool;
    void *context; /* of the ops: the thread state */
    fa_parker parker;
    fa_worker *next_idle;
    fa_cell *cell;       /* that it runs; under the lock, so that others may look at it */
    int64_t attached_at; /* when it attached, or 0 while it is detached */
    int64_t clock;       /* the end of its last turn */
    uint32_t quiet_ticks;
    uint32_t evidence; /* collected as the guard, for one more worker */
    bool is_idle;      /* in the list of the parked */
    bool on_its_way;   /* woken, and not yet at the ready queue */
    bool may_run;      /* it has a place among the running beyond `width` */
    bool contended;    /* it waited long for its last attach */
    bool has_spun;
};

struct fa_pool {
    fa_mutex lock;
    fa_ready ready;
    const fa_ops *ops;
    void *owner; /* of the ops */
    fa_worker *workers;
    fa_worker *idle;  /* parked workers but for the guard, last parked first */
    fa_worker *guard; /* or NULL */
    uint32_t threads;
    uint32_t width;
    uint32_t entered; /* workers that have come to fa_worker_main */
    uint32_t running;
    int64_t chore_due;
    uint64_t processed;
    fa_atomic_u32 attaching; /* workers that wait to attach */
    fa_atomic_u32 waiting;   /* ready cells, for those who spin without the lock */
    fa_atomic_u32 forked;    /* this is the child of a fork: touch nothing */
    bool waking;             /* a worker is on its way */
    bool spinning;           /* a worker looks at `waiting` */
    bool dozing;             /* the guard does not tick */
    bool stopping;
    bool stopped;
    bool quiet_done;
};

/* NULL: no memory. */
fa_pool *fa_pool_new(uint32_t threads, uint32_t width, uint32_t policy, const fa_ops *ops, void *owner);
/* Nobody may be using it: no worker is inside fa_worker_main. */
void fa_pool_free(fa_pool *pool);

/* Anyone who has just made the cell Scheduled: FA_OK, FA_SHUT when the pool has ended, FA_NOMEM. */
FA_MUST_USE int fa_pool_push(fa_pool *pool, fa_cell *cell);
/* Anyone, while no worker has come: takes a cell back, or NULL when none is ready. */
fa_cell *fa_pool_unpush(fa_pool *pool);
/* Anyone: if the cell waits for a delay to pass, make it ready now. */
bool fa_pool_hurry(fa_pool *pool, fa_cell *cell);
/* Anyone: see that ops->chore is called at this time at the latest. */
void fa_pool_chore_at(fa_pool *pool, int64_t due);
/* Anyone: the workers end once nothing is ready, running or delayed and ops->quiet has been called. With
 * no worker and nothing to do the pool ends at once. */
void fa_pool_stop(fa_pool *pool);
/* Anyone: has nobody started a worker, and nothing been pushed? */
bool fa_pool_is_unused(fa_pool *pool);
/* Anyone: it has ended, and takes no more cells. */
bool fa_pool_is_stopped(fa_pool *pool);
uint32_t fa_pool_ready(fa_pool *pool);
uint32_t fa_pool_running(fa_pool *pool);
uint64_t fa_pool_processed(fa_pool *pool);
/* Calls `see` under the lock for each cell that is being run. */
void fa_pool_see_running(fa_pool *pool, void (*see)(void *context, fa_cell *cell), void *context);
/* In the child of a fork. */
void fa_pool_after_fork(fa_pool *pool);

/* The life of the next worker thread of this pool; detached. */
void fa_worker_main(fa_pool *pool, void *context);

/* -- a turn, inline so that the handler is inlined into it ------------------------------------------- */

/* A processor that answers "not now" is tried this often at once, then after a millisecond, doubling. The
 * numbers of fastactor/_api.py. */
#define FA_FREE_TRIES  3
#define FA_FIRST_DELAY 1000000
#define FA_LAST_DELAY  100000000

static inline int64_t fa_not_now_delay(fa_cell *cell) {
    if (cell->tries < UINT8_MAX) cell->tries++;
    if (cell->tries <= FA_FREE_TRIES) return 0;
    int doublings = cell->tries - FA_FREE_TRIES - 1;
    int64_t delay = (int64_t)FA_FIRST_DELAY << (doublings < 7 ? doublings : 7);
    return delay < FA_LAST_DELAY ? delay : FA_LAST_DELAY;
}

/* The clock costs as much as a message. It is asked after this many messages, or earlier when the ticks say
 * that an eighth of the quota may have passed. */
#define FA_CLOCK_EVERY 16

typedef int (*fa_handler)(fa_cell *cell, void *message, int64_t *delay);
typedef void (*fa_dropper)(void *message);

/* The owner, attached: handles messages until the quota is over, at least one if there is one. */
static inline void fa_run_turn(fa_cell *cell, int64_t started, fa_turn *turn, fa_handler handle,
                               fa_dropper drop) {
    const int64_t deadline = started + (int64_t)cell->quota_us * 1000;
    const int64_t patience = (int64_t)cell->quota_us * FA_TICKS_PER_MS / 8000;
    int64_t ticks = fa_ticks();
    uint64_t handled = 0;
    int64_t delay = FA_NEVER;
    void *message = NULL;
    while (fa_status_should_process(&cell->status)) { /* [S6] */
        if (message == NULL && (message = fa_mailbox_take(&cell->mailbox)) == NULL) break;
        int64_t retry_after = 0;
        int outcome = handle(cell, message, &retry_after);
        if (FA_UNLIKELY(outcome != FA_HANDLED)) {
            bool goes_on = fa_status_should_process(&cell->status); /* [S6] */
            if (outcome == FA_NOT_NOW) {
                if (goes_on)
                    retry_after = fa_not_now_delay(cell);
                else
                    cell->tries = 0; /* it waits for a resume: that is patience, not a spin */
            }
            if (goes_on && outcome != FA_STAYS) delay = retry_after;
            break;
        }
        handled++;
        cell->tries = 0;
        cell->failures = 0;
        bool over = false;
        if (handled % FA_CLOCK_EVERY == 0 || fa_ticks() - ticks > patience) {
            over = fa_now() >= deadline;
            ticks = fa_ticks();
        }
        /* A suspension by the processor itself must leave the next message in the queue, not in the hand. */
        bool take_next = !over && fa_status_should_process(&cell->status); /* [S6] */
        void *done = message;
        message = fa_mailbox_pop(&cell->mailbox, take_next);
        fa_room_wake(&cell->mailbox, false);
        drop(done);
        if (over) {
            delay = 0;
            break;
        }
        if (take_next && message == NULL) break; /* empty, or being linked: look again after set_idle */
    }
    if (handled) {
        fa_store_relaxed(&cell->handled, fa_cell_handled(cell) + handled); /* shown */
    }
    turn->ended = fa_now();
    turn->delay = delay;
    turn->handled = handled;
}

#endif
