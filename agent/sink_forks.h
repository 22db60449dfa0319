/* SPDX-License-Identifier: MIT */
/* Lets the program's fork() wait while ld.so's data change on a thread of ours. */
#ifndef DP_AGENT_SINK_FORKS_H
#define DP_AGENT_SINK_FORKS_H

#include "agent/sink.h"

/* Registers the handler, once, and holds. Until _fini, or for as long as the process lives, the text must stay mapped. */
void dp_sink_forks_init(struct dp_sink *sink);
/* While the holder has not let them go. */
void dp_sink_forks_fini(struct dp_sink *sink);

/* Between the two fork() waits on other threads. Several threads of ours may hold. */
void dp_sink_hold_forks(struct dp_sink *sink);
void dp_sink_let_forks(struct dp_sink *sink);

#endif
