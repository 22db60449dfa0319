/* SPDX-License-Identifier: MIT */
/*
 * Rings in a core file: refused, or read. The input is a list of changes of four bytes to a valid region: part (control page,
 * slots, rings, counters), place there (two bytes), value. A first byte that is odd: the file has the region up to that place
 * only.
 */
#include "injector/resident/dumped.h"
#include "injector/target/target.h"

#include <stdlib.h>
#include <string.h>

#define AT       UINT64_C(0x10000000)
#define LOST     UINT64_C(0x1000)
#define SLOTS    UINT64_C(0x4000)
#define MANIFEST (UINT64_C(8) * DP_PAGE)
#define RINGS    (2 * MANIFEST)
#define RING     UINT64_C(16384)
#define NSLOTS   4u
#define SIZE     (RINGS + NSLOTS * RING)
#define MAPS     "10000000-10100000 rw-s 00000000 00:01 5 /memfd:dynprobe (deleted)\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t region[SIZE];
static uint64_t held;

static size_t read_region(uint64_t addr, void *buf, size_t n, void *unused)
{
	(void)unused;
	if (addr < AT || addr - AT >= held)
		return 0;
	n = n < held - (addr - AT) ? n : held - (addr - AT);
	memcpy(buf, region + (addr - AT), n);
	return n;
}

static void begin(void)
{
	struct dp_slot *slot = (void *)(region + SLOTS);
	held = SIZE;
	memset(region, 0, SIZE);
	*(struct dp_control *)(void *)region = (struct dp_control){
	        .magic = DP_MAGIC,
	        .abi = DP_ABI_VERSION,
	        .nprobes = 2,
	        .nslots = NSLOTS,
	        .ring_size = RING,
	        .lost_offset = LOST,
	        .sites_offset = 0x3000,
	        .gates_offset = 0x3800,
	        .slots_offset = SLOTS,
	        .manifest_offset = MANIFEST,
	        .manifest_size = DP_PAGE,
	        .rings_offset = RINGS,
	        .private_addr = AT + SIZE,
	        .kept = 1,
	        .clocks = {.tsc = 1000, .ns = 1000, .tick = UINT64_C(1) << 32, .boot = "another"},
	};
	for (unsigned i = 0; i < 40; i++) {
		struct dp_slot *s = &slot[i % NSLOTS];
		struct dp_record *r = (void *)(region + RINGS + i % NSLOTS * RING + s->head);
		*r = (struct dp_record){.size = sizeof(*r) + 8, .probe = (uint16_t)(i % 2), .tsc = 1000 + i};
		s->head += r->size;
		s->state = DP_SLOT_USED;
		s->room = RING;
		s->tail_tid = 100;
	}
}

static void change(const uint8_t *data, size_t size)
{
	static const uint64_t part[] = {0, SLOTS, RINGS, LOST};
	for (; size >= 4; data += 4, size -= 4) {
		const uint64_t at = part[data[0] >> 1 & 3] + (data[1] | (uint64_t)data[2] << 8);
		if (data[0] & 1)
			held = at < SIZE ? at : SIZE;
		else if (at < SIZE)
			region[at] = data[3];
	}
}

static void see(const struct dp_hit *hit, void *data)
{
	uint64_t *sum = data;
	if (hit->probe > 1)
		abort();
	for (size_t i = 0; i < hit->len; i++)
		*sum += hit->payload[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct dp_image *image;
	struct dp_dumps dumps;
	struct dp_loss loss;
	uint64_t sum = 0;
	if (!image && dp_image_create(MAPS, "", 0, &image))
		abort();
	begin();
	change(data, size);
	const struct dp_dumped_memory memory = {read_region, NULL};
	struct dp_error *err = dp_dumps_find(image, &memory, &dumps);
	if (!err && dumps.n) {
		sum += strlen(dp_dumped_manifest(dumps.group[0]));
		err = dp_dumped_drain(dumps.group[0], see, &sum);
		dp_dumped_loss(dumps.group[0], 0, &loss);
	}
	dp_error_destroy(err);
	dp_dumps_fini(&dumps);
	return sum == UINT64_MAX;
}
