/* SPDX-License-Identifier: MIT */
/*
 * brood MODE [N]: forks N children at SIGUSR1, prints "GROWN", and lives on with them until SIGTERM, which it passes on. All of them
 * check the results of a probed function.
 *
 *   work       the children call it all the time
 *   idle       they call it only in the end
 *   hidden     they call it, and are not dumpable: another process of the same user must not read them
 *   nobody     they call it as another user
 *   namespace  the child calls it in a pid namespace of its own
 *   vfork      each child waits for its vfork child, which waits for the end
 *   storm      each child calls it, forks a successor and ends, as fast as possible
 *   orphans    the parent ends at once; each child prints "WORKER PID OK" in the end
 */
#include "target_foo.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define LAST_CALLS 100

static volatile sig_atomic_t go;
static volatile int *over; /* shared */
static int end_pipe[2];

static void on_usr1(int sig)
{
	(void)sig;
	go = 1;
}

static long make_calls(long n)
{
	long bad = 0;
	for (unsigned i = 0; i < (unsigned long)n; i++)
		bad += foo(i, "brood") != target_expected(i, "brood");
	return bad;
}

static long work(void)
{
	long bad = 0;
	while (!target_stop) {
		bad += make_calls(1);
		target_sleep_us(500);
	}
	return bad + make_calls(LAST_CALLS);
}

static long idle(void)
{
	while (!target_stop)
		target_sleep_us(1000000);
	return make_calls(LAST_CALLS);
}

static long in_vfork(void)
{
	char byte;
	close(end_pipe[1]);
	const pid_t pid = vfork();
	if (!pid) {
		while (read(end_pipe[0], &byte, 1) < 0 && errno == EINTR)
			;
		_exit(0);
	}
	return (pid < 0) + work();
}

static long storm(void)
{
	while (!*over) {
		if (make_calls(3))
			_exit(1);
		const pid_t pid = fork();
		if (pid)
			_exit(pid < 0);
	}
	return make_calls(LAST_CALLS);
}

static long orphan(void)
{
	char line[64];
	const long bad = work();
	const int n = snprintf(line, sizeof(line), "WORKER %d %s\n", (int)getpid(), bad ? "BAD" : "OK");
	return bad + (write(STDOUT_FILENO, line, (size_t)n) != n);
}

static long child(const char *mode)
{
	if (!strcmp(mode, "idle"))
		return idle();
	if (!strcmp(mode, "vfork"))
		return in_vfork();
	if (!strcmp(mode, "storm"))
		return storm();
	if (!strcmp(mode, "orphans"))
		return orphan();
	if (!strcmp(mode, "hidden") && prctl(PR_SET_DUMPABLE, 0))
		return 1;
	if (!strcmp(mode, "nobody") && setresuid(65534, 65534, 65534))
		return 1;
	return work();
}

static pid_t start(const char *mode)
{
	const unsigned long flags = SIGCHLD | (strcmp(mode, "namespace") ? 0 : CLONE_NEWPID);
	const pid_t pid = (pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0);
	if (!pid)
		_exit(child(mode) != 0);
	return pid;
}

/* Also the successors, of which it is the subreaper. */
static long await_all(void)
{
	int status;
	long bad = 0;
	for (;;) {
		const pid_t pid = wait(&status);
		if (pid < 0 && errno == ECHILD)
			return bad;
		bad += pid > 0 && status != 0;
	}
}

static long end_all(const pid_t *pid, long n)
{
	*over = 1;
	close(end_pipe[1]);
	for (long i = 0; i < n; i++)
		kill(pid[i], SIGTERM);
	return await_all();
}

/* Those that end early are reaped at once, so that a storm does not leave a zombie for each. */
static long live_on(void)
{
	int status;
	long bad = 0;
	while (!target_stop) {
		bad += make_calls(1);
		target_sleep_us(500);
		while (waitpid(-1, &status, WNOHANG) > 0)
			bad += status != 0;
	}
	return bad;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_usr1};
	const char *mode = argc > 1 ? argv[1] : "work";
	const long n = target_number(argc, argv, 2, 4);
	pid_t *pid = calloc((size_t)n + 1, sizeof(*pid));
	long bad = 0;

	over = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!pid || over == MAP_FAILED || pipe(end_pipe))
		return 9;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	target_stop_on_term();
	sigaction(SIGUSR1, &action, NULL);
	target_ready();
	while (!go && !target_stop) /* without calls: a limit on their number must not end a run before there are children */
		target_sleep_us(1000);
	for (long i = 0; i < n && go; i++)
		bad += (pid[i] = start(mode)) < 0;
	printf("GROWN\n");
	fflush(stdout);
	if (!strcmp(mode, "orphans"))
		return bad != 0;
	bad += live_on();
	bad += end_all(pid, n);
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
