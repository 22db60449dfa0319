/* SPDX-License-Identifier: MIT */
/*
 * Typed values of a process that is held still (or of a core, or of a saved snapshot): an object of a type of the debug
 * information, at an address or in registers. The pmodules' bt_variable. Values live as long as their world; reading is lazy, and what
 * the target's memory says is never trusted.
 */
#ifndef DP_PMODULES_VALUE_H
#define DP_PMODULES_VALUE_H

#include "pmodules/model/snapshot.h"
#include "probes/dwarf/type.h"

struct dp_world; /* opaque: one process's memory, modules, types */
/* Reads memory; the number of bytes from the front. *late: not of the moment of the hold (may be NULL). */
typedef size_t (*dp_world_read_fn)(uint64_t addr, void *buf, size_t n, bool *late, void *data);
/* Borrows the image. */
struct dp_error *dp_world_create(struct dp_image *image, dp_world_read_fn read, void *data, struct dp_world **ret) DP_MUST_CHECK;
struct dp_world *dp_world_destroy(struct dp_world *w);
/* The image's maps and the memory have changed; its modules have not. */
void dp_world_renew(struct dp_world *w);
/*
 * Asked, with the data of `read`, before the debug information of a module is loaded, which may take long: who holds the process
 * lets it go there if its time is over. NULL: nobody.
 */
void dp_world_before_load(struct dp_world *w, void (*ask)(void *data));
uint64_t dp_world_bytes(const struct dp_world *w); /* of what is known of types, code and values */
struct dp_image *dp_world_image(struct dp_world *w);
size_t dp_world_read(struct dp_world *w, uint64_t addr, void *buf, size_t n, bool *late);
struct dp_world_last {
	uint64_t reads; /* so far: it tells one from the next */
	bool any, late; /* of the last one: did it read something, of the process as it is now? */
};
struct dp_world_last dp_world_last(const struct dp_world *w);
/* Searches of debug information end with nothing found as soon as is_over(data) says so; it is asked every so often. NULL: they go on to the end. */
void dp_world_bound(struct dp_world *w, bool (*is_over)(void *data), void *data);

struct dp_limits { /* of what is shown; 0: the default */
	unsigned depth;          /* of pointers followed from a variable: 4 on faulting frames, 2 elsewhere */
	unsigned fault_depth;
	unsigned nesting;        /* of members and elements: 16 */
	unsigned elements;       /* of an array: 128 */
	unsigned string;         /* bytes of a string: 256 */
	unsigned variables;      /* of a frame, children included: 4096 */
	unsigned frames;         /* of a thread: 512 (384 innermost, 128 outermost) */
	uint64_t bytes;          /* of the snapshot: 64 MiB */
};

struct dp_value; /* opaque */

/* A global or static variable by its name ("name", "file.c::name", "ns::name"); object and unit: full path, as written, or last part; NULL: any. NULL if there is none. */
struct dp_value *dp_value_global(struct dp_world *w, const char *name, const char *object, const char *unit);
/* A value of the named type ("struct foo", "foo", "foo *", "std::vector<int>") at an address; `object`: looked for there first, or NULL. NULL if unknown. */
struct dp_value *dp_value_at(struct dp_world *w, const char *type, uint64_t addr, const char *object);
/* A value of the named type that is in no memory, but is known: a number of up to 8 bytes, a pointer among them. NULL if the type is unknown, or another kind. */
struct dp_value *dp_value_literal(struct dp_world *w, const char *type, uint64_t number, const char *object);
/* Of the same type, elsewhere. NULL: no memory. */
struct dp_value *dp_value_move(struct dp_value *v, uint64_t addr);
/* A local or parameter of an extracted frame by name, innermost block first; NULL if there is none. */
struct dp_value *dp_value_local(struct dp_world *w, const struct dp_snap_frame *frame, const char *name);
/* What an extracted variable was made from; NULL for synthesized ones. */
struct dp_value *dp_value_of(const struct dp_snap_variable *v);

/*
 * Steps. Failures are errors with a message that names path, type and address; tag DP_TAG_NO_VALUE or NO_VARIABLE. An incomplete type is looked
 * for by name in other units, then other modules. Members: bases and anonymous members included; pointers are followed as many levels as
 * needed.
 */
struct dp_error *dp_value_member(struct dp_value *v, const char *name, struct dp_value **ret) DP_MUST_CHECK;
struct dp_error *dp_value_index(struct dp_value *v, int64_t i, struct dp_value **ret) DP_MUST_CHECK; /* arrays and pointers */
struct dp_error *dp_value_deref(struct dp_value *v, struct dp_value **ret) DP_MUST_CHECK;
/* Of a pointer: what it would point at if it held `addr`; it is not read itself. Of anything else: as dp_value_move(). */
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
/* Calls `each` with every direct member (bases' as well), until it returns false. */
struct dp_error *dp_value_members(struct dp_value *v, bool (*each)(const char *name, struct dp_value *member, void *data), void *data) DP_MUST_CHECK;
struct dp_error *dp_value_read_int(struct dp_value *v, uint64_t *ret) DP_MUST_CHECK; /* integers, enums, bool, pointers; extended */
struct dp_error *dp_value_read_real(struct dp_value *v, double *ret) DP_MUST_CHECK;
/* Up to n bytes of its representation. */
size_t dp_value_read_bytes(struct dp_value *v, void *buf, size_t n);
/* The string that a char pointer or array holds: at most n bytes and a NUL into buf; -1 if unreadable. */
ssize_t dp_value_read_string(struct dp_value *v, char *buf, size_t n);

/* Fills in kind, type, value, children to the limits. `into` was made by dp_snapshot_variable(); its name is kept if it has one. */
void dp_value_show(struct dp_value *v, const struct dp_limits *limits, unsigned depth, struct dp_snapshot *s, struct dp_snap_variable *into);

/* Symbols. */
const char *dp_world_symbol_at(struct dp_world *w, uint64_t addr); /* readable, or NULL */
bool dp_world_symbol(struct dp_world *w, const char *symbol, const char *object, uint64_t *ret);

#endif
