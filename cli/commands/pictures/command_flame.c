/* SPDX-License-Identifier: MIT */
/* flame: a flame graph from folded stacks. */
#include "cli/commands/command.h"

#include "cli/run/flame.h"

#include <string.h>

static struct dp_error *read_stacks(const struct dp_options *o, struct dp_flame *f)
{
	const char *name = o->nnames ? o->name[0] : "-";
	if (!strcmp(name, "-"))
		return dp_flame_read(f, stdin, "standard input");
	dp_auto_fclose FILE *from = fopen(name, "re");
	return from ? dp_flame_read(f, from, name) : dp_error_sys(DP_TAG_BAD_FOLDED, "cannot read %s", name);
}

static struct dp_error *draw(const struct dp_options *o, struct dp_flame *f)
{
	const char *name = o->nnames && strcmp(o->name[0], "-") ? o->name[0] : "standard input", *slash = strrchr(name, '/');
	const struct dp_flame_shown shown = {.title = o->title ? o->title
	                                              : slash  ? slash + 1
	                                                       : name,
	                                     .unit = o->unit ? o->unit : "samples"};
	DP_TRY(read_stacks(o, f));
	return dp_flame_save(o, f, &shown);
}

int dp_command_flame(const struct dp_options *options)
{
	struct dp_flame *f = NULL;
	struct dp_error *err = dp_flame_create(&f);
	if (!err)
		err = draw(options, f);
	dp_flame_destroy(f);
	if (!err)
		return 0;
	dp_error_print(err, stderr);
	dp_error_destroy(err);
	return DP_EXIT_FAILURE;
}
