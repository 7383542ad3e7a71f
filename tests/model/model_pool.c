/* The pool: parking, waking, the guard, delays, chores and the end, with two workers. */
#include "explore.h"
#include "fa_worker.h"

void fa_model_wait(void);
void fa_model_point(void);

typedef struct test_cell {
    fa_cell cell; /* first, so that the one is the other */
    int references;
    int handled;
    bool running;
} test_cell;

static test_cell cells[2];
static fa_pool *pool;
static int producers_left, expected, quiets, chores;
static int refusals; /* so many times a message is not now */
static bool first_waits_for_second, chore_pushes;

static void nothing(fa_worker *worker) {
    (void)worker;
    fa_model_point();
}

static int handle(fa_cell *cell, void *message, int64_t *delay) {
    (void)message;
    test_cell *test = (test_cell *)cell;
    CHECK(!test->running); /* never run by two workers */
    test->running = true;
    int outcome = FA_HANDLED;
    if (refusals > 0) {
        refusals--;
        outcome = FA_RETRY;
        *delay = 5000000;
    } else {
        fa_model_point();
        /* A processor that blocks until another cell's message has been handled. */
        while (first_waits_for_second && test == &cells[0] && !cells[1].handled) fa_model_wait();
        test->handled++;
    }
    test->running = false;
    return outcome;
}

static void drop(void *message) { (void)message; }

static void turn(fa_worker *worker, fa_cell *cell, int64_t started, fa_turn *result) {
    (void)worker;
    fa_run_turn(cell, started, result, handle, drop);
}

static void abandon(fa_cell *cell) { fa_mailbox_take_hand(&cell->mailbox); }

static void release(fa_cell *cell) { ((test_cell *)cell)->references--; }

static void dispatch(int number) {
    fa_cell *cell = &cells[number].cell;
    CHECK(fa_mailbox_push(&cell->mailbox, &cells[number]) == FA_OK);
    if (fa_status_try_schedule(&cell->status)) {
        cells[number].references++;
        CHECK(fa_pool_push(pool, cell) == FA_OK);
    }
}

static bool chore(fa_pool *of) {
    (void)of;
    chores++;
    if (chore_pushes) dispatch(1);
    return true;
}

static bool quiet(fa_pool *of) {
    (void)of;
    quiets++;
    return true;
}

static fa_evidence spare(fa_pool *of) {
    (void)of;
    return FA_SPARE;
}

static const fa_ops ops = {nothing, nothing, turn, abandon, release, chore, quiet, spare};

static void work(void *argument) {
    (void)argument;
    fa_worker_main(pool, NULL);
}

static void produce(void *argument) {
    dispatch((int)(intptr_t)argument);
    producers_left--;
}

static void ask_for_chore(void *argument) {
    (void)argument;
    fa_pool_chore_at(pool, 0);
    while (chores == 0) fa_model_wait();
    producers_left--;
}

/* Stopping wakes everybody. So it waits until all is handled, or else it would hide a lost wake-up. */
static void stop(void *argument) {
    (void)argument;
    while (producers_left > 0 || cells[0].handled + cells[1].handled < expected) fa_model_wait();
    fa_pool_stop(pool);
}

static void begin(uint32_t threads, uint32_t width) {
    quiets = chores = refusals = 0;
    first_waits_for_second = chore_pushes = false;
    expected = 2;
    for (int i = 0; i < 2; i++) {
        cells[i] = (test_cell){0};
        fa_cell_init(&cells[i].cell, 2, 5000, 1.0f, FA_RAISE);
    }
    pool = fa_pool_new(threads, width, FA_FAIR, &ops, NULL);
    for (uint32_t i = 0; i < threads; i++) model_thread(work, NULL);
    model_thread(stop, NULL);
}

static void add_producers(void) {
    producers_left = 2;
    model_thread(produce, (void *)0);
    model_thread(produce, (void *)1);
}

static void one_worker(void) {
    begin(1, 1);
    add_producers();
}

static void two_workers_one_at_a_time(void) {
    begin(2, 1);
    add_producers();
}

static void two_workers_at_once(void) {
    begin(2, 2);
    add_producers();
}

static void stop_at_once(void) {
    begin(2, 2);
    expected = 0;
    add_producers();
}

static void one_cell(void) {
    begin(2, 2);
    producers_left = 2;
    model_thread(produce, (void *)0);
    model_thread(produce, (void *)0);
}

static void a_retry(void) {
    begin(2, 1);
    refusals = expected = 1;
    producers_left = 1;
    model_thread(produce, (void *)0);
}

static void a_processor_that_blocks(void) {
    begin(2, 1);
    first_waits_for_second = true;
    add_producers();
}

static void a_chore(void) {
    begin(2, 2);
    chore_pushes = true;
    producers_left = 2;
    model_thread(produce, (void *)0);
    model_thread(ask_for_chore, NULL);
}

static void the_end(void) {
    CHECK(quiets == 1);
    CHECK(cells[0].references == 0 && cells[1].references == 0);
    CHECK(fa_mailbox_len(&cells[0].cell.mailbox) + fa_mailbox_len(&cells[1].cell.mailbox) == 0);
    CHECK(fa_pool_ready(pool) == 0 && fa_pool_running(pool) == 0 && fa_pool_is_stopped(pool));
    fa_pool_free(pool);
    for (int i = 0; i < 2; i++) fa_mailbox_destroy(&cells[i].cell.mailbox, drop);
    CHECK(model_live_blocks() == 0);
}

static void two_handled(void) {
    CHECK(cells[0].handled + cells[1].handled == 2);
    the_end();
}

static void one_handled(void) {
    CHECK(cells[0].handled + cells[1].handled == 1);
    the_end();
}

int main(void) {
    model_explore("one_worker", 2, one_worker, two_handled);
    model_explore("two_workers_one_at_a_time", 2, two_workers_one_at_a_time, two_handled);
    model_explore("two_workers_at_once", 2, two_workers_at_once, two_handled);
    model_explore("stop_at_once", 2, stop_at_once, two_handled);
    model_explore("one_cell", 2, one_cell, two_handled);
    model_explore("a_retry", 2, a_retry, one_handled);
    model_explore("a_processor_that_blocks", 2, a_processor_that_blocks, two_handled);
    model_explore("a_chore", 2, a_chore, two_handled);
    return 0;
}
