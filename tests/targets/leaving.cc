// SPDX-License-Identifier: MIT
// leaving: calls that end otherwise than by a return: exceptions, longjmp, cancelled and ended threads, fibers that switch in the
// middle. After each, 20 ms pass before the next call at the same stack address returns, so that a stale entry gives a wrong
// duration.
//
// At the end, for each function: name, returns, and the most (measured around calls) and least (inside) ns of its calls.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <pthread.h>
#include <stdexcept>
#include <ucontext.h>
#include <unistd.h>

#define PROBED extern "C" __attribute__((noipa))

static long now()
{
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

struct Truth {
	const char *name;
	long returns, most, least;
};
static Truth thrown_truth = {"thrown", 0, 0, 0}, caught_truth = {"caught", 0, 0, 0}, jumped_truth = {"jumped", 0, 0, 0},
	     ended_truth = {"ended", 0, 0, 0}, fibered_truth = {"fibered", 0, 0, 0}, deep_truth = {"deep", 0, 0, 0};
static jmp_buf back;

// The time between these two calls is inside of the measured call.
static long begin() { return now(); }
static void end(Truth &t, long from) { t.least += now() - from; }

PROBED int thrown(int leave)
{
	long from = begin();
	if (leave)
		throw std::runtime_error("left");
	end(thrown_truth, from);
	return leave;
}

PROBED int caught(int leave)
{
	long from = begin();
	int got = 1;
	try {
		thrown(leave);
	} catch (const std::exception &) {
		got = 2;
	}
	end(caught_truth, from);
	return got;
}

PROBED int jumped(int leave)
{
	long from = begin();
	if (leave)
		longjmp(back, 1);
	end(jumped_truth, from);
	return leave;
}

PROBED int ended(int how)
{
	long from = begin();
	if (how == 1)
		for (;;)
			pause();
	if (how == 2)
		pthread_exit(nullptr);
	end(ended_truth, from);
	return how;
}

template <typename F> static void timed(Truth &t, F call)
{
	long from = now();
	call();
	t.most += now() - from;
	t.returns++;
}

static void exceptions()
{
	for (int i = 0; i < 6; i++) {
		try {
			thrown(1);
		} catch (const std::exception &) {
		}
		usleep(20000);
		for (int k = 0; k < 100; k++)
			timed(thrown_truth, [] { thrown(0); });
		timed(caught_truth, [] { caught(1); });
		usleep(20000);
		// The inner call returns as well: its time counts twice.
		timed(caught_truth, [] { timed(thrown_truth, [] { caught(0); }); });
	}
}

static void jumps()
{
	for (volatile int i = 0; i < 6; i++) {
		if (!setjmp(back))
			jumped(1);
		usleep(20000);
		for (int k = 0; k < 100; k++)
			timed(jumped_truth, [] { jumped(0); });
	}
}

static void *thread(void *how)
{
	int h = (int)(long)how;
	if (h)
		ended(h);
	else
		timed(ended_truth, [] { ended(0); });
	return nullptr;
}

// One after the other, on the same stack.
static void threads()
{
	for (int i = 0; i < 6; i++)
		for (long how = 2; how >= 0; how--) {
			pthread_t id;
			if (pthread_create(&id, nullptr, thread, (void *)how))
				std::exit(2);
			if (how == 1) {
				usleep(20000);
				pthread_cancel(id);
			}
			pthread_join(id, nullptr);
			usleep(5000);
		}
}

static ucontext_t home, fiber[3];
static int next_fiber;

// Switches away during the call, and back on the same thread.
PROBED int fibered(int self)
{
	long from = begin();
	swapcontext(&fiber[self], &home);
	end(fibered_truth, from);
	return self;
}

static void fiber_main()
{
	int self = next_fiber;
	for (;;)
		timed(fibered_truth, [self] { fibered(self); });
}

static void fibers()
{
	static char stack[3][65536];
	for (int i = 0; i < 3; i++) {
		getcontext(&fiber[i]);
		fiber[i].uc_stack.ss_sp = stack[i];
		fiber[i].uc_stack.ss_size = sizeof(stack[i]);
		makecontext(&fiber[i], fiber_main, 0);
		next_fiber = i;
		swapcontext(&home, &fiber[i]);
	}
	for (int i = 0; i < 300; i++)
		swapcontext(&home, &fiber[i * i % 3]);
}

// More calls than there is room for entries: they overwrite each other's, and their returns are unpaired.
PROBED long deep(long n)
{
	alignas(4096) volatile char frame[4096];
	long from = begin();
	frame[n] = 1;
	long got = n ? deep(n - 1) + frame[n] : 0;
	end(deep_truth, from);
	return got;
}

int main()
{
	exceptions();
	jumps();
	threads();
	fibers();
	for (int i = 0; i < 5; i++)
		if (deep(200) != 200)
			return 1;
	deep_truth.returns = 5 * 201;
	for (const Truth *t : {&thrown_truth, &caught_truth, &jumped_truth, &ended_truth, &fibered_truth, &deep_truth})
		std::printf("%s %ld %ld %ld\n", t->name, t->returns, t->most, t->least);
	std::printf("RESULT OK\n");
	return 0;
}
