/* SPDX-License-Identifier: MIT */
/*
 * probes/: what the user asked for, in the program's own terms. Text becomes sites (addresses in a target's image) and
 * captures (a field table plus where each value comes from). Knows files and symbols, no machine code and no process.
 */
#ifndef DP_PROBES_PROBES_H
#define DP_PROBES_PROBES_H

#include "base/addr.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* ---- image: the modules of a target ---------------------------------------------------------------------------------- */

struct dp_map { /* one line of /proc/PID/maps */
	dp_addr start, end;
	uint64_t offset; /* in the file, bytes */
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	bool read, write, exec, shared;
	char *path; /* as the kernel prints it, " (deleted)" included; "" if anonymous */
};

struct dp_module; /* opaque: an ELF file mapped in the target (symbols.c); loaded lazily */
struct dp_image;  /* opaque: all mappings and modules of one target */

/*
 * `maps` is the text of /proc/PID/maps. Files are opened below `root` ("/proc/PID/root", or "" for our own view), falling
 * back to /proc/PID/map_files where `pid` is not 0 and the path does not lead to the mapped inode. `vdso` may hold the
 * bytes of the vdso (copied), so that it counts as a module too.
 */
struct dp_error *dp_image_create(const char *maps, const char *root, int pid, struct dp_image **ret) DP_MUST_CHECK;
struct dp_image *dp_image_destroy(struct dp_image *image);
/* Other maps of the same process, later. *ret: false if a module is not where it was; then nothing has changed. */
struct dp_error *dp_image_renew(struct dp_image *image, const char *maps, bool *ret) DP_MUST_CHECK;
struct dp_error *dp_image_set_vdso(struct dp_image *image, const void *bytes, size_t size) DP_MUST_CHECK;

size_t dp_image_nmaps(const struct dp_image *image);
const struct dp_map *dp_image_map(const struct dp_image *image, size_t i); /* ascending addresses */
const struct dp_map *dp_image_map_at(const struct dp_image *image, dp_addr addr);

/* Where the heap of brk() starts, or will; 0 if that is not known (no process, no permission). */
uint64_t dp_image_heap_start(const struct dp_image *image);

size_t dp_image_nmodules(const struct dp_image *image);
struct dp_module *dp_image_module(const struct dp_image *image, size_t i); /* [0] is the executable */
/* The module whose mappings hold `addr`, or NULL. */
struct dp_module *dp_image_module_at(const struct dp_image *image, dp_addr addr);

/* Is the code at `addr` of the executable, or of a library that it was linked against? Others may be unloaded at any moment. */
bool dp_image_never_unloaded(struct dp_image *image, dp_addr addr);

const char *dp_module_path(const struct dp_module *m);
const char *dp_module_name(const struct dp_module *m); /* last part of the path */
int64_t dp_module_bias(const struct dp_module *m);     /* address in the target = address in the file (p_vaddr) + bias */
/* Does its code run on stacks of a few KiB, that are moved when they are full? True for Go. */
bool dp_module_small_stacks(struct dp_module *m);
/* Hex digits of the build-id note, "" if there is none. Loads the file. */
const char *dp_module_build_id(struct dp_module *m);
/*
 * The bytes that the file holds for target addresses [addr, addr+n) of an executable segment, relocations that touch text
 * applied where present. Fails with DP_TAG_NOT_CODE outside of executable segments. Used for the DP-FOREIGN comparison and
 * for planning; `n` is cut at the segment's end and returned.
 */
struct dp_error *dp_module_text(struct dp_module *m, dp_addr addr, void *buf, size_t *n) DP_MUST_CHECK;
/* Is `addr`, in this mapping, the file's code in memory that is no longer the file's? Programs move it there for huge pages. */
bool dp_module_moved(const struct dp_module *m, const struct dp_map *map, dp_addr addr);
/* Bounds in the target of the executable segment (page-unaligned, file-backed bytes only) that holds `addr`. */
bool dp_module_text_bounds(struct dp_module *m, dp_addr addr, dp_addr *start, dp_addr *end);
/*
 * The .eh_frame (its first CIE, not the .eh_frame_hdr) as mapped: address in the target and the file's bytes, owned by the module. False if
 * there is none. Zero terminators may stand inside; without section headers `size` reaches to the end of the segment.
 */
bool dp_module_eh_frame(struct dp_module *m, dp_addr *addr, const uint8_t **bytes, size_t *size);

/* One PT_LOAD segment's file bytes at their address in the target (the layout that trampoline/ proves windows with). */
size_t dp_module_nsegments(struct dp_module *m);
bool dp_module_segment(struct dp_module *m, size_t i, dp_addr *addr, const uint8_t **bytes, size_t *n, bool *exec);
/*
 * Landing pads: every address in the target that an exception may continue at, from the LSDAs that .eh_frame names; ascending,
 * owned by the module. False if a table could not be parsed: then nothing is known about the module's pads.
 */
bool dp_module_landing_pads(struct dp_module *m, const uint64_t **pads, size_t *n);

/*
 * Code of which the kernel knows the addresses: restartable sequences, as far as the file has a section of their descriptors. The range
 * number `i`, which may be empty; false behind the last one.
 */
bool dp_module_rseq(struct dp_module *m, size_t i, dp_addr *start, uint64_t *size);
/* The same for code by whose addresses thread cancellation goes, where the file's own symbols name it. */
bool dp_module_cancellation(struct dp_module *m, size_t i, dp_addr *start, uint64_t *size);

struct dp_function { /* a function, or what .eh_frame says is one */
	dp_addr start;
	uint64_t size;    /* bytes, 0 if unknown */
	const char *name; /* owned by the module; "" if only .eh_frame knows it */
	struct dp_module *module;
};
/* The function around `addr`: symbols first (a global before a local alias), then FDE bounds. */
bool dp_image_function_at(struct dp_image *image, dp_addr addr, struct dp_function *ret);
/*
 * Writes "symbol+0x15/0x90 [module]"; "func@0x77a0+0x15/0x90 [module]", where only .eh_frame knows the function (its address in the file);
 * "[module]+0x1234" (the same) or "0x1234"; `size` as for snprintf.
 */
int dp_image_describe(struct dp_image *image, dp_addr addr, char *buf, size_t size);
/* "func@0x77a0": what a function without a name is called; buf. */
#define DP_UNNAMED_MAX 32
const char *dp_function_unnamed(const struct dp_function *f, char buf[static DP_UNNAMED_MAX]);
/* The name as C++ and Rust write it, without parameters; owned by the module. f->name where that is no such name. */
const char *dp_function_readable(const struct dp_function *f);
/* dp_image_describe() with that name. */
int dp_image_describe_readable(struct dp_image *image, dp_addr addr, char *buf, size_t size);

/* ---- probe points ----------------------------------------------------------------------------------------------------- */

/*
 * SPEC := [module '!'] (symbol ['+' offset] | address) [':' ('entry' | 'return' | '*')], or DTrace's spelling
 * pid$target:module:function:name, where empty parts mean any and an offset is hexadecimal without 0x. Numbers are octal (0...),
 * decimal, hexadecimal (0x...). Module and symbol may be patterns as of fnmatch(3).
 *
 * Instead of symbol and offset: FILE:LINE, FUNCTION:LINE (counted from the function's own), FUNCTION@FILE, usdt:PROVIDER:MARKER. What
 * is behind an @ is a file if it has a slash or ends as source files do, else a symbol's version or `plt`.
 */
enum dp_point {
	DP_POINT_PLACE,  /* what the spec says: the symbol's address plus the offset */
	DP_POINT_ENTRY,  /* the function's entry, behind an endbr64 */
	DP_POINT_RETURN, /* every ret and every tail jump */
	DP_POINT_ALL,    /* entry, every instruction, every return */
};
struct dp_spec {
	char *text;     /* as typed */
	char *module;   /* NULL if not given; a glob is allowed */
	char *symbol;   /* NULL for an address */
	uint64_t value; /* the address, or the offset from the symbol (0 if not given) */
	bool has_offset;
	enum dp_point point;
	uint64_t pid; /* of pid123:..., else 0 */
	/* Source lines, files and markers, which dp_image_select() knows. `symbol` is then what was typed behind the module. */
	char *file;     /* FILE:LINE, FUNCTION@FILE; the last parts of a path */
	char *function; /* FUNCTION@FILE, FUNCTION:LINE */
	uint32_t line;  /* in the file, or behind the function's own line */
	bool has_line;
	char *provider, *marker; /* usdt:PROVIDER:MARKER; patterns are allowed */
	char *call;              /* syscall:NAME; a pattern is allowed. `point` ENTRY or RETURN: that alone. Only cli/ expands it */
};
struct dp_error *dp_spec_parse(const char *text, struct dp_spec *ret) DP_MUST_CHECK;
void dp_spec_fini(struct dp_spec *spec);
/* Does the text hold any of fnmatch's special characters? False for NULL. */
bool dp_spec_is_pattern(const char *text);
/* A line, a function of a file, a marker: nothing that a symbol's name can say? */
bool dp_spec_is_source(const struct dp_spec *spec);
/* May it name more than one place? Then it is for dp_image_select(). */
bool dp_spec_selects(const struct dp_spec *spec);
/* Does it stand for whatever it matches (a pattern, FUNCTION:*), and not for what the user named? */
bool dp_spec_has_pattern(const struct dp_spec *spec);

struct dp_site {
	dp_addr addr;
	struct dp_function function; /* start 0 if unknown */
	struct dp_module *module;
};
/*
 * Finds the one site that `spec` names. Unknown symbols: DP_TAG_NO_SYMBOL with "did you mean" candidates. Several different
 * addresses: DP_TAG_AMBIGUOUS with the module!symbol forms. Aliases of one address are one site. `main` in a stripped
 * executable is found from what _start passes to __libc_start_main. IFUNC symbols: the message names the implementations
 * and asks for one of them. Instruction boundaries are not checked here (dp_boundaries in trampoline/ does that).
 * An address with `module!` is an address in the file, without it one in the target.
 */
struct dp_error *dp_image_resolve(struct dp_image *image, const struct dp_spec *spec, struct dp_site *ret) DP_MUST_CHECK;
/* Is there a module that the spec means? Any will do where it names none. */
bool dp_image_has_module(const struct dp_image *image, const struct dp_spec *spec);

struct dp_selected {
	struct dp_function function; /* size 0 if unknown */
	bool ifunc;                  /* it chooses an implementation: there is nothing to probe under this name */
	bool inside;                 /* the place is `offset` bytes into the function: a line, an inlined function, a marker */
	uint64_t offset;
	char *label;                     /* what it is called instead, "foo (inlined in bar)", or NULL; owned */
	char *inlined;                   /* the function that a copy of begins there, by its linkage name if it has one; or NULL; owned */
	const struct dp_usdt *marker;    /* of a USDT marker, owned by its module; or NULL */
};
struct dp_selection {
	struct dp_selected *item; /* ascending addresses, each once */
	size_t n;
};
/*
 * The functions that `spec` names. A symbol that is written out is resolved as by dp_image_resolve(), with its errors; so is one
 * that has special characters in its own name. A pattern names functions by their symbols: aliases of an address count once, functions
 * of the vdso, PLT stubs and labels without a type not at all. What `except` (patterns of functions, or of module!function)
 * names by any alias is left out. That nothing is left is DP_TAG_NO_SYMBOL.
 */
struct dp_error *dp_image_select(struct dp_image *image, const struct dp_spec *spec, const char *const *except, size_t nexcept,
				 struct dp_selection *ret) DP_MUST_CHECK;
void dp_selection_fini(struct dp_selection *selection);
void dp_selected_fini(struct dp_selected *one);
/* A spec, malloc'ed, that names `offset` in the function and nothing else: module!symbol+0x4, or module!0x1234. NULL without memory. */
char *dp_image_spell(struct dp_image *image, const struct dp_function *f, uint64_t offset);

/* ---- fields: the one description of a record's payload ------------------------------------------------------------------ */

enum dp_type {
	DP_TYPE_INT,   /* size 1, 2, 4, 8; signed */
	DP_TYPE_UINT,
	DP_TYPE_FLOAT, /* size 4, 8 */
	DP_TYPE_POINTER,   /* uint64_t, hexadecimal */
	DP_TYPE_STRING,    /* NUL-terminated, at most `size` bytes with the NUL */
	DP_TYPE_BYTES,     /* `size` bytes */
	DP_TYPE_BACKTRACE, /* uint8_t n, n x uint64_t; at most `size` frames */
};

enum dp_source_kind {
	DP_SRC_REG,    /* general register `reg` (0-15 as in struct dp_regs), `size` bytes from bit `shift` (0, or 8 for ah) */
	DP_SRC_RIP,    /* the site's address: a constant */
	DP_SRC_RFLAGS,
	DP_SRC_XMM,    /* low 128 bits of xmm register `reg` (0-15) */
	DP_SRC_MEMORY, /* `size` bytes at `addr` in the target; may be unreadable */
	DP_SRC_STRING, /* NUL-terminated at `addr`; may be unreadable */
	DP_SRC_UNWIND,
	DP_SRC_PARK,   /* the id of the snapshot that is taken of the hit, while its thread waits; 0: none was */
	DP_SRC_EXPR,   /* `size` bytes of the value of `expr`; may be unreadable */
	DP_SRC_NONE,   /* known before any hit to have no value: `absent` says why. Zeroes in the payload, its bit in the mask always set */
};

struct dp_enumerator { /* a name of a value */
	uint64_t value; /* sign-extended */
	char *name;
};
struct dp_enumeration { /* one block with its names */
	const struct dp_enumerator *item;
	size_t n;
	bool flags; /* values are ors of the names */
};
enum dp_look { /* how an integer is shown */
	DP_LOOK_NUMBER,
	DP_LOOK_BOOL,
	DP_LOOK_CHAR,
	DP_LOOK_RESULT, /* of a system call: -4095 to -1 are errors, by name */
	DP_LOOK_CALL,   /* a system call's number, by name */
	/* Of DP_TYPE_BYTES, sixteen of them: what has no type of its own in a record. */
	DP_LOOK_INT128,
	DP_LOOK_UINT128,
	DP_LOOK_LONG_DOUBLE, /* of the x87: 80 bits and padding */
};

struct dp_field {
	char *name; /* a C identifier, unique in its table */
	enum dp_type type;
	uint32_t size; /* see enum dp_type */
	bool hex;      /* print integers in base 16 */
	enum dp_source_kind source;
	uint8_t reg, shift;
	dp_addr addr;
	/* Of fields that come from an expression. */
	struct dp_expr *expr;          /* DP_SRC_EXPR: the value; DP_SRC_MEMORY, DP_SRC_STRING: the address, instead of `addr`. Owned */
	struct dp_expr *high;          /* DP_SRC_EXPR of 16 bytes: the upper eight, as `expr` the lower ones; neither may fail. Owned */
	char *label;                   /* what people read instead of `name` ("req->len"), or NULL. Owned */
	const struct dp_enumeration *names; /* enumerators, or NULL. Owned */
	enum dp_look look;
	const char *absent;            /* DP_SRC_NONE: "optimized out"; a static text */
};

struct dp_fields {
	struct dp_field *field;
	size_t n;
};

/*
 * Adds what one -t argument names: `regs`, `reg:NAME`, `TYPE:NAME:ADDR`, `backtrace[:DEPTH]` (default 32). The same field twice
 * is kept once; two different ones of one name are an error. A failed call adds nothing.
 */
#define DP_CONTEXT_SNAPSHOT "$snapshot" /* not for users: what --snapshot stands for */
struct dp_error *dp_fields_add(struct dp_fields *fields, const char *context) DP_MUST_CHECK;
void dp_fields_fini(struct dp_fields *fields);
/* Some field may be unreadable: the payload starts with the mask (agent/abi.h). */
bool dp_fields_may_fault(const struct dp_fields *fields);
bool dp_fields_unwind(const struct dp_fields *fields);
bool dp_fields_park(const struct dp_fields *fields);
/* Is there a field that takes all general registers: a backtrace, a snapshot? */
bool dp_fields_registers(const struct dp_fields *fields);
/* Upper bound of the payload in bytes, mask included. */
size_t dp_fields_max_payload(const struct dp_fields *fields);
/* Number of a register name: general registers of every width ("eax", "r8b", "ah"), used by fields and conditions. */
bool dp_register_find(const char *name, uint8_t *reg, uint8_t *shift, uint8_t *size);

/* A decoded value; pointers lead into the payload. */
struct dp_field_value {
	bool unreadable;
	uint64_t u;  /* integers (sign-extended), pointers; raw bits of floats */
	double f;    /* DP_TYPE_FLOAT */
	const uint8_t *bytes; /* strings (NUL-terminated), bytes, backtraces (unaligned uint64_t[n]) */
	size_t n;    /* bytes, characters or frames */
};
/*
 * Walks a payload: calls `each` per field in table order. False if the payload is damaged (shorter than its fields): the
 * shared memory is the target's to write, so nothing in it is trusted.
 */
bool dp_fields_decode(const struct dp_fields *fields, const uint8_t *payload, size_t len,
		      void (*each)(const struct dp_field *field, const struct dp_field_value *value, void *data), void *data);
/* The bytes of `payload` that its fields take up, SIZE_MAX if it is damaged. What lies behind them is padding. */
size_t dp_fields_payload_length(const struct dp_fields *fields, const uint8_t *payload, size_t len);

/* ---- conditions ----------------------------------------------------------------------------------------------------------- */

/*
 * An expression in terms of the machine: a tree of 64-bit values. What users write has types (scope.h); those are gone here, as casts,
 * loads of a width, and operators for signed, unsigned and floating values. It may *fail*: a load that faults, a division by 0. A
 * condition that fails is false and counted (`unreadable`); a field that fails has its bit in the mask.
 */
enum dp_expr_kind {
	DP_EXPR_CONST,  /* value */
	DP_EXPR_REG,    /* reg, shift, size: zero-extended; rip as a constant, rflags as DP_EXPR_RFLAGS */
	DP_EXPR_RFLAGS,
	DP_EXPR_UNARY,  /* op: '!' '~' '-' */
	DP_EXPR_BINARY, /* op: see enum dp_op_kind; && and || short-circuit */
	DP_EXPR_LOAD,   /* `size` bytes (1, 2, 4, 8) at the address a, extended as is_signed says */
	DP_EXPR_CAST,   /* the low `size` bytes of a, extended as is_signed says */
	DP_EXPR_COND,   /* c ? a : b; only the chosen one is evaluated */
	DP_EXPR_THREAD, /* base of the fs segment (the thread pointer: the word at %fs:0 by the ABI) */
	DP_EXPR_XMM,    /* low `size` (4, 8) bytes of vector register `reg` (0-15), zero-extended */
	DP_EXPR_FACT,   /* value: enum dp_fact */
	DP_EXPR_MATCH,  /* 1 if the string at the address a is as `text` and `match` say, else 0 */
};
enum dp_fact { /* what is true of a hit */
	DP_FACT_PID,      /* in the target's pid namespace */
	DP_FACT_TID,
	DP_FACT_CPU,      /* the processor, at some moment of the hit */
	DP_FACT_TIME,     /* CLOCK_MONOTONIC in ns (by the tool, from the time stamp); in a condition: time stamp counter ticks */
	DP_FACT_HITS,     /* of this probe so far, this one included, whatever the condition says of them */
	DP_FACT_DURATION, /* at a return: ns since the entry of the same call; where that is not known, the hit is lost */
	DP_FACT_COMM,     /* only below DP_EXPR_MATCH: the thread's name, as of its first hit */
};
enum dp_match {
	DP_MATCH_EQUAL,  /* the whole string, NUL included */
	DP_MATCH_PREFIX, /* its first characters */
	DP_MATCH_GLOB,   /* fnmatch's * and ?; at most DP_STRING_MAX characters are looked at */
};
enum dp_expr_op {
	DP_OP_NOT, DP_OP_COMPL, DP_OP_NEG,
	DP_OP_MUL, DP_OP_ADD, DP_OP_SUB, DP_OP_SHL, DP_OP_SHR, DP_OP_AND, DP_OP_XOR, DP_OP_OR,
	DP_OP_EQ, DP_OP_NE, DP_OP_LT, DP_OP_LE, DP_OP_GT, DP_OP_GE, DP_OP_ULT, DP_OP_ULE, DP_OP_UGT, DP_OP_UGE,
	DP_OP_LAND, DP_OP_LOR,
	/* Division truncates; by 0 it fails; INT64_MIN / -1 is INT64_MIN, its remainder 0. SHR is arithmetic, LSHR is not. */
	DP_OP_DIV, DP_OP_MOD, DP_OP_UDIV, DP_OP_UMOD, DP_OP_LSHR,
	/* Operands and (but for comparisons, which give 0 or 1) results are bits of doubles; IEEE 754, round to nearest. */
	DP_OP_FADD, DP_OP_FSUB, DP_OP_FMUL, DP_OP_FDIV,
	DP_OP_FEQ, DP_OP_FNE, DP_OP_FLT, DP_OP_FLE, DP_OP_FGT, DP_OP_FGE,
	/* Unary: between 64-bit integers, doubles, and floats (their bits in the low half). */
	DP_OP_FNEG, DP_OP_I2D, DP_OP_U2D, DP_OP_D2I, DP_OP_F2D, DP_OP_D2F,
	DP_OP_D2U, DP_OP_I2F, DP_OP_U2F,
};
struct dp_expr {
	enum dp_expr_kind kind;
	enum dp_expr_op op;
	uint64_t value;
	uint8_t reg, shift, size;
	bool is_signed;
	enum dp_match match;
	struct dp_expr *a, *b, *c;
	char *text; /* DP_EXPR_MATCH; owned */
};
/*
 * The language (scope.h) where there is no program: registers, `$rdi`, `rdi`, `edi`, `dil`, arg0..arg5 for rdi rsi rdx rcx r8 r9, and
 * facts. A general register is a signed 64-bit value, its narrower parts are zero-extended; <,<=,>,>= compare signed unless a side is a
 * constant above INT64_MAX, which makes it unsigned. Shift counts are taken mod 64, >> is arithmetic. Errors of grammar carry a caret
 * line. Constant parts are folded; a tree has at most DP_EXPR_MAX_NODES nodes, so recursion over it is bounded.
 */
#define DP_EXPR_MAX_NODES 256u
struct dp_error *dp_expr_parse(const char *text, struct dp_expr **ret) DP_MUST_CHECK;
struct dp_expr *dp_expr_destroy(struct dp_expr *expr);
/* Fills in the site's address for `rip`, a constant that the parser cannot know (0 until then). To be called before compiling. */
void dp_expr_bind(struct dp_expr *expr, dp_addr site);
/* May it fail? */
bool dp_expr_may_fail(const struct dp_expr *expr);
/* Does it look at memory or at the thread's name? Where loads must not fault, that takes system calls in the program. False for NULL. */
bool dp_expr_reads(const struct dp_expr *expr);
/* The reference interpreter that the compiler is tested against. dp_expr_eval() is for expressions without loads and facts. */
struct dp_regs;
struct dp_expr_world {
	const struct dp_regs *regs;
	const uint64_t (*xmm)[2]; /* 16 of them, or NULL */
	uint64_t thread;
	uint64_t (*fact)(enum dp_fact fact, void *data);
	bool (*read)(uint64_t addr, void *buf, size_t n, void *data); /* false: not readable */
	void *data;
};
uint64_t dp_expr_eval(const struct dp_expr *expr, const struct dp_regs *regs);
bool dp_expr_eval_in(const struct dp_expr *expr, const struct dp_expr_world *world, uint64_t *ret) DP_MUST_CHECK; /* false: it failed */

/* ---- a probe: one site with its name, capture and condition ------------------------------------------------------------------ */

struct dp_probe {
	char *name; /* [A-Za-z_][A-Za-z0-9_]*; default derived from the spec, unique in the run */
	char *title; /* what people read instead, and what several probes that are one to them have in common; or NULL */
	bool entry; /* --function: the function's entry (the site lies behind an endbr64) */
	bool leaves; /* a return: the place is where the function ends */
	bool bound;  /* `fields` were made for a site (scope.h) */
	struct dp_spec spec;
	struct dp_fields fields;
	struct dp_expr *when; /* NULL: always */
	/* One of those that a pattern named. */
	bool waits;               /* its places are looked up when a library comes */
	bool reserved;            /* one more place of the probe before it, should there be one: nothing so far */
	bool selected;            /* what is wrong with it is no reason not to run the others */
	unsigned pattern;         /* which one, from 1 on (dp_spec_has_pattern()); 0: it was asked for by name */
	bool many;                /* that stands for functions of any number of names, not for all places of one */
	char *build_id;           /* of the module that it is an instruction of; NULL: any */
	struct dp_error *refused; /* why it cannot be placed anywhere, or NULL */
};
/*
 * A valid event name made from a spec: "main+0x10" -> "main_0x10", "0x55e0" -> "at_0x55e0", "libc.so.6!puts" -> "puts",
 * "puts:return" -> "puts_return".
 */
char *dp_probe_default_name(const struct dp_spec *spec);
void dp_probe_fini(struct dp_probe *probe);

/* ---- unwind tables -------------------------------------------------------------------------------------------------------------- */

/*
 * What a function does to its stack, for code that no unwind table describes: code[0..n) is followed from its first instruction, where
 * the return address is at rsp, and `each` is called for offsets in ascending order with the rule that holds from there on.
 */
struct dp_unwind_row;
typedef void (*dp_unwind_each)(uint32_t offset, const struct dp_unwind_row *row, void *data);
typedef void (*dp_unwind_follow)(const uint8_t *code, size_t n, dp_unwind_each each, void *data);

/*
 * Compiles the .eh_frame of every module of the image into the tables of agent/unwind/unwind.h, with absolute target addresses, so that the
 * agent can unwind without parsing. The result is one block of position-independent bytes (offsets inside) to be mapped
 * read-only. Functions that symbols name and no table describes are given to `follow`, where it is not NULL. Code without rows: the agent
 * follows frame pointers. `cache_dir` (or NULL) keeps the compiled rows of a module by build-id: always with the same `follow`.
 */
struct dp_error *dp_unwind_compile(struct dp_image *image, const char *cache_dir, dp_unwind_follow follow, uint8_t **ret, size_t *size) DP_MUST_CHECK;

#endif
