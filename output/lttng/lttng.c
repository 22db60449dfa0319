/* SPDX-License-Identifier: MIT */
#include "output/lttng/lttng.h"
#include "base/cleanup.h"
#include "output/lttng/lttng_daemon.h"
#include "output/lttng/lttng_rules.h"
#include "output/lttng/lttng_session.h"
#include "output/lttng/lttng_talk.h"

#include <string.h>
#include <sys/mman.h>

#define TAKE_BACK_NS UINT64_C(5000000000)

struct opening {
	const struct dp_lttng_options *options;
	struct dp_lttng l;
};

static struct dp_error *say_open(void *arg)
{
	struct opening *o = arg;
	return dp_lttng_session_open(o->options, &o->l);
}

static struct dp_error *say_take_back(void *arg)
{
	const struct opening *o = arg;
	const int code = dp_lttng_ctl.destroy_session_no_wait(o->l.session);
	return code < 0 && code != -LTTNG_ERR_SESS_NOT_FOUND ? dp_lttng_error(code, "destroying the session '%s'", o->l.session)
	                                                     : NULL;
}

/* Destroys a session created before the timeout. Takes `err`; returns it, or an error that names a session left behind. */
static struct dp_error *take_back(struct opening *o, struct dp_error *err)
{
	if (!o->l.created)
		return err;
	struct dp_error *left = dp_lttng_talk(say_take_back, o, sizeof(*o), TAKE_BACK_NS);
	if (left)
		err = dp_error_wrap(err, "the session '%s' may be left behind (lttng destroy %s)", o->l.session, o->l.session);
	dp_error_destroy(left);
	return err;
}

/* A child talks to the daemon and may be killed at any time, so it records its progress in shared memory. */
struct dp_error *dp_lttng_open(const struct dp_lttng_options *options, struct dp_lttng **ret)
{
	struct opening *o = mmap(NULL, sizeof(*o), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	dp_auto_free struct dp_lttng *l = malloc(sizeof(*l));
	if (o == MAP_FAILED || !l) {
		if (o != MAP_FAILED)
			munmap(o, sizeof(*o));
		return dp_error_nomem();
	}
	o->options = options;
	struct dp_error *err = dp_lttng_talk(say_open, o, sizeof(*o), options->timeout_ns);
	if (err)
		err = take_back(o, err);
	*l = o->l;
	munmap(o, sizeof(*o));
	if (err)
		return err;
	l->timeout_ns = options->timeout_ns;
	dp_lttng_log_view(l);
	*ret = dp_take(l, NULL);
	return NULL;
}

/* ---- rules ---- */

struct naming {
	const struct dp_lttng *l;
	const char *const *names;
	size_t n;
	const char *filter;
	char dir[32]; /* to save the session's previous rules in; "" if there is none */
	bool anew[];  /* of each name: the session did not want it before */
};

static struct dp_error *event_named(const char *name, struct lttng_event **ret)
{
	struct lttng_event *ev = dp_lttng_ctl.event_create();
	if (!ev)
		return dp_error_nomem();
	ev->type = LTTNG_EVENT_TRACEPOINT;
	ev->loglevel = -1;
	if ((size_t)snprintf(ev->name, sizeof(ev->name), "dynprobe:%s", name) >= sizeof(ev->name)) {
		dp_lttng_ctl.event_destroy(ev);
		return dp_error(DP_TAG_LTTNG, "the event name dynprobe:%.40s... is too long: LTTng allows %zu bytes", name,
		                sizeof(ev->name) - 1);
	}
	*ret = ev;
	return NULL;
}

/* An existing enabled rule is fine too; *anew tells whether we enabled it. */
static struct dp_error *enable_one(const struct naming *w, struct lttng_handle *h, const char *name, bool *anew)
{
	struct lttng_event *ev;
	DP_TRY(event_named(name, &ev));
	const int code = dp_lttng_reason(h, dp_lttng_ctl.enable_event_with_filter(h, ev, w->l->channel, w->filter));
	dp_lttng_ctl.event_destroy(ev);
	*anew = code >= 0;
	if (code >= 0 || code == -LTTNG_ERR_UST_EVENT_ENABLED)
		return NULL;
	return dp_lttng_error(code, "enabling dynprobe:%s%s%s%s in the session '%s'", name, w->filter ? " with the filter '" : "",
	                      w->filter ? w->filter : "", w->filter ? "'" : "", w->l->session);
}

static struct dp_error *disable_one(const struct naming *w, struct lttng_handle *h, const char *name)
{
	struct lttng_event *ev;
	DP_TRY(event_named(name, &ev));
	const int code = dp_lttng_reason(h, dp_lttng_ctl.disable_event(h, ev->name, w->l->channel));
	dp_lttng_ctl.event_destroy(ev);
	if (code >= 0 || code == -LTTNG_ERR_UST_EVENT_NOT_FOUND)
		return NULL;
	return dp_lttng_error(code, "disabling dynprobe:%s in the session '%s'", name, w->l->session);
}

/* Enables all or none. */
static struct dp_error *say_enable(void *arg)
{
	struct naming *w = arg;
	struct lttng_handle *h = dp_lttng_handle(w->l);
	dp_auto_free char *rules = *w->dir ? dp_lttng_saved(w->l->session, w->dir) : NULL;
	struct dp_error *err = h ? NULL : dp_error_nomem();
	size_t i = 0;
	for (; i < w->n && !err; i++)
		err = enable_one(w, h, w->names[i], &w->anew[i]);
	/* LTTng disables by name, whatever the filter: a rule of the user with the same name would be disabled too. */
	for (size_t k = 0; k < i && rules; k++)
		w->anew[k] &= !dp_lttng_config_wants(rules, w->names[k]);
	while (err && i-- > 0)
		if (w->anew[i])
			dp_error_destroy(disable_one(w, h, w->names[i]));
	if (h)
		dp_lttng_ctl.destroy_handle(h);
	return err;
}

static struct dp_error *say_disable(void *arg)
{
	const struct naming *w = arg;
	struct lttng_handle *h = dp_lttng_handle(w->l);
	struct dp_error *err = h ? NULL : dp_error_nomem();
	for (size_t i = 0; i < w->n && !err; i++)
		err = disable_one(w, h, w->names[i]);
	if (h)
		dp_lttng_ctl.destroy_handle(h);
	return err;
}

static struct dp_error *remember(struct dp_lttng *l, const char *name)
{
	char **grown = realloc(l->anew, (l->nanew + 1) * sizeof(*grown));
	if (grown)
		l->anew = grown;
	if (!grown || !(grown[l->nanew] = strdup(name)))
		return dp_error_nomem();
	l->nanew++;
	return NULL;
}

struct dp_error *dp_lttng_enable(struct dp_lttng *l, const char *const *names, size_t n, const char *filter)
{
	const size_t size = sizeof(struct naming) + n * sizeof(bool);
	dp_auto_free struct naming *w = calloc(1, size);
	if (!w)
		return dp_error_nomem();
	*w = (struct naming){.l = l, .names = names, .n = n, .filter = filter, .dir = "/tmp/dynprobe-XXXXXX"};
	if (l->created || !mkdtemp(w->dir))
		w->dir[0] = '\0';
	struct dp_error *err = dp_lttng_talk(say_enable, w, size, l->timeout_ns);
	dp_lttng_saved_undo(l->session, w->dir);
	if (err)
		return err;
	for (size_t i = 0; i < n; i++)
		if (w->anew[i])
			DP_TRY(remember(l, names[i]));
	return NULL;
}

struct dp_error *dp_lttng_disable(struct dp_lttng *l, const char *const *names, size_t n)
{
	struct naming w = {.l = l, .names = names, .n = n};
	return dp_lttng_talk(say_disable, &w, sizeof(w), l->timeout_ns);
}

static struct dp_error *say_undo(void *arg)
{
	const struct dp_lttng *l = arg;
	struct naming w = {.l = l, .names = (const char *const *)l->anew, .n = l->nanew};
	struct dp_error *err = l->nanew ? say_disable(&w) : NULL;
	const int code = l->started ? dp_lttng_ctl.stop_tracing_no_wait(l->session) : 0;
	if (!err && code < 0 && code != -LTTNG_ERR_TRACE_ALREADY_STOPPED)
		err = dp_lttng_error(code, "stopping the session '%s'", l->session);
	return err;
}

struct dp_error *dp_lttng_undo(struct dp_lttng *l)
{
	if (l->created || (!l->nanew && !l->started))
		return NULL;
	return dp_lttng_talk(say_undo, l, sizeof(*l), l->timeout_ns);
}

/* ---- contexts ---- */

struct adding {
	const struct dp_lttng *l;
	const char *context;
};

static struct dp_error *say_context(void *arg)
{
	const struct adding *a = arg;
	struct lttng_event_context ctx;
	char provider[LTTNG_SYMBOL_NAME_LEN], type[LTTNG_SYMBOL_NAME_LEN];
	if (!dp_lttng_context_find(a->context, &ctx, provider, type, sizeof(provider)))
		return dp_error(DP_TAG_LTTNG,
		                "unknown LTTng context '%s': use vpid, vtid, procname, ip, pthread_id, vuid, "
		                "vgid, ... or "
		                "$app.PROVIDER:NAME",
		                a->context);
	struct lttng_handle *h = dp_lttng_handle(a->l);
	if (!h)
		return dp_error_nomem();
	const int code = dp_lttng_reason(h, dp_lttng_ctl.add_context(h, &ctx, NULL, a->l->channel));
	dp_lttng_ctl.destroy_handle(h);
	if (code >= 0 || code == -LTTNG_ERR_UST_CONTEXT_EXIST)
		return NULL;
	if (code == -LTTNG_ERR_TRACE_ALREADY_STARTED)
		return dp_error(DP_TAG_LTTNG,
		                "the session '%s' has already been started: LTTng adds the context %s only before a session's "
		                "first start",
		                a->l->session, a->context);
	return dp_lttng_error(code, "adding the context %s to the session '%s'", a->context, a->l->session);
}

struct dp_error *dp_lttng_add_context(struct dp_lttng *l, const char *context)
{
	struct adding a = {l, context};
	return dp_lttng_talk(say_context, &a, sizeof(a), l->timeout_ns);
}
