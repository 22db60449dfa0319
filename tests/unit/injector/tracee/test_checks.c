/* SPDX-License-Identifier: MIT */
/* Refusals before anything changes; each test is named after the tag that it expects. */
#include "helper_tracee.h"

#include "injector/tracee/proc/checks.h"
#include "injector/tracee/proc/proc.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static struct dp_error *check(pid_t pid, bool allow)
{
	struct dp_process p;
	return dp_process_check(pid, allow, &p);
}

static void need_root(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root");
}

/* The message that another user gets, read through a pipe. */
static void message_as(uid_t uid, pid_t pid, enum dp_tag tag, char *text, size_t n)
{
	int fds[2];
	cr_assert_eq(pipe(fds), 0);
	pid_t child = fork();
	if (child == 0) {
		if (setgroups(0, NULL) || setgid(uid) || setuid(uid))
			_exit(9);
		struct dp_error *err = check(pid, false);
		if (err && write(fds[1], err->message, strlen(err->message)) < 0)
			_exit(8);
		_exit(err ? err->tag == tag ? 0 : 2 : 1);
	}
	close(fds[1]);
	ssize_t got = read(fds[0], text, n - 1);
	text[got > 0 ? got : 0] = '\0';
	close(fds[0]);
	int status;
	waitpid(child, &status, 0);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x: %s", status, text);
}

Test(checks, refuse_DP_NO_PROCESS)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	tr_tag(check(pid, false), DP_TAG_NO_PROCESS);
	tr_tag(check(0, false), DP_TAG_NO_PROCESS);
	tr_tag(check(-1, false), DP_TAG_NO_PROCESS);
}

Test(checks, refuse_DP_ZOMBIE)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
	tr_tag(check(pid, false), DP_TAG_ZOMBIE);
	waitpid(pid, NULL, 0);
}

/* Its memory cannot be opened, and the parent has not reaped it: it still has a pid that answers. */
Test(checks, refuse_DP_ZOMBIE_process_that_ends_between_two_checks)
{
	const pid_t pid = tr_spawn(tr_idle);
	const struct dp_process p = tr_process(pid);
	tr_ok(dp_check_permission(&p));
	kill(pid, SIGKILL);
	cr_assert(tr_await(pid, 'Z', -1));
	tr_tag(dp_check_permission(&p), DP_TAG_ZOMBIE);
	tr_kill(pid);
}

Test(checks, refuse_DP_KERNEL_THREAD)
{
	char comm[16] = "";
	int fd = open("/proc/2/comm", O_RDONLY);
	if (fd < 0 || read(fd, comm, sizeof(comm) - 1) <= 0 || strncmp(comm, "kthreadd", 8) != 0)
		cr_skip_test("no kernel thread is visible here");
	close(fd);
	tr_tag(check(2, false), DP_TAG_KERNEL_THREAD);
}

Test(checks, refuse_DP_TRACED_naming_the_tracer)
{
	pid_t pid = tr_spawn(tr_idle), tracer = fork();
	if (tracer == 0) {
		prctl(PR_SET_NAME, "the-tracer");
		ptrace(PTRACE_SEIZE, pid, NULL, NULL);
		tr->value[0] = 1;
		for (;;)
			pause();
	}
	cr_assert(tr_await_value(&tr->value[0], 1));
	char want[32];
	snprintf(want, sizeof(want), "%d (the-tracer)", tracer);
	struct dp_error *err = check(pid, false);
	cr_assert_not_null(err);
	cr_assert_not_null(strstr(err->message, want), "%s", err->message);
	tr_tag(err, DP_TAG_TRACED);
	tr_kill(tracer);
	tr_ok(check(pid, false));
	tr_kill(pid);
}

Test(checks, refuse_DP_PERMISSION_of_another_uid)
{
	need_root();
	pid_t pid = tr_spawn(tr_idle);
	char text[512];
	message_as(NOBODY, pid, DP_TAG_PERMISSION, text, sizeof(text));
	cr_assert_not_null(strstr(text, "uid 0"), "%s", text);
	cr_assert_not_null(strstr(text, "uid 65534"), "%s", text);
	tr_kill(pid);
}

static void undumpable(void)
{
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 0);
	tr_idle();
}

Test(checks, refuse_DP_PERMISSION_of_a_process_that_is_not_dumpable)
{
	need_root();
	pid_t pid = tr_spawn(undumpable);
	char text[512];
	message_as(NOBODY, pid, DP_TAG_PERMISSION, text, sizeof(text));
	cr_assert_not_null(strstr(text, "dumpable"), "%s", text);
	tr_kill(pid);
}

static void strict(void)
{
	tr->ready = 1;
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	for (;;)
		;
}

static void filtered(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = {1, &allow};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
	tr_idle();
}

static bool is_filtered(pid_t pid)
{
	long mode = 0;
	struct dp_buf status;
	dp_buf_init(&status);
	if (dp_proc_slurp(&status, "/proc/%d/status", pid))
		mode = dp_status_long(dp_buf_str(&status), "Seccomp", 0);
	dp_buf_fini(&status);
	return mode != 0;
}

static void check_seccomp(void (*fn)(void), bool is_strict)
{
	pid_t pid = tr_spawn(fn);
	struct dp_process p;
	struct dp_borrow *b;
	cr_assert(until(is_filtered(pid)));
	tr_tag(check(pid, false), DP_TAG_SECCOMP);
	struct dp_error *err = dp_process_check(pid, true, &p);
	if (geteuid() != 0 || prctl(PR_GET_SECCOMP) != 0) {
		tr_tag(err, DP_TAG_SECCOMP);
	} else {
		tr_ok(err);
		cr_assert(p.seccomp && p.seccomp_strict == is_strict);
		tr_ok(dp_borrow_begin(&p, NULL, TR_LIMIT, true, &b));
		cr_assert_eq(tr_remote(b, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
		tr_ok(dp_borrow_end(b, NULL));
		tr_sleep_us(2000);
		cr_assert_neq(tr_state(pid), 'Z');
	}
	tr_kill(pid);
}

Test(checks, refuse_DP_SECCOMP_strict_and_root_may_suspend_it)
{
	check_seccomp(strict, true);
}

Test(checks, refuse_DP_SECCOMP_filter_and_root_may_suspend_it)
{
	check_seccomp(filtered, false);
}

/* A 32-bit program of two instructions: an endless pause(). */
static void exec32(void)
{
	static const uint8_t code[] = {0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7};
	struct {
		Elf32_Ehdr eh;
		Elf32_Phdr ph;
		uint8_t code[sizeof(code)];
	} image = {.eh = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
	                  .e_type = ET_EXEC,
	                  .e_machine = EM_386,
	                  .e_version = EV_CURRENT,
	                  .e_entry = 0x10000 + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
	                  .e_phoff = sizeof(Elf32_Ehdr),
	                  .e_ehsize = sizeof(Elf32_Ehdr),
	                  .e_phentsize = sizeof(Elf32_Phdr),
	                  .e_phnum = 1},
	           .ph = {.p_type = PT_LOAD,
	                  .p_vaddr = 0x10000,
	                  .p_filesz = sizeof(image),
	                  .p_memsz = sizeof(image),
	                  .p_flags = PF_R | PF_X,
	                  .p_align = 0x1000}};
	memcpy(image.code, code, sizeof(code));
	int fd = memfd_create("thirty-two", MFD_CLOEXEC);
	if (write(fd, &image, sizeof(image)) == (ssize_t)sizeof(image)) {
		prctl(PR_SET_NAME, "before-exec");
		tr->ready = 1;
		fexecve(fd, (char *const[]){"thirty-two", NULL}, (char *const[]){NULL});
	}
	_exit(1);
}

static bool is_named(pid_t pid, const char *name)
{
	char comm[64];
	dp_proc_comm(pid, comm, sizeof(comm));
	return !strcmp(comm, name);
}

Test(checks, refuse_DP_32BIT)
{
	pid_t pid = tr_spawn(exec32);
	cr_assert(until(tr_state(pid) == 'Z' || !is_named(pid, "before-exec")));
	if (tr_state(pid) == 'Z')
		cr_skip_test("this kernel runs no 32-bit programs");
	tr_tag(check(pid, false), DP_TAG_WRONG_ARCH);
	tr_kill(pid);
}

static void *thread_main(void *arg)
{
	tr->value[0] = gettid();
	tr->ready = 1;
	for (;;)
		pause();
	return arg;
}

static void threaded(void)
{
	pthread_t t;
	pthread_create(&t, NULL, thread_main, NULL);
	for (;;)
		pause();
}

Test(checks, any_thread_names_its_group)
{
	pid_t pid = tr_spawn(threaded);
	struct dp_process p;
	cr_assert_neq(tr->value[0], pid);
	tr_ok(dp_process_check((pid_t)tr->value[0], false, &p));
	cr_assert_eq(p.pid, pid);
	cr_assert_eq(p.alive, pid);
	cr_assert_eq(p.ns_pid, pid);
	cr_assert(p.start_time != 0 && p.start_time == dp_process_start_time(pid));
	tr_kill(pid);
}

/* Mappings that grow and shrink: the kernel writes their list in pieces, and one may appear in two of them. */
static void mapper(void)
{
	enum { MOST = 600 };
	char *at = mmap(NULL, 3 * MOST * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tr->ready = at != MAP_FAILED;
	for (unsigned k = 0;; k++) {
		for (unsigned i = k % 3; i < 3 * MOST; i += 3) /* splits them all, then joins them again */
			mprotect(at + i * 4096ul, 4096, PROT_READ | PROT_WRITE);
		mprotect(at, 3 * MOST * 4096, PROT_READ);
	}
}

Test(checks, memory_map_of_a_process_whose_mappings_come_and_go)
{
	pid_t pid = tr_spawn(mapper);
	struct dp_process p = tr_process(pid);
	for (int i = 0; i < 300; i++) {
		char *maps;
		tr_ok(dp_process_maps(&p, &maps));
		cr_assert_eq(maps[strlen(maps) - 1], '\n');
		uint64_t below = 0;
		for (const char *line = maps; *line; line = strchr(line, '\n') + 1) {
			unsigned long long from, to;
			cr_assert_eq(sscanf(line, "%llx-%llx ", &from, &to), 2, "'%.60s'", line);
			cr_assert(from >= below && to > from, "'%.60s'", line);
			below = to;
		}
		free(maps);
	}
	tr_kill(pid);
}
