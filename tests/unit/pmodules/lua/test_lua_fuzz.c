/* SPDX-License-Identifier: MIT */
/* Every function of the Lua binding with wrong arguments: an error, never a crash (under sanitizers). */
#include "lua_fuzz.h"

TestSuite(lua_fuzz, .timeout = 120);

/* Numbers of a fixed sequence (xorshift): the same calls every time. */
static void fill(uint8_t *bytes, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		bytes[i] = (uint8_t)(seed >> 32);
	}
}

Test(lua_fuzz, wrong_arguments_are_errors_and_never_crashes)
{
	static uint8_t bytes[60000];
	static struct lua_run r;
	char calls[64];
	for (uint64_t seed = 1; seed <= 3; seed++) {
		fill(bytes, sizeof(bytes), seed * 0x9e3779b97f4a7c15);
		cr_assert(lua_fuzz(&r, bytes, sizeof(bytes), calls), "seed %d:\n%s", (int)seed, r.log);
		cr_assert_gt(atoi(calls), 5000);
		dp_snapshot_destroy(r.snapshot);
	}
}
