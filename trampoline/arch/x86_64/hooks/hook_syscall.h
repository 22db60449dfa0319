/* SPDX-License-Identifier: MIT */
/*
 * Hooks on system calls: our code sees the registers before a `syscall`, and may make the call instead. The agent needs that for
 * ten calls (agent/trap/sigmask.c); this code finds them among a module's thousands of system calls.
 */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_HOOKS_HOOK_SYSCALL_H
#define DP_TRAMPOLINE_ARCH_X86_64_HOOKS_HOOK_SYSCALL_H

#include "trampoline/trampoline.h"

/* The stub of a request with `syscall`; like dp_stub_emit(). */
struct dp_error *dp_syscall_stub_emit(struct dp_buf *out, uint64_t at, const struct dp_request *req, uint64_t *entry) DP_MUST_CHECK;

/* The numbers that the agent handles. */
extern const uint32_t dp_hooked_calls[];
extern const size_t dp_nhooked_calls;

#endif
