/* SPDX-License-Identifier: MIT */
/*
 * Forks another process, unnoticed by its program.
 *
 * The borrowed thread calls clone(CLONE_FILES | CLONE_FS) with no exit signal: no descriptor is held open twice, no fork handler
 * runs, and neither wait() nor SIGCHLD report the child. The child is traced from its start (PTRACE_O_TRACECLONE), and stopped.
 *
 * If dynprobe dies, an unstopped child would continue as a second copy of the program. So the thread does not use the borrower's
 * usual call, but one that checks its result: the child exits, the thread restores itself (boot.c). That code overwrites the
 * borrower's script loop, which is not in use then. Once the child has stopped, it dies with us (PTRACE_O_EXITKILL, on it alone).
 *
 * A child with no exit signal stays in its parent's list of children until it is waited for with __WCLONE. The borrowed thread
 * does that. If we are killed, our cleanup child arranges it, and if that is killed too, the next dynprobe that makes a copy: it
 * recognizes ours by name.
 *
 * Shared descriptors would stay open when the process ends or calls exec while the copy exists: the port of a server that is to
 * be restarted, the lock of a file. So after the pause the copy makes calls of its own: it takes a name, and closes all
 * descriptors. And if memory runs out, the copy must be killed, not the program.
 */
#include "injector/tracee/borrow/copy.h"

#include "injector/tracee/borrow/boot.h"
#include "injector/tracee/borrow/borrow.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/watchdog.h"
#include "injector/tracee/stop/cleanup_child.h"
#include "injector/tracee/proc/proc.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALL_LIMIT_NS  UINT64_C(10000000000) /* for the page tables of a terabyte */
#define STAND_LIMIT_NS UINT64_C(1000000000)
#define BORROW_NS      UINT64_C(2000000)
#define CLEAR_TRIES    50
#define REST_NS        10000000L
#define STOPS_MOST     16
#define DEAD_TRIES     1000
#define ORPHANS        16u       /* at a time */
#define COPY_NAME      "dp-copy" /* as in `forker` */

struct dp_copy {
	struct dp_process parent;
	pid_t pid, ns_pid; /* ns_pid: in the process's namespace */
	uint64_t start_time;
	bool suspended; /* seccomp */
	struct dp_cleanup_child *heir;
};

static const uint8_t forker[] = {
        0x0f, 0x05,                              /* syscall */
        0x48, 0x91,                              /* xchg %rax,%rcx */
        0xe3, 0x05,                              /* jrcxz child */
        0xe9, 0,    0,    0,   0,                /* jmp to the self-restore */
        0xbf, 15,   0,    0,   0,                /* child: mov $PR_SET_NAME,%edi */
        0x48, 0x8d, 0x35, 33,  0,   0,   0,      /* lea name(%rip),%rsi */
        0xb8, 157,  0,    0,   0,                /* mov $SYS_prctl,%eax */
        0x0f, 0x05,                              /* syscall */
        0x31, 0xff,                              /* xor %edi,%edi */
        0x83, 0xce, 0xff,                        /* or $~0,%esi */
        0x8d, 0x57, 2,                           /* lea CLOSE_RANGE_UNSHARE(%rdi),%edx */
        0xb8, 0xb4, 1,    0,   0,                /* mov $SYS_close_range,%eax */
        0x0f, 0x05,                              /* syscall */
        0x31, 0xff,                              /* end: xor %edi,%edi */
        0xb8, 231,  0,    0,   0,                /* mov $SYS_exit_group,%eax */
        0x0f, 0x05,                              /* syscall */
        0xeb, 0xf5,                              /* jmp end */
        'd',  'p',  '-',  'c', 'o', 'p', 'y', 0, /* name */
};
#define CHILD_CALLS 2
#define HOME_AT     7u /* offset of the jump's distance */
_Static_assert(sizeof(forker) <= DP_BOOT_SCRIPT_END - DP_BOOT_SCRIPT && SYS_exit_group == 231, "it fits over the script loop");

static struct dp_error *gone(struct dp_borrow *b)
{
	b->h->exited = true;
	return dp_error(DP_TAG_GONE, "process %d (%s) ended or called exec", b->p.pid, b->p.comm);
}

static bool trace_clone(const struct dp_borrow *b, bool on)
{
	const long options = DP_SEIZE_OPTIONS | (b->suspended ? PTRACE_O_SUSPEND_SECCOMP : 0) | (on ? PTRACE_O_TRACECLONE : 0);
	return ptrace(PTRACE_SETOPTIONS, b->h->tid, NULL, (void *)options) == 0;
}

static struct dp_error *write_code(const struct dp_borrow *b)
{
	uint8_t code[sizeof(forker)];
	const int32_t home = (int32_t)DP_BOOT_RESTORE - (int32_t)(DP_BOOT_SCRIPT + HOME_AT + 4);
	memcpy(code, forker, sizeof(code));
	memcpy(code + HOME_AT, &home, sizeof(home));
	return dp_mem_write_text(&b->p, b->h->tid, dp_addr_add(b->boot, DP_BOOT_SCRIPT), code, sizeof(code), NULL);
}

static bool set_call(const struct dp_borrow *b)
{
	struct user_regs_struct r = b->h->regs;
	r.rip = b->boot.v + DP_BOOT_SCRIPT;
	r.orig_rax = UINT64_MAX; /* the interrupted call must not restart here */
	r.rax = SYS_clone;
	r.rdi = CLONE_FILES | CLONE_FS;
	r.rsi = r.rdx = r.r10 = r.r8 = r.r9 = 0;
	return ptrace(PTRACE_SETREGS, b->h->tid, NULL, &r) == 0;
}

/* Handles a stop other than a system call's: the child was made, or job control. */
static struct dp_error *pass(struct dp_borrow *b, struct dp_stop stop, pid_t *child, int *sig)
{
	unsigned long msg = 0;
	*sig = 0;
	switch (stop.kind) {
	case DP_STOP_SIGNAL:
		if (stop.sig == SIGTRAP) { /* all signals are blocked: it is the event */
			ptrace(PTRACE_GETEVENTMSG, b->h->tid, NULL, &msg);
			*child = (pid_t)msg;
			return NULL;
		}
		*sig = stop.sig;
		if (stop.sig == SIGSTOP)
			return NULL;
		return dp_error(DP_TAG_REMOTE, "signal %d interrupted dynprobe's system call on thread %d of process %d",
		                stop.sig, b->h->tid, b->p.pid);
	case DP_STOP_TRAP:
	case DP_STOP_GROUP:
		return NULL;
	case DP_STOP_NONE:
		b->stuck = true;
		return dp_error(DP_TAG_REMOTE, "the fork of process %d (%s) timed out", b->p.pid, b->p.comm);
	default:
		return gone(b);
	}
}

/* A fork cannot be interrupted. When its time is up, the other threads are released; its result no longer matters then. */
static struct dp_stop await(struct dp_borrow *b, uint64_t until_ns, uint64_t limit_ns)
{
	struct dp_stop stop = dp_stop_wait(b->h->tid, until_ns < limit_ns ? until_ns : limit_ns);
	if (stop.kind != DP_STOP_NONE || until_ns >= limit_ns || !b->frozen)
		return stop;
	if (!b->frozen->parted)
		dp_thaw_but(b->frozen, b->h);
	dp_watchdog_limit(DP_WATCHDOG_NS, CALL_LIMIT_NS + DP_WATCHDOG_GRACE_NS);
	return dp_stop_wait(b->h->tid, limit_ns);
}

/* Runs the thread through the call's entry and the clone event to its exit. */
static struct dp_error *call(struct dp_borrow *b, uint64_t until_ns, pid_t *child, int64_t *result)
{
	const uint64_t limit = dp_now_ns() + CALL_LIMIT_NS;
	int sig = 0;
	for (int stops = 0; stops < 2;) {
		if (ptrace(PTRACE_SYSCALL, b->h->tid, NULL, (void *)(long)sig) != 0 && errno != ESRCH)
			return dp_error_sys(DP_TAG_SYS, "cannot resume thread %d of process %d", b->h->tid, b->p.pid);
		const struct dp_stop stop = await(b, until_ns, limit);
		sig = 0;
		if (stop.kind == DP_STOP_SYSCALL)
			stops++;
		else
			DP_TRY(pass(b, stop, child, &sig));
	}
	errno = 0;
	*result = ptrace(PTRACE_PEEKUSER, b->h->tid, (void *)offsetof(struct user_regs_struct, rax), NULL);
	return errno == ESRCH ? gone(b) : NULL;
}

/* From here on the copy dies with us. */
static struct dp_error *bind(const struct dp_copy *c)
{
	const struct dp_stop stop = dp_stop_wait(c->pid, dp_now_ns() + STAND_LIMIT_NS);
	const long options = PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | (c->suspended ? PTRACE_O_SUSPEND_SECCOMP : 0);
	if (stop.kind != DP_STOP_NONE && stop.kind != DP_STOP_EXITED &&
	    ptrace(PTRACE_SETOPTIONS, c->pid, NULL, (void *)options) == 0)
		return NULL;
	return dp_error(DP_TAG_REMOTE, "the copy of the process did not stop");
}

/* Makes the process wait for the copy. */
static struct dp_error *clear(pid_t ns_pid, struct dp_borrow *b)
{
	const uint64_t args[6] = {(uint64_t)ns_pid, 0, __WCLONE | WNOHANG, 0};
	int64_t result;
	return dp_remote_syscall(b, SYS_wait4, args, &result);
}

static void end(const struct dp_copy *c)
{
	kill(c->pid, SIGKILL);
	dp_stop_await_end(c->pid);
}

static void unmake(struct dp_copy *c, struct dp_borrow *b)
{
	if (c->pid)
		end(c);
	if (c->pid && c->ns_pid > 0)
		dp_error_destroy(clear(c->ns_pid, b));
	free(c);
}

/*
 * The first child in a new pid namespace would be its init, and the namespace would end with it: the program could never fork
 * into it again. The first child in a new time namespace fixes its offsets.
 */
static bool is_elsewhere(const struct dp_borrow *b, const char *ns)
{
	char path[96], own[64] = "", children[64] = "";
	snprintf(path, sizeof(path), "/proc/%d/task/%d/ns/%s", b->p.pid, b->h->tid, ns);
	const bool known = readlink(path, own, sizeof(own) - 1) > 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/ns/%s_for_children", b->p.pid, b->h->tid, ns);
	const bool is_there = readlink(path, children, sizeof(children) - 1) > 0; /* missing before the first child */
	return known && (!is_there || strcmp(own, children) != 0);
}

static struct dp_error *check(const struct dp_borrow *b)
{
	DP_TRY(dp_borrow_check(b));
	if (!is_elsewhere(b, "pid") && !is_elsewhere(b, "time"))
		return NULL;
	return dp_error(DP_TAG_REMOTE, "children of process %d (%s) start in another namespace, and so would a copy", b->p.pid,
	                b->p.comm);
}

static struct dp_error *judge(const struct dp_copy *c, const struct dp_borrow *b, int64_t result)
{
	const struct dp_process *p = &c->parent;
	if (result < 0)
		return dp_error(DP_TAG_REMOTE, "process %d (%s) cannot fork: %s", p->pid, p->comm, strerror((int)-result));
	if (!c->pid)
		return dp_error(DP_TAG_REMOTE, "the kernel did not report the copy of process %d", p->pid);
	if (b->frozen && b->frozen->parted)
		return dp_error(DP_TAG_REMOTE, "the fork of process %d (%s) took longer than --max-pause allows", p->pid,
		                p->comm);
	return bind(c);
}

struct dp_error *dp_copy_make(const struct dp_process *p, struct dp_borrow *b, uint64_t until_ns, struct dp_copy **ret)
{
	struct dp_copy *c = calloc(1, sizeof(*c));
	int64_t result = 0;
	if (!c)
		return dp_error_nomem();
	c->parent = *p;
	c->parent.known_maps = NULL;
	c->suspended = b->suspended;
	struct dp_error *err = check(b);
	if (!err)
		err = write_code(b);
	if (!err && (!trace_clone(b, true) || !set_call(b)))
		err = gone(b);
	if (!err)
		err = call(b, until_ns, &c->pid, &result);
	trace_clone(b, false);
	c->ns_pid = (pid_t)result;
	if (!err)
		err = judge(c, b, result);
	if (err)
		unmake(c, b);
	else
		*ret = c;
	return err;
}

/* Runs the copy through the entry and exit of each of its calls. Signals to its process group may stop it; none is delivered. */
static void let_go_of_files(const struct dp_copy *c)
{
	const uint64_t deadline = dp_now_ns() + STAND_LIMIT_NS;
	for (int calls = 0, stops = 0; calls < 2 * CHILD_CALLS; stops++) {
		if (stops >= STOPS_MOST || (ptrace(PTRACE_SYSCALL, c->pid, NULL, NULL) != 0 && errno != ESRCH))
			return;
		const struct dp_stop stop = dp_stop_wait(c->pid, deadline);
		if (stop.kind == DP_STOP_NONE || stop.kind == DP_STOP_EXITED)
			return;
		calls += stop.kind == DP_STOP_SYSCALL;
	}
}

static void prefer_to_lose(const struct dp_copy *c)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", c->pid);
	dp_auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : write(fd, "1000", 4);
	(void)n;
}

/* The id, in the process's namespace, of a copy that a killed dynprobe and its cleanup child left; 0: it is not one. */
static pid_t orphan(pid_t pid)
{
	struct dp_buf status;
	bool nested;
	dp_buf_init(&status);
	const char *text = dp_proc_slurp(&status, "/proc/%d/status", pid) ? dp_buf_str(&status) : "";
	const char *name = dp_status_find(text, "Name"), *state = dp_status_find(text, "State");
	const bool is = name && !strncmp(name, COPY_NAME "\n", sizeof(COPY_NAME)) && state && *state == 'Z';
	const pid_t ns_pid = is ? dp_status_ns_pid(text, &nested) : 0;
	dp_buf_fini(&status);
	return ns_pid;
}

struct orphans {
	pid_t ns_pid[ORPHANS];
	size_t n;
};

static void add_orphans(const struct dp_process *p, pid_t tid, struct orphans *ret)
{
	struct dp_buf children;
	dp_buf_init(&children);
	const char *at = dp_proc_slurp(&children, "/proc/%d/task/%d/children", p->pid, tid) ? dp_buf_str(&children) : "";
	for (char *end; ret->n < ORPHANS; at = end) {
		const pid_t child = (pid_t)strtol(at, &end, 10), ns_pid = end > at ? orphan(child) : 0;
		if (end == at)
			break;
		if (ns_pid > 0)
			ret->ns_pid[ret->n++] = ns_pid;
	}
	dp_buf_fini(&children);
}

static void find_orphans(const struct dp_process *p, struct orphans *ret)
{
	struct dp_tids tids;
	ret->n = 0;
	if (!dp_proc_tids(p->pid, &tids))
		return;
	for (size_t i = 0; i < tids.n; i++)
		add_orphans(p, tids.tid[i], ret);
	free(tids.tid);
}

/* On a thread borrowed for this. */
static struct dp_error *borrow_and_clear(const struct dp_copy *c, const struct orphans *others)
{
	struct dp_borrow *b = NULL;
	DP_TRY(dp_borrow_begin(&c->parent, NULL, BORROW_NS, c->parent.seccomp, &b));
	struct dp_error *err = clear(c->ns_pid, b);
	for (size_t i = 0; i < others->n && !err; i++)
		err = clear(others->ns_pid[i], b);
	struct dp_error *back = dp_borrow_end(b, NULL);
	if (err)
		dp_error_destroy(back);
	return err ? err : back;
}

static bool is_passing(const struct dp_error *err)
{
	return err->tag == DP_TAG_UNSTOPPABLE || err->tag == DP_TAG_NO_THREAD || err->tag == DP_TAG_VFORK ||
	       err->tag == DP_TAG_TRACED;
}

static void rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
}

static void clear_patiently(const struct dp_copy *c)
{
	struct orphans others;
	find_orphans(&c->parent, &others);
	for (int tried = 0; c->ns_pid > 0 && tried < CLEAR_TRIES; tried++) {
		struct dp_error *err = borrow_and_clear(c, &others);
		const bool again = err && is_passing(err);
		dp_error_destroy(err);
		if (!again)
			break;
		rest();
	}
}

/* ---- after the pause, and at the end -------------------------------------------------------------------------------------- */

/* Runs in the cleanup child. The kernel has killed the copy, which takes time if it has much memory. */
static void inherit(const void *data)
{
	const struct dp_copy *c = data;
	struct dp_task_stat stat;
	for (int tried = 0; tried < DEAD_TRIES; tried++) {
		if (!dp_proc_stat(c->pid, 0, &stat) || stat.start_time != c->start_time)
			return;
		if (stat.state == 'Z') {
			clear_patiently(c);
			return;
		}
		rest();
	}
}

void dp_copy_part(struct dp_copy *c)
{
	struct dp_task_stat stat;
	prefer_to_lose(c);
	let_go_of_files(c);
	if (!dp_proc_stat(c->pid, 0, &stat))
		return;
	c->start_time = stat.start_time;
	dp_error_destroy(dp_cleanup_child_create(inherit, c, &c->heir)); /* without one the next dynprobe cleans up */
}

pid_t dp_copy_pid(const struct dp_copy *c)
{
	return c->pid;
}

struct dp_copy *dp_copy_destroy(struct dp_copy *c)
{
	if (!c)
		return NULL;
	end(c);
	clear_patiently(c);
	dp_cleanup_child_dismiss(c->heir);
	free(c);
	return NULL;
}
