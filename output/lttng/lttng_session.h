/* SPDX-License-Identifier: MIT */
/* Inside output/: an opened session. Plain data, so that a conversation can change it (output/lttng/lttng_talk.h). */
#ifndef DP_OUTPUT_LTTNG_SESSION_H
#define DP_OUTPUT_LTTNG_SESSION_H

#include "output/lttng/lttng.h"

#include <limits.h>
#include <lttng/lttng.h>

struct dp_lttng {
	char session[LTTNG_NAME_MAX];
	char channel[LTTNG_SYMBOL_NAME_LEN];
	char where[PATH_MAX];    /* as asked for, or as LTTng shows it; "" for a session without output */
	char view[PATH_MAX * 2]; /* what to type */
	bool created, active;
	bool started_before; /* at any time */
	bool started;        /* by us */
	char **anew;         /* names whose rules we have enabled; in the tool only */
	size_t nanew;
	bool snapshot, per_pid;
	uint64_t live_us;
	uint64_t timeout_ns;
};

/* Words (in a conversation): the session is found or made, with its channel. */
struct dp_error *dp_lttng_session_open(const struct dp_lttng_options *o, struct dp_lttng *l) DP_MUST_CHECK;
/* A handle for its user-space domain; lttng_destroy_handle(). NULL: no memory. */
struct lttng_handle *dp_lttng_handle(const struct dp_lttng *l);
/*
 * The code of a call, with what is behind a "fatal error": liblttng-ctl sends some requests in two parts, and a daemon that
 * refuses at the first (no such session, no relay daemon) hangs up; a library that is still sending finds the pipe broken and
 * loses the answer. A request of one part is refused with the same words.
 */
int dp_lttng_reason(struct lttng_handle *h, int code);
/*
 * Words: the session's configuration as `lttng save` writes it into the empty directory `dir` of ours; malloc'ed, or NULL. The file
 * and the directory are gone behind dp_lttng_saved_undo(), which the tool calls ("" for dir: there is none).
 */
char *dp_lttng_saved(const char *session, const char *dir);
void dp_lttng_saved_undo(const char *session, const char *dir);
/* Fills in l->view. */
void dp_lttng_say_view(struct dp_lttng *l);

/* "net6://[::1]:5342/path [data: 5343]": the host ("[::1]") and the path behind it ("path"); false: not a network URL. */
bool dp_lttng_url_split(const char *url, char *host, char *path, size_t size);

/* "vpid" and so on, "$app.PROVIDER:TYPE": fills in `ctx` and the two names, which `ctx` points to. */
bool dp_lttng_context_find(const char *name, struct lttng_event_context *ctx, char *provider, char *type, size_t size);

#endif
