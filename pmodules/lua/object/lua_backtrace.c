/* SPDX-License-Identifier: MIT */
/* backtrace, siginfo and pmap entry as Lua objects. */
#include "pmodules/lua/lua_internal.h"

#define BT(L) ((ptrace_backtrace_t *)dp_lua_check(L, 1, DP_LUA_BACKTRACE))

static int bt_pid(lua_State *L)
{
	return dp_lua_uint(L, (uint64_t)pmodule_backtrace_pid(BT(L)));
}

static int bt_application_name(lua_State *L)
{
	return dp_lua_text(L, pmodule_backtrace_application_name(BT(L)));
}

static int bt_process_state(lua_State *L)
{
	return dp_lua_uint(L, pmodule_backtrace_process_state(BT(L)));
}

static int bt_pmap_entry(lua_State *L)
{
	return dp_lua_push(L, DP_LUA_PMAP, pmodule_backtrace_pmap_entry(BT(L), dp_lua_addr(L, 2)));
}

static int bt_add_tag(lua_State *L)
{
	pmodule_backtrace_add_tag(BT(L), dp_lua_name(L, 2));
	return 0;
}

static int bt_add_kv_int(lua_State *L)
{
	ptrace_backtrace_t *bt = BT(L);
	const char *key = dp_lua_name(L, 2);
	if (lua_isnil(L, 3))
		pmodule_backtrace_add_kv_string(bt, key, dp_lua_missing(L));
	else
		pmodule_backtrace_add_kv_int(bt, key, luaL_checkinteger(L, 3));
	return 0;
}

static int bt_add_kv_string(lua_State *L)
{
	ptrace_backtrace_t *bt = BT(L);
	const char *key = dp_lua_name(L, 2);
	pmodule_backtrace_add_kv_string(bt, key, lua_isnil(L, 3) ? dp_lua_missing(L) : dp_lua_formatted(L, 3));
	return 0;
}

static int bt_add_classifier(lua_State *L)
{
	pmodule_backtrace_add_classifier(BT(L), dp_lua_name(L, 2));
	return 0;
}

static int bt_annotate(lua_State *L)
{
	return dp_lua_annotate(L, DP_LUA_BACKTRACE);
}

static ptrace_variable_t *next_global(void *of, const char *const f[3], ptrace_variable_t *previous)
{
	return pmodule_backtrace_next_variable(of, f[0], f[1], f[2], previous);
}

static int bt_variables_step(lua_State *L)
{
	return dp_lua_next_variable(L, next_global, DP_LUA_BACKTRACE);
}

static int bt_variables(lua_State *L)
{
	return BT(L) ? dp_lua_variables(L, bt_variables_step) : 0;
}

/* Step of: for entry in bt:pmap(). Upvalue 1: the backtrace. */
static int bt_pmap_step(lua_State *L)
{
	ptrace_backtrace_t *bt = dp_lua_check(L, lua_upvalueindex(1), DP_LUA_BACKTRACE);
	return dp_lua_push(L, DP_LUA_PMAP, pmodule_backtrace_next_pmap(bt, dp_lua_opt(L, 2, DP_LUA_PMAP)));
}

static int bt_pmap(lua_State *L)
{
	BT(L);
	lua_settop(L, 1);
	lua_pushcclosure(L, bt_pmap_step, 1);
	return 1;
}

/* Returns a table of open files: [fd] = target. */
static int bt_files(lua_State *L)
{
	ptrace_backtrace_t *bt = BT(L);
	int fd;
	const char *target;
	lua_newtable(L);
	for (unsigned i = 0; (target = pmodule_backtrace_file(bt, i, &fd)) != NULL; i++) {
		lua_pushstring(L, target);
		lua_rawseti(L, -2, fd);
	}
	return 1;
}

/* Step of: for thread in bt [, match]. Arguments: (bt, match, previous). */
static int bt_call(lua_State *L)
{
	const pmodule_match_t *m = dp_lua_objects_match(L, 2);
	ptrace_thread_t *previous = dp_lua_opt(L, 3, DP_LUA_THREAD);
	return dp_lua_push(L, DP_LUA_THREAD, pmodule_backtrace_next_thread(BT(L), m, previous));
}

static int bt_tostring(lua_State *L)
{
	ptrace_backtrace_t *bt = BT(L);
	const char *name = pmodule_backtrace_application_name(bt);
	lua_pushfstring(L, "backtrace of %s, pid %d", name ? name : "?", (int)pmodule_backtrace_pid(bt));
	return 1;
}

static const luaL_Reg bt_methods[] = {
        {"pid", bt_pid},
        {"application_name", bt_application_name},
        {"process_state", bt_process_state},
        {"pmap_entry", bt_pmap_entry},
        {"add_tag", bt_add_tag},
        {"add_kv_int", bt_add_kv_int},
        {"add_kv_string", bt_add_kv_string},
        {"add_classifier", bt_add_classifier},
        {"annotate", bt_annotate},
        {"variables", bt_variables},
        {"pmap", bt_pmap},
        {"files", bt_files},
        {NULL, NULL},
};
static const luaL_Reg bt_meta[] = {{"__call", bt_call}, {NULL, NULL}};
const struct dp_lua_class dp_lua_backtrace_class = {bt_methods, bt_meta, bt_tostring};

/* ---- siginfo ------------------------------------------------------------------------------------------------------------ */

#define SI(L) ((const ptrace_siginfo_t *)dp_lua_check(L, 1, DP_LUA_SIGINFO))

static int si_num(lua_State *L)
{
	return dp_lua_uint(L, (uint64_t)pmodule_siginfo_num(SI(L)));
}

static int si_code(lua_State *L)
{
	return dp_lua_uint(L, (uint64_t)pmodule_siginfo_code(SI(L)));
}

static int si_address(lua_State *L)
{
	return dp_lua_uint(L, pmodule_siginfo_address(SI(L)));
}

static int si_address_populated(lua_State *L)
{
	return dp_lua_bool(L, pmodule_siginfo_address_populated(SI(L)));
}

static int si_reason(lua_State *L)
{
	bool by_kill = false;
	dp_lua_text(L, pmodule_siginfo_reason(SI(L), &by_kill));
	return 1 + dp_lua_bool(L, by_kill);
}

static int si_tostring(lua_State *L)
{
	const char *name = pmodule_siginfo_name(SI(L));
	return dp_lua_text(L, name ? name : "unknown signal");
}

static const luaL_Reg si_methods[] = {
        {"num", si_num},       {"code", si_code}, {"address", si_address}, {"address_populated", si_address_populated},
        {"reason", si_reason}, {NULL, NULL},
};
const struct dp_lua_class dp_lua_siginfo_class = {si_methods, NULL, si_tostring};

/* ---- pmap entry ----------------------------------------------------------------------------------------------------------- */

#define PMAP(L) ((const ptrace_pmap_entry_t *)dp_lua_check(L, 1, DP_LUA_PMAP))

static int pmap_start(lua_State *L)
{
	return dp_lua_uint(L, pmodule_pmap_start(PMAP(L)));
}

static int pmap_stop(lua_State *L)
{
	return dp_lua_uint(L, pmodule_pmap_stop(PMAP(L)));
}

static int pmap_offset(lua_State *L)
{
	return dp_lua_uint(L, pmodule_pmap_offset(PMAP(L)));
}

static int pmap_inode(lua_State *L)
{
	return dp_lua_uint(L, pmodule_pmap_inode(PMAP(L)));
}

static int pmap_path(lua_State *L)
{
	return dp_lua_text(L, pmodule_pmap_path(PMAP(L)));
}

static int pmap_guard(lua_State *L)
{
	return dp_lua_bool(L, pmodule_pmap_guard(PMAP(L)));
}

static int pmap_permissions(lua_State *L)
{
	const ptrace_pmap_entry_t *e = PMAP(L);
	unsigned all = 0, known = PMODULE_PMAP_ALL | PMODULE_PMAP_PR | PMODULE_PMAP_SH;
	for (int i = 2; i <= lua_gettop(L); i++) {
		unsigned flag = (unsigned)dp_lua_int(L, i);
		luaL_argcheck(L, flag && !(flag & ~known), i, "one of pmodule.pmap_perms expected");
		all |= flag;
	}
	return dp_lua_bool(L, pmodule_pmap_permissions(e, all));
}

static const luaL_Reg pmap_methods[] = {
        {"start", pmap_start}, {"stop", pmap_stop},   {"offset", pmap_offset},           {"inode", pmap_inode},
        {"path", pmap_path},   {"guard", pmap_guard}, {"permissions", pmap_permissions}, {NULL, NULL},
};
const struct dp_lua_class dp_lua_pmap_class = {pmap_methods, NULL, NULL};
