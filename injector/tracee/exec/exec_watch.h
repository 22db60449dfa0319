/* SPDX-License-Identifier: MIT */
/*
 * Waits for processes that execute certain programs. The kernel asks before it lets an exec open such a file (fanotify,
 * FAN_OPEN_EXEC_PERM; on the file alone, so that an exec of any other program asks nobody), and the exec waits for the answer. A
 * thread of the watch reads these questions, so that one is answered also while the tool is busy: after `wait_ns` without
 * dynprobe's attention the program starts unprobed. If the tool dies, the kernel answers for it.
 */
#ifndef DP_INJECTOR_TRACEE_EXEC_EXEC_WATCH_H
#define DP_INJECTOR_TRACEE_EXEC_EXEC_WATCH_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dp_exec_tree;

#define DP_EXEC_WAIT_NS UINT64_C(1000000000)

struct dp_exec_watch; /* opaque */
struct dp_exec_file { /* ino 0: unknown */
	uint64_t dev, ino;
};
struct dp_exec_start {
	pid_t pid, tid; /* the thread that is about to execute the program, and its process */
	int fd;         /* of the question, in the table of the watch's thread: the program's file; -1 once it is answered */
	bool late;      /* it was let go, because the tool took too long */
	bool any;       /* whatever it executes is wanted: the file may be the loader of a program that does not ask */
	bool loads;     /* the question is of a loader that opens the file, to map it */
	struct dp_exec_file before, file; /* what the process executes until then; the file of the question */
	bool elf, gains;                  /* that file: an ELF file, and one that the kernel gives privileges (setuid) */
};

struct dp_exec_watched {         /* must outlive the watch */
	const char *const *path; /* every exec of these files, also if one is replaced later */
	size_t npaths;
	const char *const *name; /* every exec of a program of such a name (exec_named.h) */
	size_t nnames;
	/*
	 * Only execs by processes of this set; without paths and names all of theirs. Where the files are not known before, the
	 * execs of all processes wait for an answer.
	 */
	struct dp_exec_tree *tree;
	bool all; /* every exec by any process; or: */
	/* Every exec of the files of `path`, and every loader that opens one, at the start of a program or in dlopen(). Whoever
	 * else opens one of these files is answered at once. */
	bool modules;
	uint64_t wait_ns; /* how long a process waits at most; 0: DP_EXEC_WAIT_NS */
};
/* DP_TAG_EXEC: a path that leads to no file; DP_TAG_PERMISSION: this user or this kernel cannot watch. */
struct dp_error *dp_exec_watch_create(const struct dp_exec_watched *what, struct dp_exec_watch **ret) DP_MUST_CHECK;
/* Lets all go that wait. Accepts NULL. */
struct dp_exec_watch *dp_exec_watch_destroy(struct dp_exec_watch *w);
/*
 * With a set of processes, or all: from now on they wait. Until then all go on, because a process that attach waits for may
 * itself wait in vfork() for such an exec.
 */
void dp_exec_watch_hold(struct dp_exec_watch *w);
/* How long a process waits at most. */
uint64_t dp_exec_watch_wait_ns(const struct dp_exec_watch *w);
/* With `modules`: one more file. What cannot be marked is not seen. */
void dp_exec_watch_add(const struct dp_exec_watch *w, const char *path);
/* Readable while a start waits. */
int dp_exec_watch_fd(const struct dp_exec_watch *w);
/* Takes the start that has waited longest; false: none. Allow it within `ns`: then the thread of the watch does so. */
bool dp_exec_watch_take(struct dp_exec_watch *w, uint64_t ns, struct dp_exec_start *ret);
/* Lets the start that was taken last go on, and says in start->late whether it had been let go already. */
void dp_exec_watch_allow(struct dp_exec_watch *w, struct dp_exec_start *start);

#endif
