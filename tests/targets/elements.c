/* SPDX-License-Identifier: MIT */
/*
 * elements [crash]: an array of structs on the heap, with all kinds of members, and a list; for modules that walk it. `crash`:
 * crashes.
 */
#include "target.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct nested {
	int c;
	const char *tag;
};
struct s {
	int a;
	double b;
	struct nested n;
	struct nested *np, **npp, ***nppp;
	STAILQ_ENTRY(s) next;
};
STAILQ_HEAD(list, s);

#define N 5
struct s *head;
struct list list = STAILQ_HEAD_INITIALIZER(list);
int n_elements = N;

static void fill(struct s *e, int i)
{
	static struct nested *p[N];
	static struct nested **pp[N];
	e->a = 10 + i;
	e->b = 0.5 * i;
	e->n = (struct nested){20 + i, "inside"};
	e->np = p[i] = &e->n;
	e->npp = pp[i] = &p[i];
	e->nppp = &pp[i];
	STAILQ_INSERT_TAIL(&list, e, next);
}

/* While it waits, `lost` is in no register or memory any more. */
TARGET_PROBED void waits(int lost, int kept)
{
	volatile int sum = kept;
	__asm__ volatile("" : : "r"(lost));
	target_ready();
	while (!target_stop)
		target_sleep_us(1000);
	printf("RESULT %s\n", sum == kept ? "OK" : "BAD");
}

int main(int argc, char **argv)
{
	target_stop_on_term();
	head = calloc(N, sizeof(*head));
	for (int i = 0; i < N; i++)
		fill(&head[i], i);
	if (argc > 1 && !strcmp(argv[1], "crash"))
		*(volatile int *)NULL = 1;
	waits(argc, argc + 1);
	return 0;
}
