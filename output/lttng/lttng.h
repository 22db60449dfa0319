/* SPDX-License-Identifier: MIT */
/*
 * The user's LTTng sessions, driven with liblttng-ctl. Only names pass: how the events get there is the sink's affair.
 *
 * liblttng-ctl talks to lttng-sessiond and may wait for it for ever (a stopped daemon): every function here gives up after
 * its timeout, with DP_TAG_LTTNG (docs/decisions/0012: each conversation is a child process).
 */
#ifndef DP_OUTPUT_LTTNG_H
#define DP_OUTPUT_LTTNG_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dp_lttng; /* one session, opened */

struct dp_lttng_options {
	const char *session; /* NULL: a new one named dynprobe-NAME-YYYYMMDD-HHMMSS */
	/* The next three are of a session that is created: with one that is there already they are refused. */
	const char *set_url;  /* --set-url, as lttng create takes it: net://HOST[:PORT[:PORT]][/PATH], net6://, file://PATH */
	const char *output;   /* local directory, or NULL for LTTng's default */
	uint64_t live_us;     /* --live: timer of a live session, us; 0: not live */
	const char *channel;  /* NULL: the session's first user-space channel, else "dynprobe" is created */
	bool per_pid;         /* buffers of a channel that we create */
	uint64_t subbuf_size; /* bytes; 0: LTTng's default. Of a channel that we create. */
	const char *name;     /* for the session's default name */
	uint64_t timeout_ns;
};

/*
 * The session of $LTTNG_HOME/.lttngrc or $HOME/.lttngrc, malloc'ed, if the daemon knows it. *covers: it has an enabled user-space
 * rule of all log levels, in an enabled channel, for each of dynprobe:NAME (n = 0: for any event dynprobe:NAME). NULL without a session
 * daemon: no error.
 */
struct dp_error *dp_lttng_current(char **session, const char *const *names, size_t n, bool *covers, uint64_t timeout_ns) DP_MUST_CHECK;

/* Is there a session daemon for this user? Else DP_TAG_LTTNG with what is missing. Does not wait for an answer of its. */
struct dp_error *dp_lttng_reachable(void) DP_MUST_CHECK;

/*
 * Finds the session, or creates it where there is none. A session that we create is started by dp_lttng_start() and stopped (and,
 * with destroy, destroyed: its trace stays on disk) by dp_lttng_close(); one that was there is only given rules, and started only
 * if it was never started. DP_TAG_LTTNG: no session daemon (and what to start), another user's daemon (root's, where the user is
 * not in its tracing group), a hung daemon, or what LTTng says.
 */
struct dp_error *dp_lttng_open(const struct dp_lttng_options *options, struct dp_lttng **ret) DP_MUST_CHECK;
/* Enables dynprobe:NAME for all names or none, before or after the events exist. `filter`: an LTTng expression, or NULL. */
struct dp_error *dp_lttng_enable(struct dp_lttng *l, const char *const *names, size_t n, const char *filter) DP_MUST_CHECK;
struct dp_error *dp_lttng_disable(struct dp_lttng *l, const char *const *names, size_t n) DP_MUST_CHECK;
/* "vpid", "vtid", "procname", "ip", "pthread_id", "$app.PROVIDER:NAME", ...: before the session's first start only. */
struct dp_error *dp_lttng_add_context(struct dp_lttng *l, const char *context) DP_MUST_CHECK;
struct dp_error *dp_lttng_start(struct dp_lttng *l) DP_MUST_CHECK;
/*
 * For a run that failed: a session that was there is what it was before. Rules of dp_lttng_enable() are disabled, but where the
 * session wanted that event already (LTTng disables by name); it is stopped if dp_lttng_start() has started it.
 */
struct dp_error *dp_lttng_undo(struct dp_lttng *l) DP_MUST_CHECK;
/* Waits until the daemon lists the events of process `pid` (it has heard the target), or the timeout. */
bool dp_lttng_wait_listed(struct dp_lttng *l, pid_t pid, const char *const *names, size_t n, uint64_t timeout_ns);
/* Returns when the daemon has finished what it was doing for programs that it has just heard of, or after the timeout. */
void dp_lttng_sync(struct dp_lttng *l);
const char *dp_lttng_session(const struct dp_lttng *l);
bool dp_lttng_created(const struct dp_lttng *l); /* we created it */
bool dp_lttng_active(const struct dp_lttng *l);  /* it is tracing */
/* Where its trace is: a directory or URL, owned by `l`; how to look at it: "lttng view -t DIR", a babeltrace2 live URL. */
const char *dp_lttng_where(const struct dp_lttng *l);
const char *dp_lttng_how_to_view(const struct dp_lttng *l);
/* Leaves everything as it is, and frees. Accepts NULL; returns NULL. */
struct dp_lttng *dp_lttng_release(struct dp_lttng *l);
/*
 * Stops a session that we created and waits for its data to be written, at most for the timeout (DP_TAG_LTTNG: it is left,
 * stopped); destroys it if asked; frees. Accepts NULL.
 */
struct dp_error *dp_lttng_close(struct dp_lttng *l, bool destroy) DP_MUST_CHECK;

#endif
