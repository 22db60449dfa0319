/* SPDX-License-Identifier: MIT */
/*
 * pmodule.h: the C API for modules that analyse dynprobe's snapshots. Installed as <dynprobe/pmodule.h>. Build with
 * `cc -fPIC -shared $(pkg-config --cflags dynprobe-pmodule) m.c -o m.so`, load with `--module-load m.so`. Link no library:
 * dynprobe itself provides the functions.
 *
 *     #include <dynprobe/pmodule.h>
 *     static void variable(ptrace_variable_t *pv, bt_variable_t *bv) { ... }
 *     static bool load(pmodule_t *pm) { return pmodule_variable_event_add(pm, NULL, variable); }
 *     PMODULE_DEFINE("example", load, NULL, NULL);
 *
 * All types are opaque. Unless said otherwise, returned strings are borrowed until the callback returns, and passed strings are
 * copied. Objects may be NULL: the call then returns false, NULL or 0. Call only from the thread that runs the callback. Objects
 * of a snapshot are valid until its postattach callbacks end. Names in the public example of Backtrace's ptrace are the same here.
 */
#ifndef DYNPROBE_PMODULE_H
#define DYNPROBE_PMODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PMODULE_ABI 1u
#ifndef PMODULE_API
#define PMODULE_API __attribute__((visibility("default")))
#endif

typedef struct pmodule pmodule_t;
typedef struct pmodule_match pmodule_match_t;
typedef struct ptrace_backtrace ptrace_backtrace_t;
typedef struct ptrace_thread ptrace_thread_t;
typedef struct ptrace_frame ptrace_frame_t;
typedef struct ptrace_variable ptrace_variable_t;
typedef struct ptrace_siginfo ptrace_siginfo_t;
typedef struct ptrace_pmap_entry ptrace_pmap_entry_t;
typedef struct bt_variable bt_variable_t;

/* ---- definition ------------------------------------------------------------------------------------------------------------- */

struct pmodule_desc {
	uint32_t abi, size; /* PMODULE_ABI, sizeof(struct pmodule_desc); new members go at the end */
	const char *id;
	bool (*load)(pmodule_t *);    /* registers callbacks; false: the module is not used */
	void (*reset)(pmodule_t *);   /* between snapshots; or NULL */
	void (*unload)(pmodule_t *);  /* before dynprobe exits; or NULL */
};
#define PMODULE_DEFINE(id_, load_, reset_, unload_)                                            \
	PMODULE_API extern const struct pmodule_desc pmodule_export_v1;                        \
	const struct pmodule_desc pmodule_export_v1 = {PMODULE_ABI, sizeof(struct pmodule_desc), \
		(id_), (load_), (reset_), (unload_)}

typedef void pmodule_variable_fn(ptrace_variable_t *, bt_variable_t *);
typedef void pmodule_frame_fn(ptrace_frame_t *);
typedef void pmodule_thread_fn(ptrace_thread_t *);
typedef void pmodule_backtrace_fn(ptrace_backtrace_t *);
/*
 * Only from load(). `match` is copied; NULL: everything. False: called outside load(), criteria not allowed here, or out of
 * memory.
 */
PMODULE_API bool pmodule_variable_event_add(pmodule_t *, const pmodule_match_t *match, pmodule_variable_fn *);
PMODULE_API bool pmodule_frame_event_add(pmodule_t *, const pmodule_match_t *match, pmodule_frame_fn *);
PMODULE_API bool pmodule_thread_event_add(pmodule_t *, const pmodule_match_t *match, pmodule_thread_fn *);
PMODULE_API bool pmodule_preattach_event_add(pmodule_t *, pmodule_backtrace_fn *);
PMODULE_API bool pmodule_attach_event_add(pmodule_t *, pmodule_backtrace_fn *);
PMODULE_API bool pmodule_postattach_event_add(pmodule_t *, pmodule_backtrace_fn *);
/* Only from load(): variable, frame and thread events run after the process is released, on saved memory. Adds no pause. */
PMODULE_API bool pmodule_defer(pmodule_t *);

/* ---- global ------------------------------------------------------------------------------------------------------------------- */

enum pmodule_log_level { PMODULE_LOG_DEBUG, PMODULE_LOG_INFO, PMODULE_LOG_WARNING, PMODULE_LOG_ERROR };
PMODULE_API void pmodule_log(enum pmodule_log_level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
PMODULE_API const char *pmodule_config_option(pmodule_t *, const char *key); /* NULL: not given */
PMODULE_API ptrace_backtrace_t *pmodule_backtrace(void);                      /* NULL outside callbacks */
PMODULE_API bool pmodule_pmap_enabled(void);
PMODULE_API bool pmodule_pmap_cached(void);
enum pmodule_read_source { PMODULE_READ_NONE, PMODULE_READ_HELD, PMODULE_READ_COPY, PMODULE_READ_KEPT, PMODULE_READ_LATE, PMODULE_READ_CORE };
PMODULE_API enum pmodule_read_source pmodule_read_source(void); /* source of the last read */
/* Microseconds until the running callback is ended: for modules that do less rather than nothing. 0: none left, or no callback runs. */
PMODULE_API uint64_t pmodule_time_left(void);

PMODULE_API const char *pmodule_address_symbol(uint64_t addr);
PMODULE_API bool pmodule_symbol_address(const char *symbol, const char *object, uint64_t *ret);
PMODULE_API size_t pmodule_address_read_raw(uint64_t addr, void *buf, size_t n);          /* returns the bytes read */
/* Stores at most n - 1 bytes, up to the first NUL, and a NUL. -1: no byte is readable. */
PMODULE_API ssize_t pmodule_address_read_string(uint64_t addr, char *buf, size_t n);
PMODULE_API size_t pmodule_symbol_read_raw(const char *symbol, const char *object, void *buf, size_t n);
PMODULE_API ssize_t pmodule_symbol_read_string(const char *symbol, const char *object, char *buf, size_t n);
/* Little-endian, `size` bytes (1, 2, 4, 8), sign- or zero-extended. */
PMODULE_API bool pmodule_address_read_uint(uint64_t addr, size_t size, uint64_t *ret);
PMODULE_API bool pmodule_address_read_int(uint64_t addr, size_t size, int64_t *ret);
PMODULE_API bool pmodule_address_read_real(uint64_t addr, size_t size, double *ret); /* 4, 8 */

/* ---- match objects --------------------------------------------------------------------------------------------------------------- */

enum pmodule_match_type { PMODULE_MATCH_EXACT, PMODULE_MATCH_SUBSTR };
enum pmodule_variable_type {
	PMODULE_BOTTOM, PMODULE_LL, PMODULE_ULL, PMODULE_FLT, PMODULE_DBL, PMODULE_LDBL, PMODULE_CFLT, PMODULE_CDBL, PMODULE_CLDBL,
	PMODULE_STRING, PMODULE_ENUM, PMODULE_TUPLE, PMODULE_ARRAY, PMODULE_FN, PMODULE_REFERENCE,
};
PMODULE_API pmodule_match_t *pmodule_match_create(void);
PMODULE_API void pmodule_match_destroy(pmodule_match_t *);
PMODULE_API void pmodule_match_reset(pmodule_match_t *);
/*
 * Criteria of one kind are ORed, kinds are ANDed. EXACT matches the full path, the name as passed to the compiler, or the last
 * component.
 */
PMODULE_API bool pmodule_match_add_object(pmodule_match_t *, const char *, enum pmodule_match_type);
PMODULE_API bool pmodule_match_add_file(pmodule_match_t *, const char *, enum pmodule_match_type);
PMODULE_API bool pmodule_match_add_frame_symbol(pmodule_match_t *, const char *, enum pmodule_match_type);
PMODULE_API bool pmodule_match_add_variable_base_type(pmodule_match_t *, const char *, enum pmodule_match_type);
PMODULE_API bool pmodule_match_add_variable_ptrace_type(pmodule_match_t *, enum pmodule_variable_type);
PMODULE_API bool pmodule_match_add_variable_name(pmodule_match_t *, const char *, enum pmodule_match_type);
PMODULE_API void pmodule_match_set_fault(pmodule_match_t *, bool whole_thread);

/*
 * ---- annotations, on every object. JSON: one complete object with the key "json"; anything else: false and a warning
 * ---------------
 */

enum pmodule_annotation { PAT_COMMENT, PAT_WARNING, PAT_CRITICAL, PAT_JSON };
PMODULE_API bool pmodule_backtrace_annotate(ptrace_backtrace_t *, enum pmodule_annotation, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
PMODULE_API bool pmodule_thread_annotate(ptrace_thread_t *, enum pmodule_annotation, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
PMODULE_API bool pmodule_frame_annotate(ptrace_frame_t *, enum pmodule_annotation, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
PMODULE_API bool pmodule_variable_annotate(ptrace_variable_t *, enum pmodule_annotation, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- backtrace -------------------------------------------------------------------------------------------------------------------- */

enum pmodule_process_state {
	PMODULE_PROCESS_UNKNOWN, PMODULE_PROCESS_RUNNING, PMODULE_PROCESS_SLEEPING, PMODULE_PROCESS_DISK, PMODULE_PROCESS_STOPPED,
	PMODULE_PROCESS_TRACED, PMODULE_PROCESS_ZOMBIE, PMODULE_PROCESS_DEAD, PMODULE_PROCESS_IDLE, PMODULE_PROCESS_BLOCKED, PMODULE_PROCESS_QUEUED,
};
PMODULE_API pid_t pmodule_backtrace_pid(ptrace_backtrace_t *);
/* In the process's own pid namespace; the same as pid() if that is dynprobe's. */
PMODULE_API pid_t pmodule_backtrace_inner_pid(ptrace_backtrace_t *);
/* The process's own name, and the path of its executable; "": unknown. */
PMODULE_API const char *pmodule_backtrace_comm(ptrace_backtrace_t *);
PMODULE_API const char *pmodule_backtrace_exe(ptrace_backtrace_t *);
PMODULE_API const char *pmodule_backtrace_application_name(ptrace_backtrace_t *);
PMODULE_API enum pmodule_process_state pmodule_backtrace_process_state(ptrace_backtrace_t *);
PMODULE_API ptrace_pmap_entry_t *pmodule_backtrace_pmap_entry(ptrace_backtrace_t *, uint64_t addr);
PMODULE_API void pmodule_backtrace_add_tag(ptrace_backtrace_t *, const char *);
PMODULE_API void pmodule_backtrace_add_kv_int(ptrace_backtrace_t *, const char *key, int64_t);
PMODULE_API void pmodule_backtrace_add_kv_string(ptrace_backtrace_t *, const char *key, const char *);
PMODULE_API void pmodule_backtrace_add_classifier(ptrace_backtrace_t *, const char *);
/* Iterators: `previous` NULL starts. `match` may be NULL. */
PMODULE_API ptrace_thread_t *pmodule_backtrace_next_thread(ptrace_backtrace_t *, const pmodule_match_t *match, ptrace_thread_t *previous);
/* Globals in the snapshot. `object` and `cu` match as substrings, `name` exactly; NULL: any. */
PMODULE_API ptrace_variable_t *pmodule_backtrace_next_variable(ptrace_backtrace_t *, const char *object, const char *cu, const char *name, ptrace_variable_t *previous);

/* The whole memory map, and the open files (i from 0; NULL after the last). */
PMODULE_API ptrace_pmap_entry_t *pmodule_backtrace_next_pmap(ptrace_backtrace_t *, ptrace_pmap_entry_t *previous);
PMODULE_API const char *pmodule_backtrace_file(ptrace_backtrace_t *, unsigned i, int *fd);

/*
 * Blocks of glibc's malloc (x86-64, 2.26 to 2.41) that no pointer was found to: candidates for leaks. The memory must be of one
 * moment: only in mode fork and of cores, while the snapshot is taken. It takes a second for some hundred megabytes; use
 * postattach. Valid until the callback returns.
 */
struct pmodule_heap_group { /* blocks of one size and first word */
	uint64_t size;    /* of each, as malloc_usable_size() */
	uint64_t count, bytes;
	uint64_t within;  /* of candidates: other candidates point to so many of them */
	uint64_t address; /* of the first one */
	uint64_t first;   /* the first word, if it leads into a mapped file (a vtable, a constant), or 0 */
};
struct pmodule_heap {
	const char *why;                           /* why nothing is known; NULL: it is known */
	uint64_t used, used_bytes;                 /* blocks in use, candidates included */
	uint64_t cached, cached_bytes;             /* free blocks in caches and fast lists, told apart from those in use */
	uint64_t lost, lost_bytes, within;         /* candidates; `within` as above */
	uint64_t unknown_bytes;                    /* of a heap that could not be read to its end (damaged?); pointers in it count */
	bool knows_caches, knows_fast;             /* false: blocks in them may be among the candidates */
	const struct pmodule_heap_group *group, *used_group; /* of candidates, and of all in use: most bytes first; at most 4096 */
	size_t ngroups, nused_groups;
};
PMODULE_API const struct pmodule_heap *pmodule_backtrace_heap(ptrace_backtrace_t *); /* NULL: out of memory */

PMODULE_API uint64_t pmodule_pmap_start(const ptrace_pmap_entry_t *);
PMODULE_API uint64_t pmodule_pmap_stop(const ptrace_pmap_entry_t *);
PMODULE_API uint64_t pmodule_pmap_offset(const ptrace_pmap_entry_t *);
PMODULE_API uint64_t pmodule_pmap_inode(const ptrace_pmap_entry_t *);
PMODULE_API const char *pmodule_pmap_path(const ptrace_pmap_entry_t *);
PMODULE_API bool pmodule_pmap_guard(const ptrace_pmap_entry_t *);
enum pmodule_pmap_perm { PMODULE_PMAP_RD = 1, PMODULE_PMAP_WR = 2, PMODULE_PMAP_EX = 4, PMODULE_PMAP_PR = 8, PMODULE_PMAP_SH = 16, PMODULE_PMAP_ALL = 7 };
PMODULE_API bool pmodule_pmap_permissions(const ptrace_pmap_entry_t *, unsigned all_of);

/* ---- thread ------------------------------------------------------------------------------------------------------------------------ */

PMODULE_API pid_t pmodule_thread_tid(ptrace_thread_t *);
PMODULE_API bool pmodule_thread_fault(ptrace_thread_t *);
PMODULE_API ptrace_backtrace_t *pmodule_thread_backtrace(ptrace_thread_t *);
PMODULE_API unsigned pmodule_thread_n_frames(ptrace_thread_t *);
PMODULE_API unsigned pmodule_thread_n_kframes(ptrace_thread_t *);
PMODULE_API const char *pmodule_thread_kframe(ptrace_thread_t *, unsigned i);
PMODULE_API const char *pmodule_thread_name(ptrace_thread_t *);
PMODULE_API enum pmodule_process_state pmodule_thread_state(ptrace_thread_t *);
PMODULE_API bool pmodule_thread_register(ptrace_thread_t *, const char *name, uint64_t *ret);
PMODULE_API void pmodule_thread_set_name(ptrace_thread_t *, const char *);
PMODULE_API bool pmodule_thread_add_frame(ptrace_thread_t *, ptrace_frame_t *, bool first);
PMODULE_API ptrace_frame_t *pmodule_thread_next_frame(ptrace_thread_t *, const pmodule_match_t *match, ptrace_frame_t *previous);
PMODULE_API ptrace_variable_t *pmodule_thread_next_variable(ptrace_thread_t *, const char *object, const char *cu, const char *name, ptrace_variable_t *previous); /* thread-locals */

/* ---- frame ------------------------------------------------------------------------------------------------------------------------- */

PMODULE_API ptrace_frame_t *pmodule_frame_create(void);
PMODULE_API const char *pmodule_frame_symbol(ptrace_frame_t *);
PMODULE_API const char *pmodule_frame_path(ptrace_frame_t *);
PMODULE_API int pmodule_frame_line(ptrace_frame_t *);
PMODULE_API int pmodule_frame_decl_line(ptrace_frame_t *);
PMODULE_API bool pmodule_frame_line_resolved(ptrace_frame_t *);
PMODULE_API const char *pmodule_frame_object_file(ptrace_frame_t *);
PMODULE_API const char *pmodule_frame_instruction(ptrace_frame_t *);
PMODULE_API ptrace_thread_t *pmodule_frame_thread(ptrace_frame_t *);
PMODULE_API ptrace_backtrace_t *pmodule_frame_backtrace(ptrace_frame_t *);
PMODULE_API const ptrace_siginfo_t *pmodule_frame_siginfo(ptrace_frame_t *);
PMODULE_API ptrace_variable_t *pmodule_frame_fprm_at(ptrace_frame_t *, unsigned i);
PMODULE_API uint64_t pmodule_frame_pc(ptrace_frame_t *);
PMODULE_API uint64_t pmodule_frame_sp(ptrace_frame_t *);
PMODULE_API unsigned pmodule_frame_index(ptrace_frame_t *);
PMODULE_API bool pmodule_frame_is_inline(ptrace_frame_t *);
/* The function jumped to the function of the next inner frame (a tail call), so its own frame is gone. */
PMODULE_API bool pmodule_frame_is_tail(ptrace_frame_t *);
PMODULE_API bool pmodule_frame_is_guess(ptrace_frame_t *);
PMODULE_API bool pmodule_frame_fault(ptrace_frame_t *);
PMODULE_API bool pmodule_frame_register(ptrace_frame_t *, const char *name, uint64_t *ret);
PMODULE_API void pmodule_frame_set_symbol(ptrace_frame_t *, const char *);
PMODULE_API void pmodule_frame_set_basename(ptrace_frame_t *, const char *);
PMODULE_API void pmodule_frame_set_directory(ptrace_frame_t *, const char *);
PMODULE_API void pmodule_frame_set_path(ptrace_frame_t *, const char *);
PMODULE_API void pmodule_frame_set_line(ptrace_frame_t *, int);
PMODULE_API void pmodule_frame_set_decl_line(ptrace_frame_t *, int);
PMODULE_API bool pmodule_frame_add_variable(ptrace_frame_t *, ptrace_variable_t *, bool insert_after); /* true: after its owner; false: at the end */
PMODULE_API bool pmodule_frame_add_frame(ptrace_frame_t *, ptrace_frame_t *, bool insert_after);
PMODULE_API ptrace_variable_t *pmodule_frame_next_variable(ptrace_frame_t *, const pmodule_match_t *match, ptrace_variable_t *previous); /* depth first, with children */
PMODULE_API bt_variable_t *pmodule_frame_query(ptrace_frame_t *, const char *name); /* a local or parameter */

PMODULE_API int pmodule_siginfo_num(const ptrace_siginfo_t *);
PMODULE_API int pmodule_siginfo_code(const ptrace_siginfo_t *);
PMODULE_API uint64_t pmodule_siginfo_address(const ptrace_siginfo_t *);
PMODULE_API bool pmodule_siginfo_address_populated(const ptrace_siginfo_t *);
PMODULE_API const char *pmodule_siginfo_reason(const ptrace_siginfo_t *, bool *by_kill);
PMODULE_API const char *pmodule_siginfo_name(const ptrace_siginfo_t *);

/* ---- variable ---------------------------------------------------------------------------------------------------------------------- */

/* `name` NULL: an element of its owner. `offset`: array index, or -1. */
PMODULE_API ptrace_variable_t *pmodule_variable_create(const char *type, const char *name, uint64_t addr, int64_t offset, ptrace_variable_t *owner);
PMODULE_API ptrace_variable_t *pmodule_ptrace_variable_create(ptrace_variable_t *owner, unsigned depth, int64_t index);
PMODULE_API uint64_t pmodule_variable_address(ptrace_variable_t *);
PMODULE_API const char *pmodule_variable_name(ptrace_variable_t *);
PMODULE_API enum pmodule_variable_type pmodule_variable_type(ptrace_variable_t *);
PMODULE_API const char *pmodule_variable_type_name(ptrace_variable_t *); /* "struct(crash)" */
PMODULE_API const char *pmodule_variable_base_type(ptrace_variable_t *); /* "crash" */
PMODULE_API bool pmodule_variable_int(ptrace_variable_t *, int64_t *ret);  /* LL, ULL, ENUM, REFERENCE */
PMODULE_API bool pmodule_variable_real(ptrace_variable_t *, double *re, double *im); /* FLT to CLDBL; im may be NULL */
PMODULE_API const char *pmodule_variable_symbol(ptrace_variable_t *);
PMODULE_API bool pmodule_variable_is_string(ptrace_variable_t *);
PMODULE_API bool pmodule_variable_resolved(ptrace_variable_t *);
PMODULE_API const char *pmodule_variable_why(ptrace_variable_t *); /* reason for no value ("optimized out", ...), or NULL */
PMODULE_API ptrace_variable_t *pmodule_variable_owner(ptrace_variable_t *);
PMODULE_API ptrace_frame_t *pmodule_variable_frame(ptrace_variable_t *);
PMODULE_API ptrace_thread_t *pmodule_variable_thread(ptrace_variable_t *);
PMODULE_API ptrace_backtrace_t *pmodule_variable_backtrace(ptrace_variable_t *);
PMODULE_API int64_t pmodule_variable_fprm_offset(ptrace_variable_t *); /* -1: not a parameter */
PMODULE_API unsigned pmodule_variable_depth(ptrace_variable_t *);
PMODULE_API const char *pmodule_variable_object(ptrace_variable_t *); /* of globals and thread-locals */
PMODULE_API const char *pmodule_variable_cu(ptrace_variable_t *);
PMODULE_API void pmodule_variable_set_struct(ptrace_variable_t *);
PMODULE_API void pmodule_variable_set_array(ptrace_variable_t *);
PMODULE_API void pmodule_variable_set_function(ptrace_variable_t *, const char *symbol);
/* Takes ownership of `text`, which must be malloc'ed. On an extracted struct, `text` is shown instead of its members. */
PMODULE_API void pmodule_variable_set_string(ptrace_variable_t *, char *text);
PMODULE_API void pmodule_variable_set_enum(ptrace_variable_t *, int64_t value, const char *symbol);
PMODULE_API void pmodule_variable_set_ref(ptrace_variable_t *, uint64_t value, const char *symbol);
PMODULE_API void pmodule_variable_set_ll(ptrace_variable_t *, int64_t);
PMODULE_API void pmodule_variable_set_ull(ptrace_variable_t *, uint64_t);
PMODULE_API void pmodule_variable_set_dbl(ptrace_variable_t *, double);
PMODULE_API void pmodule_variable_set_cdbl(ptrace_variable_t *, double re, double im);
enum { PTRACE_VARIABLE_S_SKIP = 1 }; /* do not show the raw members */
PMODULE_API unsigned pmodule_variable_state(ptrace_variable_t *);
PMODULE_API void pmodule_variable_state_set(ptrace_variable_t *, unsigned flags);
PMODULE_API bool pmodule_variable_value(ptrace_variable_t *, bt_variable_t *, bool children); /* fills it in from a typed value */
PMODULE_API void pmodule_variable_dispatch(ptrace_variable_t *, bt_variable_t *);           /* runs the registered callbacks on it */

/*
 * ---- typed values of the process: valid until the snapshot ends; when a step fails, bt_error() says why
 * ------------------------------
 */

PMODULE_API const char *bt_error(void); /* of the last failed call below */
PMODULE_API bt_variable_t *pmodule_bt_query(const char *symbol, const char *object, const char *cu);
PMODULE_API bt_variable_t *pmodule_variable_at(const char *type, uint64_t addr, const char *object);
PMODULE_API ptrace_variable_t *pmodule_variable_from_bt(bt_variable_t *); /* cannot be added to the snapshot */
PMODULE_API bt_variable_t *pmodule_variable_bt(ptrace_variable_t *);      /* the value it was made from, or NULL */
PMODULE_API bt_variable_t *bt_variable_member(bt_variable_t *, const char *name);
PMODULE_API bt_variable_t *bt_variable_index(bt_variable_t *, int64_t i);
PMODULE_API bt_variable_t *bt_variable_try(bt_variable_t *, const char *path); /* "list.first->slots[2]" */
PMODULE_API bt_variable_t *bt_variable_deref(bt_variable_t *);
PMODULE_API bt_variable_t *bt_variable_deref_at(bt_variable_t *, uint64_t addr); /* of a pointer: an element at addr; else: the same type there */
PMODULE_API bt_variable_t *bt_variable_cast(bt_variable_t *, const char *type);
PMODULE_API bt_variable_t *bt_variable_addressof(bt_variable_t *);
PMODULE_API bt_variable_t *bt_variable_container_of(bt_variable_t *, const char *type, const char *member);
PMODULE_API const char *bt_variable_type_name(bt_variable_t *);
PMODULE_API const char *bt_variable_path(bt_variable_t *); /* "list.head->next" */
PMODULE_API uint64_t bt_variable_sizeof(bt_variable_t *);
PMODULE_API bool bt_variable_length(bt_variable_t *, uint64_t *ret);
PMODULE_API bool bt_variable_address(bt_variable_t *, uint64_t *ret);
PMODULE_API bool bt_variable_ull(bt_variable_t *, uint64_t *ret);
PMODULE_API bool bt_variable_ll(bt_variable_t *, int64_t *ret);
PMODULE_API bool bt_variable_real(bt_variable_t *, double *ret);
PMODULE_API ssize_t bt_variable_strncpy(char *dst, bt_variable_t *, size_t n); /* -1: unreadable */
PMODULE_API size_t bt_variable_bytes(bt_variable_t *, void *buf, size_t n);
/* Calls `each` for every member until it returns false. */
PMODULE_API bool bt_variable_members(bt_variable_t *, bool (*each)(const char *name, bt_variable_t *member, void *data), void *data);

/* Stores the n-th template argument in a C++ type name (malloc'ed); false if there are fewer. */
PMODULE_API bool pmodule_cpp_template_nth_argument(char **out, const char *type_name, unsigned n);

#ifdef __cplusplus
}
#endif

#endif
