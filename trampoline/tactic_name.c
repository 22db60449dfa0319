/* SPDX-License-Identifier: MIT */
#include "trampoline/trampoline.h"

const char *dp_tactic_name(enum dp_tactic tactic)
{
	static const char *const names[DP_TACTIC_COUNT] = {
	        [DP_TACTIC_JUMP] = "jump",
	        [DP_TACTIC_PUN] = "pun",
	        [DP_TACTIC_WINDOW] = "window",
	};
	return (unsigned)tactic < DP_TACTIC_COUNT ? names[tactic] : "none";
}
