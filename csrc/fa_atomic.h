/* fa_atomic.h: the only user of <stdatomic.h>. You are here: under every arrow of the flow.
 *
 * Sequentially consistent unless the name says otherwise (_acquire, _release, _relaxed). Each use carries
 * the tag of its line in the ordering table of csrc/README.md, which names its partner.
 *
 * With FA_MODEL every operation is a point where the model checker may switch threads, so that what is
 * checked is what is shipped.
 */
#ifndef FA_ATOMIC_H
#define FA_ATOMIC_H

#include <stdatomic.h>
#include <stdint.h>

#ifdef FA_MODEL
void fa_model_point(void);
#define FA_POINT() fa_model_point()
#else
#define FA_POINT() ((void)0)
#endif

typedef _Atomic(uint8_t) fa_atomic_u8;
typedef _Atomic(uint16_t) fa_atomic_u16;
typedef _Atomic(uint32_t) fa_atomic_u32;
typedef _Atomic(uint64_t) fa_atomic_u64;
typedef _Atomic(int64_t) fa_atomic_i64;

#define fa_load(p)         (FA_POINT(), atomic_load(p))
#define fa_load_acquire(p) (FA_POINT(), atomic_load_explicit(p, memory_order_acquire))
#define fa_load_relaxed(p) atomic_load_explicit(p, memory_order_relaxed)

#define fa_store(p, v)         (FA_POINT(), atomic_store(p, v))
#define fa_store_release(p, v) (FA_POINT(), atomic_store_explicit(p, v, memory_order_release))
#define fa_store_relaxed(p, v) atomic_store_explicit(p, v, memory_order_relaxed)

#define fa_swap_acquire(p, v)  (FA_POINT(), atomic_exchange_explicit(p, v, memory_order_acquire))
#define fa_swap_acq_rel(p, v)  (FA_POINT(), atomic_exchange_explicit(p, v, memory_order_acq_rel))
#define fa_cas(p, expected, v) (FA_POINT(), atomic_compare_exchange_weak(p, expected, v))
#define fa_add(p, v)           (FA_POINT(), atomic_fetch_add(p, v))
#define fa_sub(p, v)           (FA_POINT(), atomic_fetch_sub(p, v))
#define fa_or(p, v)            (FA_POINT(), atomic_fetch_or(p, v))
#define fa_and(p, v)           (FA_POINT(), atomic_fetch_and(p, v))

/* A number that one thread sets and others look at. */
typedef struct fa_flag {
    fa_atomic_u32 value;
} fa_flag;

static inline uint32_t fa_flag_get(fa_flag *flag) { return fa_load(&flag->value); /* [F1] */ }

static inline void fa_flag_set(fa_flag *flag, uint32_t value) { fa_store(&flag->value, value); /* [F1] */ }

#endif
