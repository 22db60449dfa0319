/* SPDX-License-Identifier: MIT */
#include "session/names.h"

#include "base/cleanup.h"

#include <stdint.h>
#include <string.h>

/* The slot of the name, or where to insert it. FNV-1a, linear probing; the table is at most half full. */
static char **place(char **slot, size_t size, const char *name)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	for (const char *p = name; *p; p++)
		hash = (hash ^ (unsigned char)*p) * UINT64_C(1099511628211);
	size_t i = (size_t)hash & (size - 1);
	while (slot[i] && strcmp(slot[i], name))
		i = (i + 1) & (size - 1);
	return &slot[i];
}

static bool grow(struct dp_names *names)
{
	const size_t size = names->size ? 2 * names->size : 64;
	char **slot = calloc(size, sizeof(*slot));
	if (!slot)
		return false;
	for (size_t i = 0; i < names->size; i++)
		if (names->slot[i])
			*place(slot, size, names->slot[i]) = names->slot[i];
	free(names->slot);
	names->slot = slot;
	names->size = size;
	return true;
}

struct dp_error *dp_names_add(struct dp_names *names, const char *name, bool *fresh)
{
	if (2 * names->n >= names->size && !grow(names))
		return dp_error_nomem();
	char **at = place(names->slot, names->size, name);
	*fresh = !*at;
	if (!*at && !(*at = strdup(name)))
		return dp_error_nomem();
	names->n += *fresh;
	return NULL;
}

/*
 * Thousands of probes may want one name, and trying _2, _3, ... from the start each time would be quadratic. So the number is
 * doubled until a free one is found, and a binary search then finds the first free one. (The used numbers have no gaps, except
 * for names that the user gave; then the result is a higher free number, which does as well.)
 */
static struct dp_error *numbered(struct dp_names *names, const char *base, char **ret)
{
	size_t lo = 1, hi = 2; /* base_lo is in the set, base_hi is tested next */
	dp_auto_free char *name = NULL;
	bool found = false;
	while (!found || hi - lo > 1) {
		const size_t at = found ? lo + (hi - lo) / 2 : hi;
		free(name);
		if (asprintf(&name, "%s_%zu", base, at) < 0) {
			name = NULL;
			return dp_error_nomem();
		}
		const bool taken = *place(names->slot, names->size, name);
		if (taken && !found)
			hi *= 2;
		if (taken)
			lo = at;
		else
			hi = at;
		found |= !taken;
	}
	free(name);
	name = NULL;
	if (asprintf(&name, "%s_%zu", base, hi) < 0) {
		name = NULL;
		return dp_error_nomem();
	}
	DP_TRY(dp_names_add(names, name, &found));
	*ret = dp_take(name, NULL);
	return NULL;
}

struct dp_error *dp_names_make(struct dp_names *names, const char *base, char **ret)
{
	bool fresh;
	DP_TRY(dp_names_add(names, base, &fresh));
	if (!fresh)
		return numbered(names, base, ret);
	*ret = strdup(base);
	return *ret ? NULL : dp_error_nomem();
}

void dp_names_fini(struct dp_names *names)
{
	for (size_t i = 0; i < names->size; i++)
		free(names->slot[i]);
	free(names->slot);
	*names = (struct dp_names){0};
}

bool dp_name_valid(const char *name)
{
	static const char alpha[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", digit[] = "0123456789";
	if (!*name || strlen(name) > 200 || strchr(digit, *name))
		return false;
	for (; *name; name++)
		if (!strchr(alpha, *name) && !strchr(digit, *name))
			return false;
	return true;
}
