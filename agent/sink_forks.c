/* SPDX-License-Identifier: MIT */
/*
 * A child made by fork() has a copy of ld.so's data as they were at that moment. If another thread was in dlopen() then, they may
 * be half changed, and the child's own dlopen() crashes: after ld.so has unmapped its cache file and before it forgets the
 * address, for example. A program with one thread need not care, until we bring ours. So while a thread of ours is in dlopen(),
 * or in a lock of ld.so that a child does not reset, fork() waits in a handler, like those of pthread_atfork().
 *
 * The wait is bounded: the thread that forks may hold what our thread waits for. Calls that run no handlers (vfork, clone, _Fork)
 * do not wait; POSIX allows their children no dlopen().
 *
 * The handler stays registered, as the sink stays: to take it away needs a lock that a child does not reset either. Children have
 * it too, where it does nothing.
 */
#include "agent/sink_forks.h"

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/futex.h"

#define WAIT_S     1
#define BEFORE_NS  5000000 /* for forks that are past the handlers */
#define PAGE       4096u
#define SYS_MMAP   9
#define SYS_MUNMAP 11

typedef int (*register_fn)(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *owner);
typedef void (*finalize_fn)(void *owner);

/* agent.lds */
extern const char dp_agent_base[] __attribute__((visibility("hidden")));

/* A handler has no argument. The sink's text is mapped at a fixed distance from its data. */
static struct dp_sink *own_sink(void)
{
	return (struct dp_sink *)(uintptr_t)(dp_agent_base + DP_SINK_DATA);
}

/* LTTng's threads make no children; the loader's may, through a library's constructor. */
static int may_pass(const struct dp_sink *sink)
{
	return sink->magic != DP_SINK_MAGIC || !__atomic_load_n(&sink->fork_holds, __ATOMIC_SEQ_CST) ||
	       (uint64_t)dp_syscall0(DP_SYS_GETPID) != sink->forks_pid ||
	       (uint64_t)dp_syscall0(DP_SYS_GETTID) == sink->loader_tid;
}

static void before_fork(void)
{
	struct dp_sink *sink = own_sink();
	uint32_t holds;
	if (may_pass(sink))
		return;
	struct dp_timespec end = dp_futex_now();
	end.sec += WAIT_S;
	while ((holds = __atomic_load_n(&sink->fork_holds, __ATOMIC_SEQ_CST)) &&
	       !__atomic_load_n(&sink->fork_waited, __ATOMIC_RELAXED))
		if (!dp_futex_wait(&sink->fork_holds, holds, &end))
			__atomic_store_n(&sink->fork_waited, 1, __ATOMIC_RELAXED);
}

static int64_t map_a_page(void)
{
	int64_t at;
	register uint64_t r10 __asm__("r10") = 0x22; /* MAP_PRIVATE | MAP_ANONYMOUS */
	register uint64_t r8 __asm__("r8") = UINT64_MAX;
	register uint64_t r9 __asm__("r9") = 0;
	__asm__ volatile("syscall"
	                 : "=a"(at)
	                 : "a"((int64_t)SYS_MMAP), "D"((uint64_t)0), "S"((uint64_t)PAGE), "d"((uint64_t)0), "r"(r10), "r"(r8),
	                   "r"(r9)
	                 : "rcx", "r11", "memory");
	return at;
}

/*
 * A fork() that was past the handlers before has to come to its system call, and that holds the lock of the address space while
 * it copies: whoever maps a page after that comes later.
 */
static void await_earlier_forks(void)
{
	const struct dp_timespec rest = {0, BEFORE_NS};
	uint32_t word = 0;
	dp_futex(&word, DP_FUTEX_WAIT, 0, &rest);
	const int64_t at = map_a_page();
	if (at > 0)
		dp_syscall4(SYS_MUNMAP, (uint64_t)at, PAGE, 0, 0);
}

void dp_sink_hold_forks(struct dp_sink *sink)
{
	__atomic_fetch_add(&sink->fork_holds, 1, __ATOMIC_SEQ_CST);
	await_earlier_forks();
}

void dp_sink_let_forks(struct dp_sink *sink)
{
	__atomic_fetch_sub(&sink->fork_holds, 1, __ATOMIC_SEQ_CST);
	dp_futex(&sink->fork_holds, DP_FUTEX_WAKE, INT32_MAX, 0);
}

void dp_sink_forks_init(struct dp_sink *sink)
{
	sink->forks_pid = (uint64_t)dp_syscall0(DP_SYS_GETPID);
	((register_fn)(uintptr_t)sink->register_atfork)(before_fork, 0, 0, sink);
	dp_sink_hold_forks(sink);
}

void dp_sink_forks_fini(struct dp_sink *sink)
{
	((finalize_fn)(uintptr_t)sink->finalize)(sink);
}
