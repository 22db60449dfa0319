/* SPDX-License-Identifier: MIT */
/*
 * dl_iterate_phdr() holds a lock of ld.so during its callback, and LTTng's callback reads files, at every start of a session. In
 * a fork child made meanwhile the lock stays taken by a thread that does not exist there: ld.so resets its other locks in a
 * child, but not this one, and the child's next dlopen() hangs. So LTTng's callback gets copies, after the lock is released, and
 * fork() waits while they are made. What it uses of an object is in the copies: base, name and program headers.
 */
#include "agent/lttng/guest/redirect.h"

#include "agent/sink.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

struct copies {
	char *room;
	size_t size, used; /* `used` counts on past the end of the room */
	size_t n;
};

#define ALIGNED(n) (((n) + 15u) & ~(size_t)15u)

static void *put(struct copies *c, const void *bytes, size_t n)
{
	char *at = c->used + ALIGNED(n) <= c->size ? c->room + c->used : NULL;
	c->used += ALIGNED(n);
	return at ? memcpy(at, bytes, n) : NULL;
}

static int copy(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct copies *c = arg;
	struct dl_phdr_info *mine = put(c, info, sizeof(*info));
	const char *name = info->dlpi_name ? info->dlpi_name : "";
	const char *name_copy = put(c, name, strlen(name) + 1);
	const ElfW(Phdr) *headers = put(c, info->dlpi_phdr, info->dlpi_phnum * sizeof(*headers));
	(void)size;
	if (!mine || !name_copy || (!headers && info->dlpi_phnum))
		return 0;
	mine->dlpi_name = name_copy;
	mine->dlpi_phdr = headers;
	c->n++;
	return 0;
}

/* In the order of copy(). */
static struct dl_phdr_info *next(const struct copies *c, size_t *at)
{
	struct dl_phdr_info *info = (void *)(c->room + *at);
	*at += ALIGNED(sizeof(*info)) + ALIGNED(strlen(info->dlpi_name) + 1) +
	       ALIGNED(info->dlpi_phnum * sizeof(*info->dlpi_phdr));
	return info;
}

static struct dp_sink *told;

void dp_lttng_phdr_init(struct dp_sink *sink)
{
	__atomic_store_n(&told, sink, __ATOMIC_RELEASE);
}

static void copy_all(struct copies *c)
{
	typedef void (*forks_fn)(struct dp_sink *);
	struct dp_sink *sink = __atomic_load_n(&told, __ATOMIC_ACQUIRE);
	if (sink && sink->hold_forks)
		((forks_fn)(uintptr_t)sink->hold_forks)(sink);
	dl_iterate_phdr(copy, c);
	if (sink && sink->let_forks)
		((forks_fn)(uintptr_t)sink->let_forks)(sink);
}

int dp_lttng_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data)
{
	struct copies c = {0};
	int result = 0;
	copy_all(&c);
	do { /* repeats if the program loaded libraries meanwhile */
		free(c.room);
		c = (struct copies){.size = c.used, .room = malloc(c.used)};
		if (!c.room)
			return 0;
		copy_all(&c);
	} while (c.used > c.size);
	for (size_t i = 0, at = 0; i < c.n && !result; i++)
		result = callback(next(&c, &at), sizeof(struct dl_phdr_info), data);
	free(c.room);
	return result;
}
