/* SPDX-License-Identifier: MIT */
/*
 * Runs machine code in this process from a chosen state of the whole processor, and saves the state in which it ended. The state
 * is loaded by xrstor and iretq; the code ends by an int3 or a fault, whose signal frame contains the final state. Addresses are
 * low, so that code with the address-size prefix reaches the sandbox too.
 */
#ifndef DP_TESTS_RELOCATE_MACHINE_H
#define DP_TESTS_RELOCATE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MACHINE_CODE    UINT64_C(0x20000000) /* the page of the original instruction */
#define MACHINE_NEAR    UINT64_C(0x21000000) /* the page of the moved instruction */
#define MACHINE_FAR     UINT64_C(0x500000000000)
#define MACHINE_SANDBOX UINT64_C(0x30000000) /* data, stack, and the base of gs */
#define MACHINE_ROOM    0x4000u
#define MACHINE_GS      (MACHINE_SANDBOX + MACHINE_ROOM / 2)
#define MACHINE_XSAVE   2688u /* large enough for everything up to the upper 16 zmm registers */

/* Offsets in the xsave frame, standard form. Components after ymm are where the processor puts them: machine_at(). */
enum {
	X_FCW = 0,
	X_FSW = 2,
	X_FTW = 4,
	X_FOP = 6,
	X_FIP = 8,
	X_FDP = 16,
	X_MXCSR = 24,
	X_ST = 32,
	X_XMM = 160,
	X_HEADER = 512,
	X_YMM = 576
};
enum { PART_X87, PART_SSE, PART_YMM, PART_K = 5, PART_ZMM, PART_HIGH }; /* components, by their bits */

struct machine_state {
	uint64_t gpr[16]; /* rax rcx rdx rbx rsp rbp rsi rdi r8 .. r15 */
	uint64_t rip, flags;
	int signal, code;
	uint64_t fault, trap, error; /* si_addr, the exception's number and error code */
	_Alignas(64) uint8_t x[MACHINE_XSAVE + 64];
};

/* Maps the pages and installs the handlers, for the rest of the process. Returns false if that fails. */
bool machine_setup(void);
/* Bit mask of the components that the xsave frame has. */
uint64_t machine_components(void);
/* Offset of a component. */
size_t machine_at(unsigned part);
void machine_run(const struct machine_state *start, struct machine_state *end);
/* Has a timer ended a case since the last call? */
bool machine_timed_out(void);

#endif
