/* SPDX-License-Identifier: MIT */
#ifndef DP_INJECTOR_TRACEE_BORROW_BORROW_XSTATE_H
#define DP_INJECTOR_TRACEE_BORROW_BORROW_XSTATE_H

#include <stddef.h>

/* The most bytes that PTRACE_GETREGSET(NT_X86_XSTATE) fills on this machine, AMX tiles included: from CPUID leaf 0xD. */
size_t dp_xstate_size(void);

#endif
