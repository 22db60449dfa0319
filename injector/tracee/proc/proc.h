/* SPDX-License-Identifier: MIT */
/* Reads /proc of processes and threads. Private to the ptrace half of injector/. */
#ifndef DP_INJECTOR_TRACEE_PROC_PROC_H
#define DP_INJECTOR_TRACEE_PROC_PROC_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The file's whole text, appended to `b`; false (errno set) if it cannot be read. */
bool dp_proc_slurp(struct dp_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct dp_task_stat {
	char state; /* R S D T t Z X I */
	pid_t ppid;
	uint64_t flags; /* PF_ flags of the kernel */
	uint64_t start_time;
	uint64_t memory;      /* bytes of address space */
	uint64_t start_stack; /* where exec put argc; 0: we may not trace the process */
};
#define DP_PF_KTHREAD 0x00200000u

/* /proc/PID/task/TID/stat (with tid 0: /proc/PID/stat). */
bool dp_proc_stat(pid_t pid, pid_t tid, struct dp_task_stat *ret);
/* The same from the file's text. */
bool dp_stat_parse(const char *text, struct dp_task_stat *ret);

/*
 * A thread of the process that only runs kernel code: io_uring's workers and pollers, vhost's workers. It is listed and counted
 * like any other. Never stop it: the request it works on would fail. It executes no text of the program, so there is no reason to
 * stop it.
 */
bool dp_task_is_worker(const struct dp_task_stat *stat);
/* The same for a given kernel, 1000 * major + minor: the flags' meaning has changed. */
bool dp_flags_of_worker(uint64_t flags, unsigned kernel);
/* False too if there is no such thread. */
bool dp_proc_is_worker(pid_t pid, pid_t tid);

/* The text after "NAME:" and white space in a status file's text, or NULL. */
const char *dp_status_find(const char *status, const char *name);
long dp_status_long(const char *status, const char *name, long missing);
/* The last number of the NSpid line: the id in the innermost pid namespace. *nested: the line has more than one. */
pid_t dp_status_ns_pid(const char *status, bool *nested);

/* Calls `visit` for each process that /proc lists, until it returns false. False (errno set): /proc cannot be read. */
bool dp_proc_each(bool (*visit)(pid_t pid, void *data), void *data);

struct dp_tids {
	pid_t *tid;
	size_t n;
};
/* Lists the thread ids of a process, malloc'ed; n = 0 if there is no such process. False: out of memory or descriptors. */
bool dp_proc_tids(pid_t pid, struct dp_tids *ret);

/* Replaces control characters by '?', for terminals and one-line logs: other programs chose the text. */
void dp_printable(char *text);
/* "comm" of a process or thread, printable; "?" if unknown. */
void dp_proc_comm(pid_t pid, char *ret, size_t n);

/* Does the thread wait for its vfork child? Judged by the system call it is blocked in. */
bool dp_proc_in_vfork(pid_t pid, pid_t tid);
/* The system call that a thread is blocked in, and its arguments; false if it runs or the file cannot be read. */
bool dp_proc_syscall(pid_t pid, pid_t tid, long *nr, uint64_t args[6]);
struct dp_proc_call {
	long nr; /* -1: none, and sp and pc are 0 */
	uint64_t args[6], sp, pc;
};
/* The same with the thread's stack pointer and the address after the call: together they identify one call. */
void dp_proc_call(pid_t pid, pid_t tid, struct dp_proc_call *ret);
/* Has the thread children that still exist? False too if the kernel does not tell. */
bool dp_proc_has_children(pid_t pid, pid_t tid);

/* Calls `each` for every child that runs the same program, as a service's workers do. False: /proc cannot be read. */
bool dp_proc_children(pid_t pid, void (*each)(pid_t child, void *data), void *data);

/* One field of /proc/PID/task/TID/status as a signal mask. */
uint64_t dp_proc_mask(pid_t pid, pid_t tid, const char *field);
/* Several at once; a missing field gives 0. */
void dp_proc_masks(pid_t pid, pid_t tid, const char *const *fields, uint64_t *ret, size_t n);

#endif
