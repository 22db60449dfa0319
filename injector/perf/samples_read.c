/* SPDX-License-Identifier: MIT */
/* Reads the rings: samples, and changes to the process between them. */
#include "injector/perf/samples_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* ---- whose sample it is -------------------------------------------------------------------------------------------- */

static struct owner *slot_of(struct owner *table, size_t nslots, pid_t tid)
{
	size_t i = ((uint32_t)tid * 2654435761u) & (nslots - 1);
	while (table[i].tid && table[i].tid != tid)
		i = (i + 1) & (nslots - 1);
	return &table[i];
}

static bool grow_owners(struct dp_samples *s)
{
	const size_t nslots = s->nslots ? 2 * s->nslots : 256;
	struct owner *table = calloc(nslots, sizeof(*table));
	if (!table)
		return false;
	for (size_t i = 0; i < s->nslots; i++)
		if (s->owner[i].tid)
			*slot_of(table, nslots, s->owner[i].tid) = s->owner[i];
	free(s->owner);
	s->owner = table;
	s->nslots = nslots;
	return true;
}

static pid_t opened_for(const struct dp_samples *s, uint64_t id)
{
	const struct event key = {.id = id}, *e = bsearch(&key, s->event, s->nevents, sizeof(key), dp_samples_by_id);
	return e ? e->tid : 0;
}

/* NULL: no memory. */
static struct owner *owner_of(struct dp_samples *s, pid_t tid)
{
	if (2 * s->nowners >= s->nslots && !grow_owners(s))
		return NULL;
	struct owner *o = slot_of(s->owner, s->nslots, tid);
	s->nowners += !o->tid;
	o->tid = tid;
	return o;
}

bool dp_samples_is_first(struct dp_samples *s, pid_t tid, uint64_t id, uint64_t ns)
{
	struct owner *o = owner_of(s, tid);
	const pid_t by = opened_for(s, id);
	if (!o)
		return true;
	if (!o->by)
		o->by = by;
	else if (o->ended_ns && ns > o->ended_ns) /* another thread with that id */
		*o = (struct owner){.tid = tid, .by = by};
	return o->by == by;
}

void dp_samples_thread_ended(struct dp_samples *s, pid_t tid, uint64_t ns)
{
	struct owner *o = owner_of(s, tid);
	if (o)
		o->ended_ns = ns;
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

struct raw { /* a sample's first words */
	uint32_t pid, tid;
	uint64_t time, id;
	uint32_t cpu, reserved;
	uint64_t abi;
};

static void take_regs(const uint64_t r[NREGS], struct dp_regs *ret)
{
	static const uint8_t order[8] = {0, 3, 1, 2, 6, 7, 5, 4}; /* ax bx cx dx si di bp sp in struct dp_regs's order */
	for (unsigned i = 0; i < 8; i++)
		ret->gpr[order[i]] = r[i];
	ret->rip = r[8];
	ret->rflags = r[9];
	for (unsigned i = 0; i < 8; i++)
		ret->gpr[8 + i] = r[10 + i];
}

/* layout: registers, requested size, that many bytes, number of valid bytes */
static bool take_context(const uint8_t *at, const uint8_t *end, struct dp_sample *ret)
{
	uint64_t regs[NREGS], size, real = 0;
	if ((size_t)(end - at) < sizeof(regs) + sizeof(size))
		return false;
	memcpy(regs, at, sizeof(regs));
	memcpy(&size, at + sizeof(regs), sizeof(size));
	at += sizeof(regs) + sizeof(size);
	take_regs(regs, &ret->regs);
	if (size > (size_t)(end - at) || (size && (size_t)(end - at) - size < sizeof(real)))
		return false;
	if (size)
		memcpy(&real, at + size, sizeof(real));
	ret->stack = at;
	ret->n = real < size ? real : size;
	ret->cut = size && real >= size;
	return true;
}

static void take_sample(struct dp_samples *s, const struct dp_perf_record *r)
{
	struct raw raw;
	struct dp_sample sample = {0};
	if (r->n < sizeof(raw))
		return;
	memcpy(&raw, r->bytes, sizeof(raw));
	if ((pid_t)raw.pid != s->pid || !dp_samples_is_first(s, (pid_t)raw.tid, raw.id, raw.time))
		return;
	sample.ns = raw.time;
	sample.tid = (pid_t)raw.tid;
	sample.cpu = raw.cpu;
	if (raw.abi == PERF_SAMPLE_REGS_ABI_64 && take_context(r->bytes + sizeof(raw), r->bytes + r->n, &sample))
		s->each(&sample, s->data);
	else
		s->stats.foreign++;
}

/* ---- what happened to the process --------------------------------------------------------------------------------- */

struct mapped { /* PERF_RECORD_MMAP2 */
	uint32_t pid, tid;
	uint64_t addr, len, offset;
	uint8_t file[24];
	uint32_t prot, flags;
	char path[2];
};

static uint64_t time_of(const struct dp_perf_record *r)
{
	uint64_t ns;
	memcpy(&ns, r->bytes + r->n - DP_TRAILER_TIME, sizeof(ns));
	return ns;
}

static void note(const struct dp_samples *s, uint64_t *first, uint64_t ns)
{
	if (ns > s->looked_ns && (!*first || ns < *first))
		*first = ns;
}

static void on_task(struct dp_samples *s, const struct dp_perf_record *r)
{
	struct dp_perf_task t;
	memcpy(&t, r->bytes, sizeof(t));
	if (r->type == PERF_RECORD_FORK) {
		const bool child = t.pid != t.ppid && (pid_t)t.ppid == s->pid && (pid_t)t.pid != s->child;
		s->stats.children += child;
		s->child = child ? (pid_t)t.pid : s->child;
		return;
	}
	if ((pid_t)t.pid == s->pid)
		dp_samples_thread_ended(s, (pid_t)t.tid, t.time);
}

static void on_mapped(struct dp_samples *s, const struct dp_perf_record *r)
{
	struct mapped m;
	memcpy(&m, r->bytes, sizeof(m));
	/* The kernel names memory without a file "//anon" or "[heap]". */
	if ((pid_t)m.pid == s->pid)
		note(s, m.path[0] == '/' && m.path[1] != '/' ? &s->news.file_ns : &s->news.other_ns, time_of(r));
}

static void on_news(const struct dp_perf_record *r, void *data)
{
	struct dp_samples *s = data;
	uint64_t lost[2];
	uint32_t pid;
	if (r->type == PERF_RECORD_THROTTLE)
		s->stats.throttled++;
	else if (r->type == PERF_RECORD_LOST && r->n >= sizeof(lost)) {
		memcpy(lost, r->bytes, sizeof(lost));
		s->stats.lost += lost[1];
	} else if ((r->type == PERF_RECORD_FORK || r->type == PERF_RECORD_EXIT) && r->n >= sizeof(struct dp_perf_task))
		on_task(s, r);
	else if (r->type == PERF_RECORD_MMAP2 && r->n >= sizeof(struct mapped) + DP_TRAILER)
		on_mapped(s, r);
	else if (r->type == PERF_RECORD_COMM && r->misc & PERF_RECORD_MISC_COMM_EXEC && r->n >= sizeof(pid) + DP_TRAILER) {
		memcpy(&pid, r->bytes, sizeof(pid));
		if ((pid_t)pid == s->pid)
			note(s, &s->news.exec_ns, time_of(r));
	}
}

static void on_record(const struct dp_perf_record *r, void *data)
{
	take_sample(data, r);
}

void dp_samples_drain(struct dp_samples *s, void (*each)(const struct dp_sample *sample, void *data), void *data)
{
	struct epoll_event woken[8];
	s->each = each;
	s->data = data;
	/* The thread that a ring's first event was opened for has ended: that event would wake us for ever. */
	for (int n = s->wake < 0 ? 0 : epoll_wait(s->wake, woken, 8, 0); n > 0; n--)
		if (woken[n - 1].events & EPOLLHUP)
			epoll_ctl(s->wake, EPOLL_CTL_DEL, woken[n - 1].data.fd, NULL);
	for (int i = 0; i < s->ncpus; i++)
		dp_perf_ring_mark(&s->ring[i]);
	for (int i = 0; i < s->ncpus; i++)
		dp_perf_ring_news(&s->ring[i], s->scratch, on_news, s);
	for (int i = 0; i < s->ncpus; i++)
		dp_perf_ring_samples(&s->ring[i], s->scratch, on_record, s);
}

void dp_samples_news(const struct dp_samples *s, struct dp_samples_news *ret)
{
	*ret = s->news;
}

void dp_samples_inspected(struct dp_samples *s, uint64_t ns)
{
	s->looked_ns = ns;
	s->news = (struct dp_samples_news){0};
}

/* The rings report losses only before the next record that fits; the events' counters have them all. */
static uint64_t lost_by_count(const struct dp_samples *s)
{
	uint64_t sum = 0, values[2]; /* the count, and the number lost */
	for (size_t i = 0; s->attr.read_format && i < s->nevents; i++)
		sum += read(s->event[i].fd, values, sizeof(values)) == (ssize_t)sizeof(values) ? values[1] : 0;
	return sum;
}

void dp_samples_stats(const struct dp_samples *s, struct dp_samples_stats *ret)
{
	const uint64_t counted = lost_by_count(s);
	*ret = s->stats;
	ret->lost = counted > ret->lost ? counted : ret->lost;
}
