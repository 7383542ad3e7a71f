/* explore.c: coroutines, choices, and the stand-ins for fa_platform. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "explore.h"

#include <string.h>
#include <ucontext.h>

#include "fa_platform.h"

#define MAX_THREADS 8
#define MAX_POINTS  20000
#define STACK       131072

typedef enum { RUNNABLE, WAITS_FOR_LOCK, PARKED, SPINS, ENDED } state;

typedef struct thread {
    ucontext_t context;
    void (*body)(void *);
    void *argument;
    state state;
    void *on; /* the mutex or parker it waits for */
    int64_t deadline;
    bool timed_out;
} thread;

static thread threads[MAX_THREADS];
static char *stacks[MAX_THREADS];
static int count, current, live_blocks, preempted, bound, spins, without_progress;
static ucontext_t home;
static int64_t now;
static const char *scenario;

/* The schedule: at each choice, which of how many. */
static int chosen[MAX_POINTS], options[MAX_POINTS], depth, known;

void model_fail(const char *what, int line) {
    fprintf(stderr, "%s: line %d: not so: %s\nschedule:", scenario, line, what);
    for (int i = 0; i < depth && i < 300; i++) fprintf(stderr, " %d", chosen[i]);
    fprintf(stderr, "\n");
    exit(1);
}

static int choose(int of) {
    if (of == 1) return 0;
    if (depth == MAX_POINTS) model_fail("the schedule is too long", 0);
    if (depth >= known) {
        chosen[depth] = 0;
        known = depth + 1;
    }
    options[depth] = of;
    return chosen[depth++];
}

static bool is_enabled(const thread *t) {
    switch (t->state) {
        case RUNNABLE:
            return true;
        case WAITS_FOR_LOCK:
            return !((fa_mutex *)t->on)->locked;
        case PARKED:
            return ((fa_parker *)t->on)->token != 0;
        default: /* a spinner goes on only when nobody else can: it waits for somebody */
            return false;
    }
}

static void go_to(int next) {
    int before = current;
    if (next == before) return;
    current = next;
    swapcontext(&threads[before].context, &threads[next].context);
}

/* The current thread is at a point: who goes on? It itself is the first option while it can. */
static void point(void) {
    int able[MAX_THREADS], n = 0;
    bool self = is_enabled(&threads[current]);
    if (self) able[n++] = current;
    if (!self || preempted < bound) {
        for (int i = 0; i < count; i++) {
            if (i != current && is_enabled(&threads[i])) able[n++] = i;
        }
    }
    if (n == 0) {
        /* Nobody can simply go on: spinners look again, each in its turn, and then time passes. */
        int spinner = -1, spinners = 0, timed = -1;
        for (int i = 1; i <= count; i++) {
            int other = (current + i) % count;
            const thread *t = &threads[other];
            if (t->state == SPINS) {
                if (spinner < 0) spinner = other;
                spinners++;
            } else if (t->state == PARKED && t->deadline != FA_NEVER &&
                       (timed < 0 || t->deadline < threads[timed].deadline)) {
                timed = other;
            }
        }
        if (spinner < 0 && timed < 0) {
            for (int i = 0; i < count; i++) {
                if (threads[i].state != ENDED) model_fail("a thread waits for ever", __LINE__);
            }
            setcontext(&home);
        }
        if (++without_progress > 3000) model_fail("threads wait for each other for ever", __LINE__);
        if (spinner >= 0 && (timed < 0 || spins < spinners)) {
            spins++;
            able[n++] = spinner;
        } else {
            spins = 0;
            if (threads[timed].deadline > now) now = threads[timed].deadline;
            threads[timed].timed_out = true;
            able[n++] = timed;
        }
    }
    int next = able[choose(n)];
    if (self && next != current) preempted++;
    go_to(next);
}

void fa_model_point(void) {
    if (count > 0) point();
}

/* In a spin: goes on only after somebody else has. */
void fa_model_wait(void) {
    thread *self = &threads[current];
    self->state = SPINS;
    point();
    self->state = RUNNABLE;
}

void fa_yield(void) { fa_model_wait(); }

int64_t fa_now(void) { return now += 1000; }

int64_t fa_now_about(void) { return now; }

void fa_mutex_init(fa_mutex *mutex) { mutex->locked = 0; }

void fa_mutex_destroy(fa_mutex *mutex) { CHECK(!mutex->locked); }

void fa_lock(fa_mutex *mutex) {
    if (count == 0) return;
    thread *self = &threads[current];
    self->state = WAITS_FOR_LOCK;
    self->on = mutex;
    do point();
    while (mutex->locked);
    self->state = RUNNABLE;
    mutex->locked = 1;
}

void fa_unlock(fa_mutex *mutex) { mutex->locked = 0; }

void fa_parker_init(fa_parker *parker) { parker->token = 0; }

void fa_parker_destroy(fa_parker *parker) { (void)parker; }

bool fa_park(fa_parker *parker, int64_t deadline) {
    thread *self = &threads[current];
    self->on = parker;
    self->deadline = deadline;
    self->timed_out = false;
    self->state = PARKED;
    do point();
    while (!parker->token && !self->timed_out);
    self->state = RUNNABLE;
    bool woken = parker->token != 0;
    parker->token = 0;
    return woken;
}

void fa_unpark(fa_parker *parker) {
    parker->token = 1;
    fa_model_point();
}

/* -- memory: counted, poisoned when freed, and given back after the run --------------------------------- */

typedef struct block {
    struct block *next;
    size_t size;
    bool freed;
} block;

static block *blocks;

void *fa_alloc(size_t size) {
    block *b = malloc(sizeof(block) + size);
    *b = (block){blocks, size, false};
    blocks = b;
    live_blocks++;
    return memset(b + 1, 0xAB, size);
}

void fa_free(void *memory) {
    if (memory == NULL) return;
    block *b = (block *)memory - 1;
    CHECK(!b->freed);
    b->freed = true;
    live_blocks--;
    memset(memory, 0xEE, b->size);
}

void *fa_realloc(void *old, size_t size) {
    void *memory = fa_alloc(size);
    if (old != NULL) {
        size_t before = ((block *)old - 1)->size;
        memcpy(memory, old, before < size ? before : size);
        fa_free(old);
    }
    return memory;
}

int model_live_blocks(void) { return live_blocks; }

static void forget_blocks(void) {
    while (blocks != NULL) {
        block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
    live_blocks = 0;
}

/* -- exploring ------------------------------------------------------------------------------------------ */

static void enter(int number) {
    threads[number].body(threads[number].argument);
    threads[number].state = ENDED;
    for (;;) point();
}

void model_thread(void (*body)(void *), void *argument) {
    int number = count++;
    thread *t = &threads[number];
    if (stacks[number] == NULL) stacks[number] = malloc(STACK);
    memset(t, 0, sizeof(*t));
    t->body = body;
    t->argument = argument;
    getcontext(&t->context);
    t->context.uc_stack.ss_sp = stacks[number];
    t->context.uc_stack.ss_size = STACK;
    makecontext(&t->context, (void (*)(void))enter, 1, number);
}

void model_explore(const char *name, int preemptions, void (*set_up)(void), void (*at_end)(void)) {
    scenario = name;
    bound = preemptions;
    known = 0;
    long runs = 0;
    for (;;) {
        depth = preempted = count = spins = without_progress = 0;
        now = 1000000;
        set_up();
        volatile bool back = false;
        getcontext(&home);
        if (!back) {
            back = true;
            current = choose(count);
            setcontext(&threads[current].context);
        }
        count = 0;
        at_end();
        forget_blocks();
        runs++;
        int last = known - 1;
        while (last >= 0 && chosen[last] + 1 == options[last]) last--;
        if (last < 0) break;
        chosen[last]++;
        known = last + 1;
    }
    printf("passed %s: %ld schedules, %d preemptions\n", name, runs, preemptions);
}
