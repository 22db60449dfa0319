/* SPDX-License-Identifier: MIT */
/*
 * G1 for resident probes: the tool is killed at its system calls while it leaves, replaces, removes or records probes. The target
 * continues with correct results; the next tool finds only complete groups, and can remove them without a trace.
 */
#include "helper_probe.h"

#include "injector/resident/resident.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLES (getenv("DP_FULL") ? 40 : 6)

static const struct pr_ask both[] = {{PR_FOO, false}, {PR_BAR, true}};

static void attach(pid_t pid)
{
	struct dp_target *t = pr_open(pid, PR_GATES);
	pr_placed(t, both, 2);
	tr_ok(dp_target_keep(t, "old"));
	dp_target_close(t);
}

static void attach_two(pid_t pid)
{
	struct dp_target *t = pr_open(pid, PR_GATES);
	pr_placed(t, (const struct pr_ask[]){{PR_FOO, false}, {PR_BAZ, false}, {PR_BAR, true}}, 3);
	tr_ok(dp_target_keep(t, "old"));
	dp_target_close(t);
}

static void supersede(pid_t pid)
{
	struct dp_remove_report report;
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_ok(dp_resident_supersede(pr_named(t, "old"), 0));
	pr_placed(t, both, 2);
	tr_ok(dp_target_keep(t, "new"));
	tr_ok(dp_resident_remove(pr_named(t, "old"), (const bool[]){true, false}, &report));
	dp_target_close(t);
}

static void remove_one(pid_t pid)
{
	struct dp_remove_report report;
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_ok(dp_resident_remove(pr_named(t, "old"), (const bool[]){true, false}, &report));
	dp_target_close(t);
}

static void remove_all(pid_t pid)
{
	struct dp_remove_report report;
	struct dp_target *t = pr_open(pid, PR_GATES);
	for (size_t i = 0; i < dp_target_nresidents(t); i++)
		tr_ok(dp_resident_remove(dp_target_resident(t, i), NULL, &report));
	const bool left = dp_target_nresidents(t) && (report.left_bytes || report.left_sites);
	if (left && tr_may_give_up)
		_exit(TR_GAVE_UP);
	cr_expect(!left, "%s", report.why);
	dp_target_close(t);
}

static void see(const struct dp_hit *hit, void *data)
{
	(void)hit;
	(void)data;
}

static void record(pid_t pid)
{
	struct dp_target *t = pr_open(pid, PR_GATES);
	struct dp_resident *s = pr_named(t, "old");
	tr_ok(dp_resident_set_manifest(s, "being recorded"));
	tr_ok(dp_resident_serve(s));
	for (int i = 0; i < 20; i++)
		tr_ok(dp_resident_drain(s, i == 19, see, NULL));
	tr_ok(dp_resident_release(s));
	tr_ok(dp_resident_set_manifest(s, "old"));
	dp_target_close(t);
}

/* Runs `tool` and kills it at stop number `at` (0: never), unless it ends or gives up before. Returns the number of stops. */
static long run_killed(void (*tool)(pid_t), pid_t target, long at)
{
	pid_t pid = fork();
	int status;
	long stops = 0;
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		tr_may_give_up = true;
		tool(target);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(long)PTRACE_O_TRACESYSGOOD);
	for (long pass = 0;
	     !ptrace(PTRACE_SYSCALL, pid, NULL, (void *)pass) && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status);) {
		pass = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
		if (!pass && ++stops == at) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			break;
		}
	}
	/* The number of calls varies between runs: the tool may have finished earlier. */
	cr_assert(WIFSIGNALED(status) ? at : !(WEXITSTATUS(status) & ~TR_GAVE_UP), "the tool ended with %x at stop %ld of %ld",
	          status, stops, at);
	return stops;
}

static bool claimed(struct dp_target *t, unsigned which)
{
	for (size_t i = 0; i < dp_target_nresidents(t); i++) {
		struct dp_resident *s = dp_target_resident(t, i);
		for (unsigned k = 0; k < dp_resident_nprobes(s); k++)
			if (dp_resident_site(s, k) == pr_addr(which))
				return pr_is_hit(s, k);
	}
	return false;
}

/* What a later tool finds: each patched site belongs to a group and is hit; each manifest is one that was written. */
static void whole(pid_t pid, long at)
{
	pr_goes_on();
	struct dp_target *t = pr_open(pid, PR_GATES);
	for (unsigned which = PR_FOO; which <= PR_BAZ; which += PR_BAZ)
		cr_assert(claimed(t, which) != pr_original(pid, which), "function %u after stop %ld", which, at);
	for (size_t i = 0; i < dp_target_nresidents(t); i++) {
		const char *text = dp_resident_manifest(dp_target_resident(t, i));
		cr_assert(!strcmp(text, "old") || !strcmp(text, "new") || !strcmp(text, "being recorded"), "%s", text);
		for (unsigned k = 0; k < dp_resident_nprobes(dp_target_resident(t, i)); k++)
			cr_assert_not(dp_resident_retired(dp_target_resident(t, i), k), "stop %ld", at);
	}
	dp_target_close(t);
}

static void clean(pid_t pid, long at)
{
	remove_all(pid);
	pr_goes_on();
	cr_assert_eq(pr_mappings(pid), 0, "after stop %ld", at);
	for (unsigned which = PR_FOO; which <= PR_BAZ; which++)
		cr_assert(pr_original(pid, which), "after stop %ld", at);
}

static void deaths(void (*before)(pid_t), void (*tool)(pid_t))
{
	pid_t pid = tr_spawn(pr_calling_threads);
	const unsigned seed = (unsigned)getpid();
	srand(seed);
	if (before)
		before(pid);
	tool(pid); /* not traced, it may not give up */
	clean(pid, 0);
	if (before)
		before(pid);
	const long total = run_killed(tool, pid, 0);
	clean(pid, total);
	const size_t lines = pr_lines(pid), descriptors = pr_descriptors(pid);
	for (int i = 0; i < SAMPLES; i++) {
		const long from = total * i / SAMPLES, to = total * (i + 1) / SAMPLES, at = 1 + from + rand() % (to - from);
		if (before)
			before(pid);
		run_killed(tool, pid, at);
		whole(pid, at);
		clean(pid, at);
		cr_assert_eq(pr_descriptors(pid), descriptors, "after stop %ld", at);
	}
	/* A kill between the first mapping and the word that marks it as ours leaves a mapping; few kills are that precise. */
	cr_assert_leq(pr_lines(pid), lines + 4, "seed %u", seed);
	tr_kill(pid);
}

/* Without the timeout, a tool whose own assertions fail would wait forever. */
#define DEATH(name) Test(resident_death, name, .timeout = 600)

DEATH(while_leaving_probes)
{
	deaths(NULL, attach);
}

DEATH(while_putting_new_ones_in_their_place)
{
	deaths(attach, supersede);
}

DEATH(while_replacing_one_of_two)
{
	deaths(attach_two, supersede);
}

DEATH(while_taking_one_out)
{
	deaths(attach_two, remove_one);
}

DEATH(while_taking_all_out)
{
	deaths(attach_two, remove_all);
}

DEATH(while_recording)
{
	deaths(attach, record);
}
