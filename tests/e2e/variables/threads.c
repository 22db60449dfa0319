/* SPDX-License-Identifier: MIT */
/* A library with thread-local variables (-DLIBRARY), and a program whose threads each have their own. */
#ifdef LIBRARY
static __thread int hidden = 3;
static __thread long list[3] = {1, 2, 3};
__thread long shown = 5;

__attribute__((noinline)) long note(int step)
{
	__asm__ volatile("" : "+r"(step) : : "memory");
	return hidden + shown + list[2] + step;
}

void change(int to)
{
	hidden = to;
	shown = to * 1000L;
	list[2] = -to;
}
#else
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

long note(int step);
void change(int to);

static int rounds;

static void *work(void *number)
{
	for (int i = 0; i < rounds / 3; i++) {
		const int to = (int)(long)number * 1000 + i;
		change(to);
		printf("{\"hidden\":%d,\"shown\":%ld,\"last\":%d}\n", to, to * 1000L, -to);
		note(i);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[3];
	rounds = argc > 1 ? atoi(argv[1]) : 30;
	for (long i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, work, (void *)(i + 1));
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
#endif
