/* SPDX-License-Identifier: MIT */
/*
 * Draining rings that cannot be mapped. An earlier tool's memfd has no descriptor any more, and only root could open it again.
 * So the consumer works on a private copy of the data region that is kept in step: before a pass the slots and what their
 * threads wrote since are read (process_vm_readv), after it zeroes are written over what was consumed, and then the new tails.
 *
 * Neither call copies in an order, or in pieces, that anybody promises. Reading: a record counts as committed only if an earlier
 * call saw its first word; its payload comes from a second one. Writing: a tail is written byte by byte, the lowest first, each
 * as an element of its own, so that every value in between is below the new one: a thread that sees it believes its ring fuller
 * than it is.
 */
#include "injector/resident/resident.h"
#include "injector/ring/drain.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>

#define BLOCK   32u /* slots read at once */
#define TRIES   2000
#define REST_NS 1000000L

struct dp_shadow {
	struct dp_control *view; /* sparse: what is never touched costs nothing */
	size_t size;
	struct dp_drain *drain;
	struct dp_slot *slot; /* in the view */
	uint64_t *sent;       /* the tails that the target knows */
	bool *broken;         /* its head or tail makes no sense: left alone from then on */
	uint8_t *first;       /* what the first of two readings saw of a ring */
	uint64_t damaged;
};

struct dp_shadow *dp_shadow_destroy(struct dp_shadow *sh)
{
	if (!sh)
		return NULL;
	dp_drain_destroy(sh->drain);
	if (sh->view)
		munmap(sh->view, sh->size);
	free(sh->sent);
	free(sh->broken);
	free(sh->first);
	free(sh);
	return NULL;
}

void dp_shadow_loss(const struct dp_shadow *sh, unsigned probe, struct dp_loss *ret)
{
	struct dp_loss here;
	dp_drain_loss(sh->drain, probe, &here);
	ret->abandoned += here.abandoned;
	ret->damaged += here.damaged + (probe ? 0 : sh->damaged);
}

/* ---- reading
 * ------------------------------------------------------------------------------------------------------------------- */

/* The slots from the first on, up to one that was never used: behind it none was. */
static struct dp_error *fetch_slots(struct dp_resident *s, struct dp_shadow *sh)
{
	const uint32_t all = s->control.nslots;
	for (uint32_t i = 0; i < all; i += BLOCK) {
		const uint32_t n = all - i < BLOCK ? all - i : BLOCK;
		DP_TRY(dp_resident_get(s, s->control.slots_offset + i * sizeof(*sh->slot), &sh->slot[i], n * sizeof(*sh->slot)));
		if (sh->slot[i + n - 1].state == DP_SLOT_FREE)
			return NULL;
	}
	return NULL;
}

/*
 * Behind a ring's room there is nothing but the rest of fillers, and pages that to read would make. A tool that made the room
 * smaller left what its thread may have been about to write: a record and a filler's first word.
 */
static uint64_t end_of_lap(const struct dp_resident *s, uint32_t i, uint64_t at)
{
	const uint64_t size = s->control.ring_size, room = dp_room_bytes(s->shadow->slot[i].room);
	const uint64_t end = at < room ? room : at + DP_RECORD_MAX + DP_PAD_LEAST;
	return end < size ? end : size;
}

/* [from, to) of ring i as one or two pieces. `base` is the ring's start, here or there. */
static size_t pieces(const struct dp_resident *s, uint32_t i, uint64_t base, uint64_t from, uint64_t to, struct iovec piece[2])
{
	const uint64_t size = s->control.ring_size, at = from & (size - 1), n = to - from, end = end_of_lap(s, i, at);
	const uint64_t first = n < size - at ? n : size - at;
	piece[0] = (struct iovec){(void *)(uintptr_t)(base + at), first < end - at ? first : end - at};
	piece[1] = (struct iovec){(void *)(uintptr_t)base, n - first};
	return n > first ? 2 : 1;
}

static uint64_t ring_there(const struct dp_resident *s, uint32_t i)
{
	return s->data + s->control.rings_offset + i * s->control.ring_size;
}

static uint8_t *ring_here(const struct dp_resident *s, const struct dp_shadow *sh, uint32_t i)
{
	return (uint8_t *)sh->view + s->control.rings_offset + i * s->control.ring_size;
}

static struct dp_error *read_ring(const struct dp_resident *s, uint32_t i, uint64_t to, uint8_t *ring)
{
	struct iovec here[2], there[2];
	const uint64_t from = s->shadow->sent[i];
	const size_t n = pieces(s, i, (uint64_t)(uintptr_t)ring, from, to, here);
	pieces(s, i, ring_there(s, i), from, to, there);
	for (size_t k = 0; k < n; k++)
		DP_TRY(dp_resident_get(s, (uint64_t)(uintptr_t)there[k].iov_base - s->data, here[k].iov_base, here[k].iov_len));
	return NULL;
}

/*
 * Ends the view of ring i before the first record that the first reading did not see committed. Below `settled` nobody writes any
 * more: both readings saw the same.
 */
static void stop_at_pending(const struct dp_resident *s, struct dp_shadow *sh, uint32_t i)
{
	const uint64_t mask = s->control.ring_size - 1, head = sh->slot[i].head, settled = sh->slot[i].settled;
	uint64_t pos = sh->sent[i], word;
	while (pos < head) {
		memcpy(&word, sh->first + (pos & mask), sizeof(word));
		if (!word && settled > pos && settled <= head && settled % 8 == 0) {
			pos = settled;
		} else if (!word) {
			memset(ring_here(s, sh, i) + (pos & mask), 0, sizeof(word));
			return;
		} else if (!(uint32_t)word || (uint32_t)word % 8) {
			return; /* damaged: the consumer's business */
		} else {
			pos += (uint32_t)word;
		}
	}
}

static bool head_is_odd(const struct dp_resident *s, const struct dp_shadow *sh, uint32_t i)
{
	return (sh->slot[i].head | sh->sent[i]) % 8 || sh->slot[i].head - sh->sent[i] > s->control.ring_size;
}

static struct dp_error *fetch_ring(struct dp_resident *s, struct dp_shadow *sh, uint32_t i)
{
	struct dp_slot *slot = &sh->slot[i];
	if (!sh->broken[i] && head_is_odd(s, sh, i)) {
		/* Caught in the middle of being written, or really so? */
		DP_TRY(dp_resident_get(s, s->control.slots_offset + i * sizeof(*slot), slot, sizeof(*slot)));
		sh->broken[i] = head_is_odd(s, sh, i);
		sh->damaged += sh->broken[i];
	}
	slot->tail = sh->sent[i];
	if (sh->broken[i])
		slot->head = sh->sent[i];
	if (slot->head == sh->sent[i])
		return NULL;
	DP_TRY(read_ring(s, i, slot->head, sh->first));
	DP_TRY(read_ring(s, i, slot->head, ring_here(s, sh, i)));
	stop_at_pending(s, sh, i);
	return NULL;
}

static struct dp_error *fetch(struct dp_resident *s, struct dp_shadow *sh)
{
	DP_TRY(fetch_slots(s, sh));
	for (uint32_t i = 0; i < s->control.nslots && sh->slot[i].state != DP_SLOT_FREE; i++)
		DP_TRY(fetch_ring(s, sh, i));
	return NULL;
}

/* ---- giving back
 * --------------------------------------------------------------------------------------------------------------- */

#define PARTS 11 /* two of the ring, whose the rest is, and the tail's */

/* The bytes of the tail that change, each by itself. */
static size_t tail_bytes(const uint8_t *old, const uint8_t *new, uint64_t there, struct dp_mem_part *part)
{
	size_t n = 0;
	for (size_t k = 0; k < sizeof(uint64_t); k++)
		if (old[k] != new[k])
			part[n++] = (struct dp_mem_part){there + k, new + k, 1};
	return n;
}

/* The consumer has zeroed its copy of what it took: that is what is written, then whose the rest is, and then the tail. */
static struct dp_error *give_back(struct dp_resident *s, struct dp_shadow *sh, uint32_t i)
{
	struct iovec from[2], to[2];
	struct dp_mem_part part[PARTS];
	const uint64_t slot = s->data + s->control.slots_offset + i * sizeof(struct dp_slot), old = sh->sent[i];
	const uint64_t new = sh->slot[i].tail, tid = (uint64_t)dp_drain_tid(sh->drain, i);
	size_t n = pieces(s, i, (uint64_t)(uintptr_t)ring_here(s, sh, i), old, new, from);
	pieces(s, i, ring_there(s, i), old, new, to);
	for (size_t k = 0; k < n; k++)
		part[k] = (struct dp_mem_part){(uint64_t)(uintptr_t)to[k].iov_base, from[k].iov_base, from[k].iov_len};
	part[n++] = (struct dp_mem_part){slot + offsetof(struct dp_slot, tail_tid), &tid, sizeof(tid)};
	n += tail_bytes((const uint8_t *)&old, (const uint8_t *)&new, slot + offsetof(struct dp_slot, tail), part + n);
	DP_TRY(dp_mem_write_parts(&s->target->process, part, n));
	sh->sent[i] = new;
	return NULL;
}

/* ---- passes
 * -------------------------------------------------------------------------------------------------------------------- */

static struct dp_error *give_back_all(struct dp_resident *s, struct dp_shadow *sh)
{
	for (uint32_t i = 0; i < s->control.nslots && sh->slot[i].state != DP_SLOT_FREE; i++)
		if (sh->slot[i].tail != sh->sent[i])
			DP_TRY(give_back(s, sh, i));
	return NULL;
}

/* A target that is gone has taken its rings along: what was read of them before is passed on. */
static struct dp_error *unless_gone(struct dp_error *err, bool *gone)
{
	*gone = err && err->tag == DP_TAG_GONE;
	return *gone ? dp_error_destroy(err) : err;
}

struct dp_error *dp_shadow_run(struct dp_resident *s, bool last, dp_hit_fn each, void *data)
{
	struct dp_shadow *sh = s->shadow;
	bool gone;
	DP_TRY(unless_gone(fetch(s, sh), &gone));
	DP_TRY(last ? dp_drain_flush(sh->drain, each, data) : dp_drain_run(sh->drain, false, each, data));
	return gone ? NULL : unless_gone(give_back_all(s, sh), &gone);
}

static struct dp_error *allocate(struct dp_resident *s, struct dp_shadow *sh)
{
	sh->size = s->data_size;
	void *view = mmap(NULL, sh->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (view == MAP_FAILED)
		return dp_error_sys(DP_TAG_NOMEM, "a copy of %zu MiB of rings", sh->size >> 20);
	sh->view = view;
	sh->slot = (void *)((uint8_t *)view + s->control.slots_offset);
	sh->sent = calloc(s->control.nslots, sizeof(*sh->sent));
	sh->broken = calloc(s->control.nslots, sizeof(*sh->broken));
	sh->first = malloc(s->control.ring_size);
	return sh->sent && sh->broken && sh->first ? NULL : dp_error(DP_TAG_NOMEM, "out of memory to drain the rings");
}

static bool reclaiming(const struct dp_resident *s, const struct dp_shadow *sh)
{
	for (uint32_t i = 0; i < s->control.nslots && sh->slot[i].state != DP_SLOT_FREE; i++)
		if (sh->slot[i].reclaiming)
			return true;
	return false;
}

/* Until no thread is at its own ring's tail: those that come later see that they may not. The tails count only then. */
static struct dp_error *await_tails(struct dp_resident *s, struct dp_shadow *sh)
{
	for (int tried = 0; tried < TRIES; tried++) {
		DP_TRY(fetch_slots(s, sh));
		if (!reclaiming(s, sh))
			return fetch_slots(s, sh);
		nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
	}
	return dp_error(DP_TAG_BUSY, "a thread of %d stands where it holds its ring; is the process stopped?",
	                s->target->process.pid);
}

/* A record never straddles the ring's end because all are multiples of 8 long: with another tail one would. */
static void take_tail(struct dp_shadow *sh, uint32_t i)
{
	if (sh->slot[i].tail % 8) {
		sh->broken[i] = true;
		sh->damaged++;
		sh->slot[i].tail = 0;
	}
	sh->sent[i] = sh->slot[i].tail;
}

static struct dp_error *take_over(struct dp_resident *s, struct dp_shadow *sh)
{
	DP_TRY(allocate(s, sh));
	*sh->view = s->control;
	DP_TRY(await_tails(s, sh));
	for (uint32_t i = 0; i < s->control.nslots; i++)
		take_tail(sh, i);
	return dp_drain_create(sh->view, sh->size, &sh->drain);
}

struct dp_error *dp_shadow_create(struct dp_resident *s, struct dp_shadow **ret)
{
	struct dp_shadow *sh = calloc(1, sizeof(*sh));
	if (!sh)
		return dp_error(DP_TAG_NOMEM, "out of memory to drain the rings");
	struct dp_error *err = take_over(s, sh);
	if (err)
		dp_shadow_destroy(sh);
	else
		*ret = sh;
	return err;
}
