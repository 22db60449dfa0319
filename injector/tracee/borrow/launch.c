/* SPDX-License-Identifier: MIT */
/*
 * Starts a command and holds it where everything is mapped and none of its own code has run.
 *
 * A static executable is held right after exec. A dynamic one first needs its loader, which at its end jumps to the address that
 * the kernel wrote into the auxiliary vector as AT_ENTRY (glibc and musl alike). That word is redirected to a few bytes of ours
 * in the tail of a text page: a system call that stops for us, then a jump to the real entry point. When the call comes,
 * everything is restored and the thread is held at its entry point. If the tool dies meanwhile, the call has no effect, and the
 * program starts normally. No trap instruction, no single step.
 *
 * To see that call, each call of the loader must stop as well: some sixty stops, 2 ms. A program that somebody else started is in
 * a hurry. There the code first sends its thread a signal that stops only traced threads and is ignored by default; from that
 * stop on, calls stop. Under a seccomp filter it does not: the filter may forbid that call.
 *
 * Differences that the program sees at its entry point: none that the ABI defines (rdx and rsp are the loader's); the registers
 * that system calls use are zero.
 */
#include "injector/tracee/borrow/boot.h"
#include "injector/tracee/proc/auxv.h"
#include "injector/tracee/proc/inspect.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/watchdog.h"

#include "base/cleanup.h"
#include "base/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MAPPING_CALLS 64u /* system calls of a loader from the open to the close of a library: about ten */
#define LET_GO_NS     UINT64_C(100000000)
#define PLANNING_NS   UINT64_C(120000000000) /* debug information may have to be read for the first time */

struct dp_launch {
	struct dp_process p;
	struct dp_freeze f; /* has one thread */
	bool is_static;
	bool adopted;
	uint64_t until_ns; /* when its own code must begin, or DP_FOREVER */
	int failure;       /* pipe, carries the errno of exec; -1 if adopted */
	/* while the loader runs: */
	struct dp_auxv_entry entry;
	bool kept; /* entry.slot is in a frame of the loader */
	dp_addr trip;
	bool signals; /* the code at `trip` sends its signal first */
};

static struct dp_error *ended(const struct dp_launch *l)
{
	return dp_error(DP_TAG_GONE, "the command (%s) ended before its own code ran", l->p.comm);
}

/* ---- the child ----------------------------------------------------------------------------------------------------------- */

/* Between fork and exec: waits until it is traced. */
static void __attribute__((noreturn)) child(char *const argv[], int go, int failure)
{
	char byte;
	if (read(go, &byte, 1) == 1) {
		dp_descriptors_reset();
		execvp(argv[0], argv);
		int sys = errno;
		if (write(failure, &sys, sizeof(sys)) != (ssize_t)sizeof(sys))
			_exit(126);
	}
	_exit(127);
}

static struct dp_error *fork_child(struct dp_launch *l, char *const argv[], int *go)
{
	int to_child[2], to_us[2];
	if (pipe2(to_child, O_CLOEXEC) != 0)
		return dp_error_sys(DP_TAG_SYS, "cannot create a pipe");
	if (pipe2(to_us, O_CLOEXEC) != 0) {
		close(to_child[0]);
		close(to_child[1]);
		return dp_error_sys(DP_TAG_SYS, "cannot create a pipe");
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(to_child[1]);
		child(argv, to_child[0], to_us[1]);
	}
	close(to_child[0]);
	close(to_us[1]);
	*go = to_child[1];
	l->failure = to_us[0];
	l->p.pid = l->p.alive = l->p.ns_pid = pid;
	return pid < 0 ? dp_error_sys(DP_TAG_SYS, "cannot fork for the command") : NULL;
}

/* ---- stops --------------------------------------------------------------------------------------------------------------- */

static struct dp_error *resume(const struct dp_launch *l, int request, int sig)
{
	if (ptrace(request, l->p.pid, NULL, (void *)(long)sig) != 0 && errno != ESRCH)
		return dp_error_sys(DP_TAG_SYS, "cannot resume the command");
	return NULL;
}

static struct dp_error *too_slow(const struct dp_launch *l, enum dp_stop_kind kind)
{
	return dp_error(DP_TAG_UNSTOPPABLE, "process %d (%s) %s before its own code began", l->p.pid, l->p.comm,
	                kind == DP_STOP_GROUP ? "was stopped by a signal" : "ran code of its libraries for too long");
}

static bool is_own_signal(const struct dp_launch *l)
{
	siginfo_t si;
	return !ptrace(PTRACE_GETSIGINFO, l->p.pid, NULL, &si) && si.si_code == SI_TKILL && si.si_pid == l->p.ns_pid;
}

/*
 * At a signal: if it is the one by which the code at `trip` reports, it is not delivered, and the next stop is a system call's.
 * Another signal of that kind may have come at the same moment, and then ours is lost.
 */
static void take_report(const struct dp_launch *l, int *sig, int *request)
{
	struct user_regs_struct r;
	if (!l->signals || *sig != DP_TRIP_SIGNAL || ptrace(PTRACE_GETREGS, l->p.pid, NULL, &r) != 0 ||
	    (r.rip != l->trip.v + DP_TRIP_SENT && r.rip != l->trip.v + DP_TRIP_TAKEN))
		return;
	r.rip = l->trip.v + DP_TRIP_TAKEN;
	r.orig_rax = UINT64_MAX;
	if (ptrace(PTRACE_SETREGS, l->p.pid, NULL, &r) != 0)
		return;
	*sig = is_own_signal(l) ? 0 : *sig;
	*request = PTRACE_SYSCALL;
}

/* Resumes, passing signals through, up to the next stop of the wanted kind or an exec. */
static struct dp_error *run_to(const struct dp_launch *l, int request, enum dp_stop_kind want, struct dp_stop *ret)
{
	int sig = 0;
	for (;;) {
		DP_TRY(resume(l, request, sig));
		*ret = dp_stop_wait(l->p.pid, l->until_ns);
		if (ret->kind == want || ret->kind == DP_STOP_EXEC)
			return NULL;
		if (ret->kind == DP_STOP_NONE || (ret->kind == DP_STOP_GROUP && l->adopted))
			return too_slow(l, ret->kind);
		if (ret->kind == DP_STOP_EXITED)
			return ended(l);
		sig = ret->kind == DP_STOP_SIGNAL ? ret->sig : 0;
		take_report(l, &sig, &request);
	}
}

/* Runs from the exec's own stop to the exit of its system call, so that the next system-call stop is a new call's. */
static struct dp_error *finish_exec(const struct dp_launch *l)
{
	struct dp_stop stop;
	return run_to(l, PTRACE_SYSCALL, DP_STOP_SYSCALL, &stop);
}

static struct dp_error *no_exec(const struct dp_launch *l, const char *command)
{
	int sys = 0;
	if (read(l->failure, &sys, sizeof(sys)) != (ssize_t)sizeof(sys))
		return ended(l);
	errno = sys;
	return dp_error_sys(DP_TAG_EXEC, "cannot start %s", command);
}

static struct dp_error *to_exec(struct dp_launch *l, const char *command, int go)
{
	struct dp_stop stop;
	if (ptrace(PTRACE_SEIZE, l->p.pid, NULL, (void *)(long)DP_SEIZE_OPTIONS) != 0)
		return dp_error_sys(DP_TAG_PERMISSION, "cannot trace the command");
	if (write(go, "", 1) != 1)
		return dp_error_sys(DP_TAG_SYS, "cannot write to the command's pipe");
	for (;;) {
		stop = dp_stop_wait(l->p.pid, DP_FOREVER);
		if (stop.kind == DP_STOP_EXEC)
			return finish_exec(l);
		if (stop.kind == DP_STOP_EXITED)
			return no_exec(l, command);
		DP_TRY(resume(l, PTRACE_CONT, stop.kind == DP_STOP_SIGNAL ? stop.sig : 0));
	}
}

/* ---- running the loader ------------------------------------------------------------------------------------------------- */

/* Unknown counts as yes. */
static bool is_filtered(const struct dp_process *p)
{
	struct dp_buf status;
	dp_buf_init(&status);
	const bool filtered =
	        !dp_proc_slurp(&status, "/proc/%d/status", p->pid) || dp_status_long(dp_buf_str(&status), "Seccomp", 1) != 0;
	dp_buf_fini(&status);
	return filtered;
}

static struct dp_error *set_trip(struct dp_launch *l)
{
	dp_auto_free char *maps = NULL;
	uint8_t code[DP_TRIP_SIZE];
	l->signals = l->adopted && l->p.ns_pid && !is_filtered(&l->p);
	DP_TRY(dp_process_maps(&l->p, &maps));
	dp_trip_build(l->entry.value, l->p.ns_pid, code);
	for (unsigned nth = 0;; nth++) {
		if (!dp_boot_find(&l->p, maps, sizeof(code), nth, &l->trip))
			return dp_error(DP_TAG_NO_THREAD, "the command has no %u unused bytes of executable memory",
			                DP_TRIP_SIZE);
		struct dp_error *err = dp_mem_write_text(&l->p, l->p.pid, l->trip, code, sizeof(code), NULL);
		if (!err)
			break;
		dp_error_destroy(err);
	}
	const uint64_t begin = l->trip.v + (l->signals ? 0 : DP_TRIP_REPORT);
	return dp_mem_write(&l->p, l->entry.slot, &begin, sizeof(begin));
}

/* Restores the thread first, then the vector and the code. */
static struct dp_error *clear_trip(struct dp_launch *l)
{
	static const uint8_t zeroes[DP_TRIP_SIZE];
	struct user_regs_struct r;
	if (ptrace(PTRACE_GETREGS, l->p.pid, NULL, &r) != 0)
		return ended(l);
	r.rip = l->entry.value;
	r.rax = r.rdi = r.rsi = r.r10 = r.r8 = r.r9 = r.rcx = r.r11 = 0;
	r.orig_rax = UINT64_MAX;
	if (ptrace(PTRACE_SETREGS, l->p.pid, NULL, &r) != 0)
		return ended(l);
	if (!l->kept)
		DP_TRY(dp_mem_write(&l->p, l->entry.slot, &l->entry.value, sizeof(l->entry.value)));
	return dp_mem_write_text(&l->p, l->p.pid, l->trip, zeroes, sizeof(zeroes), NULL);
}

/* Runs the loader until our call is over. *again: the program called exec meanwhile (from a constructor). */
static struct dp_error *run_loader(struct dp_launch *l, bool *again)
{
	struct dp_stop stop;
	for (int request = l->signals ? PTRACE_CONT : PTRACE_SYSCALL;; request = PTRACE_SYSCALL) {
		errno = 0;
		DP_TRY(run_to(l, request, DP_STOP_SYSCALL, &stop));
		*again = stop.kind == DP_STOP_EXEC;
		if (*again)
			return finish_exec(l);
		struct user_regs_struct r;
		if (ptrace(PTRACE_GETREGS, l->p.pid, NULL, &r) != 0)
			return ended(l);
		if (r.rip == l->trip.v + DP_TRIP_CALLED)
			break;
	}
	/* That was its entry; registers can be set at its exit. */
	return run_to(l, PTRACE_SYSCALL, DP_STOP_SYSCALL, &stop);
}

/* `stack`: see dp_launch_adopt(). */
static struct dp_error *find_entry(struct dp_launch *l, uint64_t stack)
{
	l->kept = stack;
	return stack ? dp_entry_find_kept(&l->p, stack, &l->entry) : dp_entry_find(&l->p, &l->entry, &l->is_static);
}

/* With the entry found already. */
static struct dp_error *run_to_entry(struct dp_launch *l)
{
	for (bool again = true; again && !l->is_static;) {
		DP_TRY(set_trip(l));
		DP_TRY(run_loader(l, &again));
		if (again)
			DP_TRY(find_entry(l, 0));
	}
	return l->is_static ? NULL : clear_trip(l);
}

static struct dp_error *to_entry(struct dp_launch *l)
{
	DP_TRY(find_entry(l, 0));
	return run_to_entry(l);
}

/* ---- a library that is loaded ------------------------------------------------------------------------------------------------
 */

/*
 * At the exit of open(): rax is the descriptor. Loaders map the file, and close it; then nothing of it has run yet, and not even
 * its addresses are relocated.
 */
static struct dp_error *to_mapped(struct dp_launch *l)
{
	struct user_regs_struct r, opened;
	struct dp_stop stop;
	if (ptrace(PTRACE_GETREGS, l->p.pid, NULL, &opened) != 0)
		return ended(l);
	for (unsigned calls = 0; calls < MAPPING_CALLS && (int64_t)opened.rax >= 0; calls++) {
		DP_TRY(run_to(l, PTRACE_SYSCALL, DP_STOP_SYSCALL, &stop));
		if (stop.kind == DP_STOP_EXEC || ptrace(PTRACE_GETREGS, l->p.pid, NULL, &r) != 0)
			return ended(l);
		DP_TRY(run_to(l, PTRACE_SYSCALL, DP_STOP_SYSCALL, &stop));
		if (stop.kind == DP_STOP_SYSCALL && r.orig_rax == SYS_close && r.rdi == opened.rax)
			return NULL;
	}
	return dp_error(DP_TAG_UNSTOPPABLE, "process %d (%s) does not map a library as loaders do", l->p.pid, l->p.comm);
}

/* ---- all together ------------------------------------------------------------------------------------------------------- */

static struct dp_error *hold(struct dp_launch *l)
{
	struct dp_held *h = calloc(1, sizeof(*h));
	if (!h)
		return dp_error_nomem();
	*h = (struct dp_held){.tid = l->p.pid, .ns_tid = l->p.ns_pid, .seized = true, .stopped = true, .held_at_ns = dp_now_ns()};
	l->f = (struct dp_freeze){.thread = h, .n = 1, .begin_ns = h->held_at_ns};
	return ptrace(PTRACE_GETREGS, h->tid, NULL, &h->regs) == 0 ? NULL : ended(l);
}

static struct dp_error *start(struct dp_launch *l, char *const argv[])
{
	dp_auto_close int go = -1;
	DP_TRY(fork_child(l, argv, &go));
	DP_TRY(to_exec(l, argv[0], go));
	l->p.start_time = dp_process_start_time(l->p.pid);
	DP_TRY(to_entry(l));
	return hold(l);
}

/* Kills a command that cannot be held, unless it has already ended: it never ran. */
static void discard(struct dp_launch *l)
{
	if (l->p.pid > 0) {
		kill(l->p.pid, SIGKILL);
		dp_stop_await_end(l->p.pid);
	}
	dp_launch_destroy(l);
}

struct dp_error *dp_launch_start(char *const argv[], struct dp_launch **ret, pid_t *pid)
{
	struct dp_launch *l = calloc(1, sizeof(*l));
	if (!l)
		return dp_error_nomem();
	l->failure = -1;
	l->until_ns = DP_FOREVER;
	strncpy(l->p.comm, argv[0], sizeof(l->p.comm) - 1);
	struct dp_error *err = start(l, argv);
	if (err) {
		discard(l);
		return err;
	}
	*ret = l;
	*pid = l->p.pid;
	return NULL;
}

/* The program goes on, from wherever it is. A trip that is still to come has no effect without a tracer. */
static void let_go(pid_t pid)
{
	struct dp_held h = {.tid = pid, .seized = true};
	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	if (dp_held_take(&h, dp_stop_sleep(pid, dp_now_ns() + LET_GO_NS)))
		dp_held_release(&h);
	else if (!h.exited)
		dp_late_stop_add(pid, pid);
}

static struct dp_error *adopt(struct dp_launch *l, const struct dp_launch_adopted *what)
{
	l->p.pid = l->p.alive = what->pid;
	if (what->at == DP_LAUNCH_EXECED)
		DP_TRY(finish_exec(l));
	DP_TRY(dp_process_inspect(what->pid, &l->p));
	if (what->at == DP_LAUNCH_LOADS) {
		DP_TRY(to_mapped(l));
	} else {
		DP_TRY(find_entry(l, what->at == DP_LAUNCH_PREPARED ? what->stack : 0));
		DP_TRY(run_to_entry(l));
	}
	return hold(l);
}

struct dp_error *dp_launch_adopt(const struct dp_launch_adopted *what, struct dp_launch **ret)
{
	struct dp_launch *l = calloc(1, sizeof(*l));
	if (!l) {
		let_go(what->pid);
		return dp_error_nomem();
	}
	dp_watchdog_start("a program that has just been started");
	dp_watchdog_limit(DP_WATCHDOG_NS, PLANNING_NS);
	*l = (struct dp_launch){.failure = -1, .adopted = true, .until_ns = what->until_ns};
	struct dp_error *err = adopt(l, what);
	if (err) {
		let_go(what->pid);
		dp_launch_destroy(l);
		return err;
	}
	*ret = l;
	return NULL;
}

bool dp_launch_is_adopted(const struct dp_launch *l)
{
	return l->adopted;
}

bool dp_launch_is_static(const struct dp_launch *l)
{
	return l->is_static;
}

struct dp_freeze *dp_launch_freeze(struct dp_launch *l)
{
	return &l->f;
}

void dp_launch_destroy(struct dp_launch *l)
{
	if (!l)
		return;
	if (l->f.n)
		dp_thaw_all(&l->f);
	if (l->adopted)
		dp_watchdog_stop();
	free(l->f.thread);
	if (l->failure >= 0)
		close(l->failure);
	free(l);
}
