/* SPDX-License-Identifier: MIT */
/*
 * A depot with known faults, for docs/cookbook-snapshots.md:
 *
 *   depot stuck    two clerks, each with the lock that the other one waits for
 *   depot leak     keeps a block of 4000 bytes of every hundredth parcel, and counts what it keeps
 *   depot crash    follows a parcel that has no label
 *   depot freed    weighs a parcel that was given back, again and again
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct label {
	char town[24];
	int weight;
};

struct parcel {
	int number;
	const struct label *label;
	struct parcel *next;
};

static pthread_mutex_t shelf = PTHREAD_MUTEX_INITIALIZER, ledger = PTHREAD_MUTEX_INITIALIZER;
static atomic_int ready;
static struct {
	int parcels, kept;
	size_t bytes;
} book;

__attribute__((noipa)) static void both(pthread_mutex_t *first, pthread_mutex_t *second)
{
	pthread_mutex_lock(first);
	for (ready++; ready < 2;)
		usleep(1000);
	pthread_mutex_lock(second);
}

static void *clerk(void *arg)
{
	both(&ledger, &shelf);
	return arg;
}

__attribute__((noipa)) static int weigh(const struct parcel *parcel)
{
	return parcel->label->weight;
}

__attribute__((noipa)) static void pack(int number)
{
	char *volatile block = malloc(number % 100 == 0 ? 4000 : 100);
	book.parcels++;
	if (number % 100 == 0) {
		book.kept++;
		book.bytes += 4000;
	} else {
		free(block);
	}
	usleep(100);
}

static void say_ready(void)
{
	puts("READY");
	fflush(stdout);
}

static void stuck(void)
{
	pthread_t other;
	pthread_create(&other, NULL, clerk, NULL);
	say_ready();
	both(&shelf, &ledger);
}

static int crash(void)
{
	static const struct label to = {"Lyon", 12};
	struct parcel last = {3, NULL, NULL}, middle = {2, &to, &last}, first = {1, &to, &middle};
	int sum = 0;
	for (const struct parcel *p = &first; p; p = p->next)
		sum += weigh(p);
	return sum;
}

static void freed(void)
{
	say_ready(); /* allocates its buffer before the block below */
	struct parcel *volatile parcel = malloc(sizeof(*parcel) + 2000);
	void *volatile wall = malloc(100); /* keeps the freed block from merging with the top of the heap */
	free(parcel);
	for (; wall; usleep(10000))
		weigh(parcel); /* malloc has overwritten the label with an address */
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "stuck"))
		stuck();
	if (!strcmp(what, "crash"))
		return crash();
	if (!strcmp(what, "freed"))
		freed();
	say_ready();
	for (int number = 1;; number++)
		pack(number);
}
