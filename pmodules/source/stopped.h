/* SPDX-License-Identifier: MIT */
/*
 * A process held still: its threads with their registers, and its memory as of one moment. From a living process (all threads
 * frozen, or frozen, copied by fork and released) or from a core file. The order of calls:
 *
 *   dp_stopped_open / _open_core   nothing is stopped yet: maps, image (debug information may be loaded: the rehearsal)
 *   dp_stopped_hold                all threads stand; registers are read (mode fork: the copy is made, the threads go on)
 *   dp_stopped_read ...            memory as of that moment
 *   dp_stopped_release             the threads go on (stop, quick); pause_ns is known
 *   dp_stopped_read ...            what was read before comes from what is kept; the rest from the copy (fork), or from the process as it
 *                                is now (stop, quick: *late is set), or from the core
 *   dp_stopped_close               the copy is gone, everything is freed
 *
 * The target's safety is the injector's: every thread is given back exactly, calls that the stop interrupted are mended, and a tool that dies
 * lets everything go on (the copy is killed with it).
 */
#ifndef DP_PMODULES_STILL_H
#define DP_PMODULES_STILL_H

#include "base/error.h"
#include "injector/tracee/proc/proc.h"
#include "probes/probes.h"

#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>

enum dp_stopped_mode { DP_STOPPED_STOP, DP_STOPPED_FORK, DP_STOPPED_QUICK, DP_STOPPED_CORE };

struct dp_stopped_hit { /* a thread that waits in the agent for this snapshot (injector/ring/park.h) */
	pid_t ns_tid; /* in the target's pid namespace */
	struct user_regs_struct regs;
	bool (*take)(void *data);    /* all threads stand: does it still wait? It waits on then; asked at every hold */
	bool (*waits)(void *data);   /* behind it: long enough for another hold? */
	void (*let_go)(void *data);  /* it need not wait any longer */
	void *data;
};

struct dp_stopped_options {
	enum dp_stopped_mode mode;
	uint64_t max_pause_ns;   /* the threads go on after that, whatever is still to be read (then it is late); tries in vain count, and have half of it; 0: no bound */
	uint64_t usual_ns;       /* without max_pause_ns, mode stop: the same, but of one hold, and without tries in vain; 0: no bound */
	uint64_t stack_bytes;    /* of each thread, from its rsp on, are read in the pause at once; 0: the default, 64 KiB */
	uint64_t work_ns;        /* without max_pause_ns: so long may pass between two reads under the hold, beside the usual (injector/tracee/stop/watchdog.h) */
	uint64_t max_bytes;      /* of memory that is kept; 0: the default, 64 MiB */
	bool allow_seccomp;
	const struct dp_stopped_hit *hit; /* or NULL; dp_stopped_hold() is DP_TAG_GONE if it has gone on */
};

struct dp_stopped_thread {
	pid_t tid;
	char name[64];
	char state;                   /* before the stop */
	struct user_regs_struct regs; /* the program's own: a thread that stands in a stub of dynprobe's is shown where its program is */
	bool has_vector;
	uint64_t xmm[16][2];          /* has_vector: low halves of the vector registers */
	int64_t syscall;              /* in which it waits, or -1 */
	uint64_t args[6];
	siginfo_t siginfo;            /* si_signo 0: none */
	bool is_fault;                /* it stands because of siginfo (a core's first thread), or it is the probe's */
	uint64_t parked_ns;
	const char *kstack;           /* text of /proc/PID/task/TID/stack, of the call in which it waits; or NULL */
	struct dp_proc_call kcall;    /* in which it was when that was read, before the stop */
};

struct dp_stopped; /* opaque */

struct dp_error *dp_stopped_open(pid_t pid, const struct dp_stopped_options *options, struct dp_stopped **ret) DP_MUST_CHECK;
/* `exe` may be NULL: as the core's NT_FILE names it. DP_TAG_BAD_CORE. */
struct dp_error *dp_stopped_open_core(const char *core, const char *exe, const struct dp_stopped_options *options, struct dp_stopped **ret) DP_MUST_CHECK;
/* Where fork is refused (overcommit, a limit, seccomp) mode fork falls back to stop; why_not_fork() says why. */
struct dp_error *dp_stopped_hold(struct dp_stopped *s) DP_MUST_CHECK;
/*
 * How many pages were read after the release that had not been read before it. If there are any, dp_stopped_hold() may be called once more: it
 * begins a new moment, in which those are read at once as well.
 */
size_t dp_stopped_nlate(const struct dp_stopped *s);
/* May it be held once more? Not if the thread of a hit has gone on, or is about to. */
bool dp_stopped_may_hold_again(const struct dp_stopped *s);
/* Lets the threads go if their time (max_pause_ns) is over; every read does. */
void dp_stopped_in_time(struct dp_stopped *s);
/* No further hold will come: the thread of a hit may go on. Behind the first call, and without a hit, it does nothing. */
void dp_stopped_let_go(struct dp_stopped *s);
void dp_stopped_release(struct dp_stopped *s);
/* What a snapshot needed is given back; what is known of the process's files stays, for dp_stopped_again(). */
void dp_stopped_shed(struct dp_stopped *s);
/*
 * As if *s were closed and opened anew, but with the same image, as long as the process has mapped the same code. *ret: false if it has not; then,
 * and with an error, *s is as it was.
 */
struct dp_error *dp_stopped_again(struct dp_stopped **s, const struct dp_stopped_options *options, bool *ret) DP_MUST_CHECK;
struct dp_stopped *dp_stopped_close(struct dp_stopped *s); /* releases first; accepts NULL, returns NULL */

pid_t dp_stopped_pid(const struct dp_stopped *s);
const char *dp_stopped_comm(const struct dp_stopped *s);
enum dp_stopped_mode dp_stopped_mode(const struct dp_stopped *s);
const char *dp_stopped_why_not_fork(const struct dp_stopped *s); /* NULL: it was not asked for, or it is a copy */
/* The i-th thing that the user has to know of a core file, or NULL. */
const char *dp_stopped_doubt(const struct dp_stopped *s, size_t i);
struct dp_image *dp_stopped_image(struct dp_stopped *s);
size_t dp_stopped_nthreads(const struct dp_stopped *s);
const struct dp_stopped_thread *dp_stopped_thread(const struct dp_stopped *s, size_t i); /* after hold; ascending tids */
bool dp_stopped_is_held(const struct dp_stopped *s);
/* Before the hold: has the process the code mapped that it had at dp_stopped_open()? */
bool dp_stopped_is_current(const struct dp_stopped *s);
/* Memory; the number of bytes from the front that could be read. *late (may be NULL): not of the moment of the hold. */
size_t dp_stopped_read(struct dp_stopped *s, uint64_t addr, void *buf, size_t n, bool *late);
/* The same before dp_stopped_hold(), from the running process, not kept: for rehearsals. */
size_t dp_stopped_peek(struct dp_stopped *s, uint64_t addr, void *buf, size_t n);
/* Registers and stacks of running threads without a stop are not to be had; the rehearsal looks at a few threads at a time, each stopped for
 * a moment (some 20 us, up to a few of that where they wait for each other). Calls `each` per thread, with the thread going on already. */
struct dp_error *dp_stopped_sample(struct dp_stopped *s, void (*each)(const struct dp_stopped_thread *t, void *data), void *data) DP_MUST_CHECK;
/* What was read and kept, as ranges: for the file. */
void dp_stopped_kept(struct dp_stopped *s, void (*each)(uint64_t addr, const uint8_t *bytes, size_t n, void *data), void *data);
struct dp_stopped_times {
	uint64_t stop_ns;  /* from the first thread asked to stop until all stood */
	uint64_t read_ns;  /* then, until registers and stacks were read */
	uint64_t pause_ns; /* longest time that any thread was held in one go, in vain or not */
	uint64_t sum_ns;   /* of all holds together, and of those in vain */
	unsigned holds;    /* without those in vain */
	unsigned vain;     /* not all threads stood in time: all went on, and it was tried again */
};
void dp_stopped_times(const struct dp_stopped *s, struct dp_stopped_times *ret);

#endif
