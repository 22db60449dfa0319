/* SPDX-License-Identifier: MIT */
/* Every blocking system call that a stop may interrupt, as a short wait with an end of its own. */
#ifndef DP_TESTS_WAITS_H
#define DP_TESTS_WAITS_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#define NAP_MS 40 /* the length of a wait */

struct wait_state {
	int fd, fd2;
	long handle;
	void *ring[4];
};

struct wait_kind {
	const char *name;
	int (*prepare)(struct wait_state *state); /* nonzero: this kernel does not have the call */
	long (*once)(struct wait_state *state);   /* as the system call: negative with errno on failure */
};
extern const struct wait_kind wait_kinds[];
extern const size_t wait_kinds_n;
/* Calls on sockets with SO_RCVTIMEO or SO_SNDTIMEO, which end after that time, and copies that take as long. */
extern const struct wait_kind socket_waits[];
extern const size_t socket_waits_n;

/* Removes the System V objects of the waits, which then fail, but not with EINTR. */
void waits_cleanup(void);

struct signal_wait {
	const char *name;
	long (*once)(const sigset_t *mask); /* waits, with `mask`, for a signal that is blocked otherwise */
};
extern const struct signal_wait signal_waits[];
extern const size_t signal_waits_n;

#endif
