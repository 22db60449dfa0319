/* SPDX-License-Identifier: MIT */
#include "injector/target/seen.h"

#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct dp_seen {
	pid_t tid;
	uint64_t start_time;
	UT_hash_handle hh;
};

static struct dp_seen *find(const struct dp_seen *set, pid_t tid)
{
	struct dp_seen *found = NULL;
	HASH_FIND_INT(set, &tid, found);
	return found;
}

bool dp_seen_has(const struct dp_seen *set, pid_t tid, uint64_t start_time)
{
	const struct dp_seen *found = find(set, tid);
	return found && found->start_time == start_time;
}

bool dp_seen_id(const struct dp_seen *set, pid_t tid)
{
	return find(set, tid);
}

struct dp_error *dp_seen_add(struct dp_seen **set, pid_t tid, uint64_t start_time)
{
	struct dp_seen *one = find(*set, tid);
	if (one) { /* a reused tid */
		one->start_time = start_time;
		return NULL;
	}
	one = calloc(1, sizeof(*one));
	if (one) {
		one->tid = tid;
		one->start_time = start_time;
		HASH_ADD_INT(*set, tid, one);
		if (one->hh.tbl)
			return NULL;
	}
	free(one);
	return dp_error_nomem();
}

void dp_seen_fini(struct dp_seen **set)
{
	struct dp_seen *one, *next;
	HASH_ITER(hh, *set, one, next)
	{
		HASH_DEL(*set, one);
		free(one);
	}
}
