/* SPDX-License-Identifier: MIT */
/* Fuzzes the Lua binding: the input says which function is called with which arguments (lua/fuzz.lua). */
#ifndef TEST_LUA_FUZZ_H
#define TEST_LUA_FUZZ_H

#include "lua_run.h"

/* False: the module's own checks failed; the log says how. */
static inline bool lua_fuzz(struct lua_run *r, const uint8_t *bytes, size_t n, char calls[64])
{
	static const char *const allow[] = {"debug", "io", NULL};
	struct dp_snap_memory memory[2];
	lua_run_init(r, &(struct dp_host_options){.lua_allow = allow, .budget_ns = UINT64_C(60000000000)});
	memory[0] = r->snapshot->memory[0];
	memory[1] = (struct dp_snap_memory){0x10000, n, bytes};
	r->snapshot->memory = memory;
	r->snapshot->nmemory = n ? 2 : 1;
	bool ok = lua_load_file(r, "fuzz");
	lua_take(r); /* leaves stale objects */
	lua_take(r);
	ok = ok && lua_attribute(r, "passed", calls) && lua_attribute(r, "calls", calls);
	dp_host_destroy(r->host);
	r->host = NULL;
	return ok;
}

#endif
