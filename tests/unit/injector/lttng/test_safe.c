/* SPDX-License-Identifier: MIT */
/*
 * Safe points: a thread is not borrowed in code that takes the lock of the loader, malloc or the thread list, at any depth;
 * stale words on its stack do not count.
 */
#include "helper_tracee.h"

#include "injector/lttng/safe/safe.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/stop/freeze.h"

#include <alloca.h>
#include <criterion/criterion.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- targets ------------------------------------------------------------------------------------------------------------ */

static void plainly_blocked(void)
{
	tr_idle();
}

/* Leaves return addresses of malloc and of its callees where a later frame has its uninitialised locals. */
static __attribute__((noinline)) void litter(void)
{
	volatile char deep[2048];
	deep[0] = 1;
	void *p[64];
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 64; i++)
			p[i] = malloc((size_t)(100 + i * 977 + deep[0]));
		for (int i = 0; i < 64; i++)
			free(p[i]);
	}
}

static __attribute__((noinline)) void among_stale_words(void)
{
	volatile char *room = alloca(16384);
	room[0] = 1;
	tr_idle();
}

static void littered(void)
{
	litter();
	among_stale_words();
}

static int in_callback(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info;
	(void)size;
	(void)data;
	tr_idle();
	return 0;
}

static void in_the_loader(void)
{
	dl_iterate_phdr(in_callback, NULL);
}

static void in_exit(void)
{
	atexit(tr_idle);
	exit(0);
}

static void in_fork(void)
{
	pthread_atfork(tr_idle, NULL, NULL);
	if (fork() == 0)
		_exit(0);
}

static void on_signal(int sig)
{
	(void)sig;
	tr_idle();
}

static int raise_in_callback(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info;
	(void)size;
	(void)data;
	raise(SIGUSR1);
	return 0;
}

static void in_a_handler_over_the_loader(void)
{
	signal(SIGUSR1, on_signal);
	dl_iterate_phdr(raise_in_callback, NULL);
}

static void in_a_handler_on_another_stack(void)
{
	const stack_t stack = {.ss_sp = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	                       .ss_size = 65536};
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	dl_iterate_phdr(raise_in_callback, NULL);
}

static void in_a_handler_over_nothing(void)
{
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
}

static void *thread_body(void *arg)
{
	(void)arg;
	tr->value[0] = gettid();
	tr_idle();
	return NULL;
}

static void in_a_thread(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, thread_body, NULL);
	pthread_join(thread, NULL);
}

static void *dying_body(void *arg)
{
	return arg;
}

static void dying_destructor(void *arg)
{
	thread_body(arg);
}

static void *body_with_destructor(void *arg)
{
	pthread_setspecific(*(pthread_key_t *)arg, arg);
	return dying_body(arg);
}

static void in_a_dying_thread(void)
{
	static pthread_key_t key;
	pthread_t thread;
	pthread_key_create(&key, dying_destructor);
	pthread_create(&thread, NULL, body_with_destructor, &key);
	pthread_join(thread, NULL);
}

static int raw_body(void *arg)
{
	thread_body(arg);
	return 0;
}

static void in_a_raw_clone(void)
{
	char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	clone(raw_body, stack + 65536, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, NULL);
	tr_idle();
}

/* ---- the check ---------------------------------------------------------------------------------------------------------- */

static enum dp_safe_outcome judge(const struct dp_process *p, pid_t tid, char why[128])
{
	struct dp_image *image = NULL;
	struct dp_safe *safe = NULL;
	struct dp_held h;
	enum dp_safe_outcome outcome = DP_SAFE_GONE;
	char *maps = NULL;
	tr_ok(dp_process_maps(p, &maps));
	tr_ok(dp_image_create(maps, "", p->pid, &image));
	tr_ok(dp_safe_create(image, 0, 0, &safe));
	tr_ok(dp_safe_take(safe, p, tid, &h, &outcome, why));
	if (outcome == DP_SAFE_HELD)
		dp_held_release(&h);
	dp_safe_destroy(safe);
	dp_image_destroy(image);
	free(maps);
	return outcome;
}

static void expect(void (*target)(void), bool in_other_thread, const char *reason)
{
	char why[128] = "";
	const pid_t pid = tr_spawn(target);
	if (in_other_thread)
		cr_assert(tr_await_value(&tr->value[0], 1));
	const pid_t tid = in_other_thread ? (pid_t)tr->value[0] : pid;
	long nr;
	uint64_t words[6];
	cr_assert(until(dp_proc_syscall(pid, tid, &nr, words) && nr == SYS_pause));
	const struct dp_process p = tr_process(pid);
	const enum dp_safe_outcome outcome = judge(&p, tid, why);
	if (reason)
		cr_assert(outcome == DP_SAFE_UNSAFE && strstr(why, reason), "outcome %d: %s", outcome, why);
	else
		cr_assert(outcome == DP_SAFE_HELD, "outcome %d: %s", outcome, why);
	tr_kill(pid);
}

Test(safe, blocked_in_its_own_function)
{
	expect(plainly_blocked, false, NULL);
}

Test(safe, stale_words_of_malloc_do_not_count)
{
	expect(littered, false, NULL);
}

Test(safe, callback_of_dl_iterate_phdr)
{
	expect(in_the_loader, false, "dl_iterate_phdr");
}

Test(safe, handler_of_exit)
{
	expect(in_exit, false, "exit");
}

Test(safe, handler_of_fork)
{
	expect(in_fork, false, "ork");
}

Test(safe, signal_handler_that_interrupted_the_loader)
{
	expect(in_a_handler_over_the_loader, false, "dl_iterate_phdr");
}

Test(safe, signal_handler_on_another_stack_that_interrupted_the_loader)
{
	expect(in_a_handler_on_another_stack, false, "dl_iterate_phdr");
}

Test(safe, signal_handler_that_interrupted_nothing)
{
	expect(in_a_handler_over_nothing, false, NULL);
}

Test(safe, thread_in_its_function)
{
	expect(in_a_thread, true, NULL);
}

Test(safe, thread_in_a_key_destructor)
{
	expect(in_a_dying_thread, true, NULL); /* it runs the program's own code, and malloc still works there */
}

Test(safe, raw_clone_with_its_parents_control_block)
{
	expect(in_a_raw_clone, true, "control block");
}
