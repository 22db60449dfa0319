/* SPDX-License-Identifier: MIT */
/*
 * goroutines SECONDS: what Go's runtime does to calls. Coroutines that threads take in turn; their stacks are moved while they
 * wait; now and then a call is abandoned, as by a panic. The current coroutine's descriptor is the only thread-local variable,
 * and starts with its stack. A section has the name of Go's table of functions.
 */
#include "target.h"

#include <pthread.h>

#define COROUTINES 24
#define THREADS    3
#define STACK      16384
#define WAIT_NS    1000000

struct coroutine {
	uint64_t lo, hi; /* of its stack, as in runtime.g */
	uint64_t sp;
	uint64_t scheduler; /* where the thread that runs it continues */
	uint64_t returned, abandoned, moved;
	bool over;
};

__attribute__((section(".gopclntab"), used)) static const uint32_t table[8] = {0xfffffff1};

static __thread struct coroutine *current;

static struct coroutine all[COROUTINES], *queue[COROUTINES];
static unsigned waiting;
static bool ending;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Saves the stack pointer and all that calls preserve at *save, and continues at `load`. */
void change_stack(uint64_t *save, uint64_t load);
__asm__(".pushsection .text\n.globl change_stack\n.type change_stack, @function\nchange_stack:\n"
        "	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
        "	mov %rsp, (%rdi)\n	mov %rsi, %rsp\n"
        "	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbx\n	pop %rbp\n	ret\n"
        ".size change_stack, . - change_stack\n.popsection\n");

static __attribute__((noinline)) struct coroutine *self(void)
{
	return current;
}

static __attribute__((noinline)) void yield(void)
{
	struct coroutine *c = self();
	change_stack(&c->sp, c->scheduler);
}

static __attribute__((noinline)) bool enough(uint64_t since)
{
	return target_now_ns() - since >= WAIT_NS;
}

/* Lasts at least WAIT_NS. */
TARGET_PROBED uint64_t work(uint64_t n)
{
	const uint64_t since = target_now_ns();
	while (!enough(since))
		yield();
	return n * 3 + 1;
}

/* A call that never returns: the coroutine starts anew. */
TARGET_PROBED uint64_t abandon(uint64_t n)
{
	self()->over = true;
	yield();
	return n;
}

static __attribute__((noinline)) void body(void)
{
	for (uint64_t n = 1;; n++) {
		if (work(n) != n * 3 + 1)
			abort();
		self()->returned++;
		if (n % 8 == 7)
			abandon(n);
	}
}

static uint64_t fresh_stack(struct coroutine *c)
{
	uint64_t *top = (uint64_t *)c->hi - 8; /* six registers and the address where it starts */
	memset(top, 0, 64);
	top[6] = (uint64_t)body;
	return (uint64_t)top;
}

static void take_stack(struct coroutine *c)
{
	void *room = NULL;
	if (posix_memalign(&room, 64, STACK))
		abort();
	c->lo = (uint64_t)room;
	c->hi = c->lo + STACK;
}

/* Nothing on it points into it. */
static void move_stack(struct coroutine *c)
{
	const uint64_t old_lo = c->lo, used = c->hi - c->sp, from = c->sp;
	take_stack(c);
	c->sp = c->hi - used;
	memcpy((void *)c->sp, (void *)from, used);
	memset((void *)old_lo, 0xaa, STACK);
	free((void *)old_lo);
	c->moved++;
}

static struct coroutine *take(void)
{
	struct coroutine *c = NULL;
	pthread_mutex_lock(&lock);
	if (waiting) {
		c = queue[0];
		memmove(queue, queue + 1, --waiting * sizeof(*queue));
	}
	pthread_mutex_unlock(&lock);
	return c;
}

static void give(struct coroutine *c)
{
	pthread_mutex_lock(&lock);
	queue[waiting++] = c;
	pthread_mutex_unlock(&lock);
}

static void run(struct coroutine *c)
{
	current = c;
	change_stack(&c->scheduler, c->sp);
	current = NULL;
	if (c->over) {
		c->over = false;
		c->abandoned++;
		c->sp = fresh_stack(c);
	} else if (c->returned % 2) {
		move_stack(c);
	}
}

static void *schedule(void *arg)
{
	for (struct coroutine *c; !__atomic_load_n(&ending, __ATOMIC_RELAXED); target_sleep_us(50))
		while ((c = take())) {
			run(c);
			give(c);
			if (__atomic_load_n(&ending, __ATOMIC_RELAXED))
				return arg;
		}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	uint64_t returned = 0, abandoned = 0, moved = 0;
	const uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 3600;
	target_stop_on_term();
	for (unsigned i = 0; i < COROUTINES; i++) {
		take_stack(&all[i]);
		all[i].sp = fresh_stack(&all[i]);
		give(&all[i]);
	}
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, schedule, NULL))
			return 1;
	target_ready();
	for (uint64_t i = 0; i < 100 * seconds && !target_stop; i++)
		target_sleep_us(10000);
	__atomic_store_n(&ending, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < COROUTINES; i++) {
		returned += all[i].returned;
		abandoned += all[i].abandoned;
		moved += all[i].moved;
	}
	printf("returned %lu abandoned %lu moved %lu\n", returned, abandoned, moved);
	printf("RESULT %s\n", returned > 100 && abandoned && moved ? "OK" : "BAD");
	return 0;
}
