/* SPDX-License-Identifier: MIT */
/*
 * The ptrace half of injector/: stops threads, borrows one for system calls, reads and writes memory. The other half (target/,
 * patch/) decides what is done with it.
 */
#ifndef DP_INJECTOR_TRACEE_TRACEE_H
#define DP_INJECTOR_TRACEE_TRACEE_H

#include "base/addr.h"
#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* ---- checks.c: checks without a stop and without a change ------------------------------------------------------------------ */

/* filter.c: the system calls that dynprobe makes in a process, as seccomp filters see them. */
enum dp_calls {
	DP_CALLS_ATTACH, /* of borrowed threads */
	DP_CALLS_HIT,    /* of hits: conditions, memory, backtraces, waiting, fork children, the handlers of traps and faults */
	DP_CALLS_COPY,   /* of a snapshot in mode fork */
	DP_CALLS_ANY,    /* all there are; here an error that the filter makes the call return is not counted */
	DP_CALLS_KINDS
};
struct dp_filter_verdict {
	int unreadable;                   /* errno: the filters could not be read; 0: they were */
	char forbids[DP_CALLS_KINDS][64]; /* one call of each kind that is not let through: "mremap kills the process", or "" */
};

struct dp_process {   /* a process as /proc describes it */
	pid_t pid;    /* thread group leader */
	pid_t alive;  /* a thread that is not a zombie: use its /proc/PID/task/TID for maps and mem */
	pid_t ns_pid; /* its pid in its innermost pid namespace */
	bool nested;  /* which is not the one of our /proc */
	char comm[64];
	uint64_t start_time;
	bool leader_zombie, seccomp_strict, shadow_stack; /* the last two: true for any thread */
	bool filtered;                                    /* a thread is under seccomp */
	bool seccomp; /* and calls of a borrowed thread may be refused: its filters must be suspended meanwhile */
	/* After dp_filter_take(): what the filters of all threads forbid (dp_filter_forbids()). */
	bool judged;
	struct dp_filter_verdict filter;
	unsigned filters; /* of each thread; 0: not known, or not the same number */
	/* The memory file (dp_mem_open()), or 0. dp_process_check() leaves it 0. Copies share it; its opener closes it last. */
	int mem;
	/* Likewise the maps file, for questions about one address: opened with `mem`, or 0. */
	int maps;
	/* The text of maps as read earlier, or NULL; not filled by dp_process_check(). A borrower first looks for a place there,
	 * and checks what it finds, so that no thread is held while the file is read. */
	const char *known_maps;
	/* If calls_size: the borrower's code must be here, because the thread's calls are made only from here (dispatch.h). */
	uint64_t calls_start, calls_size;
	/* The borrower's code must not be here: these pages are about to be replaced. */
	uint64_t avoid_start, avoid_end;
};
/*
 * Fills `ret` or refuses: DP_TAG_NO_PROCESS, ZOMBIE, KERNEL_THREAD, WRONG_ARCH, TRACED (names pid and comm of the tracer),
 * PERMISSION (ptrace_scope, uid, dumpable or capability, and the fix), SECCOMP unless allowed (strict mode is always refused
 * unless root). `pid` may be any thread of the group.
 */
struct dp_error *dp_process_check(pid_t pid, bool allow_seccomp, struct dp_process *ret) DP_MUST_CHECK;
/* The same for a tool that stops no thread, so another tracer does not matter. To stop one is still DP_TAG_TRACED. */
struct dp_error *dp_process_check_to_read(pid_t pid, bool allow_seccomp, struct dp_process *ret) DP_MUST_CHECK;
/* The whole text of /proc/PID/task/TID/maps, malloc'ed. */
struct dp_error *dp_process_maps(const struct dp_process *p, char **ret) DP_MUST_CHECK;
/* Has it given up its memory, as a process that is ending does? */
bool dp_process_has_no_memory(const struct dp_process *p);
/* Field 22 of /proc/PID/stat; 0 if there is no such process. */
uint64_t dp_process_start_time(pid_t pid);
/* CLOCK_MONOTONIC in ns. */
uint64_t dp_now_ns(void);

/* ---- freeze.c: all threads stopped ----------------------------------------------------------------------------------------- */

struct dp_held { /* one held thread */
	pid_t tid;
	pid_t ns_tid;
	pid_t pid;                    /* its process; 0: not known, and it is the only thread */
	struct user_regs_struct regs; /* raw, at the stop */
	bool regs_changed;            /* dp_thaw() writes `regs` back if set */
	bool in_syscall_stop;         /* stopped inside a system call: orig_rax >= 0 */
	uint64_t held_at_ns;          /* when it was asked to stop */
	/* private to freeze.c and borrow.c: */
	bool seized, stopped, exited, group_stopped;
	bool addressed;     /* signals to the process, or from children, go to it: see eintr.c */
	uint64_t paused_ns; /* holds.c */
	int pending_signal; /* the signal of a signal-delivery stop met while stopping: delivered at release */
};

struct dp_freeze {
	struct dp_held *thread;
	size_t n;
	uint64_t begin_ns, end_ns; /* first thread asked to stop; last one released */
	bool parted;               /* dp_thaw_but() */
};
/*
 * Seizes and interrupts every thread of `p`, repeatedly until no new one appears, waits until all have stopped, reads their
 * registers, and restarts the calls that the stop interrupted with -EINTR (decision 10: for listed calls rax -4 becomes -514, in
 * `regs`, and is written back at once so that it also holds if the tool dies). If not all stop within `limit_ns` (plus the same
 * again for those that signals are sent to, which are stopped last), releases all: DP_TAG_VFORK (a thread waits for its vfork
 * child) or DP_TAG_UNSTOPPABLE. DP_TAG_GONE if the process ended. DP_TAG_TRACED if another tracer came. On error *ret has no
 * threads, and from begin_ns to end_ns some were stopped for nothing (0 and 0: none was).
 */
struct dp_error *dp_freeze_all(const struct dp_process *p, uint64_t limit_ns, struct dp_freeze *ret) DP_MUST_CHECK;
/* Writes changed registers back, releases every thread (PTRACE_DETACH), frees the list. */
void dp_thaw_all(struct dp_freeze *f);
/* Releases all but one, which then does not delay the others. */
void dp_thaw_but(struct dp_freeze *f, const struct dp_held *but);

/* ---- borrow.c: one thread borrowed for system calls ------------------------------------------------------------------------ */

struct dp_borrow; /* opaque */
/*
 * Borrows one thread: from an existing freeze (`f` not NULL: the thread stays held afterwards), or by seizing one. Skips threads
 * in a timed call on the -EINTR list, and threads that could not be restored exactly. Writes the boot code (a `syscall`, the
 * self-restore with this thread's registers and the script loop) into unused bytes at the end of an executable file mapping of
 * the target, which are zero before and after. DP_TAG_NO_THREAD if none can be borrowed, DP_TAG_VFORK, DP_TAG_GONE,
 * DP_TAG_UNSTOPPABLE. With `f` NULL, limit_ns bounds the thread's stop.
 */
struct dp_error *dp_borrow_begin(const struct dp_process *p, struct dp_freeze *f, uint64_t limit_ns, bool suspend_seccomp,
                                 struct dp_borrow **ret) DP_MUST_CHECK;
/* Runs one system call in the target on the borrowed thread. `*result` is the raw return value (-errno on failure). */
struct dp_error *dp_remote_syscall(struct dp_borrow *b, long nr, const uint64_t args[6], int64_t *result) DP_MUST_CHECK;
/* The same for a call that must succeed: a failure is an error that names the call `name`. */
struct dp_error *dp_remote_call(struct dp_borrow *b, const char *name, long nr, const uint64_t args[6],
                                int64_t *result) DP_MUST_CHECK;
/*
 * Runs several system calls without a stop in between (borrow_script.c). `room`: DP_SCRIPT_ROOM bytes of our memory in the
 * target, zero before their first use. If it is 0, or a thread of an earlier script still uses it, each call runs between two
 * stops. Ends at the first call that does not return `want`, and between two calls at until_ns. *done: the number of calls that
 * returned `want`; the one after them, if `made`, did not.
 */
struct dp_step {
	long nr;
	uint64_t args[6];
	int64_t want;
	int64_t got; /* out, valid if `made` */
	bool made;   /* out */
};
#define DP_SCRIPT_ROOM 2848u
/* DP_TAG_REMOTE for calls without a result, each with a remedy: the kernel refused with `sys`; a signal or time came first; neither. */
struct dp_error *dp_remote_refused(int sys, const char *fmt, ...) __attribute__((format(printf, 2, 3))) DP_IS_ERROR;
struct dp_error *dp_remote_unfinished(const char *fmt, ...) __attribute__((format(printf, 1, 2))) DP_IS_ERROR;
bool dp_remote_is_unfinished(const struct dp_error *err); /* the second: NULL or another error is not */
struct dp_error *dp_remote_stuck(pid_t pid, const char *comm, pid_t tid) DP_IS_ERROR;
struct dp_error *dp_remote_script(struct dp_borrow *b, uint64_t room, struct dp_step *step, size_t n, uint64_t until_ns,
                                  size_t *done) DP_MUST_CHECK;
/* Marks the room as free. Call it with all threads held, and none in a borrower's code: no script can be running then. */
void dp_script_forget(const struct dp_process *p, uint64_t room);
/* Is the thread no longer usable, because a call did not return or because we were too late and it restored itself? */
bool dp_borrow_lost(const struct dp_borrow *b);
/* The borrowed thread's fs base and ids. */
uint64_t dp_borrow_fs_base(const struct dp_borrow *b);
pid_t dp_borrow_tid(const struct dp_borrow *b);
pid_t dp_borrow_ns_tid(const struct dp_borrow *b);
/*
 * Restores the thread exactly (mask, raw registers), removes the boot code (the page's bytes are restored), and releases the
 * thread if it was not part of a freeze. `held_ns`: how long it was held. Accepts a borrow whose thread has died.
 */
struct dp_error *dp_borrow_end(struct dp_borrow *b, uint64_t *held_ns);
/* Has a thread of it kept its code, of the last 16 that were given up? Then the code stays until nobody can be in it. */
bool dp_borrow_has_left_code(pid_t pid);

/* ---- memory.c -------------------------------------------------------------------------------------------------------------- */

/* Reads without a stop (process_vm_readv, /proc/PID/mem as fallback). Returns the number of bytes read from the front. */
size_t dp_mem_read(const struct dp_process *p, dp_addr addr, void *buf, size_t n);
/*
 * Writes text, also if it is not writable, through /proc/PID/task/TID/mem; we must have `held_tid` ptrace-stopped. Falls back to
 * PTRACE_POKEDATA (then *by_poke is set; may be NULL).
 */
struct dp_error *dp_mem_write_text(const struct dp_process *p, pid_t held_tid, dp_addr addr, const void *buf, size_t n,
                                   bool *by_poke) DP_MUST_CHECK;
/*
 * Opens /proc/PID/task/TID/mem as p->mem: from now on writes go to the memory that the process has now, or fail, even if its
 * thread ids are reused. DP_TAG_GONE if the process is no longer the one that was checked.
 */
struct dp_error *dp_mem_open(struct dp_process *p) DP_MUST_CHECK;
void dp_mem_close(struct dp_process *p);
/*
 * Writes data that the target itself could write, without a stop. Without p->mem the thread p->alive must be held: while it is
 * traced its id is not reused.
 */
struct dp_error *dp_mem_write(const struct dp_process *p, dp_addr addr, const void *buf, size_t n) DP_MUST_CHECK;
struct dp_mem_part {
	uint64_t at;
	const void *bytes;
	size_t n;
};
/* Writes several parts, in this order. */
struct dp_error *dp_mem_write_parts(const struct dp_process *p, const struct dp_mem_part *part, size_t n) DP_MUST_CHECK;

/* ---- launch.c -------------------------------------------------------------------------------------------------------------- */

struct dp_launch; /* opaque: a started command, held before any of its own code runs */
/* See dp_target_launch(). Held means: ptrace-stopped by us at its entry point, with the registers that the program expects. */
struct dp_error *dp_launch_start(char *const argv[], struct dp_launch **ret, pid_t *pid) DP_MUST_CHECK;
/* A process that the calling thread traces, and that is stopped: */
enum dp_launch_at {
	DP_LAUNCH_EXECED,   /* at PTRACE_EVENT_EXEC; */
	DP_LAUNCH_PREPARED, /* at the exit of a system call of its loader, which prepares the program; */
	DP_LAUNCH_LOADS,    /* at the exit of dlopen()'s open(): it has one thread */
};
struct dp_launch_adopted {
	pid_t pid;
	enum dp_launch_at at;
	uint64_t stack;    /* PREPARED: where exec put argc */
	uint64_t until_ns; /* until then its loader may run */
};
/*
 * The same for a process that was not started by us. One that LOADS is held where the file has been mapped and none of its code
 * has run: not at its entry point. Released if this fails; its program then goes on.
 */
struct dp_error *dp_launch_adopt(const struct dp_launch_adopted *what, struct dp_launch **ret) DP_MUST_CHECK;
/* Was it adopted? Then its end is not to be its program's. */
bool dp_launch_is_adopted(const struct dp_launch *l);
/* Is the executable static (no interpreter)? Then no TLS exists yet. */
bool dp_launch_is_static(const struct dp_launch *l);
/* The held thread as a freeze of one, for dp_borrow_begin() and installs; dp_thaw_all() on it releases the command. */
struct dp_freeze *dp_launch_freeze(struct dp_launch *l);
/* Detaches if still held; frees. Does not wait for or kill the command. Accepts NULL. */
void dp_launch_destroy(struct dp_launch *l);

#endif
