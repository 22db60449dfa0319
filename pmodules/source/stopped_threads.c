/* SPDX-License-Identifier: MIT */
/* Threads: what /proc says before the stop, and their registers when stopped. */
#include "pmodules/source/stopped_internal.h"

#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/proc/proc.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#define KSTACK_MOST (64u << 10)

void dp_stopped_free_threads(struct dp_stopped_thread *thread, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free((void *)(uintptr_t)thread[i].kstack);
	free(thread);
}

/* Needs root, and not every kernel has it. */
static char *read_kstack(pid_t pid, pid_t tid)
{
	struct dp_buf b;
	char *text = NULL;
	dp_buf_init(&b);
	if (dp_proc_slurp(&b, "/proc/%d/task/%d/stack", pid, tid) && b.len && b.len < KSTACK_MOST)
		text = strdup(dp_buf_str(&b));
	dp_buf_fini(&b);
	return text;
}

/* How often the thread was scheduled; 0: unknown. */
static uint64_t times_run(pid_t pid, pid_t tid)
{
	struct dp_buf b;
	uint64_t n = 0;
	dp_buf_init(&b);
	if (!dp_proc_slurp(&b, "/proc/%d/task/%d/schedstat", pid, tid) || sscanf(dp_buf_str(&b), "%*u %*u %" SCNu64, &n) != 1)
		n = 0;
	dp_buf_fini(&b);
	return n;
}

/* Reads the system call and the kernel stack; valid only if the thread did not run in between. */
static void look_at_call(pid_t pid, pid_t tid, struct dp_stopped_thread *t)
{
	const uint64_t before = times_run(pid, tid);
	dp_proc_call(pid, tid, &t->kcall);
	if (t->kcall.nr < 0)
		return;
	t->kstack = read_kstack(pid, tid);
	if (times_run(pid, tid) != before)
		t->kcall.nr = -1;
}

static void look_at(const struct dp_stopped *s, pid_t tid, struct dp_stopped_thread *t)
{
	struct dp_task_stat stat;
	*t = (struct dp_stopped_thread){.tid = tid, .state = '?', .syscall = -1};
	dp_proc_comm(tid, t->name, sizeof(t->name));
	if (dp_proc_stat(s->target.process.pid, tid, &stat))
		t->state = stat.state;
	look_at_call(s->target.process.pid, tid, t);
}

struct dp_error *dp_stopped_list(struct dp_stopped *s)
{
	struct dp_tids tids;
	dp_stopped_free_threads(s->thread, s->nthreads);
	s->thread = NULL;
	s->nthreads = 0;
	if (!dp_proc_tids(s->target.process.pid, &tids))
		return dp_error_nomem();
	s->thread = calloc(tids.n + 1, sizeof(*s->thread));
	for (size_t i = 0; s->thread && i < tids.n; i++)
		look_at(s, tids.tid[i], &s->thread[s->nthreads++]);
	free(tids.tid);
	return s->thread ? NULL : dp_error_nomem();
}

/* ---- registers ------------------------------------------------------------------------------------------------------------ */

static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE || sig == SIGTRAP || sig == SIGABRT ||
	       sig == SIGSYS;
}

static void take_vector(pid_t tid, struct dp_stopped_thread *t)
{
	struct user_fpregs_struct fp;
	t->has_vector = ptrace(PTRACE_GETFPREGS, tid, NULL, &fp) == 0;
	if (t->has_vector)
		memcpy(t->xmm, fp.xmm_space, sizeof(t->xmm));
}

/* Is it in a system call that was interrupted and will be restarted? */
static bool waits(const struct user_regs_struct *r)
{
	return (int64_t)r->orig_rax >= 0 && (int64_t)r->rax <= -512 && (int64_t)r->rax >= -516;
}

void dp_stopped_registers(const struct dp_held *h, struct dp_stopped_thread *t)
{
	const struct user_regs_struct *r = &h->regs;
	const uint64_t args[6] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};
	t->regs = *r;
	t->syscall = waits(r) ? (int64_t)r->orig_rax : -1;
	memcpy(t->args, args, sizeof(args));
	take_vector(h->tid, t);
	if (h->pending_signal && ptrace(PTRACE_GETSIGINFO, h->tid, NULL, &t->siginfo) != 0)
		t->siginfo = (siginfo_t){.si_signo = h->pending_signal};
	t->is_fault = is_fault(t->siginfo.si_signo);
}

/* A stopped thread's kernel stack shows only the stop. The one read before is valid if the thread is still in the same call. */
static void check_kstack(struct dp_stopped_thread *t)
{
	const struct dp_proc_call *c = &t->kcall;
	if (t->syscall >= 0 && t->syscall == c->nr && t->regs.rsp == c->sp && t->regs.rip == c->pc &&
	    !memcmp(t->args, c->args, sizeof(t->args)))
		return;
	free((void *)(uintptr_t)t->kstack);
	t->kstack = NULL;
}

static int by_tid(const void *a, const void *b)
{
	const struct dp_stopped_thread *x = a, *y = b;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static struct dp_stopped_thread *earlier(struct dp_stopped *s, pid_t tid, size_t hint)
{
	for (size_t k = 0; k < s->nthreads; k++) {
		struct dp_stopped_thread *t = &s->thread[(hint + k) % s->nthreads];
		if (t->tid == tid)
			return t;
	}
	return NULL;
}

struct dp_error *dp_stopped_take_threads(struct dp_stopped *s)
{
	size_t n = 0;
	struct dp_stopped_thread *list = calloc(s->freeze.n + 1, sizeof(*list));
	if (!list)
		return dp_error_nomem();
	for (size_t i = 0; i < s->freeze.n; i++) {
		const struct dp_held *h = &s->freeze.thread[i];
		struct dp_stopped_thread *was = earlier(s, h->tid, i), *t = &list[n];
		if (!h->stopped) /* killed while stopped */
			continue;
		if (was) {
			*t = *was;
			was->kstack = NULL;
		} else { /* it is new */
			*t = (struct dp_stopped_thread){.tid = h->tid, .state = '?'};
			dp_proc_comm(h->tid, t->name, sizeof(t->name));
		}
		dp_stopped_registers(h, t);
		check_kstack(t);
		dp_stopped_stubs_show(s, t);
		n++;
	}
	dp_stopped_free_threads(s->thread, s->nthreads);
	s->thread = list;
	s->nthreads = n;
	qsort(list, n, sizeof(*list), by_tid);
	return NULL;
}
