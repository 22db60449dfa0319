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

#define MAX_SHOWN 2048u /* longer ones are not useful to a reader */

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

/* The slot of `name`, or the empty one where it belongs. The table is at most half full. */
static struct dp_readable *place(struct dp_readable *slot, size_t size, const char *name)
{
	size_t i = (size_t)(((uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (size - 1);
	while (slot[i].name && slot[i].name != name)
		i = (i + 1) & (size - 1);
	return &slot[i];
}

static bool grow(struct dp_readables *r)
{
	const size_t size = r->size ? 2 * r->size : 64;
	struct dp_readable *slot = calloc(size, sizeof(*slot));
	if (!slot)
		return false;
	for (size_t i = 0; i < r->size; i++)
		if (r->slot[i].name)
			*place(slot, size, r->slot[i].name) = r->slot[i];
	free(r->slot);
	r->slot = slot;
	r->size = size;
	return true;
}

const char *dp_function_readable(const struct dp_function *f)
{
	struct dp_readables *r = f->module ? &f->module->readables : NULL;
	if (!r || !is_mangled(f->name) || (2 * r->n >= r->size && !grow(r)))
		return f->name;
	struct dp_readable *at = place(r->slot, r->size, f->name);
	if (!at->name) {
		*at = (struct dp_readable){f->name, demangle(f->name)};
		r->n++;
	}
	return at->text ? at->text : f->name;
}

void dp_readables_fini(struct dp_readables *r)
{
	for (size_t i = 0; i < r->size; i++)
		free(r->slot[i].text);
	free(r->slot);
	*r = (struct dp_readables){0};
}
