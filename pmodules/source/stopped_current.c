/* SPDX-License-Identifier: MIT */
/* Does the process still map the same code as when it was opened? A prefetch is valid as long as it does. */
#include "pmodules/source/stopped_internal.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct code { /* a mapping of code; `what`: its line from the device on */
	uint64_t start, end, offset;
	const char *what;
	size_t n;
};

/* The next line of maps with code that is not dynprobe's own. */
static bool next_line(const char **maps, struct code *ret)
{
	while (**maps) {
		const char *line = *maps;
		const size_t n = strcspn(line, "\n");
		char permissions[5];
		int at = 0;
		*maps += n + (line[n] != '\0');
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 "%n", &ret->start, &ret->end, permissions, &ret->offset,
		           &at) < 4 ||
		    permissions[2] != 'x' || memmem(line, n, "/memfd:dynprobe", 15))
			continue;
		ret->what = line + at;
		ret->n = n - (size_t)at;
		return true;
	}
	return false;
}

static bool goes_on(const struct code *c, const struct code *next)
{
	return next->start == c->end && next->offset == c->offset + (c->end - c->start) && next->n == c->n &&
	       !memcmp(next->what, c->what, c->n);
}

/* Merges adjacent mappings of one file: after pages of text were replaced for a time, the kernel keeps them separate. */
static bool next_code(const char **maps, struct code *ret)
{
	struct code more;
	if (!next_line(maps, ret))
		return false;
	for (const char *at = *maps; next_line(&at, &more) && goes_on(ret, &more); *maps = at)
		ret->end = more.end;
	return true;
}

static bool is_same(const struct code *a, const struct code *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset && a->n == b->n &&
	       !memcmp(a->what, b->what, a->n);
}

bool dp_stopped_is_same_code(const char *was, const char *is)
{
	struct code a, b;
	if (!strcmp(was, is)) /* the usual case: saves parsing hundreds of lines */
		return true;
	for (;;) {
		const bool more = next_code(&was, &a);
		if (more != next_code(&is, &b))
			return false;
		if (!more)
			return true;
		if (!is_same(&a, &b))
			return false;
	}
}

bool dp_stopped_is_current(const struct dp_stopped *s)
{
	dp_auto_free char *text = NULL;
	struct dp_error *err = s->core || !s->target.maps ? NULL : dp_process_maps(&s->target.process, &text);
	dp_error_destroy(err);
	if (err || !text)
		return s->core != NULL;
	return dp_stopped_is_same_code(s->target.maps, text);
}
