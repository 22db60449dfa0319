/* SPDX-License-Identifier: MIT */
/* Which processes have the memory of one group mapped: fork children have, at the same addresses. */
#ifndef DP_INJECTOR_TARGET_EVENTS_HOLDERS_H
#define DP_INJECTOR_TARGET_EVENTS_HOLDERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct dp_group_at {
	uint64_t data, private; /* the control page and the private region, in each of the processes */
};

struct dp_holder {
	pid_t pid;
	bool unreadable;  /* this process may not be read: whether it has the memory is not known */
	uint64_t live;    /* the first words of its private region (agent/abi.h) */
	uint32_t process;
};
/* False: stop, the answer would not be complete. */
typedef bool (*dp_holder_fn)(const struct dp_holder *h, void *data);
/*
 * Calls `found` for each process of the machine except this one and `except`. Reads one address of each, stops none, and opens no
 * file of a process that has a single thread. False: it did not see all processes, or `found` returned false.
 */
bool dp_holders_find(const struct dp_group_at *at, pid_t except, dp_holder_fn found, void *data);
/*
 * The same for all groups that were ever installed in this process, by the control pages of others, which name it. Opens the list of
 * mappings of each process.
 */
bool dp_holders_of(pid_t target, uint64_t start_time, dp_holder_fn found, void *data);

#endif
