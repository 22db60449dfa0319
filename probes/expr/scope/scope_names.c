/* SPDX-License-Identifier: MIT */
/* Caches name lookups at one site: a condition may use a name many times, and each lookup reads a whole unit. */
#include "probes/expr/scope/scope_internal.h"

#include <string.h>

struct dp_found_name *dp_scope_recall(struct dp_scope *s, const char *name, int how)
{
	for (struct dp_found_name *n = s->names; n; n = n->next)
		if (n->how == how && !strcmp(n->name, name))
			return n;
	return NULL;
}

struct dp_found_name *dp_scope_remember(struct dp_scope *s, const char *name, int how)
{
	struct dp_found_name *n = dp_arena_alloc(&s->arena, sizeof(*n));
	const char *own = dp_arena_copy(&s->arena, name, strlen(name));
	if (!n || !own)
		return NULL;
	*n = (struct dp_found_name){.next = s->names, .name = own, .how = how};
	s->names = n;
	return n;
}
