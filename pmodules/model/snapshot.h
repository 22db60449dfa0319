/* SPDX-License-Identifier: MIT */
/*
 * The snapshot: what is known of a process at one moment, as a tree of plain values. It needs no process and no debug information:
 * extraction (extract.h) makes it, pmodules add to it (pmodule.h), a file keeps it (file.h), output/ shows it.
 *
 * Everything is in the snapshot's arena and lives as long as it; texts are UTF-8 or whatever bytes the target had, never NULL
 * unless said. Addresses are the target's. Lists are kept by utlist.h (DL_APPEND and so on; head->prev is the tail). Appending to
 * a list while it is walked is allowed.
 */
#ifndef DP_PMODULES_SNAPSHOT_H
#define DP_PMODULES_SNAPSHOT_H

#include "base/error.h"
#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- what may hang at every object -------------------------------------------------------------------------------------- */

enum dp_note_kind { DP_NOTE_COMMENT, DP_NOTE_WARNING, DP_NOTE_CRITICAL, DP_NOTE_JSON }; /* as pmodule.annotation.* */
struct dp_snap_note { /* an annotation */
	struct dp_snap_note *prev, *next;
	enum dp_note_kind kind;
	const char *text;   /* of JSON: one complete object, checked */
	const char *module; /* id of the pmodule that made it, or "" for dynprobe's own */
};

struct dp_snap_pair { /* an attribute */
	struct dp_snap_pair *prev, *next;
	const char *key;
	bool is_int;
	int64_t number;   /* is_int */
	const char *text; /* else */
};

struct dp_snap_word { /* of a set of words: classifiers, tags */
	struct dp_snap_word *prev, *next;
	const char *text;
};

/* ---- variables ------------------------------------------------------------------------------------------------------------ */

enum __attribute__((packed)) dp_var_kind { /* as pmodule.variable_type.* */
	DP_VAR_BOTTOM,  /* void, incomplete, unknown */
	DP_VAR_LL,      /* signed integers, bool, characters: number */
	DP_VAR_ULL,     /* unsigned ones */
	DP_VAR_FLT,     /* real */
	DP_VAR_DBL,
	DP_VAR_LDBL,    /* `real` is the nearest double; `text` has all digits */
	DP_VAR_CFLT,    /* real, imaginary */
	DP_VAR_CDBL,
	DP_VAR_CLDBL,
	DP_VAR_STRING,  /* an array of characters: text */
	DP_VAR_ENUM,    /* number; text: its name or NULL ("A | B" for flags) */
	DP_VAR_TUPLE,   /* struct, union, class */
	DP_VAR_ARRAY,
	DP_VAR_FN,      /* a function itself; text: its name */
	DP_VAR_REFERENCE, /* pointers and references: number is the address. text: the string of a char pointer (is_string), else the
	                   * name of the function or object that it points at, or NULL */
};
enum __attribute__((packed)) dp_var_state {
	DP_VAR_OK,
	DP_VAR_ABSENT,     /* there is no value: `why`, "optimized out" */
	DP_VAR_UNREADABLE, /* its memory cannot be read: `why` */
};
enum __attribute__((packed)) dp_var_place { DP_VAR_LOCAL, DP_VAR_PARAMETER, DP_VAR_GLOBAL, DP_VAR_TLS, DP_VAR_CHILD };

/* There are hundreds of thousands of them: what all have stands first, and nothing is larger than it must be. */
struct dp_snap_variable {
	struct dp_snap_variable *prev, *next;
	struct dp_snap_variable *owner;     /* the variable that it is a member, an element, the target of; or NULL */
	struct dp_snap_variable *children;  /* members, elements; what a pointer points at (one, named "*") */
	const char *name;                   /* "" for elements: then `index` counts */
	const char *type;                   /* as C writes it: "struct crash *"; "" if unknown */
	const char *base_type;              /* the name below pointers, arrays, qualifiers and typedefs' keywords: "crash"; or "" */
	const char *object, *unit;          /* of a global or thread-local: its file, its compilation unit; "" else */
	struct dp_snap_frame *frame;        /* NULL for globals and thread-locals */
	struct dp_snap_thread *thread;      /* NULL for globals */
	int64_t index;                      /* of an element, or of a parameter (from 0); else -1 */
	uint64_t address;                   /* 0 if it is not in memory */
	uint64_t size;                      /* bytes; 0 if unknown */
	uint64_t number;                    /* integers extended to 64 bits, pointers, enums */
	const char *text;                   /* see the kinds; NULL */
	enum dp_var_kind kind;
	enum dp_var_state state;
	enum dp_var_place place;
	uint8_t bits;                       /* of a bit-field, or 0 */
	bool is_string;                     /* text is a string of the program; `text_size` of its bytes are here (NULs may be among them) */
	bool is_cut;                        /* the string goes on behind text_size */
	bool is_bool, is_char, is_union;    /* how LL, ULL, TUPLE are shown */
	bool is_synthesized;                /* a pmodule made it */
	bool is_hidden;                     /* a pmodule asked not to show its raw children (PTRACE_VARIABLE_S_SKIP) */
	bool is_late;                       /* read after the process went on: not of the same moment */
	bool is_shared;                     /* mode fork: in memory that is shared with others, which the copy does not hold still */
	uint64_t text_size;
	double real, imaginary;
	uint64_t more;                      /* children that are not here: a limit was reached */
	const char *why;                    /* of a state that is not OK, or of a truncation; NULL */
	struct dp_snap_note *notes;
	const char *summary;                /* one line by a pmodule instead of the raw value (set_string on a struct); NULL */
	const char *module;                 /* id of the pmodule that made it, or that set its summary or hid its children; NULL */
	void *value;                        /* struct dp_value (value.h) while the snapshot is being taken; else NULL */
};

/* ---- frames, threads ------------------------------------------------------------------------------------------------------ */

/* Numbering of general registers as DWARF's for x86-64: rax rdx rcx rbx rsi rdi rbp rsp r8..r15, then rip. */
#define DP_SNAP_REGS 17u
struct dp_snap_registers {
	uint64_t value[DP_SNAP_REGS];
	uint32_t known; /* bit i: value[i] is known */
};

struct dp_snap_siginfo {
	int number, code, pid, uid; /* pid, uid: of the sender, if by_kill */
	uint64_t address;
	bool has_address, by_kill;
	const char *name;   /* "SIGSEGV" */
	const char *reason; /* "address not mapped to object" */
};

struct dp_snap_frame {
	struct dp_snap_frame *prev, *next;
	struct dp_snap_thread *thread;
	unsigned index;          /* 0 is the innermost */
	uint64_t pc;             /* of the innermost: the instruction; of others: the return address */
	uint64_t sp, cfa;        /* 0 if unknown */
	const char *symbol;      /* readable (demangled), NULL if unknown */
	const char *linkage;     /* as in the symbol table, or NULL */
	uint64_t offset;         /* of pc from the symbol's address */
	const char *object;      /* path of the module, or NULL */
	const char *path;        /* source file as the compiler was given it, or NULL */
	int line, decl_line;     /* 0 if unknown */
	bool line_resolved;
	bool is_inline;          /* a copy inside of the next frame that is not inline: same pc, same registers */
	bool is_guess;           /* found without unwind tables */
	bool is_signal;          /* the kernel's signal frame */
	bool is_tail;            /* it has jumped to the function of the frame inside of it, and left no frame: what it was is concluded */
	bool is_fault;           /* the fault happened in it */
	bool is_synthesized;
	const char *instruction; /* disassembled, of the innermost frame (and others where asked), or NULL */
	const struct dp_snap_registers *registers; /* shared by inline frames; or NULL */
	const struct dp_snap_siginfo *siginfo;     /* or NULL */
	struct dp_snap_variable *variables;        /* parameters first, then locals, inner blocks last */
	const char *original_symbol;               /* before a pmodule changed it, or NULL */
	const char *module;                        /* id of the pmodule that made it or changed its symbol, or NULL */
	struct dp_snap_note *notes;
};

struct dp_snap_kframe {
	struct dp_snap_kframe *prev, *next;
	const char *symbol;
};

struct dp_snap_thread {
	struct dp_snap_thread *prev, *next;
	struct dp_snapshot *snapshot;
	pid_t tid;
	const char *name;
	char state;              /* of /proc/PID/task/TID/stat before anything was stopped: R S D T t Z X I P */
	bool is_fault;           /* it faulted, or its probe's hit is what the snapshot was taken for, or the user said so */
	const char *fault_reason; /* "read of 8 bytes at 0x0: a null pointer (rdi) is dereferenced", or NULL */
	const char *unwind_end;  /* why there are no further frames, if that is not the natural end; or NULL */
	bool has_registers;
	struct dp_snap_registers registers;
	uint64_t rflags, fs_base, gs_base, orig_rax;
	int64_t syscall;         /* in which it waits, or -1 */
	const char *syscall_text; /* "futex(0x7f.., 128, ...)", or NULL */
	unsigned nframes;        /* those here */
	uint64_t more_frames;    /* at least so many more were left out */
	struct dp_snap_frame *frames;
	struct dp_snap_kframe *kframes;
	struct dp_snap_variable *variables; /* thread-locals */
	struct dp_snap_note *notes;
};

/* ---- the process ------------------------------------------------------------------------------------------------------------ */

struct dp_snap_map {
	uint64_t start, end, offset, inode;
	bool read, write, exec, shared;
	bool is_guard; /* a stack's guard page: no permissions, below a stack */
	const char *path; /* "" if anonymous */
};
struct dp_snap_object { /* a file of which code is mapped */
	const char *path, *build_id; /* build_id: hexadecimal, "" if none */
	uint64_t start, end;
	int64_t bias;
	bool has_debug; /* its debug information was used */
};
struct dp_snap_file { /* an open file descriptor */
	int fd;
	const char *target; /* as readlink gives it */
};
struct dp_snap_limit {
	const char *name, *soft, *hard, *unit; /* a line of /proc/PID/limits */
};
struct dp_snap_memory { /* bytes that were read, kept so that pmodules may run on the file later */
	uint64_t address, size;
	const uint8_t *bytes;
};
struct dp_snap_source { /* lines of source around those that frames stand at */
	const char *path;
	int first;         /* number of the first line */
	const char *lines; /* joined by \n */
	unsigned n;
};

struct dp_snap_text; /* a text of the table: dp_snapshot_text() */

struct dp_snapshot {
	struct dp_arena arena;
	struct dp_snap_text *texts;
	struct dp_snap_word full[2]; /* dp_snapshot_settle()'s */
	char id[37];                 /* a uuid; in the event record of the hit that triggered it */
	uint64_t time_ns;            /* since 1970 */
	const char *dynprobe;        /* version of the writer */
	const char *mode;            /* "stop", "fork", "quick", "core" */
	pid_t pid;
	const char *application;     /* comm, or --application */
	const char *exe;             /* path, or "" */
	const char *const *argv;     /* NULL-terminated */
	const char *const *environ;  /* NULL: not taken */
	char process_state;          /* before the attach */
	const char *hostname, *kernel;
	/* The pause: how long threads of the process were held, and what it was spent on. */
	uint64_t pause_ns, stop_ns, read_ns, total_ns, rehearsal_ns;
	uint64_t held_ns; /* in all; not in the file, where the attribute snapshot.held.us says it */
	/* Of a probe's snapshot; else probe is NULL. */
	const char *probe, *condition;
	uint64_t hit;

	struct dp_snap_pair *attributes;
	struct dp_snap_word *classifiers, *tags;
	struct dp_snap_pair *made_by;      /* what pmodules added to these three: "attribute KEY", "classifier WORD", "tag WORD": the module's id */
	struct dp_snap_note *notes;
	struct dp_snap_thread *threads;    /* faulting ones first, then by tid */
	size_t nthreads;
	struct dp_snap_variable *globals;  /* those asked for; by object, unit, name */
	struct dp_snap_map *maps;          /* nmaps of them, ascending */
	size_t nmaps;
	struct dp_snap_object *objects;
	size_t nobjects;
	struct dp_snap_file *files;
	size_t nfiles;
	struct dp_snap_limit *limits;
	size_t nlimits;
	struct dp_snap_memory *memory;     /* ascending, disjoint */
	size_t nmemory;
	struct dp_snap_source *sources;
	size_t nsources;
	struct dp_snap_word *truncations;  /* what limits left out, in words; with one there is the classifier "truncated" */
};

/* NULL without memory. The id is random, the rest empty. */
struct dp_snapshot *dp_snapshot_create(void);
struct dp_snapshot *dp_snapshot_destroy(struct dp_snapshot *s); /* accepts NULL, returns NULL */

/*
 * Memory: a snapshot may have 256 MiB. When they are used up, makers return NULL or do nothing, and arena.failed stays set; the file and the
 * JSON of such a snapshot say so (classifier "truncated"). One check at the end is enough.
 *
 * Makers: the object at the end of its list (a frame's index and thread are filled in), zeroed otherwise, texts "" where they may not be
 * NULL. NULL without memory (arena.failed is set too, so one check at the end is enough; callers must still not follow NULL).
 */
struct dp_snap_thread *dp_snapshot_thread(struct dp_snapshot *s, pid_t tid);
struct dp_snap_frame *dp_snapshot_frame(struct dp_snapshot *s, struct dp_snap_thread *t);
/* Into *list; frame and thread are the owner's if there is one. */
struct dp_snap_variable *dp_snapshot_variable(struct dp_snapshot *s, struct dp_snap_variable **list, struct dp_snap_variable *owner);
struct dp_snap_note *dp_snapshot_note(struct dp_snapshot *s, struct dp_snap_note **list, enum dp_note_kind kind, const char *text);
/* The last value of a key wins. */
void dp_snapshot_set_int(struct dp_snapshot *s, const char *key, int64_t value);
void dp_snapshot_set_text(struct dp_snapshot *s, const char *key, const char *value);
/* A set: twice is once. */
void dp_snapshot_classify(struct dp_snapshot *s, const char *classifier);
void dp_snapshot_tag(struct dp_snapshot *s, const char *tag);
/* A pmodule is about to add it; what is there already is not the module's. */
enum dp_snap_added { DP_ADDED_ATTRIBUTE, DP_ADDED_CLASSIFIER, DP_ADDED_TAG };
void dp_snapshot_adds(struct dp_snapshot *s, enum dp_snap_added what, const char *text, const char *module);
/* Takes out what those modules added of which is_of() is true. */
void dp_snapshot_take_back(struct dp_snapshot *s, bool (*is_of)(const char *module, void *data), void *data);
/* Attributes and words that came into the lists by other ways (from a file) are known to the makers from here on. */
void dp_snapshot_index(struct dp_snapshot *s);
/* A limit has left something out. */
void dp_snapshot_truncated(struct dp_snapshot *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same text, once, however often it is asked for: types' and functions' names come thousands of times. "" for NULL, and without memory. */
const char *dp_snapshot_text(struct dp_snapshot *s, const char *text);
/* Before it is kept or shown: a snapshot whose memory was used up says so. More than once is once. */
void dp_snapshot_settle(struct dp_snapshot *s);
#define DP_SNAPSHOT_FULL "memory: a snapshot may have 256 MiB, and more was to be kept"

const struct dp_snap_map *dp_snapshot_map_at(const struct dp_snapshot *s, uint64_t addr);
/*
 * The thread that a reader looks at first, and its frame: the ones that faulted. Where nothing faulted (a snapshot of a program at work) they
 * are the first thread and its innermost frame that has variables, or its innermost frame.
 */
bool dp_snap_thread_is_subject(const struct dp_snap_thread *t);
bool dp_snap_frame_is_subject(const struct dp_snap_frame *f);
/* Bytes of the memory that is kept; the number from the front. */
size_t dp_snapshot_read(const struct dp_snapshot *s, uint64_t addr, void *buf, size_t n);

/* Names of registers by their number here, "rax" ... "rip". */
extern const char *const dp_snap_register_name[DP_SNAP_REGS];

#endif
