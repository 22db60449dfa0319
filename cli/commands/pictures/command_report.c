/* SPDX-License-Identifier: MIT */
/* report: a snapshot, a core file, a trace or a run as a page for a browser. */
#include "cli/commands/command.h"
#include "cli/commands/pictures/report_events.h"
#include "cli/commands/snapshots/snapshot_opened.h"

#include "base/cleanup.h"
#include "output/snapshot/report.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The name with another suffix, beside what it shows; malloc'ed. */
static char *default_name(const char *file, bool folder)
{
	size_t n = strlen(file);
	while (n > 1 && file[n - 1] == '/')
		n--;
	const char *slash = memrchr(file, '/', n), *dot = folder ? NULL : memrchr(file, '.', n);
	if (dot && (!slash || dot > slash + 1))
		n = (size_t)(dot - file);
	char *name = NULL;
	return asprintf(&name, "%.*s.html", (int)n, file) < 0 ? NULL : name;
}

static struct dp_error *report_snapshot(const struct dp_options *o, FILE *to)
{
	struct dp_snapshot *s = NULL;
	if (o->view.when || o->view.last_ns || o->view.from_ns || o->view.to_ns)
		return dp_error(DP_TAG_USAGE, "--when, --last, --from and --to are for recorded traces, and %s is none",
		                o->name[0]);
	DP_TRY(dp_snapshot_opened(o, &s));
	dp_ready_run(s);
	struct dp_error *err = dp_report_html(s, to);
	dp_snapshot_destroy(s);
	return err;
}

static struct dp_error *put_page(const struct dp_options *o, enum dp_report_kind kind, FILE *to)
{
	return kind == DP_REPORT_SNAPSHOT ? report_snapshot(o, to) : dp_report_events(o, kind, to);
}

/* A page is complete or absent. */
static struct dp_error *write_file(const struct dp_options *o, enum dp_report_kind kind, const char *path)
{
	dp_auto_free char *page = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&page, &n);
	if (!to)
		return dp_error_nomem();
	struct dp_error *err = put_page(o, kind, to);
	if (fclose(to) && !err)
		err = dp_error_nomem();
	const struct dp_file_bytes bytes = {page, n, "page"};
	if (!err)
		err = o->output ? dp_file_put(&bytes, path) : dp_file_put_beside(&bytes, path);
	return err;
}

static struct dp_error *report(const struct dp_options *o)
{
	if (access(o->name[0], F_OK))
		return dp_error_advise(dp_error_sys(DP_TAG_SYS, "cannot open %s", o->name[0]),
		                       "give the path of a trace (dynprobe traces lists them), of a run's -f json, or of a snapshot");
	const enum dp_report_kind kind = dp_report_kind(o->name[0]);
	if (kind != DP_REPORT_SNAPSHOT && o->name[1])
		return dp_error(DP_TAG_USAGE, "unexpected argument '%s': dynprobe report takes one file at a time", o->name[1]);
	dp_auto_free char *name = o->output ? strdup(o->output) : default_name(o->name[0], kind == DP_REPORT_TRACE);
	if (!name)
		return dp_error_nomem();
	const bool here = !strcmp(name, "-");
	DP_TRY(here ? put_page(o, kind, stdout) : write_file(o, kind, name));
	return !here && puts(name) < 0 ? dp_error_sys(DP_TAG_OUTPUT, "writing the page's name") : NULL;
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
