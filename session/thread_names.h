/* SPDX-License-Identifier: MIT */
/* The names of threads, as /proc has them while they run. */
#ifndef DP_SESSION_THREAD_NAMES_H
#define DP_SESSION_THREAD_NAMES_H

#include <stdint.h>
#include <sys/types.h>

struct dp_thread_name;
struct dp_thread_names {
	struct dp_thread_name *all; /* a hash table */
	struct dp_thread_name *last;
	unsigned n;
};

/*
 * The thread's name, or `otherwise` if it was not seen while it ran. A thread that has events is looked up once a second, because
 * programs name their threads after they have started. `now_ns`: of the event. The text stays until dp_thread_names_fini().
 */
const char *dp_thread_name(struct dp_thread_names *names, pid_t pid, pid_t tid, uint64_t now_ns, const char *otherwise);
void dp_thread_names_fini(struct dp_thread_names *names);

#endif
