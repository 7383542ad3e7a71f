/* fa_mailbox.h: bounded queue of linked nodes. You are here: mailbox.push, mailbox.take, mailbox.pop.
 *
 * Producers are many and lock-free: reserve a place ([M1]), append a node ([M3]), link it ([M4]). The order
 * of appending is the order of the queue, so it is first in, first out for each producer.
 *
 * The consumer end is short critical sections under a spin bit ([M6]), because besides the owner of the cell
 * others reach for it: drop-oldest evicts, stop and shutdown drain. No user code runs inside them.
 *
 * The message being processed is *in the hand*. It still counts, stays there when it is not handled, and
 * belongs to the owner of the cell (or, for a queue of its own, to whoever holds the spin bit).
 *
 * The length is pushed - popped, two counters that wrap around at 2^31. Java's queue counts in the nodes,
 * which in C may be freed while a producer reads them; here no thread reads a node that another may free:
 * a producer touches its own node and the predecessor it alone got from [M3], which the consumer does not
 * free before the link [M4] is there.
 *
 * After D. Vyukov's non-intrusive MPSC queue; the bound and the hand are ours.
 */
#ifndef FA_MAILBOX_H
#define FA_MAILBOX_H

#include "fa_atomic.h"
#include "fa_platform.h"

#define FA_COUNT_MASK   0x7fffffffu
#define FA_NO_MORE      0x80000000u /* in `pushed`: the mailbox is closed */
#define FA_MAX_CAPACITY (1u << 30)

/* Results of a push. */
enum { FA_OK = 0, FA_FULL = 1, FA_SHUT = 2, FA_NOMEM = 3 };

typedef struct fa_node {
    _Atomic(struct fa_node *) next;
    void *value;
} fa_node;

typedef struct fa_mailbox {
    _Atomic(fa_node *) in; /* the last node; producers */
    fa_atomic_u32 pushed;  /* places reserved, and FA_NO_MORE; producers */
    uint32_t capacity;
    fa_node *out;         /* the node before the head; under the spin bit */
    fa_atomic_u32 popped; /* under the spin bit */
    fa_atomic_u8 spin;
    uint8_t waitable;      /* somebody may wait for room: see fa_room.h */
    fa_atomic_u16 waiters; /* how many do */
    fa_node stub;          /* the first `out`, so that an empty mailbox allocates nothing; its value slot,
                              which a stub does not need, is the hand */
} fa_mailbox;

#ifdef FA_DEBUG
extern fa_atomic_i64 fa_live_nodes;
#define FA_COUNT_NODE(n) ((void)fa_add(&fa_live_nodes, n))
#else
#define FA_COUNT_NODE(n) ((void)0)
#endif

/* How many nodes there are, which must come back to zero; -1 in a release build. */
int64_t fa_mailbox_live_nodes(void);

/* `first` is where the counters begin: 0, or near the wrap-around in tests. */
static inline void fa_mailbox_init(fa_mailbox *box, uint32_t capacity, uint32_t first) {
    FA_ASSERT(capacity >= 1 && capacity <= FA_MAX_CAPACITY);
    atomic_init(&box->stub.next, NULL);
    box->stub.value = NULL;
    atomic_init(&box->in, &box->stub);
    box->out = &box->stub;
    atomic_init(&box->pushed, first & FA_COUNT_MASK);
    atomic_init(&box->popped, first & FA_COUNT_MASK);
    atomic_init(&box->spin, 0);
    atomic_init(&box->waiters, 0);
    box->waitable = 0;
    box->capacity = capacity;
}

/* Anyone: how many messages there are, the one in the hand included. Never too few: `popped` is read first
 * and only grows. That is what makes it safe to look again with it after [S3]. */
static inline uint32_t fa_mailbox_len(fa_mailbox *box) {
    uint32_t popped = fa_load(&box->popped); /* [M2] */
    uint32_t pushed = fa_load(&box->pushed); /* [M1] seq_cst: with [S3] */
    uint32_t length = (pushed - popped) & FA_COUNT_MASK;
    return length <= box->capacity ? length : box->capacity;
}

static inline bool fa_mailbox_is_closed(fa_mailbox *box) {
    return (fa_load(&box->pushed) & FA_NO_MORE) != 0; /* [M1] */
}

static inline fa_node *fa_node_new(void *value) {
    fa_node *node = (fa_node *)fa_alloc(sizeof(fa_node));
    if (FA_LIKELY(node != NULL)) {
        atomic_init(&node->next, NULL);
        node->value = value;
        FA_COUNT_NODE(1);
    }
    return node;
}

static inline void fa_node_free(fa_node *node) {
    if (node == NULL) return;
    FA_COUNT_NODE(-1);
    fa_free(node);
}

/* Reserves up to `wanted` places at once; FA_OK with at least one in `*got`, else FA_FULL or FA_SHUT.
 * Full is exact: `pushed` is read before `popped`, so at the moment of the second read the queue was full. */
static inline int fa__reserve(fa_mailbox *box, uint32_t wanted, uint32_t *got) {
    uint32_t pushed = fa_load(&box->pushed); /* [M1] */
    for (;;) {
        if (FA_UNLIKELY(pushed & FA_NO_MORE)) return FA_SHUT;
        uint32_t length = (pushed - fa_load(&box->popped)) & FA_COUNT_MASK; /* [M2] */
        /* `popped` may have overtaken the old `pushed`; the exchange below fails then */
        uint32_t room = length <= box->capacity ? box->capacity - length : wanted;
        if (FA_UNLIKELY(room == 0)) return FA_FULL;
        uint32_t take = wanted < room ? wanted : room;
        /* [M1] seq_cst: with [S3]: either the owner sees this place when it looks again, or the producer
         * sees the cell idle afterwards. FA_NO_MORE is in the same word: nothing is added after it. */
        if (fa_cas(&box->pushed, &pushed, (pushed + take) & FA_COUNT_MASK)) {
            *got = take;
            return FA_OK;
        }
    }
}

static inline void fa__append(fa_mailbox *box, fa_node *first, fa_node *last) {
    /* [M3] acq_rel: release publishes the chain's inner links to the next producer, acquire makes the
     * predecessor's initialisation visible here. The node got is this producer's to link, nobody else's. */
    fa_node *before = fa_swap_acq_rel(&box->in, last);
    fa_store_release(&before->next, first); /* [M4] release: publishes the values; with [M5] */
}

/* Anyone: FA_OK, FA_FULL, FA_SHUT or FA_NOMEM. The caller schedules the cell afterwards. */
static inline FA_MUST_USE int fa_mailbox_push(fa_mailbox *box, void *value) {
    FA_ASSERT(value != NULL);
    fa_node *node = fa_node_new(value);
    if (FA_UNLIKELY(node == NULL)) return FA_NOMEM;
    uint32_t got;
    int result = fa__reserve(box, 1, &got);
    if (FA_UNLIKELY(result != FA_OK)) {
        fa_node_free(node);
        return result;
    }
    fa__append(box, node, node);
    return FA_OK;
}

/* Anyone: appends the first values of an array in one go; how many is in `*pushed`. FA_OK when it is all. */
static inline FA_MUST_USE int fa_mailbox_push_many(fa_mailbox *box, void **values, uint32_t count,
                                                   uint32_t *pushed) {
    *pushed = 0;
    if (count == 0) return FA_OK;
    /* All nodes first: a place once reserved must be filled, whatever the allocator says. */
    uint32_t made = 0;
    fa_node *first = NULL, *last = NULL;
    uint32_t room = box->capacity - fa_mailbox_len(box);
    uint32_t wanted = count < room ? count : room;
    for (; made < wanted; made++) {
        fa_node *node = fa_node_new(values[made]);
        if (node == NULL) break;
        if (last == NULL) {
            first = node;
        } else {
            atomic_init(&last->next, node); /* not shared yet; [M3] publishes it */
        }
        last = node;
    }
    uint32_t got = 0;
    int result = made ? fa__reserve(box, made, &got) : wanted ? FA_NOMEM : FA_FULL;
    if (result != FA_OK) got = 0;
    /* Keep the first `got` nodes, give the others back. */
    fa_node *tail = NULL, *rest = first;
    for (uint32_t i = 0; i < got; i++) {
        tail = rest;
        rest = fa_load_relaxed(&rest->next); /* ours alone so far */
    }
    if (got) {
        fa_store_relaxed(&tail->next, (fa_node *)NULL); /* ours alone; [M3] publishes it */
        fa__append(box, first, tail);
        *pushed = got;
    }
    while (rest != NULL) {
        fa_node *next = fa_load_relaxed(&rest->next); /* ours alone */
        fa_node_free(rest);
        rest = next;
    }
    if (result == FA_OK && got < count) result = made < wanted ? FA_NOMEM : FA_FULL;
    return result;
}

/* -- the consumer end ------------------------------------------------------------------------------ */

static inline void fa_mailbox_lock(fa_mailbox *box) {
    /* [M6] acquire: what the last holder did to `out`, the hand and `popped`; with the release below */
    for (uint32_t spins = 0; fa_swap_acquire(&box->spin, 1); spins++) {
        fa_relax();
        if (spins > 100) fa_yield(); /* the holder lost its core: its section is a few instructions */
    }
}

static inline void fa_mailbox_unlock(fa_mailbox *box) {
    fa_store_release(&box->spin, 0); /* [M6] release: with the acquire above */
}

/* Under the lock: removes the head node and returns its value. NULL when there is none, or when its producer
 * has reserved but not linked yet. `*garbage` is to be freed after the lock. */
static inline void *fa__unlink(fa_mailbox *box, fa_node **garbage) {
    fa_node *next = fa_load_acquire(&box->out->next); /* [M5] acquire: the value; with [M4] */
    if (next == NULL) return NULL;
    *garbage = box->out == &box->stub ? NULL : box->out;
    box->out = next;
    return next->value;
}

static inline void fa__count_pop(fa_mailbox *box) {
    /* relaxed load: only holders of the spin bit write it. [M2] release store: who sees the room also sees
     * the node gone; no seq_cst, because nobody decides about a wake-up by it except fa_room.h, which
     * fences. */
    fa_store_release(&box->popped, (fa_load_relaxed(&box->popped) + 1) & FA_COUNT_MASK);
}

/* The owner: the head, moved into the hand. NULL: empty, or its producer is between [M1] and [M4]; that
 * one schedules the cell after [M4]. */
static inline void *fa_mailbox_take(fa_mailbox *box) {
    fa_node *garbage = NULL;
    fa_mailbox_lock(box);
    if (box->stub.value == NULL) box->stub.value = fa__unlink(box, &garbage);
    void *value = box->stub.value;
    fa_mailbox_unlock(box);
    fa_node_free(garbage);
    return value;
}

/* The owner: what is in the hand is done with. With `take_next` the next head moves into it and is
 * returned: one critical section a message. */
static inline void *fa_mailbox_pop(fa_mailbox *box, bool take_next) {
    fa_node *garbage = NULL;
    FA_ASSERT(box->stub.value != NULL);
    fa_mailbox_lock(box);
    fa__count_pop(box);
    void *next = take_next ? fa__unlink(box, &garbage) : NULL;
    box->stub.value = next;
    fa_mailbox_unlock(box);
    fa_node_free(garbage);
    return next;
}

/* Whoever is entitled to the hand: removes and returns what is in it, or NULL. */
static inline void *fa_mailbox_take_hand(fa_mailbox *box) {
    fa_mailbox_lock(box);
    void *value = box->stub.value;
    box->stub.value = NULL;
    if (value != NULL) fa__count_pop(box);
    fa_mailbox_unlock(box);
    return value;
}

/* Anyone: removes and returns the oldest message that is not in the hand, or NULL when there is none. */
static inline void *fa_mailbox_evict(fa_mailbox *box) {
    for (uint32_t spins = 0;; spins++) {
        fa_node *garbage = NULL;
        fa_mailbox_lock(box);
        void *value = fa__unlink(box, &garbage);
        uint32_t in_hand = box->stub.value != NULL;
        uint32_t length =
            (fa_load(&box->pushed) - fa_load_relaxed(&box->popped)) & FA_COUNT_MASK; /* [M1] [M2] */
        if (value != NULL) fa__count_pop(box);
        fa_mailbox_unlock(box);
        fa_node_free(garbage);
        if (value != NULL || length == in_hand) return value;
        fa_relax(); /* reserved, not linked yet: its producer is a few instructions away */
        if (spins > 100) fa_yield();
    }
}

/* Anyone: the head, out of the queue altogether, for a queue that no cell owns. */
static inline void *fa_mailbox_poll(fa_mailbox *box) {
    void *value = fa_mailbox_take_hand(box);
    return value != NULL ? value : fa_mailbox_evict(box);
}

/* Under the lock: the head, in the hand or not, which stays; or NULL. For a queue that no cell owns. */
static inline void *fa_mailbox_head(fa_mailbox *box) {
    if (box->stub.value != NULL) return box->stub.value;
    fa_node *next = fa_load_acquire(&box->out->next); /* [M5] */
    return next != NULL ? next->value : NULL;
}

/* Anyone: no push succeeds from now on; what was reserved before is still delivered. */
static inline void fa_mailbox_close(fa_mailbox *box) { fa_or(&box->pushed, FA_NO_MORE); /* [M1] */ }

/* The owner: closes if there is nothing in it, so that no message can slip in between. */
static inline FA_MUST_USE bool fa_mailbox_close_if_empty(fa_mailbox *box) {
    uint32_t pushed = fa_load(&box->pushed);                                 /* [M1] */
    while (pushed == fa_load(&box->popped)) {                                /* [M2] */
        if (fa_cas(&box->pushed, &pushed, pushed | FA_NO_MORE)) return true; /* [M1] */
    }
    /* closed by somebody else; what was pushed before that is theirs to clear */
    return (pushed & FA_NO_MORE) && (pushed & FA_COUNT_MASK) == fa_load(&box->popped); /* [M2] */
}

/* In the child of a fork: closed, and empty but for the hand, which a processor that forked still has. The
 * nodes leak: another thread of the parent may have been in the middle of them. */
static inline void fa_mailbox_after_fork(fa_mailbox *box) {
    void *hand = box->stub.value;
    fa_mailbox_init(box, box->capacity, 0);
    box->stub.value = hand;
    atomic_init(&box->pushed, FA_NO_MORE | (hand != NULL ? 1u : 0u));
}

/* With all other users at a standstill (garbage collection): calls `see` for each message. */
static inline int fa_mailbox_visit(fa_mailbox *box, int (*see)(void *value, void *context), void *context) {
    int result = box->stub.value != NULL ? see(box->stub.value, context) : 0;
    fa_node *node = fa_load_relaxed(&box->out->next); /* at a standstill */
    for (; node != NULL && result == 0; node = fa_load_relaxed(&node->next)) {
        result = see(node->value, context);
    }
    return result;
}

/* Nobody else may be using it: frees the nodes; `drop` is called for each value left. */
static inline void fa_mailbox_destroy(fa_mailbox *box, void (*drop)(void *)) {
    void *value;
    while ((value = fa_mailbox_poll(box)) != NULL) drop(value);
    if (box->out != &box->stub) fa_node_free(box->out);
    box->out = &box->stub;
}

#endif
