/* SPDX-License-Identifier: MIT */
#include "injector/samples_ring.h"

#include <linux/perf_event.h>
#include <string.h>

void dp_perf_ring_drain(struct dp_perf_ring *ring, uint8_t *scratch, void (*each)(const struct dp_perf_record *r, void *data),
                        void *data)
{
	struct perf_event_mmap_page *page = ring->base;
	if (!page)
		return;
	const uint8_t *bytes = (const uint8_t *)ring->base + page->data_offset;
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = page->data_tail;
	while (head - tail >= sizeof(struct perf_event_header)) {
		struct perf_event_header header; /* records are multiples of 8 bytes: a header never goes around the end */
		const size_t at = tail % ring->size;
		memcpy(&header, bytes + at, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			break;
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
		tail += header.size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}
