/* fa_status.h: the status word of a cell. You are here: status.try_schedule and status.set_idle.
 *
 *   bits 31..2   bit 1       bit 0
 *   suspensions  Scheduled   Closed
 *
 *   0            Open: may become Scheduled
 *   2            Scheduled: in the ready queue, delayed, or run by the one thread that owns the cell
 *   4n, 4n+2     n suspensions; with Scheduled set the owner stops before the next message
 *   odd          Closed, for good; 3: its owner is still about to let go
 *
 * Only 0 -> 2 is scheduling, and only the caller that made it may push the cell on the ready queue: a cell
 * is never queued twice and never run by two threads. Every transition is one read-modify-write, so their
 * order is never in doubt. The algorithm is that of Akka's mailbox status, as QMQ has it.
 */
#ifndef FA_STATUS_H
#define FA_STATUS_H

#include "fa_atomic.h"
#include "fa_platform.h"

#define FA_CLOSED       1u
#define FA_SCHEDULED    2u
#define FA_SUSPEND_UNIT 4u

typedef struct fa_status {
    fa_atomic_u32 word;
} fa_status;

static inline void fa_status_init(fa_status *status) { atomic_init(&status->word, 0u); }

static inline uint32_t fa_status_value(fa_status *status) {
    return fa_load(&status->word); /* [S1] seq_cst: what is read here may decide about a wake-up */
}

/* Anyone: Open -> Scheduled. True: the caller owns the cell until fa_status_set_idle. */
static inline FA_MUST_USE bool fa_status_try_schedule(fa_status *status) {
    /* [S2] seq_cst, the cheap first load included: with [S3] it is half of a store-buffering pair */
    uint32_t word = fa_load(&status->word);
    while (word == 0) {
        if (fa_cas(&status->word, &word, FA_SCHEDULED)) return true; /* [S2] */
    }
    return false;
}

/* The owner: gives the cell up and must look at the mailbox again afterwards. The word after it. */
static inline uint32_t fa_status_set_idle(fa_status *status) {
    uint32_t before = fa_and(&status->word, ~FA_SCHEDULED); /* [S3] with [S2] and [M1] */
    FA_ASSERT(before & FA_SCHEDULED);
    return before & ~FA_SCHEDULED;
}

/* Anyone. False when the count is at its limit. */
static inline FA_MUST_USE bool fa_status_suspend(fa_status *status) {
    uint32_t word = fa_load(&status->word); /* [S4] with [S6] */
    do {
        if (word > UINT32_MAX - FA_SUSPEND_UNIT) return false;
    } while (!fa_cas(&status->word, &word, word + FA_SUSPEND_UNIT)); /* [S4] */
    return true;
}

/* Anyone. True when no suspension is left; one resume too many stays at zero. */
static inline bool fa_status_resume(fa_status *status) {
    uint32_t word = fa_load(&status->word); /* [S4] */
    uint32_t next;
    do {
        next = word < FA_SUSPEND_UNIT ? word : word - FA_SUSPEND_UNIT;
    } while (!fa_cas(&status->word, &word, next)); /* [S4] */
    return next < FA_SUSPEND_UNIT;
}

/* Anyone. The word before it: the caller that finds Closed unset is the one who closes, and if it finds
 * Scheduled unset too, what is left in the hand is its to clear; otherwise it is the owner's. */
static inline uint32_t fa_status_close(fa_status *status) {
    return fa_or(&status->word, FA_CLOSED); /* [S5] with [S3] */
}

/* The owner, before each message. */
static inline bool fa_status_should_process(fa_status *status) {
    return (fa_load(&status->word) & ~FA_SCHEDULED) == 0; /* [S6] with [S4] and [S5] */
}

#endif
