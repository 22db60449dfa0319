/* SPDX-License-Identifier: MIT */
/*
 * family MODE [N [now]]: a tree of processes that call a probed function; each prints "CALLED PID NUMBER" when it has made its
 * calls. Begins at SIGUSR1, or at once.
 *
 *   tree N      three generations with threads: process number k of its parent makes N + k calls in each thread
 *   raw N       one child by a raw clone, which leaves its parent's thread id in the thread control block
 *   namespace N one child in a pid namespace of its own, which makes N slow calls in a thread
 *   headless N  one child whose first thread ends, and whose second makes N slow calls
 *   filtered N  one child that puts itself under a seccomp filter, which allows everything, and makes N slow calls
 *   hidden N    one child that nobody but root may read; it and its parent make N slow calls
 *   execs N     one child that makes N calls, then executes another program
 *   leaves N now PROGRAM [ARGS...]
 *               N calls; then executes PROGRAM, and a child makes N slow calls once that has happened
 *   orphans N   the parent ends at once, its children call on
 *   burst N     N short children, one after the other
 *   inside N    three generations, each of which calls spawn() N times: that forks, and returns in the child too, which calls on
 *   on          parent and two children call until SIGTERM, which the parent passes on
 */
#include "target_foo.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define GENERATIONS 3
#define CHILDREN    2
#define THREADS     2

static volatile sig_atomic_t go;
static long calls;
static char **program; /* of "leaves" */

static void on_usr1(int sig)
{
	(void)sig;
	go = 1;
}

static long make_calls(long n)
{
	long bad = 0;
	for (unsigned i = 0; i < (unsigned long)n; i++)
		bad += foo(i, "family") != target_expected(i, "family");
	return bad;
}

static void say(long n)
{
	char line[64];
	const int length = snprintf(line, sizeof(line), "CALLED %d %ld\n", (int)getpid(), n);
	if (write(STDOUT_FILENO, line, (size_t)length) != length)
		_exit(9);
}

static long await_children(void)
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

static void *thread(void *arg)
{
	return (void *)make_calls((long)arg);
}

static long with_threads(long n)
{
	pthread_t t[THREADS];
	void *result;
	long bad = 0;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, thread, (void *)n))
			_exit(8);
	bad += make_calls(n);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], &result);
		bad += (long)result;
	}
	return bad;
}

static long tree(int generation, long n)
{
	long bad = with_threads(n);
	say((THREADS + 1) * n);
	for (int k = 1; generation < GENERATIONS && k <= CHILDREN; k++) {
		const pid_t pid = fork();
		if (!pid)
			_exit(tree(generation + 1, calls + k) != 0);
		bad += pid < 0;
	}
	return bad + await_children();
}

static long raw(void)
{
	long bad = make_calls(calls);
	const pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		bad = make_calls(calls);
		char line[64];
		const int length = snprintf(line, sizeof(line), "CALLED %d %ld\n", (int)syscall(SYS_getpid), calls);
		_exit(bad || write(STDOUT_FILENO, line, (size_t)length) != length);
	}
	bad += make_calls(calls);
	say(2 * calls);
	return bad + await_children();
}

static long call_slowly(void)
{
	long bad = 0;
	for (long i = 0; i < calls; i++) {
		bad += make_calls(1);
		target_sleep_us(1000);
	}
	say(calls);
	return bad;
}

static void slow_calls(void)
{
	_exit(call_slowly() != 0);
}

static void *slow_thread(void *arg)
{
	(void)arg;
	slow_calls();
	return NULL;
}

static void in_thread(void)
{
	pthread_t t;
	make_calls(1);
	if (pthread_create(&t, NULL, slow_thread, NULL))
		_exit(8);
	pthread_exit(NULL);
}

static long by_clone(unsigned long flags)
{
	const pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
	if (!pid)
		in_thread();
	return (pid < 0) + await_children();
}

static long filtered(void)
{
	struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog filter = {1, allow};
	const pid_t pid = fork();
	if (!pid) {
		make_calls(1);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
			_exit(9);
		slow_calls();
	}
	return (pid < 0) + await_children();
}

static long hidden(void)
{
	const pid_t pid = fork();
	if (!pid) {
		if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
			_exit(9);
		slow_calls();
	}
	return (pid < 0) + call_slowly() + await_children();
}

static long headless(void)
{
	const pid_t pid = fork();
	if (!pid)
		in_thread();
	return (pid < 0) + await_children();
}

static long execs(void)
{
	const pid_t pid = fork();
	if (!pid) {
		make_calls(calls);
		say(calls);
		execl("/bin/sleep", "sleep", "2.5", (char *)NULL);
		_exit(1);
	}
	make_calls(calls);
	say(calls);
	return (pid < 0) + await_children();
}

static long leaves(void)
{
	int gone[2];
	char byte;
	make_calls(calls);
	say(calls);
	if (pipe2(gone, O_CLOEXEC))
		return 1;
	if (!fork()) {
		close(gone[1]);
		if (read(gone[0], &byte, 1)) /* the end of file: its parent executes the program */
			_exit(1);
		slow_calls();
	}
	execv(program[0], program);
	return 1;
}

static void orphans(void)
{
	for (int k = 0; k < CHILDREN; k++)
		if (!fork())
			slow_calls();
}

static long burst(void)
{
	long bad = 0;
	for (long i = 0; i < calls; i++) {
		if (!fork())
			_exit(make_calls(3) != 0);
		bad += await_children();
	}
	say(0);
	return bad;
}

TARGET_PROBED pid_t spawn(void)
{
	volatile pid_t pid = fork(); /* no tail jump: it returns */
	return pid;
}

/* Each child, too, calls foo() three times, so that its own calls are known. */
static long inside(int generation)
{
	long bad = 0;
	for (long i = 0; generation < GENERATIONS && i < calls; i++) {
		const pid_t pid = spawn();
		if (!pid)
			_exit(inside(generation + 1) != 0);
		bad += (pid < 0) + await_children();
	}
	bad += make_calls(3);
	say(3);
	return bad;
}

static long call_on(void)
{
	long bad = 0;
	while (!target_stop) {
		bad += make_calls(1);
		target_sleep_us(500);
	}
	return bad;
}

static long on(void)
{
	pid_t pid[CHILDREN];
	long bad = 0;
	for (int k = 0; k < CHILDREN; k++)
		if (!(pid[k] = fork()))
			_exit(call_on() != 0);
	bad += call_on();
	for (int k = 0; k < CHILDREN; k++)
		kill(pid[k], SIGTERM);
	return bad + await_children();
}

static long run(const char *mode)
{
	if (!strcmp(mode, "tree"))
		return tree(1, calls);
	if (!strcmp(mode, "raw"))
		return raw();
	if (!strcmp(mode, "burst"))
		return burst();
	if (!strcmp(mode, "inside"))
		return inside(1);
	if (!strcmp(mode, "on"))
		return on();
	if (!strcmp(mode, "namespace"))
		return by_clone(CLONE_NEWPID);
	if (!strcmp(mode, "filtered"))
		return filtered();
	if (!strcmp(mode, "hidden"))
		return hidden();
	if (!strcmp(mode, "headless"))
		return headless();
	if (!strcmp(mode, "execs"))
		return execs();
	if (!strcmp(mode, "leaves"))
		return leaves();
	orphans();
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_usr1};
	const char *mode = argc > 1 ? argv[1] : "tree";
	long bad;

	calls = target_number(argc, argv, 2, 100);
	program = argc > 4 ? argv + 4 : argv + argc;
	target_stop_on_term();
	sigaction(SIGUSR1, &action, NULL);
	target_ready();
	while (argc <= 3 && !go) /* with a third argument: at once */
		target_sleep_us(1000);
	bad = run(mode);
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
