/* SPDX-License-Identifier: MIT */
/* Finds or creates a session and its channel; runs in one conversation. */
#include "output/lttng/lttng_session.h"
#include "base/cleanup.h"
#include "output/ctf/ctf_dir.h"
#include "output/lttng/lttng_daemon.h"

#include <string.h>
#include <time.h>

#define OUR_CHANNEL "dynprobe"
enum { ATTEMPTS = 100 };

struct lttng_handle *dp_lttng_handle(const struct dp_lttng *l)
{
	struct lttng_domain domain = {
	        .type = LTTNG_DOMAIN_UST,
	        .buf_type = l->per_pid ? LTTNG_BUFFER_PER_PID : LTTNG_BUFFER_PER_UID,
	};
	return dp_lttng_ctl.create_handle(l->session, &domain);
}

static void handle_guard(struct lttng_handle **h)
{
	if (*h)
		dp_lttng_ctl.destroy_handle(*h);
}
#define auto_handle __attribute__((cleanup(handle_guard))) struct lttng_handle *

int dp_lttng_reason(struct lttng_handle *h, int code)
{
	struct lttng_channel *channels = NULL;
	if (code != -LTTNG_ERR_FATAL)
		return code;
	const int again = dp_lttng_ctl.list_channels(h, &channels);
	free(again > 0 ? channels : NULL);
	return again < 0 ? again : code;
}

/* ---- the session ---- */

/* *found: the session exists, and `l` describes it. */
static struct dp_error *look(struct dp_lttng *l, bool *found)
{
	struct lttng_session *sessions = NULL;
	const int n = dp_lttng_ctl.list_sessions(&sessions);
	*found = false;
	if (n < 0)
		return dp_lttng_error(n, "asking for the sessions");
	for (int i = 0; i < n && !*found; i++)
		if (!strcmp(sessions[i].name, l->session)) {
			*found = true;
			l->active = sessions[i].enabled;
			l->snapshot = sessions[i].snapshot_mode;
			l->live_us = sessions[i].live_timer_interval;
			snprintf(l->where, sizeof(l->where), "%s", sessions[i].path);
		}
	free(sessions);
	return NULL;
}

/* Path of a local session of ours. By itself LTTng would append the date to a name that already has it. */
static char *local_path(const struct dp_lttng_options *o, const struct dp_lttng *l)
{
	const char *home = dp_home();
	char *path = NULL;
	if (o->output && *o->output == '/')
		return strdup(o->output);
	if (o->output) {
		dp_auto_free char *cwd = getcwd(NULL, 0);
		return cwd && asprintf(&path, "%s/%s", cwd, o->output) >= 0 ? path : NULL;
	}
	if (!home || o->session)
		return NULL;
	return asprintf(&path, "%s/lttng-traces/%s", home, l->session) >= 0 ? path : NULL;
}

static struct lttng_session_descriptor *describe(const struct dp_lttng_options *o, const struct dp_lttng *l)
{
	const char *url = o->set_url;
	if (o->live_us)
		return dp_lttng_ctl.session_descriptor_live_network_create(l->session, url, NULL, o->live_us);
	if (url && strncmp(url, "file://", 7))
		return dp_lttng_ctl.session_descriptor_network_create(l->session, url, NULL);
	dp_auto_free char *path = url ? strdup(url + 7) : local_path(o, l);
	return dp_lttng_ctl.session_descriptor_local_create(l->session, path);
}

static int create_named(const struct dp_lttng_options *o, const struct dp_lttng *l, struct dp_error **err)
{
	struct lttng_session_descriptor *d = describe(o, l);
	*err = d ? NULL
	         : dp_error(DP_TAG_LTTNG,
	                    "invalid location '%s' for the trace: use net://HOST[:PORT[:PORT]][/PATH] or "
	                    "file:///PATH",
	                    o->set_url  ? o->set_url
	                    : o->output ? o->output
	                                : "");
	if (!d)
		return LTTNG_OK;
	const int code = (int)dp_lttng_ctl.create_session_ext(d);
	dp_lttng_ctl.session_descriptor_destroy(d);
	return code;
}

/* dynprobe-NAME-YYYYMMDD-HHMMSS, with -2, -3 appended for further ones within the same second. */
static void default_name(const struct dp_lttng_options *o, int attempt, struct dp_lttng *l)
{
	char date[32] = "", again[16] = "";
	const time_t now = time(NULL);
	struct tm tm;
	dp_auto_free char *name = dp_file_name(o->name ? o->name : "session");
	if (localtime_r(&now, &tm))
		strftime(date, sizeof(date), "-%Y%m%d-%H%M%S", &tm);
	if (attempt > 1)
		snprintf(again, sizeof(again), "-%d", attempt);
	snprintf(l->session, sizeof(l->session), "dynprobe-%.64s%s%s", name ? name : "session", date, again);
}

static struct dp_error *create(const struct dp_lttng_options *o, struct dp_lttng *l)
{
	struct dp_error *err = NULL;
	int code;
	if (o->live_us && o->set_url && !strncmp(o->set_url, "file://", 7))
		return dp_error(DP_TAG_LTTNG, "a live session needs a relay daemon: use --set-url net://HOST, not %s",
		                o->set_url);
	for (int i = 1;; i++) {
		if (!o->session)
			default_name(o, i, l);
		code = create_named(o, l, &err);
		if (err || code != LTTNG_ERR_EXIST_SESS || o->session || i == ATTEMPTS)
			break;
	}
	if (err)
		return err;
	if (code != LTTNG_OK)
		return dp_lttng_error(code, "creating the session '%s'%s%s", l->session,
		                      o->set_url   ? " at "
		                      : o->live_us ? " at net://127.0.0.1"
		                                   : "",
		                      o->set_url ? o->set_url : "");
	l->created = true;
	bool found;
	DP_TRY(look(l, &found));
	if (o->set_url && strncmp(o->set_url, "file://", 7))
		snprintf(l->where, sizeof(l->where), "%s", o->set_url); /* with the host as typed */
	return NULL;
}

static struct dp_error *find_or_create(const struct dp_lttng_options *o, struct dp_lttng *l)
{
	bool found = false;
	if (o->session && strlen(o->session) >= sizeof(l->session))
		return dp_error(DP_TAG_LTTNG, "the session name is too long: LTTng allows %zu bytes", sizeof(l->session) - 1);
	if (o->session)
		snprintf(l->session, sizeof(l->session), "%s", o->session);
	DP_TRY(look(l, &found));
	if (!found)
		return create(o, l);
	if (o->set_url || o->output || o->live_us)
		return dp_error(DP_TAG_LTTNG,
		                "the session '%s' already exists (%s): the location of its trace and its live mode were set "
		                "when it was "
		                "created; omit those options, or name another session",
		                l->session, *l->where ? l->where : "without output");
	return NULL;
}

/* ---- its channel ---- */

/* All user-space channels of a session have the same kind of buffers as the first one. */
static struct dp_error *find_buffers(const struct dp_lttng_options *o, struct dp_lttng *l)
{
	struct lttng_domain *domains = NULL;
	const int n = dp_lttng_ctl.list_domains(l->session, &domains);
	l->per_pid = o->per_pid;
	if (n < 0)
		return dp_lttng_error(n, "asking for the domains of the session '%s'", l->session);
	for (int i = 0; i < n; i++)
		if (domains[i].type == LTTNG_DOMAIN_UST)
			l->per_pid = domains[i].buf_type == LTTNG_BUFFER_PER_PID;
	free(domains);
	return NULL;
}

/* Sets l->channel to the requested one, or to the first enabled one; "" if there is none. */
static struct dp_error *find_channel(const struct dp_lttng_options *o, struct lttng_handle *h, struct dp_lttng *l)
{
	struct lttng_channel *channels = NULL;
	int n = dp_lttng_ctl.list_channels(h, &channels);
	/* If no user-space event was ever enabled, the domain does not exist yet. */
	if (n == -LTTNG_ERR_UST_CHAN_NOT_FOUND || n == -LTTNG_ERR_UND || n == -LTTNG_ERR_UNKNOWN_DOMAIN)
		n = 0;
	if (n < 0)
		return dp_lttng_error(n, "opening the session '%s' (its trace: %s)", l->session, l->where);
	const char *off = NULL;
	for (int i = 0; i < n && !*l->channel; i++) {
		if (o->channel && strcmp(channels[i].name, o->channel))
			continue;
		if (channels[i].enabled)
			snprintf(l->channel, sizeof(l->channel), "%s", channels[i].name);
		else
			off = channels[i].name;
	}
	struct dp_error *err = NULL;
	if (!*l->channel && off)
		err = dp_error(DP_TAG_LTTNG,
		               "the channel %s of the session '%s' is disabled: run lttng enable-channel -u -s %s %s", off,
		               l->session, l->session, off);
	free(channels);
	return err;
}

/*
 * LTTng does not say whether a session was ever started, but adding a channel shows it. After a start LTTng refuses any channel;
 * before, only one with impossible buffers, such as this one. Nothing is created in either case.
 */
static bool was_started(struct lttng_handle *h, const struct dp_lttng *l)
{
	struct lttng_channel *c = l->active ? NULL : dp_lttng_ctl.channel_create(&h->domain);
	if (!c)
		return true;
	snprintf(c->name, sizeof(c->name), "%s", "dynprobe-was-started");
	c->attr.subbuf_size = 4096;
	c->attr.num_subbuf = 3; /* not a power of two */
	const int code = dp_lttng_reason(h, dp_lttng_ctl.enable_channel(h, c));
	dp_lttng_ctl.channel_destroy(c);
	return code == -LTTNG_ERR_TRACE_ALREADY_STARTED;
}

static struct dp_error *make_channel(const struct dp_lttng_options *o, struct lttng_handle *h, struct dp_lttng *l)
{
	const char *name = o->channel ? o->channel : OUR_CHANNEL;
	if (strlen(name) >= sizeof(l->channel))
		return dp_error(DP_TAG_LTTNG, "the channel name is too long: LTTng allows %zu bytes", sizeof(l->channel) - 1);
	if (o->subbuf_size & (o->subbuf_size - 1))
		return dp_error(DP_TAG_LTTNG, "the size of LTTng sub-buffers must be a power of two, not %ju bytes",
		                (uintmax_t)o->subbuf_size);
	struct lttng_channel *c = dp_lttng_ctl.channel_create(&h->domain);
	if (!c)
		return dp_error_nomem();
	snprintf(c->name, sizeof(c->name), "%s", name);
	if (o->subbuf_size)
		c->attr.subbuf_size = o->subbuf_size;
	const int code = dp_lttng_reason(h, dp_lttng_ctl.enable_channel(h, c));
	dp_lttng_ctl.channel_destroy(c);
	if (code == -LTTNG_ERR_TRACE_ALREADY_STARTED)
		return dp_error(
		        DP_TAG_LTTNG,
		        "the session '%s' has no user-space channel%s%s, and has already been started: LTTng adds channels "
		        "only before a "
		        "session's first start; create a new session",
		        l->session, o->channel ? " " : "", o->channel ? o->channel : "");
	if (code < 0)
		return dp_lttng_error(code, "creating the channel %s in the session '%s' (its trace: %s)", name, l->session,
		                      l->where);
	snprintf(l->channel, sizeof(l->channel), "%s", name);
	return NULL;
}

static struct dp_error *open_channel(const struct dp_lttng_options *o, struct dp_lttng *l)
{
	DP_TRY(find_buffers(o, l));
	auto_handle h = dp_lttng_handle(l);
	if (!h)
		return dp_error_nomem();
	DP_TRY(find_channel(o, h, l));
	if (!*l->channel)
		return make_channel(o, h, l);
	l->started_before = was_started(h, l);
	return NULL;
}

struct dp_error *dp_lttng_session_open(const struct dp_lttng_options *o, struct dp_lttng *l)
{
	DP_TRY(find_or_create(o, l));
	struct dp_error *err = open_channel(o, l);
	if (err && l->created)
		dp_lttng_ctl.destroy_session_no_wait(l->session);
	return err;
}
