/* SPDX-License-Identifier: MIT */
/*
 * The snapshot: the state of a process at one moment, as a tree of plain values. It needs no process and no debug information.
 * Extraction (extract.h) makes it, pmodules add to it (pmodule.h), a file stores it (file.h), output/ shows it.
 *
 * Everything is in the snapshot's arena. Strings are UTF-8, or whatever bytes the target had; they are never NULL unless said.
 * Addresses are the target's. Lists use utlist.h (DL_APPEND and so on; head->prev is the tail). A list may be appended to while
 * it is walked.
 */
#ifndef DP_PMODULES_MODEL_SNAPSHOT_H
#define DP_PMODULES_MODEL_SNAPSHOT_H

#include "base/error.h"
#include "base/arena.h"
#include "probes/frame/frame.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- common to all objects --------------------------------------------------------------------------------------------- */

enum dp_note_kind { DP_NOTE_COMMENT, DP_NOTE_WARNING, DP_NOTE_CRITICAL, DP_NOTE_JSON }; /* as pmodule.annotation.* */
struct dp_snap_note { /* an annotation */
	struct dp_snap_note *prev, *next;
	enum dp_note_kind kind;
	const char *text;   /* of JSON: one complete object, checked */
	const char *module; /* id of the pmodule that made it, or "" for dynprobe */
};

struct dp_snap_pair { /* an attribute */
	struct dp_snap_pair *prev, *next;
	const char *key;
	bool is_int;
	int64_t number;   /* is_int */
	const char *text; /* else */
};

struct dp_snap_word { /* an element of a set of words: classifiers, tags */
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
	DP_VAR_ENUM,    /* number; text: its name ("A | B" for flags) or NULL */
	DP_VAR_TUPLE,   /* struct, union, class */
	DP_VAR_ARRAY,
	DP_VAR_FN,      /* a function itself; text: its name */
	DP_VAR_REFERENCE, /* pointers and references: number is the address. text: the string of a char pointer (is_string),
	                   * or the name of the function or object pointed at, or NULL */
};
enum __attribute__((packed)) dp_var_state {
	DP_VAR_OK,
	DP_VAR_ABSENT,     /* no value: `why` ("optimized out") */
	DP_VAR_UNREADABLE, /* its memory cannot be read: `why` */
};
enum __attribute__((packed)) dp_var_place { DP_VAR_LOCAL, DP_VAR_PARAMETER, DP_VAR_GLOBAL, DP_VAR_TLS, DP_VAR_CHILD };

/* A snapshot has hundreds of thousands of these: common members come first, and members are as small as possible. */
struct dp_snap_variable {
	struct dp_snap_variable *prev, *next;
	struct dp_snap_variable *owner;     /* the variable that it is a member, an element or the target of; or NULL */
	struct dp_snap_variable *children;  /* members, elements; for a pointer its target (one, named "*") */
	const char *name;                   /* "" for elements, which have an `index` */
	const char *type;                   /* in C syntax: "struct crash *"; "" if unknown */
	const char *base_type;              /* the name without pointers, arrays, qualifiers and keywords: "crash"; or "" */
	const char *object, *unit;          /* of a global or thread-local: its file and compilation unit; else "" */
	struct dp_snap_frame *frame;        /* NULL for globals and thread-locals */
	struct dp_snap_thread *thread;      /* NULL for globals */
	int64_t index;                      /* of an element or a parameter (from 0); else -1 */
	uint64_t address;                   /* 0 if it is not in memory */
	uint64_t size;                      /* bytes; 0 if unknown */
	uint64_t number;                    /* integers extended to 64 bits, pointers, enums */
	const char *text;                   /* depends on the kind; or NULL */
	enum dp_var_kind kind;
	enum dp_var_state state;
	enum dp_var_place place;
	uint8_t bits;                       /* of a bit-field, or 0 */
	bool is_string;                     /* text is a string of the program, of `text_size` bytes (may include NULs) */
	bool is_cut;                        /* the string is longer than text_size */
	bool is_bool, is_char, is_union;    /* how LL, ULL, TUPLE are shown */
	bool is_synthesized;                /* a pmodule made it */
	bool is_hidden;                     /* a pmodule asked not to show its raw children (PTRACE_VARIABLE_S_SKIP) */
	bool is_late;                       /* read after the release: not of the snapshot's moment */
	bool is_shared;                     /* mode fork: in shared memory, which the copy does not freeze */
	uint64_t text_size;
	double real, imaginary;
	uint64_t more;                      /* number of children left out because of a limit */
	const char *why;                    /* reason for a state other than OK, or for a truncation; or NULL */
	struct dp_snap_note *notes;
	const char *summary;                /* one line by a pmodule instead of the raw value (set_string on a struct); or NULL */
	const char *module;                 /* id of the pmodule that made it, set its summary or hid its children; or NULL */
	void *value;                        /* struct dp_value (value.h) during the capture; else NULL */
};

/* ---- frames, threads ------------------------------------------------------------------------------------------------------ */

struct dp_snap_siginfo {
	int number, code, pid, uid; /* pid, uid: the sender's, if by_kill */
	uint64_t address;
	bool has_address, by_kill;
	const char *name;   /* "SIGSEGV" */
	const char *reason; /* "address not mapped to object" */
};

struct dp_snap_frame {
	struct dp_snap_frame *prev, *next;
	struct dp_snap_thread *thread;
	unsigned index;          /* 0 is the innermost */
	uint64_t pc;             /* innermost frame: the instruction; others: the return address */
	uint64_t sp, cfa;        /* 0 if unknown */
	const char *symbol;      /* readable (demangled), NULL if unknown */
	const char *linkage;     /* as in the symbol table, or NULL */
	uint64_t offset;         /* of pc from the symbol's address */
	const char *object;      /* path of the module, or NULL */
	const char *path;        /* source file as passed to the compiler, or NULL */
	int line, decl_line;     /* 0 if unknown */
	bool line_resolved;
	bool is_inline;          /* inlined in the next frame that is not inline: same pc, same registers */
	bool is_guess;           /* found without unwind tables */
	bool by_frame_pointer;   /* a guess: by the frame pointer of the next inner frame */
	bool is_signal;          /* the kernel's signal frame */
	bool is_tail;            /* it made a tail call to the next inner frame's function; its frame is gone and was inferred */
	bool is_fault;           /* the fault happened in it */
	bool is_synthesized;
	const char *instruction; /* disassembly, of the innermost frame (and others where asked), or NULL */
	const struct dp_frame_regs *registers; /* shared by inline frames; or NULL */
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
	char state;              /* from /proc/PID/task/TID/stat before the stop: R S D T t Z X I P */
	bool is_fault;           /* it faulted, or hit the probe that triggered the snapshot, or the user said so */
	const char *fault_reason; /* "read of 8 bytes at 0x0: a null pointer (rdi) is dereferenced", or NULL */
	const char *unwind_end;  /* why unwinding stopped early; NULL: it reached the end */
	bool has_registers;
	struct dp_frame_regs registers;
	uint64_t rflags, fs_base, gs_base, orig_rax;
	int64_t syscall;         /* the system call it waits in, or -1 */
	const char *syscall_text; /* "futex(0x7f.., 128, ...)", or NULL */
	unsigned nframes;        /* in this snapshot */
	uint64_t more_frames;    /* at least this many more were left out */
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
struct dp_snap_object { /* a file with mapped code */
	const char *path, *build_id; /* build_id: hexadecimal, "" if none */
	uint64_t start, end;
	int64_t bias;
	bool has_debug;   /* its debug information was used */
	const char *name; /* of the executable: the link by which it was started, a file name; "" or NULL if none */
};
struct dp_snap_file { /* an open file descriptor */
	int fd;
	const char *target; /* as readlink gives it */
};
struct dp_snap_limit {
	const char *name, *soft, *hard, *unit; /* a line of /proc/PID/limits */
};
struct dp_snap_memory { /* memory that was read, saved so that pmodules can run on the file later */
	uint64_t address, size;
	const uint8_t *bytes;
};
struct dp_snap_source { /* source lines around those of frames */
	const char *path;
	int first;         /* number of the first line */
	const char *lines; /* joined by \n */
	unsigned n;
};

struct dp_snap_text; /* an entry of dp_snapshot_text()'s table */

struct dp_snapshot {
	struct dp_arena arena;
	struct dp_snap_text *texts;
	struct dp_snap_word full[2]; /* used by dp_snapshot_settle() */
	char id[37];                 /* a UUID; also in the event of the hit that triggered it */
	uint64_t time_ns;            /* since 1970 */
	const char *dynprobe;        /* version that made it */
	const char *mode;            /* "stop", "fork", "quick", "core" */
	pid_t pid, inner_pid;        /* inner: in the process's own pid namespace; 0: the same */
	const char *comm;            /* the process's name; "" in files of older versions */
	const char *application;     /* comm, or --application */
	const char *exe;             /* path, or "" */
	const char *const *argv;     /* NULL-terminated */
	const char *const *environ;  /* NULL: not captured */
	char process_state;          /* before the attach */
	const char *hostname, *kernel;
	/* The pause: how long threads were held, and for what. */
	uint64_t pause_ns, stop_ns, read_ns, total_ns, rehearsal_ns;
	uint64_t held_ns; /* total; not in the file, which has the attribute snapshot.held.us instead */
	/* For a snapshot that a probe triggered; else probe is NULL. */
	const char *probe, *condition;
	uint64_t hit;

	struct dp_snap_pair *attributes;
	struct dp_snap_word *classifiers, *tags;
	struct dp_snap_pair *made_by;      /* who added to these three: "attribute KEY", "classifier WORD", "tag WORD" -> module id */
	struct dp_snap_note *notes;
	struct dp_snap_thread *threads;    /* faulting ones first, then by tid */
	size_t nthreads;
	struct dp_snap_variable *globals;  /* the requested ones, ordered by object, unit, name */
	struct dp_snap_map *maps;          /* nmaps entries, ascending */
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
	struct dp_snap_word *truncations;  /* what limits left out, in words; if not empty, there is the classifier "truncated" */
};

/* What people call the object of that path: the last part, or the link by which it was started. */
const char *dp_snapshot_object_name(const struct dp_snapshot *s, const char *path);

/* An empty snapshot with a random id. NULL: out of memory. */
struct dp_snapshot *dp_snapshot_create(void);
struct dp_snapshot *dp_snapshot_destroy(struct dp_snapshot *s); /* accepts NULL, returns NULL */

/*
 * A snapshot may use 256 MiB. Beyond that these functions return NULL or do nothing, and arena.failed stays set; the file and the
 * JSON say so (classifier "truncated"). Checking arena.failed once at the end is enough, but do not dereference NULL.
 *
 * The new object is at the end of its list (a frame's index and thread are set) and zeroed; strings that may not be NULL are "".
 */
struct dp_snap_thread *dp_snapshot_thread(struct dp_snapshot *s, pid_t tid);
struct dp_snap_frame *dp_snapshot_frame(struct dp_snapshot *s, struct dp_snap_thread *t);
/* Appends to *list; frame and thread are those of the owner, if there is one. */
struct dp_snap_variable *dp_snapshot_variable(struct dp_snapshot *s, struct dp_snap_variable **list, struct dp_snap_variable *owner);
struct dp_snap_note *dp_snapshot_note(struct dp_snapshot *s, struct dp_snap_note **list, enum dp_note_kind kind, const char *text);
/* A later value of a key replaces an earlier one. */
void dp_snapshot_set_int(struct dp_snapshot *s, const char *key, int64_t value);
void dp_snapshot_set_text(struct dp_snapshot *s, const char *key, const char *value);
/* Adding a word again has no effect. */
void dp_snapshot_classify(struct dp_snapshot *s, const char *classifier);
void dp_snapshot_tag(struct dp_snapshot *s, const char *tag);
/* Call before a pmodule adds `text`: records the module, unless it exists already. */
enum dp_snap_added { DP_ADDED_ATTRIBUTE, DP_ADDED_CLASSIFIER, DP_ADDED_TAG };
void dp_snapshot_adds(struct dp_snapshot *s, enum dp_snap_added what, const char *text, const char *module);
/* Removes what was added by the modules for which is_of() is true. */
void dp_snapshot_take_back(struct dp_snapshot *s, bool (*is_of)(const char *module, void *data), void *data);
/* Registers attributes and words that were put into the lists directly (read from a file). */
void dp_snapshot_index(struct dp_snapshot *s);
/* Records that a limit left something out. */
void dp_snapshot_truncated(struct dp_snapshot *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Returns one shared copy per text: names of types and functions occur thousands of times. "" for NULL, and if out of memory. */
const char *dp_snapshot_text(struct dp_snapshot *s, const char *text);
/* Call before the snapshot is saved or shown: notes that its memory was used up. May be called again. */
void dp_snapshot_settle(struct dp_snapshot *s);
#define DP_SNAPSHOT_FULL "memory: the snapshot reached its limit of 256 MiB"

const struct dp_snap_map *dp_snapshot_map_at(const struct dp_snapshot *s, uint64_t addr);
/*
 * The thread that readers look at first, and its frame: those that faulted. If nothing faulted: the first thread, and its
 * innermost frame that has variables, or else its innermost frame.
 */
bool dp_snap_thread_is_subject(const struct dp_snap_thread *t);
bool dp_snap_frame_is_subject(const struct dp_snap_frame *f);
/* Reads saved memory; returns the number of leading bytes. */
size_t dp_snapshot_read(const struct dp_snapshot *s, uint64_t addr, void *buf, size_t n);

/* Register names by number: "rax" ... "rip". */
extern const char *const dp_snap_register_name[DP_DWARF_REGS];

#endif
