/* SPDX-License-Identifier: MIT */
/* Lua as a language of pmodules: the binding of pmodule.h for Lua 5.4 (docs/pmodules.md). */
#ifndef DP_PMODULES_LUA_LUA_H
#define DP_PMODULES_LUA_LUA_H

#include "pmodules/host/host_internal.h"

/*
 * Runs the file m->path, whose pmodule.define{} sets the id; sets m->language and m->state. DP_TAG_PMODULE with line and
 * traceback.
 */
struct dp_error *dp_lua_open(struct pmodule *m) DP_MUST_CHECK;

#endif
