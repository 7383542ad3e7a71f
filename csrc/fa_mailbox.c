/* fa_mailbox.c: the debug build's count of nodes; everything else is inline in the header. */
#include "fa_mailbox.h"

#ifdef FA_DEBUG
fa_atomic_i64 fa_live_nodes;
#endif

int64_t fa_mailbox_live_nodes(void) {
#ifdef FA_DEBUG
    return fa_load(&fa_live_nodes); /* a count, for tests */
#else
    return -1;
#endif
}
