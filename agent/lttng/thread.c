/* SPDX-License-Identifier: MIT */
/*
 * Allocates what a thread needs before its first hit, while it holds no lock: LTTng's per-thread data, and our block. The blocks
 * of ended threads are used again. Hits after the start of a thread's key destructors find it unprimed.
 */
#include "agent/lttng/guest/guest.h"
#include "agent/lttng/guest/redirect.h"
#include "agent/lttng/hosted.h"

#define _LGPL_SOURCE
#include <errno.h>
#include <lttng/urcu/urcu-ust.h>
#include <lttng/ust-thread.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAIN_STACK   (UINT64_C(8) << 20) /* assumed maximum of the main thread's stack: what is below may not be able to grow */
#define ADDRESS_BITS 47
#define POINTER_MASK (((UINT64_C(1) << ADDRESS_BITS) - 1) & ~UINT64_C(4095))

extern void *__libc_stack_end; /* of ld.so: start of the main thread's stack */

static struct dp_sink *told; /* its `primed` counts */
static uint64_t *alive;      /* reads 0 in a fork child */
static pthread_key_t at_end;
static uint64_t free_blocks; /* the first one's address; its unused bits count exchanges, against ABA */

static uint64_t tagged(const struct dp_block *block, uint64_t before)
{
	const uint64_t tag =
	        (before & ~POINTER_MASK) + 1; /* of the low 12 bits: 4096 exchanges within one attempt are not possible */
	return (uint64_t)(uintptr_t)block | (tag & ~POINTER_MASK & 4095);
}

static void give_back(struct dp_block *block)
{
	uint64_t first = __atomic_load_n(&free_blocks, __ATOMIC_ACQUIRE);
	do {
		__atomic_store_n(&block->next, (struct dp_block *)(uintptr_t)(first & POINTER_MASK), __ATOMIC_RELAXED);
	} while (!__atomic_compare_exchange_n(&free_blocks, &first, tagged(block, first), false, __ATOMIC_ACQ_REL,
	                                      __ATOMIC_ACQUIRE));
}

static struct dp_block *take_free(void)
{
	uint64_t first = __atomic_load_n(&free_blocks, __ATOMIC_ACQUIRE);
	struct dp_block *block, *next;
	do {
		block = (struct dp_block *)(uintptr_t)(first & POINTER_MASK);
		if (!block)
			return NULL;
		next = __atomic_load_n(&block->next, __ATOMIC_RELAXED); /* blocks are never unmapped */
	} while (!__atomic_compare_exchange_n(&free_blocks, &first, tagged(next, first), false, __ATOMIC_ACQ_REL,
	                                      __ATOMIC_ACQUIRE));
	return block;
}

static struct dp_block *new_block(void)
{
	struct dp_block *block = mmap(NULL, sizeof(*block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		return NULL;
	mprotect(block->guard, sizeof(block->guard), PROT_NONE);
	return block;
}

/* The thread's regular stack. If it is unknown, every hit goes to the block's. */
static void learn_stack(struct dp_block *block)
{
	pthread_attr_t attr;
	struct rlimit limit;
	void *low;
	size_t size;
	block->stack_lo = block->stack_hi = 0;
	if (gettid() == getpid()) {
		const uint64_t end = (uint64_t)(uintptr_t)__libc_stack_end;
		if (getrlimit(RLIMIT_STACK, &limit) != 0)
			return;
		block->stack_hi = end;
		block->stack_lo = end - (limit.rlim_cur < MAIN_STACK ? limit.rlim_cur : MAIN_STACK);
		return;
	}
	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return;
	if (pthread_attr_getstack(&attr, &low, &size) == 0) {
		block->stack_lo = (uint64_t)(uintptr_t)low;
		block->stack_hi = block->stack_lo + size;
	}
	pthread_attr_destroy(&attr);
}

static void reset(struct dp_block *block)
{
	block->busy = block->move = block->reading = block->abandoned = 0;
	block->thread = (uint64_t)(uintptr_t)__builtin_thread_pointer();
	block->slot = (struct dp_slot){.state = DP_SLOT_USED, .cache = (uint64_t)(uintptr_t)block->cache};
	block->slot.memo = (uint64_t)(uintptr_t)block->memo;
	block->memo[0] = 0; /* a hit that was left by a longjmp may have it still */
	block->reader = &URCU_TLS(lttng_ust_urcu_reader);
	block->errno_at = &errno;
	learn_stack(block);
}

/* Runs at the thread's end: later hits must not use a block that another thread may take. */
static void ended(void *block)
{
	dp_lttng_block = NULL;
	__asm__ volatile("" ::: "memory");
	give_back(block);
}

/* NULL: out of memory. */
static struct dp_block *allocate(void)
{
	lttng_ust_init_thread();
	lttng_ust_urcu_read_lock(); /* the first call registers the thread */
	lttng_ust_urcu_read_unlock();
	dp_lttng_tls_prime();
	struct dp_block *block = take_free();
	if (!block)
		block = new_block();
	if (!block)
		return NULL;
	reset(block);
	if (pthread_setspecific(at_end, block) == 0)
		return block;
	give_back(block);
	return NULL;
}

static void prime(void)
{
	struct dp_block *block = NULL;
	if (dp_lttng_guest == DP_GUEST_HOST && dp_lttng_named_as_ours())
		dp_lttng_be_guest();
	else
		block = allocate();
	dp_lttng_end_priming(block);
	if (block)
		__atomic_fetch_add(&told->primed, 1, __ATOMIC_RELAXED);
}

void dp_lttng_prime(void)
{
	const int saved = errno;
	if (*alive && dp_lttng_begin_priming())
		prime();
	errno = saved;
}

bool dp_lttng_threads_init(struct dp_sink *sink)
{
	const int error = pthread_key_create(&at_end, ended);
	if (error) {
		errno = error;
		return false;
	}
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) != 0)
		return false;
	told = sink;
	alive = page;
	*alive = 1;
	return true;
}
