/* SPDX-License-Identifier: MIT */
/* Seccomp filters: what they answer to calls of which only a part is known, and what they forbid dynprobe. */
#include "helper_tracee.h"

#include "injector/tracee/proc/filter.h"
#include "injector/tracee/proc/filter_bpf.h"

#include <criterion/criterion.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field)        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ARG(i)             BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (i))
#define ARG_HIGH(i)        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (i) + 4)
#define IF(op, k, yes, no) BPF_JUMP(BPF_JMP | (op) | BPF_K, k, yes, no)
#define RETURN(what)       BPF_STMT(BPF_RET | BPF_K, what)
#define OP(op, k)          BPF_STMT(BPF_ALU | (op) | BPF_K, k)
#define OP_X(op)           BPF_STMT(BPF_ALU | (op) | BPF_X, 0)
#define MOST               24
#define ALLOW              SECCOMP_RET_ALLOW
#define KILL               SECCOMP_RET_KILL_PROCESS
#define EPERM_             (SECCOMP_RET_ERRNO | 1)
#define RX                 (PROT_READ | PROT_EXEC)

static const struct test {
	const char *what;
	struct sock_filter filter[MOST];
	struct dp_bpf_call call;
	uint32_t answer;
} tests[] = {
        {"everything", {RETURN(ALLOW)}, {.nr = 1}, ALLOW},
        {"by number, this one", {LOAD(nr), IF(BPF_JEQ, 9, 0, 1), RETURN(EPERM_), RETURN(ALLOW)}, {.nr = 9}, EPERM_},
        {"by number, another one", {LOAD(nr), IF(BPF_JEQ, 9, 0, 1), RETURN(EPERM_), RETURN(ALLOW)}, {.nr = 8}, ALLOW},
        {"any number", {LOAD(nr), IF(BPF_JEQ, 9, 0, 1), RETURN(EPERM_), RETURN(ALLOW)}, {.any = true}, EPERM_},
        {"architecture", {LOAD(arch), IF(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0), RETURN(KILL), RETURN(ALLOW)}, {.nr = 9}, ALLOW},
        {"x32", {LOAD(nr), IF(BPF_JGE, 0x40000000, 0, 1), RETURN(KILL), RETURN(ALLOW)}, {.nr = 9}, ALLOW},
        {"instruction pointer",
         {LOAD(instruction_pointer), IF(BPF_JGT, 4096, 1, 0), RETURN(KILL), RETURN(ALLOW)},
         {.nr = 9},
         KILL},
        {"flags as systemd forbids them",
         {ARG(2), OP(BPF_AND, PROT_EXEC | PROT_WRITE), IF(BPF_JEQ, PROT_EXEC | PROT_WRITE, 0, 1), RETURN(EPERM_), RETURN(ALLOW)},
         {.nr = 9, .known = 4, .arg = {0, 0, RX}},
         ALLOW},
        {"the same, of memory that is both",
         {ARG(2), OP(BPF_AND, PROT_EXEC | PROT_WRITE), IF(BPF_JEQ, PROT_EXEC | PROT_WRITE, 0, 1), RETURN(EPERM_), RETURN(ALLOW)},
         {.nr = 9, .known = 4, .arg = {0, 0, RX | PROT_WRITE}},
         EPERM_},
        {"an argument that is not known",
         {ARG(0), IF(BPF_JEQ, 0, 0, 1), RETURN(EPERM_), RETURN(ALLOW)},
         {.nr = 9, .known = 4},
         EPERM_},
        {"both ways of it are good",
         {ARG(0), IF(BPF_JEQ, 0, 0, 1), RETURN(ALLOW), RETURN(SECCOMP_RET_LOG)},
         {.nr = 9},
         SECCOMP_RET_LOG},
        {"the high half",
         {ARG_HIGH(1), IF(BPF_JEQ, 7, 0, 1), RETURN(KILL), RETURN(ALLOW)},
         {.known = 2, .arg = {0, 7ull << 32}},
         KILL},
        {"any bit", {ARG(0), IF(BPF_JSET, 6, 0, 1), RETURN(KILL), RETURN(ALLOW)}, {.known = 1, .arg = {8}}, ALLOW},
        {"arithmetic",
         {ARG(0), OP(BPF_ADD, 3), OP(BPF_MUL, 4), OP(BPF_SUB, 2), OP(BPF_LSH, 1), OP(BPF_RSH, 2), OP(BPF_OR, 1), OP(BPF_XOR, 2),
          OP(BPF_DIV, 3), OP(BPF_MOD, 5), IF(BPF_JEQ, ((((5 + 3) * 4 - 2) << 1 >> 2 | 1) ^ 2) / 3 % 5, 1, 0), RETURN(KILL),
          RETURN(ALLOW)},
         {.known = 1, .arg = {5}},
         ALLOW},
        {"negation",
         {ARG(0), BPF_STMT(BPF_ALU | BPF_NEG, 0), IF(BPF_JEQ, (uint32_t)-5, 1, 0), RETURN(KILL), RETURN(ALLOW)},
         {.known = 1, .arg = {5}},
         ALLOW},
        {"index register and memory",
         {LOAD(nr), BPF_STMT(BPF_ST, 3), BPF_STMT(BPF_MISC | BPF_TAX, 0), BPF_STMT(BPF_LD | BPF_IMM, 2), OP_X(BPF_ADD),
          BPF_STMT(BPF_LDX | BPF_MEM, 3), OP_X(BPF_SUB), IF(BPF_JEQ, 2, 1, 0), RETURN(KILL), RETURN(ALLOW)},
         {.nr = 9},
         ALLOW},
        {"a jump by the index register",
         {LOAD(nr), BPF_STMT(BPF_LDX | BPF_IMM, 9), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1), RETURN(KILL), RETURN(ALLOW)},
         {.nr = 9},
         KILL},
        {"the length",
         {BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), IF(BPF_JEQ, 64, 1, 0), RETURN(KILL), RETURN(ALLOW)},
         {.nr = 9},
         ALLOW},
        {"a jump always", {BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0), RETURN(KILL), RETURN(ALLOW)}, {.nr = 9}, ALLOW},
        {"a division by zero ends with 0",
         {BPF_STMT(BPF_LDX | BPF_IMM, 0), OP_X(BPF_DIV), RETURN(ALLOW)},
         {.nr = 9},
         SECCOMP_RET_KILL_THREAD},
        {"an answer that is computed", {LOAD(nr), OP(BPF_OR, ALLOW), BPF_STMT(BPF_RET | BPF_A, 0)}, {.nr = 9}, ALLOW | 9},
        {"an answer that depends on what is not known",
         {ARG(0), OP(BPF_OR, ALLOW), BPF_STMT(BPF_RET | BPF_A, 0)},
         {.nr = 9},
         DP_BPF_UNSURE},
        {"no answer", {LOAD(nr)}, {.nr = 9}, DP_BPF_UNSURE},
};

static size_t length(const struct sock_filter *filter)
{
	static const struct sock_filter none;
	size_t n = 0;
	while (n < MOST && memcmp(&filter[n], &none, sizeof(none)) != 0)
		n++;
	return n;
}

Test(filter, answers)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		const struct test *t = &tests[i];
		const uint32_t got = dp_bpf_worst(t->filter, length(t->filter), &t->call);
		cr_expect_eq(got, t->answer, "%s: %#x, not %#x", t->what, got, t->answer);
	}
}

/* 2 to the power of 40 ways. */
Test(filter, too_many_ways_are_not_sure)
{
	struct sock_filter f[81];
	for (size_t i = 0; i < 80; i += 2) {
		f[i] = (struct sock_filter)ARG(0);
		f[i + 1] = (struct sock_filter)IF(BPF_JEQ, i, 0, 0);
	}
	f[80] = (struct sock_filter)RETURN(ALLOW);
	cr_expect_eq(dp_bpf_worst(f, 81, &(struct dp_bpf_call){.nr = 9}), DP_BPF_UNSURE);
}

Test(filter, order_of_severity)
{
	static const uint32_t order[] = {DP_BPF_UNSURE,
	                                 KILL,
	                                 SECCOMP_RET_KILL_THREAD,
	                                 SECCOMP_RET_TRAP,
	                                 EPERM_,
	                                 SECCOMP_RET_USER_NOTIF,
	                                 SECCOMP_RET_TRACE,
	                                 SECCOMP_RET_LOG,
	                                 ALLOW};
	for (size_t i = 0; i + 1 < sizeof(order) / sizeof(*order); i++) {
		cr_expect_eq(dp_bpf_worse(order[i], order[i + 1]), order[i]);
		cr_expect_eq(dp_bpf_worse(order[i + 1], order[i]), order[i]);
	}
}

/* ---- of a process ------------------------------------------------------------------------------------------------------- */

static void add_filter(long nr, uint32_t action)
{
	struct sock_filter filter[] = {LOAD(nr), IF(BPF_JEQ, (uint32_t)nr, 0, 1), RETURN(action), RETURN(ALLOW)};
	struct sock_fprog prog = {4, filter};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static void without_mremap(void)
{
	add_filter(SYS_ptrace, EPERM_);
	add_filter(SYS_mremap, SECCOMP_RET_TRAP);
	add_filter(SYS_process_vm_readv, EPERM_);
	tr_idle();
}

static void without_what_is_never_called(void)
{
	add_filter(SYS_ptrace, EPERM_);
	add_filter(SYS_kcmp, EPERM_);
	tr_idle();
}

static struct dp_filter_verdict judged(void (*fn)(void))
{
	struct dp_filter_verdict verdict = {0};
	struct dp_freeze f;
	if (!dp_filter_readable())
		cr_skip_test("needs CAP_SYS_ADMIN, and no filter of its own");
	const pid_t pid = tr_spawn(fn);
	const struct dp_process p = tr_process(pid);
	tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
	dp_filter_judge(pid, &verdict);
	dp_thaw_all(&f);
	tr_kill(pid);
	return verdict;
}

Test(filter, all_filters_of_a_thread_are_read)
{
	const struct dp_filter_verdict v = judged(without_mremap);
	cr_expect_eq(v.unreadable, 0);
	cr_expect_str_eq(v.forbids[DP_CALLS_ATTACH], "mremap sends SIGSYS");
	cr_expect_str_eq(v.forbids[DP_CALLS_HIT], "process_vm_readv fails with errno 1");
	cr_expect_str_eq(v.forbids[DP_CALLS_COPY], "");
	cr_expect_str_eq(v.forbids[DP_CALLS_ANY], "some call sends SIGSYS");
}

Test(filter, what_dynprobe_never_calls_may_be_forbidden)
{
	const struct dp_filter_verdict v = judged(without_what_is_never_called);
	for (unsigned kind = 0; kind < DP_CALLS_KINDS; kind++)
		cr_expect_str_eq(v.forbids[kind], "");
	cr_expect_eq(v.unreadable, 0);
}

Test(filter, verdict_of_a_process)
{
	struct dp_process p = {.filtered = true, .seccomp = true};
	struct dp_filter_verdict v = {.unreadable = 13};
	dp_filter_take(&p, &v);
	cr_expect(p.seccomp);
	cr_expect_not_null(dp_filter_forbids(&p, DP_CALLS_HIT));
	v = (struct dp_filter_verdict){.forbids = {[DP_CALLS_HIT] = "futex kills the process"}};
	dp_filter_take(&p, &v);
	cr_expect_not(p.seccomp);
	cr_expect_null(dp_filter_forbids(&p, DP_CALLS_ATTACH));
	cr_expect_str_eq(dp_filter_forbids(&p, DP_CALLS_HIT), "futex kills the process");
	p.filters = 2;
	cr_expect_not(dp_filter_is_new(&p, "Seccomp:\t2\nSeccomp_filters:\t2\n"));
	cr_expect(dp_filter_is_new(&p, "Seccomp:\t2\nSeccomp_filters:\t3\n"));
	cr_expect_not(dp_filter_is_new(&p, "Seccomp:\t0\nSeccomp_filters:\t0\n"));
}
