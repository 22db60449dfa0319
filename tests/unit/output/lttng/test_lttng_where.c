/* SPDX-License-Identifier: MIT */
/* The command that dynprobe suggests for viewing events must work. */
#include "output/lttng/lttng_session.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

static void url(const char *text, const char *host, const char *path)
{
	char h[256] = "?", p[256] = "?";
	cr_expect(dp_lttng_url_split(text, h, p, sizeof(h)), "%s", text);
	cr_expect_str_eq(h, host, "%s", text);
	cr_expect_str_eq(p, path, "%s", text);
}

Test(url, host_and_path)
{
	url("net://relay", "relay", "");
	url("net4://relay", "relay", "");
	url("net://relay/", "relay", "");
	url("net://relay:5342:5343/a/b", "relay", "a/b");
	url("tcp4://127.0.0.1:5342/ [data: 5343]", "127.0.0.1", "");
	url("tcp4://127.0.0.1:5342/foo/bar [data: 5343]", "127.0.0.1", "foo/bar");
	url("net6://[::1]:5342/x", "[::1]", "x");
	url("tcp6://[fe80::1%eth0]", "[fe80::1%eth0]", "");
	url("net6://[::1", "[::1", "");
}

Test(url, a_directory_is_none)
{
	char h[8], p[8];
	cr_expect_not(dp_lttng_url_split("/home/me/lttng-traces/net://x", h, p, sizeof(h)));
	cr_expect_not(dp_lttng_url_split("file:///x", h, p, sizeof(h)));
	cr_expect_not(dp_lttng_url_split("", h, p, sizeof(h)));
}

Test(url, a_long_one_is_cut)
{
	char h[8], p[8];
	cr_expect(dp_lttng_url_split("net://a-long-name-of-a-host/and-a-long-path", h, p, sizeof(h)));
	cr_expect_str_eq(h, "a-long-");
	cr_expect_str_eq(p, "and-a-l");
}

static const char *view(struct dp_lttng *l, const char *where)
{
	strcpy(l->session, "s");
	strcpy(l->where, where);
	dp_lttng_log_view(l);
	return l->view;
}

Test(view, every_kind_of_session)
{
	char us[256] = "", expected[1024];
	gethostname(us, sizeof(us) - 1);
	cr_expect_str_eq(view(&(struct dp_lttng){0}, "/t/s-1"), "lttng view -t /t/s-1");
	snprintf(expected, sizeof(expected), "babeltrace2 --input-format=lttng-live net://relay/host/%s/s", us);
	cr_expect_str_eq(view(&(struct dp_lttng){.live_us = 1}, "net://relay"), expected);
	snprintf(expected, sizeof(expected), "on relay, where lttng-relayd writes it: lttng view -t ~/lttng-traces/%s/s-*", us);
	cr_expect_str_eq(view(&(struct dp_lttng){0}, "tcp4://relay:5342/ [data: 5343]"), expected);
	cr_expect(strstr(view(&(struct dp_lttng){.snapshot = true}, "/t"), "lttng snapshot record"));
	cr_expect(strstr(view(&(struct dp_lttng){0}, ""), "no output"));
}

/* ---- contexts ---- */

Test(context, names)
{
	struct lttng_event_context c;
	char provider[64], type[64];
	cr_expect(dp_lttng_context_find("vpid", &c, provider, type, sizeof(type)));
	cr_expect_eq(c.ctx, LTTNG_EVENT_CONTEXT_VPID);
	cr_expect(dp_lttng_context_find("pthread_id", &c, provider, type, sizeof(type)));
	cr_expect_eq(c.ctx, LTTNG_EVENT_CONTEXT_PTHREAD_ID);
	cr_expect(dp_lttng_context_find("$app.prov:my", &c, provider, type, sizeof(type)));
	cr_expect_str_eq(c.u.app_ctx.provider_name, "prov");
	cr_expect_str_eq(c.u.app_ctx.ctx_name, "my");
}

/* A counter would open a descriptor at the first event of each thread, within the program. */
Test(context, counters_and_nonsense_are_refused)
{
	static const char *const names[] = {
	        "perf:thread:instructions", "", "pid", "vpid ", "$app.", "$app.x", "$app.:y", "$app.x:"};
	struct lttng_event_context c;
	char provider[64], type[64];
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		cr_expect_not(dp_lttng_context_find(names[i], &c, provider, type, sizeof(type)), "%s", names[i]);
}
