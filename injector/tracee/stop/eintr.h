/* SPDX-License-Identifier: MIT */
#ifndef DP_INJECTOR_TRACEE_STOP_EINTR_H
#define DP_INJECTOR_TRACEE_STOP_EINTR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

enum dp_eintr {
	DP_EINTR_NEVER, /* restarts on its own after a stop */
	DP_EINTR_PLAIN, /* returns -EINTR after a stop; a restart loses nothing */
	DP_EINTR_TIMED, /* the same with a timeout, which starts anew */
	DP_EINTR_SOCKET /* returns -EINTR only if the socket has a timeout, so then it was a timed call */
};
enum dp_eintr dp_eintr_class(long nr, const uint64_t args[6]);
/* Was this call's -EINTR turned into a restart? */
bool dp_eintr_mended(const struct user_regs_struct *regs);
/* Turns the -EINTR of such a call into a restart. True if `regs` changed. */
bool dp_eintr_mend(struct user_regs_struct *regs);
/* Was this call's -EINTR turned into a restart although it may have a timeout? */
bool dp_eintr_timed(const struct user_regs_struct *regs);

#endif
