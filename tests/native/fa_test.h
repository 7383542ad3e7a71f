/* fa_test.h: the harness of the C tests: CHECK, threads, and a clean exit code. */
#ifndef FA_TEST_H
#define FA_TEST_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                \
        }                                                                           \
    } while (0)

#define RUN(test)                     \
    do {                              \
        test();                       \
        printf("passed %s\n", #test); \
    } while (0)

/* Messages are numbers in disguise: 1, 2, 3, ... */
static inline void *as_message(uintptr_t number) { return (void *)(number + 1); }

static inline uintptr_t as_number(void *message) { return (uintptr_t)message - 1; }

static inline pthread_t start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, argument) == 0);
    return thread;
}

static inline void join(pthread_t thread) { CHECK(pthread_join(thread, NULL) == 0); }

#endif
