/* SPDX-License-Identifier: MIT */
/* Two threads write one file: nothing is lost, reordered or written twice, and the program's signals are unchanged. */
#include "helper_snapshot.h"
#include "pmodules/file/file.h"
#include "pmodules/file/file_press.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { PIECES = 200 };

struct seen {
	pthread_t by;
	size_t n;
	bool in_order, takes_signals;
};

static void see(void *of, struct dp_buf *piece)
{
	struct seen *s = of;
	sigset_t blocked;
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	s->takes_signals = !sigismember(&blocked, SIGINT);
	s->by = pthread_self();
	s->in_order = (!s->n || s->in_order) && piece->len == sizeof(s->n) && !memcmp(piece->data, &s->n, sizeof(s->n));
	s->n++;
	piece->len = 0;
}

static void give_all(struct seen *s, struct dp_press *p)
{
	struct dp_buf b = {0};
	dp_press_init(p, see, s);
	for (size_t i = 0; i < PIECES; i++) {
		cr_assert_eq(b.len, 0);
		dp_buf_put(&b, &i, sizeof(i));
		dp_press_give(p, &b);
	}
	dp_press_wait(p);
	dp_buf_fini(&b);
}

Test(press, each_piece_is_worked_on_once_in_order_by_a_thread_that_takes_no_signals)
{
	struct seen s = {0};
	struct dp_press p;
	sigset_t mine;
	give_all(&s, &p);
	cr_assert(p.runs && !pthread_equal(s.by, pthread_self()));
	cr_assert(s.n == PIECES && s.in_order);
	cr_assert(!s.takes_signals);
	dp_press_fini(&p);
	pthread_sigmask(SIG_SETMASK, NULL, &mine);
	cr_assert(!sigismember(&mine, SIGINT));
}

#ifndef __SANITIZE_ADDRESS__ /* the sanitizer needs address space */
Test(press, without_another_thread_the_work_is_done_at_once)
{
	struct seen s = {0};
	struct dp_press p;
	struct rlimit was;
	getrlimit(RLIMIT_AS, &was);
	const struct rlimit none = {.rlim_cur = 1, .rlim_max = was.rlim_max};
	void *room = malloc(64);
	free(room); /* the piece reuses this block: no other allocation will succeed */
	cr_assert(!setrlimit(RLIMIT_AS, &none));
	give_all(&s, &p);
	dp_press_fini(&p);
	setrlimit(RLIMIT_AS, &was);
	cr_assert(!p.runs && s.n == PIECES && s.in_order);
}
#endif

Test(press, a_thread_to_whom_nothing_was_given_is_none)
{
	struct seen s = {0};
	struct dp_press p;
	dp_press_init(&p, see, &s);
	dp_press_wait(&p);
	dp_press_fini(&p);
	cr_assert(!p.tried && !s.n);
}

/* More threads than one piece holds, and other sections after them. */
Test(press, a_snapshot_of_many_pieces_comes_back)
{
	struct dp_snapshot *s = helper_full(), *back = NULL;
	struct dp_buf b = {0};
	for (int i = 0; i < 40; i++) {
		struct dp_snap_thread *t = dp_snapshot_thread(s, 1000 + i);
		for (int k = 0; k < 1000; k++)
			dp_snapshot_frame(s, t)->pc = UINT64_C(0x123456789abc) * (uint64_t)(i + 1) + (uint64_t)k * 977;
	}
	cr_assert(!dp_snapshot_write_bytes(s, &b));
	cr_assert(!dp_snapshot_read_bytes(b.data, b.len, &back));
	helper_same(s, back);
	dp_buf_fini(&b);
	dp_snapshot_destroy(s);
	dp_snapshot_destroy(back);
}
