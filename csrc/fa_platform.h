/* fa_platform.h: clock, mutex, parking and memory. You are here: beside the flow, wherever it waits.
 *
 * Everything that differs between systems is behind these names; csrc/ uses nothing else of the system.
 */
#ifndef FA_PLATFORM_H
#define FA_PLATFORM_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef FA_MODEL
#include <pthread.h>
#endif

/* Invariants: checked in the debug build, free in the release build. */
#if defined(FA_DEBUG) || defined(FA_MODEL)
#define FA_ASSERT(condition) assert(condition)
#else
#define FA_ASSERT(condition) ((void)0)
#endif

#define FA_NEVER INT64_MAX

#if defined(__GNUC__) || defined(__clang__)
#define FA_LIKELY(x)   __builtin_expect(!!(x), 1)
#define FA_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define FA_MUST_USE    __attribute__((warn_unused_result))
#else
#define FA_LIKELY(x)   (x)
#define FA_UNLIKELY(x) (x)
#define FA_MUST_USE
#endif

/* Monotonic nanoseconds; and the same within a few milliseconds, for a quarter of the price. */
int64_t fa_now(void);
int64_t fa_now_about(void);

/* A cheap hint of time: it may jump between cores and only ever decides whether to ask fa_now early.
 * FA_TICKS_PER_MS is at most what really pass in a millisecond (one GHz on x86, where 2-5 are usual). */
#if defined(FA_MODEL)
#define FA_TICKS_PER_MS 1000000
static inline int64_t fa_ticks(void) { return fa_now(); /* the same in each run of a schedule */ }
#elif defined(__x86_64__) || defined(__i386__)
#define FA_TICKS_PER_MS 1000000
static inline int64_t fa_ticks(void) { return (int64_t)__builtin_ia32_rdtsc(); }
#elif defined(__aarch64__)
#define FA_TICKS_PER_MS 1000 /* the counter's frequency is a megahertz at least */
static inline int64_t fa_ticks(void) {
    int64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
#else
#define FA_TICKS_PER_MS 1000000
static inline int64_t fa_ticks(void) { return fa_now(); }
#endif

/* Inside a spin: tells the core that it waits. */
static inline void fa_relax(void) {
#ifdef FA_MODEL
    extern void fa_model_wait(void);
    fa_model_wait();
#elif defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Gives the core to somebody else, for the case that the one waited for is not running. */
void fa_yield(void);

void *fa_alloc(size_t size);
void *fa_realloc(void *old, size_t size);
void fa_free(void *memory);

#ifdef FA_MODEL
typedef struct fa_mutex {
    int locked;
} fa_mutex;
typedef struct fa_parker {
    int token;
} fa_parker;
#else
typedef pthread_mutex_t fa_mutex;
/* One thread sleeps here until somebody leaves a token; a token left before is not lost. */
typedef struct fa_parker {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool token;
} fa_parker;
#endif

void fa_mutex_init(fa_mutex *mutex);
void fa_mutex_destroy(fa_mutex *mutex);
void fa_lock(fa_mutex *mutex);
void fa_unlock(fa_mutex *mutex);

void fa_parker_init(fa_parker *parker);
void fa_parker_destroy(fa_parker *parker);
/* Sleeps until unparked or until `deadline` (fa_now time, FA_NEVER for none). True when unparked. */
bool fa_park(fa_parker *parker, int64_t deadline);
void fa_unpark(fa_parker *parker);

#endif
