/* SPDX-License-Identifier: MIT */
/* The life of a session: started, known to the daemon, stopped. */
#include "base/cleanup.h"
#include "output/lttng/lttng_daemon.h"
#include "output/lttng/lttng_session.h"
#include "output/lttng/lttng_talk.h"

#include <string.h>

#define LOOK_FIRST_NS UINT64_C(5000000)
#define LOOK_LAST_NS  UINT64_C(100000000)

/* ---- start ---- */

static struct dp_error *say_start(void *arg)
{
	struct dp_lttng *l = arg;
	const int code = dp_lttng_ctl.start_tracing(l->session);
	if (code < 0 && code != -LTTNG_ERR_TRACE_ALREADY_STARTED)
		return dp_lttng_error(code, "starting the session '%s'%s%s", l->session, *l->where ? " to " : "", l->where);
	l->active = l->started_before = l->started = true;
	return NULL;
}

/* A session that its user has stopped is not restarted. */
struct dp_error *dp_lttng_start(struct dp_lttng *l)
{
	if (l->active || l->started_before)
		return NULL;
	return dp_lttng_talk(say_start, l, sizeof(*l), l->timeout_ns);
}

/* ---- does the daemon know the events? ---- */

struct waiting {
	const struct dp_lttng *l;
	pid_t pid;
	pid_t inner; /* the program's pid in its own pid namespace */
	const char *const *names;
	size_t n;
	bool all;
};

/* LTTng knows a program by the pid with which it registered, that of its own pid namespace. */
static pid_t inner_pid(pid_t pid)
{
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	dp_auto_fclose FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *last = strrchr(line, '\t');
		if (!strncmp(line, "NSpid:", 6) && last)
			return (pid_t)strtol(last + 1, NULL, 10);
	}
	return pid;
}

static bool lists(const struct lttng_event *events, int n, const struct waiting *w, const char *name)
{
	for (int i = 0; i < n; i++)
		if ((events[i].pid == w->pid || events[i].pid == w->inner) && !strncmp(events[i].name, "dynprobe:", 9) &&
		    !strcmp(events[i].name + 9, name))
			return true;
	return false;
}

static bool lists_all(const struct waiting *w, struct lttng_handle *h)
{
	struct lttng_event *events = NULL;
	const int n = dp_lttng_ctl.list_tracepoints(h, &events);
	size_t found = 0;
	while (n > 0 && found < w->n && lists(events, n, w, w->names[found]))
		found++;
	if (n > 0)
		free(events);
	return found == w->n;
}

/* Waits without a limit: the parent ends this when the time is over. */
static struct dp_error *say_listed(void *arg)
{
	struct waiting *w = arg;
	struct lttng_handle *h = dp_lttng_handle(w->l);
	if (!h)
		return dp_error_nomem();
	uint64_t pause = LOOK_FIRST_NS;
	while (!(w->all = lists_all(w, h))) {
		dp_lttng_sleep(pause);
		pause = pause * 2 < LOOK_LAST_NS ? pause * 2 : LOOK_LAST_NS;
	}
	dp_lttng_ctl.destroy_handle(h);
	return NULL;
}

bool dp_lttng_wait_listed(struct dp_lttng *l, pid_t pid, const char *const *names, size_t n, uint64_t timeout_ns)
{
	struct waiting w = {.l = l, .pid = pid, .inner = inner_pid(pid), .names = names, .n = n};
	dp_error_destroy(dp_lttng_talk(say_listed, &w, sizeof(w), timeout_ns));
	return w.all;
}

/* ---- has the daemon finished registering a new program? ---- */

static struct dp_error *say_sync(void *arg)
{
	const struct dp_lttng *l = arg;
	struct lttng_session *sessions = NULL;
	const int n = dp_lttng_ctl.list_sessions(&sessions);
	free(sessions);
	return n < 0 ? dp_lttng_error(n, "asking for the session '%s'", l->session) : NULL;
}

/* The daemon locks its list of sessions until a new program has got all of them. */
void dp_lttng_sync(struct dp_lttng *l)
{
	dp_error_destroy(dp_lttng_talk(say_sync, l, sizeof(*l), l->timeout_ns));
}

/* ---- the end ---- */

struct ending {
	const struct dp_lttng *l;
	bool destroy;
};

static bool data_pending(const struct dp_lttng *l, uint64_t until)
{
	while (dp_lttng_ctl.data_pending(l->session) == 1) {
		if (dp_lttng_now() >= until)
			return true;
		dp_lttng_sleep(LOOK_FIRST_NS);
	}
	return false;
}

/* Does not wait: the daemon destroys sessions only twice a second, and the trace is complete when no data is pending. */
static struct dp_error *destroy(const struct dp_lttng *l)
{
	const int code = dp_lttng_ctl.destroy_session_no_wait(l->session);
	return code < 0 ? dp_lttng_error(code, "destroying the session '%s'", l->session) : NULL;
}

/* This limit ends a little before that of the conversation, so that the error can say what was not done. */
static struct dp_error *say_close(void *arg)
{
	const struct ending *e = arg;
	const struct dp_lttng *l = e->l;
	const uint64_t until = dp_lttng_now() + l->timeout_ns - l->timeout_ns / 4;
	const int code = dp_lttng_ctl.stop_tracing_no_wait(l->session);
	if (code < 0 && code != -LTTNG_ERR_TRACE_ALREADY_STOPPED)
		return dp_lttng_error(code, "stopping the session '%s' (its trace so far: %s)", l->session, l->where);
	if (data_pending(l, until))
		return dp_error(DP_TAG_LTTNG,
		                "the data of the session '%s' is still being written to %s: the session is stopped, but not "
		                "destroyed; run "
		                "lttng destroy "
		                "%s when it is done",
		                l->session, l->where, l->session);
	return e->destroy ? destroy(l) : NULL;
}

struct dp_lttng *dp_lttng_release(struct dp_lttng *l)
{
	for (size_t i = 0; l && i < l->nanew; i++)
		free(l->anew[i]);
	free(l ? l->anew : NULL);
	free(l);
	return NULL;
}

struct dp_error *dp_lttng_close(struct dp_lttng *l, bool destroy_it)
{
	if (!l)
		return NULL;
	struct ending e = {l, destroy_it};
	struct dp_error *err = NULL;
	if (l->created && (l->active || destroy_it))
		err = dp_lttng_talk(say_close, &e, sizeof(e), l->timeout_ns);
	dp_lttng_release(l);
	return err;
}

/* ---- queries ---- */

const char *dp_lttng_session(const struct dp_lttng *l)
{
	return l->session;
}

bool dp_lttng_created(const struct dp_lttng *l)
{
	return l->created;
}

bool dp_lttng_active(const struct dp_lttng *l)
{
	return l->active;
}

const char *dp_lttng_where(const struct dp_lttng *l)
{
	return l->where;
}

const char *dp_lttng_how_to_view(const struct dp_lttng *l)
{
	return l->view;
}
