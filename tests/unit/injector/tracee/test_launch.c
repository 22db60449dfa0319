/* SPDX-License-Identifier: MIT */
/* Commands stopped at their entry point: no code of their own has run, and they run as if never stopped. */
#include "helper_tracee.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t entry_of(const struct dp_process *p)
{
	char path[64];
	uint64_t pair[2], entry = 0;
	snprintf(path, sizeof(path), "/proc/%d/auxv", p->pid);
	FILE *f = fopen(path, "r");
	while (f && fread(pair, sizeof(pair), 1, f) == 1)
		if (pair[0] == AT_ENTRY)
			entry = pair[1];
	if (f)
		fclose(f);
	return entry;
}

static int run_held(char *const argv[])
{
	struct dp_launch *l;
	struct dp_borrow *b;
	pid_t pid;
	int status;
	tr_ok(dp_launch_start(argv, &l, &pid));
	struct dp_freeze *f = dp_launch_freeze(l);
	struct dp_process p = tr_process(pid);
	cr_assert_eq(f->n, 1);
	cr_assert(dp_launch_is_static(l) || f->thread[0].regs.rip == entry_of(&p));
	tr_ok(dp_borrow_begin(&p, f, TR_LIMIT, false, &b));
	cr_assert_eq(tr_remote(b, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
	tr_ok(dp_borrow_end(b, NULL));
	dp_thaw_all(f);
	dp_launch_destroy(l);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

Test(launch, dynamic_command_runs_to_its_own_exit_status)
{
	int status = run_held((char *[]){"sh", "-c", "exit 42", NULL});
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 42, "%x", status);
}

Test(launch, command_that_dies_of_a_signal)
{
	int status = run_held((char *[]){"/bin/sh", "-c", "kill -USR1 $$", NULL});
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1, "%x", status);
}

Test(launch, static_command)
{
	char dir[] = "/tmp/dp-launch-XXXXXX", line[256];
	cr_assert_not_null(mkdtemp(dir));
	snprintf(line, sizeof(line), "cd %s && echo 'int main(void){return 7;}' > a.c && cc -static -o a a.c 2>/dev/null", dir);
	bool built = system(line) == 0;
	int status = 0;
	snprintf(line, sizeof(line), "%s/a", dir);
	if (built)
		status = run_held((char *[]){line, NULL});
	snprintf(line, sizeof(line), "rm -rf %s", dir);
	cr_assert_eq(system(line), 0);
	if (!built)
		cr_skip_test("no static libc here");
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%x", status);
}

Test(launch, text_and_entry_are_as_if_never_touched)
{
	struct dp_launch *l;
	pid_t pid;
	char out[64] = "";
	char path[] = "/tmp/dp-launch-out-XXXXXX", line[128];
	int fd = mkstemp(path);
	snprintf(line, sizeof(line), "exec > %s; echo $0 $1", path);
	tr_ok(dp_launch_start((char *[]){"sh", "-c", line, "zero", "one", NULL}, &l, &pid));
	dp_launch_destroy(l); /* detaches; the command continues */
	waitpid(pid, NULL, 0);
	cr_assert(read(fd, out, sizeof(out) - 1) > 0);
	cr_assert_str_eq(out, "zero one\n");
	close(fd);
	unlink(path);
}

Test(launch, refuse_DP_EXEC_names_the_reason)
{
	struct dp_launch *l;
	pid_t pid;
	struct dp_error *err = dp_launch_start((char *[]){"/nonexistent/command", NULL}, &l, &pid);
	cr_assert_not_null(err);
	cr_assert_eq(err->sys, ENOENT);
	tr_tag(err, DP_TAG_EXEC);
	err = dp_launch_start((char *[]){"/etc", NULL}, &l, &pid);
	cr_assert_not_null(err);
	cr_assert_eq(err->sys, EACCES);
	tr_tag(err, DP_TAG_EXEC);
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
}

static void launching_tool(void)
{
	struct dp_launch *l;
	pid_t pid;
	tr->ready = 1;
	for (;;)
		if (dp_launch_start((char *[]){"/bin/sh", "-c", "exit 0", NULL}, &l, &pid) == NULL) {
			dp_launch_destroy(l);
			int status;
			waitpid(pid, &status, 0);
			tr->calls++;
			tr->failed += status != 0;
		}
}

Test(launch, many_in_a_row)
{
	pid_t pid = tr_spawn(launching_tool);
	cr_assert(tr_await_value(&tr->calls, 30));
	cr_assert_eq(tr->failed, 0);
	tr_kill(pid);
}
