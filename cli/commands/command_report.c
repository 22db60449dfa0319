/* SPDX-License-Identifier: MIT */
/* report: a snapshot as a page for a browser. */
#include "cli/commands/command.h"

#include "base/cleanup.h"
#include "output/snapshot/report.h"
#include "pmodules/pmodules.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The snapshot's name with another suffix; malloc'ed. */
static char *default_name(const char *file)
{
	const char *slash = strrchr(file, '/'), *dot = strrchr(file, '.');
	const size_t n = dot && (!slash || dot > slash + 1) ? (size_t)(dot - file) : strlen(file);
	char *name = NULL;
	return asprintf(&name, "%.*s.html", (int)n, file) < 0 ? NULL : name;
}

static struct dp_error *write_file(struct dp_snapshot *s, const char *path, bool asked)
{
	dp_auto_free char *page = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&page, &n);
	if (!to)
		return dp_error_nomem();
	struct dp_error *err = dp_report_html(s, to);
	if (fclose(to) && !err)
		err = dp_error_nomem();
	const struct dp_file_bytes bytes = {page, n, "page"};
	if (!err)
		err = asked ? dp_file_put(&bytes, path) : dp_file_put_beside(&bytes, path);
	return err;
}

static struct dp_error *report(const struct dp_options *o)
{
	struct dp_snapshot *s = NULL;
	dp_auto_free char *name = o->output ? strdup(o->output) : default_name(o->name[0]);
	if (!name)
		return dp_error_nomem();
	DP_TRY(dp_snapshot_read_file(o->name[0], &s));
	const bool here = !strcmp(name, "-");
	struct dp_error *err = here ? dp_report_html(s, stdout) : write_file(s, name, o->output != NULL);
	dp_snapshot_destroy(s);
	if (!err && !here && puts(name) < 0)
		err = dp_error_sys(DP_TAG_OUTPUT, "writing the page's name");
	return err;
}

int dp_command_report(const struct dp_options *options)
{
	signal(SIGPIPE, SIG_IGN);
	struct dp_error *err = report(options);
	const bool failed = err && !(err->tag == DP_TAG_OUTPUT && err->sys == EPIPE);
	if (failed)
		dp_error_print(err, stderr);
	dp_error_destroy(err);
	return failed ? DP_EXIT_FAILURE : 0;
}
