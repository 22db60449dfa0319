/* SPDX-License-Identifier: MIT */
/* A core file may have anything where the rings of resident probes were: it is refused, or what makes sense is read. */
#include "agent/unwind/apart.h"
#include "base/boot_id.h"
#include "injector/resident/dumped.h"
#include "injector/ring/clock.h"
#include "injector/target/target.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define AT       UINT64_C(0x10000000)
#define LOST     UINT64_C(0x1000)
#define SLOTS    UINT64_C(0x4000)
#define MANIFEST (UINT64_C(2) * DP_PAGE * 4)
#define RINGS    (2 * MANIFEST)
#define RING     UINT64_C(16384)
#define NSLOTS   4u
#define SIZE     (RINGS + NSLOTS * RING)
#define MAPS     "10000000-10100000 rw-s 00000000 00:01 5 /memfd:dynprobe (deleted)\n"
#define FIRST_NS UINT64_C(5000000000)

static uint8_t data[SIZE];
static struct dp_control *const control = (void *)data;
static struct dp_slot *const slot = (void *)(data + SLOTS);
static uint64_t held; /* bytes of the region that the core file has */

static size_t read_data(uint64_t addr, void *buf, size_t n, void *unused)
{
	(void)unused;
	if (addr < AT || addr - AT >= held)
		return 0;
	n = n < held - (addr - AT) ? n : held - (addr - AT);
	memcpy(buf, data + (addr - AT), n);
	return n;
}

/* Of another boot, whose counter counts nanoseconds. */
static void begin(void)
{
	held = SIZE;
	memset(data, 0, SIZE);
	*control = (struct dp_control){
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
	        .target_pid = 4242,
	        .kept = 1,
	        .clocks = {.tsc = 1000, .ns = FIRST_NS, .tick = UINT64_C(1) << 32, .offset = 77, .boot = "another"},
	};
	strcpy((char *)data + MANIFEST, "{}");
}

static void add_record(unsigned ring, uint16_t probe, uint64_t tsc)
{
	struct dp_slot *s = &slot[ring];
	struct dp_record *r = (void *)(data + RINGS + ring * RING + s->head);
	*r = (struct dp_record){.size = sizeof(*r) + 8, .probe = probe, .tsc = tsc};
	memcpy(r->payload, &tsc, sizeof(tsc));
	s->head += r->size;
	s->state = DP_SLOT_USED;
	s->room = RING;
	s->tail_tid = 100 + ring;
}

static struct dp_image *image(void)
{
	struct dp_image *ret = NULL;
	cr_assert_null(dp_image_create(MAPS, "", 0, &ret));
	return ret;
}

static struct dp_error *find(struct dp_dumps *ret)
{
	struct dp_image *i = image();
	const struct dp_dumped_memory memory = {read_data, NULL};
	struct dp_error *err = dp_dumps_find(i, &memory, ret);
	dp_image_destroy(i);
	return err;
}

struct seen {
	unsigned n;
	uint64_t ns[64], tsc[64];
	pid_t tid[64];
};

static void see(const struct dp_hit *hit, void *data_)
{
	struct seen *s = data_;
	cr_assert_lt(hit->probe, 2);
	if (s->n < 64) {
		s->ns[s->n] = hit->ns;
		s->tsc[s->n] = hit->tsc;
		s->tid[s->n] = hit->tid;
	}
	s->n++;
}

static void read_all(struct seen *s)
{
	struct dp_dumps dumps;
	*s = (struct seen){0};
	cr_assert_null(find(&dumps));
	cr_assert_eq(dumps.n, 1);
	cr_assert_null(dp_dumped_drain(dumps.group[0], see, s));
	dp_dumps_fini(&dumps);
}

Test(dumped, records_of_all_rings_come_by_time_and_by_the_clocks_of_their_machine, .init = begin)
{
	struct dp_dumps dumps;
	struct seen s;
	int64_t offset = 0;
	for (unsigned i = 0; i < 20; i++)
		add_record(i % 3, i % 2, 1000 + 10 * i);
	read_all(&s);
	cr_assert_eq(s.n, 20);
	for (unsigned i = 0; i < 20; i++) {
		cr_expect_eq(s.ns[i], FIRST_NS + 10 * i);
		cr_expect_eq(s.tid[i], (pid_t)(100 + i % 3));
	}
	cr_assert_null(find(&dumps));
	cr_expect(dp_dumped_other_boot(dumps.group[0], &offset));
	cr_expect_eq(offset, 77);
	cr_expect_eq(dp_dumped_pid(dumps.group[0]), 4242);
	cr_expect_str_eq(dp_dumped_manifest(dumps.group[0]), "{}");
	dp_dumps_fini(&dumps);
}

Test(dumped, in_this_boot_no_record_is_newer_than_now, .init = begin)
{
	struct dp_dumps dumps;
	struct seen s = {0};
	struct dp_loss loss;
	const struct dp_clock_pair now = dp_clock_read();
	control->clocks.tsc = now.tsc - 1000000;
	control->clocks.ns = now.ns - 1000000;
	dp_boot_id(control->clocks.boot);
	add_record(0, 1, now.tsc - 500);
	add_record(0, 1, now.tsc + (UINT64_C(1) << 40));
	cr_assert_null(find(&dumps));
	int64_t offset;
	cr_expect_not(dp_dumped_other_boot(dumps.group[0], &offset));
	cr_assert_null(dp_dumped_drain(dumps.group[0], see, &s));
	cr_expect_eq(s.n, 1);
	dp_dumped_loss(dumps.group[0], 0, &loss);
	cr_expect_eq(loss.damaged, 1);
	dp_dumps_fini(&dumps);
}

static uint8_t data_of_another[SIZE];

static size_t read_both(uint64_t addr, void *buf, size_t n, void *unused)
{
	if (addr < AT + SIZE)
		return read_data(addr, buf, n, unused);
	memcpy(buf, data_of_another + (addr - 2 * AT), n);
	return n;
}

/* Readings of the clocks differ by some ns more than the records of two attaches. */
Test(dumped, all_attaches_have_the_clocks_of_the_first, .init = begin)
{
	struct dp_image *both = NULL;
	struct dp_dumps dumps;
	struct seen s = {0};
	add_record(0, 1, 1010);
	memcpy(data_of_another, data, SIZE);
	((struct dp_control *)(void *)data_of_another)->private_addr = 2 * AT + SIZE;
	((struct dp_control *)(void *)data_of_another)->clocks.ns += 500;
	cr_assert_null(dp_image_create(MAPS "20000000-20100000 rw-s 00000000 00:01 6 /memfd:dynprobe (deleted)\n", "", 0, &both));
	const struct dp_dumped_memory memory = {read_both, NULL};
	cr_assert_null(dp_dumps_find(both, &memory, &dumps));
	cr_assert_eq(dumps.n, 2);
	for (size_t i = 0; i < 2; i++)
		cr_assert_null(dp_dumped_drain(dumps.group[i], see, &s));
	cr_assert_eq(s.n, 2);
	cr_expect_eq(s.ns[0], s.ns[1]);
	dp_dumps_fini(&dumps);
	dp_image_destroy(both);
}

/* The hit during which the program crashed. */
Test(dumped, a_record_that_was_never_completed_is_counted, .init = begin)
{
	struct dp_dumps dumps;
	struct seen s = {0};
	struct dp_loss loss;
	add_record(0, 1, 2000);
	slot[0].head += 40;
	((struct dp_lost *)(void *)(data + LOST))[0].overwritten = 9;
	cr_assert_null(find(&dumps));
	cr_assert_null(dp_dumped_drain(dumps.group[0], see, &s));
	cr_expect_eq(s.n, 1);
	dp_dumped_loss(dumps.group[0], 0, &loss);
	cr_expect_eq(loss.abandoned, 1);
	cr_expect_eq(loss.overwritten, 9);
	dp_dumps_fini(&dumps);
}

Test(dumped, rings_that_the_core_file_does_not_have_and_those_of_a_run_are_not_read, .init = begin)
{
	struct dp_dumps dumps;
	held = 0;
	cr_assert_null(find(&dumps));
	cr_expect_eq(dumps.n, 0);
	cr_expect_eq(dumps.mappings, 1);
	held = SIZE;
	control->kept = 0;
	cr_assert_null(find(&dumps));
	cr_expect_eq(dumps.n, 0);
	cr_expect_eq(dumps.mappings, 1);
	control->magic = 1;
	cr_assert_null(find(&dumps));
	cr_expect_eq(dumps.n, 0);
	cr_expect_eq(dumps.mappings, 1);
}

static void expect_bad(const char *what)
{
	struct dp_dumps dumps;
	struct dp_error *err = find(&dumps);
	cr_assert(err, "%s", what);
	cr_expect_eq(err->tag, DP_TAG_BAD_CORE, "%s: %s", what, err->message);
	cr_expect_eq(dumps.n, 0);
	dp_error_destroy(err);
	begin();
}

Test(dumped, what_cannot_be_is_refused_DP_BAD_CORE, .init = begin)
{
	control->abi++;
	expect_bad("another version");
	control->private_addr = AT - DP_PAGE;
	expect_bad("a negative size");
	control->private_addr = AT + (UINT64_C(1) << 46);
	expect_bad("a huge size");
	control->nslots = NSLOTS + 1;
	expect_bad("a ring beyond the end");
	control->manifest_size = 3;
	expect_bad("an odd size of the manifest");
	memset(data + MANIFEST, 'x', DP_PAGE);
	expect_bad("a manifest without an end");
	held = 300;
	expect_bad("a truncated control page");
}

Test(dumped, clocks_that_cannot_be_are_not_used, .init = begin)
{
	struct seen s;
	add_record(0, 1, 1000);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t *const word[3] = {&control->clocks.tick, &control->clocks.tsc, &control->clocks.ns};
		const uint64_t was = *word[i];
		*word[i] = UINT64_MAX;
		read_all(&s);
		cr_expect_eq(s.n, 1);
		*word[i] = was;
	}
}

Test(dumped, a_truncated_region_has_the_records_before_its_end, .init = begin)
{
	struct seen s;
	for (unsigned i = 0; i < 100; i++)
		add_record(i % 2, 1, 1000 + i);
	held = RINGS + 10 * 24;
	read_all(&s);
	cr_expect_eq(s.n, 10);
}

/* Without a crash or a loop, whatever the bytes are. ASan and UBSan watch. */
Test(dumped, bytes_may_be_anything, .init = begin)
{
	unsigned read = 0;
	for (unsigned round = 0; round < 4000; round++) {
		struct dp_dumps dumps;
		struct seen s = {0};
		begin();
		for (unsigned i = 0; i < 40; i++)
			add_record(i % NSLOTS, i % 2, 1000 + i);
		srand(round);
		for (int n = rand() % 8; n >= 0; n--) {
			const uint64_t part[] = {0, SLOTS, RINGS, LOST};
			const uint64_t size[] = {sizeof(*control), NSLOTS * sizeof(*slot), 2000, 64};
			const int k = rand() % 4;
			data[part[k] + (uint64_t)rand() % size[k]] = (uint8_t)rand();
		}
		struct dp_error *err = find(&dumps);
		if (!err && dumps.n)
			err = dp_dumped_drain(dumps.group[0], see, &s);
		read += s.n > 0;
		dp_error_destroy(err);
		dp_dumps_fini(&dumps);
	}
	cr_expect_gt(read, 1000);
}
