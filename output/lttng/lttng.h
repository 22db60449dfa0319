/* SPDX-License-Identifier: MIT */
/*
 * Controls the user's LTTng sessions with liblttng-ctl. Uses only names; how events get into a session is up to the sink.
 *
 * liblttng-ctl may wait for lttng-sessiond forever (for example a stopped daemon). So every function here fails after its timeout
 * with DP_TAG_LTTNG (docs/decisions/0012: each conversation runs in a child process).
 */
#ifndef DP_OUTPUT_LTTNG_LTTNG_H
#define DP_OUTPUT_LTTNG_LTTNG_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dp_lttng; /* one session, opened */

struct dp_lttng_options {
	const char *session; /* NULL: a new one named dynprobe-NAME-YYYYMMDD-HHMMSS */
	/* The next three are for a new session; with an existing session they are refused. */
	const char *set_url;  /* --set-url, as lttng create takes it: net://HOST[:PORT[:PORT]][/PATH], net6://, file://PATH */
	const char *output;   /* local directory, or NULL for LTTng's default */
	uint64_t live_us;     /* --live: timer of a live session, us; 0: not live */
	const char *channel;  /* NULL: the session's first user-space channel, else "dynprobe" is created */
	bool per_pid;         /* buffers of a channel that we create */
	uint64_t subbuf_size; /* bytes, for a channel that we create; 0: LTTng's default */
	const char *name;     /* for the session's default name */
	uint64_t timeout_ns;
};

/*
 * The session named in $LTTNG_HOME/.lttngrc or $HOME/.lttngrc, if the daemon knows it; the caller frees it. *covers: in an
 * enabled channel it has an enabled user-space rule for all log levels for each of dynprobe:NAME (n = 0: for any event
 * dynprobe:NAME). Without a session daemon *session is NULL, which is no error.
 */
struct dp_error *dp_lttng_current(char **session, const char *const *names, size_t n, bool *covers, uint64_t timeout_ns) DP_MUST_CHECK;

/* Does this user have a session daemon? If not, DP_TAG_LTTNG says what is missing. Does not wait for the daemon to answer. */
struct dp_error *dp_lttng_reachable(void) DP_MUST_CHECK;

/*
 * Finds the session, or creates it. A session that we create is started by dp_lttng_start() and stopped by dp_lttng_close(),
 * which may also destroy it (its trace stays on disk). An existing session only gets rules, and is started only if it was never
 * started. DP_TAG_LTTNG: no session daemon (and what to start), another user's daemon (root's, if the user is not in its tracing
 * group), a daemon that hangs, or LTTng's own error.
 */
struct dp_error *dp_lttng_open(const struct dp_lttng_options *options, struct dp_lttng **ret) DP_MUST_CHECK;
/* Enables dynprobe:NAME for all names or none. The events need not exist yet. `filter`: an LTTng expression, or NULL. */
struct dp_error *dp_lttng_enable(struct dp_lttng *l, const char *const *names, size_t n, const char *filter) DP_MUST_CHECK;
struct dp_error *dp_lttng_disable(struct dp_lttng *l, const char *const *names, size_t n) DP_MUST_CHECK;
/* "vpid", "vtid", "procname", "ip", "pthread_id", "$app.PROVIDER:NAME", ...: only before the session's first start. */
struct dp_error *dp_lttng_add_context(struct dp_lttng *l, const char *context) DP_MUST_CHECK;
struct dp_error *dp_lttng_start(struct dp_lttng *l) DP_MUST_CHECK;
/*
 * For a run that failed: restores an existing session. Disables rules of dp_lttng_enable(), except for events that the session
 * wanted before (LTTng disables by name). Stops the session if dp_lttng_start() started it.
 */
struct dp_error *dp_lttng_undo(struct dp_lttng *l) DP_MUST_CHECK;
/* Waits until the daemon lists the events of process `pid`, so it knows the target. False after the timeout. */
bool dp_lttng_wait_listed(struct dp_lttng *l, pid_t pid, const char *const *names, size_t n, uint64_t timeout_ns);
/* Returns when the daemon has finished registering programs that it has just heard of, or after the timeout. */
void dp_lttng_sync(struct dp_lttng *l);
const char *dp_lttng_session(const struct dp_lttng *l);
bool dp_lttng_created(const struct dp_lttng *l); /* we created it */
bool dp_lttng_active(const struct dp_lttng *l);  /* it is tracing */
/* The trace's directory or URL, owned by `l`; and the command to view it: "lttng view -t DIR", a babeltrace2 live URL. */
const char *dp_lttng_where(const struct dp_lttng *l);
const char *dp_lttng_how_to_view(const struct dp_lttng *l);
/* Frees `l` and leaves the session as it is. Accepts NULL; returns NULL. */
struct dp_lttng *dp_lttng_release(struct dp_lttng *l);
/*
 * Stops a session that we created and waits until its data is written, at most until the timeout (then DP_TAG_LTTNG: it stays,
 * stopped). Destroys it if requested; frees `l`. Accepts NULL.
 */
struct dp_error *dp_lttng_close(struct dp_lttng *l, bool destroy) DP_MUST_CHECK;

#endif
