/* SPDX-License-Identifier: MIT */
/*
 * Inside of a world. What debug information says is turned into plain nodes once (types, rules, plans of frames): while the
 * process is held, only these are walked. Everything is in the world's arena and lives as long as it.
 */
#ifndef DP_PMODULES_WORLD_INTERNAL_H
#define DP_PMODULES_WORLD_INTERNAL_H

#include "pmodules/value/value.h"
#include "probes/debug/debug.h"
#include "probes/dwarf/storage.h"

/* A text of the world's and its copy in the snapshot that is being made: types and names come thousands of times. */
struct dp_stext {
	const char *text;
	const char *copy;
	uint64_t of; /* generation of the copy */
};

/* ---- types ---------------------------------------------------------------------------------------------------------- */

enum dp_stype_kind {
	DP_STYPE_VOID,
	DP_STYPE_INT,
	DP_STYPE_ENUM,
	DP_STYPE_FLOAT, /* 4, 8 or 16 bytes: long double */
	DP_STYPE_COMPLEX,
	DP_STYPE_POINTER,
	DP_STYPE_REFERENCE,
	DP_STYPE_ARRAY,
	DP_STYPE_RECORD,
	DP_STYPE_FUNCTION,
	DP_STYPE_MEMBER, /* pointers to data of objects */
	DP_STYPE_METHOD, /* and to their functions */
	DP_STYPE_OTHER,  /* what nobody has heard of: bytes */
};

struct dp_stype;
struct dp_smember {
	const char *name; /* NULL: a base or an unnamed one */
	struct dp_stext label;
	uint64_t offset;
	uint8_t bit, bits; /* bits: 0, or a bit-field */
	bool is_base, is_artificial;
	bool is_virtual; /* a base whose place the object tells */
	Dwarf_Die die;
	const struct dp_stype *type;
};
struct dp_sname { /* an enumerator */
	uint64_t value;
	const char *name;
};
struct dp_stype {
	struct dp_stype *chain;
	const void *key; /* the entry's place in the debug information */
	enum dp_stype_kind kind;
	uint64_t size, count;                                                         /* count: of an array; 0 if unknown */
	bool is_signed, is_bool, is_char, is_union, is_incomplete, is_flags, is_wide; /* is_wide: __int128 */
	bool is_sized;                                                                /* an array: count is known, be it 0 */
	bool is_dynamic; /* an array whose length is computed at run time */
	struct dp_module *module;
	Dwarf_Die whole; /* as the variable has it; addr NULL: void, or of the language's own */
	Dwarf_Die die;   /* below typedefs and qualifiers */
	struct dp_stext name, base;
	const struct dp_stype *to;      /* NULL until asked for */
	const struct dp_stype *pointer; /* to this one, once asked for */
	struct dp_stype *complete;      /* of an incomplete record, once it was looked for */
	bool looked, looked_far, members_known, names_known;
	enum dp_reach_state { DP_REACH_UNKNOWN, DP_REACH_PLAIN, DP_REACH_LEADS } reach; /* value_reach.c */
	struct dp_smember *member;
	size_t nmembers;
	struct dp_sname *enumerator;
	size_t nnames;
};

/* world_type.c: never NULL, but for want of memory. */
const struct dp_stype *dp_stype_of(struct dp_world *w, struct dp_module *m, Dwarf_Die *die);   /* DW_AT_type of the entry */
const struct dp_stype *dp_stype_from(struct dp_world *w, struct dp_module *m, Dwarf_Die *die); /* the type that it is */
const struct dp_stype *dp_stype_to(struct dp_world *w, const struct dp_stype *t);
const struct dp_stype *dp_stype_pointer(struct dp_world *w, const struct dp_stype *to);
const struct dp_stype *dp_stype_void(struct dp_world *w);
const struct dp_stype *dp_stype_array(struct dp_world *w, const struct dp_stype *element, uint64_t count);
size_t dp_stype_members(struct dp_world *w, const struct dp_stype *t, const struct dp_smember **ret);
size_t dp_stype_names(struct dp_world *w, const struct dp_stype *t, const struct dp_sname **ret);
/* The definition of what is only declared, from other units and modules; the type itself if there is none. */
const struct dp_stype *dp_stype_complete(struct dp_world *w, const struct dp_stype *t);
/* Of its own module only: where nobody has asked for it by name, a search of all of them takes too long. */
const struct dp_stype *dp_stype_complete_near(struct dp_world *w, const struct dp_stype *t);
static inline bool dp_stype_is_char(const struct dp_stype *t)
{
	return t->kind == DP_STYPE_INT && t->is_char && t->size == 1;
}

/* value_type.c */
const struct dp_stype *dp_stype_find(struct dp_world *w, const char *name, const char *object);

/* ---- the world -------------------------------------------------------------------------------------------------------- */

#define DP_WORLD_SLOTS  4096u
#define DP_WORLD_RANGES 4u
struct dp_world_module { /* what is kept of a module */
	struct dp_world_module *next;
	struct dp_module *module;
	bool debug_asked;
	struct dp_debug *debug; /* or NULL */
	bool cfi_asked;
	Dwarf_CFI *cfi, *debug_cfi; /* .eh_frame, owned; .debug_frame, the debug information's */
	bool objects_known;
	const struct dp_symbol **object; /* data symbols, ascending */
	size_t nobjects;
	struct dp_stext path;
};
struct dp_world_name { /* a type that was looked for */
	struct dp_world_name *next;
	const char *name;
	const struct dp_stype *type; /* NULL: there is none */
};
struct dp_world {
	struct dp_image *image;
	struct dp_world_last latest; /* dp_world_last() */
	dp_world_read_fn read;
	void *data;
	struct dp_arena arena;
	struct dp_world_module *modules;
	struct dp_world_module *last; /* asked for */
	struct dp_stype *type[DP_WORLD_SLOTS];
	struct dp_world_name *names;
	struct dp_stype *none; /* void */
	unsigned depth;        /* of types within types, while they are made */
	uint64_t fs_base;      /* of the thread that is looked at: for its thread-locals */
	/* The snapshot that texts are copied to. */
	const struct dp_snapshot *snapshot;
	char id[37];
	uint64_t generation;
	bool (*is_over)(void *data); /* of who searches; or NULL */
	void *over_data;
	void (*before_load)(void *data); /* of `read`; or NULL */
	/* Memory in which one module is, or none: the last that were asked for. */
	struct dp_world_range {
		uint64_t start, end;
		struct dp_world_module *module;
	} range[DP_WORLD_RANGES];
	size_t nranges;
	/* The last pages: most reads are of a few bytes beside each other. */
	struct dp_world_page *page;
};
#define DP_WORLD_PAGE  4096u
#define DP_WORLD_PAGES 64u
struct dp_world_page {
	uint64_t addr; /* 1: free */
	uint32_t n;    /* bytes from the front that are readable */
	bool late;
	uint8_t bytes[DP_WORLD_PAGE];
};
const struct dp_world_page *dp_world_page(struct dp_world *w, uint64_t addr);
/* The n bytes at addr where they are, until something else is read; NULL: they cannot be read, or not in one piece. */
static inline const uint8_t *dp_world_at(struct dp_world *w, uint64_t addr, uint64_t n, bool *late)
{
	const uint64_t start = addr & -(uint64_t)DP_WORLD_PAGE, in = addr - start;
	const struct dp_world_page *p = &w->page[(start / DP_WORLD_PAGE) % DP_WORLD_PAGES];
	if (p->addr != start)
		p = dp_world_page(w, addr);
	if (in >= p->n || n > p->n - in)
		return NULL;
	*late |= p->late;
	return p->bytes + in;
}

static inline bool dp_world_is_over(const struct dp_world *w)
{
	return w->is_over && w->is_over(w->over_data);
}
struct dp_world_module *dp_world_module(struct dp_world *w, struct dp_module *m);
struct dp_world_module *dp_world_module_at(struct dp_world *w, uint64_t addr); /* or NULL */
/* NULL: there is none. */
struct dp_debug *dp_world_debug(struct dp_world *w, struct dp_module *m);
/* What was read before may have changed. */
void dp_world_forget(struct dp_world *w);
/* All n bytes or nothing. */
bool dp_world_get(struct dp_world *w, uint64_t addr, void *buf, size_t n, bool *late);
const char *dp_world_copy(struct dp_world *w, struct dp_snapshot *s, struct dp_stext *t);
static inline const char *dp_world_text(struct dp_world *w, struct dp_snapshot *s, struct dp_stext *t)
{
	return t->text && t->of == w->generation && t->copy ? t->copy : dp_world_copy(w, s, t);
}
void dp_world_begin(struct dp_world *w, const struct dp_snapshot *s);
/* The module around addr (or NULL), its data symbols known. */
struct dp_world_module *dp_world_objects_at(struct dp_world *w, uint64_t addr);
/* "name" or "name+0x10" of the data at addr, or NULL; in the world's arena. */
const char *dp_world_object_at(struct dp_world *w, uint64_t addr);

/* ---- values ----------------------------------------------------------------------------------------------------------- */

enum dp_value_where { DP_VALUE_MEMORY, DP_VALUE_BYTES, DP_VALUE_NOWHERE };
enum dp_value_step { DP_STEP_ROOT, DP_STEP_MEMBER, DP_STEP_INDEX, DP_STEP_DEREF };
struct dp_value {
	struct dp_world *w;
	const struct dp_stype *type;
	const struct dp_value *parent; /* of which it is a part; or NULL */
	const char *name;              /* of a root or a member */
	int64_t index;
	uint8_t step, where, bit, bits;
	bool late;
	uint64_t addr;
	const uint8_t *bytes; /* nbytes of the object's, which is not in memory */
	const uint8_t *valid; /* of each byte, or NULL: all */
	uint64_t nbytes;
	const char *why;          /* NOWHERE */
	struct dp_module *module; /* of a global */
	const char *unit, *path;
};

struct dp_value *dp_value_create(struct dp_world *w, const struct dp_stype *type, const char *name);
/* The object's bytes; false and *why if they are not all there. */
bool dp_value_fetch(struct dp_value *v, void *buf, size_t n, const char **why);
/* An integer of at most 8 bytes, bit-fields included, extended. */
bool dp_value_scalar(struct dp_value *v, uint64_t *ret, const char **why);
bool dp_value_sub(const struct dp_value *v, const struct dp_smember *m, struct dp_value *ret);

#define DP_WHY_OPTIMIZED DP_ABSENT_OPTIMIZED
#define DP_WHY_UNKNOWN   DP_ABSENT_UNKNOWN

#endif
