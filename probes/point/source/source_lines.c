/* SPDX-License-Identifier: MIT */
#include "probes/point/source/source_lines.h"

#include "base/cleanup.h"
#include "probes/image/module.h"
#include "probes/point/source/source_lookup.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum { ASKED_MOST = 1 << 18, KEY_MOST = 4608 };

#define LONGEST_NS UINT64_C(120000000000) /* of the wait at the end */
#define LOOK_NS    UINT64_C(50000000)     /* between two looks at `hurry` */

struct file {
	struct dp_source_file of;
	UT_hash_handle hh;
	char key[]; /* path, build-id, inode */
};

struct dp_source_asked {
	struct {
		struct file *file;
		uint64_t vaddr;
	} key;
	struct dp_source source; /* by the thread, before `known` */
	atomic_bool known;
	struct dp_source_asked *next; /* in the queue */
	UT_hash_handle hh;
};

struct dp_source_lines {
	struct file *files; /* these two: of the thread that asks */
	struct dp_source_asked *asked;
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	struct dp_source_asked *first, **last;
	bool started, busy, leave;
	bool missed;
	int hurry;
	unsigned users; /* who destroys: the last of both threads */
	pthread_t thread;
};

struct dp_source_lines *dp_source_lines_create(int hurry)
{
	struct dp_source_lines *l = calloc(1, sizeof(*l));
	pthread_condattr_t attr;
	if (!l)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->work, NULL);
	pthread_cond_init(&l->done, &attr);
	pthread_condattr_destroy(&attr);
	l->last = &l->first;
	l->users = 1;
	l->hurry = hurry;
	return l;
}

static void destroy(struct dp_source_lines *l)
{
	struct dp_source_asked *a, *next_asked;
	struct file *f, *next_file;
	HASH_ITER(hh, l->asked, a, next_asked)
	{
		HASH_DEL(l->asked, a);
		dp_source_fini(&a->source);
		free(a);
	}
	HASH_ITER(hh, l->files, f, next_file)
	{
		HASH_DEL(l->files, f);
		dp_source_file_fini(&f->of);
		free(f);
	}
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->work);
	pthread_cond_destroy(&l->done);
	free(l);
}

static void release(struct dp_source_lines *l)
{
	pthread_mutex_lock(&l->lock);
	const bool last = !--l->users;
	pthread_mutex_unlock(&l->lock);
	if (last)
		destroy(l);
}

/* A thread that is reading is left to itself: it ends when it is done, or with the process. */
struct dp_source_lines *dp_source_lines_destroy(struct dp_source_lines *lines)
{
	if (!lines)
		return NULL;
	pthread_mutex_lock(&lines->lock);
	const bool started = lines->started, busy = lines->busy;
	lines->leave = true;
	pthread_cond_signal(&lines->work);
	pthread_mutex_unlock(&lines->lock);
	if (started && busy)
		pthread_detach(lines->thread);
	else if (started)
		pthread_join(lines->thread, NULL);
	release(lines);
	return NULL;
}

/* ---- the thread ------------------------------------------------------------------------------------------------------------ */

static struct dp_source_asked *next_of(struct dp_source_lines *l)
{
	struct dp_source_asked *a = l->first;
	if (!a || l->leave)
		return NULL;
	l->first = a->next;
	l->last = l->first ? l->last : &l->first;
	return a;
}

static void *work(void *data)
{
	struct dp_source_lines *l = data;
	struct dp_source_asked *a;
	pthread_mutex_lock(&l->lock);
	while (!l->leave) {
		l->busy = (a = next_of(l));
		if (!a) {
			pthread_cond_broadcast(&l->done);
			pthread_cond_wait(&l->work, &l->lock);
			continue;
		}
		pthread_mutex_unlock(&l->lock);
		a->source = dp_source_lookup(&a->key.file->of, a->key.vaddr);
		atomic_store_explicit(&a->known, true, memory_order_release);
		pthread_mutex_lock(&l->lock);
	}
	l->busy = false;
	pthread_mutex_unlock(&l->lock);
	release(l);
	return NULL;
}

/* It takes no signals: they are the other threads'. */
static bool start(struct dp_source_lines *l)
{
	sigset_t all, before;
	if (l->started)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	l->users++;
	l->started = !pthread_create(&l->thread, NULL, work, l);
	l->users -= !l->started;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return l->started;
}

/* ---- asking ---------------------------------------------------------------------------------------------------------------- */

bool dp_source_at(struct dp_image *image, uint64_t pc, bool exact, struct dp_source_at *ret)
{
	const dp_addr addr = dp_addr_of(pc - !exact);
	struct dp_module *m = image ? dp_image_module_at(image, addr) : NULL;
	if (!m || !m->elf || m->vdso || m->path[0] != '/')
		return false;
	*ret = (struct dp_source_at){.path = m->path,
	                             .root = m->root,
	                             .build_id = dp_module_build_id(m),
	                             .inode = m->inode,
	                             .vaddr = dp_module_vaddr(m, addr)};
	return true;
}

static struct file *add_file(struct dp_source_lines *l, const struct dp_source_at *at, const char *key, size_t n)
{
	struct file *f = calloc(1, sizeof(*f) + n);
	if (!f)
		return NULL;
	memcpy(f->key, key, n);
	f->of = (struct dp_source_file){
	        .path = strdup(at->path), .root = strdup(at->root), .build_id = strdup(at->build_id), .inode = at->inode};
	if (f->of.path && f->of.root && f->of.build_id) {
		const unsigned before = HASH_COUNT(l->files);
		HASH_ADD(hh, l->files, key, n, f);
		if (HASH_COUNT(l->files) != before)
			return f;
	}
	dp_source_file_fini(&f->of);
	free(f);
	return NULL;
}

static struct file *file_of(struct dp_source_lines *l, const struct dp_source_at *at)
{
	char key[KEY_MOST];
	struct file *f;
	const int n = snprintf(key, sizeof(key), "%s %s %llx", at->path, at->build_id,
	                       *at->build_id ? 0 : (unsigned long long)at->inode);
	if (n <= 0 || (size_t)n >= sizeof(key))
		return NULL;
	HASH_FIND(hh, l->files, key, (size_t)n, f);
	return f ? f : add_file(l, at, key, (size_t)n);
}

static struct dp_source_asked *add(struct dp_source_lines *l, const struct dp_source_asked *like)
{
	const unsigned before = HASH_COUNT(l->asked);
	struct dp_source_asked *a = before < ASKED_MOST && start(l) ? calloc(1, sizeof(*a)) : NULL;
	if (!a)
		return NULL;
	a->key = like->key;
	HASH_ADD(hh, l->asked, key, sizeof(a->key), a);
	if (HASH_COUNT(l->asked) == before) {
		free(a);
		return NULL;
	}
	pthread_mutex_lock(&l->lock);
	*l->last = a;
	l->last = &a->next;
	pthread_cond_signal(&l->work);
	pthread_mutex_unlock(&l->lock);
	return a;
}

const struct dp_source_asked *dp_source_lines_ask(struct dp_source_lines *lines, const struct dp_source_at *at)
{
	struct dp_source_asked like = {.key = {.vaddr = at->vaddr}}, *a;
	if (!lines || !(like.key.file = file_of(lines, at)))
		return NULL;
	HASH_FIND(hh, lines->asked, &like.key, sizeof(like.key), a);
	return a ? a : add(lines, &like);
}

bool dp_source_is_known(const struct dp_source_asked *asked)
{
	return !asked || atomic_load_explicit(&asked->known, memory_order_acquire);
}

struct dp_source dp_source_of(const struct dp_source_asked *asked)
{
	return asked && dp_source_is_known(asked) ? asked->source : (struct dp_source){0};
}

/* Is everything known? */
static bool wait_until_known(struct dp_source_lines *l, uint64_t ns)
{
	struct timespec until;
	if (!l || !l->started)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / 1000000000);
	until.tv_nsec = (long)(ns % 1000000000);
	pthread_mutex_lock(&l->lock);
	while (l->first || l->busy)
		if (pthread_cond_timedwait(&l->done, &l->lock, &until))
			break;
	const bool known = !l->first && !l->busy;
	pthread_mutex_unlock(&l->lock);
	return known;
}

void dp_source_lines_wait(struct dp_source_lines *lines, uint64_t ns)
{
	wait_until_known(lines, ns);
}

static bool must_hurry(const struct dp_source_lines *l)
{
	return l->hurry >= 0 && poll(&(struct pollfd){.fd = l->hurry, .events = POLLIN}, 1, 0) > 0;
}

void dp_source_lines_finish(struct dp_source_lines *lines)
{
	uint64_t waited = 0;
	if (dp_source_lines_missed(lines)) /* once is enough for a run that has several outputs */
		return;
	while (!wait_until_known(lines, LOOK_NS)) {
		waited += LOOK_NS;
		lines->missed = waited >= LONGEST_NS || must_hurry(lines);
		if (lines->missed)
			return;
	}
}

bool dp_source_lines_missed(const struct dp_source_lines *lines)
{
	return lines && lines->missed;
}
