/* SPDX-License-Identifier: MIT */
/*
 * Caches demangled names per module: backtraces show the same functions repeatedly. A symbol's name stays in place as long as its
 * module, so its address is the key.
 */
#include "base/cleanup.h"
#include "probes/elf/demangle.h"
#include "probes/image/module.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define MAX_SHOWN 2048u /* longer ones are not useful to a reader */

struct dp_readable {
	const char *name;
	char *text; /* NULL: the name needs no demangling */
	UT_hash_handle hh;
};

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/* Where the suffix of a function's part (.cold, .part.0) starts, which is not part of the name. Rust's names may contain dots. */
static const char *part_of(const char *name, const char *text)
{
	const char *dot = strchr(name, '.');
	dp_auto_free char *alone = dot ? strndup(name, (size_t)(dot - name)) : NULL;
	dp_auto_free char *same = alone ? dp_demangle(alone, false) : NULL;
	return same && !strcmp(same, text) && strncmp(dot, ".llvm.", 6) != 0 ? dot : NULL;
}

/* The demangler drops the suffix along with the parameters, so it is added again. */
static char *demangle(const char *name)
{
	dp_auto_free char *text = dp_demangle(name, false);
	const char *part = text ? part_of(name, text) : NULL;
	char *whole;
	if (!text || strlen(text) > MAX_SHOWN)
		return NULL;
	if (!part)
		return dp_take(text, NULL);
	return asprintf(&whole, "%s [clone %s]", text, part) < 0 ? NULL : whole;
}

const char *dp_function_readable(const struct dp_function *f)
{
	struct dp_readable *r = NULL;
	if (!f->module || !f->module->parsed || !is_mangled(f->name))
		return f->name;
	HASH_FIND_PTR(f->module->parsed->readables, &f->name, r);
	if (!r && (r = calloc(1, sizeof(*r)))) {
		r->name = f->name;
		HASH_ADD_PTR(f->module->parsed->readables, name, r);
		if (!r->hh.tbl)
			return free(r), f->name;
		r->text = demangle(f->name);
	}
	return r && r->text ? r->text : f->name;
}

void dp_readables_fini(struct dp_readable **readables)
{
	struct dp_readable *one, *next;
	HASH_ITER(hh, *readables, one, next)
	{
		HASH_DEL(*readables, one);
		free(one->text);
		free(one);
	}
}
