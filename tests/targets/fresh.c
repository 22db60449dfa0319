/* SPDX-License-Identifier: MIT */
/* fresh: a thread that uses another page all the time, so that prefetched memory is not what a snapshot needs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NODES 4096

struct node {
	long value;
	char rest[4096 - sizeof(long)];
};

static struct node *pool;

__attribute__((noinline)) static void look_at(struct node *node)
{
	node->value++;
	usleep(50);
}

static void *walk(void *arg)
{
	for (unsigned i = 0;; i++)
		look_at(&pool[i % NODES]);
	return arg;
}

int main(void)
{
	pthread_t t;
	pool = aligned_alloc(4096, NODES * sizeof(*pool));
	if (!pool || pthread_create(&t, NULL, walk, NULL))
		return 1;
	puts("READY");
	fflush(stdout);
	for (;;)
		pause();
}
