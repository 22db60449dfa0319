/* SPDX-License-Identifier: MIT */
/*
 * locks: threads that wait for locks of every kind, two of them for each other, one for itself. Each is named for what it does.
 * Prints READY when all of them wait, and stays until it is killed.
 */
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <mutex>
#include <pthread.h>
#include <shared_mutex>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>
#include <time.h>
#include <unistd.h>

std::mutex mutex_one;
std::shared_mutex shared_two, shared_read;
std::recursive_mutex recursive_three;
std::condition_variable condition_four;
std::mutex mutex_four;
pthread_mutex_t inherit_five, timed_six = PTHREAD_MUTEX_INITIALIZER, self_seven = PTHREAD_MUTEX_INITIALIZER, robust_eight;
pthread_spinlock_t spin_nine;
static pthread_barrier_t both;
static clockid_t spinner_clock;
static std::atomic<bool> spinner_begins;

template <typename F> static void start(const char *name, F f)
{
	std::thread([=] {
		pthread_setname_np(pthread_self(), name);
		f();
	}).detach();
}

static int waiting()
{
	int n = 0;
	char path[300], line[64];
	DIR *d = opendir("/proc/self/task");
	for (dirent *e = d ? readdir(d) : nullptr; e; e = readdir(d)) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", e->d_name);
		FILE *f = fopen(path, "r");
		n += f && fgets(line, sizeof(line), f) && atoi(line) == SYS_futex;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return n;
}

/* The spinning thread is in no system call, so its processor time is looked at. */
static long spinner_ms()
{
	timespec t = {};
	clock_gettime(spinner_clock, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void make(pthread_mutex_t *m, int robust, int inherit)
{
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	if (robust)
		pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	if (inherit)
		pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(m, &a);
}

int main()
{
	make(&inherit_five, 0, 1);
	make(&robust_eight, 1, 0);
	pthread_barrier_init(&both, nullptr, 3);
	pthread_spin_init(&spin_nine, 0);
	/* A deadlock over a mutex and a shared mutex that is held for writing. */
	start("ring-a", [] {
		mutex_one.lock();
		pthread_barrier_wait(&both);
		shared_two.lock();
	});
	start("ring-b", [] {
		shared_two.lock();
		pthread_barrier_wait(&both);
		mutex_one.lock();
	});
	start("self", [] {
		pthread_mutex_lock(&self_seven);
		pthread_mutex_lock(&self_seven);
	});
	pthread_barrier_wait(&both);
	recursive_three.lock();
	recursive_three.lock();
	shared_read.lock_shared();
	pthread_mutex_lock(&inherit_five);
	pthread_mutex_lock(&timed_six);
	pthread_mutex_lock(&robust_eight);
	pthread_spin_lock(&spin_nine);
	start("recursive", [] { recursive_three.lock(); });
	start("writer", [] { shared_read.lock(); });
	start("reader", [] { shared_two.lock_shared(); });
	start("inherit", [] { pthread_mutex_lock(&inherit_five); });
	start("robust", [] { pthread_mutex_lock(&robust_eight); });
	start("timed", [] {
		timespec far = {1L << 33, 0};
		pthread_mutex_timedlock(&timed_six, &far);
	});
	start("condition", [] {
		std::unique_lock<std::mutex> l(mutex_four);
		condition_four.wait(l, [] { return false; });
	});
	while (waiting() < 10)
		usleep(1000);
	start("spin", [] {
		pthread_getcpuclockid(pthread_self(), &spinner_clock);
		spinner_begins = true;
		pthread_spin_lock(&spin_nine);
	});
	while (!spinner_begins)
		usleep(1000);
	for (const long begun = spinner_ms(); spinner_ms() < begun + 5;)
		usleep(1000);
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	for (;;)
		pause();
}
