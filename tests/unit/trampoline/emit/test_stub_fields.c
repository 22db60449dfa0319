/* SPDX-License-Identifier: MIT */
/*
 * Random tables of fields: registers, expressions, memory and strings at computed addresses, unavailable values. With guarded
 * loads and without, alone and with a backtrace, the record equals that of the interpreter and a plain copy, its mask marks
 * unreadable fields, and the machine state is unchanged.
 */
#include "test_ask_thunk.h"
#include "test_stub_world.h"
#include "trampoline/arch/x86_64/emit/capture.h"

#include <signal.h>
#include <stdio.h>
#include <sys/ucontext.h>

enum { PAGE = 4096, PAGES = 6, FIELDS = 10 };
#define MEMORY ((void *)0x150000000000)

static uint8_t *memory; /* every other page is readable */
static struct probe probe;
static struct dp_field field[FIELDS];
static struct dp_expr nodes[FIELDS][4], counts[FIELDS][3];
static char names[FIELDS][8];
static unsigned faults, nasked, nulls;

static void on_fault(int sig, siginfo_t *info, void *data)
{
	greg_t *rip = &((ucontext_t *)data)->uc_mcontext.gregs[REG_RIP];
	(void)info;
	for (unsigned i = 0; i < probe.stub.nfixups; i++)
		if ((uint64_t)world.code + probe.stub.fixup[i].load == (uint64_t)*rip) {
			*rip = (greg_t)((uint64_t)world.code + probe.stub.fixup[i].to);
			faults++;
			return;
		}
	signal(sig, SIG_DFL);
}

ASK_THUNK(fields_thunk_ask, fields_ask);
struct answer fields_ask(uint64_t operand, const struct dp_ask *ask)
{
	struct answer a = {0, 0};
	nasked++;
	a.known = ask->kind == DP_ASK_LOAD && world_copy(&a.value, operand, ask->size);
	return a;
}

static void setup(void)
{
	static uint8_t signals[65536];
	const stack_t alternate = {.ss_sp = signals, .ss_size = sizeof(signals)};
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigaltstack(&alternate, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	world_create(true);
	memory = mmap(MEMORY, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	cr_assert_neq(memory, MAP_FAILED);
	for (unsigned i = 1; i < PAGES; i += 2)
		mprotect(memory + i * PAGE, PAGE, PROT_NONE);
	world.rt.ask = (uint64_t)&fields_thunk_ask;
}

/* Often near the end of readable memory, sometimes unmapped. */
static uint64_t pick_address(void)
{
	uint64_t r = machine_random(), page = (uint64_t)memory + r % (PAGES / 2) * 2 * PAGE;
	switch (r >> 8 & 7) {
	case 0:
		return r >> 11 & 1 ? 0 : machine_random();
	case 1:
	case 2:
	case 3:
		return page + PAGE - (r >> 16) % 80;
	default:
		return page + (r >> 16) % (PAGE - 128);
	}
}

/* Characters, with a NUL at every distance. */
static void refill(void)
{
	for (unsigned p = 0; p < PAGES; p += 2)
		for (unsigned i = 0; i < PAGE; i++) {
			uint64_t r = machine_random();
			memory[p * PAGE + i] = r % (1 + (r >> 8) % 64) ? (uint8_t)('!' + (r >> 20) % 200) : 0;
		}
}

/* ---- tables ----------------------------------------------------------------------------------------------------------- */

static struct dp_expr *address(unsigned i)
{
	struct dp_expr *n = nodes[i];
	uint64_t r = machine_random();
	n[1] = (struct dp_expr){.kind = DP_EXPR_REG, .reg = r & 15, .size = 8};
	n[2] = (struct dp_expr){.kind = DP_EXPR_CONST, .value = r >> 12 & 1 ? 0 : r >> 4 & 63};
	n[0] = (struct dp_expr){.kind = DP_EXPR_BINARY, .op = DP_OP_ADD, .a = &n[1], .b = &n[2]};
	if (r >> 10 & 3)
		return n;
	n[3] = (struct dp_expr){.kind = DP_EXPR_LOAD, .size = 8, .a = n}; /* rarely a valid pointer */
	return &n[3];
}

static void pick_value(struct dp_field *f, unsigned i)
{
	uint64_t r = machine_random();
	f->source = DP_SRC_EXPR;
	f->type = r & 1 ? DP_TYPE_INT : DP_TYPE_UINT;
	f->size = 1u << (r >> 1 & 3);
	f->expr = &nodes[i][3];
	address(i);
	nodes[i][3] = (struct dp_expr){.kind = DP_EXPR_LOAD, .size = (uint8_t)f->size, .a = nodes[i], .is_signed = r >> 4 & 1};
	if (r >> 5 & 1)
		nodes[i][3] = (struct dp_expr){.kind = DP_EXPR_BINARY, .op = DP_OP_UMOD, .a = nodes[i], .b = &nodes[i][1]};
}

/* Lengths of all sizes; some cannot be read. */
static struct dp_expr *pick_count(unsigned i)
{
	uint64_t r = machine_random();
	struct dp_expr *n = counts[i];
	n[0] = (struct dp_expr){.kind = DP_EXPR_REG, .reg = r & 15, .size = 8};
	n[1] = (struct dp_expr){.kind = DP_EXPR_CONST, .value = r >> 8 & 1 ? r >> 10 & 127 : r};
	n[2] = (struct dp_expr){.kind = DP_EXPR_BINARY, .op = DP_OP_AND, .a = n, .b = &n[1]};
	switch (r >> 4 & 3) {
	case 0:
		n[2] = (struct dp_expr){.kind = DP_EXPR_LOAD, .size = 1, .a = n};
		return &n[2];
	case 1:
		return &n[1];
	default:
		return &n[2];
	}
}

static void pick_memory(struct dp_field *f, unsigned i)
{
	static const uint32_t sizes[] = {1, 3, 4, 7, 8, 12, 16, 20, 31, 32, 48, 63, 64, 100};
	uint64_t r = machine_random();
	f->size = sizes[r % 14];
	f->source = r >> 8 & 1 ? DP_SRC_MEMORY : DP_SRC_STRING;
	f->type = f->source == DP_SRC_MEMORY ? DP_TYPE_BYTES : DP_TYPE_STRING;
	f->addr = dp_addr_of(pick_address());
	if (r >> 9 & 3)
		f->expr = address(i);
	f->is_array = f->expr && r >> 15 & 1;
	if (f->expr && f->source == DP_SRC_STRING && (r >> 11 & 7) == 0) {
		f->is_array = false;
		f->count = pick_count(i);
		f->count_is_signed = r >> 14 & 1;
	}
}

static void pick_field(struct dp_field *f, unsigned i)
{
	static const enum dp_type none[] = {DP_TYPE_STRING, DP_TYPE_BYTES, DP_TYPE_INT};
	uint64_t r = machine_random();
	snprintf(names[i], sizeof(names[i]), "f%u", i);
	*f = (struct dp_field){.name = names[i], .source = DP_SRC_REG, .type = DP_TYPE_UINT, .size = 8, .reg = r >> 8 & 15};
	switch (r % 8) {
	case 0:
		*f = (struct dp_field){
		        .name = names[i], .source = DP_SRC_XMM, .type = DP_TYPE_BYTES, .size = 16, .reg = r >> 8 & 15};
		break;
	case 1:
		*f = (struct dp_field){.name = names[i], .source = DP_SRC_NONE, .type = none[(r >> 8) % 3], .size = 8};
		break;
	case 2:
	case 3:
		pick_value(f, i);
		break;
	case 4:
	case 5:
	case 6:
		pick_memory(f, i);
		break;
	default:
		break;
	}
}

/* ---- the expected record ------------------------------------------------------------------------------------------------ */

static struct {
	const struct machine *in;
	unsigned i, round;
} expected;

static bool read_world(uint64_t addr, void *buf, size_t n, void *data)
{
	(void)data;
	return world_copy(buf, addr, n);
}

static bool evaluate(const struct dp_expr *e, uint64_t *ret)
{
	struct dp_regs regs = {.rip = probe.req.site, .rflags = expected.in->rflags};
	memcpy(regs.gpr, expected.in->gpr, sizeof(regs.gpr));
	const struct dp_expr_env w = {.regs = &regs, .read = read_world};
	return dp_expr_eval_in(e, &w, ret);
}

static bool value_of(const struct dp_field *f, uint64_t *ret)
{
	*ret = f->source == DP_SRC_REG ? expected.in->gpr[f->reg] : f->addr.v;
	return !f->expr || evaluate(f->expr, ret);
}

/* Cut strings end in dots, as far as these fit. A string with a length below the limit is not cut. */
static bool text_of(const struct dp_field *f, uint64_t at, char *text)
{
	const uint32_t last = f->size - 1;
	uint64_t count = f->size;
	if (f->count && !evaluate(f->count, &count))
		return false;
	if (f->count && f->count_is_signed && (int64_t)count < 0)
		count = 0;
	for (uint32_t n = 0; n < f->size; n++) {
		if (n == count) {
			text[n] = 0;
			return true;
		}
		if (!world_copy(&text[n], at + n, 1))
			return false;
		if (!text[n])
			return true;
	}
	memset(text + (last < 3 ? 0 : last - 3), '.', last < 3 ? last : 3);
	text[last] = 0;
	return true;
}

static bool is_null(const struct dp_field *f, uint64_t at)
{
	uint64_t count = 1;
	if (f->source != DP_SRC_STRING || f->is_array || at || (f->count && !evaluate(f->count, &count)))
		return false;
	return f->count_is_signed ? (int64_t)count > 0 : count > 0;
}

static void check_bytes(const struct dp_field *f, const struct dp_field_value *v, bool known, uint64_t at)
{
	uint8_t bytes[128] = {0};
	const bool knew = known;
	if (f->source == DP_SRC_XMM)
		memcpy(bytes, expected.in->xmm[f->reg], 16);
	else if (f->source == DP_SRC_NONE)
		known = false;
	else if (f->type == DP_TYPE_STRING)
		known = known && text_of(f, at, (char *)bytes);
	else
		known = known && world_copy(bytes, at, f->size);
	if (!known)
		memset(bytes, 0, sizeof(bytes));
	if (!known && knew && is_null(f, at)) {
		memcpy(bytes, DP_NULL_TEXT, f->size < sizeof(DP_NULL_TEXT) ? f->size - 1 : sizeof(DP_NULL_TEXT));
		nulls++;
	}
	cr_assert_eq(v->unreadable, !known, "%u %s: %s", expected.round, f->name, known ? "could be read" : "could not be read");
	if (f->type == DP_TYPE_STRING)
		cr_assert_str_eq((const char *)v->bytes, (const char *)bytes, "%u %s (%u bytes)", expected.round, f->name,
		                 f->size);
	else
		cr_assert_arr_eq(v->bytes, bytes, f->size, "%u %s (%u bytes)", expected.round, f->name, f->size);
}

static void check_field(const struct dp_field *f, const struct dp_field_value *v, void *data)
{
	uint64_t want = 0;
	(void)data;
	bool known = value_of(f, &want);
	expected.i++;
	if (f->type == DP_TYPE_BACKTRACE) {
		cr_assert_eq(v->n, 2);
	} else if (f->type == DP_TYPE_STRING || f->type == DP_TYPE_BYTES) {
		check_bytes(f, v, known, want);
	} else {
		unsigned unused = 64 - 8 * f->size;
		known = known && f->source != DP_SRC_NONE;
		want = !known                   ? 0
		       : f->type == DP_TYPE_INT ? (uint64_t)((int64_t)(want << unused) >> unused)
		                                : want << unused >> unused;
		cr_assert_eq(v->unreadable, !known, "%u %s", expected.round, f->name);
		cr_assert_eq(v->u, want, "%u %s: %lx not %lx", expected.round, f->name, v->u, want);
	}
}

static void run_once(unsigned round)
{
	static uint8_t before[MACHINE_STACK];
	struct machine in, out;
	world_clear();
	memset(world.ring, 0, WORLD_RING);
	machine_randomize(&in, world.stack);
	for (unsigned r = 0; r < 16; r++)
		if (r != 4)
			in.gpr[r] = pick_address();
	machine_fill(world.stack);
	memcpy(before, world.stack, sizeof(before));
	machine_run(&in, &out, probe.entry);
	world_check_state(&in, &out, before, DP_STUB_STACK_CALLS);
	const struct dp_record *record = (const void *)world.ring;
	expected.in = &in;
	expected.i = 0;
	expected.round = round;
	cr_assert(record->size && record->size <= DP_RECORD_MAX && record->probe == WORLD_PROBE, "%u: no record", round);
	cr_assert(dp_fields_decode(&probe.fields, record->payload, record->size - sizeof(*record), check_field, NULL),
	          "%u: damaged", round);
	cr_assert_eq(expected.i, probe.fields.n);
	size_t end = dp_capture_reserve(&probe.fields);
	while (end < WORLD_RING && !world.ring[end])
		end++;
	cr_assert_eq(end, WORLD_RING, "%u: written after the record, at %zu", round, end);
}

static void run(unsigned rounds)
{
	unsigned inlined = 0;
	setup();
	for (unsigned round = 0; round < rounds; round++) {
		if (round % 64 == 0)
			refill();
		probe = (struct probe){.fields = {field, 1 + machine_random() % FIELDS}};
		for (unsigned i = 0; i < probe.fields.n; i++)
			pick_field(&field[i], i);
		if (round % 5 == 0)
			field[0] = (struct dp_field){
			        .name = names[0], .source = DP_SRC_UNWIND, .type = DP_TYPE_BACKTRACE, .size = 2};
		world.rt.faults = round % 4 != 0;
		probe.req = (struct dp_request){
		        .site = UINT64_C(0x123456789abc), .probe = WORLD_PROBE, .lost = (uint64_t)&world.lost};
		probe.req.fields = &probe.fields;
		probe_place(&probe, 0, NULL);
		world.finished = 0;
		for (unsigned n = 0; n < 3; n++)
			run_once(round);
		inlined += world.rt.faults && !world.finished && probe.stub.nfixups;
	}
	cr_expect(inlined > rounds / 4 && faults > rounds / 8 && nasked > rounds / 8, "%u inline, %u faults, %u asked", inlined,
	          faults, nasked);
	cr_expect(nulls > rounds / 32, "%u NULL", nulls);
	cr_expect_eq(world_bad_align, 0);
	world_destroy();
}

Test(stub_fields, hold_what_memory_holds)
{
	run(4000);
}
