/* SPDX-License-Identifier: MIT */
/* The tree: nodes in one array, found by parent and name, so that millions of lines take memory only for what is new in them. */
#include "output/flame/flame_internal.h"

#include "base/text_hash.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dp_flame_name {
	char *text;
	uint32_t number;
	UT_hash_handle hh;
};

/* ---- names ----------------------------------------------------------------------------------------------------------------- */

static bool keep_name(struct dp_flame *f, const char *text)
{
	if (f->nnames == f->names_capacity) {
		const size_t capacity = f->names_capacity ? 2 * f->names_capacity : 256;
		const char **grown = reallocarray(f->name, capacity, sizeof(*grown));
		if (!grown)
			return false;
		f->name = grown;
		f->names_capacity = capacity;
	}
	f->name[f->nnames++] = text;
	return true;
}

static uint32_t number_of(struct dp_flame *f, const char *text, size_t n)
{
	struct dp_flame_name *found;
	HASH_FIND(hh, f->names, text, n, found);
	if (found)
		return found->number;
	found = dp_arena_alloc(&f->arena, sizeof(*found));
	char *copy = found ? dp_arena_copy(&f->arena, text, n) : NULL;
	if (!copy || !keep_name(f, copy))
		return DP_FLAME_NONE;
	*found = (struct dp_flame_name){.text = copy, .number = (uint32_t)f->nnames - 1};
	HASH_ADD_KEYPTR(hh, f->names, copy, n, found);
	return found->number;
}

/* ---- nodes ----------------------------------------------------------------------------------------------------------------- */

static size_t slot_of(const struct dp_flame *f, uint32_t parent, uint32_t name)
{
	uint64_t h = ((uint64_t)parent << 32 | name) * UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ h >> 32) * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (size_t)(h >> 28) & (f->nslots - 1);
	for (uint32_t at; (at = f->slot[i]) != DP_FLAME_NONE; i = (i + 1) & (f->nslots - 1))
		if (f->node[at].parent == parent && f->node[at].name == name)
			break;
	return i;
}

static bool grow_slots(struct dp_flame *f)
{
	const size_t nslots = f->nslots ? 2 * f->nslots : 4096;
	uint32_t *slot = malloc(nslots * sizeof(*slot));
	if (!slot)
		return false;
	free(f->slot);
	memset(slot, 0xff, nslots * sizeof(*slot));
	f->slot = slot;
	f->nslots = nslots;
	for (uint32_t i = 1; i < f->n; i++)
		f->slot[slot_of(f, f->node[i].parent, f->node[i].name)] = i;
	return true;
}

static bool grow_nodes(struct dp_flame *f)
{
	const size_t capacity = f->capacity ? 2 * f->capacity : 2048;
	struct dp_flame_node *grown = capacity < DP_FLAME_NONE ? reallocarray(f->node, capacity, sizeof(*grown)) : NULL;
	if (!grown)
		return false;
	f->node = grown;
	f->capacity = capacity;
	return true;
}

static uint32_t child_of(struct dp_flame *f, uint32_t parent, uint32_t name)
{
	if ((2 * f->n >= f->nslots && !grow_slots(f)) || (f->n == f->capacity && !grow_nodes(f)))
		return DP_FLAME_NONE;
	const size_t slot = slot_of(f, parent, name);
	if (f->slot[slot] != DP_FLAME_NONE)
		return f->slot[slot];
	const uint32_t child = (uint32_t)f->n++;
	f->node[child] = (struct dp_flame_node){name, parent, DP_FLAME_NONE, f->node[parent].first, 0};
	f->node[parent].first = child;
	f->slot[slot] = child;
	return child;
}

struct dp_error *dp_flame_create(struct dp_flame **ret)
{
	struct dp_flame *f = calloc(1, sizeof(*f));
	if (!f || !grow_nodes(f)) {
		free(f);
		return dp_error_nomem();
	}
	f->node[f->n++] = (struct dp_flame_node){DP_FLAME_NONE, DP_FLAME_NONE, DP_FLAME_NONE, DP_FLAME_NONE, 0};
	*ret = f;
	return NULL;
}

struct dp_flame *dp_flame_destroy(struct dp_flame *f)
{
	if (!f)
		return NULL;
	HASH_CLEAR(hh, f->names);
	dp_arena_fini(&f->arena);
	free(f->name);
	free(f->node);
	free(f->slot);
	free(f);
	return NULL;
}

void dp_flame_stats(const struct dp_flame *f, struct dp_flame_stats *ret)
{
	*ret = f->stats;
	ret->total = f->node[0].total;
}

uint32_t dp_flame_stack(struct dp_flame *f, const char *const *frame, size_t n)
{
	uint32_t at = 0;
	for (size_t i = 0; i < n && at != DP_FLAME_NONE; i++) {
		const uint32_t name = number_of(f, frame[i], strlen(frame[i]));
		at = name == DP_FLAME_NONE ? DP_FLAME_NONE : child_of(f, at, name);
	}
	return at;
}

/* ---- folded stacks --------------------------------------------------------------------------------------------------------- */

/* The weight behind the last blank, and the length of the stack before it. */
static bool split(const char *line, size_t n, size_t *stack, double *weight)
{
	char number[40], *end;
	const char *blank = memrchr(line, ' ', n);
	const size_t digits = blank ? n - (size_t)(blank - line) - 1 : 0;
	if (!digits || digits >= sizeof(number) || strspn(blank + 1, "0123456789.") < digits)
		return false;
	memcpy(number, blank + 1, digits);
	number[digits] = 0;
	*weight = strtod(number, &end);
	*stack = (size_t)(blank - line);
	return !*end && *stack;
}

static bool add(struct dp_flame *f, const char *stack, size_t n, double weight)
{
	const char *end = stack + n, *next;
	uint32_t at = 0;
	f->node[0].total += weight;
	for (unsigned depth = 0; stack <= end; stack = next + 1, depth++) {
		next = memchr(stack, ';', (size_t)(end - stack));
		next = next ? next : end;
		if (depth == DP_FLAME_DEPTH) {
			f->stats.narrow++;
			return true;
		}
		const uint32_t name = number_of(f, stack, (size_t)(next - stack));
		at = name == DP_FLAME_NONE ? DP_FLAME_NONE : child_of(f, at, name);
		if (at == DP_FLAME_NONE)
			return false;
		f->node[at].total += weight;
	}
	return true;
}

bool dp_flame_line(struct dp_flame *f, const char *line, size_t n)
{
	size_t stack;
	double weight;
	while (n && strchr("\r\n\t ", line[n - 1]))
		n--;
	if (!split(line, n, &stack, &weight)) {
		f->stats.skipped += n != 0;
		return false;
	}
	f->stats.stacks++;
	f->failed |= !add(f, line, stack, weight);
	return true;
}

struct dp_error *dp_flame_read(struct dp_flame *f, FILE *from, const char *name)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t n;
	errno = 0;
	while (!f->failed && (n = getline(&line, &size, from)) >= 0)
		dp_flame_line(f, line, (size_t)n);
	free(line);
	if (f->failed || errno == ENOMEM)
		return dp_error_nomem();
	if (ferror(from))
		return dp_error_sys(DP_TAG_BAD_FOLDED, "cannot read %s", name);
	if (f->stats.stacks)
		return NULL;
	return dp_error(DP_TAG_BAD_FOLDED, "%s %s", name,
	                f->stats.skipped ? "has no line like main;f;g 12: it is not in folded form"
	                                 : "has no stacks: it is empty");
}
