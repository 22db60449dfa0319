/* SPDX-License-Identifier: MIT */
/*
 * Keep this list complete: a call that is missing here may kill a process under a filter. The tests e2e/containers: Filters run
 * a program under a filter that kills for all other calls.
 */
#include "injector/tracee/proc/filter_calls.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/memfd.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define K(i) (1u << (i))
/* `known`: which arguments are; the arguments up to the last of them. */
#define CALL(kind, name, known, ...)                                                                                             \
	{                                                                                                                        \
		DP_CALLS_##kind, #name, false,                                                                                   \
		{                                                                                                                \
			false, SYS_##name, known,                                                                                \
			{                                                                                                        \
				__VA_ARGS__                                                                                      \
			}                                                                                                        \
		}                                                                                                                \
	}
#define MAY(kind, name, known, ...)                                                                                              \
	{                                                                                                                        \
		DP_CALLS_##kind, #name, true,                                                                                    \
		{                                                                                                                \
			false, SYS_##name, known,                                                                                \
			{                                                                                                        \
				__VA_ARGS__                                                                                      \
			}                                                                                                        \
		}                                                                                                                \
	}
#define RX         (PROT_READ | PROT_EXEC)
#define RW         (PROT_READ | PROT_WRITE)
#define SHARED     (MAP_SHARED | 0x100000) /* MAP_FIXED_NOREPLACE */
#define PRIVATE    (MAP_PRIVATE | 0x100000)
#define GET_FS     0x1003 /* ARCH_GET_FS */
#define VM_COMPARE 1      /* KCMP_VM */

const struct dp_own_call dp_own_calls[] = {
        /* Memory (mapping.c), text (patch/replace), descriptors (descriptor.c) */
        CALL(ATTACH, mmap, K(2) | K(3), 0, 0, RW, PRIVATE | MAP_ANONYMOUS),
        CALL(ATTACH, mmap, K(2) | K(3), 0, 0, RW, SHARED),
        CALL(ATTACH, mmap, K(2) | K(3), 0, 0, RW, PRIVATE),
        CALL(ATTACH, mmap, K(2) | K(3), 0, 0, RX, SHARED),
        CALL(ATTACH, mmap, K(2) | K(3), 0, 0, RX, PRIVATE),
        CALL(ATTACH, mmap, K(2) | K(3), 0, 0, RX, MAP_PRIVATE | MAP_FIXED),
        CALL(ATTACH, mmap, K(2) | K(3), 0, 0, PROT_READ, SHARED),
        CALL(ATTACH, mmap, K(2) | K(3), 0, 0, PROT_NONE, SHARED),
        CALL(ATTACH, munmap, 0),
        CALL(ATTACH, mremap, K(3), 0, 0, 0, MREMAP_MAYMOVE | MREMAP_FIXED),
        CALL(ATTACH, mprotect, K(2), 0, 0, RW),
        CALL(ATTACH, mprotect, K(2), 0, 0, PROT_READ),
        CALL(ATTACH, munlock, 0),
        CALL(ATTACH, madvise, K(2), 0, 0, MADV_DONTNEED),
        CALL(ATTACH, madvise, K(2), 0, 0, MADV_DONTDUMP),
        CALL(ATTACH, madvise, K(2), 0, 0, MADV_WIPEONFORK),
        CALL(ATTACH, openat, K(0) | K(2), (uint64_t)AT_FDCWD, 0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DSYNC),
        CALL(ATTACH, close, 0),
        CALL(ATTACH, fcntl, K(1), 0, F_DUPFD_CLOEXEC),
        MAY(ATTACH, memfd_create, K(1), 0, MFD_CLOEXEC | 0x10), /* MFD_EXEC */
        CALL(ATTACH, memfd_create, K(1), 0, MFD_CLOEXEC),
        /* The borrower's code, which also restores a thread if dynprobe dies (tracee/borrow) */
        CALL(ATTACH, rt_sigprocmask, K(0) | K(3), SIG_SETMASK, 0, 0, 8),
        CALL(ATTACH, restart_syscall, 0),
        CALL(ATTACH, getpid, 0),
        CALL(ATTACH, pselect6, K(0), 0),
        MAY(ATTACH, prctl, K(0), PR_GET_TSC),
        /* Handlers (trap_actions.c) */
        CALL(ATTACH, rt_sigaction, K(0) | K(3), SIGTRAP, 0, 0, 8),
        CALL(ATTACH, rt_sigaction, K(0) | K(3), SIGSEGV, 0, 0, 8),

        CALL(HIT, getpid, 0),
        CALL(HIT, gettid, 0),
        CALL(HIT, getppid, 0),
        CALL(HIT, process_vm_readv, K(2) | K(4) | K(5), 0, 0, 1, 0, 1, 0),
        CALL(HIT, rt_sigprocmask, K(0) | K(3), SIG_BLOCK, 0, 0, 8),
        CALL(HIT, rt_sigprocmask, K(0) | K(3), SIG_UNBLOCK, 0, 0, 8),
        CALL(HIT, rt_sigprocmask, K(0) | K(3), SIG_SETMASK, 0, 0, 8),
        CALL(HIT, clock_gettime, K(0), 1),
        CALL(HIT, futex, 0),
        CALL(HIT, getcpu, 0),
        CALL(HIT, arch_prctl, K(0), GET_FS),
        CALL(HIT, prctl, K(0), PR_GET_NAME),
        CALL(HIT, tgkill, 0),
        CALL(HIT, rt_sigaction, K(3), 0, 0, 0, 8),
        CALL(HIT, rt_tgsigqueueinfo, 0),
        CALL(HIT, rt_sigreturn, 0),
        MAY(HIT, kcmp, K(2), 0, 0, VM_COMPARE),

        CALL(COPY, clone, K(0) | K(1) | K(2) | K(3) | K(4), CLONE_FILES | CLONE_FS),
        CALL(COPY, prctl, K(0), PR_SET_NAME),
        CALL(COPY, close_range, K(0) | K(2), 0, 0, 2), /* CLOSE_RANGE_UNSHARE */
        CALL(COPY, exit_group, K(0), 0),
        CALL(COPY, wait4, K(2), 0, 0, __WCLONE | WNOHANG),

        {DP_CALLS_ANY, "some call", true, {.any = true}},
};
const size_t dp_nown_calls = sizeof(dp_own_calls) / sizeof(*dp_own_calls);
