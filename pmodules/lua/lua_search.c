/* SPDX-License-Identifier: MIT */
/*
 * string.find, match, gmatch and gsub: Lua's own, bounded by the module's time.
 *
 * Lua's matcher may run for hours in C, where hooks do not run. A search that cannot take long runs as it is. Any other one runs
 * in a second Lua state, under the guard, whose timer jumps out of it at the deadline (guard.c). The second state is dropped
 * then; the module's own state was only read. The timer jumps only out of Lua's code: the C library, which may hold malloc's
 * lock, and allocate_block(), which links the second state's memory, run to their ends.
 */
#include "pmodules/host/guard.h"
#include "pmodules/lua/lua_internal.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { CHEAP = 1 << 18 /* steps of the matcher: a millisecond */ };

struct dp_lua_block { /* in front of each allocation of the second state */
	struct dp_lua_block *prev, *next;
};

struct search {
	lua_State *L;
	lua_CFunction function;
	int strings;        /* arguments 1 to 2 or 3 of L */
	lua_Integer number; /* the last argument: where to start, or the most replacements */
	int status;
};

static struct dp_guard_text text; /* of Lua's library */
static lua_CFunction lua_find;

/* ---- the second state --------------------------------------------------------------------------------------------------- */

static void *allocate_block(void *data, void *p, size_t old, size_t n)
{
	struct dp_lua_second *x = data;
	struct dp_lua_block *had = p ? (struct dp_lua_block *)p - 1 : NULL, *b = NULL;
	old = p ? old : 0; /* without p, an object kind */
	if (n > old && n - old > x->limit - (x->memory < x->limit ? x->memory : x->limit))
		return NULL;
	if (had)
		DL_DELETE(x->blocks, had);
	if (n)
		b = realloc(had, sizeof(*b) + n);
	else
		free(had);
	if (b || (n && had))
		DL_PREPEND(x->blocks, b ? b : had);
	if (b || !n)
		x->memory = x->memory - old + n;
	return b ? b + 1 : NULL;
}

void dp_lua_drop_second(struct dp_lua *l)
{
	struct dp_lua_block *b, *next;
	DL_FOREACH_SAFE(l->second.blocks, b, next)
	free(b);
	l->second = (struct dp_lua_second){0};
}

static int text_of(struct dl_phdr_info *info, size_t size, void *inside)
{
	(void)size;
	if (!dp_guard_text_of(info, (uintptr_t)inside, &text))
		return 0;
	text.runs_rarely = true; /* a back-reference compares long texts in libc */
	return 1;
}

static void copy_value(lua_State *from, int at, lua_State *to)
{
	size_t n;
	if (lua_isinteger(from, at)) {
		lua_pushinteger(to, lua_tointeger(from, at));
	} else {
		const char *s = lua_tolstring(from, at, &n);
		s ? (void)lua_pushlstring(to, s, n) : lua_pushnil(to);
	}
}

/* Loops search one long text many times: the last one stays in the second state. lua_budget.c clears `subject` when L frees it.
 */
static void push_subject(lua_State *S, lua_State *L)
{
	struct dp_lua_second *x = &dp_lua_of(L)->second;
	const char *s = lua_tostring(L, 1);
	if (x->subject != s) {
		x->subject = NULL;
		lua_pushnil(S);
		lua_rawsetp(S, LUA_REGISTRYINDEX, x); /* its memory may be needed */
		copy_value(L, 1, S);
		lua_rawsetp(S, LUA_REGISTRYINDEX, x);
		x->subject = s;
	}
	lua_rawgetp(S, LUA_REGISTRYINDEX, x);
}

static int run(lua_State *S)
{
	const struct search *q = lua_touserdata(S, 1);
	lua_pushcfunction(S, q->function);
	push_subject(S, q->L);
	for (int i = 2; i <= q->strings; i++)
		copy_value(q->L, i, S);
	lua_pushinteger(S, q->number);
	lua_call(S, q->strings + 1, LUA_MULTRET);
	return lua_gettop(S) - 1;
}

static void run_protected(void *data)
{
	struct search *q = data;
	lua_State *S = dp_lua_of(q->L)->second.L;
	lua_pushcfunction(S, run);
	lua_pushlightuserdata(S, q);
	q->status = lua_pcall(S, 1, LUA_MULTRET, 0);
}

/* Calls the function with copies of L's strings. Returns the second state, which has the results; raises errors in L. */
static lua_State *search(lua_State *L, lua_CFunction function, int strings, lua_Integer number)
{
	struct dp_lua *l = dp_lua_of(L);
	struct dp_lua_second *x = &l->second;
	struct search q = {L, function, strings, number, LUA_OK};
	x->limit = l->limit - (l->memory < l->limit ? l->memory : l->limit);
	x->L = x->L ? x->L : lua_newstate(allocate_block, x);
	if (!x->L)
		luaL_error(L, "not enough memory");
	lua_settop(x->L, 0);
	struct dp_error *err = dp_guard_run(l->m, &text, run_protected, &q);
	if (err) {
		if (l->m->is_broken) /* a crash may have damaged its memory: leave it alone */
			*x = (struct dp_lua_second){0};
		else
			dp_lua_drop_second(l);
		lua_pushstring(L, err->message);
		dp_error_destroy(err);
		dp_lua_check_time(L);
		lua_error(L);
	}
	if (q.status != LUA_OK)
		luaL_error(L, "%s", lua_tostring(x->L, -1));
	return x->L;
}

/* Pushes the results from number `first` on. */
static int results(lua_State *L, lua_State *S, int first)
{
	const int n = lua_gettop(S);
	luaL_checkstack(L, n, "too many captures");
	for (int i = first; i <= n; i++)
		copy_value(S, i, L);
	return n + 1 - first;
}

/* ---- which search is cheap ---------------------------------------------------------------------------------------------- */

/*
 * How many steps the matcher may need: the text before the match and each repetition take a part of what those before left of it;
 * then all of the pattern may be read, or for %b and %1 the whole text.
 */
static double steps_of(const char *p, size_t k, double n, bool is_anchored)
{
	double steps = (double)k + 1, parts = !is_anchored;
	for (const char *end = p + k; p < end; p++) {
		if (*p == '*' || *p == '+' || *p == '-' || *p == '?') {
			parts++;
			steps *= (n + parts) / parts;
		} else if (*p == '%' && (*++p == 'b' || isdigit((unsigned char)*p))) {
			steps *= n + 1;
		}
	}
	return is_anchored ? steps : steps * (n + 1);
}

static bool is_cheap(lua_State *L, bool has_anchor)
{
	size_t n, k;
	const char *s = lua_tolstring(L, 1, &n), *p = lua_tolstring(L, 2, &k);
	return !s || !p /* an error */ || steps_of(p, k, (double)n, has_anchor && *p == '^') <= CHEAP;
}

static int original(lua_State *L)
{
	return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/* ---- find, match -------------------------------------------------------------------------------------------------------- */

/* The start position from argument 3, counted from 1. */
static lua_Integer start_of(lua_State *L)
{
	const lua_Integer at = luaL_optinteger(L, 3, 1), n = (lua_Integer)lua_rawlen(L, 1);
	if (at < 0)
		return at < -n ? 1 : n + at + 1;
	return at ? at : 1;
}

static int find(lua_State *L)
{
	size_t n, k;
	if (is_cheap(L, true))
		return original(L);
	const char *s = lua_tolstring(L, 1, &n), *p = lua_tolstring(L, 2, &k), *at = NULL;
	const size_t from = (size_t)start_of(L);
	if (!lua_toboolean(L, 4) && strcspn(p, "^$*+?.([%-") < k)
		return results(L, search(L, lua_find, 2, (lua_Integer)from), 1);
	if (from <= n + 1) /* in linear time, unlike Lua's */
		at = memmem(s + from - 1, n + 1 - from, p, k);
	if (!at)
		return dp_lua_text(L, NULL);
	lua_pushinteger(L, at - s + 1);
	lua_pushinteger(L, at - s + (ptrdiff_t)k);
	return 2;
}

static int match(lua_State *L)
{
	if (is_cheap(L, true))
		return original(L);
	return results(L, search(L, lua_tocfunction(L, lua_upvalueindex(1)), 2, start_of(L)), 1);
}

/* ---- gmatch, gsub: one match after the other, by find ------------------------------------------------------------------- */

struct walk {
	lua_Integer at;         /* where to search next, counted from 1 */
	lua_Integer last;       /* the end of the last match: an empty match there does not count */
	lua_Integer start, end; /* this match */
};

/* NULL: no more. */
static lua_State *next_match(lua_State *L, struct walk *w)
{
	for (; w->at <= (lua_Integer)lua_rawlen(L, 1) + 1; w->at++) {
		lua_State *S = search(L, lua_find, 2, w->at);
		if (lua_isnil(S, 1))
			return NULL;
		w->start = lua_tointeger(S, 1);
		w->end = lua_tointeger(S, 2);
		if (w->end == w->last)
			continue;
		w->last = w->end;
		w->at = w->end + 1;
		return S;
	}
	return NULL;
}

/* Pushes the captures; the whole match if there are none. */
static int captures(lua_State *L, lua_State *S, const struct walk *w)
{
	if (lua_gettop(S) > 2)
		return results(L, S, 3);
	lua_pushlstring(L, lua_tostring(L, 1) + w->start - 1, (size_t)(w->end + 1 - w->start));
	return 1;
}

static int gmatch_next(lua_State *L)
{
	struct walk *w = lua_touserdata(L, lua_upvalueindex(3));
	lua_settop(L, 0);
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_pushvalue(L, lua_upvalueindex(2));
	lua_State *S = next_match(L, w);
	return S ? captures(L, S, w) : 0;
}

static int gmatch(lua_State *L)
{
	if (is_cheap(L, false))
		return original(L);
	const lua_Integer from = start_of(L);
	lua_settop(L, 2);
	if (*lua_tostring(L, 2) == '^') { /* to gmatch it is a character */
		lua_pushliteral(L, "%");
		lua_insert(L, 2);
		lua_concat(L, 2);
	}
	struct walk *w = lua_newuserdatauv(L, sizeof(*w), 0);
	*w = (struct walk){.at = from, .last = -1};
	lua_pushcclosure(L, gmatch_next, 3);
	return 1;
}

/* Adds the replacement by the function or table at 3. */
static void replace(lua_State *L, lua_State *S, const struct walk *w, luaL_Buffer *b)
{
	const int n = captures(L, S, w);
	if (lua_isfunction(L, 3)) {
		lua_pushvalue(L, 3);
		lua_insert(L, -1 - n);
		lua_call(L, n, 1);
	} else {
		lua_pop(L, n - 1);
		lua_gettable(L, 3);
	}
	if (!lua_toboolean(L, -1)) {
		lua_pop(L, 1);
		luaL_addlstring(b, lua_tostring(L, 1) + w->start - 1, (size_t)(w->end + 1 - w->start));
		return;
	}
	if (!lua_isstring(L, -1))
		luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
	luaL_addvalue(b);
}

static int gsub(lua_State *L)
{
	if (is_cheap(L, true) || (!lua_isfunction(L, 3) && !lua_istable(L, 3) && !lua_isstring(L, 3)))
		return original(L);
	const char *s = lua_tostring(L, 1);
	const lua_Integer n = (lua_Integer)lua_rawlen(L, 1), most = luaL_optinteger(L, 4, n + 1);
	if (lua_tostring(L, 3)) /* a number becomes one */
		return results(L, search(L, lua_tocfunction(L, lua_upvalueindex(1)), 3, most), 1);
	const bool is_anchored = *lua_tostring(L, 2) == '^';
	struct walk w = {.at = 1, .last = -1};
	lua_Integer done = 0, replaced = 0;
	lua_State *S;
	luaL_Buffer b;
	luaL_buffinit(L, &b);
	while (replaced < most && !(is_anchored && replaced) && (S = next_match(L, &w))) {
		luaL_addlstring(&b, s + done, (size_t)(w.start - 1 - done));
		replace(L, S, &w, &b);
		done = w.end;
		replaced++;
	}
	luaL_addlstring(&b, s + done, (size_t)(n - done));
	luaL_pushresult(&b);
	lua_pushinteger(L, replaced);
	return 2;
}

void dp_lua_open_search(lua_State *L)
{
	lua_getglobal(L, LUA_STRLIBNAME);
	lua_getfield(L, -1, "find");
	lua_find = lua_tocfunction(L, -1);
	dl_iterate_phdr(text_of, (void *)lua_topointer(L, -1));
	assert((uintptr_t)allocate_block - text.start >= text.end - text.start);
	lua_pop(L, 2);
	dp_lua_wrap(L, LUA_STRLIBNAME, "find", find);
	dp_lua_wrap(L, LUA_STRLIBNAME, "match", match);
	dp_lua_wrap(L, LUA_STRLIBNAME, "gmatch", gmatch);
	dp_lua_wrap(L, LUA_STRLIBNAME, "gsub", gsub);
}
