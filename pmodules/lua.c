/* SPDX-License-Identifier: MIT */
#include "pmodules/lua.h"

struct dp_error *dp_lua_open(struct pmodule *m)
{
	return dp_error(DP_TAG_PMODULE, "%s: modules in Lua are not built in", m->path);
}
