/* SPDX-License-Identifier: MIT */
/* What a module's language tells the host while the module loads: its id and its callbacks. */
#include "pmodules/host/host_state.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define ID_MAX 64u

static bool is_id(const char *id)
{
	size_t n = 0;
	for (; id[n]; n++)
		if (n == ID_MAX || (!isalnum((unsigned char)id[n]) && !strchr("_-.", id[n])))
			return false;
	return n > 0;
}

struct dp_error *dp_module_set_id(struct pmodule *m, const char *id)
{
	const struct pmodule *other;
	if (!id || !is_id(id))
		return dp_error(DP_TAG_PMODULE, "%s: invalid module id '%s': use 1 to %u letters, digits and _-.", m->path,
		                id ? id : "", ID_MAX);
	DL_FOREACH(m->host->modules, other)
	if (!strcmp(other->id, id))
		return dp_error(DP_TAG_PMODULE, "%s: the id '%s' is already used by %s", m->path, id, other->path);
	char *copy = strdup(id);
	if (!copy)
		return dp_error_nomem();
	free(m->id);
	m->id = copy;
	return NULL;
}

static struct dp_error *check_match(const struct pmodule_match *match, enum dp_module_event event)
{
	static const char *const name[] = {"preattach", "attach", "variable", "frame", "thread", "postattach"};
	if ((unsigned)event >= DP_EVENTS)
		return dp_error(DP_TAG_PMODULE, "unknown event %d", (int)event);
	if (!match || event == DP_EVENT_VARIABLE)
		return NULL;
	if (event != DP_EVENT_FRAME && event != DP_EVENT_THREAD)
		return dp_error(DP_TAG_PMODULE, "%s events take no match object", name[event]);
	if (dp_match_of_variables(match))
		return dp_error(DP_TAG_PMODULE, "criteria of variables (name, type) do not apply to %s events", name[event]);
	return NULL;
}

static bool room_for_one(struct dp_callbacks *c)
{
	if (c->n < c->cap)
		return true;
	const size_t cap = c->cap ? 2 * c->cap : 8;
	struct dp_callback *grown = reallocarray(c->at, cap, sizeof(*grown));
	if (!grown)
		return false;
	c->at = grown;
	c->cap = cap;
	return true;
}

struct dp_error *dp_host_register(struct pmodule *m, const struct pmodule_match *match, const struct dp_callback *callback)
{
	if (!m->is_loading)
		return dp_error(DP_TAG_PMODULE, "callbacks can only be registered in load()");
	DP_TRY(check_match(match, callback->event));
	struct dp_callbacks *c = &m->host->callbacks[callback->event];
	struct pmodule_match *copy = match ? dp_match_copy(match) : NULL;
	if ((match && !copy) || !room_for_one(c)) {
		pmodule_match_destroy(copy);
		return dp_error_nomem();
	}
	c->at[c->n] = *callback;
	c->at[c->n].module = m;
	c->at[c->n++].match = copy;
	m->callbacks[callback->event]++;
	return NULL;
}
