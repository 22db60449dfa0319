/* SPDX-License-Identifier: MIT */
/*
 * How liblttng-ust runs in the target without touching what is the program's (see sink.h).
 *
 * Two kinds of threads call liblttng-ust: residents, which share LTTng's own descriptor table (the sink's thread and those that
 * LTTng creates), and the program's threads, in hits. Its imports are redirected to functions of ours that distinguish the two:
 * see redirect.c.
 */
#ifndef DP_AGENT_LTTNG_GUEST_REDIRECT_H
#define DP_AGENT_LTTNG_GUEST_REDIRECT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct dp_sink;
struct iovec;

/* ---- early.c: before liblttng-ust's own constructors ------------------------------------------------------------- */

enum dp_lttng_guest {
	DP_GUEST_UNKNOWN = 0, /* the resolver has not run */
	DP_GUEST_HOST,        /* the program had liblttng-ust first: left unchanged */
	DP_GUEST_SETTLED,     /* all imports go to us, from before liblttng-ust's first instruction */
	DP_GUEST_FAILED,
};
/* Has no effect; the call makes ld.so run the resolver (early.c). */
void dp_lttng_anchor(void);
extern enum dp_lttng_guest dp_lttng_guest;
extern const char *dp_lttng_guest_error; /* when FAILED */

/* ---- patch.c: a loaded object's own tables ----------------------------------------------------------------------- */

struct dp_object {
	uint64_t base, relro, relro_end;
	uint64_t dynamic;    /* address of its dynamic section; 0: no such object */
	uint64_t tls_module; /* 0: none */
	unsigned position;   /* in the order of loading */
};

struct dl_phdr_info;
/* Fills all but `position`. */
void dp_object_of(const struct dl_phdr_info *info, struct dp_object *ret);
bool dp_object_contains(const struct dl_phdr_info *info, const void *address);
/* An entry's value and a table's address, 0 if the dynamic section has no such tag. Neither calls anything by name. */
uint64_t dp_object_entry(const struct dp_object *o, int64_t tag);
uint64_t dp_object_table(const struct dp_object *o, int64_t tag);
const char *dp_object_soname(const struct dp_object *o); /* "" without one */
bool dp_object_unseal(const struct dp_object *o);
bool dp_object_seal(const struct dp_object *o);
/*
 * Between unseal and seal. Redirects the names that dp_lttng_redirection() knows and sets a bit of each one found in *found;
 * binds the rest to the C library.
 */
void dp_object_redirect(const struct dp_object *o, uint64_t *found);
/* Binds all to the C library. Calls nothing by name. */
void dp_object_rebind(const struct dp_object *o);
void dp_object_drop_destructors(const struct dp_object *o);

/* ---- libc.c: the C library's own functions, despite a program's functions of the same names --------------------- */

/* Must be called first; the program loads no library meanwhile. */
void dp_libc_find(void);
/* The address for an import of the object (by symbol number) that is bound to `value`: that one, or the C library's own. */
uint64_t dp_libc_instead(const struct dp_object *of, uint32_t symbol, uint64_t value);
/* This library itself. */
void dp_libc_object(struct dp_object *ret);

/* ---- redirect.c -------------------------------------------------------------------------------------------------- */

/* Whether this thread has LTTng's descriptor table. */
extern __thread uint32_t dp_lttng_resident __attribute__((tls_model("initial-exec")));
/* The thread of this tid has it too, but cannot be marked yet. */
void dp_lttng_loader_is(int tid);

/* The replacement of libc's `name`, and its number (below 64); NULL: liblttng-ust may use the libc's. */
void *dp_lttng_redirection(const char *name, unsigned *ret_number);
/* Bits of those without which liblttng-ust would affect the program. */
uint64_t dp_lttng_redirections_needed(void);

/* ---- redirect_memory.c: functions that return allocated memory ------------------------------------------------------- */

/* Like the C library's of the same names; the checking ones ignore `flag`. */
char *dp_lttng_strdup(const char *text);
char *dp_lttng_strndup(const char *text, size_t n);
int dp_lttng_vasprintf(char **ret, const char *format, va_list list) __attribute__((format(printf, 2, 0)));
int dp_lttng_asprintf(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
int dp_lttng_vasprintf_chk(char **ret, int flag, const char *format, va_list list) __attribute__((format(printf, 3, 0)));
int dp_lttng_asprintf_chk(char **ret, int flag, const char *format, ...) __attribute__((format(printf, 3, 4)));
ssize_t dp_lttng_getdelim(char **line, size_t *size, int end, FILE *stream);

/* ---- redirect_phdr.c: dl_iterate_phdr() without a lock during the callback -------------------------------------- */

struct dl_phdr_info;
void dp_lttng_phdr_init(struct dp_sink *sink); /* before: fork() does not wait for a copy, only for the load of the sink */
int dp_lttng_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data);

/* ---- redirect_tls.c: thread-local memory in hits ----------------------------------------------------------------- */

struct dp_tls_index {
	uint64_t module, offset;
};
/* Before the first redirection. `modules`: TLS module numbers of LTTng's libraries, 0: none. */
#define DP_TLS_MODULES 2u
void dp_lttng_tls_init(const uint64_t modules[DP_TLS_MODULES]);
void *dp_lttng_tls_get(const struct dp_tls_index *index);
/* After LTTng's thread-local memory has been allocated for this thread. */
void dp_lttng_tls_prime(void);

/* ---- service.c: the sink's thread -------------------------------------------------------------------------------- */

/* In hits. The same results as write() and writev() on a pipe. */
ssize_t dp_lttng_post_wake(int fd);
ssize_t dp_lttng_post(int fd, const struct iovec *parts, int n);
/* In residents. Like close(); what was posted for the descriptor is not written any more. */
int dp_lttng_close(int fd);
/* Never returns: serves the tool's requests and writes what hits posted. */
void dp_lttng_dwell(struct dp_sink *sink);
extern uint32_t dp_lttng_work; /* futex word: that thread sleeps while it is 0 */

#endif
