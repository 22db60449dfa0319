/* SPDX-License-Identifier: MIT */
/* The rings that the kernel writes samples to, one per processor. */
#ifndef DP_INJECTOR_PERF_SAMPLES_RING_H
#define DP_INJECTOR_PERF_SAMPLES_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_perf_ring {
	void *base; /* the control page, then `size` bytes; NULL: none */
	size_t size;
	int fd;                   /* the event it belongs to; not owned */
	uint64_t marked, scanned; /* positions; see below */
	uint64_t last_ns;         /* of switches: the last record's time */
};

struct dp_perf_record { /* laid out as in perf_event_open(2): the header, then the rest */
	uint32_t type;
	uint16_t misc;
	size_t n;
	const uint8_t *bytes;
};

/*
 * Changes to the process must be known before the samples after them, in whichever ring they are. So a round marks the end of
 * every ring; then reads all records except samples from every ring, newer ones too; then the samples before the marks.
 * `scratch`: 64 KiB for records that wrap around the end.
 */
typedef void dp_perf_each(const struct dp_perf_record *r, void *data);
void dp_perf_ring_mark(struct dp_perf_ring *ring);
void dp_perf_ring_news(struct dp_perf_ring *ring, uint8_t *scratch, dp_perf_each *each, void *data);
/* Has it so little room that records may be missing after the last one? */
bool dp_perf_ring_is_full(const struct dp_perf_ring *ring);
/* Frees the space in the ring. */
void dp_perf_ring_samples(struct dp_perf_ring *ring, uint8_t *scratch, dp_perf_each *each, void *data);

#endif
