/* SPDX-License-Identifier: MIT */
/* A pager between standard output and the terminal, as git has it. */
#ifndef DP_CLI_RUN_PAGER_H
#define DP_CLI_RUN_PAGER_H

#include <sys/types.h>

struct dp_pager {
	pid_t pid; /* 0: there is none */
};
/*
 * Starts $DYNPROBE_PAGER, $PAGER or less if standard output is a terminal; what is written to it then goes to the pager. "" and
 * "cat" mean none. Ask for width and colours of the terminal before. A pager that cannot be started is left out.
 */
void dp_pager_begin(struct dp_pager *p);
/* Flushes, and waits until the reader has seen enough. Standard output leads nowhere then. */
void dp_pager_end(struct dp_pager *p);

#endif
