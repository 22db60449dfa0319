/* SPDX-License-Identifier: MIT */
/* Guest threads: threads that run LTTng's or the sink's code, and not the program's. */
#ifndef DP_AGENT_LTTNG_GUEST_GUEST_H
#define DP_AGENT_LTTNG_GUEST_GUEST_H

#include <stdbool.h>

/* enter.c. This thread is not the program's: its hits are ignored. */
void dp_lttng_be_guest(void);
/* If the program had liblttng-ust first: whether the calling thread is one of LTTng's, judged by its name. */
bool dp_lttng_named_as_ours(void);
/* Gives this thread, and those that it creates, a normal priority and the processors of the program. */
void dp_lttng_ordinary_priority(void);

#endif
