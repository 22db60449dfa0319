/* SPDX-License-Identifier: MIT */
#include "session/thread_names.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum { MOST = 1 << 16, NAME = 16 };
#define AGAIN_NS UINT64_C(1000000000)

struct dp_thread_name {
	struct {
		pid_t pid, tid;
	} key;
	uint64_t looked_ns;
	char name[NAME + 1]; /* "": not known */
	UT_hash_handle hh;
};

/* A thread that has ended keeps its name. */
static void look(struct dp_thread_name *one)
{
	char path[64], name[NAME + 1];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", one->key.pid, one->key.tid);
	dp_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, name, NAME);
	if (n <= 0)
		return;
	name[n] = '\0';
	name[strcspn(name, "\n")] = '\0';
	strcpy(one->name, name);
}

static struct dp_thread_name *find(struct dp_thread_names *names, pid_t pid, pid_t tid)
{
	struct dp_thread_name *one = names->last, key = {.key = {pid, tid}};
	if (one && one->key.pid == pid && one->key.tid == tid)
		return one;
	HASH_FIND(hh, names->all, &key.key, sizeof(key.key), one);
	if (one || names->n >= MOST || !(one = calloc(1, sizeof(*one))))
		return one;
	one->key = key.key;
	HASH_ADD(hh, names->all, key, sizeof(one->key), one);
	if (!one->hh.tbl) {
		free(one);
		return NULL;
	}
	names->n++;
	return one;
}

const char *dp_thread_name(struct dp_thread_names *names, pid_t pid, pid_t tid, uint64_t now_ns, const char *otherwise)
{
	struct dp_thread_name *one = find(names, pid, tid);
	if (!one)
		return otherwise;
	names->last = one;
	if (!one->looked_ns || now_ns > one->looked_ns + AGAIN_NS) {
		one->looked_ns = now_ns | 1;
		look(one);
	}
	return *one->name ? one->name : otherwise;
}

void dp_thread_names_fini(struct dp_thread_names *names)
{
	struct dp_thread_name *one, *next;
	HASH_ITER(hh, names->all, one, next)
	{
		HASH_DEL(names->all, one);
		free(one);
	}
	*names = (struct dp_thread_names){0};
}
