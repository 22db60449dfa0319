/* SPDX-License-Identifier: MIT */
/*
 * reference [crash]: one of everything that a pmodule can query, with values that tests know: a variable of each kind, two
 * threads with names and thread-locals, frames with parameters. Prints READY, and waits for SIGTERM; `crash`: writes to 0x10.
 */
#include "target.h"

#include <complex.h>
#include <pthread.h>
#include <sys/syscall.h>

enum color { RED, GREEN = 5 };
struct inner {
	int c;
	const char *tag;
};
struct thing {
	int id;
	struct inner in, *ptr;
	int list[4];
	enum color color;
	unsigned low : 3;
	int high : 5;
	float small;
	double ratio;
	long double precise;
	_Complex double z;
	char text[16];
	int (*fn)(int);
	uint64_t big;
	void *nothing;
};

static int twice(int x)
{
	return 2 * x;
}

static struct inner beside = {77, "beside"};
struct thing thing_g = {.id = 42,
                        .in = {7, "inner"},
                        .ptr = &beside,
                        .list = {10, 11, 12, 13},
                        .color = GREEN,
                        .low = 5,
                        .high = -7,
                        .small = 0.5f,
                        .ratio = 1.5,
                        .precise = 2.5L,
                        .text = "sixteen",
                        .fn = twice,
                        .big = UINT64_C(0xfedcba9876543210)};
const char message_g[] = "a text\0behind";
int16_t numbers_g[4] = {-2, 3, -32768, 7};
float real_g = 0.25f;
__thread long mark_tls = 17;

TARGET_PROBED __attribute__((optimize("O0"))) int stay(struct thing *thing, int depth)
{
	struct inner local = {depth, "local"};
	int *volatile nowhere = (int *)0x10;
	target_ready();
	while (!target_stop && depth != 2)
		pause();
	if (depth == 2)
		*nowhere = 1;
	return thing->id + local.c;
}

TARGET_PROBED __attribute__((optimize("O0"))) int outer(int depth)
{
	int kept = depth + 1;
	return stay(&thing_g, depth) + kept;
}

static pid_t helper;

static void *worker(void *barrier)
{
	pthread_setname_np(pthread_self(), "helper");
	mark_tls = 18;
	helper = gettid();
	pthread_barrier_wait(barrier);
	while (!target_stop)
		pause();
	return NULL;
}

static bool helper_pauses(void)
{
	char path[64], line[64];
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)helper);
	FILE *f = fopen(path, "r");
	const bool pauses = f && fgets(line, sizeof(line), f) && atoi(line) == SYS_pause;
	if (f)
		fclose(f);
	return pauses;
}

int main(int argc, char **argv)
{
	pthread_barrier_t both;
	pthread_t t;
	(void)argv;
	thing_g.z = 1.5 - 2.5 * I;
	target_stop_on_term();
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&t, NULL, worker, &both);
	pthread_barrier_wait(&both);
	while (!helper_pauses())
		target_sleep_us(1000);
	outer(argc);
	_exit(0);
}
