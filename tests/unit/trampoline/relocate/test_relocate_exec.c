/* SPDX-License-Identifier: MIT */
/*
 * Differential execution: an instruction at its own address, and its relocated form elsewhere, from the same machine state.
 * Registers, flags, vector registers, memory, the next address and the kind of fault must be the same.
 */
#include "helper_exec.h"
#include "helper_text.h"

#include "trampoline/arch/x86_64/relocate/relocate.h"
#include "trampoline/code/text.h"

#include <cpuid.h>
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 6
#define SAMPLE 3000
#define AT     (EXEC_CODE + 0x400)

static struct exec_memory before, after;

struct trial {
	struct dp_insn insn;
	struct dp_buf moved;
	uint64_t to;
};

static bool at_start(const struct exec_state *s, uint64_t start, size_t n)
{
	return s->rip - start < n;
}

/* A relocated call that faults when it reads its target has already pushed the return address. */
static bool faulting_call(const struct trial *t, const struct exec_state *s)
{
	return t->insn.flow == DP_FLOW_CALL_IND && at_start(s, AT, t->insn.len);
}

/* Some hypervisors (PVM) end a program whose rsp holds no address wherever an interrupt happens to arrive; processors do not. */
static bool ended_by_interrupt(const struct exec_state *s)
{
	const int64_t rsp = (int64_t)s->gpr[4];
	return rsp != (rsp << 16) >> 16 && (s->signal == SIGILL || (s->signal == SIGSEGV && !s->fault));
}

static const char *difference(const struct trial *t, const struct exec_state *a, const struct exec_state *b)
{
	bool same_place = a->rip == b->rip || (at_start(a, AT, t->insn.len) && at_start(b, t->to, t->moved.len));
	bool call = faulting_call(t, a);
	if (a->signal != b->signal && (ended_by_interrupt(a) || ended_by_interrupt(b)))
		return NULL;
	if (!same_place)
		return "rip";
	if (a->signal != b->signal || a->fault != b->fault)
		return "signal";
	for (int i = 0; i < 16; i++)
		if (a->gpr[i] != b->gpr[i] && !(call && i == 4))
			return "a general register";
	if ((a->flags & 0xcd5) != (b->flags & 0xcd5))
		return "flags";
	if (memcmp(a->xmm, b->xmm, sizeof(a->xmm)) || memcmp(a->ymm, b->ymm, sizeof(a->ymm)))
		return "a vector register";
	return call || exec_same(&after) ? NULL : "memory";
}

static const char *run_once(const struct trial *t, uint64_t *seed, int64_t rax)
{
	struct exec_state start, a, b;
	exec_random(&start, seed);
	if (rax >= 0)
		start.gpr[0] = (uint64_t)rax;
	exec_save(&before);
	a = b = start;
	a.rip = AT;
	b.rip = t->to;
	exec_run(&a);
	exec_save(&after);
	exec_restore(&before);
	exec_run(&b);
	return difference(t, &a, &b);
}

/* Maps the memory of a RIP-relative operand, if nothing is there yet. */
static void map_operand(const struct dp_insn *insn, uint64_t *seed)
{
	int32_t disp;
	if (!insn->disp_at)
		return;
	memcpy(&disp, insn->bytes + insn->disp_at, sizeof(disp));
	exec_map(insn->addr + insn->len + (uint64_t)(int64_t)disp, seed);
}

/* NULL if both behave the same, or the instruction cannot be moved there. */
static const char *compare(const uint8_t *bytes, size_t n, uint64_t to, uint64_t *seed, int64_t rax)
{
	struct trial t = {.to = to};
	struct dp_plan plan = {0};
	const char *found = NULL;
	struct dp_error *err = dp_decode(bytes, n, AT, &t.insn);
	dp_buf_init(&t.moved);
	if (!err)
		err = dp_relocate_run(&t.insn, 1, to, &t.moved, &plan);
	if (!err) {
		exec_code(AT, t.insn.bytes, t.insn.len);
		exec_code(to, t.moved.data, t.moved.len);
		map_operand(&t.insn, seed);
		for (int i = 0; i < ROUNDS && !found; i++)
			found = run_once(&t, seed, rax);
		exec_unmap();
	}
	dp_error_destroy(err);
	dp_buf_fini(&t.moved);
	return found;
}

/* Runs `body` in a child, since the code that it executes may do anything; the child's report is the message. */
static void in_child(void (*body)(int out))
{
	int pipes[2];
	char text[400] = "";
	cr_assert_eq(pipe(pipes), 0);
	pid_t pid = fork();
	if (!pid) {
		/* Limits processor time, not wall clock time: endless code must end, on a busy machine too. */
		setrlimit(RLIMIT_CPU, &(struct rlimit){200, 200});
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		exec_setup();
		body(pipes[1]);
		_exit(0);
	}
	close(pipes[1]);
	ssize_t n = read(pipes[0], text, sizeof(text) - 1);
	close(pipes[0]);
	int status;
	waitpid(pid, &status, 0);
	cr_expect(n <= 0, "%s", text);
	cr_expect_eq(status, 0, "the child ended with status 0x%x", status);
}

static void report(int out, const uint8_t *bytes, size_t n, uint64_t to, const char *what)
{
	char text[200];
	struct dp_insn insn;
	char name[DP_INSN_TEXT];
	bool known = dp_decode_zydis(bytes, n, AT, &insn);
	int len = snprintf(text, sizeof(text), "%s, moved to 0x%llx: differs in %s\n", known ? dp_insn_text(&insn, name) : "?",
	                   (unsigned long long)to, what);
	if (write(out, text, (size_t)len) != len)
		_exit(1);
}

struct form {
	const char *name;
	uint8_t n, bytes[15];
	int64_t rax; /* -1: random */
};

static const struct form forms[] = {
#include "forms_relocate.def"
};

/*
 * A processor without the instruction raises a signal; an emulator that does not know it (QEMU 7.2) runs it as a `mov` of the
 * displacement.
 */
static bool is_of_another_processor(const struct form *f)
{
	unsigned a = 0, b = 0, c = 0, d = 0;
	__get_cpuid_count(7, 0, &a, &b, &c, &d);
	return !(b & bit_RTM) && f->bytes[0] == 0xc7 && f->bytes[1] == 0xf8;
}

static void every_form(int out)
{
	uint64_t seed = 12345;
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		for (int far = 0; far < 2 && !is_of_another_processor(&forms[i]); far++) {
			uint64_t to = far ? EXEC_FAR + 0x200 : EXEC_NEAR + 0x200;
			const char *found = compare(forms[i].bytes, forms[i].n, to, &seed, forms[i].rax);
			if (found)
				report(out, forms[i].bytes, forms[i].n, to, found);
		}
}

Test(relocate_exec, every_form_does_the_same_elsewhere)
{
	in_child(every_form);
}

/* Instructions that must not run here, or whose results differ from run to run. */
static bool unfit(const struct dp_insn *insn)
{
	static const char *const names[] = {"rdtsc",  "rdrand", "rdseed", "rdpid",   "wrfsbase", "wrgsbase", "rdpmc",
	                                    "popf",   "iret",   "xrstor", "fxrstor", "xsave",    "fxsave",   "wrpkru",
	                                    "fldenv", "frstor", "lret",   "ldmxcsr", "fnstenv",  "fnsave"};
	char text[DP_INSN_TEXT];
	if (insn->flow == DP_FLOW_SYSCALL || insn->bytes[0] == 0x64 || insn->bytes[0] == 0x65)
		return true;
	dp_insn_text(insn, text);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strstr(text, names[i]))
			return true;
	return strstr(text, "%fs:") || strstr(text, "%gs:") || (insn->flow == DP_FLOW_JMP && insn->target == insn->addr);
}

static void sample(int out)
{
	struct helper_module libc;
	uint64_t seed = 987654321;
	helper_libc(&libc);
	for (int i = 0; i < SAMPLE; i++) {
		struct dp_insn insn;
		size_t n;
		uint64_t addr = helper_random_insn(&libc, &seed);
		const uint8_t *bytes = dp_text_at(&libc.text, addr, &n);
		if (!dp_decode_zydis(bytes, n, addr, &insn) || unfit(&insn))
			continue;
		const char *found = compare(insn.bytes, insn.len, EXEC_NEAR + 0x200, &seed, -1);
		if (found)
			report(out, insn.bytes, insn.len, EXEC_NEAR + 0x200, found);
	}
}

Test(relocate_exec, instructions_of_libc_do_the_same_elsewhere)
{
	in_child(sample);
}
