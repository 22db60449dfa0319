/* SPDX-License-Identifier: MIT */
#include "pmodules/file/file_press.h"

#include <errno.h>
#include <signal.h>

static void wait_for(sem_t *s)
{
	while (sem_wait(s) && errno == EINTR) {
	}
}

static void *run(void *data)
{
	struct dp_press *p = data;
	for (;;) {
		wait_for(&p->given);
		if (p->ends)
			return NULL;
		p->work(p->of, &p->piece);
		sem_post(&p->done);
	}
}

static bool start(struct dp_press *p)
{
	sigset_t all, old;
	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &old))
		return false;
	const bool runs = pthread_create(&p->thread, NULL, run, p) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return runs;
}

void dp_press_init(struct dp_press *p, void (*work)(void *of, struct dp_buf *piece), void *of)
{
	*p = (struct dp_press){.work = work, .of = of};
	sem_init(&p->given, 0, 0);
	sem_init(&p->done, 0, 0);
}

void dp_press_give(struct dp_press *p, struct dp_buf *piece)
{
	if (!p->tried)
		p->runs = start(p);
	p->tried = true;
	if (!p->runs) {
		p->work(p->of, piece);
		return;
	}
	dp_press_wait(p);
	const struct dp_buf empty = p->piece;
	p->piece = *piece;
	*piece = empty;
	p->busy = true;
	sem_post(&p->given);
}

void dp_press_wait(struct dp_press *p)
{
	if (p->busy)
		wait_for(&p->done);
	p->busy = false;
}

void dp_press_fini(struct dp_press *p)
{
	dp_press_wait(p);
	if (p->runs) {
		p->ends = true;
		sem_post(&p->given);
		pthread_join(p->thread, NULL);
	}
	sem_destroy(&p->given);
	sem_destroy(&p->done);
	dp_buf_fini(&p->piece);
}
