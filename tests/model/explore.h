/* explore.h: a small model checker for csrc, after loom (tokio) and CHESS.
 *
 * Threads are coroutines. Every atomic operation, lock, park and unpark of the shipped source is a point at
 * which another thread may go on (FA_MODEL in fa_atomic.h and fa_platform.h). The scenario is run again and
 * again, depth first over all schedules with at most `preemptions` switches away from a thread that could
 * have gone on. It explores interleavings under sequential consistency, not weak memory.
 *
 * A schedule fails when CHECK fails, when the program crashes, or when threads are left that nothing can
 * wake.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                    \
    do {                                                    \
        if (!(condition)) model_fail(#condition, __LINE__); \
    } while (0)

/* In a scenario: adds a thread. */
void model_thread(void (*body)(void *), void *argument);
void model_fail(const char *what, int line);
/* How many blocks of fa_alloc are alive; freed memory is poisoned. */
int model_live_blocks(void);

/* Runs every schedule of a scenario: `set_up` adds threads, `at_end` checks when all of them have ended. */
void model_explore(const char *name, int preemptions, void (*set_up)(void), void (*at_end)(void));

#endif
