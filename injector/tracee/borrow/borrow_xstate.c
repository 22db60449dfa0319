/* SPDX-License-Identifier: MIT */
/*
 * Borrowing saves no vector state: system calls do not change it, and nothing else runs on a borrowed thread. Code that reads it
 * through ptrace needs room for all of it: the kernel refuses to write back a truncated set (AMX: 11 KiB).
 */
#include "injector/tracee/borrow/borrow_xstate.h"

#include <cpuid.h>

size_t dp_xstate_size(void)
{
	unsigned eax, ebx, ecx, edx;
	if (!__get_cpuid_count(0xd, 0, &eax, &ebx, &ecx, &edx))
		return 4096;
	return ecx > 576 ? ecx : 576; /* ecx: size for all components of the processor; 576: the legacy area and header */
}
