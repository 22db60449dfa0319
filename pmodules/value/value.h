/* SPDX-License-Identifier: MIT */
/*
 * Typed values of a stopped process, a core or a saved snapshot: an object of a DWARF type, at an address or in registers.
 * pmodule.h calls them bt_variable. Values live as long as their world. Memory is read lazily; do not trust the target's
 * contents.
 */
#ifndef DP_PMODULES_VALUE_VALUE_H
#define DP_PMODULES_VALUE_VALUE_H

#include "pmodules/model/snapshot.h"
#include "probes/dwarf/type.h"

struct dp_debug_ctx; /* opaque: one process's memory, modules, types */
/* Reads memory; returns the number of leading bytes. *late (may be NULL): not of the moment of the hold. */
typedef size_t (*dp_debug_ctx_read_fn)(uint64_t addr, void *buf, size_t n, bool *late, void *data);
/* Borrows the image. */
struct dp_error *dp_debug_ctx_create(struct dp_image *image, dp_debug_ctx_read_fn read, void *data, struct dp_debug_ctx **ret) DP_MUST_CHECK;
struct dp_debug_ctx *dp_debug_ctx_destroy(struct dp_debug_ctx *w);
/* The image's maps and the memory have changed, its modules have not. */
void dp_debug_ctx_renew(struct dp_debug_ctx *w);
/*
 * Sets a function, called with the data of `read`, before a module's debug information is loaded, which may take long: it can
 * release the process if its time is over. NULL: none.
 */
void dp_debug_ctx_before_load(struct dp_debug_ctx *w, void (*ask)(void *data));
uint64_t dp_debug_ctx_bytes(const struct dp_debug_ctx *w); /* memory used for types, code and values */
struct dp_image *dp_debug_ctx_image(struct dp_debug_ctx *w);
size_t dp_debug_ctx_read(struct dp_debug_ctx *w, uint64_t addr, void *buf, size_t n, bool *late);
struct dp_debug_ctx_last {
	uint64_t reads; /* a counter: identifies a read */
	bool any, late; /* the last one: did it read bytes, and from the running process? */
};
struct dp_debug_ctx_last dp_debug_ctx_last(const struct dp_debug_ctx *w);
/* Searches of debug information stop with no result when is_over(data) is true; they ask now and then. NULL: no limit. */
void dp_debug_ctx_bound(struct dp_debug_ctx *w, bool (*is_over)(void *data), void *data);

struct dp_limits { /* limits of what is shown; 0: the default */
	unsigned depth;          /* pointers followed from a variable: 4 on faulting frames, 2 elsewhere */
	unsigned fault_depth;
	unsigned nesting;        /* of members and elements: 16 */
	unsigned elements;       /* of an array: 128 */
	unsigned string;         /* bytes of a string: 256 */
	unsigned variables;      /* of a frame, with children: 4096 */
	unsigned frames;         /* of a thread: 512 (384 innermost, 128 outermost) */
	uint64_t bytes;          /* of the snapshot: 64 MiB */
};

struct dp_value; /* opaque */

/*
 * A global or static variable by name ("name", "file.c::name", "ns::name"), or NULL. object, unit: full path, as written, or last
 * component; NULL: any.
 */
struct dp_value *dp_value_global(struct dp_debug_ctx *w, const char *name, const char *object, const char *unit);
/*
 * A value of the named type ("struct foo", "foo", "foo *", "std::vector<int>") at an address. `object`: searched first, or NULL.
 * NULL: unknown type.
 */
struct dp_value *dp_value_at(struct dp_debug_ctx *w, const char *type, uint64_t addr, const char *object);
/*
 * A known value of the named type that is not in memory: a number of up to 8 bytes, or a pointer. NULL: unknown or unsuitable
 * type.
 */
struct dp_value *dp_value_literal(struct dp_debug_ctx *w, const char *type, uint64_t number, const char *object);
/* A value of the same type at another address. NULL: out of memory. */
struct dp_value *dp_value_move(struct dp_value *v, uint64_t addr);
/* A local or parameter of an extracted frame by name, innermost block first; or NULL. */
struct dp_value *dp_value_local(struct dp_debug_ctx *w, const struct dp_snap_frame *frame, const char *name);
/* The value that an extracted variable was made from; NULL for synthesized ones. */
struct dp_value *dp_value_of(const struct dp_snap_variable *v);

/*
 * Steps. An error's message names path, type and address; its tag is DP_TAG_NO_VALUE or NO_VARIABLE. Incomplete types are looked
 * up by name in other units, then in other modules. Members include those of bases and anonymous members; as many pointers as
 * needed are followed.
 */
struct dp_error *dp_value_member(struct dp_value *v, const char *name, struct dp_value **ret) DP_MUST_CHECK;
struct dp_error *dp_value_index(struct dp_value *v, int64_t i, struct dp_value **ret) DP_MUST_CHECK; /* arrays and pointers */
struct dp_error *dp_value_deref(struct dp_value *v, struct dp_value **ret) DP_MUST_CHECK;
/* Pointer: the target it would have if it contained `addr`; the pointer is not read. Others: like dp_value_move(). */
struct dp_error *dp_value_deref_at(struct dp_value *v, uint64_t addr, struct dp_value **ret) DP_MUST_CHECK;
struct dp_error *dp_value_cast(struct dp_value *v, const char *type, struct dp_value **ret) DP_MUST_CHECK;
struct dp_error *dp_value_address_of(struct dp_value *v, struct dp_value **ret) DP_MUST_CHECK; /* a pointer value */
struct dp_error *dp_value_container(struct dp_value *v, const char *type, const char *member, struct dp_value **ret) DP_MUST_CHECK;

const char *dp_value_name(const struct dp_value *v); /* its path: "list.head->next" */
const char *dp_value_object(const struct dp_value *v);
const char *dp_value_unit(const struct dp_value *v);
bool dp_value_address(const struct dp_value *v, uint64_t *ret); /* false: not in memory */
uint64_t dp_value_size(struct dp_value *v);
bool dp_value_length(struct dp_value *v, uint64_t *ret); /* of an array */
const char *dp_value_type_name(struct dp_value *v);      /* "struct crash *" */
const char *dp_value_base_type(struct dp_value *v);      /* "crash" */
enum dp_var_kind dp_value_kind(struct dp_value *v);
/* Calls `each` for every direct member (those of bases too) until it returns false. */
struct dp_error *dp_value_members(struct dp_value *v, bool (*each)(const char *name, struct dp_value *member, void *data), void *data) DP_MUST_CHECK;
struct dp_error *dp_value_read_int(struct dp_value *v, uint64_t *ret) DP_MUST_CHECK; /* integers, enums, bool, pointers; extended */
struct dp_error *dp_value_read_real(struct dp_value *v, double *ret) DP_MUST_CHECK;
/* Reads up to n bytes of its representation. */
size_t dp_value_read_bytes(struct dp_value *v, void *buf, size_t n);
/* The string of a char pointer or array: at most n bytes and a NUL into buf. -1: unreadable. */
ssize_t dp_value_read_string(struct dp_value *v, char *buf, size_t n);

/*
 * Fills in kind, type, value, and children up to the limits. `into` comes from dp_snapshot_variable(); its name is kept if set.
 */
void dp_value_show(struct dp_value *v, const struct dp_limits *limits, unsigned depth, struct dp_snapshot *s, struct dp_snap_variable *into);

/* Symbols. */
const char *dp_debug_ctx_symbol_at(struct dp_debug_ctx *w, uint64_t addr); /* readable, or NULL */
bool dp_debug_ctx_symbol(struct dp_debug_ctx *w, const char *symbol, const char *object, uint64_t *ret);

#endif
