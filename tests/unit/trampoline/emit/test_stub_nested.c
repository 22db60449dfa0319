/* SPDX-License-Identifier: MIT */
/*
 * A signal may arrive between any two instructions of a stub, and its handler may hit a probe itself. So the test single-steps
 * a hit, and at its k-th instruction, for every k, hits another probe from the SIGTRAP handler. The kernel builds the
 * handler's frame directly below rsp, which would destroy anything that a stub kept there.
 */
#include "test_stub_world.h"

#include <signal.h>
#include <ucontext.h>

#define OUTER     WORLD_PROBE
#define NESTED    8u
#define TRAP_FLAG UINT64_C(0x100)

static struct probe outer, nested;
static struct {
	unsigned at;    /* nest at this step */
	unsigned steps; /* so far, inside the stub's code */
} trap;

static uint64_t gates[2]; /* of the outer probe */

static bool in_stub(uint64_t pc)
{
	return pc >= (uint64_t)world.code && pc < (uint64_t)world.code + 4096;
}

static void on_trap(int signo, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	uint64_t pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	(void)signo;
	(void)info;
	if (pc == (uint64_t)&machine_leave)
		uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	if (!in_stub(pc) || trap.steps++ != trap.at)
		return;
	void (*hit)(void);
	memcpy(&hit, &nested.entry, sizeof(hit));
	hit();
}

static void setup(const char *const *contexts, const char *when)
{
	static const char *const nested_contexts[] = {"reg:rip", NULL};
	struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	world_create(false);
	cr_assert_eq(sigaction(SIGTRAP, &sa, NULL), 0);
	probe_init(&outer, contexts, when);
	memcpy(outer.req.gate, gates, sizeof(gates));
	probe_place(&outer, 0, NULL);
	probe_init(&nested, nested_contexts, NULL);
	nested.req.probe = NESTED;
	nested.req.site++;
	probe_place(&nested, 8192, "\xc3");
}

static void teardown(void)
{
	probe_fini(&outer);
	probe_fini(&nested);
	world_destroy();
}

static void check_state(const struct machine *in, const struct machine *out, const uint8_t *before)
{
	size_t top = in->gpr[4] - 128 - (uint64_t)world.stack;
	cr_assert_arr_eq(out->gpr, in->gpr, sizeof(in->gpr), "registers, step %u", trap.at);
	cr_assert_eq(out->rflags, in->rflags & ~TRAP_FLAG, "flags, step %u", trap.at);
	cr_assert_arr_eq(out->xmm, in->xmm, sizeof(in->xmm), "vectors, step %u", trap.at);
	cr_assert_arr_eq(world.stack + top, before + top, MACHINE_STACK - top, "stack, step %u", trap.at);
}

/* The first field of every outer probe here is rdi. */
static void check_record(const struct machine *in, const struct dp_record *rec)
{
	uint64_t word;
	size_t mask = rec->probe == OUTER && dp_fields_may_fault(&outer.fields) ? DP_MASK_BYTES : 0;
	memcpy(&word, rec->payload + mask, 8);
	cr_assert(rec->probe == OUTER || rec->probe == NESTED);
	cr_assert_eq(word, rec->probe == OUTER ? in->gpr[7] : nested.req.site, "step %u", trap.at);
	cr_assert_neq(rec->tsc, 0);
}

/* Walks the ring like the consumer. */
static unsigned check_ring(const struct machine *in, bool ordered)
{
	unsigned records = 0;
	uint64_t pos = 0, last = 0;
	while (pos < world.slot.head) {
		const struct dp_record *rec = (const struct dp_record *)(world.ring + pos);
		cr_assert(rec->size >= sizeof(*rec) && rec->size % 8 == 0, "uncommitted at %lu, step %u", pos, trap.at);
		check_record(in, rec);
		cr_assert(!ordered || rec->tsc >= last, "time runs backward at %lu, step %u", pos, trap.at);
		last = rec->tsc;
		pos += rec->size;
		records++;
	}
	cr_assert_eq(pos, world.slot.head, "step %u", trap.at);
	return records;
}

enum way { FAST, SLOW, ONLY_ONE_FITS };

/* Returns false when the stub has no k-th instruction. */
static bool nest_at(unsigned k, enum way way)
{
	static uint8_t before[MACHINE_STACK];
	struct machine in, out;
	world_clear();
	world.full = way == ONLY_ONE_FITS;
	world.slot.limit = world.full ? 24 : WORLD_RING;
	if (way == SLOW)
		world_entry()->key = 0;
	machine_randomize(&in, world.stack);
	machine_fill(world.stack);
	memcpy(before, world.stack, sizeof(before));
	in.rflags |= TRAP_FLAG;
	trap.at = k;
	trap.steps = 0;
	machine_run(&in, &out, outer.entry);
	check_state(&in, &out, before);
	unsigned records = check_ring(&in, way != SLOW);
	bool reached = trap.steps > k;
	cr_assert_eq(records + world.lost.full, reached ? 2u : 1u, "step %u: %u records", k, records);
	cr_assert_eq(records, reached && way != ONLY_ONE_FITS ? 2u : 1u, "step %u", k);
	return reached;
}

static void nest_everywhere(const char *const *contexts, const char *when, enum way way, unsigned least)
{
	unsigned k = 0;
	setup(contexts, when);
	while (nest_at(k, way))
		k++;
	cr_expect_geq(k, least, "only %u steps", k);
	teardown();
}

static const char *const one[] = {"reg:rdi", NULL};
static const char *const many[] = {"reg:rdi", "regs", "reg:xmm3", NULL};

Test(stub_nested, every_instruction_of_the_fast_path)
{
	nest_everywhere(one, NULL, FAST, 40);
}

Test(stub_nested, every_instruction_with_all_registers_and_a_condition)
{
	nest_everywhere(many, "rdi != 5", FAST, 60);
	nest_everywhere(many, "rsp + rax * rcx != rflags * 8", FAST, 60);
}

Test(stub_nested, every_instruction_behind_open_gates)
{
	static const uint32_t open = 1;
	gates[0] = gates[1] = (uint64_t)&open;
	nest_everywhere(one, NULL, FAST, 44);
	nest_everywhere(many, "rdi != 5", FAST, 64);
}

Test(stub_nested, every_instruction_of_the_slow_path)
{
	nest_everywhere(one, NULL, SLOW, 35);
}

Test(stub_nested, the_nested_hit_takes_the_last_room)
{
	nest_everywhere(one, NULL, ONLY_ONE_FITS, 40);
}

Test(stub_nested, every_instruction_of_the_call_section)
{
	static const char text[] = "text";
	char string[64];
	const char *const calls[] = {"reg:rdi", string, "backtrace:4", "regs", NULL};
	snprintf(string, sizeof(string), "string:text:0x%lx", (unsigned long)text);
	nest_everywhere(calls, NULL, SLOW, 100);
}
