/* SPDX-License-Identifier: MIT */
/* Descriptors on which reads block (empty, quiet) or writes block (full), and sockets with timeouts (timed). */
#ifndef DP_TESTS_HELPER_BLOCKING_MADE_H
#define DP_TESTS_HELPER_BLOCKING_MADE_H

#include "helper_blocking.h"

/* Each returns -1 with errno if it is not available. */
int blocking_empty_pipe(void);
int blocking_full_pipe(void);
int blocking_quiet_socket(void);
int blocking_quiet_timed(void);
int blocking_quiet_tcp_timed(void);
int blocking_full_socket(void);
int blocking_full_timed(void);
int blocking_full_tcp_timed(void);

/* A row's call that needs nothing but arguments. */
#define BLOCKING_CALL(what, ...)                                                                                                 \
	static long what(void)                                                                                                   \
	{                                                                                                                        \
		return syscall(__VA_ARGS__);                                                                                     \
	}

#endif
