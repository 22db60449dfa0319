/* SPDX-License-Identifier: MIT */
/* Programs that are taken over in their exec: held at the entry point, and run as if never stopped. */
#include "helper_tracee.h"
#include "injector/tracee/stop/freeze.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELD_NS UINT64_C(20000000000)

/* Forks, lets the child execute `argv`, and takes the program over. */
static struct dp_launch *take(char *const argv[], bool blocked, pid_t *pid)
{
	struct dp_launch *l = NULL;
	int go[2];
	sigset_t urgent;
	cr_assert_eq(pipe(go), 0);
	if (!(*pid = fork())) {
		char byte;
		sigemptyset(&urgent);
		sigaddset(&urgent, SIGURG);
		sigprocmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &urgent, NULL);
		close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			execv(argv[0], argv);
		_exit(126);
	}
	close(go[0]);
	cr_assert_eq(ptrace(PTRACE_SEIZE, *pid, NULL, (void *)(long)DP_SEIZE_OPTIONS), 0);
	cr_assert_eq(write(go[1], "", 1), 1);
	close(go[1]);
	cr_assert_eq(dp_stop_wait(*pid, dp_now_ns() + HELD_NS).kind, DP_STOP_EXEC);
	tr_ok(dp_launch_adopt(&(struct dp_launch_adopted){.pid = *pid, .until_ns = dp_now_ns() + HELD_NS}, &l));
	return l;
}

static int run(char *const argv[], bool blocked)
{
	pid_t pid;
	int status;
	struct dp_borrow *b;
	struct dp_launch *l = take(argv, blocked, &pid);
	struct dp_freeze *f = dp_launch_freeze(l);
	struct dp_process p = tr_process(pid);
	cr_assert_eq(f->n, 1);
	tr_ok(dp_borrow_begin(&p, f, TR_LIMIT, false, &b));
	cr_assert_eq(tr_remote(b, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
	tr_ok(dp_borrow_end(b, NULL));
	dp_thaw_all(f);
	dp_launch_destroy(l);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

/* At its end the program calls what the loader left in rdx. */
Test(launch_adopt, program_runs_to_its_own_exit_status)
{
	cr_assert_eq(run((char *[]){"/bin/sh", "-c", "exit 42", NULL}, false), W_EXITCODE(42, 0));
	cr_assert_eq(run((char *[]){"/bin/true", NULL}, false), 0);
}

Test(launch_adopt, loader_is_not_stopped_at_each_call)
{
	pid_t pid;
	unsigned long switches = 0;
	struct dp_launch *l = take((char *[]){"/bin/true", NULL}, false, &pid);
	char line[256], path[64];
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "voluntary_ctxt_switches: %lu", &switches);
	if (f)
		fclose(f);
	dp_launch_destroy(l);
	waitpid(pid, NULL, 0);
	/* Each stop is a switch: some ten for exec, its end, the signal and the report. The loader makes some thirty calls. */
	cr_assert_lt(switches, 30, "%lu switches", switches);
}

/* The signal that reports is taken out of the queue also if the program inherits a mask that blocks it. */
Test(launch_adopt, blocked_signals_stay_blocked_and_none_stays_pending)
{
	static char check[] =
	        "/^SigBlk/ && $2 !~ /400000$/ {bad = 1} /^S..Pnd/ && $2 !~ /^0+$/ {bad = 1} END {exit bad ? 1 : 42}";
	const int status = run((char *[]){"/usr/bin/awk", check, "/proc/self/status", NULL}, true);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 42, "%x", status);
}

/* A library's constructor has a handler for it, and its destructor says how often that ran. */
Test(launch_adopt, handler_of_a_library_is_not_called)
{
	char dir[] = "/tmp/dp-adopt-XXXXXX", line[1024], path[64];
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/l.so", dir);
	snprintf(
	        line, sizeof(line),
	        "printf '#include <signal.h>\n#include <unistd.h>\nstatic volatile int n; static void on(int s) { n += s; }"
	        "__attribute__((constructor)) static void f(void) { signal(SIGURG, on); }"
	        "__attribute__((destructor)) static void g(void) { if (n) _exit(9); }' > %s/l.c && cc -shared -fPIC -o %s %s/l.c",
	        dir, path, dir);
	const bool built = system(line) == 0;
	setenv("LD_PRELOAD", path, 1);
	const int status = built ? run((char *[]){"/bin/true", NULL}, false) : 0;
	unsetenv("LD_PRELOAD");
	snprintf(line, sizeof(line), "rm -rf %s", dir);
	cr_assert_eq(system(line), 0);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
}

/* A constructor that executes another program: that one is held, and not the code of the first. */
Test(launch_adopt, program_that_a_constructor_executes_is_the_one_that_is_held)
{
	char dir[] = "/tmp/dp-adopt-XXXXXX", line[1024], path[64];
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/l.so", dir);
	snprintf(line, sizeof(line),
	         "printf '#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) static void f(void)"
	         "{ unsetenv(\"LD_PRELOAD\"); execl(\"/bin/sh\", \"sh\", \"-c\", \"exit 42\", (char *)0); }' > %s/l.c"
	         " && cc -shared -fPIC -o %s %s/l.c",
	         dir, path, dir);
	const bool built = system(line) == 0;
	setenv("LD_PRELOAD", path, 1);
	const int status = built ? run((char *[]){"/bin/true", NULL}, false) : W_EXITCODE(42, 0);
	unsetenv("LD_PRELOAD");
	snprintf(line, sizeof(line), "rm -rf %s", dir);
	cr_assert_eq(system(line), 0);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 42, "%x", status);
}
