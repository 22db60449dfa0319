/* SPDX-License-Identifier: MIT */
/*
 * The ptrace half of injector/: holding threads, borrowing one for system calls, reading and writing text. The other half
 * (target.c, layout.c, install.c, remove.c, recover.c, watch.c) says what is done with them.
 */
#ifndef DP_INJECTOR_TRACEE_H
#define DP_INJECTOR_TRACEE_H

#include "base/addr.h"
#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* ---- checks.c: everything that can be known without a stop and without a change ------------------------------------------- */

struct dp_process { /* what /proc says of a process */
	pid_t pid;   /* thread group leader */
	pid_t alive; /* a thread that is not a zombie: use its /proc/PID/task/TID for maps and mem */
	pid_t ns_pid; /* its pid in its own innermost pid namespace */
	char comm[64];
	uint64_t start_time;
	bool leader_zombie, seccomp, seccomp_strict, shadow_stack; /* the last three: of any thread */
	/*
	 * Not filled by dp_process_check(): its memory (dp_mem_open()), or 0. Copies of this struct use it as well; who opened it closes
	 * it, behind them.
	 */
	int mem;
	/* Likewise its maps, for questions about one address: opened with `mem`, or 0. */
	int maps;
	/* Nor this: the text of maps as it was read earlier, or NULL. A borrower looks there for a place first, and
	 * checks what it finds, so that no thread has to be held while the file is read. */
	const char *known_maps;
	/* If calls_size: the borrower's code is put nowhere else, for only from there the thread's calls are made (dispatch.h). */
	uint64_t calls_start, calls_size;
	/* The borrower's code is not put in here: these pages are about to be replaced. */
	uint64_t avoid_start, avoid_end;
};
/*
 * Fills `ret` or refuses: DP_TAG_NO_PROCESS, ZOMBIE, KERNEL_THREAD, WRONG_ARCH, TRACED (names pid and comm of the tracer), PERMISSION
 * (ptrace_scope, uid, dumpable or capability, and the fix), SECCOMP unless allowed (strict mode is always refused unless root),
 * `pid` may be any thread of the group.
 */
struct dp_error *dp_process_check(pid_t pid, bool allow_seccomp, struct dp_process *ret) DP_MUST_CHECK;
/* The whole text of /proc/PID/task/TID/maps, malloc'ed. */
struct dp_error *dp_process_maps(const struct dp_process *p, char **ret) DP_MUST_CHECK;
/* Field 22 of /proc/PID/stat; 0 if there is no such process. */
uint64_t dp_process_start_time(pid_t pid);
/* CLOCK_MONOTONIC in ns. */
uint64_t dp_now_ns(void);

/* ---- freeze.c: all threads held ------------------------------------------------------------------------------------------------ */

struct dp_held { /* one held thread */
	pid_t tid;
	pid_t ns_tid;
	struct user_regs_struct regs; /* raw, as of the stop */
	bool regs_changed;            /* dp_thaw() writes `regs` back if set */
	bool in_syscall_stop;         /* stopped inside a system call: orig_rax >= 0 */
	uint64_t held_at_ns;          /* when it was asked to stop */
	/* private to freeze.c and borrow.c: */
	bool seized, stopped, exited, group_stopped;
	bool addressed;     /* signals of the process, or of children, are sent to it: see eintr.c */
	uint64_t paused_ns; /* holds.c */
	int pending_signal; /* signal-delivery stop met while stopping: injected again on release */
};

struct dp_freeze {
	struct dp_held *thread;
	size_t n;
	uint64_t begin_ns, end_ns; /* first thread asked to stop; last one released */
	bool parted;               /* dp_thaw_but() */
};
/*
 * Seizes and interrupts every thread of `p`, again until no new one appears, waits until all stand, reads their registers, and
 * mends the -EINTR of calls that the stop interrupted (decision 10: rax -4 in the list becomes -514, in `regs`, written
 * back at once so that it also holds if the tool dies). If not all stand within `limit_ns` (and again that for those that signals are sent to, which are taken last), everything is released: DP_TAG_VFORK
 * (a thread waits for its vfork child) or DP_TAG_UNSTOPPABLE. DP_TAG_GONE if the process ended. DP_TAG_TRACED if another tracer came.
 * With an error *ret has no threads, and from begin_ns to end_ns some stood in vain (0 and 0: none did).
 */
struct dp_error *dp_freeze_all(const struct dp_process *p, uint64_t limit_ns, struct dp_freeze *ret) DP_MUST_CHECK;
/* Writes changed registers back, lets every thread go (PTRACE_DETACH), frees the list. */
void dp_thaw_all(struct dp_freeze *f);
/* All but one: what keeps that one shall not keep the others. */
void dp_thaw_but(struct dp_freeze *f, const struct dp_held *but);

/* ---- borrow.c: one thread lent for system calls ------------------------------------------------------------------------------------ */

struct dp_borrow; /* opaque */
/*
 * Takes one thread: of an existing freeze (`f` not NULL: the thread stays held afterwards), or seizes one for itself. Threads in a
 * timed call on the -EINTR list are passed over, and so are threads whose release could not be exact. Writes the boot code (a
 * `syscall`, the tripwire call and the self-restore with this thread's registers) into unused bytes at the end of an executable file
 * mapping of the target, and keeps the bytes that were there. DP_TAG_NO_THREAD if none can be borrowed, DP_TAG_VFORK,
 * DP_TAG_GONE, DP_TAG_UNSTOPPABLE. With `f` NULL the thread's stop is bounded by limit_ns.
 */
struct dp_error *dp_borrow_begin(const struct dp_process *p, struct dp_freeze *f, uint64_t limit_ns, bool suspend_seccomp,
				 struct dp_borrow **ret) DP_MUST_CHECK;
/* Runs one system call in the target on the borrowed thread. `*result` is the raw return value (-errno on failure). */
struct dp_error *dp_remote_syscall(struct dp_borrow *b, long nr, const uint64_t args[6], int64_t *result) DP_MUST_CHECK;
/* The same for a call that has to succeed: a failure is an error in which the call is called `name`. */
struct dp_error *dp_remote_call(struct dp_borrow *b, const char *name, long nr, const uint64_t args[6], int64_t *result) DP_MUST_CHECK;
/*
 * Several system calls, without a stop between them (borrow_script.c). `room`: DP_SCRIPT_ROOM bytes of the target's memory that are
 * ours and were zero before they were first used; 0, or where a thread of an earlier script has not come home: each call between two stops.
 * Ends with the first that returns something else than `want`, and between two calls when until_ns has come. *done: how many
 * returned what they should; the one behind them, if `made`, did not.
 */
struct dp_step {
	long nr;
	uint64_t args[6];
	int64_t want;
	int64_t got; /* out, valid if `made` */
	bool made;   /* out */
};
#define DP_SCRIPT_ROOM 2848u
struct dp_error *dp_remote_script(struct dp_borrow *b, uint64_t room, struct dp_step *step, size_t n, uint64_t until_ns,
				  size_t *done) DP_MUST_CHECK;
/* With all threads held, and none in a borrower's code: whatever script was there is over. */
void dp_script_forget(const struct dp_process *p, uint64_t room);
/* Does the thread work for us no more, since a call did not return, or since we came too late and it went home? */
bool dp_borrow_lost(const struct dp_borrow *b);
/* The fs base and the ids of the borrowed thread. */
uint64_t dp_borrow_fs_base(const struct dp_borrow *b);
pid_t dp_borrow_tid(const struct dp_borrow *b);
pid_t dp_borrow_ns_tid(const struct dp_borrow *b);
/*
 * Gives the thread back exactly (tripwire, raw registers), removes the boot code (the page is restored byte for byte), and releases
 * the thread if it was not part of a freeze. `held_ns`: how long it was held. Accepts a borrow whose thread has died.
 */
struct dp_error *dp_borrow_end(struct dp_borrow *b, uint64_t *held_ns);

/* ---- memory.c ------------------------------------------------------------------------------------------------------------------------ */

/* Reads without a stop (process_vm_readv, /proc/PID/mem as fallback); bytes read from the front. */
size_t dp_mem_read(const struct dp_process *p, dp_addr addr, void *buf, size_t n);
/* Writes text, also where it is not writable, through /proc/PID/task/TID/mem; `held_tid` must be ptrace-stopped by us. PTRACE_POKEDATA as
 * fallback (*by_poke is set, may be NULL). */
struct dp_error *dp_mem_write_text(const struct dp_process *p, pid_t held_tid, dp_addr addr, const void *buf, size_t n,
				   bool *by_poke) DP_MUST_CHECK;
/*
 * /proc/PID/task/TID/mem into p->mem: from here on what is written goes to the memory that the process has now, or nowhere, whatever
 * becomes of its thread ids. DP_TAG_GONE if the process is no longer the one that was looked at.
 */
struct dp_error *dp_mem_open(struct dp_process *p) DP_MUST_CHECK;
void dp_mem_close(struct dp_process *p);
/*
 * Writes data that the target itself could write, without a stop. Without p->mem the thread p->alive has to be held: while it is
 * traced no other can get its id.
 */
struct dp_error *dp_mem_write(const struct dp_process *p, dp_addr addr, const void *buf, size_t n) DP_MUST_CHECK;
struct dp_mem_part {
	uint64_t at;
	const void *bytes;
	size_t n;
};
/* Several of them, in this order. */
struct dp_error *dp_mem_write_parts(const struct dp_process *p, const struct dp_mem_part *part, size_t n) DP_MUST_CHECK;

/* ---- launch.c -------------------------------------------------------------------------------------------------------------------------- */

struct dp_launch; /* opaque: a started command, held before its own first code */
/* See dp_target_launch(). Held means: stopped under ptrace by us at its entry point, registers as the program expects them. */
struct dp_error *dp_launch_start(char *const argv[], struct dp_launch **ret, pid_t *pid) DP_MUST_CHECK;
/* Is the executable static (no interpreter)? Then no TLS exists yet. */
bool dp_launch_is_static(const struct dp_launch *l);
/* The held thread as a freeze of one, so that dp_borrow_begin() and installs can use it; dp_thaw_all() on it releases the command. */
struct dp_freeze *dp_launch_freeze(struct dp_launch *l);
/* Detaches if still held; frees. Does not wait for or kill the command. Accepts NULL. */
void dp_launch_destroy(struct dp_launch *l);

#endif
