/* SPDX-License-Identifier: MIT */
/* show: a snapshot, or a core file, as text or JSON. */
#include "cli/commands/command.h"
#include "cli/commands/snapshots/snapshot_opened.h"
#include "cli/run/pager.h"
#include "output/snapshot/show.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/* Of the terminal; 0 (unlimited) for files. */
static unsigned terminal_width(void)
{
	struct winsize w = {0};
	const char *columns = getenv("COLUMNS");
	if (!isatty(STDOUT_FILENO))
		return 0;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col)
		return w.ws_col;
	return columns && atoi(columns) > 0 ? (unsigned)atoi(columns) : 0;
}

static struct dp_error *show(const struct dp_options *o)
{
	struct dp_snapshot *s = NULL;
	struct dp_show_options how = o->show;
	how.color = dp_options_color(o, stdout);
	how.width = terminal_width();
	how.quiet = o->quiet;
	how.verbose = o->verbose > 0 ? (unsigned)o->verbose : 0;
	DP_TRY(dp_snapshot_opened(o, &s));
	struct dp_pager pager = {0};
	if (o->format != DP_FORMAT_JSON) /* which is the file as it is */
		dp_ready_run(s);
	if (!o->no_pager)
		dp_pager_begin(&pager);
	struct dp_error *err = o->format == DP_FORMAT_JSON ? dp_snapshot_json(s, stdout) : dp_show_snapshot(s, &how, stdout);
	dp_pager_end(&pager);
	dp_snapshot_destroy(s);
	return err;
}

/* A reader that closes the pipe (head) is no error. */
int dp_command_show(const struct dp_options *options)
{
	signal(SIGPIPE, SIG_IGN);
	struct dp_error *err = show(options);
	const bool failed = err && !(err->tag == DP_TAG_OUTPUT && err->sys == EPIPE);
	if (failed)
		dp_error_print(err, stderr);
	dp_error_destroy(err);
	return failed ? DP_EXIT_FAILURE : 0;
}
