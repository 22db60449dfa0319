/* SPDX-License-Identifier: MIT */
/* One thread waits twenty times as long in wait_long() as in wait_short(), one never waits. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static volatile long spun;

__attribute__((noinline)) static void wait_long(void)
{
	nanosleep(&(struct timespec){0, 20000000}, NULL);
	__asm__ volatile("");
}

__attribute__((noinline)) static void wait_short(void)
{
	nanosleep(&(struct timespec){0, 1000000}, NULL);
	__asm__ volatile("");
}

static void *spin(void *data)
{
	for (;;)
		spun++;
	return data;
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, NULL, spin, NULL);
	puts("READY");
	fflush(stdout);
	for (;;) {
		wait_long();
		wait_short();
	}
}
