/* SPDX-License-Identifier: MIT */
#include "base/cleanup.h"
#include "output/lttng/lttng_ctl.h"
#include "output/lttng/lttng_daemon.h"
#include "output/lttng/lttng_talk.h"

#include <stdarg.h>

/* Advice for errors whose LTTng text does not say what to do. */
static const struct {
	enum lttng_error_code code;
	const char *advice;
} advice[] = {
        {LTTNG_ERR_EPERM, "it belongs to another user"},
        {LTTNG_ERR_SESS_NOT_FOUND, "it was destroyed, or its session daemon was restarted; lttng list shows the sessions"},
        {LTTNG_ERR_NO_SESSION, "it was destroyed, or its session daemon was restarted; lttng list shows the sessions"},
        {LTTNG_ERR_SESSION_NOT_EXIST, "it was destroyed, or its session daemon was restarted; lttng list shows the sessions"},
        {LTTNG_ERR_RELAYD_CONNECT_FAIL, "start lttng-relayd on that host, and open ports 5342 and 5343"},
        {LTTNG_ERR_ENABLE_CONSUMER_FAIL, "start lttng-relayd on that host, and open ports 5342 and 5343"},
        {LTTNG_ERR_RELAYD_VERSION_FAIL, "lttng-relayd and lttng-sessiond must have the same major version"},
        {LTTNG_ERR_CREATE_DIR_FAIL, "check that the daemon's user may write there"},
        {LTTNG_ERR_SESSION_INVALID_CHAR, "a session name must not contain '/'"},
        {LTTNG_ERR_BUFFER_TYPE_MISMATCH, "a session's channels are all per user or all per process"},
        {LTTNG_ERR_NO_USTCONSUMERD, "its consumer daemon is gone: restart lttng-sessiond"},
        {LTTNG_ERR_UST_CONSUMER64_FAIL, "its consumer daemon is gone: restart lttng-sessiond"},
        {LTTNG_ERR_NO_UST, "use an lttng-tools that is built with LTTng-UST"},
        {LTTNG_ERR_UND,
         "liblttng-ctl and lttng-sessiond may differ in version: compare lttng --version, lttng-sessiond --version"},
        {LTTNG_ERR_FATAL,
         "liblttng-ctl and lttng-sessiond may differ in version: compare lttng --version, lttng-sessiond --version"},
        {LTTNG_ERR_INVALID_PROTOCOL,
         "liblttng-ctl and lttng-sessiond may differ in version: compare lttng --version, lttng-sessiond --version"},
};

struct dp_error *dp_lttng_error(int code, const char *fmt, ...)
{
	code = code < 0 ? -code : code;
	if (code == LTTNG_ERR_NO_SESSIOND || code == LTTNG_ERR_CONNECT_FAIL)
		return dp_lttng_absent();
	va_list args;
	va_start(args, fmt);
	dp_auto_free char *what = NULL;
	if (vasprintf(&what, fmt, args) < 0)
		what = NULL;
	va_end(args);
	char said[512];
	dp_lttng_said(said, sizeof(said));
	const char *hint = NULL;
	for (size_t i = 0; i < sizeof(advice) / sizeof(*advice); i++)
		if ((int)advice[i].code == code)
			hint = advice[i].advice;
	/* liblttng-ctl returns -1 or an errno value if the daemon hung up in the middle of an answer. */
	const bool known = code >= LTTNG_OK && code < LTTNG_ERR_NR;
	return dp_error(DP_TAG_LTTNG, "%s: %s%s%s%s%s%s", what ? what : "LTTng",
	                known ? dp_lttng_ctl.strerror(-code) : "the session daemon closed the connection", hint ? ": " : "",
	                hint ? hint : "", *said ? " (" : "", said, *said ? ")" : "");
}
