/* SPDX-License-Identifier: MIT */
#include "output/lttng/lttng_session.h"

#include <string.h>
#include <unistd.h>

bool dp_lttng_url_split(const char *url, char *host, char *path, size_t size)
{
	static const char *const schemes[] = {"net://", "net4://", "net6://", "tcp://", "tcp4://", "tcp6://"};
	const char *at = NULL;
	for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
		if (!strncmp(url, schemes[i], strlen(schemes[i])))
			at = url + strlen(schemes[i]);
	if (!at)
		return false;
	/* The colons of an address in brackets do not separate ports. */
	const size_t bracket = *at == '[' ? strcspn(at, "]") : 0;
	const size_t len = bracket + strcspn(at + bracket, ":/ ");
	snprintf(host, size, "%.*s", (int)len, at);
	at += len;
	at += strcspn(at, "/ ");
	at += *at == '/';
	snprintf(path, size, "%.*s", (int)strcspn(at, " "), at);
	return true;
}

void dp_lttng_log_view(struct dp_lttng *l)
{
	char host[256], path[256], us[256] = "";
	gethostname(us, sizeof(us) - 1);
	const bool net = dp_lttng_url_split(l->where, host, path, sizeof(host));
	if (l->snapshot)
		snprintf(l->view, sizeof(l->view),
		         "lttng snapshot record -s %s, then lttng view -t with the directory that it prints", l->session);
	else if (net && l->live_us)
		snprintf(l->view, sizeof(l->view), "babeltrace2 --input-format=lttng-live net://%s/host/%s/%s", host, us,
		         l->session);
	else if (net)
		snprintf(l->view, sizeof(l->view), "on %s, where lttng-relayd writes it: lttng view -t ~/lttng-traces/%s/%s%s",
		         host, us, *path ? path : l->session, *path ? "" : "-*");
	else if (*l->where)
		snprintf(l->view, sizeof(l->view), "lttng view -t %s", l->where);
	else
		snprintf(l->view, sizeof(l->view), "the session has no output: its events are not stored");
}
