/* SPDX-License-Identifier: MIT */
/*
 * Private parts of a world. Debug information is turned into plain nodes once (types, rules, plans of frames); while the process
 * is held, only these are walked. Everything is in the world's arena.
 */
#ifndef DP_PMODULES_VALUE_DEBUG_CTX_INTERNAL_H
#define DP_PMODULES_VALUE_DEBUG_CTX_INTERNAL_H

#include "pmodules/value/value.h"
#include "probes/debug/debug.h"
#include "probes/dwarf/storage.h"

/* A string of the world, and its copy in the snapshot in progress: types and names occur thousands of times. */
struct dp_stext {
	const char *text;
	const char *copy;
	uint64_t of; /* generation of the copy */
};

/* ---- types (probes/dwarf/type.h) ---------------------------------------------------------------------------------- */

/* What a snapshot adds to a type: dp_ctype.owned. */
struct dp_ctype_copy {
	struct dp_stext name, base;
	struct dp_stext *label;                                                         /* of each member; NULL: none is known */
	enum dp_reach_state { DP_REACH_UNKNOWN, DP_REACH_PLAIN, DP_REACH_LEADS } reach; /* value_reach.c */
	const struct dp_ctype *complete; /* definition of an incomplete record, once looked up */
	bool looked, looked_far;
};
struct dp_ctype_copy *dp_ctype_copy_create(const struct dp_ctype *t);
/* NULL for void, and if out of memory. */
static inline struct dp_ctype_copy *dp_ctype_copy_of(const struct dp_ctype *t)
{
	return t->owned ? t->owned : dp_ctype_copy_create(t);
}
/* The types of a module; NULL: those of none. */
struct dp_ctypes *dp_debug_ctx_types(struct dp_debug_ctx *w, struct dp_module *m);
static inline struct dp_module *dp_ctype_module(const struct dp_ctype *t)
{
	return t->in ? t->in->module : NULL;
}

/* The member's name; of a base, its type's. */
static inline const char *dp_member_label(const struct dp_member *m)
{
	return m->name ? m->name : m->is_base ? m->type->base : "";
}

/* value_type.c: a type by its name, as users write it; those of `object` first (may be NULL). NULL: there is none. */
const struct dp_ctype *dp_debug_ctx_type(struct dp_debug_ctx *w, const char *name, const char *object);
/* The definition of a declared type, from other units and modules; the type itself if there is none. */
const struct dp_ctype *dp_ctype_complete(struct dp_debug_ctx *w, const struct dp_ctype *t);
/* The same in its own module only: unless the user names the type, searching all modules takes too long. */
const struct dp_ctype *dp_ctype_complete_near(struct dp_debug_ctx *w, const struct dp_ctype *t);

/* ---- the world -------------------------------------------------------------------------------------------------------- */

#define DP_DEBUG_CTX_RANGES 4u
struct dp_debug_ctx_module { /* cached data of a module */
	struct dp_debug_ctx_module *next;
	struct dp_module *module;
	struct dp_ctypes types;
	bool debug_asked;
	struct dp_debug *debug; /* or NULL */
	bool objects_known;
	const struct dp_symbol **object; /* data symbols, ascending */
	size_t nobjects;
	struct dp_stext path;
};
struct dp_debug_ctx_name { /* result of a type lookup */
	struct dp_debug_ctx_name *next;
	const char *name;
	const struct dp_ctype *type; /* NULL: not found */
};
struct dp_debug_ctx {
	struct dp_image *image;
	struct dp_debug_ctx_last latest; /* dp_debug_ctx_last() */
	dp_debug_ctx_read_fn read;
	void *data;
	struct dp_arena arena;
	struct dp_debug_ctx_module *modules;
	struct dp_debug_ctx_module *last; /* last one asked for */
	struct dp_ctypes basic;           /* types that are in no module */
	struct dp_debug_ctx_name *names;
	uint64_t fs_base; /* of the current thread, for its thread-locals */
	/* The snapshot that strings are copied to. */
	const struct dp_snapshot *snapshot;
	char id[37];
	uint64_t generation;
	bool (*is_over)(void *data); /* from dp_debug_ctx_bound(); or NULL */
	void *over_data;
	void (*before_load)(void *data); /* takes the data of `read`; or NULL */
	/* Recently used address ranges, each in one module or in none. */
	struct dp_debug_ctx_range {
		uint64_t start, end;
		struct dp_debug_ctx_module *module;
	} range[DP_DEBUG_CTX_RANGES];
	size_t nranges;
	/* Page cache: most reads are of a few neighbouring bytes. */
	struct dp_debug_ctx_page *page;
};
#define DP_DEBUG_CTX_PAGE  4096u
#define DP_DEBUG_CTX_PAGES 64u
struct dp_debug_ctx_page {
	uint64_t addr; /* 1: free */
	uint32_t n;    /* readable bytes from the start */
	bool late;
	uint8_t bytes[DP_DEBUG_CTX_PAGE];
};
const struct dp_debug_ctx_page *dp_debug_ctx_page(struct dp_debug_ctx *w, uint64_t addr);
/* The n bytes at addr in the page cache, valid until the next read. NULL: unreadable, or they cross a page boundary. */
static inline const uint8_t *dp_debug_ctx_at(struct dp_debug_ctx *w, uint64_t addr, uint64_t n, bool *late)
{
	const uint64_t start = addr & -(uint64_t)DP_DEBUG_CTX_PAGE, in = addr - start;
	const struct dp_debug_ctx_page *p = &w->page[(start / DP_DEBUG_CTX_PAGE) % DP_DEBUG_CTX_PAGES];
	if (p->addr != start)
		p = dp_debug_ctx_page(w, addr);
	if (in >= p->n || n > p->n - in)
		return NULL;
	*late |= p->late;
	return p->bytes + in;
}

static inline bool dp_debug_ctx_is_over(const struct dp_debug_ctx *w)
{
	return w->is_over && w->is_over(w->over_data);
}
struct dp_debug_ctx_module *dp_debug_ctx_module(struct dp_debug_ctx *w, struct dp_module *m);
struct dp_debug_ctx_module *dp_debug_ctx_module_at(struct dp_debug_ctx *w, uint64_t addr); /* or NULL */
/* NULL: none. */
struct dp_debug *dp_debug_ctx_debug(struct dp_debug_ctx *w, struct dp_module *m);
/* Drops cached memory, which may have changed. */
void dp_debug_ctx_forget(struct dp_debug_ctx *w);
/* Reads all n bytes or none. */
bool dp_debug_ctx_get(struct dp_debug_ctx *w, uint64_t addr, void *buf, size_t n, bool *late);
const char *dp_debug_ctx_copy(struct dp_debug_ctx *w, struct dp_snapshot *s, struct dp_stext *t);
static inline const char *dp_debug_ctx_text(struct dp_debug_ctx *w, struct dp_snapshot *s, struct dp_stext *t)
{
	return t->text && t->of == w->generation && t->copy ? t->copy : dp_debug_ctx_copy(w, s, t);
}
void dp_debug_ctx_begin(struct dp_debug_ctx *w, const struct dp_snapshot *s);
/* The module around addr (or NULL), with its data symbols loaded. */
struct dp_debug_ctx_module *dp_debug_ctx_objects_at(struct dp_debug_ctx *w, uint64_t addr);
/* "name" or "name+0x10" of the data at addr, in the world's arena; or NULL. */
const char *dp_debug_ctx_object_at(struct dp_debug_ctx *w, uint64_t addr);

/* ---- values ----------------------------------------------------------------------------------------------------------- */

enum dp_value_where { DP_VALUE_MEMORY, DP_VALUE_BYTES, DP_VALUE_NOWHERE };
enum dp_value_step { DP_STEP_ROOT, DP_STEP_MEMBER, DP_STEP_INDEX, DP_STEP_DEREF };
struct dp_value {
	struct dp_debug_ctx *w;
	const struct dp_ctype *type;
	const struct dp_value *parent; /* the value that it is a part of; or NULL */
	const char *name;              /* of a root or a member */
	int64_t index;
	uint8_t step, where, bit, bits;
	bool late;
	uint64_t addr;
	const uint8_t *bytes; /* nbytes of an object that is not in memory */
	const uint8_t *valid; /* a flag for each byte; NULL: all valid */
	uint64_t nbytes;
	const char *why;          /* NOWHERE */
	struct dp_module *module; /* of a global */
	const char *unit, *path;
};

struct dp_value *dp_value_create(struct dp_debug_ctx *w, const struct dp_ctype *type, const char *name);
/* Gets the object's bytes; false, with *why, unless all are available. */
bool dp_value_fetch(struct dp_value *v, void *buf, size_t n, const char **why);
/* Gets an integer of at most 8 bytes or a bit-field, extended. */
bool dp_value_scalar(struct dp_value *v, uint64_t *ret, const char **why);
bool dp_value_sub(const struct dp_value *v, const struct dp_member *m, struct dp_value *ret);

#define DP_WHY_OPTIMIZED DP_ABSENT_OPTIMIZED
#define DP_WHY_UNKNOWN   DP_ABSENT_UNKNOWN

#endif
