/* SPDX-License-Identifier: MIT */
/* The rings that the kernel writes samples into, one for each processor. */
#ifndef DP_INJECTOR_SAMPLES_RING_H
#define DP_INJECTOR_SAMPLES_RING_H

#include <stddef.h>
#include <stdint.h>

struct dp_perf_ring {
	void *base; /* the control page, then `size` bytes; NULL: none */
	size_t size;
	int fd;                   /* of the event that it belongs to; not owned */
	uint64_t marked, scanned; /* positions; see below */
};

struct dp_perf_record { /* as perf_event_open(2) lays it out: the header, and what follows it */
	uint32_t type;
	uint16_t misc;
	size_t n;
	const uint8_t *bytes;
};

/*
 * What happened to the process is to be known before the samples behind it, whichever ring it is in. So a round marks the end of
 * every ring; then reads all records but the samples of every ring, newer ones too; then the samples in front of the marks.
 * `scratch`: 64 KiB for records that go around the end.
 */
typedef void dp_perf_each(const struct dp_perf_record *r, void *data);
void dp_perf_ring_mark(struct dp_perf_ring *ring);
void dp_perf_ring_news(struct dp_perf_ring *ring, uint8_t *scratch, dp_perf_each *each, void *data);
/* Gives the room back. */
void dp_perf_ring_samples(struct dp_perf_ring *ring, uint8_t *scratch, dp_perf_each *each, void *data);

#endif
