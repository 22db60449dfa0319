/* SPDX-License-Identifier: MIT */
/*
 * Hooks on system calls: code of ours sees the registers of a `syscall` before it is made, and may make it in its place. The agent
 * needs that for a handful of calls (agent/trap/sigmask.c); which of a module's thousands of places are these is found out here.
 */
#ifndef DP_TRAMPOLINE_X86_64_HOOK_SYSCALL_H
#define DP_TRAMPOLINE_X86_64_HOOK_SYSCALL_H

#include "trampoline/trampoline.h"

/* The stub of a request with `syscall`; as dp_stub_emit(). */
struct dp_error *dp_syscall_stub_emit(struct dp_buf *out, uint64_t at, const struct dp_request *req, uint64_t *entry) DP_MUST_CHECK;

/* The numbers that the agent serves. */
extern const uint32_t dp_hooked_calls[];
extern const size_t dp_nhooked_calls;

#endif
