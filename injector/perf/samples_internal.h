/* SPDX-License-Identifier: MIT */
/* The events that samples.c opens and samples_read.c reads. */
#ifndef DP_INJECTOR_PERF_SAMPLES_INTERNAL_H
#define DP_INJECTOR_PERF_SAMPLES_INTERNAL_H

#include "injector/perf/samples.h"
#include "injector/perf/samples_ring.h"

#include <linux/perf_event.h>

#define RECORD_MAX (64u << 10)
#define NREGS      18u

struct event {
	int fd;
	uint64_t id;
	pid_t tid; /* the thread it was opened for */
};
struct owner {             /* the event's thread that a thread's samples come from */
	pid_t tid, by;     /* by 0: not yet known */
	uint64_t ended_ns; /* or 0; later another thread may have its id */
};

struct dp_samples {
	pid_t pid;
	enum dp_samples_of of;
	struct perf_event_attr attr;
	struct event *event;
	size_t nevents, capacity;
	struct dp_perf_ring *ring; /* one per processor */
	int ncpus;
	struct owner *owner; /* a hash table; a power of two; tid 0: free */
	size_t nowners, nslots;
	struct dp_samples_stats stats;
	uint8_t scratch[RECORD_MAX];
	/* Used while rings are drained. */
	void (*each)(const struct dp_sample *sample, void *data);
	void *data;
	struct dp_samples_news news;
	uint64_t looked_ns;
	pid_t child;            /* the last one counted */
	struct dp_waits *waits; /* of dp_samples_switches() */
	int wake;               /* an epoll of the rings; -1: none */
};

enum { DP_TRAILER = 32, DP_TRAILER_TIME = 24, DP_TRAILER_ID = 16 }; /* of records except samples: pid, tid; time; id; cpu */
struct dp_perf_task {                                               /* PERF_RECORD_FORK, PERF_RECORD_EXIT */
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};
/* Is this a record of the event from which the thread's records are taken? */
bool dp_samples_is_first(struct dp_samples *s, pid_t tid, uint64_t id, uint64_t ns);
void dp_samples_thread_ended(struct dp_samples *s, pid_t tid, uint64_t ns);
int dp_samples_by_id(const void *x, const void *y); /* compares events */

#endif
