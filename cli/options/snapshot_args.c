/* SPDX-License-Identifier: MIT */
#include "cli/options/numbers.h"
#include "cli/options/options_table.h"

#include <stdlib.h>
#include <string.h>

#define MOST_NUMBER UINT64_C(1000000000)

static struct dp_error *no_memory(void)
{
	return dp_error(DP_TAG_NOMEM, "out of memory for the options");
}

static struct dp_error *add_word(struct dp_word_list *list, const char *word)
{
	const char **grown = realloc(list->item, (list->n + 2) * sizeof(*grown));
	if (!grown)
		return no_memory();
	list->item = grown;
	grown[list->n++] = word;
	grown[list->n] = NULL;
	return NULL;
}

/* A copy of text[0..n), which lives as long as the options. */
static struct dp_error *cut(struct dp_snapshot_args *a, const char *text, size_t n, const char **ret)
{
	char **grown = realloc(a->owned, (a->nowned + 1) * sizeof(*grown)), *copy = strndup(text, n);
	if (grown)
		a->owned = grown;
	if (!grown || !copy) {
		free(copy);
		return no_memory();
	}
	*ret = a->owned[a->nowned++] = copy;
	return NULL;
}

static struct dp_error *not_empty(const char *option, const char *arg)
{
	return *arg ? NULL : dp_error(DP_TAG_USAGE, "%s needs an argument that is not empty", option);
}

#define WORDS(option, name, list)                                                                                                \
	struct dp_error *dp_snap_##name(struct dp_parser *p, const char *arg)                                                    \
	{                                                                                                                        \
		DP_TRY(not_empty(option, arg));                                                                                  \
		return add_word(&p->o.snapshot.list, arg);                                                                       \
	}
WORDS("--global", global, globals)
WORDS("--classifier", classifier, classifiers)
WORDS("--module-load", module_load, modules)
WORDS("--modules-path", modules_path, module_dirs)
WORDS("--module", module, module_options)

/* An empty pattern is every module. */
struct dp_error *dp_snap_load(struct dp_parser *p, const char *arg)
{
	return add_word(&p->o.snapshot.load, arg);
}

struct dp_error *dp_snap_lua_allow(struct dp_parser *p, const char *arg)
{
	for (const char *from = arg;; from++) {
		const size_t n = strcspn(from, ",");
		const char *word;
		DP_TRY(cut(&p->o.snapshot, from, n, &word));
		DP_TRY(not_empty("--lua-allow", word));
		DP_TRY(add_word(&p->o.snapshot.lua_allow, word));
		from += n;
		if (!*from)
			return NULL;
	}
}

#define TEXT(option, name, field)                                                                                                \
	struct dp_error *dp_snap_##name(struct dp_parser *p, const char *arg)                                                    \
	{                                                                                                                        \
		DP_TRY(not_empty(option, arg));                                                                                  \
		p->o.snapshot.field = arg;                                                                                       \
		return NULL;                                                                                                     \
	}
TEXT("--core", core, core)
TEXT("--application", application, take.application)

#define FLAG(name)                                                                                                               \
	struct dp_error *dp_snap_##name(struct dp_parser *p, const char *arg)                                                    \
	{                                                                                                                        \
		(void)arg;                                                                                                       \
		p->o.snapshot.take.name = true;                                                                                  \
		return NULL;                                                                                                     \
	}
FLAG(tls)
FLAG(environ)

#define NUMBER(option, name, field)                                                                                              \
	struct dp_error *dp_snap_##name(struct dp_parser *p, const char *arg)                                                    \
	{                                                                                                                        \
		uint64_t value;                                                                                                  \
		DP_TRY(dp_number_parse(option, arg, &value));                                                                    \
		if (value > MOST_NUMBER)                                                                                         \
			return dp_error(DP_TAG_USAGE, option " '%s' is more than 1000000000", arg);                              \
		p->o.snapshot.field = (__typeof__(p->o.snapshot.field))value;                                                    \
		return NULL;                                                                                                     \
	}
NUMBER("--max-elems", max_elems, take.limits.elements)
NUMBER("--max-string", max_string, take.limits.string)
NUMBER("--max-vars-per-frame", max_variables, take.limits.variables)
NUMBER("--max-frames", max_frames, take.limits.frames)
NUMBER("--iterations", iterations, iterations)

struct dp_error *dp_snap_max_depth(struct dp_parser *p, const char *arg)
{
	uint64_t value;
	DP_TRY(dp_number_parse("--max-depth", arg, &value));
	if (value > 64)
		return dp_error(DP_TAG_USAGE, "--max-depth '%s' is more than 64", arg);
	p->o.snapshot.take.limits.depth = p->o.snapshot.take.limits.fault_depth = (unsigned)value;
	return NULL;
}

struct dp_error *dp_snap_max_bytes(struct dp_parser *p, const char *arg)
{
	size_t value;
	DP_TRY(dp_size_parse("--max-bytes", arg, &value));
	if (value < 1u << 20 || value > 200u << 20)
		return dp_error(DP_TAG_USAGE, "--max-bytes takes 1M to 200M");
	p->o.snapshot.take.limits.bytes = p->o.snapshot.take.still.max_bytes = value;
	return NULL;
}

/* Milliseconds where no unit says otherwise. */
static struct dp_error *milliseconds(const char *option, const char *arg, uint64_t *ret)
{
	uint64_t ms;
	if (!*arg || arg[strspn(arg, "0123456789")])
		return dp_duration_parse(option, arg, ret);
	DP_TRY(dp_number_parse(option, arg, &ms));
	if (ms > MOST_NUMBER)
		return dp_error(DP_TAG_USAGE, "%s '%s' is more than 1000000000", option, arg);
	*ret = ms * 1000000;
	return NULL;
}

struct dp_error *dp_snap_max_pause(struct dp_parser *p, const char *arg)
{
	return milliseconds("--max-pause", arg, &p->o.snapshot.take.still.max_pause_ns);
}

struct dp_error *dp_snap_module_timeout(struct dp_parser *p, const char *arg)
{
	return milliseconds("--module-timeout", arg, &p->o.snapshot.take.module_timeout_ns);
}

struct dp_error *dp_snap_interval(struct dp_parser *p, const char *arg)
{
	return dp_duration_parse("--interval", arg, &p->o.snapshot.interval_ns);
}

struct dp_error *dp_snap_mode(struct dp_parser *p, const char *arg)
{
	static const char *const names[] = {[DP_STOPPED_STOP] = "stop", [DP_STOPPED_FORK] = "fork", [DP_STOPPED_QUICK] = "quick"};
	for (int i = 0; i < 3; i++)
		if (!strcmp(arg, names[i])) {
			p->o.snapshot.take.still.mode = (enum dp_stopped_mode)i;
			return NULL;
		}
	return dp_error(DP_TAG_USAGE, "unknown mode '%s': use stop, fork or quick", arg);
}

/* k:v[,k:v...]; a value may hold colons, but no commas. */
struct dp_error *dp_snap_kv(struct dp_parser *p, const char *arg)
{
	struct dp_snapshot_args *a = &p->o.snapshot;
	for (const char *from = arg;; from++) {
		const size_t n = strcspn(from, ","), key = strcspn(from, ":,");
		struct dp_take_pair *grown = realloc(a->pair, (a->npairs + 1) * sizeof(*grown));
		if (!grown)
			return no_memory();
		a->pair = grown;
		if (!key || key >= n)
			return dp_error(DP_TAG_USAGE, "--kv '%s' is not KEY:VALUE[,KEY:VALUE...]", arg);
		DP_TRY(cut(a, from, key, &grown[a->npairs].key));
		DP_TRY(cut(a, from + key + 1, n - key - 1, &grown[a->npairs].value));
		a->npairs++;
		from += n;
		if (!*from)
			return NULL;
	}
}

static struct dp_error *add_tid(const char *option, const char *arg, pid_t **list, size_t *n)
{
	uint64_t tid;
	DP_TRY(dp_number_parse(option, arg, &tid));
	if (tid > INT32_MAX)
		return dp_error(DP_TAG_USAGE, "%s: invalid thread ID '%s'", option, arg);
	pid_t *grown = realloc(*list, (*n + 1) * sizeof(*grown));
	if (!grown)
		return no_memory();
	*list = grown;
	grown[(*n)++] = (pid_t)tid;
	return NULL;
}

struct dp_error *dp_snap_thread(struct dp_parser *p, const char *arg)
{
	return add_tid("--thread", arg, &p->o.snapshot.thread, &p->o.snapshot.nthreads);
}

struct dp_error *dp_snap_fault_thread(struct dp_parser *p, const char *arg)
{
	return add_tid("--fault-thread", arg, &p->o.snapshot.fault, &p->o.snapshot.nfaults);
}

void dp_snapshot_args_finish(struct dp_snapshot_args *a)
{
	struct dp_take_options *t = &a->take;
	t->globals = a->globals.item;
	t->load = a->load.item;
	t->classifiers = a->classifiers.item;
	t->modules = a->modules.item;
	t->module_dirs = a->module_dirs.item;
	t->module_options = a->module_options.item;
	t->lua_allow = a->lua_allow.item;
	t->pairs = a->pair;
	t->npairs = a->npairs;
	t->threads = a->thread;
	t->nthreads = a->nthreads;
	t->faults = a->fault;
	t->nfaults = a->nfaults;
}

void dp_snapshot_args_fini(struct dp_snapshot_args *a)
{
	const struct dp_word_list *lists[] = {&a->globals,     &a->load,           &a->classifiers, &a->modules,
	                                      &a->module_dirs, &a->module_options, &a->lua_allow};
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		free(lists[i]->item);
	for (size_t i = 0; i < a->nowned; i++)
		free(a->owned[i]);
	free(a->owned);
	free(a->pair);
	free(a->thread);
	free(a->fault);
	*a = (struct dp_snapshot_args){0};
}
