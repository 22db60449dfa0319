/* SPDX-License-Identifier: MIT */
/*
 * A program that uses signals, to be probed with traps: it sets and reads masks and actions in every way, has a SIGTRAP handler
 * and int3s of its own, starts threads all the time (with all signals blocked), forks, and waits with temporary signal masks.
 * Each result is compared with that without probes.
 *
 *	trapped SECONDS
 */
#include "target.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static atomic_ulong calls, own_traps, sent, failures;
static time_t until;

static void bad(const char *what, int line)
{
	if (atomic_fetch_add(&failures, 1) < 5)
		fprintf(stderr, "trapped: line %d: %s\n", line, what);
}
#define CHECK(x) ((x) ? (void)0 : bad(#x, __LINE__))

/* The probed functions: by name, at each instruction. */
TARGET_PROBED unsigned long trapped_work(unsigned long x)
{
	__asm__ volatile("" : "+r"(x));
	x = x * 3 + 1;
	x ^= x >> 7;
	__asm__ volatile("" : "+r"(x));
	return x;
}

static void work(void)
{
	unsigned long x = 7, y = 7;
	for (int i = 0; i < 20; i++) {
		x = trapped_work(x);
		y = y * 3 + 1;
		y ^= y >> 7;
	}
	CHECK(x == y);
	atomic_fetch_add(&calls, 20);
}

static bool running(void)
{
	return !target_stop && time(NULL) < until;
}

/* ---- the program's own traps ------------------------------------------------------------------------------------------ */

static __thread int in_int3;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	(void)context;
	CHECK(sig == SIGTRAP);
	if (info->si_code == SI_KERNEL && in_int3)
		atomic_fetch_add(&own_traps, 1);
	else if (info->si_code == SI_TKILL || info->si_code == SI_USER)
		atomic_fetch_add(&sent, 1);
	else
		bad("an unexpected SIGTRAP", __LINE__);
	work();
}

static void own_int3(void)
{
	const unsigned long before = atomic_load(&own_traps);
	in_int3 = 1;
	__asm__ volatile("int3");
	in_int3 = 0;
	CHECK(atomic_load(&own_traps) > before);
}

/* ---- what a program sees of its signal settings ----------------------------------------------------------------------- */

static void actions(void)
{
	struct sigaction old, new = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO}, again;
	sigfillset(&new.sa_mask);
	CHECK(!sigaction(SIGTRAP, NULL, &old) && old.sa_sigaction == on_trap);
	CHECK(!sigaction(SIGTRAP, &new, &again) && again.sa_sigaction == on_trap);
	CHECK(!memcmp(&again.sa_mask, &old.sa_mask, 8));
	CHECK(!sigaction(SIGTRAP, &old, &again) && sigismember(&again.sa_mask, SIGUSR1) == 1);
	CHECK(syscall(SYS_rt_sigaction, SIGTRAP, 8L, NULL, 8L) == -1 && errno == EFAULT);
	CHECK(syscall(SYS_rt_sigaction, SIGTRAP, NULL, NULL, 4L) == -1 && errno == EINVAL);
	CHECK(sigaction(SIGKILL, &new, NULL) == -1 && errno == EINVAL);
}

static void other_actions(void)
{
	struct sigaction old, new = {.sa_handler = SIG_IGN}, again;
	CHECK(!sigaction(SIGUSR2, NULL, &old) && sigismember(&old.sa_mask, SIGTRAP) == 1);
	sigemptyset(&new.sa_mask);
	CHECK(!sigaction(SIGWINCH, &new, NULL) && !sigaction(SIGWINCH, NULL, &again) && !sigismember(&again.sa_mask, SIGTRAP));
	sigaddset(&new.sa_mask, SIGTRAP);
	CHECK(!sigaction(SIGWINCH, &new, NULL) && !sigaction(SIGWINCH, NULL, &again) &&
	      sigismember(&again.sa_mask, SIGTRAP) == 1);
}

static void masks(void)
{
	sigset_t all, old, now;
	sigfillset(&all);
	CHECK(!pthread_sigmask(SIG_BLOCK, &all, &old) && !sigismember(&old, SIGTRAP));
	work();
	CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &now) && sigismember(&now, SIGTRAP) == 1 && sigismember(&now, SIGHUP) == 1);
	raise(SIGTRAP);
	const unsigned long before = atomic_load(&sent);
	work();
	sigemptyset(&now);
	sigaddset(&now, SIGTRAP);
	CHECK(!pthread_sigmask(SIG_UNBLOCK, &now, &all) && sigismember(&all, SIGTRAP) == 1);
	CHECK(atomic_load(&sent) > before);
	CHECK(!pthread_sigmask(SIG_SETMASK, &old, &now) && !sigismember(&now, SIGTRAP) && sigismember(&now, SIGHUP) == 1);
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &now) && !memcmp(&now, &old, 8));
	CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, 8L, NULL, 8L) == -1 && errno == EFAULT);
	CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, 8L, 8L) == -1 && errno == EFAULT);
	CHECK(syscall(SYS_rt_sigprocmask, 77, &all, NULL, 8L) == -1 && errno == EINVAL);
	CHECK(!pthread_sigmask(SIG_SETMASK, &old, NULL));
}

/* ---- waits with temporary signal masks -------------------------------------------------------------------------------- */

static void on_usr(int sig)
{
	(void)sig;
	work();
}

static void waits(void)
{
	sigset_t all_but_one, before, now;
	const struct timespec soon = {.tv_nsec = 1000000};
	struct epoll_event event;
	const int fd = epoll_create1(EPOLL_CLOEXEC);
	sigfillset(&all_but_one);
	sigdelset(&all_but_one, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	CHECK(ppoll(NULL, 0, &soon, &all_but_one) == 0);
	CHECK(pselect(0, NULL, NULL, NULL, &soon, &all_but_one) == 0);
	CHECK(epoll_pwait(fd, &event, 1, 1, &all_but_one) == 0);
	close(fd);
	sigset_t usr;
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &usr, NULL);
	pthread_kill(pthread_self(), SIGUSR2);
	CHECK(sigsuspend(&all_but_one) == -1 && errno == EINTR);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	CHECK(!memcmp(&before, &now, 8));
}

/* ---- threads and children --------------------------------------------------------------------------------------------- */

static void *shortly(void *arg)
{
	work();
	if (arg)
		masks();
	return NULL;
}

static void *storm(void *arg)
{
	while (running()) {
		pthread_t t[4];
		for (int i = 0; i < 4; i++)
			CHECK(!pthread_create(&t[i], NULL, shortly, i ? NULL : &t));
		work();
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
	}
	return arg;
}

static void child(void)
{
	const pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		atomic_store(&failures, 0);
		work();
		masks();
		actions();
		own_int3();
		_exit(atomic_load(&failures) ? 1 : 42);
	}
	int status = 0;
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

/* A child without a SIGTRAP handler dies of its own int3, wherever it was probed. */
static void dying_child(bool own)
{
	const pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_DUMPABLE, 0);
		signal(SIGTRAP, SIG_DFL);
		work();
		if (own)
			__asm__ volatile("int3");
		else
			raise(SIGTRAP);
		_exit(1);
	}
	int status = 0;
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP);
}

static void *careful(void *arg)
{
	while (running()) {
		masks();
		actions();
		other_actions();
		waits();
		own_int3();
		work();
	}
	return arg;
}

int main(int argc, char **argv)
{
	struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO}, usr = {.sa_handler = on_usr};
	pthread_t stormy, other;
	until = time(NULL) + (argc > 1 ? atoi(argv[1]) : 3);
	target_stop_on_term();
	sigemptyset(&trap.sa_mask);
	sigaddset(&trap.sa_mask, SIGUSR1);
	sigfillset(&usr.sa_mask);
	sigaction(SIGTRAP, &trap, NULL);
	sigaction(SIGUSR2, &usr, NULL);
	work();
	target_ready();
	if (pthread_create(&stormy, NULL, storm, NULL) || pthread_create(&other, NULL, careful, NULL))
		return 1;
	while (running()) {
		child();
		target_sleep_us(2000);
	}
	pthread_join(other, NULL);
	for (int i = 0; i < 3; i++) {
		child();
		dying_child(i & 1);
	}
	pthread_join(stormy, NULL);
	printf("calls %lu, own traps %lu, sent %lu\n", atomic_load(&calls), atomic_load(&own_traps), atomic_load(&sent));
	printf("RESULT %s\n", atomic_load(&failures) ? "BAD" : "OK");
	return atomic_load(&failures) != 0;
}
