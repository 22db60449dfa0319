/* SPDX-License-Identifier: MIT */
/* The code that a borrowed thread runs, and its place. Private to the ptrace half of injector/; see boot.c. */
#ifndef DP_INJECTOR_TRACEE_BORROW_BOOT_H
#define DP_INJECTOR_TRACEE_BORROW_BOOT_H

#include "injector/tracee/tracee.h"

#define DP_BOOT_SIZE        272u
#define DP_BOOT_ROUND(size) (((size) + 15u) & ~15u) /* a start at a multiple of 16, as near to the mapping's end as possible */
#define DP_BOOT_RESTORE     2u                      /* offset of the self-restore: after the `syscall` */

/* The script loop makes several system calls: rbx points to the first struct dp_boot_step (borrow_script.c). */
#define DP_BOOT_SCRIPT      108u
#define DP_BOOT_SCRIPT_CALL (DP_BOOT_SCRIPT + 29u) /* after its `syscall` */
#define DP_BOOT_SCRIPT_END  (DP_BOOT_SCRIPT + 65u)
struct dp_boot_step {
	uint64_t nr, args[6];
	uint64_t minus_want; /* the negative of the expected result: if the call returns that, the next step follows */
	int64_t result;      /* written by the thread */
	uint64_t otherwise;  /* else the step at this address, or, if 0, the self-restore */
};

/* Builds the borrower's code for a thread with the raw registers `regs` and the signal mask `sigmask`. */
void dp_boot_build(const struct user_regs_struct *regs, uint64_t sigmask, uint8_t ret[DP_BOOT_SIZE]);

/*
 * The launcher's code. Entered at its start, it first sends its own thread DP_TRIP_SIGNAL, which stops a traced thread whatever
 * its mask, and without a tracer is ignored by default. Entered at DP_TRIP_REPORT, it only makes a system call that a tracer can
 * stop. Then it jumps to `entry`, with rdx and rsp as they were. `tid`: the first thread's, as it knows itself.
 */
#define DP_TRIP_SIZE   104u
#define DP_TRIP_SIGNAL SIGURG
#define DP_TRIP_SENT   25u /* offset after the call that sends the signal */
#define DP_TRIP_TAKEN  56u /* after the one that takes it if it was blocked; from here on rdx is restored */
#define DP_TRIP_REPORT 59u
#define DP_TRIP_CALLED 66u /* offset after the system call that reports */
void dp_trip_build(uint64_t entry, pid_t tid, uint8_t ret[DP_TRIP_SIZE]);

/*
 * Zeroes what a killed tool left of either code in the last DP_BOOT_SIZE bytes of a mapping. Zeroes are the original content:
 * only tails of zeroes are ever used.
 */
void dp_boot_wipe(uint8_t tail[DP_BOOT_SIZE]);

/*
 * Does a thread with this program counter run leftover code of a killed tool? That code restores the thread, so the bytes must
 * stay, and the thread's real place in the program is not visible.
 */
bool dp_boot_leftover_at(const struct dp_process *p, uint64_t pc);

/*
 * Does the stack from `rsp` on contain an address of the code at `boot`? A signal handler that began during the self-restore
 * returns there; its frame, further up, contains the address.
 */
bool dp_boot_returns(const struct dp_process *p, dp_addr boot, uint64_t rsp);

/*
 * Finds the `nth` place (from 0) of `size` unused bytes in the target's executable memory, given its `maps`. The bytes are zero
 * or a dead tool's code (then a thread may still run it: the caller checks). False if there is none. Write zeroes back
 * afterwards.
 */
bool dp_boot_find(const struct dp_process *p, const char *maps, size_t size, unsigned nth, dp_addr *ret);
/* All these places, in that order, of the first DP_BOOT_PLACES mappings of code; their number. */
#define DP_BOOT_PLACES 256
size_t dp_boot_places(const struct dp_process *p, const char *maps, size_t size, dp_addr ret[static DP_BOOT_PLACES]);

#endif
