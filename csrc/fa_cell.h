/* fa_cell.h: what the scheduler knows of a cell. You are here: the thing that travels along the flow.
 *
 * Who may touch what:
 *   status, mailbox         as their headers say
 *   the owner's fields      whoever holds the Scheduled bit: a worker, or the ready queue and the timers,
 *                           which act for it under the pool's lock
 *   atomics marked "shown"  written by the owner, read by anyone for display: relaxed, no order needed
 */
#ifndef FA_CELL_H
#define FA_CELL_H

#include "fa_mailbox.h"
#include "fa_status.h"

#define FA_NOT_DELAYED UINT32_MAX

/* The numbers of fastactor/_api.py. */
enum { FA_RAISE = 0, FA_BLOCK = 1, FA_DROP_NEW = 2, FA_DROP_OLDEST = 3 };

typedef struct fa_cell {
    fa_status status;
    uint32_t quota_us;
    fa_mailbox mailbox;
    /* the owner's */
    int64_t start;         /* S, or the beginning of the last turn for the policy "last-run" */
    int64_t finish;        /* F */
    fa_atomic_i64 total;   /* ns of worker time; shown */
    fa_atomic_i64 since;   /* when it became ready, or idle; shown */
    fa_atomic_u64 handled; /* messages; shown */
    _Atomic(float) weight; /* anyone may set it; it counts from the next placing on */
    uint32_t timer;        /* its place among the timers, or FA_NOT_DELAYED; under the pool's lock */
    uint32_t failures;     /* exceptions of the message in the hand */
    uint8_t tries;         /* refusals of the message in the hand */
    uint8_t is_known;      /* it has been placed before: no start debit */
    fa_atomic_u8 is_ready; /* it waits in the ready queue; shown */
    uint8_t overflow;
} fa_cell;

static inline void fa_cell_init(fa_cell *cell, uint32_t capacity, uint32_t quota_us, float weight,
                                uint8_t overflow) {
    fa_status_init(&cell->status);
    fa_mailbox_init(&cell->mailbox, capacity, 0);
    cell->mailbox.waitable = overflow == FA_BLOCK;
    cell->quota_us = quota_us;
    cell->start = cell->finish = 0;
    atomic_init(&cell->total, 0);
    atomic_init(&cell->since, fa_now());
    atomic_init(&cell->handled, 0);
    atomic_init(&cell->weight, weight);
    cell->timer = FA_NOT_DELAYED;
    cell->failures = 0;
    cell->tries = 0;
    cell->is_known = 0;
    atomic_init(&cell->is_ready, 0);
    cell->overflow = overflow;
}

static inline int64_t fa_cell_total(fa_cell *cell) { return fa_load_relaxed(&cell->total); /* shown */ }

static inline uint64_t fa_cell_handled(fa_cell *cell) { return fa_load_relaxed(&cell->handled); /* shown */ }

static inline int64_t fa_cell_since(fa_cell *cell) { return fa_load_relaxed(&cell->since); /* shown */ }

static inline bool fa_cell_is_ready(fa_cell *cell) {
    return fa_load_relaxed(&cell->is_ready) != 0; /* shown */
}

static inline float fa_cell_weight(fa_cell *cell) {
    return fa_load_relaxed(&cell->weight); /* a value on its own, nothing hangs on it */
}

static inline void fa_cell_set_weight(fa_cell *cell, float weight) {
    fa_store_relaxed(&cell->weight, weight); /* as above */
}

#endif
