/* SPDX-License-Identifier: MIT */
/*
 * A small agent for the stubs under test: thread table, one slot with its ring, and entry points that do no more than
 * agent/abi.h allows. They destroy every register that they may change, and check their arguments.
 */
#ifndef DP_TESTS_STUB_WORLD_H
#define DP_TESTS_STUB_WORLD_H

#include "test_stub_machine.h"
#include "trampoline/arch/x86_64/emit/stub.h"
#include "trampoline/trampoline.h"

#include <criterion/criterion.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define WORLD_RING  (1u << 16)
#define WORLD_PROBE 7u

static struct world {
	struct dp_agent *agent;
	struct dp_slot slot;
	uint8_t *ring, *code, *stack;
	struct dp_lost lost;
	struct dp_runtime rt;
	bool full; /* the ring accepts nothing more */
	unsigned acquired, misaligned, backward, finished;
	struct dp_regs seen; /* what the unwinder received */
} world;

uint8_t *world_sp; /* grows down; a nested entry starts below */

/* ---- entry points ---- */

void world_thunk_acquire(void);
void world_thunk_read(void);
void world_thunk_string(void);
void world_thunk_backtrace(void);
void world_thunk_finish(void);

/*
 * Acquire preserves all but rax rcx rdx rsi; helpers destroy what the C ABI lets them. Vectors are preserved, as in the real
 * agent.
 */
__asm__(".pushsection .text\n"
        "world_thunk_acquire:\n"
        "	push %rdi; push %r8; push %r9; push %r10; push %r11; push %rbx; pushfq; cld\n"
        "	mov %rsp,%rbx\n"
        "	subq $8192,world_sp(%rip); mov world_sp(%rip),%rcx; lea 8192-544(%rcx),%rsp\n"
        "	fxsave64 (%rsp)\n"
        "	mov %rax,%rdi; lea 520(%rsp),%rsi; call world_acquire\n"
        "	mov %rax,%rcx; mov 520(%rsp),%rsi\n"
        "	fxrstor64 (%rsp)\n"
        "	mov %rbx,%rsp; addq $8192,world_sp(%rip)\n"
        "	popfq; pop %rbx; pop %r11; pop %r10; pop %r9; pop %r8; pop %rdi\n"
        "	mov $0x5a5a5a5a5a5a5a5a,%rax; mov %rax,%rdx; add %rax,%rax\n"
        "	ret\n"
        ".macro WORLD_HELPER name\n"
        "world_thunk_\\name:\n"
        "	lea 8(%rsp),%rax; test $15,%al; je 1f; incl world_bad_align(%rip)\n"
        "1:	push %rbx; mov %rsp,%rbx; pushfq; cld\n"
        "	subq $8192,world_sp(%rip); mov world_sp(%rip),%rcx; lea 8192-544(%rcx),%rsp\n"
        "	fxsave64 (%rsp); call world_\\name; fxrstor64 (%rsp)\n"
        "	lea -8(%rbx),%rsp; addq $8192,world_sp(%rip); popfq; pop %rbx\n"
        "	mov $0xa5a5a5a5a5a5a5a5,%rax\n"
        "	mov %rax,%rcx; mov %rax,%rdx; mov %rax,%rsi; mov %rax,%rdi; mov %rax,%r8; mov %rax,%r9; mov %rax,%r10; mov "
        "%rax,%r11\n"
        "	add %rax,%rax; ret\n"
        ".endm\n"
        "WORLD_HELPER read\n"
        "WORLD_HELPER string\n"
        "WORLD_HELPER backtrace\n"
        "WORLD_HELPER finish\n.popsection\n");

unsigned world_bad_align;

/* A position for `size` bytes, or the end of the ring. */
static uint64_t world_reserve(struct dp_slot *slot, uint64_t size)
{
	uint64_t pos = __atomic_load_n(&slot->head, __ATOMIC_RELAXED);
	do {
		if (pos + size > WORLD_RING)
			return WORLD_RING;
	} while (!__atomic_compare_exchange_n(&slot->head, &pos, pos + size, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return pos;
}

struct dp_record *world_acquire(const struct dp_probe_desc *desc, struct dp_slot **slot);
struct dp_record *world_acquire(const struct dp_probe_desc *desc, struct dp_slot **slot)
{
	world.acquired++;
	*slot = &world.slot;
	uint64_t pos = world.full ? WORLD_RING : world_reserve(&world.slot, desc->reserve);
	if (pos == WORLD_RING) {
		((struct dp_lost *)desc->lost)->full++;
		return NULL;
	}
	return (struct dp_record *)(world.ring + pos);
}

static bool world_copy(void *to, uint64_t addr, size_t n)
{
	struct iovec local = {to, n}, remote = {(void *)addr, n};
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)n;
}

static void world_mark(struct dp_capture *c, const struct dp_op *op)
{
	uint64_t mask;
	memcpy(&mask, c->record->payload, sizeof(mask));
	mask |= UINT64_C(1) << op->field;
	memcpy(c->record->payload, &mask, sizeof(mask));
}

void world_read(struct dp_capture *c, const struct dp_op *op);
void world_read(struct dp_capture *c, const struct dp_op *op)
{
	if (!world_copy(c->cursor, op->addr, op->size)) {
		memset(c->cursor, 0, op->size);
		world_mark(c, op);
	}
	c->cursor += op->size;
}

void world_string(struct dp_capture *c, const struct dp_op *op, uint64_t count);
void world_string(struct dp_capture *c, const struct dp_op *op, uint64_t count)
{
	const uint32_t limit = (uint32_t)dp_counted((enum dp_count)op->count, count, op->size);
	uint32_t n = 0;
	bool good = true;
	if (!op->addr && limit && op->count != DP_COUNT_ARRAY) { /* NULL, as far as it fits */
		world_mark(c, op);
		for (; n + 1 < op->size && DP_NULL_TEXT[n]; n++)
			c->cursor[n] = (uint8_t)DP_NULL_TEXT[n];
		c->cursor[n] = 0;
		c->cursor += n + 1;
		return;
	}
	while (n < limit && (good = world_copy(&c->cursor[n], op->addr + n, 1)) && c->cursor[n])
		n++;
	if (!good) {
		memset(c->cursor, 0, n);
		world_mark(c, op);
		n = 0;
	}
	if (n == op->size) { /* the string was cut */
		n--;
		for (uint32_t i = 1; i <= 3 && i <= n; i++)
			c->cursor[n - i] = '.';
	}
	c->cursor[n] = 0;
	c->cursor += n + 1;
}

void world_backtrace(struct dp_capture *c, const struct dp_op *op);
void world_backtrace(struct dp_capture *c, const struct dp_op *op)
{
	memcpy(&world.seen, c->regs, sizeof(world.seen));
	*c->cursor++ = (uint8_t)(op->size > 2 ? 2 : op->size);
	memcpy(c->cursor, &c->regs->rip, 8);
	memcpy(c->cursor + 8, &c->regs->gpr[5], 8);
	c->cursor += 8u * (op->size > 2 ? 2 : op->size);
}

void world_finish(struct dp_capture *c);
void world_finish(struct dp_capture *c)
{
	uint64_t start = (uint64_t)c->record - c->slot->base, end = start + c->desc->reserve;
	uint64_t used = start + (((uint64_t)c->cursor - (uint64_t)c->record + 7) & ~UINT64_C(7));
	struct dp_record head = {.size = c->desc->reserve, .probe = c->desc->probe};
	if (__atomic_compare_exchange_n(&c->slot->head, &end, used, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		head.size = (uint32_t)(used - start);
	memcpy(c->record, &head, 8);
	world.finished++;
	if (c->slot != &world.slot)
		world.misaligned++;
}

/* ---- set-up ---- */

/* Offset of the thread's tid from %fs:0, as the injector finds it. */
static uint32_t world_tid_offset(void)
{
	uint64_t self;
	__asm__("mov %%fs:0,%0" : "=r"(self));
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	for (uint32_t off = 0; off < 2048; off += 4)
		if (*(volatile uint32_t *)(self + off) == tid)
			return off;
	return 0;
}

static struct dp_thread_entry *world_entry(void)
{
	uint64_t self;
	__asm__("mov %%fs:0,%0" : "=r"(self));
	struct dp_thread_entry *e = &world.agent->table[(self * DP_HASH_MULT) >> (64 - DP_TABLE_BITS)];
	e->key = self;
	return e;
}

static void world_clear(void)
{
	memset(world.ring, 0, WORLD_RING);
	world.slot = (struct dp_slot){.base = (uint64_t)world.ring, .mask = WORLD_RING - 1, .limit = WORLD_RING};
	world.slot.tid = (uint32_t)syscall(SYS_gettid);
	world_entry()->slot = (uint64_t)&world.slot;
	world.acquired = world.finished = 0;
	world.lost = (struct dp_lost){0};
}

static void world_create(bool near)
{
	static uint8_t agent_stack[8192 * 16] __attribute__((aligned(64)));
	world_sp = agent_stack + sizeof(agent_stack);
	world.agent = calloc(1, sizeof(*world.agent));
	world.ring = aligned_alloc(4096, WORLD_RING);
	world.stack = malloc(MACHINE_STACK);
	world.code = machine_room(near);
	cr_assert(world.agent && world.ring && world.stack && world.code);
	world.rt = (struct dp_runtime){
	        .agent = (uint64_t)world.agent,
	        .acquire = (uint64_t)&world_thunk_acquire,
	        .read = (uint64_t)&world_thunk_read,
	        .string = (uint64_t)&world_thunk_string,
	        .backtrace = (uint64_t)&world_thunk_backtrace,
	        .finish = (uint64_t)&world_thunk_finish,
	        .tid_offset = world_tid_offset(),
	};
	cr_assert(world.rt.tid_offset);
	world_clear();
}

static void world_destroy(void)
{
	munmap(world.code, 1 << 20);
	free(world.agent);
	free(world.ring);
	free(world.stack);
}

/* Checks that everything is unchanged, and that the stack is untouched outside of [rsp - bound, rsp - 128). */
static inline void world_check_state(const struct machine *in, const struct machine *out, const uint8_t *before, size_t bound)
{
	size_t top = in->gpr[4] - (uint64_t)world.stack;
	for (size_t r = 0; r < 16; r++)
		cr_expect_eq(out->gpr[r], in->gpr[r], "register %zu: %lx not %lx", r, out->gpr[r], in->gpr[r]);
	cr_expect_eq(out->rflags, in->rflags, "flags %lx not %lx", out->rflags, in->rflags);
	cr_expect_arr_eq(out->xmm, in->xmm, sizeof(in->xmm));
	cr_expect_arr_eq(world.stack + top - 128, before + top - 128, MACHINE_STACK - top + 128, "red zone or stack");
	cr_expect_arr_eq(world.stack, before, top - bound, "stack bound");
}

struct probe {
	struct dp_fields fields;
	struct dp_expr *when;
	struct dp_request req;
	const void *entry;
	struct dp_stub stub; /* its ranges of loads that may fault */
};

/* Emits a stub into the code memory at `offset`, ending with `tail` (or, if NULL, in machine_leave). */
static inline void probe_place(struct probe *p, size_t offset, const char *tail)
{
	struct dp_buf out;
	const uint64_t at = (uint64_t)world.code + offset;
	struct dp_stub stub;
	dp_buf_init(&out);
	dp_buf_put(&out, "before", 6); /* the buffer need not be empty */
	struct dp_error *err = dp_stub_emit(&out, at, &world.rt, &p->req, &stub);
	cr_assert(!err, "%s", err ? err->message : "");
	cr_assert(stub.entry >= at && stub.entry % 16 == 0 && stub.entry < at + out.len);
	if (tail)
		dp_buf_put(&out, tail, strlen(tail));
	else
		machine_put_leave(&out);
	memcpy((void *)at, out.data + 6, out.len - 6);
	dp_buf_fini(&out);
	p->entry = (const void *)stub.entry;
	p->stub = stub;
}

static inline void probe_init(struct probe *p, const char *const *contexts, const char *when)
{
	*p = (struct probe){0};
	for (size_t i = 0; contexts && contexts[i]; i++) {
		struct dp_error *err = dp_fields_add(&p->fields, contexts[i]);
		cr_assert(!err, "%s", err ? err->message : "");
	}
	if (when) {
		struct dp_error *err = dp_expr_parse(when, &p->when);
		cr_assert(!err, "%s", err ? err->message : "");
	}
	p->req = (struct dp_request){.site = UINT64_C(0x123456789abc), .probe = WORLD_PROBE, .lost = (uint64_t)&world.lost};
	p->req.fields = &p->fields;
	p->req.when = p->when;
}

static inline void probe_fini(struct probe *p)
{
	dp_fields_fini(&p->fields);
	p->when = dp_expr_destroy(p->when);
}

#endif
