/* SPDX-License-Identifier: MIT */
/* A shut gate does not affect the program, an open one changes nothing, and a stub without gates has no code for them. */
#include "test_stub_world.h"

static uint32_t *near_gate, *far_gate;

static void setup(void)
{
	world_create(false);
	near_gate = (uint32_t *)(void *)(world.code + (1 << 20) - 64);
	far_gate = mmap((void *)(UINT64_C(1) << 45), 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(far_gate, MAP_FAILED);
	cr_assert_gt(llabs((long long)((uint8_t *)far_gate - world.code)), 1LL << 32);
}

static void teardown(void)
{
	munmap(far_gate, 4096);
	world_destroy();
}

/* One hit from a random state. Returns whether it was recorded. */
static bool hit(struct probe *p)
{
	static uint8_t before[MACHINE_STACK];
	struct machine in, out;
	world_clear();
	machine_randomize(&in, world.stack);
	machine_fill(world.stack);
	memcpy(before, world.stack, sizeof(before));
	machine_run(&in, &out, p->entry);
	world_check_state(&in, &out, before, DP_STUB_STACK);
	if (!world.slot.head)
		return false;
	const struct dp_record *rec = (const struct dp_record *)(const void *)world.ring;
	cr_expect_eq(rec->probe, WORLD_PROBE);
	cr_expect(!memcmp(rec->payload, &in.gpr[7], 8));
	return true;
}

/* Values with one set bit in each byte: a gate is a whole word. */
static const uint32_t states[] = {0, 1, 0x100, 0x10000, 0x80000000, 0};

static void toggle(uint32_t *first, uint32_t *second, const char *when, bool condition)
{
	static const char *const contexts[] = {"reg:rdi", NULL};
	struct probe p;
	probe_init(&p, contexts, when);
	p.req.gate[0] = (uint64_t)first;
	p.req.gate[1] = (uint64_t)second;
	probe_place(&p, 64 * (machine_random() % 16), NULL);
	for (unsigned i = 0; i < 36; i++) {
		if (first)
			*first = states[i % 6];
		if (second)
			*second = states[i / 6];
		for (unsigned k = 0; k < 20; k++)
			cr_assert_eq(hit(&p), condition && (!first || *first) && (!second || *second), "%s, %x %x", when,
			             first ? *first : 1, second ? *second : 1);
	}
	probe_fini(&p);
}

static void toggle_all(const char *when, bool condition)
{
	setup();
	toggle(near_gate, NULL, when, condition);
	toggle(NULL, far_gate, when, condition);
	toggle(near_gate, far_gate, when, condition);
	toggle(far_gate, near_gate, when, condition);
	toggle(far_gate, far_gate + 1, when, condition);
	toggle(near_gate, near_gate + 1, when, condition);
	teardown();
}

Test(stub_gates, a_shut_gate_records_nothing_and_changes_nothing)
{
	toggle_all(NULL, true);
}

Test(stub_gates, in_front_of_a_light_condition)
{
	toggle_all("rax != 77", true);
	toggle_all("rax == 77", false);
}

Test(stub_gates, in_front_of_a_full_condition)
{
	toggle_all("(rflags & 2) && rsp * 3 + rcx != 5", true);
	toggle_all("rsp * 3 + rcx == 5", false);
}

/* The stub's bytes, placed at a given address. */
static struct dp_buf bytes_of(struct probe *p, uint64_t *entry)
{
	struct dp_buf out;
	dp_buf_init(&out);
	struct dp_stub stub;
	cr_assert_null(dp_stub_emit(&out, (uint64_t)world.code, &world.rt, &p->req, &stub));
	*entry = stub.entry - (uint64_t)world.code;
	return out;
}

static void check_added(const char *when, const uint8_t *gate, size_t n)
{
	static const char *const contexts[] = {"reg:rdi", NULL};
	static const size_t prologue = 5 + 1 + 1 + 3; /* lea, push, lahf, seto */
	struct probe p;
	uint64_t entry, gated_entry;
	probe_init(&p, contexts, when);
	struct dp_buf plain = bytes_of(&p, &entry);
	p.req.gate[0] = (uint64_t)near_gate;
	struct dp_buf gated = bytes_of(&p, &gated_entry);
	cr_assert_eq(entry, gated_entry);
	cr_expect_eq(gated.len, plain.len + n);
	cr_expect_arr_eq(gated.data + entry, plain.data + entry, prologue);
	cr_expect_arr_eq(gated.data + entry + prologue, gate, 2);
	cr_expect_arr_neq(plain.data + entry + prologue, gate, 2, "a gate that was not requested");
	dp_buf_fini(&plain);
	dp_buf_fini(&gated);
	probe_fini(&p);
}

/* cmpl $0,gate(%rip); je leave: before everything that the hit does, and nowhere else. */
Test(stub_gates, thirteen_bytes_behind_the_prologue)
{
	static const uint8_t cmp[] = {0x83, 0x3d};
	setup();
	check_added(NULL, cmp, 7 + 6);
	check_added("rdi == 3", cmp, 7 + 6);
	check_added("rsp == 3", cmp, 7 + 6);
	teardown();
}
