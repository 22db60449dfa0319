/* SPDX-License-Identifier: MIT */
#include "cli/terminal/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool dp_table_is_redrawn(const struct dp_options *o)
{
	const char *term = getenv("TERM");
	return o->format == DP_FORMAT_TEXT && !o->quiet && !o->output && !o->trace.command && !o->trace.asked.folded &&
	       isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}

static struct winsize size_of(int fd)
{
	struct winsize w = {0};
	if (ioctl(fd, TIOCGWINSZ, &w))
		w = (struct winsize){0};
	return w;
}

unsigned dp_table_width(const struct dp_options *o)
{
	return o->output ? 0 : size_of(o->trace.command ? STDERR_FILENO : STDOUT_FILENO).ws_col;
}

void dp_table_draw(struct dp_drawn *drawn, const char *text, FILE *to)
{
	const struct winsize w = size_of(STDOUT_FILENO);
	dp_redraw(drawn, w.ws_col ? w.ws_col : 80, w.ws_row ? w.ws_row : 24, text, to);
}
