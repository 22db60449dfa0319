/* SPDX-License-Identifier: MIT */
/* list: which functions there are, and where in them probes would fit. Only /proc and files are read. */
#include "cli/commands/list/command_list.h"

#include "cli/commands/command.h"
#include "cli/commands/list/twins.h"
#include "injector/tracee/proc/inspect.h"
#include "probes/elf/demangle.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct lister {
	const struct dp_options *options;
	const char *glob;           /* or NULL */
	struct dp_name_match match; /* of names as C++ and Rust have them */
	struct dp_image *image;
	struct dp_verdicts verdicts;
	struct dp_twins twins; /* of the current module */
	const char **alias;
	size_t naliases, alias_capacity;
	size_t modules, functions;
	bool unread; /* the reader closed the pipe */
};

/* A reader that closes the pipe (head) is no error. */
static struct dp_error *check_output(struct lister *l)
{
	if (!ferror(stdout))
		return NULL;
	l->unread = errno == EPIPE;
	return l->unread ? NULL : dp_error_sys(DP_TAG_OUTPUT, "writing the list");
}

/* item[0..n) are the names of one address: the first match becomes *name, the others aliases. False: no match. */
static bool choose(struct lister *l, const struct dp_named *item, size_t n, const char **name)
{
	*name = NULL;
	l->naliases = 0;
	if (n > l->alias_capacity) {
		const char **grown = realloc(l->alias, n * sizeof(*grown));
		if (!grown)
			return false;
		l->alias = grown;
		l->alias_capacity = n;
	}
	for (size_t i = 0; i < n; i++)
		if (!*name && (dp_name_glob(l->glob, item[i].f.name) || dp_name_match_symbol(&l->match, item[i].f.name)))
			*name = item[i].f.name;
		else
			l->alias[l->naliases++] = item[i].f.name;
	return *name;
}

/* JSON has the name of the symbol table; text a readable one with parameters, which tell overloads apart. */
static struct dp_error *show(struct lister *l, const struct dp_named *item, const char *name)
{
	const struct dp_function *f = &item->f;
	const bool json = l->options->format == DP_FORMAT_JSON;
	dp_auto_free char *readable = json ? NULL : dp_demangle(name, true);
	struct dp_listed_function shown = {
	        .path = dp_module_path(f->module),
	        .module = json ? dp_module_name(f->module) : dp_module_shown(f->module),
	        .name = readable ? readable : name,
	        .addr = f->start.v - l->verdicts.shown_bias,
	        .size = f->size,
	        .vaddr = f->start.v - (uint64_t)dp_module_bias(f->module),
	        .ifunc = item->ifunc,
	        .alias = l->alias,
	        .naliases = l->naliases,
	};
	shown.file = dp_twins_file(&l->twins, item, name, &shown.line);
	if (l->options->verbose) {
		DP_TRY(dp_verdicts_ask(&l->verdicts, f));
		shown.site = l->verdicts.site;
		shown.nsites = l->verdicts.n;
	}
	l->functions++;
	if (l->options->format == DP_FORMAT_JSON)
		dp_function_json(&shown, stdout);
	else
		dp_function_text(&shown, l->options->verbose > 1, stdout);
	return check_output(l);
}

static struct dp_error *list_functions(struct lister *l, const struct dp_named *item, size_t n)
{
	for (size_t i = 0, end; i < n && !l->unread; i = end) {
		const char *name;
		for (end = i + 1; end < n && item[end].alias;)
			end++;
		if (choose(l, &item[i], end - i, &name))
			DP_TRY(show(l, &item[i], name));
	}
	return NULL;
}

static struct dp_error *list_markers(struct lister *l, struct dp_module *m)
{
	DP_TRY(dp_list_markers(m, l->glob, l->verdicts.shown_bias, l->options->format == DP_FORMAT_JSON, &l->functions));
	return check_output(l);
}

/* Skips a module whose file is gone, with a note. */
static struct dp_error *list_module(struct lister *l, struct dp_module *m)
{
	struct dp_named *item = NULL;
	size_t n = 0;
	if (!dp_module_glob(m, l->glob))
		return NULL;
	l->modules++;
	if (dp_list_is_marker_glob(l->glob))
		return list_markers(l, m);
	struct dp_error *err = dp_module_functions(m, &item, &n);
	if (err && err->tag != DP_TAG_NOMEM) {
		fprintf(stderr, "dynprobe: skipped: %s [%s]\n", err->message, dp_tag_name(err->tag));
		return dp_error_destroy(err);
	}
	if (!err)
		err = dp_twins_open(item, n, &l->twins) ? list_functions(l, item, n) : dp_error_nomem();
	dp_twins_close(&l->twins);
	free(item);
	return err || l->unread || (l->glob && *l->glob) ? err : list_markers(l, m);
}

static size_t count_matches(const struct lister *l, const char *pattern)
{
	struct dp_spec spec = {0};
	struct dp_selection found = {0};
	struct dp_error *err = dp_spec_parse(pattern, &spec);
	if (!err)
		err = dp_image_select(l->image, &spec, NULL, 0, &found);
	const size_t n = err ? 0 : found.n;
	dp_error_destroy(err);
	dp_selection_fini(&found);
	dp_spec_fini(&spec);
	return n;
}

/* A beginning or a part of names was typed: NAME* or *NAME* lists them. */
static struct dp_error *no_function(const struct lister *l)
{
	const char *bang = strrchr(l->glob, '!'), *name = bang ? bang + 1 : l->glob;
	for (int i = 0; i < 2 && *name && !strpbrk(l->glob, "*?["); i++) {
		dp_auto_free char *pattern = NULL;
		if (asprintf(&pattern, "%.*s%s%s*", (int)(name - l->glob), l->glob, i ? "*" : "", name) < 0)
			return dp_error_nomem();
		const size_t n = count_matches(l, pattern);
		if (n)
			return dp_error(DP_TAG_NO_SYMBOL, "no function is named '%s', but '%s' matches %zu", l->glob, pattern, n);
	}
	return dp_error(DP_TAG_NO_SYMBOL, "no function is named '%s'", l->glob);
}

static struct dp_error *nothing(const struct lister *l)
{
	if (!l->modules)
		return dp_error(DP_TAG_NO_MODULE, "'%s': no such module%s", l->glob,
		                l->options->trace.npids ? " in the process" : "; a file has only itself");
	const bool is_marker = dp_list_is_marker_glob(l->glob);
	if (l->glob && !is_marker && !dp_list_is_call_glob(l->glob))
		return no_function(l);
	return dp_error(DP_TAG_NO_SYMBOL, "no %s is named '%s'",
	                is_marker ? "marker"
	                : l->glob ? "system call"
	                          : "function",
	                l->glob ? l->glob : "*");
}

/* By default also traps where no jump fits, but not in Go programs. */
static unsigned default_tactics(struct dp_image *image)
{
	for (size_t i = 0; i < dp_image_nmodules(image); i++)
		if (dp_module_small_stacks(dp_image_module(image, i)))
			return DP_TACTICS_JUMPS;
	return DP_TACTICS_JUMPS | 1u << DP_TACTIC_TRAP;
}

static unsigned tactics_of(const struct dp_options *o, struct dp_image *image)
{
	const unsigned asked = o->trace.tactics ? o->trace.tactics : default_tactics(image);
	const unsigned left = o->trace.no_trap ? asked & DP_TACTICS_JUMPS : asked;
	return left ? left : 1u << DP_TACTIC_COUNT; /* no tactic; 0 would be every jump */
}

static struct dp_error *list_modules(struct lister *l)
{
	struct dp_error *err = NULL;
	l->modules = 0;
	for (size_t i = 0; i < dp_image_nmodules(l->image) && !err && !l->unread; i++)
		err = list_module(l, dp_image_module(l->image, i));
	return err;
}

static struct dp_error *list_all(struct lister *l, uint64_t shown_bias)
{
	const char *bang = l->glob ? strrchr(l->glob, '!') : NULL;
	if (!dp_name_match_init(&l->match, bang ? bang + 1 : l->glob ? l->glob : ""))
		return dp_error_nomem();
	DP_TRY(dp_verdicts_open(l->image, tactics_of(l->options, l->image), shown_bias, &l->verdicts));
	l->verdicts.handler = l->options->trace.tactics >> DP_TACTIC_TRAP & 1 && !l->options->trace.no_trap;
	l->verdicts.names = l->options->format != DP_FORMAT_JSON;
	struct dp_error *err = NULL;
	const bool calls = dp_list_is_call_glob(l->glob);
	if (calls)
		err = dp_list_calls(&l->verdicts, l->glob, l->options->format == DP_FORMAT_JSON, &l->functions);
	l->modules += calls;
	if (!calls && !err)
		err = list_modules(l);
	if (!calls && !err && !l->functions && !l->match.anywhere) { /* then names without their scopes */
		l->match.anywhere = true;
		err = list_modules(l);
	}
	if (!err && fflush(stdout))
		err = check_output(l);
	if (!err && !l->unread && l->options->verbose && l->verdicts.asked)
		dp_verdicts_total(&l->verdicts, stderr);
	dp_verdicts_close(&l->verdicts);
	free(l->alias);
	return err || l->functions ? err : nothing(l);
}

static struct dp_error *list_file(struct lister *l)
{
	const char *path = l->options->name[0];
	uint64_t base = 0;
	l->glob = l->options->nnames > 1 ? l->options->name[1] : NULL;
	if (!strchr(path, '/') && access(path, F_OK))
		return dp_error(DP_TAG_BAD_ELF,
		                "there is no file '%s' here: give its path ($(which %s)), or for a process of that name --pid %s",
		                path, path, path);
	DP_TRY(dp_image_from_file(path, &l->image));
	if (dp_image_nmodules(l->image))
		base = (uint64_t)dp_module_bias(dp_image_module(l->image, 0));
	if (l->options->verbose)
		fprintf(stderr,
		        "dynprobe: addresses are those of the file; tactics are those of the file loaded alone at 0x%llx\n",
		        (unsigned long long)base);
	return list_all(l, base);
}

static struct dp_error *list_process(struct lister *l)
{
	struct dp_process p;
	char *maps = NULL, root[32];
	l->glob = l->options->nnames ? l->options->name[0] : NULL;
	/* Reading is safe under a seccomp filter and while another tool works. */
	DP_TRY(dp_process_inspect(l->options->trace.pid[0], &p));
	DP_TRY(dp_process_maps(&p, &maps));
	snprintf(root, sizeof(root), "/proc/%d/root", p.alive);
	struct dp_error *err = dp_image_create(maps, root, p.alive, &l->image);
	free(maps);
	return err ? err : list_all(l, 0);
}

int dp_command_list(const struct dp_options *options)
{
	struct lister l = {.options = options};
	signal(SIGPIPE, SIG_IGN);
	struct dp_error *err = options->trace.npids ? list_process(&l) : list_file(&l);
	dp_error_print(err, stderr);
	dp_name_match_fini(&l.match);
	dp_image_destroy(l.image);
	const int status = err ? DP_EXIT_FAILURE : 0;
	dp_error_destroy(err);
	return status;
}
