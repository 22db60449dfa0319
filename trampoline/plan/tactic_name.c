/* SPDX-License-Identifier: MIT */
#include "trampoline/trampoline.h"

#include <string.h>

static const char *const names[DP_TACTIC_COUNT] = {
        [DP_TACTIC_JUMP] = "jump",     [DP_TACTIC_PUN] = "pun",   [DP_TACTIC_EVICT] = "evict",
        [DP_TACTIC_WINDOW] = "window", [DP_TACTIC_TRAP] = "trap",
};

const char *dp_tactic_name(enum dp_tactic tactic)
{
	return (unsigned)tactic < DP_TACTIC_COUNT ? names[tactic] : "none";
}

bool dp_tactic_find(const char *name, enum dp_tactic *ret)
{
	for (unsigned i = 0; i < DP_TACTIC_COUNT; i++)
		if (!strcmp(name, names[i])) {
			*ret = (enum dp_tactic)i;
			return true;
		}
	return false;
}
