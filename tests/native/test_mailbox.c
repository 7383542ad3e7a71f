/* The mailbox: order, exact capacity, the hand, eviction, closing, wrap-around, many producers. */
#include "fa_test.h"

#include "fa_mailbox.h"
#include "fa_room.h"

static void drop_nothing(void *value) { (void)value; }

/* Near the wrap-around of the counters as well as at zero. */
static const uint32_t FIRSTS[] = {0, FA_COUNT_MASK, FA_COUNT_MASK - 1, FA_COUNT_MASK / 2};

static void order_and_capacity(void) {
    for (size_t f = 0; f < sizeof(FIRSTS) / sizeof(*FIRSTS); f++) {
        for (uint32_t capacity = 1; capacity <= 3; capacity++) {
            fa_mailbox box;
            fa_mailbox_init(&box, capacity, FIRSTS[f]);
            uintptr_t next_in = 0, next_out = 0;
            for (int round = 0; round < 10; round++) {
                while (fa_mailbox_len(&box) < capacity) {
                    CHECK(fa_mailbox_push(&box, as_message(next_in++)) == FA_OK);
                }
                CHECK(fa_mailbox_push(&box, as_message(99)) == FA_FULL);
                CHECK(as_number(fa_mailbox_poll(&box)) == next_out++);
                CHECK(fa_mailbox_len(&box) == capacity - 1);
            }
            fa_mailbox_destroy(&box, drop_nothing);
        }
    }
}

static void the_hand(void) {
    fa_mailbox box;
    fa_mailbox_init(&box, 3, 0);
    for (uintptr_t i = 0; i < 3; i++) CHECK(fa_mailbox_push(&box, as_message(i)) == FA_OK);
    CHECK(as_number(fa_mailbox_take(&box)) == 0);
    CHECK(as_number(fa_mailbox_take(&box)) == 0); /* it stays there */
    CHECK(fa_mailbox_len(&box) == 3);             /* and counts */
    CHECK(as_number(fa_mailbox_evict(&box)) == 1);
    CHECK(as_number(fa_mailbox_pop(&box, true)) == 2);
    CHECK(fa_mailbox_evict(&box) == NULL); /* what is in the hand is not evicted */
    CHECK(fa_mailbox_len(&box) == 1);
    CHECK(fa_mailbox_pop(&box, true) == NULL);
    CHECK(fa_mailbox_len(&box) == 0);
    fa_mailbox_destroy(&box, drop_nothing);
}

static void many_at_once(void) {
    fa_mailbox box;
    fa_mailbox_init(&box, 3, FA_COUNT_MASK);
    void *values[5];
    for (uintptr_t i = 0; i < 5; i++) values[i] = as_message(i);
    uint32_t pushed;
    CHECK(fa_mailbox_push_many(&box, values, 0, &pushed) == FA_OK && pushed == 0);
    CHECK(fa_mailbox_push_many(&box, values, 2, &pushed) == FA_OK && pushed == 2);
    CHECK(fa_mailbox_push_many(&box, values + 2, 3, &pushed) == FA_FULL && pushed == 1);
    CHECK(fa_mailbox_push_many(&box, values + 3, 2, &pushed) == FA_FULL && pushed == 0);
    for (uintptr_t i = 0; i < 3; i++) CHECK(as_number(fa_mailbox_poll(&box)) == i);
    CHECK(fa_mailbox_poll(&box) == NULL);
    fa_mailbox_close(&box);
    CHECK(fa_mailbox_push_many(&box, values, 1, &pushed) == FA_SHUT && pushed == 0);
    fa_mailbox_destroy(&box, drop_nothing);
}

static void closing(void) {
    fa_mailbox box;
    fa_mailbox_init(&box, 2, 0);
    CHECK(fa_mailbox_push(&box, as_message(0)) == FA_OK);
    CHECK(!fa_mailbox_close_if_empty(&box));
    CHECK(fa_mailbox_push(&box, as_message(1)) == FA_OK);
    fa_mailbox_close(&box);
    CHECK(fa_mailbox_push(&box, as_message(2)) == FA_SHUT);
    CHECK(!fa_mailbox_close_if_empty(&box)); /* closed, but somebody has to clear it */
    CHECK(as_number(fa_mailbox_evict(&box)) == 0);
    CHECK(as_number(fa_mailbox_evict(&box)) == 1);
    CHECK(fa_mailbox_evict(&box) == NULL);
    fa_mailbox_destroy(&box, drop_nothing);
    fa_mailbox_init(&box, 2, 0);
    CHECK(fa_mailbox_close_if_empty(&box));
    CHECK(fa_mailbox_push(&box, as_message(0)) == FA_SHUT);
    fa_mailbox_destroy(&box, drop_nothing);
}

#define PRODUCERS 3
#define EACH      20000

static fa_mailbox shared;
static fa_atomic_u32 evicted;

static void *produce(void *argument) {
    uintptr_t number = (uintptr_t)argument;
    for (uintptr_t i = 0; i < EACH; i++) {
        void *message = as_message(number * EACH + i);
        while (fa_mailbox_push(&shared, message) == FA_FULL) fa_yield();
    }
    return NULL;
}

static void *produce_and_wait(void *argument) {
    uintptr_t number = (uintptr_t)argument;
    for (uintptr_t i = 0; i < EACH; i++) {
        fa_waiter waiter;
        int result = fa_mailbox_push(&shared, as_message(number * EACH + i));
        if (result == FA_OK) continue;
        fa_room_enter(&shared, &waiter);
        while (fa_mailbox_push(&shared, as_message(number * EACH + i)) != FA_OK) {
            CHECK(fa_room_wait(&waiter, FA_NEVER));
        }
        fa_room_leave(&waiter);
    }
    return NULL;
}

static void *evict_some(void *argument) {
    (void)argument;
    for (int i = 0; i < EACH; i++) {
        if (fa_mailbox_evict(&shared) != NULL) fa_add(&evicted, 1u);
        fa_yield();
    }
    return NULL;
}

static void consume(void *(*producer)(void *), bool with_evictor, uint32_t capacity) {
    fa_mailbox_init(&shared, capacity, FA_COUNT_MASK - 5);
    shared.waitable = producer == produce_and_wait;
    fa_store(&evicted, 0u);
    pthread_t threads[PRODUCERS], evictor;
    for (uintptr_t i = 0; i < PRODUCERS; i++) threads[i] = start(producer, (void *)i);
    if (with_evictor) evictor = start(evict_some, NULL);
    uintptr_t next[PRODUCERS] = {0};
    uint32_t consumed = 0;
    while (consumed + fa_load(&evicted) < PRODUCERS * EACH) {
        void *message = fa_mailbox_take(&shared);
        CHECK(fa_mailbox_len(&shared) <= capacity);
        if (message == NULL) {
            fa_yield();
            continue;
        }
        uintptr_t producer_number = as_number(message) / EACH, sequence = as_number(message) % EACH;
        CHECK(sequence >= next[producer_number]); /* in order; equal unless something was evicted */
        CHECK(with_evictor || sequence == next[producer_number]);
        next[producer_number] = sequence + 1;
        fa_mailbox_pop(&shared, false);
        fa_room_wake(&shared, false);
        consumed++;
    }
    for (int i = 0; i < PRODUCERS; i++) join(threads[i]);
    if (with_evictor) join(evictor);
    CHECK(fa_mailbox_len(&shared) == 0);
    fa_mailbox_destroy(&shared, drop_nothing);
}

static void many_producers(void) { consume(produce, false, 3); }

static void many_producers_that_wait(void) {
    for (uint32_t capacity = 1; capacity <= 3; capacity++) consume(produce_and_wait, false, capacity);
}

static void many_producers_and_an_evictor(void) { consume(produce, true, 3); }

int main(void) {
    RUN(order_and_capacity);
    RUN(the_hand);
    RUN(many_at_once);
    RUN(closing);
    RUN(many_producers);
    RUN(many_producers_that_wait);
    RUN(many_producers_and_an_evictor);
    CHECK(fa_mailbox_live_nodes() == 0);
    return 0;
}
