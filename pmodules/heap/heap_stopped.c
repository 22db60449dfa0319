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
	int pagemap;
	bool (*over)(void *data);
	void *data;
	uint64_t *word, *sp;
	struct dp_image *image; /* of the copy; its maps are of the moment of the hold */
};

static size_t read_copy(uint64_t addr, void *buf, size_t n, void *data)
{
	const struct source *o = data;
	const struct iovec here = {buf, n}, there = {(void *)(uintptr_t)addr, n};
	const ssize_t got = process_vm_readv(o->pid, &here, 1, &there, 1, 0);
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
	uint64_t entry[512], at = *from & -DP_HEAP_PAGE;
	bool found = false;
	while (at < end && !is_over(data)) {
		const uint64_t left = (end - at + DP_HEAP_PAGE - 1) / DP_HEAP_PAGE, want = left < 512 ? left : 512;
		const ssize_t got = pread(o->pagemap, entry, want * 8, (off_t)(at / DP_HEAP_PAGE * 8));
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

/* The mappings of the process are from before the hold: a heap may have grown since. */
static struct dp_error *take_copy(struct source *o)
{
	char path[64];
	struct dp_buf maps;
	dp_buf_init(&maps);
	snprintf(path, sizeof(path), "/proc/%d/pagemap", o->pid);
	o->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	struct dp_error *err = dp_proc_slurp(&maps, "/proc/%d/maps", o->pid)
	                               ? dp_image_create(dp_buf_str(&maps), "", 0, &o->image)
	                               : dp_error(DP_TAG_GONE, "the copy has ended");
	dp_buf_fini(&maps);
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
	m.filled = o->pagemap >= 0 ? filled : NULL;
	dp_heap_survey(&m, arena, ret);
	return ret->why;
}

void dp_heap_survey_stopped(struct dp_stopped *s, bool (*over)(void *data), void *data, struct dp_arena *arena,
                            struct pmodule_heap *ret)
{
	struct source o = {.s = s, .pid = s && s->copy ? dp_copy_pid(s->copy) : 0, .pagemap = -1, .over = over, .data = data};
	*ret = (struct pmodule_heap){0};
	if (!s)
		ret->why = "the file keeps only some pages of the memory: it is known only while the snapshot is taken";
	else if (!s->core && !s->copy)
		ret->why = "it takes memory of one moment: a copy (--mode fork) or a core (--core)";
	else
		ret->why = survey(&o, arena, ret);
	if (o.pagemap >= 0)
		close(o.pagemap);
	dp_image_destroy(o.image);
	free(o.word);
	free(o.sp);
}
