/* SPDX-License-Identifier: MIT */
#ifndef DP_INJECTOR_EINTR_H
#define DP_INJECTOR_EINTR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

enum dp_eintr {
	DP_EINTR_NEVER, /* restarts by itself after a stop */
	DP_EINTR_PLAIN, /* returns -EINTR after a stop; mending it loses nothing */
	DP_EINTR_TIMED, /* the same with a timeout, which a mended call begins anew */
	DP_EINTR_SOCKET /* returns -EINTR only if the socket has a timeout: if it did, it was a timed one */
};
enum dp_eintr dp_eintr_class(long nr, const uint64_t args[6]);
/* Does a stop end this call, so that it is to be made anew? */
bool dp_eintr_mended(const struct user_regs_struct *regs);
/* Turns the -EINTR of such a call into a restart. True if `regs` changed. */
bool dp_eintr_mend(struct user_regs_struct *regs);
/* Was this call mended although it has a timeout? */
bool dp_eintr_timed(const struct user_regs_struct *regs);

#endif
