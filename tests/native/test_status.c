/* The status word: exact values after each transition, and exactly one winner of a race. */
#include "fa_test.h"

#include "fa_status.h"

static void values(void) {
    fa_status status;
    fa_status_init(&status);
    CHECK(fa_status_value(&status) == 0);
    CHECK(fa_status_should_process(&status));
    CHECK(fa_status_try_schedule(&status));
    CHECK(fa_status_value(&status) == 2);
    CHECK(!fa_status_try_schedule(&status));
    CHECK(fa_status_should_process(&status));
    CHECK(fa_status_suspend(&status));
    CHECK(fa_status_suspend(&status));
    CHECK(fa_status_value(&status) == 10);
    CHECK(!fa_status_should_process(&status));
    CHECK(fa_status_set_idle(&status) == 8);
    CHECK(!fa_status_try_schedule(&status));
    CHECK(!fa_status_resume(&status));
    CHECK(fa_status_resume(&status));
    CHECK(fa_status_resume(&status)); /* one too many */
    CHECK(fa_status_value(&status) == 0);
    CHECK(fa_status_try_schedule(&status));
    CHECK(fa_status_close(&status) == 2);
    CHECK(fa_status_close(&status) == 3);
    CHECK(fa_status_set_idle(&status) == 1);
    CHECK(!fa_status_try_schedule(&status));
}

static void limit(void) {
    fa_status status;
    fa_status_init(&status);
    atomic_init(&status.word, UINT32_MAX - 3); /* 2^30 - 1 suspensions */
    CHECK(!fa_status_suspend(&status));
    CHECK(fa_status_value(&status) == UINT32_MAX - 3);
    CHECK(!fa_status_resume(&status));
}

#define ROUNDS 20000

static fa_status contended;
static fa_atomic_u32 inside, entered;

static void *contend(void *argument) {
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        if (fa_status_try_schedule(&contended)) {
            CHECK(fa_add(&inside, 1u) == 0); /* nobody else */
            fa_add(&entered, 1u);
            fa_sub(&inside, 1u);
            fa_status_set_idle(&contended);
        }
        CHECK(fa_status_suspend(&contended));
        fa_status_resume(&contended);
    }
    return NULL;
}

static void one_owner(void) {
    fa_status_init(&contended);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) threads[i] = start(contend, NULL);
    for (int i = 0; i < 4; i++) join(threads[i]);
    CHECK(fa_status_value(&contended) == 0);
    CHECK(fa_load(&entered) > 0);
}

int main(void) {
    RUN(values);
    RUN(limit);
    RUN(one_owner);
    return 0;
}
