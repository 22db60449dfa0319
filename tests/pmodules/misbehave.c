/* SPDX-License-Identifier: MIT */
/* Its thread callback misbehaves as `how` says: --module=misbehave:how,null */
#include "pmodule.h"

#include <err.h>
#include <error.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char how[32];
static volatile char *volatile none;
static volatile unsigned turns;
static pthread_mutex_t held_by_us = PTHREAD_MUTEX_INITIALIZER;

static unsigned overflow(volatile unsigned *n)
{
	volatile char space[4096];
	memset((char *)space, 1, sizeof(space));
	if (*n == 99)
		return 0;
	return overflow(n) + (unsigned)space[*n % sizeof(space)];
}

static void *exit_elsewhere(void *unused)
{
	(void)unused;
	_exit(0);
}

static void *exit_properly(void *unused)
{
	(void)unused;
	pthread_exit(how);
}

/* Each of these ends the process. */
static void leave(void)
{
	void (*volatile by_pointer)(int) = exit;
	pthread_t other;
	if (!strcmp(how, "exit"))
		exit(0);
	if (!strcmp(how, "exit-pointer"))
		by_pointer(0);
	if (!strcmp(how, "_exit"))
		_exit(0);
	if (!strcmp(how, "errx"))
		errx(0, "no %s", "way");
	if (!strcmp(how, "pthread_exit"))
		pthread_exit(NULL);
	void *result = NULL;
	if (!strcmp(how, "thread-ends") && !pthread_create(&other, NULL, exit_properly, NULL) &&
	    (pthread_join(other, &result) || result != how))
		abort();
	if (!strcmp(how, "exit-thread") && !pthread_create(&other, NULL, exit_elsewhere, NULL))
		pthread_join(other, NULL);
	if (!strcmp(how, "exit-libc")) /* calls exit() inside libc */
		error(0 == how[0] ? 0 : 3, 0, "the end");
}

static void thread(ptrace_thread_t *t)
{
	pmodule_thread_annotate(t, PAT_COMMENT, "before");
	if (!strcmp(how, "null"))
		*none = 1;
	if (!strcmp(how, "libc"))
		memset((char *)none, 1, 4096 + turns);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "stack"))
		turns = overflow(&turns);
	if (!strcmp(how, "divide"))
		turns = 100 / turns;
	if (!strcmp(how, "illegal"))
		__asm__ volatile("ud2");
	if (!strcmp(how, "loop"))
		for (;;)
			turns++;
	if (!strcmp(how, "loop-api"))
		for (;;)
			turns += pmodule_thread_tid(t) > 0;
	leave();
	if (!strcmp(how, "stuck")) { /* not pause(): a tick would end it, and might find this code */
		pthread_mutex_lock(&held_by_us);
		pthread_mutex_lock(&held_by_us);
	}
	pmodule_thread_annotate(t, PAT_COMMENT, "behind");
}

static void postattach(ptrace_backtrace_t *bt)
{
	pmodule_backtrace_add_kv_int(bt, "misbehave.postattach", 1);
}

static bool load(pmodule_t *m)
{
	const char *option = pmodule_config_option(m, "how");
	strncpy(how, option ? option : "", sizeof(how) - 1);
	if (!strcmp(how, "load"))
		*none = 1;
	if (!strcmp(how, "exit-load"))
		exit(0);
	return pmodule_thread_event_add(m, NULL, thread) && pmodule_postattach_event_add(m, postattach);
}

static void unload(pmodule_t *m)
{
	(void)m;
	if (!strcmp(how, "unload"))
		*none = 1;
}

PMODULE_DEFINE("misbehave", load, NULL, unload);
