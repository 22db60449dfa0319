/* SPDX-License-Identifier: MIT */
/*
 * A recording within limits: a CTF writer behind a thin layer that looks at its size. Without --rotate the trace is in the
 * directory itself, and `full` tells when it is large enough. With it, the directory has a trace of its own for each piece, which
 * readers may read while the next one is written; when all together are too large, the oldest goes.
 */
#include "base/cleanup.h"
#include "output/ctf/ctf.h"
#include "output/ctf/ctf_dir.h"
#include "output/events/writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LOOK 65536u /* bytes of events between two looks at the size, at most */

struct recorder {
	struct dp_writer base;
	struct dp_writer *now; /* the piece that is written */
	struct dp_record_limits limits;
	char *dir;
	unsigned first, last; /* numbers of the oldest piece that is there, and of this one */
	struct piece {
		uint64_t size, events;
	} * piece;           /* number i is piece[i - 1] */
	uint64_t all;        /* bytes of the complete ones that are there */
	uint64_t removed;    /* events of those that are not */
	uint64_t put, look;  /* bytes of events since the last look; when to look again */
	uint64_t events;     /* since the last flush */
	uint64_t lost, told; /* in the run so far; in the pieces before this one */
};

static uint64_t limit_of(const struct recorder *r)
{
	return r->limits.piece ? r->limits.piece : r->limits.most;
}

/* Says what a summary that counts hits as recorded cannot know. */
static struct dp_error *failed(const struct recorder *r, struct dp_error *err)
{
	struct dp_error *told = dp_error(err->tag, "%s; at most the last %" PRIu64 " events are not in %s, the others are",
	                                 err->message, r->events, r->dir);
	told->sys = err->sys;
	dp_error_destroy(err);
	return told;
}

/* ---- pieces -------------------------------------------------------------------------------------------------------------- */

static char *piece_path(const struct recorder *r, unsigned number)
{
	char *path = NULL;
	return asprintf(&path, "%s/" DP_PIECE_NAME, r->dir, number) < 0 ? NULL : path;
}

/* The directory appears with its metadata: a tool that is killed here leaves no trace that readers refuse. */
static struct dp_error *open_piece(struct recorder *r)
{
	dp_auto_free char *path = piece_path(r, r->last + 1), *next = NULL;
	struct piece *piece = realloc(r->piece, (r->last + 1) * sizeof(*piece));
	if (piece)
		r->piece = piece;
	if (!path || !piece || asprintf(&next, "%s/" DP_PIECE_NEXT, r->dir) < 0) {
		next = NULL;
		return dp_error_nomem();
	}
	dp_dir_remove_piece(next); /* of a tool that was killed */
	DP_TRY(dp_ctf_writer_create(next, r->base.classes, r->base.n, &r->now));
	if (rename(next, path)) {
		struct dp_error *err = dp_error_sys(DP_TAG_OUTPUT, "cannot begin the trace %s", path);
		dp_error_destroy(dp_writer_close(dp_take(r->now, NULL)));
		dp_dir_remove_piece(next);
		return err;
	}
	r->piece[r->last++] = (struct piece){0};
	return NULL;
}

/* Takes its error. */
static struct dp_error *close_piece(struct recorder *r)
{
	return r->now ? dp_writer_close(dp_take(r->now, NULL)) : NULL;
}

/* So many of the oldest pieces that there is room for another one. */
static void make_room(struct recorder *r)
{
	while (r->limits.most && r->first <= r->last && r->all + limit_of(r) > r->limits.most) {
		dp_auto_free char *path = piece_path(r, r->first);
		if (!path)
			return;
		dp_dir_remove_piece(path);
		r->all -= r->piece[r->first - 1].size;
		r->removed += r->piece[r->first++ - 1].events;
	}
}

static struct dp_error *next_piece(struct recorder *r)
{
	dp_writer_lost(r->now, r->lost - r->told);
	DP_TRY(dp_writer_flush(r->now));
	r->piece[r->last - 1].size = dp_ctf_writer_size(r->now) + dp_ctf_metadata_size(r->now);
	r->all += r->piece[r->last - 1].size;
	r->told = r->lost;
	DP_TRY(close_piece(r));
	make_room(r);
	return open_piece(r);
}

/* ---- the writer ---------------------------------------------------------------------------------------------------------- */

static void look(struct recorder *r)
{
	const uint64_t limit = limit_of(r), size = limit ? dp_ctf_writer_size(r->now) : 0;
	r->put = 0;
	if (size < limit || !limit) {
		r->look = limit - size < LOOK ? limit - size : LOOK;
		return;
	}
	r->look = 0;
	if (!r->limits.piece) {
		r->base.full = true;
		return;
	}
	struct dp_error *err = next_piece(r);
	if (err)
		dp_writer_fail(&r->base, failed(r, err));
}

static void note(struct recorder *r, size_t events, size_t bytes)
{
	r->events += events;
	if (r->limits.piece)
		r->piece[r->last - 1].events += events;
	r->put += bytes;
	if (r->now->error)
		dp_writer_fail(&r->base, failed(r, dp_writer_flush(r->now)));
	else if (r->put >= r->look)
		look(r);
}

static void recorder_event(struct dp_writer *w, const struct dp_event *e)
{
	struct recorder *r = (struct recorder *)w;
	if (!r->now->error)
		r->now->ops->event(r->now, e);
	note(r, 1, sizeof(struct dp_ctf_short) + e->len);
}

static void recorder_batch(struct dp_writer *w, const struct dp_event_batch *b)
{
	struct recorder *r = (struct recorder *)w;
	size_t events = 0, bytes = 0;
	dp_writer_batch(r->now, b); /* marks those that are damaged */
	for (size_t i = 0; i < b->hits->n; i++) {
		events += !b->hits->item[i].damaged;
		bytes += sizeof(struct dp_ctf_short) + b->hits->item[i].len;
	}
	note(r, events, bytes);
}

static void recorder_known(struct dp_writer *w, unsigned i)
{
	dp_writer_class(((struct recorder *)w)->now, i);
}

static void recorder_lost(struct dp_writer *w, uint64_t total)
{
	struct recorder *r = (struct recorder *)w;
	r->lost = total;
	if (r->now)
		dp_writer_lost(r->now, total - r->told);
}

static void recorder_flush(struct dp_writer *w)
{
	struct recorder *r = (struct recorder *)w;
	struct dp_error *err = r->now ? dp_writer_flush(r->now) : NULL;
	if (err) {
		dp_writer_fail(w, failed(r, err));
		return;
	}
	r->events = 0;
	look(r); /* what a flush pads counts, too */
}

static void recorder_fini(struct dp_writer *w)
{
	struct recorder *r = (struct recorder *)w;
	struct dp_error *err = close_piece(r);
	if (err && !w->error)
		dp_writer_fail(w, failed(r, err));
	else
		dp_error_destroy(err);
	free(r->piece);
	free(r->dir);
}

static struct dp_error *begin(struct recorder *r)
{
	if (!r->limits.piece)
		return dp_ctf_writer_create(r->dir, r->base.classes, r->base.n, &r->now);
	DP_TRY(dp_dir_create(r->dir));
	DP_TRY(dp_dir_without_pieces(r->dir));
	return open_piece(r);
}

struct dp_error *dp_recorder_create(const char *dir, const struct dp_record_limits *limits, const struct dp_event_class *classes,
                                    size_t n, struct dp_writer **ret)
{
	static const struct dp_writer_ops ops = {.event = recorder_event,
	                                         .batch = recorder_batch,
	                                         .known = recorder_known,
	                                         .lost = recorder_lost,
	                                         .flush = recorder_flush,
	                                         .fini = recorder_fini};
	struct recorder *r = calloc(1, sizeof(*r));
	if (!r || !(r->dir = strdup(dir))) {
		free(r);
		return dp_error_nomem();
	}
	r->base = (struct dp_writer){.ops = &ops, .classes = classes, .n = n};
	r->limits = *limits;
	r->first = 1;
	struct dp_error *err = begin(r);
	if (err) {
		free(r->piece);
		free(r->dir);
		free(r);
		return err;
	}
	*ret = &r->base;
	return NULL;
}

bool dp_recorder_pieces(const struct dp_writer *w, struct dp_record_pieces *ret)
{
	const struct recorder *r = (const struct recorder *)w;
	*ret = (struct dp_record_pieces){.kept = r->last - r->first + 1, .removed = r->first - 1, .events = r->removed};
	return r->limits.piece;
}
