/* SPDX-License-Identifier: MIT */
#include "injector/ring/waiters.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint32_t waits(const struct dp_waiters *w)
{
	return __atomic_load_n(&w->page->waits, __ATOMIC_SEQ_CST);
}

/* The number first, then the call: a thread that counts itself after we have looked sees the new number, and does not sleep. */
static void let_go(struct dp_waiters *w)
{
	__atomic_fetch_add(&w->page->drained, 1, __ATOMIC_SEQ_CST);
	if (waits(w) == w->seen)
		return;
	w->seen = waits(w);
	syscall(SYS_futex, &w->page->drained, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void dp_waiters_serve(struct dp_waiters *w, struct dp_on_full *page)
{
	if (w->page && !page) {
		__atomic_store_n(&w->page->served, 0, __ATOMIC_SEQ_CST);
		let_go(w);
	}
	w->page = page;
}

void dp_waiters_look(struct dp_waiters *w)
{
	if (dp_waiters_any(w))
		let_go(w);
}

void dp_waiters_pass(struct dp_waiters *w)
{
	if (!w->page)
		return;
	__atomic_store_n(&w->page->served, 1, __ATOMIC_SEQ_CST); /* even if a thread gave up on us meanwhile */
	__atomic_fetch_add(&w->page->passes, 1, __ATOMIC_SEQ_CST);
	let_go(w);
}

bool dp_waiters_any(const struct dp_waiters *w)
{
	return w->page && waits(w) != w->seen;
}

void dp_waiters_rest(const struct dp_waiters *w, int ms)
{
	const struct timespec most = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	if (w->page && ms > 0)
		syscall(SYS_futex, &w->page->waits, FUTEX_WAIT, w->seen, &most, NULL, 0);
}
