/* SPDX-License-Identifier: MIT */
/*
 * The Lua side of pmodules, private to lua*.c. Lua reaches everything through the public C API (pmodule.h).
 *
 * In Lua, an object of the snapshot is a small userdata: its kind, its address and its snapshot's generation. A new one is made
 * each time (cheaper than finding an old one), so they compare by __eq. The kind is in the userdata itself, so metatable tricks
 * cannot pass one kind for another. Using an object after its snapshot is a Lua error.
 *
 * lua_error() jumps: hold nothing that must be freed across a call of the Lua API that can raise.
 */
#ifndef DP_PMODULES_LUA_LUA_INTERNAL_H
#define DP_PMODULES_LUA_LUA_INTERNAL_H

#include "pmodules/lua/lua.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

enum dp_lua_kind {
	DP_LUA_BACKTRACE,
	DP_LUA_THREAD,
	DP_LUA_FRAME,
	DP_LUA_VARIABLE,
	DP_LUA_SIGINFO,
	DP_LUA_PMAP,
	DP_LUA_BT,    /* a typed value: bt_variable */
	DP_LUA_MATCH, /* not of a snapshot: garbage-collected */
	DP_LUA_KINDS
};

struct dp_lua_object {
	uint32_t magic, kind;
	uint64_t generation;
	void *p;
};

struct dp_lua_second { /* the state in which long searches run: lua_search.c */
	lua_State *L;
	struct dp_lua_block *blocks;
	size_t memory, limit; /* limit: what the module's own state leaves of its limit */
	const char *subject;  /* of the module's state: the second one has a copy; or NULL */
};

struct dp_lua { /* a module's */
	struct pmodule *m;
	lua_State *L;
	lua_State *running;     /* from which C was last entered: pmodule.dispatch() runs callbacks there */
	size_t memory, limit;   /* bytes */
	bool expired;           /* the time is up, and something was aborted */
	bool is_absent;         /* the last value asked for was missing because it was optimized out */
	bool is_chunk;          /* the file itself runs: define{} is allowed */
	int meta[DP_LUA_KINDS]; /* references of metatables */
	struct dp_lua_second second;
	int format;              /* the original string.format */
	int load, reset, unload; /* references of functions, or LUA_NOREF */
};

/* The methods of each kind of object: one table per kind, in its own file. */
struct dp_lua_class {
	const luaL_Reg *methods;
	const luaL_Reg *meta;   /* __call, the iterator, and other metamethods; or NULL */
	lua_CFunction tostring; /* of objects that are not stale; or NULL */
};
extern const struct dp_lua_class dp_lua_backtrace_class, dp_lua_thread_class, dp_lua_frame_class, dp_lua_variable_class,
        dp_lua_siginfo_class, dp_lua_pmap_class, dp_lua_bt_class, dp_lua_match_class;

static inline struct dp_lua *dp_lua_of(lua_State *L)
{
	return *(struct dp_lua **)lua_getextraspace(L);
}

/* ---- lua_object.c ---- */
void dp_lua_open_objects(lua_State *L);
/* Pushes an object, or nil for NULL. Returns 1. */
int dp_lua_push(lua_State *L, enum dp_lua_kind kind, const void *p);
/* The object at `arg`; a Lua error if it is of another kind or stale. */
void *dp_lua_check(lua_State *L, int arg, enum dp_lua_kind kind);
void *dp_lua_opt(lua_State *L, int arg, enum dp_lua_kind kind); /* NULL for nil and none */
/* The object if it is of that kind and not stale, else NULL; never an error. */
void *dp_lua_test(lua_State *L, int arg, enum dp_lua_kind kind);
/* Makes reading an unknown key of the table at the top an error that suggests a known key. */
void dp_lua_strict(lua_State *L, const char *what);

/* ---- lua_args.c: arguments and results ---- */
int dp_lua_text(lua_State *L, const char *text); /* pushes it, or nil for NULL; returns 1 */
int dp_lua_uint(lua_State *L, uint64_t v);
int dp_lua_integer(lua_State *L, lua_Integer v);
int dp_lua_bool(lua_State *L, bool v);
uint64_t dp_lua_addr(lua_State *L, int arg);
const char *dp_lua_name(lua_State *L, int arg);    /* a string without NULs */
const char *dp_lua_optname(lua_State *L, int arg); /* NULL for nil and none */
const char *dp_lua_prose(lua_State *L, int arg);   /* a string; NULs become \0 */
int dp_lua_int(lua_State *L, int arg);             /* must fit in an int */
unsigned dp_lua_constant(lua_State *L, int arg, unsigned count, const char *table);
/*
 * Formats fmt, ... (from index `first` to the top) like string.format, but accepts nil for every conversion and shows it as a
 * missing value. A lone fmt is taken literally.
 */
const char *dp_lua_formatted(lua_State *L, int first);
/* The text for a missing value. */
const char *dp_lua_missing(lua_State *L);
bool dp_lua_flag(lua_State *L, int arg, bool otherwise); /* a boolean, or `otherwise` if it is left out */

/* Methods that only pass on what the function of pmodule.h of that name returns, or takes. `push` and `read` are functions as
 * above. */
#define DP_LUA_GETTER(kind, KIND, method, push)                                                                                  \
	static int kind##_##method(lua_State *L)                                                                                 \
	{                                                                                                                        \
		return push(L, pmodule_##kind##_##method(dp_lua_check(L, 1, DP_LUA_##KIND)));                                    \
	}
#define DP_LUA_OBJECT(kind, KIND, method, RESULT)                                                                                \
	static int kind##_##method(lua_State *L)                                                                                 \
	{                                                                                                                        \
		return dp_lua_push(L, DP_LUA_##RESULT, pmodule_##kind##_##method(dp_lua_check(L, 1, DP_LUA_##KIND)));            \
	}
#define DP_LUA_SETTER(kind, KIND, method, read)                                                                                  \
	static int kind##_##method(lua_State *L)                                                                                 \
	{                                                                                                                        \
		pmodule_##kind##_##method(dp_lua_check(L, 1, DP_LUA_##KIND), read(L, 2));                                        \
		return 0;                                                                                                        \
	}

/* ---- lua_common.c: shared by several classes ---- */
int dp_lua_annotate(lua_State *L, enum dp_lua_kind kind); /* obj:annotate(kind, fmt, ...) */
typedef bool dp_lua_register_fn(void *of, const char *name, uint64_t *ret);
int dp_lua_registers(lua_State *L, dp_lua_register_fn *read, void *of); /* returns a table of the known registers */
/* obj:variables([filter]): returns a closure over obj and filter. Its steps run `step`, which calls dp_lua_next_variable(). */
int dp_lua_variables(lua_State *L, lua_CFunction step);
typedef ptrace_variable_t *dp_lua_next_fn(void *of, const char *const filter[3], ptrace_variable_t *previous);
int dp_lua_next_variable(lua_State *L, dp_lua_next_fn *next, enum dp_lua_kind kind);

/* ---- lua_bt.c ---- */
int dp_lua_push_bt(lua_State *L, bt_variable_t *b); /* NULL: raises the failed step's error */
int dp_lua_try(lua_State *L);
int dp_lua_members(lua_State *L);

/* ---- lua_match.c ---- */
int dp_lua_match(lua_State *L); /* pmodule.match() */
/* The match at `arg`, or NULL for nil and none. The second, for threads and frames, refuses criteria of variables. */
const pmodule_match_t *dp_lua_optmatch(lua_State *L, int arg);
const pmodule_match_t *dp_lua_objects_match(lua_State *L, int arg);

/* ---- functions for the global table, which is at the top of the stack: lua_reads.c, lua_values.c ---- */
extern const luaL_Reg dp_lua_reads[], dp_lua_values[];

/* ---- lua_sandbox.c, lua_budget.c, lua_module.c, lua.c ---- */
lua_State *dp_lua_new_state(struct dp_lua *l);
void dp_lua_open_sandbox(lua_State *L);
void dp_lua_bound_libraries(lua_State *L); /* lua_bounds.c */
/* Replaces library.name by f, whose upvalue 1 is the original. */
void dp_lua_wrap(lua_State *L, const char *library, const char *name, lua_CFunction f);
int dp_lua_call_original(lua_State *L); /* for f: calls the original with the same arguments */
void dp_lua_open_search(lua_State *L);  /* lua_search.c: string.find, match, gmatch, gsub */
void dp_lua_drop_second(struct dp_lua *l);
void dp_lua_open_module(lua_State *L); /* the global table `pmodule` */
/* Raises an error when the module's time is up; for loops in C. */
void dp_lua_check_time(lua_State *L);
/* Restarts the time limit. */
void dp_lua_rearm(struct dp_lua *l);

#endif
