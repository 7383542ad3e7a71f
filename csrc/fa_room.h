/* fa_room.h: waiting for room in a full mailbox. You are here: dispatch, with overflow "block".
 *
 * Waiters of all mailboxes sit in one table of buckets, so that a mailbox pays two bytes for it. A waiter is
 * a frame on the waiting thread's stack. Each pop wakes one waiter, which tries again and may lose to a
 * producer that came by; then it waits again.
 */
#ifndef FA_ROOM_H
#define FA_ROOM_H

#include "fa_mailbox.h"

typedef struct fa_waiter {
    struct fa_waiter *next;
    fa_mailbox *box;
    fa_parker parker;
    bool called; /* taken off the list by somebody who made room; under the bucket's lock */
} fa_waiter;

void fa_room_enter(fa_mailbox *box, fa_waiter *waiter);
/* Sleeps until there may be room, the mailbox is closed, or the deadline; false at the deadline. */
bool fa_room_wait(fa_waiter *waiter, int64_t deadline);
void fa_room_leave(fa_waiter *waiter);

void fa_room_wake_slow(fa_mailbox *box, bool all);

/* Whoever popped or closed: wakes one waiter, or all. */
static inline void fa_room_wake(fa_mailbox *box, bool all) {
    if (FA_LIKELY(!box->waitable)) return;
    /* [R1] `popped` was written before, and this is a read-modify-write like [R2]: of the two on `waiters`
     * one comes first, and either we see the waiter or it sees the room */
    if (fa_add(&box->waiters, 0)) fa_room_wake_slow(box, all);
}

/* After a fork, in the child: no waiter is left, and a lock may be held by a thread that is not there. */
void fa_room_after_fork(void);

#endif
