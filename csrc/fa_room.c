/* fa_room.c: the table of those who wait for room. */
#include "fa_room.h"

#define FA_BUCKETS 32

typedef struct fa_bucket {
    fa_mutex lock;
    fa_waiter *first; /* in order of arrival */
} fa_bucket;

static fa_bucket fa__buckets[FA_BUCKETS];
static fa_atomic_u8 fa__ready; /* 0 no, 1 being made, 2 yes */

static fa_bucket *fa__bucket(fa_mailbox *box) {
    uint8_t ready = fa_load(&fa__ready); /* [R3] once: whoever sees 2 sees the locks made */
    while (ready != 2) {
        if (ready == 0 && fa_cas(&fa__ready, &ready, 1)) { /* [R3] */
            for (int i = 0; i < FA_BUCKETS; i++) fa_mutex_init(&fa__buckets[i].lock);
            fa_store(&fa__ready, 2); /* [R3] */
            break;
        }
        fa_relax();
        ready = fa_load(&fa__ready); /* [R3] */
    }
    return &fa__buckets[((uintptr_t)box >> 6) % FA_BUCKETS];
}

void fa_room_after_fork(void) {
    for (int i = 0; i < FA_BUCKETS; i++) fa__buckets[i].first = NULL;
    fa_store(&fa__ready, 0); /* [R3] the locks are made anew */
}

static void fa__link(fa_bucket *bucket, fa_waiter *waiter) {
    waiter->called = false;
    waiter->next = NULL;
    fa_waiter **end = &bucket->first;
    while (*end != NULL) end = &(*end)->next;
    *end = waiter;
}

void fa_room_enter(fa_mailbox *box, fa_waiter *waiter) {
    waiter->box = box;
    fa_parker_init(&waiter->parker);
    fa_bucket *bucket = fa__bucket(box);
    fa_lock(&bucket->lock);
    fa__link(bucket, waiter);
    fa_add(&box->waiters, 1); /* [R2] */
    fa_unlock(&bucket->lock);
}

static bool fa__may_try(fa_mailbox *box) {
    uint32_t pushed = fa_load(&box->pushed); /* [R2] [M1] */
    uint32_t popped = fa_load(&box->popped); /* [R2] with [R1] */
    return (pushed & FA_NO_MORE) || ((pushed - popped) & FA_COUNT_MASK) < box->capacity;
}

bool fa_room_wait(fa_waiter *waiter, int64_t deadline) {
    fa_bucket *bucket = fa__bucket(waiter->box);
    fa_lock(&bucket->lock);
    if (waiter->called) fa__link(bucket, waiter); /* called before, and lost: to the end of the line */
    fa_unlock(&bucket->lock);
    fa_add(&waiter->box->waiters, 0); /* [R2] on the list, then `popped`; with [R1] */
    return fa__may_try(waiter->box) || fa_park(&waiter->parker, deadline);
}

void fa_room_leave(fa_waiter *waiter) {
    fa_bucket *bucket = fa__bucket(waiter->box);
    fa_lock(&bucket->lock);
    fa_sub(&waiter->box->waiters, 1); /* [R2] */
    bool called = waiter->called;
    for (fa_waiter **link = &bucket->first; *link != NULL; link = &(*link)->next) {
        if (*link == waiter) {
            *link = waiter->next;
            break;
        }
    }
    fa_unlock(&bucket->lock);
    fa_parker_destroy(&waiter->parker);
    /* It may have been called and not used the room: pass the call on. */
    if (called) fa_room_wake(waiter->box, false);
}

void fa_room_wake_slow(fa_mailbox *box, bool all) {
    fa_bucket *bucket = fa__bucket(box);
    fa_lock(&bucket->lock);
    for (fa_waiter **link = &bucket->first; *link != NULL;) {
        fa_waiter *waiter = *link;
        if (waiter->box != box) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        waiter->called = true;
        fa_unpark(&waiter->parker); /* under the lock: it leaves by the same lock, so it is still there */
        if (!all) break;
    }
    fa_unlock(&bucket->lock);
}
