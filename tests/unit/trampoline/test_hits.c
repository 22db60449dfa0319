/* SPDX-License-Identifier: MIT */
/* The number of a hit: each hit counts once however often the number is used, before the condition, and leaves no trace. */
#include "test_stub_world.h"

#include <pthread.h>

enum { HITS = 60, THREADS = 8, EACH = 300000 };

static struct probe probe;
static struct dp_field fields[3];
static struct dp_expr nodes[5];

/* hits % 3 == 0, and the field `hits`; `stack`: together with a field that needs a call. */
static void begin(bool stack)
{
	world_create(false);
	world.agent->live = DP_LIVE;
	probe_init(&probe, NULL, NULL);
	nodes[0] = (struct dp_expr){.kind = DP_EXPR_FACT, .value = DP_FACT_HITS};
	nodes[1] = (struct dp_expr){.kind = DP_EXPR_CONST, .value = 3};
	nodes[2] = (struct dp_expr){.kind = DP_EXPR_BINARY, .op = DP_OP_UMOD, .a = &nodes[0], .b = &nodes[1]};
	nodes[3] = (struct dp_expr){.kind = DP_EXPR_CONST};
	nodes[4] = (struct dp_expr){.kind = DP_EXPR_BINARY, .op = DP_OP_EQ, .a = &nodes[2], .b = &nodes[3]};
	fields[0] = (struct dp_field){.name = (char *)"hits", .type = DP_TYPE_UINT, .size = 8, .source = DP_SRC_EXPR};
	fields[1] = (struct dp_field){.name = (char *)"stack", .type = DP_TYPE_BACKTRACE, .size = 2, .source = DP_SRC_UNWIND};
	fields[0].expr = &nodes[0];
	probe.fields = (struct dp_fields){fields, stack ? 2 : 1};
	probe.req.when = &nodes[4];
	probe.req.hits = (uint64_t)&world.lost.hits;
	probe_place(&probe, 0, NULL);
}

static void hit(void)
{
	static uint8_t before[MACHINE_STACK];
	struct machine in, out;
	machine_randomize(&in, world.stack);
	machine_fill(world.stack);
	memcpy(before, world.stack, sizeof(before));
	machine_run(&in, &out, probe.entry);
	world_check_state(&in, &out, before, DP_STUB_STACK_CALLS);
}

/* The n-th number in the ring, 0 at its end. */
static uint64_t number(size_t n)
{
	uint64_t pos = 0, v = 0;
	for (size_t i = 0; pos < world.slot.head; i++) {
		const struct dp_record *r = (const struct dp_record *)(world.ring + pos);
		if (i == n) {
			memcpy(&v, r->payload, sizeof(v));
			return v;
		}
		pos += r->size;
	}
	return v;
}

static void check(bool stack)
{
	begin(stack);
	for (unsigned i = 0; i < HITS; i++)
		hit();
	cr_expect_eq(world.lost.hits, HITS);
	for (size_t i = 0; i < HITS / 3; i++)
		cr_expect_eq(number(i), 3 * (i + 1));
	cr_expect_eq(number(HITS / 3), 0, "more hits than every third");
	world_destroy();
}

Test(hits, are_counted_before_the_condition_and_once)
{
	check(false);
}

Test(hits, are_known_to_fields_behind_a_call)
{
	check(true);
}

/* The word is shared with the parent, so it counts only the parent's hits. */
Test(hits, are_not_counted_in_a_fork_child)
{
	begin(false);
	world.lost.hits = 5;
	world.agent->live = 0;
	for (unsigned i = 0; i < HITS; i++)
		hit();
	cr_expect_eq(world.lost.hits, 5);
	world_destroy();
}

/* Followed, it counts from its first hit on, before it has joined. */
Test(hits, are_counted_in_a_fork_child_that_is_followed)
{
	begin(false);
	world.rt.follows = true;
	world.agent->live = 0;
	nodes[3].value = 7; /* hits % 3 == 7: no hit is recorded */
	probe_place(&probe, 0, NULL);
	for (unsigned i = 0; i < HITS; i++)
		hit();
	cr_expect_eq(world.lost.hits, HITS);
	world_destroy();
}

/* Without a counter word, `hits` cannot be compiled. */
Test(hits, without_a_counter_do_not_compile)
{
	struct dp_stub stub;
	struct dp_buf out;
	begin(false);
	probe.req.hits = 0;
	dp_buf_init(&out);
	struct dp_error *err = dp_stub_emit(&out, (uint64_t)world.code, &world.rt, &probe.req, &stub);
	cr_assert(err);
	dp_error_destroy(err);
	dp_buf_fini(&out);
	world_destroy();
}

static pthread_barrier_t together;

static void *many(void *data)
{
	pthread_barrier_wait(&together);
	for (unsigned i = 0; i < EACH; i++)
		__asm__ volatile("call *%0" : : "r"(data) : "memory", "cc");
	return NULL;
}

/* The condition (hits % 3 == 7) is never true: no hit is recorded, and all threads count at once. */
Test(hits, of_many_threads_are_all_counted)
{
	pthread_t thread[THREADS];
	begin(false);
	nodes[3].value = 7;
	probe_place(&probe, 0, "\xc3");
	pthread_barrier_init(&together, NULL, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		cr_assert(!pthread_create(&thread[i], NULL, many, (void *)(uintptr_t)probe.entry));
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	cr_expect_eq(world.lost.hits, THREADS * EACH);
	world_destroy();
}
