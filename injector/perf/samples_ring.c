/* SPDX-License-Identifier: MIT */
#include "injector/perf/samples_ring.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <string.h>

#define NEARLY 1024u

struct stretch {
	uint64_t from, to;
	bool samples; /* samples, or all other records */
};

static uint64_t end_of(const struct dp_perf_ring *ring)
{
	const struct perf_event_mmap_page *page = ring->base;
	return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

static void read_stretch(const struct dp_perf_ring *ring, struct stretch s, uint8_t *scratch, dp_perf_each *each, void *data)
{
	const struct perf_event_mmap_page *page = ring->base;
	const uint8_t *bytes = (const uint8_t *)ring->base + page->data_offset;
	while (s.to - s.from >= sizeof(struct perf_event_header)) {
		struct perf_event_header header; /* records are multiples of 8 bytes: a header never wraps */
		const size_t at = s.from % ring->size;
		memcpy(&header, bytes + at, sizeof(header));
		if (header.size < sizeof(header) || header.size > s.to - s.from)
			break;
		s.from += header.size;
		if ((header.type == PERF_RECORD_SAMPLE) != s.samples)
			continue;
		const size_t first = ring->size - at < header.size ? ring->size - at : header.size;
		memcpy(scratch, bytes + at, first);
		memcpy(scratch + first, bytes, header.size - first);
		const struct dp_perf_record record = {
		        .type = header.type,
		        .misc = header.misc,
		        .n = header.size - sizeof(header),
		        .bytes = scratch + sizeof(header),
		};
		each(&record, data);
	}
}

void dp_perf_ring_mark(struct dp_perf_ring *ring)
{
	if (ring->base)
		ring->marked = end_of(ring);
}

void dp_perf_ring_news(struct dp_perf_ring *ring, uint8_t *scratch, dp_perf_each *each, void *data)
{
	if (!ring->base)
		return;
	const struct stretch fresh = {ring->scanned, end_of(ring), false};
	read_stretch(ring, fresh, scratch, each, data);
	ring->scanned = fresh.to;
}

bool dp_perf_ring_is_full(const struct dp_perf_ring *ring)
{
	const struct perf_event_mmap_page *page = ring->base;
	return page && end_of(ring) - page->data_tail > ring->size - NEARLY;
}

void dp_perf_ring_samples(struct dp_perf_ring *ring, uint8_t *scratch, dp_perf_each *each, void *data)
{
	struct perf_event_mmap_page *page = ring->base;
	if (!page)
		return;
	read_stretch(ring, (struct stretch){page->data_tail, ring->marked, true}, scratch, each, data);
	__atomic_store_n(&page->data_tail, ring->marked, __ATOMIC_RELEASE);
}
