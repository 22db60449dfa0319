/* SPDX-License-Identifier: MIT */
#include "injector/patch/embedded.h"
#include "injector/patch/quiesce/code_index.h"
#include "injector/patch/quiesce/quiesce.h"
#include "injector/patch/quiesce/quiesce_frames.h"
#include "injector/tracee/proc/sharers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIVE_TRIES   40
#define SHARED_NS    UINT64_C(500000000)
#define REST_NS      2000000L
#define FRAMES_AFTER 4 /* attempts before tables are made; most removals need none */

/* The site, other than `q`, whose bytes contain `addr`; SIZE_MAX if there is none. */
static size_t host_of(const struct dp_installation *in, size_t q, uint64_t addr)
{
	struct dp_near near = dp_near_bytes(in, addr, 1);
	size_t found = SIZE_MAX;
	for (size_t i; (i = dp_near_next(&near)) != SIZE_MAX;)
		if (i != q && i < found && in->placed[i].written && addr - in->placed[i].addr < in->placed[i].len)
			found = i;
	return found;
}

static int by_stub(const void *a, const void *b)
{
	const struct dp_pc_pair *x = a, *y = b;
	return x->stub < y->stub ? -1 : x->stub > y->stub;
}

static struct dp_error *note(const struct dp_installation *in, const bool *chosen, size_t q, struct dp_embedded *ret)
{
	const struct dp_placed *p = &in->placed[q];
	for (size_t k = 0; k < p->npairs; k++) {
		const uint64_t stub = p->pair[k].stub;
		const size_t host = dp_installation_holds(in, stub) ? SIZE_MAX : host_of(in, q, stub);
		if (host == SIZE_MAX || in->placed[host].state == DP_SITE_RESTORED)
			continue;
		if (chosen && !chosen[host] && in->placed[host].state != DP_SITE_WAITING)
			continue;
		if (!(ret->n & (ret->n - 1))) {
			struct dp_pc_pair *grown = reallocarray(ret->at, ret->n ? 2 * ret->n : 1, sizeof(*grown));
			if (!grown)
				return dp_error_nomem();
			ret->at = grown;
		}
		ret->at[ret->n++] = p->pair[k];
		ret->host[host] = true;
	}
	return NULL;
}

struct dp_error *dp_embedded_find(struct dp_installation *in, const bool *chosen, struct dp_embedded *ret)
{
	struct dp_embedded h = {.in = in, .host = calloc(in->nplaced + 1, sizeof(*h.host))};
	struct dp_error *err = h.host ? NULL : dp_error_nomem();
	for (size_t i = 0; !err && i < in->nplaced; i++) /* restored ones too: a thread may still be on its way */
		err = note(in, chosen, i, &h);
	if (h.n)
		qsort(h.at, h.n, sizeof(*h.at), by_stub);
	if (err)
		dp_embedded_fini(&h);
	else
		*ret = h;
	return err;
}

void dp_embedded_fini(struct dp_embedded *hidden)
{
	free(hidden->at);
	free(hidden->host);
	*hidden = (struct dp_embedded){0};
}

/* ---- threads ------------------------------------------------------------------------------------------------------------ */

bool dp_embedded_leave(struct dp_target *t, const struct dp_embedded *hidden, struct dp_freeze *f, char why[128])
{
	bool left = true;
	for (size_t i = 0; i < f->n; i++) {
		dp_move_to_original(&f->thread[i], hidden->at, hidden->n);
		if (!dp_returns_to(t, hidden->in->frames, &f->thread[i], hidden->at, hidden->n))
			continue;
		snprintf(why, 128, "thread %d runs a signal handler that interrupted a probe", f->thread[i].tid);
		left = false;
	}
	return left;
}

struct leaving {
	struct dp_target *t;
	const struct dp_embedded *hidden;
	char *why;
};

static bool has_left(struct dp_freeze *one, void *data)
{
	const struct leaving *l = data;
	return dp_embedded_leave(l->t, l->hidden, one, l->why);
}

static bool has_left_asleep(const struct dp_held *h, void *data)
{
	const struct leaving *l = data;
	return dp_stays_away(l->t, h, l->hidden->at, l->hidden->n);
}

struct dp_error *dp_embedded_leave_live(struct dp_target *t, const struct dp_embedded *hidden, struct dp_remove_report *report,
                                        bool *left)
{
	struct leaving l = {t, hidden, report->why};
	struct dp_for_each_stopped each = {.asleep = has_left_asleep};
	struct dp_error *err = NULL;
	*left = false;
	for (int tried = 0; !err && !*left && tried < LIVE_TRIES; tried++) {
		if (tried == FRAMES_AFTER)
			dp_frames_need(t, hidden->in);
		if (tried > 2)
			nanosleep(&(struct timespec){.tv_nsec = tried * REST_NS}, NULL);
		report->why[0] = 0;
		err = dp_for_each_stopped_round(t, &each, has_left, &l, left);
	}
	const pid_t sharer = !err && *left ? dp_sharer_stays(&t->process, SHARED_NS) : 0;
	if (sharer) {
		*left = false;
		snprintf(report->why, sizeof(report->why), "process %d shares its memory and may be in a probe", sharer);
	}
	if (!err && !*left && !report->why[0])
		snprintf(report->why, sizeof(report->why), "not every thread could be checked");
	if (each.held_ns > report->pause_ns)
		report->pause_ns = each.held_ns;
	dp_for_each_stopped_fini(&each);
	return err;
}
