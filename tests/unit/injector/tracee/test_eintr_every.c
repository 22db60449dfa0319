/* SPDX-License-Identifier: MIT */
/*
 * The EINTR list (eintr.c) against the kernel. The test stops each call that it can make block as any tracer would; the call must
 * be on the list exactly if it then fails with EINTR. When dynprobe stops it, no call may return.
 */
#include "helper_blocking.h"
#include "helper_tracee.h"

#include "injector/tracee/stop/eintr.h"
#include "injector/tracee/proc/proc.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOLDS  20
#define EVERY  256 /* more than there are */
#define PGETEV 333

static const struct blocking *row;

static void caller(void)
{
	const int made = row->make();
	tr->value[0] = made;
	tr->value[1] = made < 0 ? errno : 0;
	tr->ready = 1;
	if (made < 0)
		pause();
	for (;;) {
		const long rc = row->call();
		tr->failed_errno = rc < 0 ? errno : 0;
		tr->calls++;
		tr_sleep_us(1000);
	}
}

/* The i-th row, or NULL after the last. *n: the number of rows. */
static const struct blocking *find_row(size_t i, size_t *n)
{
	const struct blocking *(*const part[])(size_t *) = {blocking_descriptors, blocking_copies, blocking_waits}, *found = NULL;
	*n = 0;
	for (size_t k = 0; k < sizeof(part) / sizeof(*part); k++) {
		size_t here;
		const struct blocking *rows_of = part[k](&here);
		if (i >= *n && i < *n + here)
			found = &rows_of[i - *n];
		*n += here;
	}
	return found;
}

static pid_t spawn(size_t i)
{
	size_t n;
	row = find_row(i, &n);
	const pid_t pid = tr_spawn(caller);
	if (tr->value[0] < 0) {
		tr_kill(pid);
		cr_skip_test("%s: not available: %s", row->name, strerror((int)tr->value[1]));
	}
	cr_assert(tr_await(pid, 'S', row->nr), "%s does not block: calls %ld, errno %ld", row->name, tr->calls, tr->failed_errno);
	return pid;
}

static void end(pid_t pid)
{
	tr_kill(pid);
	blocking_remove(row, (int)tr->value[0], pid);
}

/* Listed for other kernels, or for other uses of the same call (ioctl: seccomp). Their timeouts are checked all the same. */
static bool answers_otherwise_here(void)
{
	return row->nr == PGETEV || row->nr == SYS_ioctl;
}

static size_t every[EVERY];

static struct criterion_test_params rows(void)
{
	size_t n;
	find_row(0, &n);
	for (size_t i = 0; i < n; i++)
		every[i] = i;
	return cr_make_param_array(size_t, every, n);
}

ParameterizedTestParameters(eintr_every, is_on_the_list_if_and_only_if_a_stop_ends_it)
{
	return rows();
}

ParameterizedTest(size_t *i, eintr_every, is_on_the_list_if_and_only_if_a_stop_ends_it, .timeout = 100)
{
	struct user_regs_struct r;
	const pid_t pid = spawn(*i);
	cr_assert_eq(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	cr_assert_eq(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	cr_assert_eq(waitpid(pid, NULL, __WALL), pid);
	cr_assert_eq(ptrace(PTRACE_GETREGS, pid, NULL, &r), 0);
	const uint64_t args[6] = {r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9};
	const enum dp_eintr class = dp_eintr_class((long)r.orig_rax, args);
	const bool ends = (int64_t)r.rax == -EINTR, listed = class == DP_EINTR_SOCKET ? row->timed : class != DP_EINTR_NEVER;
	cr_assert_eq((long)r.orig_rax, row->nr, "%s: stopped in call %ld", row->name, (long)r.orig_rax);
	if (ends || !answers_otherwise_here())
		cr_expect_eq(ends, listed, "%s: the stopped call returns %ld, its class is %d", row->name, (long)r.rax, class);
	if (dp_eintr_mend(&r))
		cr_expect_eq(dp_eintr_timed(&r), row->timed, "%s", row->name);
	end(pid);
}

ParameterizedTestParameters(eintr_every, comes_back_from_no_hold)
{
	return rows();
}

ParameterizedTest(size_t *i, eintr_every, comes_back_from_no_hold, .timeout = 100)
{
	const pid_t pid = spawn(*i);
	const struct dp_process p = tr_process(pid);
	for (int n = 0; n < HOLDS; n++) {
		struct dp_freeze f;
		tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
		cr_assert_eq(f.n, 1);
		dp_thaw_all(&f);
		if (n % 4 == 0)
			tr_sleep_us(200);
	}
	tr_sleep_us(2000);
	cr_expect_eq(tr->calls, 0, "%s returned %ld times, with errno %ld", row->name, tr->calls, tr->failed_errno);
	cr_expect(tr_await(pid, 'S', row->nr), "%s no longer blocks", row->name);
	end(pid);
}

/* ---- calls that take long without blocking ----------------------------------------------------------------- */

#define BIG (32l << 20)

static long copy_big(int from, int to)
{
	loff_t in = 0, out = 0;
	return copy_file_range(from, &in, to, &out, BIG, 0);
}

static long allocate_big(int from, int to)
{
	(void)from;
	return ftruncate(to, 0) ? -1 : fallocate(to, 0, 0, BIG);
}

static long send_big(int from, int to)
{
	off_t at = 0;
	return lseek(to, 0, SEEK_SET) < 0 ? -1 : sendfile(to, from, &at, BIG);
}

static long (*const big[])(int, int) = {copy_big, allocate_big, send_big};
static long (*busy)(int, int);

static void at_work(void)
{
	const int from = memfd_create("from", 0), to = memfd_create("to", 0);
	if (from < 0 || to < 0 || fallocate(from, 0, 0, BIG))
		_exit(1);
	for (;;) {
		const long rc = busy(from, to);
		tr->failed += rc < 0;
		tr->failed_errno = rc < 0 ? errno : tr->failed_errno;
		tr->calls++;
		tr->ready = 1;
	}
}

Test(eintr_every, copies_and_allocations_are_not_cut_off, .timeout = 100)
{
	for (size_t i = 0; i < sizeof(big) / sizeof(*big); i++) {
		busy = big[i];
		const pid_t pid = tr_spawn(at_work);
		const struct dp_process p = tr_process(pid);
		for (int n = 0; n < HOLDS; n++) {
			struct dp_freeze f;
			tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
			dp_thaw_all(&f);
			tr_sleep_us(1000);
		}
		cr_assert(tr_await_value(&tr->calls, tr->calls + 1));
		cr_expect_eq(tr->failed, 0, "call %zu: %ld failed, with errno %ld", i, tr->failed, tr->failed_errno);
		tr_kill(pid);
	}
}

/* ---- calls that cannot be made to block here -------------------------------------------------------------- */

static enum dp_eintr class_of(long nr, uint64_t second, uint64_t third)
{
	const uint64_t args[6] = {3, second, third};
	return dp_eintr_class(nr, args);
}

Test(eintr_every, calls_that_would_do_their_work_twice_are_not_made_again)
{
	cr_expect_eq(class_of(SYS_fallocate, 0, 0), DP_EINTR_PLAIN);
	cr_expect_eq(class_of(SYS_fallocate, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0), DP_EINTR_PLAIN);
	cr_expect_eq(class_of(SYS_fallocate, FALLOC_FL_COLLAPSE_RANGE, 0), DP_EINTR_NEVER);
	cr_expect_eq(class_of(SYS_fallocate, FALLOC_FL_INSERT_RANGE, 0), DP_EINTR_NEVER);
	cr_expect_eq(class_of(SYS_ioctl, TCSBRK, 1), DP_EINTR_PLAIN);
	cr_expect_eq(class_of(SYS_ioctl, TCSBRK, 0), DP_EINTR_NEVER);
	cr_expect_eq(class_of(SYS_ioctl, SECCOMP_IOCTL_NOTIF_RECV, 0), DP_EINTR_PLAIN);
	cr_expect_eq(class_of(SYS_ioctl, KVM_RUN, 0), DP_EINTR_PLAIN);
	cr_expect_eq(class_of(SYS_ioctl, FIONREAD, 0), DP_EINTR_NEVER);
	cr_expect_eq(class_of(SYS_close, 0, 0), DP_EINTR_NEVER);
}

/* ---- a virtual processor, which does not sleep ------------------------------------------------------------- */

static void on_usr1(int sig)
{
	(void)sig;
	tr->handled++;
}

/* Its guest runs an endless jump at 0x1000. */
static int make_guest(void)
{
	struct kvm_sregs sregs;
	struct kvm_regs regs = {.rip = 0x1000, .rflags = 2};
	char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memcpy(memory, "\xeb\xfe", 2);
	const struct kvm_userspace_memory_region slot = {
	        .guest_phys_addr = 0x1000, .memory_size = 4096, .userspace_addr = (uint64_t)(uintptr_t)memory};
	const int kvm = open("/dev/kvm", O_RDWR), vm = kvm < 0 ? -1 : ioctl(kvm, KVM_CREATE_VM, 0);
	const int cpu = vm < 0 || ioctl(vm, KVM_SET_USER_MEMORY_REGION, &slot) ? -1 : ioctl(vm, KVM_CREATE_VCPU, 0);
	if (cpu < 0 || ioctl(cpu, KVM_GET_SREGS, &sregs))
		return -1;
	sregs.cs.base = sregs.cs.selector = 0;
	return ioctl(cpu, KVM_SET_SREGS, &sregs) || ioctl(cpu, KVM_SET_REGS, &regs) ? -1 : cpu;
}

static void run_guest(void)
{
	const int cpu = make_guest();
	tr->value[0] = cpu;
	tr->value[1] = errno;
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_usr1}, NULL);
	tr->ready = 1;
	while (cpu >= 0) {
		const long rc = ioctl(cpu, KVM_RUN, 0);
		tr->failed_errno = rc < 0 ? errno : 0;
		tr->calls++;
	}
	pause();
}

Test(eintr_every, virtual_processor_comes_back_for_a_signal_alone, .timeout = 100)
{
	const pid_t pid = tr_spawn(run_guest);
	if (tr->value[0] < 0) {
		tr_kill(pid);
		cr_skip_test("virtual machines are not available: %s", strerror((int)tr->value[1]));
	}
	const struct dp_process p = tr_process(pid);
	for (int n = 0; n < HOLDS; n++) {
		struct dp_freeze f;
		tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
		dp_thaw_all(&f);
		tr_sleep_us(2000); /* back in the guest */
	}
	cr_expect_eq(tr->calls, 0, "the guest's call returned %ld times, with errno %ld", tr->calls, tr->failed_errno);
	const long calls = tr->calls;
	kill(pid, SIGUSR1);
	cr_assert(tr_await_value(&tr->calls, calls + 1), "a signal does not end the call");
	cr_expect_eq(tr->handled, 1);
	cr_expect_eq(tr->failed_errno, EINTR);
	tr_kill(pid);
}
