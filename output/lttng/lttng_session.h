/* SPDX-License-Identifier: MIT */
/* Private to output/: an open session. Plain data, so that a conversation can change it (output/lttng/lttng_talk.h). */
#ifndef DP_OUTPUT_LTTNG_LTTNG_SESSION_H
#define DP_OUTPUT_LTTNG_LTTNG_SESSION_H

#include "output/lttng/lttng.h"
#include "output/lttng/lttng_ctl.h"

#include <limits.h>

struct dp_lttng {
	char session[LTTNG_NAME_MAX];
	char channel[LTTNG_SYMBOL_NAME_LEN];
	char where[PATH_MAX];    /* as requested, or as LTTng reports it; "" for a session without output */
	char view[PATH_MAX * 2]; /* the command to type */
	bool created, active;
	bool started_before; /* ever */
	bool started;        /* by us */
	char **anew;         /* names whose rules we have enabled; only in the tool, not in the child */
	size_t nanew;
	bool snapshot, per_pid;
	uint64_t live_us;
	uint64_t timeout_ns;
};

/* In a conversation: finds or creates the session and its channel. */
struct dp_error *dp_lttng_session_open(const struct dp_lttng_options *o, struct dp_lttng *l) DP_MUST_CHECK;
/* A handle for its user-space domain, freed with dp_lttng_ctl.destroy_handle(). NULL: no memory. */
struct lttng_handle *dp_lttng_handle(const struct dp_lttng *l);
/*
 * The real reason behind a "fatal error" code of a call; other codes are returned unchanged. liblttng-ctl sends some requests in
 * two parts. A daemon that refuses the first part (no such session, no relay daemon) hangs up, and the library, still sending,
 * gets a broken pipe and loses the answer. A request in one part is refused with the same reason.
 */
int dp_lttng_reason(struct lttng_handle *h, int code);
/*
 * In a conversation: the session's configuration, written by `lttng save` into our empty directory `dir`. The caller frees it;
 * NULL on failure. The tool then calls dp_lttng_saved_undo(), which removes the file and the directory ("" for dir: none).
 */
char *dp_lttng_saved(const char *session, const char *dir);
void dp_lttng_saved_undo(const char *session, const char *dir);
/* Sets l->view. */
void dp_lttng_log_view(struct dp_lttng *l);

/* Splits "net6://[::1]:5342/path [data: 5343]" into host ("[::1]") and path ("path"). False: not a network URL. */
bool dp_lttng_url_split(const char *url, char *host, char *path, size_t size);

/* For "vpid" and so on, or "$app.PROVIDER:TYPE": sets `ctx`, and the two names that `ctx` points to. */
bool dp_lttng_context_find(const char *name, struct lttng_event_context *ctx, char *provider, char *type, size_t size);

#endif
