/* SPDX-License-Identifier: MIT */
/* The memory of a copy (mode fork) or a core. */
#include "pmodules/heap/heap_internal.h"
#include "pmodules/source/core.h"
#include "pmodules/source/stopped_internal.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define REGISTERS (sizeof(struct user_regs_struct) / 8 + 32) /* of a thread, with vectors */

struct source {
	const struct dp_stopped *s;
	pid_t pid; /* of the copy */
	int pagemap, alive_pagemap;
	bool (*over)(void *data);
	void *data;
	uint64_t *word, *sp;
	struct dp_image *image; /* of the copy: its maps are of the moment of the hold; and what it lacks */
};

/*
 * A program may exclude memory from its children (MADV_DONTFORK; V8 does so for all its objects). It is read from the process,
 * which runs: what points from there to a block still keeps it, but no blocks are looked for in it.
 */
static const char not_copied[] = "[not copied]";

static bool is_copied(const struct source *o, uint64_t addr)
{
	const struct dp_map *m = dp_image_map_at(o->image, dp_addr_of(addr));
	return !m || strcmp(m->path, not_copied) != 0;
}

static size_t read_copy(uint64_t addr, void *buf, size_t n, void *data)
{
	const struct source *o = data;
	const struct iovec here = {buf, n}, there = {(void *)(uintptr_t)addr, n};
	const pid_t pid = is_copied(o, addr) ? o->pid : o->s->target.process.alive;
	const ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
	return got > 0 ? (size_t)got : 0;
}

static size_t read_core(uint64_t addr, void *buf, size_t n, void *data)
{
	return dp_core_read(((const struct source *)data)->s->core, addr, buf, n);
}

static bool is_over(void *data)
{
	const struct source *o = data;
	return o->over && o->over(o->data);
}

/*
 * Pages that were never written have no entry in the page table. Reading one would make one, and a program may have mapped
 * terabytes of them.
 */
static bool filled(uint64_t *from, uint64_t end, uint64_t *to, void *data)
{
	const struct source *o = data;
	const int pagemap = is_copied(o, *from) ? o->pagemap : o->alive_pagemap;
	uint64_t entry[512], at = *from & -DP_HEAP_PAGE;
	bool found = false;
	while (at < end && !is_over(data)) {
		const uint64_t left = (end - at + DP_HEAP_PAGE - 1) / DP_HEAP_PAGE, want = left < 512 ? left : 512;
		const ssize_t got = pread(pagemap, entry, want * 8, (off_t)(at / DP_HEAP_PAGE * 8));
		if (got <= 0) { /* unknown: all of it */
			*from = found ? *from : at > *from ? at : *from;
			*to = end;
			return true;
		}
		for (ssize_t i = 0; i < got / 8; i++, at += DP_HEAP_PAGE) {
			const bool here = entry[i] >> 62; /* present, or swapped out */
			if (here && !found)
				*from = at > *from ? at : *from;
			if (!here && found) {
				*to = at;
				return true;
			}
			found |= here;
		}
	}
	*to = end;
	return found;
}

static bool take_registers(struct source *o, struct dp_heap_memory *m)
{
	const struct dp_stopped *s = o->s;
	o->word = calloc(s->nthreads + 1, REGISTERS * sizeof(*o->word));
	o->sp = calloc(s->nthreads + 1, sizeof(*o->sp));
	if (!o->word || !o->sp)
		return false;
	for (size_t i = 0; i < s->nthreads; i++) {
		const struct dp_stopped_thread *t = &s->thread[i];
		memcpy(o->word + i * REGISTERS, &t->regs, sizeof(t->regs));
		if (t->has_vector)
			memcpy(o->word + i * REGISTERS + sizeof(t->regs) / 8, t->xmm, sizeof(t->xmm));
		o->sp[i] = t->regs.rsp;
	}
	m->word = o->word;
	m->nwords = s->nthreads * REGISTERS;
	m->sp = o->sp;
	m->nsp = s->nthreads;
	return true;
}

/* Adds what the process maps in [from, end), but the copy does not. */
static void put_missing(struct dp_buf *b, const struct dp_image *process, uint64_t from, uint64_t end)
{
	for (size_t i = 0; i < dp_image_nmaps(process); i++) {
		const struct dp_map *m = dp_image_map(process, i);
		const uint64_t start = m->start.v > from ? m->start.v : from, stop = m->end.v < end ? m->end.v : end;
		if (start < stop && dp_heap_is_private_data(m))
			dp_buf_printf(b, "%08llx-%08llx rw-p 00000000 00:00 0 %s\n", (unsigned long long)start,
			              (unsigned long long)stop, not_copied);
	}
}

/* The copy's maps, with what it lacks in between. */
static void put_all(struct dp_buf *b, const char *copy, const struct dp_image *process)
{
	uint64_t known = 0;
	for (const char *line = copy, *next; *line; line = next) {
		unsigned long long start, end;
		const char *newline = strchr(line, '\n');
		next = newline ? newline + 1 : line + strlen(line);
		if (sscanf(line, "%llx-%llx", &start, &end) != 2)
			continue;
		put_missing(b, process, known, start);
		dp_buf_put(b, line, (size_t)(next - line));
		known = end;
	}
	put_missing(b, process, known, UINT64_MAX);
}

static int open_pagemap(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static struct dp_error *image_of(pid_t pid, struct dp_buf *text, struct dp_image **ret)
{
	if (!dp_proc_slurp(text, "/proc/%d/maps", pid))
		return dp_error(DP_TAG_GONE, "process %d has ended", pid);
	return dp_image_create(dp_buf_str(text), "", 0, ret);
}

/* The mappings that the snapshot knows are from before the hold: a heap may have grown since. */
static struct dp_error *take_copy(struct source *o)
{
	struct dp_buf copy, now, all;
	struct dp_image *process = NULL;
	dp_buf_init(&copy);
	dp_buf_init(&now);
	dp_buf_init(&all);
	struct dp_error *err = image_of(o->s->target.process.alive, &now, &process);
	if (!err && !dp_proc_slurp(&copy, "/proc/%d/maps", o->pid))
		err = dp_error(DP_TAG_GONE, "the copy has ended");
	if (!err) {
		put_all(&all, dp_buf_str(&copy), process);
		err = all.failed ? dp_error_nomem() : dp_image_create(dp_buf_str(&all), "", 0, &o->image);
	}
	o->pagemap = open_pagemap(o->pid);
	o->alive_pagemap = open_pagemap(o->s->target.process.alive);
	dp_image_destroy(process);
	dp_buf_fini(&copy);
	dp_buf_fini(&now);
	dp_buf_fini(&all);
	return err;
}

static const char *survey(struct source *o, struct dp_arena *arena, struct pmodule_heap *ret)
{
	struct dp_heap_memory m = {.read = o->s->core ? read_core : read_copy, .over = is_over, .data = o};
	struct dp_error *err = o->s->core ? NULL : take_copy(o);
	if (!err && !take_registers(o, &m))
		err = dp_error_nomem();
	if (err) {
		const char *why = dp_arena_printf(arena, "%s", err->message);
		dp_error_destroy(err);
		return why;
	}
	m.image = o->image ? o->image : o->s->target.image;
	m.filled = o->image ? filled : NULL;
	dp_heap_survey(&m, arena, ret);
	return ret->why;
}

void dp_heap_survey_stopped(struct dp_stopped *s, bool (*over)(void *data), void *data, struct dp_arena *arena,
                            struct pmodule_heap *ret)
{
	struct source o = {.s = s,
	                   .pid = s && s->copy ? dp_copy_pid(s->copy) : 0,
	                   .pagemap = -1,
	                   .alive_pagemap = -1,
	                   .over = over,
	                   .data = data};
	*ret = (struct pmodule_heap){0};
	if (!s)
		ret->why = "the file keeps only some pages of the memory: it is known only while the snapshot is taken";
	else if (!s->core && !s->copy)
		ret->why = "it takes memory of one moment: a copy (--mode fork) or a core (--core)";
	else
		ret->why = survey(&o, arena, ret);
	if (o.pagemap >= 0)
		close(o.pagemap);
	if (o.alive_pagemap >= 0)
		close(o.alive_pagemap);
	dp_image_destroy(o.image);
	free(o.word);
	free(o.sp);
}
