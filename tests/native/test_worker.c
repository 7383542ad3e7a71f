/* The pool without Python: its ops count, sleep and check instead of calling processors. */
#include "fa_test.h"

#include <time.h>

#include "fa_worker.h"

#define KEYS      8
#define PRODUCERS 3
#define EACH      5000

typedef struct test_cell {
    fa_cell cell; /* first, so that the one is the other */
    fa_atomic_u32 inside;
    fa_atomic_u32 references;
    uintptr_t next[PRODUCERS];
    uint32_t handled;
    uint32_t refusals;
} test_cell;

static test_cell cells[KEYS];
static fa_atomic_u32 handled, quiets, chores, at_once, most_at_once;
static bool slow, refusing;

static void pause_ms(long ms) {
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

static void attach(fa_worker *worker) { (void)worker; }

static int handle(fa_cell *cell, void *message, int64_t *delay) {
    test_cell *test = (test_cell *)cell;
    CHECK(fa_add(&test->inside, 1u) == 0); /* one message at a time */
    uint32_t now = fa_add(&at_once, 1u) + 1, most = fa_load(&most_at_once);
    while (now > most && !fa_cas(&most_at_once, &most, now)) continue;
    int outcome = FA_HANDLED;
    if (slow) pause_ms(20);
    if (refusing && ++test->refusals % 5 != 0) {
        outcome = test->refusals % 2 ? FA_NOT_NOW : FA_RETRY;
        *delay = 100000;
    } else {
        uintptr_t producer = as_number(message) / EACH, sequence = as_number(message) % EACH;
        CHECK(sequence == test->next[producer]); /* in order, none lost, none twice */
        test->next[producer]++;
        test->handled++;
        fa_add(&handled, 1u);
    }
    fa_sub(&at_once, 1u);
    fa_sub(&test->inside, 1u);
    return outcome;
}

static void drop(void *message) { (void)message; }

static void turn(fa_worker *worker, fa_cell *cell, int64_t started, fa_turn *result) {
    (void)worker;
    fa_run_turn(cell, started, result, handle, drop);
}

static void abandon(fa_cell *cell) { fa_mailbox_take_hand(&cell->mailbox); }

static void release(fa_cell *cell) { fa_sub(&((test_cell *)cell)->references, 1u); }

static bool chore(fa_pool *pool) {
    if (fa_add(&chores, 1u) < 9) fa_pool_chore_at(pool, fa_now() + 1000000);
    return true;
}

static bool quiet(fa_pool *pool) {
    (void)pool;
    return fa_add(&quiets, 1u) >= 1; /* not the first time */
}

static fa_evidence spare(fa_pool *pool) {
    (void)pool;
    return FA_SPARE;
}

static const fa_ops ops = {attach, attach, turn, abandon, release, chore, quiet, spare};

static void wake(fa_pool *pool, test_cell *test) {
    if (fa_mailbox_len(&test->cell.mailbox) && fa_status_try_schedule(&test->cell.status)) {
        fa_add(&test->references, 1u);
        CHECK(fa_pool_push(pool, &test->cell) == FA_OK);
    }
}

static fa_pool *pool;
static uint32_t messages;

static void *produce(void *argument) {
    uintptr_t number = (uintptr_t)argument;
    for (uint32_t key = 0; key < KEYS; key++) {
        for (uintptr_t i = 0; i < messages; i++) {
            test_cell *test = &cells[(key + number) % KEYS];
            while (fa_mailbox_push(&test->cell.mailbox, as_message(number * EACH + i)) != FA_OK) fa_yield();
            wake(pool, test);
            if (i % 64 == 0) {
                CHECK(fa_status_suspend(&test->cell.status));
                if (fa_status_resume(&test->cell.status)) wake(pool, test);
            }
        }
    }
    return NULL;
}

static void *work(void *argument) {
    fa_worker_main(argument, NULL);
    return NULL;
}

static void run(uint32_t threads, uint32_t width, uint32_t policy, uint32_t capacity) {
    fa_store(&handled, 0u);
    fa_store(&quiets, 0u);
    fa_store(&most_at_once, 0u);
    for (int i = 0; i < KEYS; i++) {
        cells[i] = (test_cell){0};
        fa_cell_init(&cells[i].cell, capacity, 5000, 1.0f, FA_RAISE);
    }
    pool = fa_pool_new(threads, width, policy, &ops, NULL);
    CHECK(pool != NULL);
    pthread_t workers[16], producers[PRODUCERS];
    for (uint32_t i = 0; i < threads; i++) workers[i] = start(work, pool);
    for (uintptr_t i = 0; i < PRODUCERS; i++) producers[i] = start(produce, (void *)i);
    for (int i = 0; i < PRODUCERS; i++) join(producers[i]);
    fa_pool_stop(pool);
    for (uint32_t i = 0; i < threads; i++) join(workers[i]);
    CHECK(fa_load(&handled) == PRODUCERS * KEYS * messages);
    CHECK(fa_load(&quiets) == 2);
    CHECK(fa_pool_processed(pool) == PRODUCERS * KEYS * messages);
    CHECK(fa_pool_ready(pool) == 0 && fa_pool_running(pool) == 0);
    for (int i = 0; i < KEYS; i++) {
        CHECK(fa_load(&cells[i].references) == 0);
        CHECK(fa_status_value(&cells[i].cell.status) == 0);
        CHECK(cells[i].handled == PRODUCERS * messages);
        fa_mailbox_destroy(&cells[i].cell.mailbox, drop);
    }
    CHECK(fa_status_try_schedule(&cells[0].cell.status));
    CHECK(fa_pool_push(pool, &cells[0].cell) == FA_SHUT);
    fa_pool_free(pool);
}

static void exactly_once(void) {
    slow = refusing = false;
    messages = EACH;
    for (uint32_t policy = FA_FAIR; policy <= FA_FIFO; policy++) {
        run(1, 1, policy, 100);
        run(4, 1, policy, 3);
        run(8, 2, policy, 1);
        run(8, 8, policy, 1000);
    }
}

static void not_now_and_retry(void) {
    refusing = true;
    messages = 30;
    run(4, 2, FA_FAIR, 100);
    refusing = false;
}

/* Processors that block do not hold up the others, though only one may run without further evidence. */
static void the_guard_lets_others_run(void) {
    slow = true;
    messages = 4;
    run(8, 1, FA_FAIR, 100);
    CHECK(fa_load(&most_at_once) >= 6);
    slow = false;
}

static void a_chore(void) {
    pool = fa_pool_new(4, 1, FA_FAIR, &ops, NULL);
    pthread_t workers[4];
    for (int i = 0; i < 4; i++) workers[i] = start(work, pool);
    fa_pool_chore_at(pool, fa_now() + 1000000);
    while (fa_load(&chores) < 10) pause_ms(1);
    fa_pool_stop(pool);
    for (int i = 0; i < 4; i++) join(workers[i]);
    CHECK(fa_load(&chores) == 10);
    fa_pool_free(pool);
}

static void an_unused_pool(void) {
    for (int i = 0; i < 100; i++) {
        pool = fa_pool_new(2, 1, FA_FAIR, &ops, NULL);
        CHECK(fa_pool_is_unused(pool));
        fa_pool_stop(pool);
        fa_pool_free(pool);
    }
}

static void stop_at_once(void) {
    for (int i = 0; i < 200; i++) {
        pool = fa_pool_new(4, 1, FA_FAIR, &ops, NULL);
        pthread_t workers[4];
        fa_cell_init(&cells[0].cell, 1, 5000, 1.0f, FA_RAISE);
        CHECK(fa_status_try_schedule(&cells[0].cell.status));
        fa_store(&cells[0].references, 1u);
        CHECK(fa_pool_push(pool, &cells[0].cell) == FA_OK);
        for (int w = 0; w < 4; w++) workers[w] = start(work, pool);
        fa_pool_stop(pool);
        for (int w = 0; w < 4; w++) join(workers[w]);
        CHECK(fa_load(&cells[0].references) == 0);
        fa_pool_free(pool);
    }
}

int main(void) {
    RUN(exactly_once);
    RUN(not_now_and_retry);
    RUN(the_guard_lets_others_run);
    RUN(a_chore);
    RUN(an_unused_pool);
    RUN(stop_at_once);
    CHECK(fa_mailbox_live_nodes() == 0);
    return 0;
}
