/* SPDX-License-Identifier: MIT */
/* caged: runs under a seccomp filter that kills the process for system calls that its own loop does not need. */
#include "target.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

#define ALLOW(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int enter_cage(void)
{
	struct sock_filter filter[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	        ALLOW(SYS_write),
	        ALLOW(SYS_clock_nanosleep),
	        ALLOW(SYS_nanosleep),
	        ALLOW(SYS_restart_syscall),
	        ALLOW(SYS_rt_sigreturn),
	        ALLOW(SYS_exit_group),
	        ALLOW(SYS_fstat),
	        ALLOW(SYS_newfstatat),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(void)
{
	long bad = 0;

	target_stop_on_term();
	target_ready();
	if (enter_cage() != 0)
		return 2;
	puts("CAGED");
	fflush(stdout);
	for (unsigned i = 0; !target_stop; i++) {
		bad += foo(i) != i * 3 + 1;
		target_sleep_us(500);
	}
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
