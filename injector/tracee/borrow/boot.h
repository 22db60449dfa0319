/* SPDX-License-Identifier: MIT */
/* The code that a borrowed thread runs, and where it lies. Private to the ptrace half of injector/; see boot.c. */
#ifndef DP_INJECTOR_BOOT_H
#define DP_INJECTOR_BOOT_H

#include "injector/tracee/tracee.h"

#define DP_BOOT_SIZE        272u
#define DP_BOOT_ROUND(size) (((size) + 15u) & ~15u) /* both lie at a multiple of 16, as near to the end as they can */
#define DP_BOOT_RESTORE     2u                      /* offset of the self-restore: behind the `syscall` */

/* Several system calls, one after the other: rbx leads to the first struct dp_boot_step (borrow_script.c). */
#define DP_BOOT_SCRIPT      108u
#define DP_BOOT_SCRIPT_CALL (DP_BOOT_SCRIPT + 29u) /* behind its `syscall` */
#define DP_BOOT_SCRIPT_END  (DP_BOOT_SCRIPT + 65u)
struct dp_boot_step {
	uint64_t nr, args[6];
	uint64_t minus_want; /* if the result is what this is the negative of, the next step follows */
	int64_t result;      /* written by the thread */
	uint64_t otherwise;  /* else the step at this address, or, if that is 0, the self-restore */
};

/* The borrower's code for a thread that stands at `regs` (raw) with the signal mask `sigmask`. */
void dp_boot_build(const struct user_regs_struct *regs, uint64_t sigmask, uint8_t ret[DP_BOOT_SIZE]);

#define DP_TRIP_SIZE   24u
#define DP_TRIP_CALLED 7u /* offset behind the system call that reports */
/* The launcher's: a system call that reports, then on to `entry`. */
void dp_trip_build(uint64_t entry, uint8_t ret[DP_TRIP_SIZE]);

/*
 * Zeroes what an earlier tool, killed in the act, left of either code in the last DP_BOOT_SIZE bytes of a mapping. What it was
 * written over is known: only tails of zeroes are ever used.
 */
void dp_boot_wipe(uint8_t tail[DP_BOOT_SIZE]);

/*
 * Does a thread with this program counter stand in what a killed tool left of either code? Its way home leads through there, so
 * the bytes have to stay, and where it really is in the program is not to be seen.
 */
bool dp_boot_leftover_at(const struct dp_process *p, uint64_t pc);

/*
 * Does the stack from `rsp` on hold an address of the code at `boot`? A signal handler that began on the way home returns there: its
 * frame, somewhere above, has the address.
 */
bool dp_boot_returns(const struct dp_process *p, dp_addr boot, uint64_t rsp);

/*
 * The `nth` place (from 0) of `size` unused bytes in executable memory of the target, as `maps` describes it: they are zero, or
 * a dead tool's (then somebody may still stand in them: the caller looks). False if there is none. Afterwards zeroes belong
 * there.
 */
bool dp_boot_find(const struct dp_process *p, const char *maps, size_t size, unsigned nth, dp_addr *ret);

#endif
