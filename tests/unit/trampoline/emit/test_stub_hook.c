/* SPDX-License-Identifier: MIT */
/* A hook: the stub calls C code, which may do whatever the C ABI allows, and the program notices nothing. */
#include "test_stub_world.h"

static struct {
	unsigned calls;
	uint64_t misaligned, direction;
} hook;

void hook_thunk(void);
void hook_called(uint64_t sp, uint64_t flags);

/* Runs C code on the agent's stack, keeps the vector state as the contract says, and destroys all else that it may. */
__asm__(".pushsection .text\n"
        "hook_thunk:\n"
        "	mov %rsp,%rdi; pushfq; pop %rsi; cld\n"
        "	push %rbx; mov %rsp,%rbx\n"
        "	subq $8192,world_sp(%rip); mov world_sp(%rip),%rcx; lea 8192-544(%rcx),%rsp\n"
        "	fxsave64 (%rsp); call hook_called; fxrstor64 (%rsp)\n"
        "	mov %rbx,%rsp; addq $8192,world_sp(%rip); pop %rbx\n"
        "	mov $0xa5a5a5a5a5a5a5a5,%rax\n"
        "	mov %rax,%rcx; mov %rax,%rdx; mov %rax,%rsi; mov %rax,%rdi; mov %rax,%r8; mov %rax,%r9; mov %rax,%r10; mov "
        "%rax,%r11\n"
        "	movq %rax,-8(%rsp); movq %rax,-128(%rsp)\n" /* its own red zone */
        "	add %rax,%rax; ret\n.popsection\n");

void hook_called(uint64_t sp, uint64_t flags)
{
	hook.calls++;
	hook.misaligned |= (sp + 8) % 16;
	hook.direction |= flags & 0x400;
}

static void hit(const struct probe *p)
{
	static uint8_t before[MACHINE_STACK];
	struct machine in, out;
	machine_randomize(&in, world.stack);
	machine_fill(world.stack);
	memcpy(before, world.stack, sizeof(before));
	machine_run(&in, &out, p->entry);
	world_check_state(&in, &out, before, DP_STUB_STACK + 128); /* and the callee's red zone */
}

/* A hook as the tool requests it: no fields, no probe, no loss counter. */
static void place(struct probe *p, uint32_t *gate)
{
	*p = (struct probe){.req = {.site = UINT64_C(0x123456789abc), .probe = DP_NO_PROBE, .hook = (uint64_t)&hook_thunk}};
	p->req.gate[0] = (uint64_t)gate;
	probe_place(p, 0, NULL);
}

static void run(bool near, bool sink)
{
	struct probe p;
	world_create(near);
	memset(&hook, 0, sizeof(hook));
	world.rt.enter = world.rt.emit = sink ? 1 : 0; /* not for hooks */
	place(&p, NULL);
	for (unsigned i = 0; i < 500; i++)
		hit(&p);
	cr_expect_eq(hook.calls, 500);
	cr_expect_eq(hook.misaligned, 0);
	cr_expect_eq(hook.direction, 0, "the direction flag reaches C code");
	cr_expect_eq(world.slot.head, 0);
	cr_expect_eq(world.acquired, 0);
	world_destroy();
}

Test(stub_hook, is_called_and_changes_nothing)
{
	run(true, false);
	run(false, false);
	run(false, true);
}

Test(stub_hook, its_gate_shuts_it)
{
	static uint32_t gate;
	struct probe p;
	world_create(false);
	memset(&hook, 0, sizeof(hook));
	place(&p, &gate);
	for (unsigned i = 0; i < 100; i++) {
		gate = i % 2;
		hit(&p);
		cr_assert_eq(hook.calls, (i + 1) / 2);
	}
	world_destroy();
}
