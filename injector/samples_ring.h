/* SPDX-License-Identifier: MIT */
/* The rings that the kernel writes samples into, one for each processor. */
#ifndef DP_INJECTOR_SAMPLES_RING_H
#define DP_INJECTOR_SAMPLES_RING_H

#include <stddef.h>
#include <stdint.h>

struct dp_perf_ring {
	void *base; /* the control page, then `size` bytes; NULL: none */
	size_t size;
	int fd; /* of the event that it belongs to; not owned */
};

struct dp_perf_record { /* as perf_event_open(2) lays it out: the header, and what follows it */
	uint32_t type;
	uint16_t misc;
	size_t n;
	const uint8_t *bytes;
};

/* Hands out all that is there, and gives the room back. `scratch`: 64 KiB for records that go around the end. */
void dp_perf_ring_drain(struct dp_perf_ring *ring, uint8_t *scratch, void (*each)(const struct dp_perf_record *r, void *data),
                        void *data);

#endif
