/* SPDX-License-Identifier: MIT */
/* pmodule.address_read_*, symbol_read_*: the process's memory. Unreadable memory is nil. */
#include "pmodules/lua/lua_internal.h"

#include <string.h>

enum { CHUNK = 65536, MOST_POINTERS = 1 << 20 };

/* Reads in chunks: the requested size may be absurd, and readable memory may end early. */
static int push_raw(lua_State *L, uint64_t addr, lua_Integer size)
{
	luaL_Buffer b;
	uint64_t done = 0;
	luaL_buffinit(L, &b);
	while (done < (uint64_t)size) {
		size_t want = (uint64_t)size - done < CHUNK ? (size_t)((uint64_t)size - done) : CHUNK;
		size_t n = pmodule_address_read_raw(addr + done, luaL_prepbuffsize(&b, want), want);
		luaL_addsize(&b, n);
		done += n;
		if (n < want || addr + done < addr)
			break;
		dp_lua_check_time(L);
	}
	luaL_pushresult(&b);
	if (!done && size)
		lua_pushnil(L);
	return 1;
}

/* Reads up to a NUL, which is not included, or `size` bytes. */
static int push_string(lua_State *L, uint64_t addr, lua_Integer size)
{
	luaL_Buffer b;
	bool any = false, ended = false;
	luaL_buffinit(L, &b);
	for (uint64_t left = (uint64_t)size; left && !ended;) {
		size_t want = left < 1024 ? (size_t)left : 1024;
		char *to = luaL_prepbuffsize(&b, want);
		size_t n = pmodule_address_read_raw(addr, to, want), length = strnlen(to, n);
		any = any || n;
		ended = length < want;
		luaL_addsize(&b, length);
		addr += n;
		left -= n;
		dp_lua_check_time(L);
	}
	luaL_pushresult(&b);
	if (!any && size)
		lua_pushnil(L);
	return 1;
}

static lua_Integer size_at(lua_State *L, int arg)
{
	lua_Integer n = luaL_checkinteger(L, arg);
	luaL_argcheck(L, n >= 0, arg, "the size is negative");
	return n;
}

static int address_read_raw(lua_State *L)
{
	return push_raw(L, dp_lua_addr(L, 1), size_at(L, 2));
}

static int address_read_string(lua_State *L)
{
	return push_string(L, dp_lua_addr(L, 1), size_at(L, 2));
}

static int symbol_read(lua_State *L, int (*push)(lua_State *, uint64_t, lua_Integer))
{
	uint64_t addr;
	const char *symbol = dp_lua_name(L, 1), *object = dp_lua_optname(L, 2);
	lua_Integer size = size_at(L, 3);
	if (!pmodule_symbol_address(symbol, object, &addr))
		return dp_lua_text(L, NULL);
	return push(L, addr, size);
}

static int symbol_read_raw(lua_State *L)
{
	return symbol_read(L, push_raw);
}

static int symbol_read_string(lua_State *L)
{
	return symbol_read(L, push_string);
}

static int address_symbol(lua_State *L)
{
	return dp_lua_text(L, pmodule_address_symbol(dp_lua_addr(L, 1)));
}

static int symbol_address(lua_State *L)
{
	uint64_t addr;
	const char *symbol = dp_lua_name(L, 1);
	bool known = pmodule_symbol_address(symbol, dp_lua_optname(L, 2), &addr);
	return known ? dp_lua_uint(L, addr) : dp_lua_text(L, NULL);
}

/* ---- typed -------------------------------------------------------------------------------------------------------------- */

static int read_uint(lua_State *L, size_t size)
{
	uint64_t v;
	return pmodule_address_read_uint(dp_lua_addr(L, 1), size, &v) ? dp_lua_uint(L, v) : dp_lua_text(L, NULL);
}

static int read_int(lua_State *L, size_t size)
{
	int64_t v;
	return pmodule_address_read_int(dp_lua_addr(L, 1), size, &v) ? dp_lua_uint(L, (uint64_t)v) : dp_lua_text(L, NULL);
}

static int read_real(lua_State *L, size_t size)
{
	double v;
	if (!pmodule_address_read_real(dp_lua_addr(L, 1), size, &v))
		return dp_lua_text(L, NULL);
	lua_pushnumber(L, v);
	return 1;
}

#define TYPED(name, how, size)                                                                                                   \
	static int address_read_##name(lua_State *L)                                                                             \
	{                                                                                                                        \
		return how(L, size);                                                                                             \
	}
TYPED(u8, read_uint, 1)
TYPED(u16, read_uint, 2)
TYPED(u32, read_uint, 4)
TYPED(u64, read_uint, 8)
TYPED(i8, read_int, 1)
TYPED(i16, read_int, 2)
TYPED(i32, read_int, 4)
TYPED(i64, read_int, 8)
TYPED(f32, read_real, 4)
TYPED(f64, read_real, 8)

/* address_read_ptrs(addr, n): a list of the readable ones; nil if there are none. */
static int address_read_ptrs(lua_State *L)
{
	uint64_t addr = dp_lua_addr(L, 1), at[512];
	lua_Integer n = size_at(L, 2), done = 0;
	luaL_argcheck(L, n <= MOST_POINTERS, 2, "too many (limit: 1048576)");
	lua_newtable(L);
	while (done < n) {
		size_t want = n - done < 512 ? (size_t)(n - done) : 512;
		size_t got = pmodule_address_read_raw(addr + (uint64_t)done * 8, at, want * 8) / 8;
		for (size_t i = 0; i < got; i++) {
			dp_lua_uint(L, at[i]);
			lua_rawseti(L, -2, ++done);
		}
		if (got < want)
			break;
		dp_lua_check_time(L);
	}
	if (!done && n)
		lua_pushnil(L);
	return 1;
}

static const char *const source_name[] = {"none", "held", "copy", "kept", "late", "core"};

static int read_source(lua_State *L)
{
	enum pmodule_read_source s = pmodule_read_source();
	return dp_lua_text(L, s < sizeof(source_name) / sizeof(source_name[0]) ? source_name[s] : "none");
}

#define FUNCTION(name)                                                                                                           \
	{                                                                                                                        \
#name, name                                                                                                      \
	}
const luaL_Reg dp_lua_reads[] = {
        FUNCTION(address_symbol),
        FUNCTION(symbol_address),
        FUNCTION(address_read_raw),
        FUNCTION(address_read_string),
        FUNCTION(symbol_read_raw),
        FUNCTION(symbol_read_string),
        FUNCTION(address_read_u8),
        FUNCTION(address_read_u16),
        FUNCTION(address_read_u32),
        FUNCTION(address_read_u64),
        FUNCTION(address_read_i8),
        FUNCTION(address_read_i16),
        FUNCTION(address_read_i32),
        FUNCTION(address_read_i64),
        FUNCTION(address_read_f32),
        FUNCTION(address_read_f64),
        {"address_read_ptr", address_read_u64},
        FUNCTION(address_read_ptrs),
        FUNCTION(read_source),
        {NULL, NULL},
};
