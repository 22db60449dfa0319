/* SPDX-License-Identifier: MIT */
/*
 * The interface of probes/, which turns what the user typed into sites (addresses in a target's image) and captures (a field
 * table and the source of each value). It knows files and symbols, but no machine code and no process state.
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
	char *path; /* as the kernel prints it, with " (deleted)"; "" if anonymous */
};

struct dp_module; /* opaque: an ELF file mapped in the target (image/module.h), loaded lazily */
struct dp_image;  /* opaque: all mappings and modules of one target */

/*
 * `maps` is the text of /proc/PID/maps. Files are opened below `root` ("/proc/PID/root", or "" for our own file system). If the
 * path does not lead to the mapped inode and `pid` is not 0, /proc/PID/map_files is tried. dp_image_set_vdso() adds the vdso as a
 * module; it copies the bytes.
 */
struct dp_error *dp_image_create(const char *maps, const char *root, int pid, struct dp_image **ret) DP_MUST_CHECK;
/*
 * The image of an executable or library that is not running, as if it were loaded alone: at its own address if it has one, else
 * at a typical one. DP_TAG_BAD_ELF on failure.
 */
struct dp_error *dp_image_from_file(const char *path, struct dp_image **ret) DP_MUST_CHECK;
#define DP_FILE_BASE_PROGRAM 0x555555554000ULL /* where the kernel puts a PIE without ASLR */
#define DP_FILE_BASE_LIBRARY 0x7f5555554000ULL
struct dp_image *dp_image_destroy(struct dp_image *image);
/* Replaces the maps by newer ones of the same process. *ret is false, and nothing changes, if a module is not where it was. */
struct dp_error *dp_image_renew(struct dp_image *image, const char *maps, bool *ret) DP_MUST_CHECK;
struct dp_error *dp_image_set_vdso(struct dp_image *image, const void *bytes, size_t size) DP_MUST_CHECK;

size_t dp_image_nmaps(const struct dp_image *image);
const struct dp_map *dp_image_map(const struct dp_image *image, size_t i); /* ascending addresses */
const struct dp_map *dp_image_map_at(const struct dp_image *image, dp_addr addr);

/* Start of the brk() heap, also before there is a heap; 0 if unknown (no process, no permission). */
uint64_t dp_image_heap_start(const struct dp_image *image);

size_t dp_image_nmodules(const struct dp_image *image);
struct dp_module *dp_image_module(const struct dp_image *image, size_t i); /* [0] is the executable */
/* The module whose mappings contain `addr`, or NULL. */
struct dp_module *dp_image_module_at(const struct dp_image *image, dp_addr addr);

/* True if `addr` is in the executable or a library it was linked against. Other modules may be unloaded at any time. */
bool dp_image_never_unloaded(struct dp_image *image, dp_addr addr);

const char *dp_module_path(const struct dp_module *m);
const char *dp_module_name(const struct dp_module *m); /* last part of the path */
int64_t dp_module_bias(const struct dp_module *m);     /* address in the target = address in the file (p_vaddr) + bias */
/* True if the module's code runs on stacks of a few KiB that are moved when they are full (Go). */
bool dp_module_small_stacks(struct dp_module *m);
/* The build-id note as hex digits, "" if there is none. Loads the file. */
const char *dp_module_build_id(struct dp_module *m);
/*
 * Reads the file's bytes for target addresses [addr, addr+n) of an executable segment, with text relocations applied. Used for
 * the DP-FOREIGN comparison and for planning. Cuts `n` at the segment's end. Fails with DP_TAG_NOT_CODE outside of executable
 * segments.
 */
struct dp_error *dp_module_text(struct dp_module *m, dp_addr addr, void *buf, size_t *n) DP_MUST_CHECK;
/* True if `map` has the file's code at `addr` but is no longer the file. Programs move text like this for huge pages. */
bool dp_module_moved(const struct dp_module *m, const struct dp_map *map, dp_addr addr);
/* Bounds in the target of the executable segment around `addr`: file-backed bytes only, not rounded to pages. */
bool dp_module_text_bounds(struct dp_module *m, dp_addr addr, dp_addr *start, dp_addr *end);
/*
 * The .eh_frame as mapped (from its first CIE, without .eh_frame_hdr): address in the target and the file's bytes, which the
 * module owns. False if there is none. Zero terminators may be inside; without section headers `size` reaches to the segment's
 * end.
 */
bool dp_module_eh_frame(struct dp_module *m, dp_addr *addr, const uint8_t **bytes, size_t *size);

/* One PT_LOAD segment's file bytes and address in the target (the layout with which trampoline/ proves windows). */
size_t dp_module_nsegments(struct dp_module *m);
bool dp_module_segment(struct dp_module *m, size_t i, dp_addr *addr, const uint8_t **bytes, size_t *n, bool *exec);
/*
 * Landing pads: all target addresses at which an exception may continue, from the LSDAs that .eh_frame names. Ascending, owned by
 * the module. False if a table could not be parsed: then nothing is known about the module's pads.
 */
bool dp_module_landing_pads(struct dp_module *m, const uint64_t **pads, size_t *n);

/*
 * Restartable sequences, whose addresses the kernel knows, if the file has a section of their descriptors. Returns range number
 * `i`, which may be empty; false after the last one.
 */
bool dp_module_rseq(struct dp_module *m, size_t i, dp_addr *start, uint64_t *size);
/* The same for code whose addresses thread cancellation compares, if the file's own symbols name it. */
bool dp_module_cancellation(struct dp_module *m, size_t i, dp_addr *start, uint64_t *size);

struct dp_function { /* a function, from a symbol or from .eh_frame */
	dp_addr start;
	uint64_t size;    /* bytes, 0 if unknown */
	const char *name; /* owned by the module; "" if only .eh_frame knows the function */
	struct dp_module *module;
};
/* The function around `addr`: from symbols (a global before a local alias), else from FDE bounds. */
bool dp_image_function_at(struct dp_image *image, dp_addr addr, struct dp_function *ret);
/*
 * Writes "symbol+0x15/0x90 [module]"; "func@0x77a0+0x15/0x90 [module]" if only .eh_frame knows the function (address in the
 * file); "[module]+0x1234" (address in the file); or "0x1234". `size` and the result are as for snprintf.
 */
int dp_image_describe(struct dp_image *image, dp_addr addr, char *buf, size_t size);
/* Writes "func@0x77a0", the name of a function without a symbol. Returns buf. */
#define DP_UNNAMED_MAX 32
const char *dp_function_unnamed(const struct dp_function *f, char buf[static DP_UNNAMED_MAX]);
/* The name as in C++ and Rust source, without parameters; owned by the module. f->name if it is not mangled. */
const char *dp_function_readable(const struct dp_function *f);
/* dp_image_describe() with the readable name. */
int dp_image_describe_readable(struct dp_image *image, dp_addr addr, char *buf, size_t size);

/* ---- probe points ----------------------------------------------------------------------------------------------------- */

/*
 * SPEC := [module '!'] (symbol ['+' offset] | address) [':' ('entry' | 'return' | '*')], or DTrace's spelling
 * pid$target:module:function:name, where empty parts match anything and an offset is hexadecimal without 0x. Numbers are octal
 * (0...), decimal or hexadecimal (0x...). Module and symbol may be fnmatch(3) patterns.
 *
 * Instead of symbol and offset: FILE:LINE, FUNCTION:LINE (relative to the function's own line), FUNCTION@FILE,
 * usdt:PROVIDER:MARKER. The word after an @ is a file if it has a slash or a source file's suffix, else a symbol version or
 * `plt`.
 */
enum dp_point {
	DP_POINT_PLACE,  /* as written: the symbol's address plus the offset */
	DP_POINT_ENTRY,  /* the function's entry, after an endbr64 */
	DP_POINT_RETURN, /* every ret and every tail jump */
	DP_POINT_ALL,    /* entry, every instruction, every return */
};
struct dp_spec {
	char *text;     /* as typed */
	char *module;   /* NULL if not given; may be a pattern */
	char *symbol;   /* NULL for an address */
	uint64_t value; /* the address, or the offset from the symbol (0 if not given) */
	bool has_offset;
	enum dp_point point;
	uint64_t pid; /* from pid123:..., else 0 */
	/* Source lines, files and markers, handled by dp_image_select(). `symbol` is then the text after the module. */
	char *file;     /* FILE:LINE, FUNCTION@FILE; the last parts of a path */
	char *function; /* FUNCTION@FILE, FUNCTION:LINE */
	uint32_t line;  /* in the file, or relative to the function's own line */
	bool has_line;
	char *provider, *marker; /* usdt:PROVIDER:MARKER; may be patterns */
	char *call;              /* syscall:NAME, may be a pattern; `point` ENTRY or RETURN restricts it. Only cli/ expands it */
};
struct dp_error *dp_spec_parse(const char *text, struct dp_spec *ret) DP_MUST_CHECK;
void dp_spec_fini(struct dp_spec *spec);
/* True if the text contains one of fnmatch's special characters. False for NULL. */
bool dp_spec_is_pattern(const char *text);
/* True for a line, a function of a file, or a marker: places that a symbol's name cannot express. */
bool dp_spec_is_source(const struct dp_spec *spec);
/* True if the spec may name more than one place. Use dp_image_select() then. */
bool dp_spec_selects(const struct dp_spec *spec);
/* True if the spec means all that it matches (a pattern, FUNCTION:*), false if the user named a place. */
bool dp_spec_has_pattern(const struct dp_spec *spec);

struct dp_site {
	dp_addr addr;
	struct dp_function function; /* start 0 if unknown */
	struct dp_module *module;
};
/*
 * Finds the one site that `spec` names. Unknown symbol: DP_TAG_NO_SYMBOL with "did you mean" candidates. Several addresses:
 * DP_TAG_AMBIGUOUS with the module!symbol forms; aliases of one address count once. `main` of a stripped executable is found from
 * the argument that _start passes to __libc_start_main. For an IFUNC symbol the message asks for one of its implementations. An
 * address with `module!` is an address in the file, without it one in the target. Instruction boundaries are not checked here
 * (see dp_boundaries in trampoline/).
 */
struct dp_error *dp_image_resolve(struct dp_image *image, const struct dp_spec *spec, struct dp_site *ret) DP_MUST_CHECK;
/* True if the image has a module that the spec means. A spec without a module matches any. */
bool dp_image_has_module(const struct dp_image *image, const struct dp_spec *spec);

struct dp_selected {
	struct dp_function function; /* size 0 if unknown */
	bool ifunc;                  /* an IFUNC: it selects an implementation, so this name cannot be probed */
	bool inside;                 /* the place is `offset` bytes into the function (line, inlined function, marker) */
	uint64_t offset;
	char *label;                     /* display name if another: "foo (inlined in bar)", or NULL; owned */
	char *inlined;                   /* function whose inlined copy starts here (linkage name if it has one), or NULL;
	                                  * owned */
	const struct dp_usdt *marker;    /* the USDT marker, owned by its module; or NULL */
};
struct dp_selection {
	struct dp_selected *item; /* ascending addresses, no duplicates */
	size_t n;
};
/*
 * The functions that `spec` names. A symbol without special characters is resolved as by dp_image_resolve(), with its errors; so
 * is one that has special characters in its own name. A pattern matches functions by their symbols: aliases of an address count
 * once; functions of the vdso, PLT stubs and labels without a type are left out. So are functions of which any alias matches
 * `except` (patterns of functions, or of module!function). DP_TAG_NO_SYMBOL if nothing is left.
 */
struct dp_error *dp_image_select(struct dp_image *image, const struct dp_spec *spec, const char *const *except, size_t nexcept,
				 struct dp_selection *ret) DP_MUST_CHECK;
void dp_selection_fini(struct dp_selection *selection);
void dp_selected_fini(struct dp_selected *one);
/* A spec for `offset` in the function: module!symbol+0x4, or module!0x1234. Malloc'ed. NULL when out of memory. */
char *dp_image_spell(struct dp_image *image, const struct dp_function *f, uint64_t offset);

/* ---- fields: the one description of a record's payload ------------------------------------------------------------------ */

enum dp_type {
	DP_TYPE_INT,   /* size 1, 2, 4, 8; signed */
	DP_TYPE_UINT,
	DP_TYPE_FLOAT, /* size 4, 8 */
	DP_TYPE_POINTER,   /* uint64_t, hexadecimal */
	DP_TYPE_STRING,    /* NUL-terminated, at most `size` bytes including the NUL */
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
	DP_SRC_PARK,   /* id of the hit's snapshot, for which its thread waits; 0 if none was taken */
	DP_SRC_EXPR,   /* `size` bytes of the value of `expr`; may be unreadable */
	DP_SRC_NONE,   /* known to have no value before any hit: `absent` says why. Zeros in the payload, its mask bit is always
	                * set */
};

struct dp_enumerator { /* a name of a value */
	uint64_t value; /* sign-extended */
	char *name;
};
struct dp_enumeration { /* the enumerators of one enum, in one allocation */
	const struct dp_enumerator *item;
	size_t n;
	bool flags; /* values are combinations (or) of the names */
};
enum dp_look { /* how an integer is displayed */
	DP_LOOK_NUMBER,
	DP_LOOK_BOOL,
	DP_LOOK_CHAR,
	DP_LOOK_RESULT, /* a system call's result: -4095 to -1 are errors, shown by name */
	DP_LOOK_CALL,   /* a system call's number, shown by name */
	/* DP_TYPE_BYTES of 16 bytes, for types that records do not have. */
	DP_LOOK_INT128,
	DP_LOOK_UINT128,
	DP_LOOK_LONG_DOUBLE, /* x87: 80 bits and padding */
};

struct dp_field {
	char *name; /* a C identifier, unique in its table */
	enum dp_type type;
	uint32_t size; /* see enum dp_type */
	bool hex;      /* print integers in base 16 */
	enum dp_source_kind source;
	uint8_t reg, shift;
	dp_addr addr;
	/* Fields that come from an expression. */
	struct dp_expr *expr;          /* DP_SRC_EXPR: the value; DP_SRC_MEMORY, DP_SRC_STRING: the address, instead of `addr`.
	                                * Owned */
	struct dp_expr *high;          /* DP_SRC_EXPR of 16 bytes: the upper eight, as `expr` is the lower; neither may fail.
	                                * Owned */
	char *label;                   /* display name ("req->len"), or NULL for `name`. Owned */
	const struct dp_enumeration *names; /* enumerators, or NULL. Owned */
	enum dp_look look;
	const char *absent;            /* DP_SRC_NONE: reason, such as "optimized out"; a static text */
};

struct dp_fields {
	struct dp_field *field;
	size_t n;
};

/*
 * Adds the fields of one -t argument: `regs`, `reg:NAME`, `TYPE:NAME:ADDR`, `backtrace[:DEPTH]` (default 32). The same field
 * twice is added once; two different fields with one name are an error. A failed call adds nothing.
 */
#define DP_CONTEXT_SNAPSHOT "$snapshot" /* internal: the context of --snapshot */
struct dp_error *dp_fields_add(struct dp_fields *fields, const char *context) DP_MUST_CHECK;
void dp_fields_fini(struct dp_fields *fields);
/* True if a field may be unreadable. The payload then starts with the mask (agent/abi.h). */
bool dp_fields_may_fault(const struct dp_fields *fields);
bool dp_fields_unwind(const struct dp_fields *fields);
bool dp_fields_park(const struct dp_fields *fields);
/* True if a field needs all general registers (backtrace, snapshot). */
bool dp_fields_registers(const struct dp_fields *fields);
/* Upper bound of the payload in bytes, mask included. */
size_t dp_fields_max_payload(const struct dp_fields *fields);
/* Looks up a register name: general registers of every width ("eax", "r8b", "ah"). Used by fields and conditions. */
bool dp_register_find(const char *name, uint8_t *reg, uint8_t *shift, uint8_t *size);

/* A decoded value. Pointers point into the payload. */
struct dp_field_value {
	bool unreadable;
	uint64_t u;  /* integers (sign-extended), pointers, raw bits of floats */
	double f;    /* DP_TYPE_FLOAT */
	const uint8_t *bytes; /* strings (NUL-terminated), bytes, backtraces (unaligned uint64_t[n]) */
	size_t n;    /* bytes, characters or frames */
};
/*
 * Walks a payload and calls `each` for every field in table order. False if the payload is damaged (shorter than its fields): the
 * target can write to the shared memory, so nothing in it is trusted.
 */
bool dp_fields_decode(const struct dp_fields *fields, const uint8_t *payload, size_t len,
		      void (*each)(const struct dp_field *field, const struct dp_field_value *value, void *data), void *data);
/* Number of bytes of `payload` that the fields use, SIZE_MAX if it is damaged. The rest is padding. */
size_t dp_fields_payload_length(const struct dp_fields *fields, const uint8_t *payload, size_t len);

/* ---- conditions ----------------------------------------------------------------------------------------------------------- */

/*
 * An expression for the machine: a tree of 64-bit values. The user's expression has types (scope.h); here they have become casts,
 * loads of a width, and operators for signed, unsigned and floating values. It may *fail*: a load faults, or a divisor is 0. A
 * condition that fails is false and counted (`unreadable`). A field that fails has its bit set in the mask.
 */
enum dp_expr_kind {
	DP_EXPR_CONST,  /* value */
	DP_EXPR_REG,    /* reg, shift, size: zero-extended; rip is a constant, rflags as DP_EXPR_RFLAGS */
	DP_EXPR_RFLAGS,
	DP_EXPR_UNARY,  /* op: '!' '~' '-' */
	DP_EXPR_BINARY, /* op: see enum dp_expr_op; && and || short-circuit */
	DP_EXPR_LOAD,   /* `size` bytes (1, 2, 4, 8) at address a, extended per is_signed */
	DP_EXPR_CAST,   /* the low `size` bytes of a, extended per is_signed */
	DP_EXPR_COND,   /* c ? a : b; evaluates only the selected one */
	DP_EXPR_THREAD, /* base of the fs segment (the thread pointer: the word at %fs:0 by the ABI) */
	DP_EXPR_XMM,    /* low `size` (4, 8) bytes of vector register `reg` (0-15), zero-extended */
	DP_EXPR_FACT,   /* value: enum dp_fact */
	DP_EXPR_MATCH,  /* 1 if the string at address a matches `text` (see `match`), else 0 */
};
enum dp_fact { /* properties of a hit */
	DP_FACT_PID,      /* in the target's pid namespace */
	DP_FACT_TID,
	DP_FACT_CPU,      /* processor at some moment of the hit */
	DP_FACT_TIME,     /* CLOCK_MONOTONIC in ns (the tool converts the time stamp); in a condition: time stamp counter ticks */
	DP_FACT_HITS,     /* hits of this probe so far, with this one; the condition does not matter */
	DP_FACT_DURATION, /* at a return: ns since the entry of the same call; if unknown, the hit is lost */
	DP_FACT_COMM,     /* only below DP_EXPR_MATCH: the thread's name, as of its first hit */
};
enum dp_match {
	DP_MATCH_EQUAL,  /* the whole string, NUL included */
	DP_MATCH_PREFIX, /* its first characters */
	DP_MATCH_GLOB,   /* fnmatch's * and ?; compares at most DP_STRING_MAX characters */
};
enum dp_expr_op {
	DP_OP_NOT, DP_OP_COMPL, DP_OP_NEG,
	DP_OP_MUL, DP_OP_ADD, DP_OP_SUB, DP_OP_SHL, DP_OP_SHR, DP_OP_AND, DP_OP_XOR, DP_OP_OR,
	DP_OP_EQ, DP_OP_NE, DP_OP_LT, DP_OP_LE, DP_OP_GT, DP_OP_GE, DP_OP_ULT, DP_OP_ULE, DP_OP_UGT, DP_OP_UGE,
	DP_OP_LAND, DP_OP_LOR,
	/* Division truncates and fails for a divisor of 0; INT64_MIN / -1 is INT64_MIN, its remainder 0. SHR is arithmetic, LSHR
	 * logical. */
	DP_OP_DIV, DP_OP_MOD, DP_OP_UDIV, DP_OP_UMOD, DP_OP_LSHR,
	/* Operands and results are bits of doubles (comparisons give 0 or 1); IEEE 754, round to nearest. */
	DP_OP_FADD, DP_OP_FSUB, DP_OP_FMUL, DP_OP_FDIV,
	DP_OP_FEQ, DP_OP_FNE, DP_OP_FLT, DP_OP_FLE, DP_OP_FGT, DP_OP_FGE,
	/* Unary conversions between 64-bit integers, doubles, and floats (their bits in the low half). */
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
 * Parses the language (scope.h) without a program: registers (`$rdi`, `rdi`, `edi`, `dil`), arg0..arg5 for rdi rsi rdx rcx r8 r9,
 * and facts. A general register is a signed 64-bit value; its narrower parts are zero-extended. <,<=,>,>= compare signed unless a
 * side is a constant above INT64_MAX. Shift counts are taken mod 64; >> is arithmetic. Syntax errors have a caret line. Constant
 * parts are folded. A tree has at most DP_EXPR_MAX_NODES nodes, which bounds recursion over it.
 */
#define DP_EXPR_MAX_NODES 256u
struct dp_error *dp_expr_parse(const char *text, struct dp_expr **ret) DP_MUST_CHECK;
struct dp_expr *dp_expr_destroy(struct dp_expr *expr);
/* Sets the value of `rip`, which the parser cannot know (0 until then), to the site's address. Call it before compiling. */
void dp_expr_bind(struct dp_expr *expr, dp_addr site);
/* True if evaluating the expression may fail. */
bool dp_expr_may_fail(const struct dp_expr *expr);
/* True if it reads memory or the thread's name. Where loads must not fault, that costs system calls in the program. False for
 * NULL. */
bool dp_expr_reads(const struct dp_expr *expr);
/* The reference interpreter, against which the compiler is tested. dp_expr_eval() is for expressions without loads and facts. */
struct dp_regs;
struct dp_expr_world {
	const struct dp_regs *regs;
	const uint64_t (*xmm)[2]; /* 16 registers, or NULL */
	uint64_t thread;
	uint64_t (*fact)(enum dp_fact fact, void *data);
	bool (*read)(uint64_t addr, void *buf, size_t n, void *data); /* false: unreadable */
	void *data;
};
uint64_t dp_expr_eval(const struct dp_expr *expr, const struct dp_regs *regs);
bool dp_expr_eval_in(const struct dp_expr *expr, const struct dp_expr_world *world, uint64_t *ret) DP_MUST_CHECK; /* false: it
                                                                                                                   * failed */

/* ---- a probe: one site with its name, capture and condition ------------------------------------------------------------------ */

struct dp_probe {
	char *name; /* [A-Za-z_][A-Za-z0-9_]*; by default derived from the spec; unique in the run */
	char *title; /* display name instead of `name`, shared by probes that are one to the user; or NULL */
	bool entry; /* --function: the function's entry (the site is after an endbr64) */
	bool leaves; /* a return: the function ends at this place */
	bool bound;  /* `fields` were made for one site (scope.h) */
	struct dp_spec spec;
	struct dp_fields fields;
	struct dp_expr *when; /* condition; NULL: always */
	/* Probes that come from a pattern. */
	bool waits;               /* pending: its places are looked up when a library is loaded */
	bool reserved;            /* spare slot for one more place of the previous probe; not used yet */
	bool selected;            /* a failure of this probe does not stop the others */
	unsigned pattern;         /* number of the pattern, from 1 (dp_spec_has_pattern()); 0: the user named the place */
	bool many;                /* the pattern matches functions of any number of names, not all places of one function */
	char *build_id;           /* required build-id of its module; NULL: any */
	struct dp_error *refused; /* why it cannot be placed anywhere, or NULL */
};
/*
 * A valid event name for a spec: "main+0x10" -> "main_0x10", "0x55e0" -> "at_0x55e0", "libc.so.6!puts" -> "puts", "puts:return"
 * -> "puts_return".
 */
char *dp_probe_default_name(const struct dp_spec *spec);
void dp_probe_fini(struct dp_probe *probe);

/* ---- unwind tables -------------------------------------------------------------------------------------------------------------- */

/*
 * Analyses a function's stack use if no unwind table describes it. Follows code[0..n) from its first instruction, where the
 * return address is at rsp, and calls `each` for ascending offsets with the rule that applies from there on.
 */
struct dp_unwind_row;
typedef void (*dp_unwind_each)(uint32_t offset, const struct dp_unwind_row *row, void *data);
typedef void (*dp_unwind_follow)(const uint8_t *code, size_t n, dp_unwind_each each, void *data);

/*
 * Compiles the .eh_frame of every module into the tables of agent/unwind/unwind.h, with absolute target addresses, so that the
 * agent unwinds without parsing. The result is one position-independent block (offsets inside), to be mapped read-only. Functions
 * that have a symbol but no table go to `follow`, unless it is NULL. In code without rows the agent follows frame pointers.
 * `cache_dir` (or NULL) caches each module's compiled rows by build-id; always use it with the same `follow`.
 */
struct dp_error *dp_unwind_compile(struct dp_image *image, const char *cache_dir, dp_unwind_follow follow, uint8_t **ret, size_t *size) DP_MUST_CHECK;

#endif
