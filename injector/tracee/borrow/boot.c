/* SPDX-License-Identifier: MIT */
/*
 * The borrower's code. While the tool lives, only its first instruction runs: the tool sets the registers of a call, the thread
 * executes `syscall`, and stops at the call's exit, inside the kernel, where the tool can set any state. So the thread is
 * restored exactly at the exit of the last call.
 *
 * If the tool has died, nothing stops the thread there, and it runs into the rest, which restores it without help: the signal
 * mask, then the registers that a system call uses or destroys. This code changes no flag, stack pointer, stack or vector
 * register, so these need no restoring (and a signal may come at any point); the constants are after the code. A thread that was
 * in an interrupted call executes that call again, as the kernel would have made it do. One case is lost: if a handler ran
 * meanwhile, pause() should return, but does not.
 *
 * After the self-restore is a loop that makes several calls without a stop in between, from a table in the target's memory. It
 * changes no flag either (lea and jrcxz instead of add, cmp and branches), and ends in the self-restore.
 */
#include "injector/tracee/borrow/boot.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

enum { RAX, RDI, RSI, RDX, R10, R8, R9, RCX, R11, RBX, RIP, MASK, NCONSTANTS };

/* mov disp32(%rip),%reg: REX.W 8B /r with mod 00, rm 101 */
static const uint8_t load[RIP][3] = {
        [RAX] = {0x48, 0x8b, 0x05}, [RDI] = {0x48, 0x8b, 0x3d}, [RSI] = {0x48, 0x8b, 0x35}, [RDX] = {0x48, 0x8b, 0x15},
        [R10] = {0x4c, 0x8b, 0x15}, [R8] = {0x4c, 0x8b, 0x05},  [R9] = {0x4c, 0x8b, 0x0d},  [RCX] = {0x48, 0x8b, 0x0d},
        [R11] = {0x4c, 0x8b, 0x1d}, [RBX] = {0x48, 0x8b, 0x1d},
};

static uint8_t *put(uint8_t *p, const void *bytes, size_t n)
{
	memcpy(p, bytes, n);
	return p + n;
}

/* Writes `n` opcode bytes, then the 32-bit distance from the instruction's end to a constant. */
static uint8_t *put_rip(uint8_t *p, const uint8_t *op, size_t n, const uint8_t *constant)
{
	int32_t disp = (int32_t)(constant - (p + n + 4));
	return put(put(p, op, n), &disp, sizeof(disp));
}

/* Where the thread resumes on its own. */
static void resume_point(const struct user_regs_struct *r, uint64_t c[NCONSTANTS])
{
	int64_t rax = (int64_t)r->rax;
	c[RAX] = r->rax;
	c[RIP] = r->rip;
	if ((int64_t)r->orig_rax < 0 || !(rax == -512 || rax == -513 || rax == -514 || rax == -516))
		return;
	c[RAX] = rax == -516 ? SYS_restart_syscall : r->orig_rax; /* -516: ERESTART_RESTARTBLOCK, the kernel has saved the rest */
	c[RIP] = r->rip - 2;
}

static const uint8_t head[] = {0x0f, 0x05,              /* syscall */
                               0xb8, 14,   0, 0, 0,     /* mov $SYS_rt_sigprocmask,%eax */
                               0xbf, 2,    0, 0, 0,     /* mov $SIG_SETMASK,%edi */
                               0xba, 0,    0, 0, 0,     /* mov $0,%edx */
                               0x41, 0xba, 8, 0, 0, 0}; /* mov $8,%r10d */

static const uint8_t script[] = {
        0x48, 0x8b, 0x03,       /* next: mov (%rbx),%rax */
        0x48, 0x8b, 0x7b, 0x08, /* mov 8(%rbx),%rdi */
        0x48, 0x8b, 0x73, 0x10, /* mov 16(%rbx),%rsi */
        0x48, 0x8b, 0x53, 0x18, /* mov 24(%rbx),%rdx */
        0x4c, 0x8b, 0x53, 0x20, /* mov 32(%rbx),%r10 */
        0x4c, 0x8b, 0x43, 0x28, /* mov 40(%rbx),%r8 */
        0x4c, 0x8b, 0x4b, 0x30, /* mov 48(%rbx),%r9 */
        0x0f, 0x05,             /* syscall */
        0x48, 0x89, 0x43, 0x40, /* mov %rax,64(%rbx) */
        0x48, 0x8b, 0x4b, 0x38, /* mov 56(%rbx),%rcx */
        0x48, 0x8d, 0x0c, 0x08, /* lea (%rax,%rcx),%rcx */
        0xe3, 11,               /* jrcxz as_wanted */
        0x48, 0x8b, 0x4b, 0x48, /* mov 72(%rbx),%rcx */
        0xe3, 11,               /* jrcxz home */
        0x48, 0x89, 0xcb,       /* mov %rcx,%rbx */
        0xeb, 0xca,             /* jmp next */
        0x48, 0x8d, 0x5b, 0x50, /* as_wanted: lea 80(%rbx),%rbx */
        0xeb, 0xc4,             /* jmp next */
};
static const uint8_t home[] = {0xe9}; /* home: jmp to the self-restore */
_Static_assert(sizeof(struct dp_boot_step) == 80 && DP_BOOT_SCRIPT + sizeof(script) + 5 == DP_BOOT_SCRIPT_END &&
                       DP_BOOT_SCRIPT_END + 8 * NCONSTANTS <= DP_BOOT_SIZE,
               "the code fits, and matches the table");

void dp_boot_build(const struct user_regs_struct *r, uint64_t sigmask, uint8_t ret[DP_BOOT_SIZE])
{
	static const uint8_t lea_rsi[] = {0x48, 0x8d, 0x35}, syscall_[] = {0x0f, 0x05}, jmp[] = {0xff, 0x25};
	uint64_t c[NCONSTANTS] = {[RDI] = r->rdi, [RSI] = r->rsi, [RDX] = r->rdx, [R10] = r->r10, [R8] = r->r8,
	                          [R9] = r->r9,   [RCX] = r->rcx, [R11] = r->r11, [RBX] = r->rbx, [MASK] = sigmask};
	uint8_t *constants = ret + DP_BOOT_SIZE - sizeof(c), *p = ret;
	resume_point(r, c);
	memset(ret, 0xcc, DP_BOOT_SIZE);
	p = put(p, head, sizeof(head));
	p = put_rip(p, lea_rsi, sizeof(lea_rsi), constants + 8 * MASK);
	p = put(p, syscall_, sizeof(syscall_));
	for (int i = 0; i < RIP; i++)
		p = put_rip(p, load[i], sizeof(load[i]), constants + 8 * i);
	p = put_rip(p, jmp, sizeof(jmp), constants + 8 * RIP);
	p = put(p, script, sizeof(script));
	put_rip(p, home, sizeof(home), ret + DP_BOOT_RESTORE);
	memcpy(constants, c, sizeof(c));
}

/* Where the thread's id is in it, twice. */
#define TRIP_PID 4u
#define TRIP_TID 9u

/* tgkill(), as raise() and abort() use it: a filter that a library installs before the program begins allows it, if any call. */
/* One instruction a line. */
/* clang-format off */
static const uint8_t trip[] = {0x49, 0x89, 0xd1,               /* mov %rdx,%r9: the ABI gives the program rdx */
                               0xbf, 0,    0,  0,  0,          /* mov $pid,%edi */
                               0xbe, 0,    0,  0,  0,          /* mov $tid,%esi */
                               0xba, DP_TRIP_SIGNAL, 0, 0, 0,  /* mov $SIGURG,%edx */
                               0xb8, 234,  0,  0,  0,          /* mov $SYS_tgkill,%eax */
                               0x0f, 0x05,                     /* syscall */
                               0x31, 0xff,                     /* xor %edi,%edi */
                               0x31, 0xf6,                     /* xor %esi,%esi */
                               0x48, 0x8d, 0x15, 44, 0, 0, 0,  /* lea no_time(%rip),%rdx */
                               0x4c, 0x8d, 0x15, 53, 0, 0, 0,  /* lea mask(%rip),%r10 */
                               0x41, 0xb8, 8,  0,  0,  0,      /* mov $8,%r8d */
                               0xb8, 0x0f, 1,  0,  0,          /* mov $SYS_ppoll,%eax: takes the signal if it was blocked */
                               0x0f, 0x05,                     /* syscall */
                               0x4c, 0x89, 0xca,               /* mov %r9,%rdx */
                               0xb8, 39,   0,  0,  0,          /* report: mov $SYS_getpid,%eax */
                               0x0f, 0x05,                     /* syscall */
                               0xff, 0x25, 0,  0,  0,  0};     /* jmp *(what follows) */
/* clang-format on */
_Static_assert(sizeof(trip) + 4 * sizeof(uint64_t) == DP_TRIP_SIZE && DP_TRIP_CALLED + 6 == sizeof(trip),
               "the entry point, no_time and the mask follow the code");

void dp_trip_build(uint64_t entry, pid_t tid, uint8_t ret[DP_TRIP_SIZE])
{
	static const uint64_t no_time[2], mask = ~(UINT64_C(1) << (DP_TRIP_SIGNAL - 1));
	uint8_t *p = put(put(ret, trip, sizeof(trip)), &entry, sizeof(entry));
	put(put(p, no_time, sizeof(no_time)), &mask, sizeof(mask));
	put(ret + TRIP_PID, &tid, sizeof(tid));
	put(ret + TRIP_TID, &tid, sizeof(tid));
}

static bool is_trip(const uint8_t *at)
{
	uint8_t code[sizeof(trip)];
	memcpy(code, at, sizeof(code));
	memset(code + TRIP_PID, 0, sizeof(pid_t));
	memset(code + TRIP_TID, 0, sizeof(pid_t));
	return !memcmp(code, trip, sizeof(code));
}

void dp_boot_wipe(uint8_t tail[DP_BOOT_SIZE])
{
	uint8_t *at = tail + DP_BOOT_SIZE - DP_BOOT_ROUND(DP_TRIP_SIZE);
	if (!memcmp(tail, head, sizeof(head)))
		memset(tail, 0, DP_BOOT_SIZE);
	if (is_trip(at))
		memset(at, 0, DP_TRIP_SIZE);
}
