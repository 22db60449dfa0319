// SPDX-License-Identifier: MIT
// unwinding exceptions|cancel: exceptions thrown through, caught in and rethrown from probed functions; threads cancelled
// and ended by pthread_exit() in probed functions with destructors and cleanup handlers.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <pthread.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

#define PROBED extern "C" __attribute__((noipa))

static volatile std::sig_atomic_t stop;
static std::atomic<long> bad, made, destroyed, cleaned;

struct Guard {
	Guard()
	{
		made++;
	}
	~Guard()
	{
		destroyed++;
	}
};

PROBED int thrower(int i)
{
	if (i % 3 == 0)
		throw std::runtime_error(std::to_string(i));
	if (i % 3 == 1)
		throw i;
	return i;
}

// Catches and rethrows.
PROBED int rethrower(int i)
{
	Guard guard;
	try {
		return thrower(i) + 1;
	} catch (const std::runtime_error &e) {
		if (e.what() != std::to_string(i))
			bad++;
		throw;
	} catch (int n) {
		throw n + 1;
	}
}

// The last handler of exceptions.
PROBED int catcher(int i) noexcept
{
	Guard guard;
	try {
		return rethrower(i);
	} catch (const std::exception &e) {
		return -std::stoi(e.what());
	} catch (int n) {
		return n + 1000000;
	}
}

PROBED int expected(int i)
{
	return i % 3 == 0 ? -i : i % 3 == 1 ? i + 1 + 1000000 : i + 1;
}

static std::exception_ptr kept;
PROBED void keeper(int i)
{
	try {
		thrower(i);
		kept = nullptr;
	} catch (...) {
		kept = std::current_exception();
	}
}

static void exceptions()
{
	for (int i = 3; !stop; i = (i + 1) & 0xffffff) {
		if (catcher(i) != expected(i))
			bad++;
		keeper(i);
		if ((kept == nullptr) != (i % 3 == 2))
			bad++;
		try {
			if (kept)
				std::rethrow_exception(kept);
		} catch (const std::runtime_error &e) {
			if (i % 3 != 0 || e.what() != std::to_string(i))
				bad++;
		} catch (int n) {
			if (i % 3 != 1 || n != i)
				bad++;
		}
		if (i % 50 == 0)
			usleep(1000);
	}
	if (made != destroyed)
		bad++;
}

static void clean(void *arg)
{
	(void)arg;
	cleaned++;
}

PROBED unsigned spin(unsigned n)
{
	for (unsigned i = 0; i < 1000; i++)
		n = n * 31 + i;
	return n;
}

PROBED void waits()
{
	Guard guard;
	usleep(50000); // a cancellation point
}

PROBED void exits(void *result)
{
	Guard guard;
	pthread_exit(result);
}

struct Run {
	int kind;
	std::atomic<bool> started;
};

static void *thread(void *arg)
{
	Run *run = static_cast<Run *>(arg);
	volatile unsigned n = 1;
	pthread_cleanup_push(clean, nullptr);
	Guard guard;
	run->started = true;
	if (run->kind == 0)
		for (;;)
			waits();
	if (run->kind == 1)
		exits(arg);
	for (;;) {
		n = spin(n);
		pthread_testcancel();
	}
	pthread_cleanup_pop(0);
	return nullptr;
}

static void cancellations()
{
	long threads = 0, unclean = 0;
	for (int i = 0; !stop; i++) {
		Run run = {i % 3, {false}};
		pthread_t t;
		void *result = nullptr;
		const long before = cleaned;
		pthread_create(&t, nullptr, thread, &run);
		while (!run.started)
			sched_yield();
		if (run.kind != 1) {
			usleep(300);
			pthread_cancel(t);
		}
		pthread_join(t, &result);
		threads++;
		if (result != (run.kind == 1 ? static_cast<void *>(&run) : PTHREAD_CANCELED))
			bad++;
		unclean += cleaned != before + 1;
	}
	if (made != destroyed || unclean) {
		std::fprintf(stderr, "of %ld threads %ld ended without their cleanup handler; %ld objects made, %ld destroyed\n",
		             threads, unclean, made.load(), destroyed.load());
		bad++;
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = {};
	action.sa_handler = [](int) { stop = 1; };
	action.sa_flags = SA_RESTART;
	sigaction(SIGTERM, &action, nullptr);
	std::printf("READY %d\n", (int)getpid());
	std::fflush(stdout);
	const char *what = argc > 1 ? argv[1] : "exceptions";
	if (!std::strcmp(what, "cancel"))
		cancellations();
	else
		exceptions();
	std::printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
