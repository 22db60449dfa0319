/* SPDX-License-Identifier: MIT */
/* --tactic and --no-trap: for those who must choose. */
#include "cli/options/options_table.h"

#include "trampoline/trampoline.h"

#include <string.h>

struct dp_error *dp_take_tactic(struct dp_parser *p, const char *arg)
{
	char word[16];
	while (*arg) {
		const size_t n = strcspn(arg, ",");
		enum dp_tactic tactic;
		if (n >= sizeof(word))
			return dp_error(DP_TAG_USAGE, "unknown tactic '%s': use jump, pun, evict, window or trap", arg);
		memcpy(word, arg, n);
		word[n] = 0;
		if (!dp_tactic_find(word, &tactic))
			return dp_error(DP_TAG_USAGE, "unknown tactic '%s': use jump, pun, evict, window or trap", word);
		p->o.trace.tactics |= 1u << tactic;
		arg += n + (arg[n] == ',');
	}
	return p->o.trace.tactics ? NULL : dp_error(DP_TAG_USAGE, "--tactic needs one of jump, pun, evict, window, trap");
}
