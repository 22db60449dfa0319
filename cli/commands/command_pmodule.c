/* SPDX-License-Identifier: MIT */
/* pmodule new, list, check, run: work without a process. */
#include "cli/commands/command.h"

#include "cli/commands/pmodule_new.h"
#include "cli/run/module_log.h"
#include "output/snapshot/show.h"
#include "pmodules/pmodules.h"

#include <string.h>
#include <unistd.h>

static struct dp_error *host_of(const struct dp_options *o, struct dp_module_log *said, struct dp_host **ret)
{
	const struct dp_snapshot_args *a = &o->snapshot;
	struct dp_host *h;
	const struct dp_host_options options = {.lua_allow = a->lua_allow.item,
	                                        .budget_ns = a->take.module_timeout_ns,
	                                        .log = dp_module_log_line,
	                                        .data = said,
	                                        .limits = a->take.limits,
	                                        .pmap = true,
	                                        .nobody_waits = true,
	                                        .value_of = dp_rerun_value};
	DP_TRY(dp_host_create(&options, &h));
	struct dp_error *err = NULL;
	for (size_t i = 0; !err && i < a->module_options.n; i++)
		err = dp_host_option(h, a->module_options.item[i]);
	if (err)
		dp_host_destroy(h);
	else
		*ret = h;
	return err;
}

static int failed(struct dp_error *err)
{
	dp_error_print(err, stderr);
	dp_error_destroy(err);
	return DP_EXIT_FAILURE;
}

/* ---- list, check ------------------------------------------------------------------------------------------------ */

static const char *const events[DP_EVENTS] = {"preattach", "attach", "variable", "frame", "thread", "postattach"};

static unsigned print_module(const struct dp_host *h, size_t i, const char *before)
{
	unsigned n = 0;
	printf("%s%s  %s ", before, dp_host_module_id(h, i), dp_host_module_path(h, i));
	for (int e = 0; e < DP_EVENTS; e++) {
		const size_t callbacks = dp_host_callbacks(h, i, (enum dp_module_event)e);
		if (callbacks == 1)
			printf(" %s", events[e]);
		else if (callbacks)
			printf(" %s*%zu", events[e], callbacks);
		n += callbacks > 0;
	}
	puts("");
	return n;
}

/* Writes what modules printed. Keeps the first error. */
static void put_printed(struct dp_module_log *said, struct dp_error **err)
{
	struct dp_error *unput = dp_module_log_put(said);
	dp_module_log_fini(said);
	if (*err)
		dp_error_destroy(unput);
	else
		*err = unput;
}

/* Each module in its own host: ids may be equal, and errors do not spread. */
static bool check_one(const struct dp_options *o, const char *path)
{
	struct dp_module_log said;
	struct dp_host *h = NULL;
	dp_module_log_init(&said, o);
	struct dp_error *err = host_of(o, &said, &h);
	if (!err)
		err = dp_host_load(h, path);
	if (!err && !print_module(h, 0, "ok: "))
		fprintf(stderr, "dynprobe: warning: %s registers no callback and does nothing\n", dp_host_module_id(h, 0));
	dp_host_destroy(h);
	put_printed(&said, &err);
	if (!err)
		return !said.errors;
	failed(err);
	return false;
}

static int check(const struct dp_options *o, size_t n, char *const *paths)
{
	size_t good = 0;
	for (size_t i = 0; i < n; i++)
		good += check_one(o, paths[i]);
	return good == n ? 0 : good ? DP_EXIT_PARTIAL : DP_EXIT_FAILURE;
}

static int list(const struct dp_options *o, size_t n, char *const *paths)
{
	struct dp_module_log said;
	struct dp_host *h = NULL;
	dp_module_log_init(&said, o);
	struct dp_error *err = host_of(o, &said, &h);
	const struct dp_snapshot_args *a = &o->snapshot;
	for (size_t i = 0; !err && i < n; i++)
		err = dp_host_load(h, paths[i]);
	for (size_t i = 0; !err && i < a->modules.n; i++)
		err = dp_host_load(h, a->modules.item[i]);
	for (size_t i = 0; !err && i < a->module_dirs.n; i++)
		err = dp_host_load_dir(h, a->module_dirs.item[i]);
	if (!err && !n && !a->modules.n && !a->module_dirs.n)
		err = dp_host_load_own(h);
	for (size_t i = 0; !err && i < dp_host_nmodules(h); i++)
		print_module(h, i, "");
	dp_host_destroy(h);
	put_printed(&said, &err);
	if (err)
		return failed(err);
	return said.errors ? DP_EXIT_PARTIAL : 0;
}

/* ---- run -------------------------------------------------------------------------------------------------------- */

static struct dp_error *load_all(const struct dp_options *o, struct dp_host *h)
{
	const struct dp_snapshot_args *a = &o->snapshot;
	for (size_t i = 0; i < a->modules.n; i++)
		DP_TRY(dp_host_load(h, a->modules.item[i]));
	for (size_t i = 0; i < a->module_dirs.n; i++)
		DP_TRY(dp_host_load_dir(h, a->module_dirs.item[i]));
	if (!dp_host_nmodules(h))
		return dp_error(DP_TAG_USAGE, "no module to run: give --module-load FILE");
	return NULL;
}

static struct dp_error *keep_or_show(const struct dp_options *o, struct dp_snapshot *s)
{
	const struct dp_show_options show = {.frame = -1};
	if (!o->output)
		return dp_show_snapshot(s, &show, stdout);
	DP_TRY(dp_snapshot_write(s, o->output));
	puts(o->output);
	return NULL;
}

static struct dp_error *run_modules(const struct dp_options *o, struct dp_host *h, struct dp_snapshot *s,
                                    struct dp_module_log *said)
{
	size_t missing = 0;
	DP_TRY(load_all(o, h));
	DP_TRY(dp_rerun(h, s, &missing));
	if (missing && !o->quiet)
		fprintf(stderr, "dynprobe: %zu of %zu files are missing or have changed: their variables have no types\n",
		        missing, s->nobjects);
	DP_TRY(dp_module_log_put(said));
	return keep_or_show(o, s);
}

static int run(const struct dp_options *o, size_t n, char *const *paths)
{
	struct dp_module_log said;
	struct dp_snapshot *s = NULL;
	struct dp_host *h = NULL;
	struct dp_error *err = NULL;
	dp_module_log_init(&said, o);
	if (n != 1)
		err = dp_error(DP_TAG_USAGE, "give one snapshot: dynprobe pmodule run FILE.dps --module-load FILE");
	if (!err)
		err = dp_snapshot_read_file(paths[0], &s);
	if (!err)
		err = host_of(o, &said, &h);
	if (!err)
		err = run_modules(o, h, s, &said);
	dp_host_destroy(h);
	dp_snapshot_destroy(s);
	put_printed(&said, &err);
	if (err)
		return failed(err);
	return said.errors ? DP_EXIT_PARTIAL : 0;
}

/* ---- subcommands ------------------------------------------------------------------------------------------------ */

static int create(const struct dp_options *o, size_t n, char *const *names)
{
	struct dp_error *err = n == 1 ? dp_pmodule_new(names[0], o->language ? o->language : "lua", o->output)
	                              : dp_error(DP_TAG_USAGE, "give one name: dynprobe pmodule new NAME [--lang lua|c]");
	return err ? failed(err) : 0;
}

int dp_command_pmodule(const struct dp_options *o)
{
	static const struct {
		const char *word;
		int (*fn)(const struct dp_options *o, size_t n, char *const *words);
	} parts[] = {{"new", create}, {"list", list}, {"check", check}, {"run", run}};
	const char *word = o->nnames ? o->name[0] : "";
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (!strcmp(word, parts[i].word))
			return parts[i].fn(o, o->nnames - 1, o->name + 1);
	return failed(dp_error(
	        DP_TAG_USAGE, "unknown subcommand 'pmodule %s': use new, list, check or run; see dynprobe pmodule --help", word));
}
