/* SPDX-License-Identifier: MIT */
/*
 * Typed values (pmodules/value/value.h) of a debug context with three types. It replaces the real one, which needs a process with
 * debug information.
 *
 *     struct node { int value; struct node *next; int kids[3]; } at 0x9000, 0x9020, 0x9040 (the last one's next is 0xdead)
 *
 * `head` is a global of type struct node *, `first` the node itself.
 */
#ifndef TEST_FAKE_WORLD_H
#define TEST_FAKE_WORLD_H

#include "pmodules/value/value.h"

#include <stdlib.h>
#include <string.h>

enum fake_type { FAKE_INT, FAKE_NODE, FAKE_POINTER, FAKE_KIDS };
struct dp_value {
	enum fake_type type;
	uint64_t addr;
	bool has_literal; /* a value without an address in memory: address_of */
	uint64_t literal;
	char path[200];
};
static struct dp_value fake_values[1 << 16];
static size_t fake_used;
static const uint64_t fake_memory[] = {
        1,      0x9020, 0x0000000b0000000a, 12, /* 0x9000 */
        2,      0x9040, 0x0000001500000014, 22, /* 0x9020 */
        3,      0xdead, 0x0000001f0000001e, 32, /* 0x9040 */
        0x9000,                                 /* 0x9060: head */
};
static const char *const fake_type_name[] = {"int", "struct node", "struct node *", "int [3]"};
static const uint64_t fake_size[] = {4, 32, 8, 12};

static struct dp_value *fake(enum fake_type type, uint64_t addr, const char *path)
{
	struct dp_value *v = &fake_values[fake_used++ % (1 << 16)];
	*v = (struct dp_value){.type = type, .addr = addr};
	snprintf(v->path, sizeof(v->path), "%s", path);
	return v;
}

void dp_debug_ctx_bound(struct dp_debug_ctx *w, bool (*is_over)(void *data), void *data)
{
	(void)w, (void)is_over, (void)data;
}

static struct dp_debug_ctx_last fake_last;

struct dp_debug_ctx_last dp_debug_ctx_last(const struct dp_debug_ctx *w)
{
	(void)w;
	return fake_last;
}

size_t dp_debug_ctx_read(struct dp_debug_ctx *w, uint64_t addr, void *buf, size_t n, bool *late)
{
	size_t left = addr >= 0x9000 && addr < 0x9000 + sizeof(fake_memory) ? 0x9000 + sizeof(fake_memory) - addr : 0;
	(void)w;
	*late = false;
	memcpy(buf, (const char *)fake_memory + (left ? addr - 0x9000 : 0), n < left ? n : left);
	return n < left ? n : left;
}

static uint64_t fake_int(const struct dp_value *v, size_t n)
{
	uint64_t r = v->literal;
	bool late;
	if (!v->has_literal && dp_debug_ctx_read(NULL, v->addr, &r, n, &late) != n)
		r = 0;
	return r;
}

const char *dp_debug_ctx_symbol_at(struct dp_debug_ctx *w, uint64_t addr)
{
	(void)w;
	return addr == 0x9060 ? "head" : NULL;
}

bool dp_debug_ctx_symbol(struct dp_debug_ctx *w, const char *symbol, const char *object, uint64_t *ret)
{
	(void)w, (void)object;
	*ret = 0x9060;
	return strcmp(symbol, "head") == 0;
}

struct dp_value *dp_value_global(struct dp_debug_ctx *w, const char *name, const char *object, const char *unit)
{
	(void)w, (void)object, (void)unit;
	if (strcmp(name, "first") == 0)
		return fake(FAKE_NODE, 0x9000, name);
	return strcmp(name, "head") == 0 ? fake(FAKE_POINTER, 0x9060, name) : NULL;
}

struct dp_value *dp_value_at(struct dp_debug_ctx *w, const char *type, uint64_t addr, const char *object)
{
	(void)w, (void)object;
	for (unsigned i = 0; i < 4; i++)
		if (strcmp(type, fake_type_name[i]) == 0)
			return fake((enum fake_type)i, addr, "it");
	return NULL;
}

struct dp_value *dp_value_move(struct dp_value *v, uint64_t addr)
{
	return fake(v->type, addr, v->path);
}

struct dp_value *dp_value_local(struct dp_debug_ctx *w, const struct dp_snap_frame *frame, const char *name)
{
	(void)frame;
	return dp_value_global(w, name, NULL, NULL);
}

struct dp_value *dp_value_of(const struct dp_snap_variable *v)
{
	return v->value;
}

static struct dp_error *fake_no(const struct dp_value *v, const char *what)
{
	return dp_error(DP_TAG_NO_VALUE, "%s: no member '%s' in %s", v->path, what, fake_type_name[v->type]);
}

struct dp_error *dp_value_deref(struct dp_value *v, struct dp_value **ret)
{
	uint64_t to = fake_int(v, 8);
	if (v->type != FAKE_POINTER || to < 0x9000 || to > 0x9040)
		return dp_error(DP_TAG_NO_VALUE, "%s: nothing readable at 0x%llx", v->path, (unsigned long long)to);
	*ret = fake(FAKE_NODE, to, v->path);
	return NULL;
}

struct dp_error *dp_value_deref_at(struct dp_value *v, uint64_t addr, struct dp_value **ret)
{
	*ret = v->type == FAKE_POINTER ? fake(FAKE_NODE, addr, v->path) : dp_value_move(v, addr);
	return NULL;
}

struct dp_error *dp_value_member(struct dp_value *v, const char *name, struct dp_value **ret)
{
	char path[200];
	if (v->type == FAKE_POINTER)
		DP_TRY(dp_value_deref(v, &v));
	if (v->type != FAKE_NODE)
		return fake_no(v, name);
	snprintf(path, sizeof(path), "%.90s.%.90s", v->path, name);
	if (strcmp(name, "value") == 0)
		*ret = fake(FAKE_INT, v->addr, path);
	else if (strcmp(name, "next") == 0)
		*ret = fake(FAKE_POINTER, v->addr + 8, path);
	else if (strcmp(name, "kids") == 0)
		*ret = fake(FAKE_KIDS, v->addr + 16, path);
	else
		return fake_no(v, name);
	return NULL;
}

struct dp_error *dp_value_index(struct dp_value *v, int64_t i, struct dp_value **ret)
{
	if (v->type == FAKE_POINTER) {
		DP_TRY(dp_value_deref(v, &v));
		*ret = fake(FAKE_NODE, v->addr + (uint64_t)i * 32, v->path);
		return NULL;
	}
	if (v->type != FAKE_KIDS)
		return dp_error(DP_TAG_NO_VALUE, "%s: %s is no array", v->path, fake_type_name[v->type]);
	*ret = fake(FAKE_INT, v->addr + (uint64_t)i * 4, v->path);
	return NULL;
}

struct dp_error *dp_value_cast(struct dp_value *v, const char *type, struct dp_value **ret)
{
	*ret = dp_value_at(NULL, type, v->addr, NULL);
	return *ret ? NULL : dp_error(DP_TAG_NO_VALUE, "%s: no type '%s'", v->path, type);
}

struct dp_error *dp_value_address_of(struct dp_value *v, struct dp_value **ret)
{
	*ret = fake(FAKE_POINTER, 0, v->path);
	(*ret)->has_literal = true;
	(*ret)->literal = v->addr;
	return NULL;
}

struct dp_error *dp_value_container(struct dp_value *v, const char *type, const char *member, struct dp_value **ret)
{
	*ret = dp_value_at(NULL, type, v->addr - (strcmp(member, "next") == 0 ? 8 : 0), NULL);
	return *ret ? NULL : dp_error(DP_TAG_NO_VALUE, "%s: no type '%s'", v->path, type);
}

const char *dp_value_name(const struct dp_value *v)
{
	return v->path;
}

const char *dp_value_object(const struct dp_value *v)
{
	(void)v;
	return "";
}

const char *dp_value_unit(const struct dp_value *v)
{
	(void)v;
	return "";
}

bool dp_value_address(const struct dp_value *v, uint64_t *ret)
{
	*ret = v->addr;
	return !v->has_literal;
}

uint64_t dp_value_size(struct dp_value *v)
{
	return fake_size[v->type];
}

bool dp_value_length(struct dp_value *v, uint64_t *ret)
{
	*ret = 3;
	return v->type == FAKE_KIDS;
}

const char *dp_value_type_name(struct dp_value *v)
{
	return fake_type_name[v->type];
}

const char *dp_value_base_type(struct dp_value *v)
{
	return v->type == FAKE_NODE || v->type == FAKE_POINTER ? "node" : "int";
}

enum dp_var_kind dp_value_kind(struct dp_value *v)
{
	static const enum dp_var_kind kind[] = {DP_VAR_LL, DP_VAR_TUPLE, DP_VAR_REFERENCE, DP_VAR_ARRAY};
	return kind[v->type];
}

struct dp_error *dp_value_members(struct dp_value *v, bool (*each)(const char *, struct dp_value *, void *), void *data)
{
	static const char *const names[] = {"value", "next", "kids"};
	struct dp_value *member;
	for (unsigned i = 0; i < 3; i++) {
		DP_TRY(dp_value_member(v, names[i], &member));
		if (!each(names[i], member, data))
			break;
	}
	return NULL;
}

struct dp_error *dp_value_read_int(struct dp_value *v, uint64_t *ret)
{
	*ret = fake_int(v, v->type == FAKE_POINTER ? 8 : 4);
	return NULL;
}

struct dp_error *dp_value_read_real(struct dp_value *v, double *ret)
{
	*ret = (double)fake_int(v, 4);
	return NULL;
}

size_t dp_value_read_bytes(struct dp_value *v, void *buf, size_t n)
{
	bool late;
	return dp_debug_ctx_read(NULL, v->addr, buf, n < fake_size[v->type] ? n : fake_size[v->type], &late);
}

ssize_t dp_value_read_string(struct dp_value *v, char *buf, size_t n)
{
	(void)v, (void)n;
	*buf = '\0';
	return -1;
}

void dp_value_show(struct dp_value *v, const struct dp_limits *limits, unsigned depth, struct dp_snapshot *s,
                   struct dp_snap_variable *into)
{
	(void)limits, (void)depth, (void)s;
	into->kind = dp_value_kind(v);
	into->type = dp_value_type_name(v);
	into->base_type = dp_value_base_type(v);
	into->number = fake_int(v, v->type == FAKE_POINTER ? 8 : 4);
	into->address = v->addr;
	into->size = dp_value_size(v);
}

#endif
