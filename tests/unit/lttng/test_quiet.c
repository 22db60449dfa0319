/* SPDX-License-Identifier: MIT */
/* A hit of a primed thread does not allocate; loading the sink changes nothing in the program. */
#include "fake.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread unsigned allocations;
static __thread bool watching;
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);

void *malloc(size_t size)
{
	allocations += watching;
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	allocations += watching;
	return __libc_calloc(n, size);
}

static struct host_event probe;

static void *first_hit(void *ret)
{
	const uint64_t value = 1;
	host_prime();
	allocations = 0;
	watching = true;
	*(bool *)ret = host_hit(&probe, &value, sizeof(value));
	watching = false;
	*(unsigned *)((char *)ret + 8) = allocations;
	return NULL;
}

Test(quiet, the_first_hit_of_a_primed_thread_allocates_nothing, .timeout = 30)
{
	_Alignas(8) char ret[16] = {0};
	pthread_t thread;
	fake_session(&probe);
	pthread_create(&thread, NULL, first_hit, ret);
	pthread_join(thread, NULL);
	cr_assert(*(bool *)ret);
	cr_assert_eq(*(unsigned *)(void *)(ret + 8), 0);
	free(malloc(1)); /* checks that our functions replace libc's */
}

static unsigned descriptors(void)
{
	unsigned n = 0;
	DIR *dir = opendir("/proc/thread-self/fd");
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

Test(quiet, loading_leaves_descriptors_and_environment, .timeout = 30)
{
	const unsigned before = descriptors();
	fake_session(&probe);
	cr_assert_eq(descriptors(), before);
	cr_assert_null(getenv("LTTNG_UST_REGISTER_TIMEOUT"));
}
