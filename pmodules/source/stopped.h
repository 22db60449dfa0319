/* SPDX-License-Identifier: MIT */
/*
 * A stopped process: its threads with their registers, and its memory at one moment. The source is a live process (all threads
 * frozen; mode fork: frozen, copied by fork, released) or a core file. Order of calls:
 *
 *   dp_stopped_open / _open_core   stops nothing: maps, image (load debug information and prefetch now)
 *   dp_stopped_hold                stops all threads, reads registers (mode fork: makes the copy, releases the threads)
 *   dp_stopped_read ...            memory at that moment
 *   dp_stopped_release             releases the threads (stop, quick); pause_ns is known
 *   dp_stopped_read ...            saved memory; the rest from the copy (fork), the core,
 *                                  or the running process (stop, quick: *late is set)
 *   dp_stopped_close               ends the copy, frees everything
 *
 * The injector keeps the target safe: it restores every thread exactly and repairs interrupted system calls; if the tool dies,
 * everything resumes (and the copy is killed).
 */
#ifndef DP_PMODULES_SOURCE_STOPPED_H
#define DP_PMODULES_SOURCE_STOPPED_H

#include "base/error.h"
#include "injector/tracee/proc/proc.h"
#include "probes/probes.h"

#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>

enum dp_stopped_mode { DP_STOPPED_STOP, DP_STOPPED_FORK, DP_STOPPED_QUICK, DP_STOPPED_CORE };

struct dp_stopped_hit { /* a thread that waits in the agent for this snapshot (injector/park.h) */
	pid_t ns_tid; /* in the target's pid namespace */
	struct user_regs_struct regs;
	bool (*take)(void *data);    /* all threads are stopped: is it still parked? Then it stays parked. Asked at every hold */
	bool (*waits)(void *data);   /* after that: will it wait long enough for another hold? */
	void (*let_go)(void *data);  /* it need not wait any longer */
	void *data;
};

struct dp_stopped_options {
	enum dp_stopped_mode mode;
	uint64_t max_pause_ns;   /* then the threads are released, later reads are late; failed freezes get at most half; 0: none */
	uint64_t usual_ns;       /* limit without max_pause_ns, mode stop: per hold, failed freezes not counted; 0: none */
	uint64_t stack_bytes;    /* of each stack, from rsp on, read at once in the pause; 0: the default, 64 KiB */
	uint64_t work_ns;        /* without max_pause_ns: extra time between reads in a hold (injector/tracee/stop/watchdog.h) */
	uint64_t max_bytes;      /* of saved memory; 0: the default, 64 MiB */
	bool allow_seccomp;
	const struct dp_stopped_hit *hit; /* or NULL; dp_stopped_hold() fails with DP_TAG_GONE if it has resumed */
};

struct dp_stopped_thread {
	pid_t tid;
	char name[64];
	char state;                   /* before the stop */
	struct user_regs_struct regs; /* the program's own: for a thread in a dynprobe stub, those at the probed place */
	bool has_vector;
	uint64_t xmm[16][2];          /* has_vector: low halves of the vector registers */
	int64_t syscall;              /* the one it waits in, or -1 */
	uint64_t args[6];
	siginfo_t siginfo;            /* si_signo 0: none */
	bool is_fault;                /* siginfo stopped it (a core's first thread), or it hit the probe */
	uint64_t parked_ns;
	const char *kstack;           /* text of /proc/PID/task/TID/stack, for the call it waits in; or NULL */
	struct dp_proc_call kcall;    /* the call it was in when that was read, before the stop */
};

struct dp_stopped; /* opaque */

struct dp_error *dp_stopped_open(pid_t pid, const struct dp_stopped_options *options, struct dp_stopped **ret) DP_MUST_CHECK;
/* `exe` NULL: the path in the core's NT_FILE. DP_TAG_BAD_CORE. */
struct dp_error *dp_stopped_open_core(const char *core, const char *exe, const struct dp_stopped_options *options, struct dp_stopped **ret) DP_MUST_CHECK;
/* If fork is refused (overcommit, a limit, seccomp), mode fork falls back to stop; dp_stopped_why_not_fork() says why. */
struct dp_error *dp_stopped_hold(struct dp_stopped *s) DP_MUST_CHECK;
/*
 * Number of pages first read after the release. If there are any, dp_stopped_hold() may be called once more: for a new moment,
 * with those pages read at once too.
 */
size_t dp_stopped_nlate(const struct dp_stopped *s);
/* May dp_stopped_hold() be called once more? Not if the hit's thread has resumed, or is about to. */
bool dp_stopped_may_hold_again(const struct dp_stopped *s);
/* Releases the threads if their time (max_pause_ns) is over. Every read calls this. */
void dp_stopped_in_time(struct dp_stopped *s);
/* There will be no further hold: the hit's thread may resume. Does nothing without a hit, or when called again. */
void dp_stopped_let_go(struct dp_stopped *s);
void dp_stopped_release(struct dp_stopped *s);
/* Frees what a snapshot needed; keeps what is known of the process's files, for dp_stopped_again(). */
void dp_stopped_shed(struct dp_stopped *s);
/*
 * Closes and reopens *s, keeping the image if the process still maps the same code. Otherwise *ret is false. Then, and on an
 * error, *s is unchanged.
 */
struct dp_error *dp_stopped_again(struct dp_stopped **s, const struct dp_stopped_options *options, bool *ret) DP_MUST_CHECK;
struct dp_stopped *dp_stopped_close(struct dp_stopped *s); /* releases first; accepts NULL, returns NULL */

pid_t dp_stopped_pid(const struct dp_stopped *s);
pid_t dp_stopped_inner_pid(const struct dp_stopped *s); /* in the process's own pid namespace; 0: the same */
const char *dp_stopped_comm(const struct dp_stopped *s);
enum dp_stopped_mode dp_stopped_mode(const struct dp_stopped *s);
const char *dp_stopped_why_not_fork(const struct dp_stopped *s); /* NULL: fork was not asked for, or it worked */
/* The i-th warning about a core file, or NULL. */
const char *dp_stopped_doubt(const struct dp_stopped *s, size_t i);
struct dp_image *dp_stopped_image(struct dp_stopped *s);
size_t dp_stopped_nthreads(const struct dp_stopped *s);
const struct dp_stopped_thread *dp_stopped_thread(const struct dp_stopped *s, size_t i); /* after hold; ascending tids */
bool dp_stopped_is_held(const struct dp_stopped *s);
/* Before the hold: does the process still map the code that it mapped at dp_stopped_open()? */
bool dp_stopped_is_current(const struct dp_stopped *s);
/* Reads memory; returns the number of leading bytes. *late (may be NULL): not of the moment of the hold. */
size_t dp_stopped_read(struct dp_stopped *s, uint64_t addr, void *buf, size_t n, bool *late);
/* The same before dp_stopped_hold(), from the running process, not saved: for the prefetch. */
size_t dp_stopped_peek(struct dp_stopped *s, uint64_t addr, void *buf, size_t n);
/*
 * Samples registers for the prefetch: stops a few threads at a time, each for some 20 us (up to a few times that where they wait
 * for each other). Calls `each` for every thread after it has resumed.
 */
struct dp_error *dp_stopped_sample(struct dp_stopped *s, void (*each)(const struct dp_stopped_thread *t, void *data), void *data) DP_MUST_CHECK;
/* Calls `each` for each range of saved memory: for the file. */
void dp_stopped_kept(struct dp_stopped *s, void (*each)(uint64_t addr, const uint8_t *bytes, size_t n, void *data), void *data);
struct dp_stopped_times {
	uint64_t stop_ns;  /* from the first stop request until all threads had stopped */
	uint64_t read_ns;  /* from then until registers and stacks were read */
	uint64_t pause_ns; /* longest uninterrupted hold of any thread, failed attempts included */
	uint64_t sum_ns;   /* of all holds, failed attempts included */
	unsigned holds;    /* without failed attempts */
	unsigned vain;     /* failed attempts: not all threads stopped in time, so all were released */
};
void dp_stopped_times(const struct dp_stopped *s, struct dp_stopped_times *ret);

#endif
