/* fa_platform.c: POSIX threads. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CLOCK_MONOTONIC_COARSE */
#endif

#include "fa_platform.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#ifndef FA_MODEL
void *fa_alloc(size_t size) { return malloc(size); }

void *fa_realloc(void *old, size_t size) { return realloc(old, size); }

void fa_free(void *memory) { free(memory); }

static int64_t fa__read(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t fa_now(void) { return fa__read(CLOCK_MONOTONIC); }

int64_t fa_now_about(void) {
#ifdef CLOCK_MONOTONIC_COARSE
    return fa__read(CLOCK_MONOTONIC_COARSE);
#else
    return fa_now();
#endif
}

void fa_yield(void) { sched_yield(); }

void fa_mutex_init(fa_mutex *mutex) { pthread_mutex_init(mutex, NULL); }

void fa_mutex_destroy(fa_mutex *mutex) { pthread_mutex_destroy(mutex); }

void fa_lock(fa_mutex *mutex) {
    int error = pthread_mutex_lock(mutex);
    FA_ASSERT(error == 0);
    (void)error;
}

void fa_unlock(fa_mutex *mutex) { pthread_mutex_unlock(mutex); }

void fa_parker_init(fa_parker *parker) {
    pthread_mutex_init(&parker->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
#ifndef __APPLE__ /* which has no such clock for conditions; it waits by a relative time instead */
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
    pthread_cond_init(&parker->cond, &attributes);
    pthread_condattr_destroy(&attributes);
    parker->token = false;
}

void fa_parker_destroy(fa_parker *parker) {
    pthread_cond_destroy(&parker->cond);
    pthread_mutex_destroy(&parker->lock);
}

static int fa__wait_until(fa_parker *parker, int64_t deadline) {
#ifdef __APPLE__
    int64_t left = deadline - fa_now();
    if (left <= 0) return ETIMEDOUT;
    struct timespec pause = {.tv_sec = left / 1000000000, .tv_nsec = (long)(left % 1000000000)};
    return pthread_cond_timedwait_relative_np(&parker->cond, &parker->lock, &pause);
#else
    struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000),
                             .tv_nsec = (long)(deadline % 1000000000)};
    return pthread_cond_timedwait(&parker->cond, &parker->lock, &until);
#endif
}

bool fa_park(fa_parker *parker, int64_t deadline) {
    pthread_mutex_lock(&parker->lock);
    int error = 0;
    while (!parker->token && error != ETIMEDOUT) {
        if (deadline == FA_NEVER) {
            error = pthread_cond_wait(&parker->cond, &parker->lock);
        } else {
            error = fa__wait_until(parker, deadline);
        }
    }
    bool woken = parker->token;
    parker->token = false;
    pthread_mutex_unlock(&parker->lock);
    return woken;
}

void fa_unpark(fa_parker *parker) {
    pthread_mutex_lock(&parker->lock);
    parker->token = true;
    /* Signalled under the lock, because a parker on a stack may be gone right after it. */
    pthread_cond_signal(&parker->cond);
    pthread_mutex_unlock(&parker->lock);
}

#endif
