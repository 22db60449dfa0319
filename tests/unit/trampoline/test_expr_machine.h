/* SPDX-License-Identifier: MIT */
/*
 * Compiles expressions and runs them in the test's own memory, with the agent's part: guarded loads that fault, and builtin
 * queries. Only one file of a program may include it.
 */
#ifndef DP_TESTS_EXPR_MACHINE_H
#define DP_TESTS_EXPR_MACHINE_H

#include "agent/abi.h"
#include "test_ask_thunk.h"
#include "test_stub_machine.h"
#include "trampoline/arch/x86_64/emit/frame.h"
#include "trampoline/arch/x86_64/expr/expr.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <sys/uio.h>
#include <unistd.h>

static uint8_t *code, *stack;
static struct dp_agent *agent;
static struct dp_runtime rt;
static struct {
	uint64_t from, to;
} fixup[DP_ASM_GUARDS];
static unsigned nfixups, faults;

/* ---- the agent: guarded loads, and queries ------------------------------------------------------------------------------ */

static void on_fault(int sig, siginfo_t *info, void *data)
{
	greg_t *rip = &((ucontext_t *)data)->uc_mcontext.gregs[REG_RIP];
	(void)info;
	for (unsigned i = 0; i < nfixups; i++)
		if (fixup[i].from == (uint64_t)*rip) {
			*rip = (greg_t)fixup[i].to;
			faults++;
			return;
		}
	signal(sig, SIG_DFL);
}

static bool read_self(uint64_t addr, void *buf, size_t n, void *data)
{
	struct iovec local = {buf, n}, remote = {(void *)addr, n};
	(void)data;
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)n;
}

static inline uint64_t fact(enum dp_fact f, void *data)
{
	(void)data;
	return f == DP_FACT_PID ? agent->pid : (uint64_t)syscall(SYS_gettid);
}

static uint64_t thread_pointer(void)
{
	uint64_t self;
	__asm__("mov %%fs:0,%0" : "=r"(self));
	return self;
}

ASK_THUNK(random_thunk_ask, random_ask);
struct answer random_ask(uint64_t operand, const struct dp_ask *ask)
{
	static const enum dp_match match[] = {
	        [DP_ASK_EQUAL] = DP_MATCH_EQUAL, [DP_ASK_PREFIX] = DP_MATCH_PREFIX, [DP_ASK_GLOB] = DP_MATCH_GLOB};
	const struct dp_expr_env world = {.read = read_self};
	struct dp_expr at = {.kind = DP_EXPR_CONST, .value = operand}, n = {.kind = DP_EXPR_CONST};
	struct dp_expr e = {.kind = DP_EXPR_LOAD, .size = ask->size, .a = &at};
	struct answer a = {0, 1};
	if (ask->agent != (uint64_t)agent)
		a.known = 0;
	if (ask->kind == DP_ASK_TID)
		a.value = (uint64_t)syscall(SYS_gettid);
	else if (ask->kind == DP_ASK_THREAD)
		a.value = thread_pointer();
	else {
		if (ask->kind != DP_ASK_LOAD)
			e = (struct dp_expr){
			        .kind = DP_EXPR_MATCH, .match = match[ask->kind], .a = &at, .text = (char *)ask->text};
		if (ask->count != DP_COUNT_NONE) {
			const struct dp_counted_text *counted = (const struct dp_counted_text *)operand;
			at.value = counted->addr;
			n.value = counted->n;
			e.b = &n;
			e.is_signed = ask->count == DP_COUNT_SIGNED;
		}
		a.known = dp_expr_eval_in(&e, &world, &a.value);
	}
	return a;
}

static uint32_t tid_offset(void)
{
	uint64_t self = thread_pointer();
	uint32_t tid = (uint32_t)syscall(SYS_gettid), off = 0;
	while (off < 2048 && *(volatile uint32_t *)(self + off) != tid)
		off += 4;
	return off;
}

/* False if out of memory. */
static bool expr_machine_setup(void)
{
	static uint8_t signals[65536];
	const stack_t alternate = {.ss_sp = signals, .ss_size = sizeof(signals)};
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigaltstack(&alternate, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	code = machine_room(false);
	stack = malloc(MACHINE_STACK);
	agent = calloc(1, sizeof(*agent));
	if (!code || !stack || !agent)
		return false;
	agent->pid = (uint32_t)getpid();
	rt = (struct dp_runtime){.agent = (uint64_t)agent, .ask = (uint64_t)&random_thunk_ask, .tid_offset = tid_offset()};
	return true;
}

/* ---- compiling -------------------------------------------------------------------------------------------------------- */

/* movabs %rax,address */
static void put_result(struct dp_asm *a, const uint64_t *at)
{
	dp_asm_data(a, "\x48\xa3", 2);
	dp_asm_data(a, &at, 8);
}

static void push_all(struct dp_asm *a, enum dp_view_level level, bool back)
{
	static const uint8_t order[] = {DP_RAX, DP_RCX, DP_RDX, DP_RSI};
	for (unsigned i = 0; i < level; i++)
		back ? dp_asm_pop(a, order[level - 1 - i]) : dp_asm_push(a, order[i]);
}

struct verdict {
	uint64_t value, failed;
};

/*
 * Compiles the expression's truth at the lowest level, or its value with everything saved. Without memory for the result, it is
 * in rax.
 */
static bool compile(const struct dp_expr *e, bool truth, struct verdict *v)
{
	struct dp_buf out;
	struct dp_asm a;
	dp_buf_init(&out);
	dp_asm_init(&a, &out, (uint64_t)code);
	enum dp_view_level level = truth ? dp_expr_level(&rt, e) : DP_VIEW_FULL;
	struct dp_expr_code c = {.a = &a, .rt = &rt, .view = dp_view_at(level, 0)};
	struct dp_label yes = dp_asm_label(&a), end = dp_asm_label(&a);
	dp_exits_init(&a, e, &c.exits);
	dp_frame_enter(&a, true);
	push_all(&a, level, false);
	if (truth) {
		dp_expr_jump(&c, e, true, yes);
		if (level) {
			dp_asm_mov_const(&a, 0, DP_RAX);
			put_result(&a, &v->value);
		}
		dp_asm_jmp(&a, end);
		dp_asm_bind(&a, yes);
		if (!level)
			dp_asm_push(&a, DP_RAX);
		dp_asm_mov_const(&a, 1, DP_RAX);
		put_result(&a, &v->value);
		if (!level)
			dp_asm_pop(&a, DP_RAX);
	} else {
		dp_asm_bind(&a, yes);
		dp_expr_value(&c, e);
		put_result(&a, &v->value);
	}
	dp_asm_jmp(&a, end);
	if (c.exits.n) {
		dp_exits_put(&a, &c.exits);
		dp_asm_mov_const(&a, 1, DP_RAX);
		put_result(&a, &v->failed);
	}
	dp_asm_bind(&a, end);
	push_all(&a, level, true);
	dp_frame_leave(&a, true);
	bool good = dp_asm_finish(&a);
	for (nfixups = 0; good && nfixups < a.nguards; nfixups++) {
		fixup[nfixups].from = (uint64_t)code + a.guard[nfixups].load;
		fixup[nfixups].to = (uint64_t)code + (uint64_t)a.label[a.guard[nfixups].label];
	}
	machine_put_leave(&out);
	memcpy(code, out.data, out.len);
	dp_buf_fini(&out);
	return good;
}

#endif
