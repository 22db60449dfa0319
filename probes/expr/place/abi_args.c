/* SPDX-License-Identifier: MIT */
/*
 * Locates arguments and results by the System V ABI (AMD64 supplement 1.0, 3.2.3): values up to 16 bytes are in general and
 * vector registers by the classes of their eightbytes, all others in memory.
 */
#include "probes/dwarf/dwarf_machine.h"
#include "probes/expr/scope/scope_internal.h"

#include <dwarf.h>
#include <string.h>

enum abi_class { CLASS_NONE, CLASS_SSE, CLASS_INTEGER, CLASS_MEMORY, CLASS_UNKNOWN };
enum { EIGHTBYTE = 8, NESTING_MAX = 16, STEPS_MAX = 1024, INTEGERS = 6, VECTORS = 8, RSP = 4 };

struct classes {
	enum abi_class eightbyte[2];
	unsigned depth, steps; /* limits: damaged debug information may have a type contain itself */
};

static void classify(struct classes *c, const struct dp_ctype *t, uint64_t offset);

static void merge(struct classes *c, uint64_t offset, uint64_t size, enum abi_class class)
{
	if (offset % (size ? size : 1) || offset + size > 2 * EIGHTBYTE)
		class = CLASS_MEMORY; /* an unaligned member puts the whole object in memory */
	enum abi_class *at = &c->eightbyte[offset / EIGHTBYTE < 2 ? offset / EIGHTBYTE : 1];
	if (class > *at)
		*at = class;
}

static void classify_record(struct classes *c, const struct dp_ctype *t, uint64_t offset)
{
	const struct dp_member *m;
	const size_t n = dp_ctype_members(t, &m);
	for (size_t i = 0; i < n; i++)
		if (m[i].is_virtual)
			c->eightbyte[0] = CLASS_MEMORY;
		else if (m[i].bits)
			merge(c, offset + m[i].offset, 1, CLASS_INTEGER);
		else
			classify(c, m[i].type, offset + m[i].offset);
}

/* Elements without a size (empty records) are all in one place. */
static void classify_array(struct classes *c, const struct dp_ctype *t, uint64_t offset)
{
	const struct dp_ctype *to = dp_ctype_to(t);
	const uint64_t count = to->size || !t->count ? t->count : 1;
	for (uint64_t i = 0; i < count && i * to->size < 2 * EIGHTBYTE; i++)
		classify(c, to, offset + i * to->size);
}

static void classify(struct classes *c, const struct dp_ctype *t, uint64_t offset)
{
	if (c->depth >= NESTING_MAX || c->steps++ >= STEPS_MAX) {
		c->eightbyte[0] = CLASS_UNKNOWN;
		return;
	}
	c->depth++;
	switch (t->kind) {
	case DP_CTYPE_INT:
	case DP_CTYPE_POINTER:
		merge(c, offset, t->size, CLASS_INTEGER);
		break;
	case DP_CTYPE_FLOAT:
		merge(c, offset, t->size, CLASS_SSE);
		break;
	case DP_CTYPE_INT128:
		merge(c, offset, EIGHTBYTE, CLASS_INTEGER);
		merge(c, offset + EIGHTBYTE, EIGHTBYTE, offset % 16 ? CLASS_MEMORY : CLASS_INTEGER);
		break;
	case DP_CTYPE_ARRAY:
		classify_array(c, t, offset);
		break;
	case DP_CTYPE_RECORD:
		classify_record(c, t, offset);
		break;
	default:
		c->eightbyte[0] = CLASS_UNKNOWN;
	}
	c->depth--;
}

/* True for a C++ object that cannot be copied bytewise: its address is passed. */
static bool by_reference(const struct dp_ctype *t)
{
	Dwarf_Die die = t->die;
	uint64_t convention = 0;
	return die.addr && dp_die_unsigned(&die, DW_AT_calling_convention, &convention) && convention == DW_CC_pass_by_reference;
}

static struct classes classes_of(const struct dp_ctype *t)
{
	struct classes c = {0};
	if (t->kind == DP_CTYPE_LONG_DOUBLE)
		c.eightbyte[0] = CLASS_MEMORY; /* as an argument; a result is in x87 registers */
	else if (t->kind == DP_CTYPE_VOID || dp_ctype_is_opaque(t) || (t->kind == DP_CTYPE_RECORD && !t->size))
		c.eightbyte[0] = CLASS_UNKNOWN;
	else if (t->size > 2 * EIGHTBYTE)
		c.eightbyte[0] = CLASS_MEMORY;
	else
		classify(&c, t, 0);
	if (c.eightbyte[0] < CLASS_MEMORY && c.eightbyte[1] >= CLASS_MEMORY)
		c.eightbyte[0] = c.eightbyte[1];
	return c;
}

struct passing { /* registers and stack used by earlier arguments */
	unsigned integers, vectors;
	uint64_t stack; /* bytes after the return address */
	bool lost;      /* an argument of unknown class: the locations of later ones are unknown */
};

static const uint8_t integer_registers[INTEGERS] = {7, 6, 2, 1, 8, 9}; /* rdi rsi rdx rcx r8 r9 */

static struct dp_expr *next_register(struct dp_scope *s, struct passing *p, enum abi_class class)
{
	if (class == CLASS_INTEGER)
		return dp_build_reg(&s->arena, integer_registers[p->integers++]);
	return dp_build(&s->arena, (struct dp_expr){.kind = DP_EXPR_XMM, .reg = (uint8_t)p->vectors++, .size = 8});
}

struct alignment {
	uint64_t bytes;
	unsigned depth, steps;
	bool unknown;
};

/* The entry's own alignment (alignas). */
static void raise_to(struct alignment *a, Dwarf_Die die)
{
	uint64_t own;
	if (die.addr && dp_die_unsigned(&die, DW_AT_alignment, &own) && own > a->bytes)
		a->bytes = own;
}

/* long double and __int128 are 16-byte aligned. Debug information does not tell the alignment of vectors. */
static void align_to(struct alignment *a, const struct dp_ctype *t)
{
	const struct dp_member *m;
	const size_t n = dp_ctype_members(t, &m);
	raise_to(a, t->die);
	if (dp_ctype_is_wide(t))
		a->bytes = 16;
	a->unknown |= dp_ctype_is_opaque(t) || a->steps++ >= STEPS_MAX;
	if (a->depth >= NESTING_MAX || a->unknown)
		return;
	a->depth++;
	for (size_t i = 0; i < n; i++) {
		raise_to(a, m[i].die);
		align_to(a, m[i].type);
	}
	if (t->kind == DP_CTYPE_ARRAY)
		align_to(a, dp_ctype_to(t));
	a->depth--;
}

/* rustc's convention differs from C's when LLVM splits a 128-bit integer between registers and the stack. */
static bool is_rust(struct dp_scope *s)
{
	return s->unit.addr && dwarf_srclang(&s->unit) == DW_LANG_Rust;
}

static struct dp_storage on_stack(struct dp_scope *s, struct passing *p, const struct dp_ctype *t)
{
	struct alignment alignment = {0};
	align_to(&alignment, t);
	const uint64_t align = alignment.bytes;
	if (alignment.unknown || align > 16 || (dp_ctype_is_wide(t) && is_rust(s))) {
		p->lost = true;
		return dp_storage_none(&s->arena, "passed in a way that dynprobe does not support");
	}
	if (align > EIGHTBYTE)
		p->stack = (p->stack + align - 1) / align * align;
	struct dp_expr *addr = dp_build_add(&s->arena, dp_build_reg(&s->arena, RSP), EIGHTBYTE + p->stack);
	p->stack += (t->size + EIGHTBYTE - 1) / EIGHTBYTE * EIGHTBYTE;
	return dp_storage_memory(&s->arena, addr);
}

/* gcc does not mark such a class. But the parameter's location is then that of its address, read once more. */
static bool is_found_by_address(Dwarf_Die *parameter)
{
	enum { RBP = 6, DWARF_RSP = 7 };
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	if (!dwarf_attr_integrate(parameter, DW_AT_location, &attr) || dwarf_whatform(&attr) != DW_FORM_exprloc ||
	    dwarf_getlocation(&attr, &ops, &n))
		return false;
	const unsigned base = ops[0].atom - DW_OP_breg0;
	if (n == 1) /* in a register that the caller has set */
		return base < 16 && base != RBP && base != DWARF_RSP && !ops[0].number;
	return n == 2 && dp_dwarf_is_in_frame(ops, n) && ops[1].atom == DW_OP_deref;
}

static struct dp_storage pass(struct dp_scope *s, struct passing *p, const struct dp_ctype *t, Dwarf_Die *parameter)
{
	static const char unknown[] = "passed in a way that dynprobe does not support";
	struct dp_storage storage = {0};
	unsigned integers = 0, vectors = 0;
	if (t->kind == DP_CTYPE_RECORD && (by_reference(t) || is_found_by_address(parameter))) {
		if (p->integers < INTEGERS)
			return dp_storage_memory(&s->arena, next_register(s, p, CLASS_INTEGER));
		struct dp_expr *at = dp_build_add(&s->arena, dp_build_reg(&s->arena, RSP), EIGHTBYTE + p->stack);
		p->stack += EIGHTBYTE;
		return dp_storage_memory(&s->arena, dp_build_load(&s->arena, at, EIGHTBYTE, false));
	}
	const struct classes c = classes_of(t);
	const bool empty = c.eightbyte[0] == CLASS_NONE && c.eightbyte[1] == CLASS_NONE;
	/* C++ gives an empty record one byte. A larger one has parts of which nothing is known: a Rust enum with values. */
	p->lost |= c.eightbyte[0] == CLASS_UNKNOWN || (empty && (t->size > 1 || (t->size && is_rust(s))));
	if (p->lost || empty)
		return dp_storage_none(&s->arena, unknown);
	for (unsigned i = 0; i < 2; i++) {
		integers += c.eightbyte[i] == CLASS_INTEGER;
		vectors += c.eightbyte[i] == CLASS_SSE;
	}
	if (c.eightbyte[0] == CLASS_MEMORY || p->integers + integers > INTEGERS || p->vectors + vectors > VECTORS)
		return on_stack(s, p, t);
	for (unsigned i = 0; i < 2 && i * EIGHTBYTE < t->size; i++)
		dp_storage_add(
		        &s->arena, &storage,
		        (struct dp_piece){.kind = DP_PIECE_VALUE,
		                          .size = EIGHTBYTE,
		                          .expr = next_register(s, p, c.eightbyte[i] == CLASS_SSE ? CLASS_SSE : CLASS_INTEGER)});
	return storage;
}

/* A result in memory: its address is a hidden first argument. */
static struct passing begin(struct dp_scope *s, Dwarf_Die *function)
{
	struct passing p = {0};
	const struct dp_ctype *result = dp_ctype_of(&s->types, function);
	if (!result || result->kind == DP_CTYPE_VOID)
		return p;
	const struct classes c = classes_of(result);
	p.integers = (c.eightbyte[0] == CLASS_MEMORY && result->kind != DP_CTYPE_LONG_DOUBLE) ||
	             (result->kind == DP_CTYPE_RECORD && by_reference(result));
	p.lost = result->kind == DP_CTYPE_RECORD && !result->size;
	return p;
}

/* A compiler may give a local function its own calling convention; the debug information or the symbol's suffix tells so. */
static bool is_conventional(struct dp_scope *s, Dwarf_Die *function)
{
	uint64_t convention = 0;
	const char *name = s->at.site.function.name;
	if (name && (strstr(name, ".isra.") || strstr(name, ".constprop.")))
		return false;
	return !dp_die_unsigned(function, DW_AT_calling_convention, &convention) || convention != DW_CC_nocall;
}

struct dp_storage dp_abi_argument(struct dp_scope *s, Dwarf_Die *function, Dwarf_Die *die)
{
	Dwarf_Die parameter[DP_PARAMETERS_MAX];
	struct passing p = begin(s, function);
	const size_t n = is_conventional(s, function) ? dp_parameters_of(function, parameter, DP_PARAMETERS_MAX) : 0;
	for (size_t i = 0; i < n; i++) {
		const struct dp_ctype *t = dp_ctype_of(&s->types, &parameter[i]);
		struct dp_storage at = t ? pass(s, &p, t, &parameter[i]) : dp_storage_none(&s->arena, DP_ABSENT_UNKNOWN);
		if (parameter[i].addr == die->addr)
			return at;
	}
	return dp_storage_none(&s->arena, DP_ABSENT_NOT_SET);
}

struct dp_storage dp_abi_result(struct dp_scope *s, const struct dp_ctype *type)
{
	static const uint8_t integer[2] = {0, 2}; /* rax rdx */
	unsigned integers = 0, vectors = 0;
	struct dp_storage storage = {0};
	const struct classes c = classes_of(type);
	if (c.eightbyte[0] == CLASS_UNKNOWN || type->kind == DP_CTYPE_LONG_DOUBLE || (!c.eightbyte[0] && !c.eightbyte[1]))
		return dp_storage_none(&s->arena, "returned in a way that dynprobe does not support");
	if (c.eightbyte[0] == CLASS_MEMORY || (type->kind == DP_CTYPE_RECORD && by_reference(type)))
		return dp_storage_memory(&s->arena, dp_build_reg(&s->arena, 0));
	for (unsigned i = 0; i < 2 && i * EIGHTBYTE < type->size; i++) {
		const bool sse = c.eightbyte[i] == CLASS_SSE;
		struct dp_expr *e =
		        sse ? dp_build(&s->arena, (struct dp_expr){.kind = DP_EXPR_XMM, .reg = (uint8_t)vectors++, .size = 8})
		            : dp_build_reg(&s->arena, integer[integers++]);
		dp_storage_add(&s->arena, &storage, (struct dp_piece){.kind = DP_PIECE_VALUE, .size = EIGHTBYTE, .expr = e});
	}
	return storage;
}
