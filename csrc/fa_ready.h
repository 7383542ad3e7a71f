/* fa_ready.h: the cells that wait, in the order of the policy. You are here: ready.push and ready.pop.
 *
 * A 4-ary heap of (key, sequence, cell) and a binary heap of delayed cells. Not thread-safe: the pool's lock
 * guards it. Each cell is in at most one of the two, once: the Scheduled bit sees to that.
 *
 * Policies, and the key they give:
 *   FA_FAIR      start-time fair queueing (Goyal, Vin, Cheng 1996) with a start debit for new cells (CFS):
 *                the start tag S. See fa__place.
 *   FA_TOTAL     worker time used so far (QMQ as it was first)
 *   FA_LAST_RUN  when its last turn began (QMQ since 2023)
 *   FA_FIFO      nothing: the sequence decides
 */
#ifndef FA_READY_H
#define FA_READY_H

#include "fa_cell.h"

/* The numbers of fastactor/_api.py. */
enum { FA_FAIR = 0, FA_TOTAL = 1, FA_LAST_RUN = 2, FA_FIFO = 3 };

typedef struct fa_entry {
    int64_t key; /* or the time at which a delayed cell is due */
    uint64_t sequence;
    fa_cell *cell;
} fa_entry;

typedef struct fa_heap {
    fa_entry *entries;
    uint32_t count;
} fa_heap;

typedef struct fa_ready {
    fa_heap ready;
    fa_heap timers;
    uint32_t room;     /* entries that each heap has memory for */
    uint32_t policy;   /* FA_FAIR ... */
    uint32_t workers;  /* for the clamp of the lag */
    uint32_t out;      /* cells taken and not yet given back */
    uint64_t sequence; /* of arrival; breaks ties */
    int64_t virtual_time;
    int64_t max_finish; /* of all that was served in this busy period */
} fa_ready;

void fa_ready_init(fa_ready *ready, uint32_t policy, uint32_t workers);
void fa_ready_destroy(fa_ready *ready);

/* Makes room for one more cell in either heap, counting those that workers have out: with it, giving a cell
 * back can never fail. False: no memory. */
FA_MUST_USE bool fa_ready_reserve(fa_ready *ready);

/* Where a cell comes from decides how it is placed. */
typedef enum { FA_WOKEN, FA_AFTER_TURN } fa_origin;

void fa_ready_push(fa_ready *ready, fa_cell *cell, fa_origin origin, int64_t now);
/* The first cell by policy, or NULL. */
fa_cell *fa_ready_pop(fa_ready *ready);

void fa_ready_delay(fa_ready *ready, fa_cell *cell, int64_t due);
/* Makes a delayed cell ready before its time; false when it is not delayed. */
bool fa_ready_hurry(fa_ready *ready, fa_cell *cell, int64_t now);
/* Makes every due cell ready. */
void fa_ready_due(fa_ready *ready, int64_t now);
int64_t fa_ready_next_due(const fa_ready *ready);

/* Nothing waits and nothing runs: a busy period ends, and V catches up with all that was served. */
void fa_ready_end_busy_period(fa_ready *ready);

/* Charges a turn to the cell; by its owner, before the cell is given back or let go. */
int64_t fa_ready_charge(const fa_ready *ready, fa_cell *cell, int64_t started, int64_t ended);

#endif
