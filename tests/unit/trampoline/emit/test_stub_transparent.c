/* SPDX-License-Identifier: MIT */
/* A stub preserves registers, flags, vectors and stack, stays within its stack bound, and records the right values. */
#include "test_stub_world.h"

#include <criterion/criterion.h>

struct expected {
	const struct machine *m;
	const struct dp_request *req;
	size_t seen;
};

static const char memory_text[] = "some text";
static const uint64_t memory_word = UINT64_C(0xfedcba9876543210);

static uint64_t expected_reg(const struct expected *x, const struct dp_field *f)
{
	uint64_t v = x->m->gpr[f->reg] >> f->shift;
	return f->size == 8 ? v : v & ((UINT64_C(1) << 8 * f->size) - 1);
}

static void check_value(const struct dp_field *f, const struct dp_field_value *v, void *data)
{
	struct expected *x = data;
	x->seen++;
	if (f->source == DP_SRC_REG)
		cr_expect_eq(v->u, expected_reg(x, f), "%s", f->name);
	else if (f->source == DP_SRC_RIP)
		cr_expect_eq(v->u, x->req->site);
	else if (f->source == DP_SRC_RFLAGS)
		cr_expect_eq(v->u, x->m->rflags, "%lx not %lx", v->u, x->m->rflags);
	else if (f->source == DP_SRC_XMM)
		cr_expect(v->n == 16 && !memcmp(v->bytes, x->m->xmm[f->reg], 16), "%s", f->name);
	else if (f->addr.v < 4096 && f->source != DP_SRC_UNWIND)
		cr_expect(v->unreadable, "%s", f->name);
	else if (f->source == DP_SRC_MEMORY)
		cr_expect_eq(v->u, memory_word);
	else if (f->source == DP_SRC_STRING)
		cr_expect_str_eq((const char *)v->bytes, memory_text);
	else
		cr_expect(!memcmp(v->bytes, &x->req->site, 8) && !memcmp(v->bytes + 8, &x->m->gpr[5], 8));
}

static void check_record(const struct machine *m, const struct probe *p)
{
	struct expected x = {.m = m, .req = &p->req};
	struct dp_record *rec = (struct dp_record *)world.ring;
	cr_assert_eq(rec->probe, WORLD_PROBE);
	cr_assert_eq(rec->flags, 0);
	cr_assert(rec->size % 8 == 0 && rec->size <= world.slot.head, "size %u", rec->size);
	cr_assert_neq(rec->tsc, 0);
	cr_assert(dp_fields_decode(&p->fields, rec->payload, rec->size - sizeof(*rec), check_value, &x));
	cr_expect_eq(x.seen, p->fields.n);
}

/* One hit from a random state. */
static void hit(struct probe *p)
{
	static uint8_t before[MACHINE_STACK];
	struct machine in, out;
	machine_randomize(&in, world.stack);
	machine_fill(world.stack);
	memcpy(before, world.stack, sizeof(before));
	machine_run(&in, &out, p->entry);
	world_check_state(&in, &out, before, world.finished ? DP_STUB_STACK_CALLS : DP_STUB_STACK);
	check_record(&in, p);
}

enum way { FAST, SLOW, OTHER_THREAD, TID };

static void run(const char *const *contexts, const char *when, enum way way, bool near)
{
	struct probe p;
	world_create(near);
	world.rt.identity = way == TID ? DP_ID_TID : DP_ID_SELF;
	probe_init(&p, contexts, when);
	probe_place(&p, 16 * (machine_random() % 64), NULL);
	for (unsigned i = 0; i < 300; i++) {
		world_clear();
		if (way == SLOW)
			world_entry()->key = 0;
		if (way == OTHER_THREAD)
			world.slot.tid++;
		hit(&p);
		cr_expect_eq(world.acquired, way == FAST ? 0 : 1);
	}
	cr_expect(!world_bad_align && !world.misaligned);
	probe_fini(&p);
	world_destroy();
}

static const char *const none[] = {NULL};
static const char *const one[] = {"reg:rdi", NULL};
static const char *const parts[] = {"reg:rsp", "reg:eax", "reg:ah",     "reg:bh",  "reg:cl",  "reg:dx",
                                    "reg:sil", "reg:dh",  "reg:spl",    "reg:bpl", "reg:r9b", "reg:r12d",
                                    "reg:esp", "reg:rip", "reg:rflags", "reg:sp",  "reg:dil", NULL};
static const char *const vectors[] = {"reg:xmm0", "reg:xmm7", "reg:xmm8", "reg:al", "reg:xmm15", NULL};
static const char *const everything[] = {"regs", NULL};

Test(stub_transparent, no_field_fast)
{
	run(none, NULL, FAST, false);
}

Test(stub_transparent, one_field_fast)
{
	run(one, NULL, FAST, false);
}

Test(stub_transparent, one_field_slow_far)
{
	run(one, NULL, SLOW, false);
}

Test(stub_transparent, one_field_slow_near)
{
	run(one, NULL, SLOW, true);
}

Test(stub_transparent, slot_of_another_thread)
{
	run(one, NULL, OTHER_THREAD, false);
}

Test(stub_transparent, identity_by_tid)
{
	run(one, NULL, TID, false);
	run(everything, "rdi != 3 || rsp == 5", TID, false);
}

Test(stub_transparent, parts_of_registers)
{
	run(parts, NULL, FAST, false);
}

Test(stub_transparent, vectors)
{
	run(vectors, NULL, FAST, false);
}

Test(stub_transparent, all_registers)
{
	run(everything, NULL, FAST, false);
	run(everything, NULL, SLOW, false);
}

Test(stub_transparent, light_condition_true)
{
	run(everything, "rdi != 3 && eax != 77", FAST, false);
	run(everything, "rax != 3 || rbx == 5", SLOW, false);
}

Test(stub_transparent, full_condition_true)
{
	run(everything, "(rflags & 2) && rsp * 3 + rax != rcx ^ 5", FAST, false);
	run(everything, "(rflags & 2) && rsp * 3 + rax != rcx ^ 5", SLOW, true);
}

/* ---- fields that the agent fetches ---- */

static char word_context[64], text_context[64];

static void make_contexts(void)
{
	snprintf(word_context, sizeof(word_context), "uint64:word:0x%lx", (unsigned long)&memory_word);
	snprintf(text_context, sizeof(text_context), "string[64]:text:0x%lx", (unsigned long)memory_text);
}

static const char *const memory[] = {"reg:al", word_context, "uint64:bad:16", "reg:rbx", "reg:rcx", NULL};
static const char *const strings[] = {text_context, "reg:rdi",    "string:bad:8", "reg:bh",   "reg:r11",
                                      word_context, "reg:rflags", "reg:rsp",      "reg:xmm3", NULL};
static const char *const unwound[] = {"backtrace:16", "regs", NULL};
static const char *const mixed[] = {"regs", "backtrace:2", text_context, "uint64:bad:16", "reg:xmm0", NULL};

Test(stub_transparent, memory_reads, .init = make_contexts)
{
	run(memory, NULL, FAST, false);
	run(memory, NULL, SLOW, true);
}

Test(stub_transparent, fields_behind_strings, .init = make_contexts)
{
	run(strings, NULL, FAST, false);
	run(strings, "rflags != 0", FAST, false);
}

Test(stub_transparent, backtrace, .init = make_contexts)
{
	run(unwound, NULL, FAST, true);
	run(mixed, NULL, TID, false);
	run(mixed, "rbp != 0", SLOW, false);
}

Test(stub_transparent, unwinder_sees_every_register)
{
	struct probe p;
	static uint8_t before[MACHINE_STACK];
	struct machine in, out;
	world_create(false);
	probe_init(&p, unwound, NULL);
	probe_place(&p, 0, NULL);
	machine_randomize(&in, world.stack);
	machine_fill(world.stack);
	memcpy(before, world.stack, sizeof(before));
	machine_run(&in, &out, p.entry);
	world_check_state(&in, &out, before, DP_STUB_STACK_CALLS);
	cr_expect_arr_eq(world.seen.gpr, in.gpr, sizeof(in.gpr));
	cr_expect_eq(world.seen.rip, p.req.site);
	cr_expect_eq(world.seen.rflags, in.rflags);
	probe_fini(&p);
	world_destroy();
}

/* ---- no record ---- */

static void run_unrecorded(const char *const *contexts, const char *when, uint64_t lost)
{
	struct probe p;
	static uint8_t before[MACHINE_STACK];
	struct machine in, out;
	world_create(false);
	probe_init(&p, contexts, when);
	probe_place(&p, 0, NULL);
	for (unsigned i = 0; i < 200; i++) {
		world_clear();
		world.full = true;
		world.slot.limit = lost ? 8 : WORLD_RING;
		machine_randomize(&in, world.stack);
		machine_fill(world.stack);
		memcpy(before, world.stack, sizeof(before));
		machine_run(&in, &out, p.entry);
		world_check_state(&in, &out, before, DP_STUB_STACK);
		cr_expect_eq(world.lost.full, lost);
		cr_expect_eq(*(uint64_t *)world.ring, 0);
		cr_expect_eq(world.slot.head, 0);
	}
	probe_fini(&p);
	world_destroy();
}

Test(stub_transparent, ring_full_is_counted_and_harmless, .init = make_contexts)
{
	run_unrecorded(one, NULL, 1);
	run_unrecorded(everything, "rdi != 3", 1);
	run_unrecorded(everything, "rsp != 3", 1);
	run_unrecorded(mixed, NULL, 1);
}

Test(stub_transparent, false_condition_records_nothing)
{
	run_unrecorded(everything, "rdi == 3", 0);
	run_unrecorded(everything, "rax == 3 || al > 255", 0);
	run_unrecorded(everything, "rsp == 3", 0);
	run_unrecorded(everything, "rflags * 2 + (rbx << 3) == rdx >> 60 && 0", 0);
}
