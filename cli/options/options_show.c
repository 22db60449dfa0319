/* SPDX-License-Identifier: MIT */
/* show: which parts of a snapshot are meant. */
#include "cli/options/numbers.h"
#include "cli/options/options_table.h"

#include <string.h>

static struct dp_error *take_number(const char *option, const char *arg, uint64_t *ret)
{
	DP_TRY(dp_number_parse(option, arg, ret));
	return *ret > INT32_MAX ? dp_error(DP_TAG_USAGE, "%s %s is too large", option, arg) : NULL;
}

struct dp_error *dp_take_show_thread(struct dp_parser *p, const char *arg)
{
	uint64_t tid;
	DP_TRY(take_number("--thread", arg, &tid));
	if (!tid)
		return dp_error(DP_TAG_USAGE, "--thread takes the number of a thread, which is not 0");
	p->o.show.thread = (pid_t)tid;
	return NULL;
}

struct dp_error *dp_take_show_frame(struct dp_parser *p, const char *arg)
{
	uint64_t n = 0;
	if (strcmp(arg, "0")) /* the innermost */
		DP_TRY(take_number("--frame", arg, &n));
	p->o.show.frame = (int)n;
	return NULL;
}

struct dp_error *dp_take_show_var(struct dp_parser *p, const char *arg)
{
	if (p->o.show.nvars == DP_SHOW_VARS)
		return dp_error(DP_TAG_USAGE, "more than %u variables at once (--var)", DP_SHOW_VARS);
	p->o.show.var[p->o.show.nvars++] = arg;
	return NULL;
}

struct dp_error *dp_take_json(struct dp_parser *p, const char *arg)
{
	(void)arg;
	p->o.format = DP_FORMAT_JSON;
	return NULL;
}

#define FLAG(field)                                                                                                              \
	struct dp_error *dp_take_show_##field(struct dp_parser *p, const char *arg)                                              \
	{                                                                                                                        \
		(void)arg;                                                                                                       \
		p->o.show.field = true;                                                                                          \
		return NULL;                                                                                                     \
	}
FLAG(registers)
FLAG(maps)
FLAG(files)
FLAG(limits)

struct dp_error *dp_take_show_all(struct dp_parser *p, const char *arg)
{
	(void)arg;
	p->o.show.registers = p->o.show.maps = p->o.show.files = p->o.show.limits = p->o.show.ungrouped = true;
	return NULL;
}

static struct dp_error *check_file(const struct dp_options *o, const char *verb)
{
	if (!o->nnames)
		return dp_error(DP_TAG_USAGE, "which snapshot? Give its file; see dynprobe %s --help", verb);
	if (o->nnames > 1)
		return dp_error(DP_TAG_USAGE, "unexpected argument '%s': dynprobe %s takes one file at a time", o->name[1], verb);
	return NULL;
}

struct dp_error *dp_report_check(const struct dp_options *o)
{
	return check_file(o, "report");
}

struct dp_error *dp_show_check(const struct dp_options *o)
{
	const bool part = o->show.thread || o->show.frame >= 0 || o->show.nvars;
	DP_TRY(check_file(o, "show"));
	if (o->format == DP_FORMAT_JSON && part)
		return dp_error(DP_TAG_USAGE,
		                "JSON is of the whole snapshot: it and --thread, --frame or --var exclude each other");
	return NULL;
}
