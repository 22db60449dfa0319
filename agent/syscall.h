/* SPDX-License-Identifier: MIT */
/* Raw system calls: no libc, so errno of the program is never touched. Results below 0 are -errno. */
#ifndef DP_AGENT_SYSCALL_H
#define DP_AGENT_SYSCALL_H

#include <stdint.h>

#define DP_SYS_GETTID           186
#define DP_SYS_PROCESS_VM_READV 310

static inline int64_t dp_syscall0(int64_t nr)
{
	int64_t ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr) : "rcx", "r11", "memory");
	return ret;
}

struct dp_iovec {
	uint64_t base, len;
};

/* process_vm_readv(pid, local, 1, remote, 1, 0) */
static inline int64_t dp_syscall_vm_read(uint32_t pid, const struct dp_iovec *local, const struct dp_iovec *remote)
{
	int64_t ret;
	register uint64_t r10 __asm__("r10") = (uint64_t)(uintptr_t)remote;
	register uint64_t r8 __asm__("r8") = 1;
	register uint64_t r9 __asm__("r9") = 0;

	__asm__ volatile("syscall"
	                 : "=a"(ret)
	                 : "a"((int64_t)DP_SYS_PROCESS_VM_READV), "D"((uint64_t)pid), "S"(local), "d"((uint64_t)1), "r"(r10),
	                   "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return ret;
}

#endif
