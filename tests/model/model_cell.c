/* One cell: mailbox and status word, with producers, a worker, closers and evictors. */
#include "explore.h"
#include "fa_worker.h"

static fa_cell cell;
static uintptr_t handled[4], evicted[4], refused[4];
static bool running;
static uint32_t queued;

void fa_model_point(void);

static void *as_message(uintptr_t number) { return (void *)(number + 1); }

/* The worker's part without a pool: what fa__run does with the status word. */
static void work_until_idle(void) {
    for (;;) {
        CHECK(!running); /* never run by two threads */
        running = true;
        void *message;
        while (fa_status_should_process(&cell.status) && (message = fa_mailbox_take(&cell.mailbox)) != NULL) {
            fa_model_point();
            handled[(uintptr_t)message - 1]++;
            queued--;
            fa_mailbox_pop(&cell.mailbox, false);
            fa_room_wake(&cell.mailbox, false);
        }
        running = false;
        uint32_t word = fa_status_set_idle(&cell.status);
        if (word & FA_CLOSED) {
            message = fa_mailbox_take_hand(&cell.mailbox);
            if (message != NULL) evicted[(uintptr_t)message - 1]++;
        }
        if (word == 0 && fa_mailbox_len(&cell.mailbox) > 0 && fa_status_try_schedule(&cell.status)) {
            fa_yield(); /* as fa__run does: a producer may be between reserving and linking */
            continue;
        }
        return;
    }
}

static void wake(void) {
    if (fa_mailbox_len(&cell.mailbox) > 0 && fa_status_try_schedule(&cell.status)) work_until_idle();
}

/* Counted when it is in for certain and until it is out for certain: never more than fit. */
static int push(uintptr_t number) {
    int result = fa_mailbox_push(&cell.mailbox, as_message(number));
    if (result == FA_OK) CHECK(++queued <= cell.mailbox.capacity);
    return result;
}

static void produce(void *argument) {
    if (push((uintptr_t)argument) != FA_OK) {
        refused[(uintptr_t)argument]++;
    } else if (fa_status_try_schedule(&cell.status)) {
        work_until_idle();
    }
}

static void produce_and_wait(void *argument) {
    fa_waiter waiter;
    fa_room_enter(&cell.mailbox, &waiter);
    while (push((uintptr_t)argument) == FA_FULL) {
        fa_room_wait(&waiter, FA_NEVER);
    }
    fa_room_leave(&waiter);
    if (fa_status_try_schedule(&cell.status)) work_until_idle();
}

static void suspend_and_resume(void *argument) {
    (void)argument;
    CHECK(fa_status_suspend(&cell.status));
    if (fa_status_resume(&cell.status)) wake();
}

static void evict(void *argument) {
    (void)argument;
    void *message = fa_mailbox_evict(&cell.mailbox);
    if (message == NULL) return;
    queued--;
    evicted[(uintptr_t)message - 1]++;
}

static void close_cell(void *argument) {
    (void)argument;
    fa_mailbox_close(&cell.mailbox);
    uint32_t before = fa_status_close(&cell.status);
    if (before & FA_CLOSED) return;
    void *message;
    if (!(before & FA_SCHEDULED) && (message = fa_mailbox_take_hand(&cell.mailbox)) != NULL) {
        evicted[(uintptr_t)message - 1]++;
    }
    while ((message = fa_mailbox_evict(&cell.mailbox)) != NULL) evicted[(uintptr_t)message - 1]++;
}

static void retire(void *argument) {
    (void)argument;
    if (!fa_status_try_schedule(&cell.status)) return;
    if (fa_mailbox_close_if_empty(&cell.mailbox)) {
        fa_status_close(&cell.status);
        fa_status_set_idle(&cell.status);
    } else {
        work_until_idle();
    }
}

static void begin(uint32_t capacity, uint8_t overflow) {
    fa_cell_init(&cell, capacity, 5000, 1.0f, overflow);
    fa_mailbox_init(&cell.mailbox, capacity, FA_COUNT_MASK); /* across the wrap-around */
    cell.mailbox.waitable = overflow == FA_BLOCK;
    for (int i = 0; i < 4; i++) handled[i] = evicted[i] = refused[i] = 0;
    running = false;
    queued = 0;
}

static void nothing(void *value) { (void)value; }

/* Every message has one fate, and the cell has come to rest with nothing in it. */
static void all_accounted_for(int messages) {
    for (int i = 0; i < messages; i++) CHECK(handled[i] + evicted[i] + refused[i] == 1);
    CHECK(fa_mailbox_len(&cell.mailbox) == 0);
    CHECK((fa_status_value(&cell.status) & ~FA_CLOSED) == 0);
    fa_mailbox_destroy(&cell.mailbox, nothing);
    CHECK(model_live_blocks() == 0);
}

static void two_messages(void) { all_accounted_for(2); }

static void two_messages_none_refused(void) {
    CHECK(refused[0] + refused[1] + evicted[0] + evicted[1] == 0);
    all_accounted_for(2);
}

static void three_messages_none_refused(void) {
    CHECK(refused[0] + refused[1] + refused[2] == 0);
    all_accounted_for(3);
}

static void two_producers(void) {
    begin(2, FA_RAISE);
    model_thread(produce, (void *)0);
    model_thread(produce, (void *)1);
}

static void full(void) {
    begin(1, FA_RAISE);
    model_thread(produce, (void *)0);
    model_thread(produce, (void *)1);
}

static void with_suspension(void) {
    begin(2, FA_RAISE);
    model_thread(produce, (void *)0);
    model_thread(produce, (void *)1);
    model_thread(suspend_and_resume, NULL);
}

static void with_eviction(void) {
    begin(2, FA_DROP_OLDEST);
    model_thread(produce, (void *)0);
    model_thread(produce, (void *)1);
    model_thread(evict, NULL);
}

static void with_close(void) {
    begin(2, FA_RAISE);
    model_thread(produce, (void *)0);
    model_thread(produce, (void *)1);
    model_thread(close_cell, NULL);
}

static void with_two_closers(void) {
    begin(2, FA_RAISE);
    model_thread(produce, (void *)0);
    model_thread(close_cell, NULL);
    model_thread(close_cell, NULL);
}

static void one_message(void) { all_accounted_for(1); }

static void with_retirement(void) {
    begin(2, FA_RAISE);
    model_thread(produce, (void *)0);
    model_thread(produce, (void *)1);
    model_thread(retire, NULL);
}

static void waiting_for_room(void) {
    begin(1, FA_BLOCK);
    model_thread(produce_and_wait, (void *)0);
    model_thread(produce_and_wait, (void *)1);
    model_thread(produce_and_wait, (void *)2);
}

int main(void) {
    model_explore("two_producers", 3, two_producers, two_messages_none_refused);
    model_explore("full", 3, full, two_messages);
    model_explore("with_suspension", 2, with_suspension, two_messages_none_refused);
    model_explore("with_eviction", 2, with_eviction, two_messages);
    model_explore("with_close", 2, with_close, two_messages);
    model_explore("with_two_closers", 2, with_two_closers, one_message);
    model_explore("with_retirement", 2, with_retirement, two_messages);
    model_explore("waiting_for_room", 2, waiting_for_room, three_messages_none_refused);
    return 0;
}
