/* SPDX-License-Identifier: MIT */
/* Commands under a seccomp filter before their first instruction: refused, recognised and never borrowed from, or let through. */
#include "helper_probe.h"

#include <criterion/criterion.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct dp_target_options allowing = {.allow_seccomp = true, .gates = true, .ring_size = 16384, .nslots = 16};
static char *const command[] = {"/bin/true", NULL};

static void filter(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = {1, &allow};
	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
}

static void refused(const struct dp_target_options *options)
{
	struct dp_target *none = NULL;
	struct dp_error *err = dp_target_launch(command, options, &none);
	cr_assert_not_null(err);
	cr_expect_not_null(strstr(err->message, "runs under a seccomp filter"), "%s", err->message);
	tr_tag(err, DP_TAG_SECCOMP);
}

/* The filter is this process's own, and a filtered process must not suspend another's. */
Test(launch_filtered, inherited_filter_is_refused)
{
	filter();
	refused(PR_GATES);
	refused(&allowing);
}

/* Compiles a library that installs a filter, which kills for one call; false without a compiler. */
static bool build_preload(const char *dir, long forbidden, char *path, size_t n)
{
	char line[1536];
	snprintf(path, n, "%s/filter.so", dir);
	snprintf(
	        line, sizeof(line),
	        "printf '#include <linux/filter.h>\n#include <linux/seccomp.h>\n#include <sys/prctl.h>\n"
	        "__attribute__((constructor)) static void f(void) {"
	        "struct sock_filter a[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, %ld, 0, 1),"
	        "BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};"
	        "struct sock_fprog p = {4, a};"
	        "prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p); }' > %s.c &&"
	        " cc -shared -fPIC -o %s %s.c",
	        forbidden, path, path, path);
	return system(line) == 0;
}

static bool may_read_filters(void)
{
	return geteuid() == 0 && prctl(PR_GET_SECCOMP) == 0;
}

static void with_preload(long forbidden, void (*fn)(void))
{
	char dir[] = "/tmp/dp-filtered-XXXXXX", preload[64], line[64];
	cr_assert_not_null(mkdtemp(dir));
	cr_assert(build_preload(dir, forbidden, preload, sizeof(preload)));
	setenv("LD_PRELOAD", preload, 1);
	fn();
	unsetenv("LD_PRELOAD");
	snprintf(line, sizeof(line), "rm -r %s", dir);
	cr_assert_eq(system(line), 0);
}

static void is_known(void)
{
	struct dp_target *t = NULL;
	refused(PR_GATES);
	if (!may_read_filters()) {
		refused(&allowing);
		return;
	}
	tr_ok(dp_target_launch(command, &allowing, &t));
	dp_target_close(t);
}

Test(launch_filtered, filter_of_a_preloaded_library_is_known)
{
	with_preload(SYS_mremap, is_known);
}

static void is_let_through(void)
{
	struct dp_target *t = NULL;
	if (!may_read_filters()) {
		refused(PR_GATES);
		return;
	}
	tr_ok(dp_target_launch(command, PR_GATES, &t));
	cr_expect_not(dp_target_filtered(t));
	dp_target_close(t);
}

Test(launch_filtered, filter_that_forbids_nothing_of_ours_is_no_reason)
{
	with_preload(SYS_ptrace, is_let_through);
}

static void is_kept_to_registers(void)
{
	struct dp_target *t = NULL;
	if (!may_read_filters())
		return;
	tr_ok(dp_target_launch(command, PR_GATES, &t));
	cr_expect(dp_target_filtered(t));
	cr_expect_str_eq(dp_target_filter_rule(t), "process_vm_readv kills the process");
	dp_target_close(t);
}

Test(launch_filtered, filter_that_forbids_what_hits_call_is_named)
{
	with_preload(SYS_process_vm_readv, is_kept_to_registers);
}

Test(launch_filtered, other_commands_are_not_taken_for_filtered)
{
	struct dp_target *t = NULL;
	if (prctl(PR_GET_SECCOMP) != 0) {
		refused(PR_GATES);
		return;
	}
	tr_ok(dp_target_launch(command, PR_GATES, &t));
	cr_expect_not(dp_target_filtered(t));
	dp_target_close(t);
}
