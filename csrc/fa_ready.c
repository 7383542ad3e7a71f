/* fa_ready.c: heaps and placing. */
#include "fa_ready.h"

/* A waiting cell may be this many slices per worker behind V: loose enough to keep heavy weights exact on
 * several workers, tight enough that nobody hoards. */
#define FA_LAG_SLICES 2
/* One very long message costs its cell at most this many slices (one second at the default quota), so that
 * it is not shut out for as long again. */
#define FA_DEBT_SLICES 200
/* Even a message that takes no time moves its cell back in the queue. */
#define FA_MIN_CHARGE 1000

void fa_ready_init(fa_ready *ready, uint32_t policy, uint32_t workers) {
    *ready = (fa_ready){.policy = policy, .workers = workers};
}

void fa_ready_destroy(fa_ready *ready) {
    fa_free(ready->ready.entries);
    fa_free(ready->timers.entries);
}

bool fa_ready_reserve(fa_ready *ready) {
    uint32_t needed = ready->ready.count + ready->timers.count + ready->out + 1;
    if (FA_LIKELY(needed <= ready->room)) return true;
    uint32_t room = ready->room ? ready->room * 2 : 16;
    fa_entry *grown = fa_realloc(ready->ready.entries, room * sizeof(fa_entry));
    if (grown == NULL) return false;
    ready->ready.entries = grown;
    grown = fa_realloc(ready->timers.entries, room * sizeof(fa_entry));
    if (grown == NULL) return false;
    ready->timers.entries = grown;
    ready->room = room;
    return true;
}

/* Tags are compared by their difference, so that they may wrap around. */
static bool fa__before(const fa_entry *a, const fa_entry *b) {
    int64_t difference = (int64_t)((uint64_t)a->key - (uint64_t)b->key);
    return difference < 0 || (difference == 0 && a->sequence < b->sequence);
}

/* -- the ready heap: four children, for short and cache-friendly paths ------------------------------- */

static void fa__ready_up(fa_heap *heap, uint32_t hole, fa_entry entry) {
    while (hole > 0) {
        uint32_t parent = (hole - 1) / 4;
        if (!fa__before(&entry, &heap->entries[parent])) break;
        heap->entries[hole] = heap->entries[parent];
        hole = parent;
    }
    heap->entries[hole] = entry;
}

static void fa__ready_down(fa_heap *heap, fa_entry entry) {
    uint32_t hole = 0;
    for (;;) {
        uint32_t first = hole * 4 + 1;
        if (first >= heap->count) break;
        uint32_t last = first + 4 < heap->count ? first + 4 : heap->count;
        uint32_t best = first;
        for (uint32_t child = first + 1; child < last; child++) {
            if (fa__before(&heap->entries[child], &heap->entries[best])) best = child;
        }
        if (!fa__before(&heap->entries[best], &entry)) break;
        heap->entries[hole] = heap->entries[best];
        hole = best;
    }
    heap->entries[hole] = entry;
}

static int64_t fa__max(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b) > 0 ? a : b; }

static int64_t fa__scaled(int64_t ns, fa_cell *cell) {
    return (int64_t)((double)ns / (double)fa_cell_weight(cell));
}

/* The key of a cell. For FA_FAIR, with V the largest start tag dispatched so far, q the quota, w the weight:
 *   new cell         S = V + q/w        it cannot overtake those already waiting
 *   woken            S = max(V, F)      idle time earns nothing, debt is kept
 *   after its turn   S = F              but not more than the lag behind V */
static int64_t fa__place(fa_ready *ready, fa_cell *cell, fa_origin origin) {
    switch (ready->policy) {
        case FA_FAIR: {
            int64_t slice = fa__scaled((int64_t)cell->quota_us * 1000, cell);
            int64_t start;
            if (!cell->is_known) {
                start = ready->virtual_time + slice;
                cell->is_known = 1;
            } else if (origin == FA_AFTER_TURN) {
                int64_t lag = FA_LAG_SLICES * (int64_t)ready->workers * slice;
                start = fa__max(cell->finish, ready->virtual_time - lag);
            } else {
                start = fa__max(cell->finish, ready->virtual_time);
            }
            int64_t latest = ready->virtual_time + FA_DEBT_SLICES * slice;
            cell->start = start - latest > 0 ? latest : start;
            return cell->start;
        }
        case FA_TOTAL:
            return fa_cell_total(cell);
        case FA_LAST_RUN:
            return cell->start;
        default:
            return 0;
    }
}

int64_t fa_ready_charge(const fa_ready *ready, fa_cell *cell, int64_t started, int64_t ended) {
    int64_t used = ended - started;
    fa_store_relaxed(&cell->total, fa_cell_total(cell) + used); /* shown */
    fa_store_relaxed(&cell->since, ended);                      /* shown */
    if (ready->policy == FA_LAST_RUN) cell->start = started;
    cell->finish = cell->start + fa__scaled(used > FA_MIN_CHARGE ? used : FA_MIN_CHARGE, cell);
    return cell->finish;
}

void fa_ready_push(fa_ready *ready, fa_cell *cell, fa_origin origin, int64_t now) {
    FA_ASSERT(cell->timer == FA_NOT_DELAYED && !fa_cell_is_ready(cell));
    FA_ASSERT(ready->ready.count < ready->room);
    fa_entry entry = {fa__place(ready, cell, origin), ready->sequence++, cell};
    fa_store_relaxed(&cell->since, now);  /* shown */
    fa_store_relaxed(&cell->is_ready, 1); /* shown */
    fa__ready_up(&ready->ready, ready->ready.count++, entry);
}

fa_cell *fa_ready_pop(fa_ready *ready) {
    fa_heap *heap = &ready->ready;
    if (heap->count == 0) return NULL;
    fa_entry first = heap->entries[0];
    if (--heap->count > 0) fa__ready_down(heap, heap->entries[heap->count]);
    if (ready->policy == FA_FAIR) ready->virtual_time = fa__max(ready->virtual_time, first.key);
    fa_store_relaxed(&first.cell->is_ready, 0); /* shown */
    return first.cell;
}

void fa_ready_end_busy_period(fa_ready *ready) {
    ready->virtual_time = fa__max(ready->virtual_time, ready->max_finish);
}

/* -- the timers: two children, and each cell knows its place ------------------------------------------ */

static void fa__set(fa_heap *heap, uint32_t place, fa_entry entry) {
    heap->entries[place] = entry;
    entry.cell->timer = place;
}

static void fa__timer_up(fa_heap *heap, uint32_t hole, fa_entry entry) {
    while (hole > 0) {
        uint32_t parent = (hole - 1) / 2;
        if (!fa__before(&entry, &heap->entries[parent])) break;
        fa__set(heap, hole, heap->entries[parent]);
        hole = parent;
    }
    fa__set(heap, hole, entry);
}

static void fa__timer_down(fa_heap *heap, uint32_t hole, fa_entry entry) {
    for (;;) {
        uint32_t child = hole * 2 + 1;
        if (child >= heap->count) break;
        if (child + 1 < heap->count && fa__before(&heap->entries[child + 1], &heap->entries[child])) child++;
        if (!fa__before(&heap->entries[child], &entry)) break;
        fa__set(heap, hole, heap->entries[child]);
        hole = child;
    }
    fa__set(heap, hole, entry);
}

void fa_ready_delay(fa_ready *ready, fa_cell *cell, int64_t due) {
    FA_ASSERT(cell->timer == FA_NOT_DELAYED && !fa_cell_is_ready(cell));
    FA_ASSERT(ready->timers.count < ready->room);
    fa_entry entry = {due, ready->sequence++, cell};
    fa__timer_up(&ready->timers, ready->timers.count++, entry);
}

bool fa_ready_hurry(fa_ready *ready, fa_cell *cell, int64_t now) {
    fa_heap *heap = &ready->timers;
    uint32_t place = cell->timer;
    if (place == FA_NOT_DELAYED) return false;
    FA_ASSERT(place < heap->count && heap->entries[place].cell == cell);
    fa_entry last = heap->entries[--heap->count];
    cell->timer = FA_NOT_DELAYED;
    if (last.cell != cell) {
        /* the last entry fills the hole, and may belong above or below it */
        if (place > 0 && fa__before(&last, &heap->entries[(place - 1) / 2])) {
            fa__timer_up(heap, place, last);
        } else {
            fa__timer_down(heap, place, last);
        }
    }
    fa_ready_push(ready, cell, FA_AFTER_TURN, now);
    return true;
}

void fa_ready_due(fa_ready *ready, int64_t now) {
    while (ready->timers.count > 0 && ready->timers.entries[0].key <= now) {
        fa_ready_hurry(ready, ready->timers.entries[0].cell, now);
    }
}

int64_t fa_ready_next_due(const fa_ready *ready) {
    return ready->timers.count > 0 ? ready->timers.entries[0].key : FA_NEVER;
}
