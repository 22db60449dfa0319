/* SPDX-License-Identifier: MIT */
/*
 * C modules run in dynprobe itself, perhaps while a process is held: they must neither crash nor block it.
 *
 * Crashes (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) during a module's call are caught on an alternate stack and end the call by
 * siglongjmp(). That is safe if the module's own code was interrupted. If it was a function that the module called, that may have
 * held malloc's lock or corrupted the heap. So malloc is tried first; if it hangs or aborts, dynprobe exits. That is safe: the
 * kernel and the agent release what it held.
 *
 * Loops: a timer checks the deadline every few milliseconds. If it is over and the module's own code was interrupted, the call
 * ends (dynprobe's and libc's state is consistent then). A module that is in other code at every tick for too long is stuck in a
 * call: dynprobe exits, as above.
 *
 * This cannot undo what a module wrote to foreign memory. docs/decisions/0022-pmodules.md.
 */
#include "pmodules/host/guard.h"

#include "pmodules/host/host_state.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define TICK_NS    2000000L
#define LATE_NS    100000L /* after the deadline, for code that mostly waits for other code */
#define GRACE_HELD 40u     /* times the budget: 2 s */
#define GRACE_LATE 1200u   /* a minute, when no process waits: reading much debug information takes long */
#define TRIAL_NS   UINT64_C(1000000000)
#define STACK      65536u

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

struct guard {
	sigjmp_buf at;
	struct guard *outer;
	struct pmodule *module;
	const struct dp_guard_text *text;
	int signal;       /* what ended the call; 0: the deadline */
	const char *left; /* "exit()": the call that the module made; or NULL */
	bool foreign;     /* interrupted outside the module's own code */
	uint64_t address;
};

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define CRASHES (sizeof(crashes) / sizeof(*crashes))

static struct guard *volatile top;   /* of the thread that runs modules */
static volatile uint64_t trial_ends; /* deadline of the test of malloc; 0: no test */
static struct sigaction before[CRASHES], tick_before;
static sigset_t mask_before;
static stack_t stack_before;
static timer_t timer;
static bool is_on;
static volatile bool is_fast; /* the timer has the period LATE_NS */
static pid_t owner;
static char stack[STACK] __attribute__((aligned(64)));

static int tick_signal(void)
{
	return SIGRTMAX - 2;
}

/* 0: no more ticks. */
static void set_period(long ns)
{
	timer_settime(timer, 0, &(struct itimerspec){{0, ns}, {0, ns}}, NULL);
	is_fast = ns == LATE_NS;
}

/*
 * Before a call that does not return, a sanitized function would take a lock of this thread. Whoever holds it may be what is
 * stuck: then ticks would come on top of each other until the stack is full.
 */
#define BARE __attribute__((no_sanitize_address))

BARE static void die(const char *why)
{
	static const char text[] = "\ndynprobe: exiting: a pmodule cannot be stopped safely (the process resumes): ";
	struct iovec parts[] = {{(void *)(uintptr_t)text, sizeof(text) - 1},
	                        {(void *)(uintptr_t)why, strlen(why)},
	                        {(void *)(uintptr_t) "\n", 1}};
	set_period(0); /* a tick would come here again, on the same stack, for as long as writing takes */
	const ssize_t n = writev(STDERR_FILENO, parts, 3);
	(void)n;
	_exit(125);
}

static bool own_code(const struct guard *g, const ucontext_t *u)
{
	const uintptr_t pc = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
	return pc >= g->text->start && pc < g->text->end;
}

static void crashed(int signal, siginfo_t *info, void *context)
{
	struct guard *g = top;
	if (trial_ends)
		die("its crash left the heap unusable");
	if (!g || owner != (pid_t)syscall(SYS_gettid)) { /* not in a module: restore the default behaviour */
		for (size_t i = 0; i < CRASHES; i++)
			if (crashes[i] == signal)
				sigaction(signal, &before[i], NULL);
		return;
	}
	g->signal = signal;
	g->address = signal == SIGSEGV || signal == SIGBUS ? (uint64_t)(uintptr_t)info->si_addr : 0;
	g->foreign = !own_code(g, context);
	siglongjmp(g->at, 1);
}

BARE static void tick(int signal, siginfo_t *info, void *context)
{
	struct guard *g = top;
	const uint64_t now = dp_host_now();
	(void)signal;
	(void)info;
	if (trial_ends && now > trial_ends)
		die("its crash left the heap locked");
	if (trial_ends || !g || !g->module->deadline_ns || now < g->module->deadline_ns)
		return;
	if (own_code(g, context)) {
		g->signal = 0;
		siglongjmp(g->at, 1);
	}
	if (g->text->runs_rarely && !is_fast)
		set_period(LATE_NS);
	const struct dp_host *h = g->module->host;
	if (now > g->module->deadline_ns + (dp_host_is_held(h) ? GRACE_HELD : GRACE_LATE) * dp_host_budget(h))
		die("it is stuck in a call that does not return");
}

/* sa_mask stays empty: leaving a handler by siglongjmp() keeps the current mask. */
static void install(int signal, void (*fn)(int, siginfo_t *, void *), struct sigaction *old)
{
	struct sigaction action = {.sa_sigaction = fn, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	sigemptyset(&action.sa_mask);
	if (fn == tick)
		action.sa_flags |= SA_RESTART;
	sigaction(signal, &action, old);
}

static void unblock(void)
{
	sigset_t mine;
	sigemptyset(&mine);
	sigaddset(&mine, tick_signal());
	for (size_t i = 0; i < CRASHES; i++)
		sigaddset(&mine, crashes[i]);
	pthread_sigmask(SIG_UNBLOCK, &mine, &mask_before);
}

static struct dp_error *guard_on(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = tick_signal()};
	const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
	if (is_on)
		return NULL;
	owner = event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer))
		return dp_error_sys(DP_TAG_SYS, "timer_create, for the time limit of pmodules");
	sigaltstack(&own, &stack_before);
	for (size_t i = 0; i < CRASHES; i++)
		install(crashes[i], crashed, &before[i]);
	install(tick_signal(), tick, &tick_before);
	unblock();
	set_period(TICK_NS);
	is_on = true;
	return NULL;
}

void dp_guard_off(void)
{
	if (!is_on || top)
		return;
	timer_delete(timer);
	for (size_t i = 0; i < CRASHES; i++)
		sigaction(crashes[i], &before[i], NULL);
	sigaction(tick_signal(), &(struct sigaction){.sa_handler = SIG_IGN}, NULL); /* drops a pending one */
	sigaction(tick_signal(), &tick_before, NULL);
	pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
	if (stack_before.ss_sp || stack_before.ss_flags & SS_DISABLE)
		sigaltstack(&stack_before, NULL);
	is_on = false;
}

bool dp_guard_text_of(const struct dl_phdr_info *info, uintptr_t inside, struct dp_guard_text *ret)
{
	struct dp_guard_text text = {.start = UINTPTR_MAX};
	bool mine = false;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uintptr_t start = info->dlpi_addr + p->p_vaddr;
		if (p->p_type != PT_LOAD)
			continue;
		mine |= inside - start < p->p_memsz;
		if (!(p->p_flags & PF_X))
			continue;
		text.start = start < text.start ? start : text.start;
		text.end = start + p->p_memsz > text.end ? start + p->p_memsz : text.end;
	}
	if (mine)
		*ret = text;
	return mine;
}

void dp_guard_leave(const char *how)
{
	struct guard *g = top;
	if (!g || owner != (pid_t)syscall(SYS_gettid))
		return;
	g->left = how;
	siglongjmp(g->at, 1);
}

static void slow_down(void)
{
	if (is_fast)
		set_period(TICK_NS);
}

/* Tests malloc. It may deadlock or abort: crashed() and tick() check trial_ends. */
static void try_heap(void)
{
	void *volatile p[8];
	trial_ends = dp_host_now() + TRIAL_NS;
	for (size_t i = 0; i < 8; i++)
		p[i] = malloc((size_t)16 << i);
	for (size_t i = 0; i < 8; i++)
		free(p[i]);
	if (ftrylockfile(stderr))
		die("its crash left stderr locked");
	funlockfile(stderr);
	trial_ends = 0;
}

static struct dp_error *ended(struct guard *g)
{
	struct pmodule *m = g->module;
	if (g->left) {
		m->is_broken = true;
		return dp_error(DP_TAG_PMODULE, "called %s: the module is disabled, dynprobe continues", g->left);
	}
	if (!g->signal)
		return dp_error(DP_TAG_PMODULE, "did not return in time");
	m->is_broken = true;
	if (g->foreign)
		try_heap();
	if (g->signal == SIGSEGV || g->signal == SIGBUS)
		return dp_error(DP_TAG_PMODULE, "crashed (%s at %#llx%s): the module is disabled", strsignal(g->signal),
		                (unsigned long long)g->address, g->foreign ? ", in a function it called" : "");
	return dp_error(DP_TAG_PMODULE, "crashed (%s): the module is disabled", strsignal(g->signal));
}

struct dp_error *dp_guard_run(struct pmodule *m, const struct dp_guard_text *text, void (*fn)(void *data), void *data)
{
	struct guard g = {.outer = top, .module = m, .text = text};
	struct dp_host *h = m->host;
	const unsigned entered = h->entered, dispatching = h->dispatching;
	DP_TRY(guard_on());
	if (sigsetjmp(g.at, 0)) {
		top = g.outer;
		h->entered = entered;
		h->dispatching = dispatching;
		slow_down();
		return ended(&g);
	}
	top = &g;
	fn(data);
	top = g.outer;
	slow_down();
	return NULL;
}
