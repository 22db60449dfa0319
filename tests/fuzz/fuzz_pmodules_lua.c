/* SPDX-License-Identifier: MIT */
/* Input: bytes that choose functions of the Lua API and their (wrong) arguments; see tests/unit/pmodules/lua/fuzz.lua. */
#include <stdlib.h>

#define cr_assert(condition, ...)                                                                                                \
	do {                                                                                                                     \
		if (!(condition))                                                                                                \
			abort();                                                                                                 \
	} while (0)
#define cr_assert_not(c, ...) cr_assert(!(c))
#define cr_assert_null(c)     cr_assert(!(c))
#define cr_assert_eq(a, b)    cr_assert((a) == (b))
#define LUA_RUN_BARE
#include "tests/unit/pmodules/lua_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lua_run r;
	char calls[64];
	if (!lua_fuzz(&r, data, size, calls)) {
		fputs(r.log, stderr);
		abort();
	}
	dp_snapshot_destroy(r.snapshot);
	return 0;
}
