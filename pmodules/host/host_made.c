/* SPDX-License-Identifier: MIT */
/* Objects that modules make: limited, and added only once. */
#include "pmodules/host/host_state.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_DEFAULT (UINT64_C(64) << 20)

bool dp_host_may_add(struct dp_host *h, uint64_t bytes)
{
	const uint64_t bound = h->options.limits.bytes ? h->options.limits.bytes : BYTES_DEFAULT;
	if (!h->snapshot || bytes > bound || h->made >= DP_MODULE_OBJECTS || h->made_bytes > bound - bytes) {
		if (h->snapshot)
			dp_snapshot_truncated(h->snapshot, "objects by pmodules (limit: %u, %llu bytes)", DP_MODULE_OBJECTS,
			                      (unsigned long long)bound);
		return false;
	}
	h->made++;
	h->made_bytes += bytes;
	return true;
}

bool dp_host_is_loose(const struct dp_host *h, const void *object)
{
	struct dp_loose *l;
	HASH_FIND_PTR(h->loose, &object, l);
	return l != NULL;
}

bool dp_host_loosen(struct dp_host *h, const void *object)
{
	struct dp_loose *l = calloc(1, sizeof(*l));
	if (!l)
		return false;
	l->object = object;
	HASH_ADD_PTR(h->loose, object, l);
	return true;
}

bool dp_host_tighten(struct dp_host *h, const void *object)
{
	struct dp_loose *l;
	HASH_FIND_PTR(h->loose, &object, l);
	if (!l)
		return false;
	HASH_DEL(h->loose, l);
	free(l);
	return true;
}

void dp_host_forget_loose(struct dp_host *h)
{
	struct dp_loose *l, *next;
	HASH_ITER(hh, h->loose, l, next)
	{
		HASH_DEL(h->loose, l);
		free(l);
	}
}

const char *dp_api_module_id(void)
{
	const struct pmodule *m = dp_module_current();
	return m && m->host->snapshot ? dp_snapshot_text(m->host->snapshot, m->id) : NULL;
}

void dp_api_note_once(struct dp_snap_note **list, const char *words, const char *text)
{
	const struct dp_snap_note *n;
	DL_FOREACH(*list, n)
	if (!*n->module && !strncmp(n->text, words, strlen(words)))
		return;
	dp_snapshot_note(dp_api_snapshot(), list, DP_NOTE_COMMENT, text);
}
