/* SPDX-License-Identifier: MIT */
/* The agent as in a target: the blob's bytes, mapped read-execute, called through its entry points. */
#include "agent/unwind/apart.h"
#include "agent/unwind/unwind.h"
#include "tests/unit/agent/blob.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(blob, .init = blob_setup);

Test(blob, every_entry_point_is_there)
{
	const char *names[] = {DP_SYM_ACQUIRE, DP_SYM_READ,          DP_SYM_STRING, DP_SYM_BACKTRACE,
	                       DP_SYM_STACKED, DP_SYM_STACKED_APART, DP_SYM_FINISH, DP_SYM_ASK};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		cr_expect_lt(symbol(names[i]), text + load->p_filesz);
	cr_expect_eq(load->p_vaddr, 0);
	cr_expect_eq(load->p_memsz, load->p_filesz);
}

/* ---- the thunk: registers in, registers out -------------------------------------------------- */

Test(blob, thunk_returns_record_and_slot_and_keeps_the_rest)
{
	struct dp_debug_ctx *w = world_create(2, 16384, DP_ID_SELF);

	for (uint64_t i = 0; i < 16; i++) {
		struct machine out = acquire(w, i & 1, i * 8 % 64);

		cr_assert_eq(out.gpr[6], (uintptr_t)w->slots);
		cr_assert_eq(out.gpr[1], (uintptr_t)w->rings + 24 + i * 64);
	}
	world_destroy(w);
}

Test(blob, thunk_returns_no_record_when_lost)
{
	struct dp_debug_ctx *w = world_create(1, 16384, DP_ID_TID);

	while (acquire(w, true, 8).gpr[1])
		;
	cr_expect_eq(w->lost[0].full, 1);
	w->agent->live = 0;
	cr_expect_eq(acquire(w, false, 0).gpr[1], 0);
	cr_expect_eq(w->lost[0].forked, 1);
	world_destroy(w);
}

Test(blob, questions_are_answered_and_keep_the_rest)
{
	_Alignas(struct dp_ask) uint8_t room[sizeof(struct dp_ask) + 8] = {0};
	struct dp_ask *q = (struct dp_ask *)room;
	struct dp_agent *agent = calloc(1, sizeof(*agent));
	struct machine in = {0}, out;

	agent->pid = (uint32_t)getpid();
	q->agent = (uintptr_t)agent;
	q->kind = DP_ASK_GLOB;
	memcpy(q->text, "so*g", 5);
	for (uint64_t i = 0; i < 32; i++) {
		for (int r = 0; r < 16; r++)
			in.gpr[r] = 0x0123456789abcdef * (uint64_t)(r + 1);
		in.gpr[0] = i & 2 ? 8 : (uintptr_t) "something";
		in.gpr[2] = (uintptr_t)q;
		in.flags = 0x202u | (i & 1 ? DF : 0);
		call_with(&in, &out, symbol(DP_SYM_ASK), i);
		expect_preserved(&in, &out);
		cr_assert_eq(in.gpr[6], out.gpr[6]);
		cr_assert_eq(out.gpr[1], !(i & 2));
		cr_assert_eq(out.gpr[0], !(i & 2));
		cr_assert_lt(stack_used(), 512);
	}
	free(agent);
}

/* The longest path: table miss, walk, claim, announcement, wrap. */
Test(blob, thunk_uses_less_than_512_bytes_of_stack)
{
	struct dp_debug_ctx *w = world_create(64, 16384, DP_ID_SELF);
	size_t most = 0;

	for (int i = 0; i < 1000; i++) {
		if (i % 8 == 0)
			memset(w->agent->table, 0, sizeof(w->agent->table));
		if (i % 16 == 0)
			*dp_slot_word(&w->slots[0]) = i % 32 ? dp_slot_pack(5, DP_SLOT_USED) : dp_slot_pack(0, DP_SLOT_DEAD);
		if (i % 64 == 0)
			w->slots[0].tail = w->slots[0].head;
		acquire(w, false, 0);
		most = stack_used() > most ? stack_used() : most;
	}
	cr_expect_lt(most, 512, "%zu bytes", most);
	cr_expect_gt(most, 64, "%zu bytes: nothing was measured", most);
	world_destroy(w);
}

/* The same with a full ring that drops its oldest records, and only the slot of an ended thread. */
Test(blob, flight_recorder_stays_inside_the_thunks_promises)
{
	struct dp_debug_ctx *w = world_create(1, 16384, DP_ID_SELF);
	size_t most = 0;

	w->control->overwrite = 1;
	for (uint64_t i = 0; i < 3000; i++) {
		struct machine out;

		if (i % 256 == 255) {
			memset(w->agent->table, 0, sizeof(w->agent->table));
			*dp_slot_word(&w->slots[0]) = dp_slot_pack(DP_TID_MASK, DP_SLOT_USED);
			w->slots[0].key = 1;
		}
		out = acquire(w, i & 1, i * 8 % 64);
		cr_assert_neq(out.gpr[1], 0, "hit %lu", i);
		dp_ring_commit((struct dp_record *)out.gpr[1], 64, (uint16_t)(i % WORLD_PROBES));
		most = stack_used() - i * 8 % 64 > most ? stack_used() - i * 8 % 64 : most;
	}
	cr_expect_gt(w->lost[1].overwritten, 100);
	cr_expect_gt(w->control->slots_freed, 10);
	cr_expect_eq(world_lost(w), 0);
	cr_expect_lt(most, 512, "%zu bytes", most);
	world_destroy(w);
}

Test(blob, records_through_the_blob_are_those_of_the_contract)
{
	struct dp_debug_ctx *w = world_create(2, 16384, DP_ID_SELF);
	void (*finish)(struct dp_capture *) = (void (*)(struct dp_capture *))(uintptr_t)symbol(DP_SYM_FINISH);
	void (*read)(struct dp_capture *, const struct dp_op *) =
	        (void (*)(struct dp_capture *, const struct dp_op *))(uintptr_t)symbol(DP_SYM_READ);
	void (*string)(struct dp_capture *, const struct dp_op *, uint64_t) =
	        (void (*)(struct dp_capture *, const struct dp_op *, uint64_t))(uintptr_t)symbol(DP_SYM_STRING);
	uint64_t value = 0x1122334455667788;
	struct dp_op ops[3] = {{(uintptr_t)&value, 8, 0, 0}, {(uintptr_t) "hello", 32, 1, 0}, {8, 32, 2, 0}};
	struct machine out;
	struct dp_capture c;

	w->desc[0].reserve = 128;
	out = acquire(w, false, 0);
	c = (struct dp_capture){
	        .record = (struct dp_record *)out.gpr[1], .slot = (struct dp_slot *)out.gpr[6], .desc = &w->desc[0]};
	c.cursor = c.record->payload + DP_MASK_BYTES;
	read(&c, &ops[0]);
	string(&c, &ops[1], 0);
	string(&c, &ops[2], 0);
	finish(&c);
	cr_expect_eq(c.record->size, 16 + 8 + 8 + 6 + 1 + 1);
	cr_expect_eq(*(uint64_t *)c.record->payload, 4);
	cr_expect_arr_eq(c.record->payload + 8, &value, 8);
	cr_expect_arr_eq(c.record->payload + 16, "hello\0", 7);
	world_destroy(w);
}

/* ---- the unwinder's own stack -----------------------------------------------------------------------------------------------
 */

static struct dp_capture backtrace_apart(struct dp_debug_ctx *w, struct dp_slot *slot, uint8_t *payload)
{
	return call_helper(DP_SYM_APART, (struct dp_capture){.cursor = payload, .slot = slot, .desc = &w->desc[0]});
}

Test(blob, unwinder_on_its_own_stack_uses_100_bytes_of_the_programs)
{
	struct dp_debug_ctx *w = world_create(1, 16384, DP_ID_SELF);
	static uint8_t room[DP_APART_TOP + 64] __attribute__((aligned(64)));
	struct dp_unwind tables = {.magic = DP_UNWIND_MAGIC, .size = sizeof(tables)};
	uint8_t payload[300];

	w->agent->unwind = (uintptr_t)&tables;
	w->slots[0].cache = (uintptr_t)room;
	memset(room, 0x5a, sizeof(room));
	struct dp_capture c = backtrace_apart(w, &w->slots[0], payload);
	cr_expect_eq(c.cursor, payload + 9);
	cr_expect_eq(payload[0], 1);
	cr_expect_leq(stack_used(), 100, "%zu bytes", stack_used());
	cr_expect_neq(room[DP_APART_TOP - 8], 0x5a, "it did not use its own stack");
	cr_expect_eq(room[DP_APART_TOP], 0x5a, "it wrote above its stack");
	cr_expect_eq(w->slots[0].apart, 0, "the stack is not free again");
	world_destroy(w);
}

Test(blob, unwinder_whose_own_stack_is_taken_records_the_site)
{
	struct dp_debug_ctx *w = world_create(2, 16384, DP_ID_SELF);
	static uint8_t room[DP_APART_TOP] __attribute__((aligned(64)));
	uint8_t payload[300];

	w->slots[0].cache = (uintptr_t)room;
	w->slots[0].apart = 1; /* as for a hit in a signal handler that interrupted it */
	w->slots[1].cache = 0; /* a probe without tables */
	for (int i = 0; i < 2; i++) {
		struct dp_capture c = backtrace_apart(w, &w->slots[i], payload);
		uint64_t pc;

		memcpy(&pc, payload + 1, 8);
		cr_expect_eq(c.cursor, payload + 9);
		cr_expect_eq(payload[0], 1);
		cr_expect_eq(pc, (uintptr_t)call_helper);
		cr_expect_leq(stack_used(), 100, "%zu bytes", stack_used());
	}
	cr_expect_eq(w->slots[0].apart, 1, "it is still the other hit's");
	world_destroy(w);
}

/* ---- under load ------------------------------------------------------------------------------ */

static uint8_t *thunk;
static void (*blob_finish)(struct dp_capture *capture);
static struct dp_debug_ctx *load_world;
static _Thread_local uint64_t *my_recorded;
static uint64_t tried;

static struct dp_reservation through_thunk(const struct dp_probe_desc *desc)
{
	struct dp_reservation r;

	__asm__ volatile("leaq -128(%%rsp), %%rsp\n\tcall *%[thunk]\n\tleaq 128(%%rsp), %%rsp"
	                 : "+a"(desc), "=c"(r.record), "=S"(r.slot)
	                 : [thunk] "r"(thunk)
	                 : "rdx", "memory", "cc");
	return r;
}

static void hit_through_blob(unsigned probe, uint64_t value)
{
	__atomic_fetch_add(&tried, 1, __ATOMIC_RELAXED);
	if (world_hit(load_world, probe, &value, sizeof(value)))
		++*my_recorded;
}

static void on_signal(int signo)
{
	(void)signo;
	if (my_recorded)
		hit_through_blob(1, 0);
}

static void *hit_many(void *arg)
{
	my_recorded = arg;
	for (uint64_t i = 1; i <= 20000; i++) {
		hit_through_blob(0, i);
		if (i % 16 == 0)
			raise(SIGUSR1);
	}
	return NULL;
}

/* Every hit takes the blob's slow path: gettid, table, ring. */
Test(blob, threads_with_signals_lose_nothing_uncounted)
{
	enum { N = 4 };
	pthread_t thread[N];
	uint64_t recorded[N] = {0}, sum = 0, drained = 0;

	thunk = symbol(DP_SYM_ACQUIRE);
	blob_finish = (void (*)(struct dp_capture *))(uintptr_t)symbol(DP_SYM_FINISH);
	load_world = world_create(N + 1, 1 << 20, DP_ID_TID);
	load_world->acquire = through_thunk;
	load_world->finish = blob_finish;
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < N; i++)
		pthread_create(&thread[i], NULL, hit_many, &recorded[i]);
	for (int i = 0; i < N; i++) {
		pthread_join(thread[i], NULL);
		sum += recorded[i];
	}
	for (int i = 0; i <= N; i++)
		drained += world_drain(&load_world->slots[i], NULL, NULL);
	cr_expect_eq(drained, sum);
	cr_expect_eq(sum + world_lost(load_world), tried);
	cr_expect_gt(sum, 10000);
	world_destroy(load_world);
}

/* ---- functions that gcc calls -------------------------------------------------------------------- */

Test(blob, memory_functions_are_those_of_the_language)
{
	void *(*copy)(void *, const void *, size_t) = (void *(*)(void *, const void *, size_t))(uintptr_t)symbol("memcpy");
	void *(*move)(void *, const void *, size_t) = (void *(*)(void *, const void *, size_t))(uintptr_t)symbol("memmove");
	void *(*set)(void *, int, size_t) = (void *(*)(void *, int, size_t))(uintptr_t)symbol("memset");
	uint8_t a[128], b[128];

	for (size_t n = 0; n < 40; n++) {
		for (size_t from = 0; from < 20; from++) {
			for (size_t to = 0; to < 20; to++) {
				for (size_t i = 0; i < sizeof(a); i++)
					a[i] = b[i] = (uint8_t)i;
				cr_assert_eq(move(a + to, a + from, n), a + to);
				memmove(b + to, b + from, n);
				cr_assert_arr_eq(a, b, sizeof(a), "memmove %zu from %zu to %zu", n, from, to);
				copy(a + 64 + to, a + from, n);
				memcpy(b + 64 + to, b + from, n);
				cr_assert_arr_eq(a, b, sizeof(a), "memcpy %zu from %zu to %zu", n, from, to);
			}
			set(a + from, 0x1a5, n);
			memset(b + from, 0x1a5, n);
			cr_assert_arr_eq(a, b, sizeof(a), "memset %zu at %zu", n, from);
		}
	}
}
