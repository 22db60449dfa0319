/* SPDX-License-Identifier: MIT */
/* Raw system calls without the libc, so the program's errno does not change. Results below 0 are -errno. */
#ifndef DP_AGENT_SYSCALL_H
#define DP_AGENT_SYSCALL_H

#include <stdint.h>

#define DP_SYS_RT_SIGPROCMASK   14
#define DP_SYS_GETPID           39
#define DP_SYS_GETTID           186
#define DP_SYS_TGKILL           234
#define DP_SYS_PROCESS_VM_READV 310

#define DP_ESRCH 3

static inline int64_t dp_syscall0(int64_t nr)
{
	int64_t ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr) : "rcx", "r11", "memory");
	return ret;
}

static inline int64_t dp_syscall4(int64_t nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	int64_t ret;
	register uint64_t r10 __asm__("r10") = d;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return ret;
}

/* Blocks all signals of this thread; *old = the mask before. */
static inline int64_t dp_syscall_block_signals(uint64_t *old)
{
	const uint64_t all = ~UINT64_C(0);

	return dp_syscall4(DP_SYS_RT_SIGPROCMASK, 0, (uint64_t)(uintptr_t)&all, (uint64_t)(uintptr_t)old, sizeof(all));
}

static inline void dp_syscall_restore_signals(const uint64_t *old)
{
	dp_syscall4(DP_SYS_RT_SIGPROCMASK, 2, (uint64_t)(uintptr_t)old, 0, sizeof(*old));
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
