/* SPDX-License-Identifier: MIT */
/* A process that executes a watched program is held before the program's first instruction. */
#ifndef DP_INJECTOR_TRACEE_EXEC_EXEC_CATCH_H
#define DP_INJECTOR_TRACEE_EXEC_EXEC_CATCH_H

#include "injector/tracee/exec/exec_watch.h"
#include "injector/tracee/tracee.h"

struct dp_exec_caught {
	pid_t pid;                /* 0: nothing was waiting */
	struct dp_launch *launch; /* the process, as dp_launch_start() leaves one; or NULL: */
	bool unheld;              /* its exec could not be held */
	bool late;                /* it runs the program, but could not be held in time; otherwise there is nothing to probe */
	bool loads;               /* the program runs already, is about to map the file (dlopen), and cannot be held meanwhile */
};

/*
 * Takes the next start, seizes its thread, lets the exec go on, and takes the process over. Nothing is to be probed if the exec
 * failed, or opened the file only as another program's loader. A loader that opens a module is seized in that call, and taken
 * over at its program's entry point, or, in dlopen() by a process of one thread, where the module is mapped; with more threads it
 * is let go at once (`loads`). After an error the process goes on, too; ret->pid says which.
 */
struct dp_error *dp_exec_catch(struct dp_exec_watch *w, struct dp_exec_caught *ret) DP_MUST_CHECK;
/* Releases the threads whose exec took too long, once it is over. Call it now and then. Returns how many are still to come. */
size_t dp_exec_catch_settle(void);

#endif
