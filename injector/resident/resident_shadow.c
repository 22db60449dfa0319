/* SPDX-License-Identifier: MIT */
/*
 * Drains rings that cannot be mapped: no descriptor of an earlier tool's memfd is open, and only root could open it again. So the
 * consumer works on a private copy of the data region. Before each pass the slots and the new records are read
 * (process_vm_readv); after it zeroes are written over what was consumed, and then the new tails.
 *
 * Neither call guarantees an order or a granularity of its copies. Reading: a record counts as committed only if an earlier call
 * saw its first word; a second call reads its payload. Writing: a tail is written byte by byte, lowest first, each as an element
 * of its own. So every intermediate value is below the new one, and a thread that sees it takes its ring for fuller than it is.
 */
#include "injector/resident/resident.h"
#include "injector/ring/drain.h"
#include "injector/target/events/outer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>

#define BLOCK   32u /* slots read at once */
#define TRIES   2000
#define REST_NS 1000000L

struct dp_shadow {
	struct dp_control *view; /* sparse: untouched pages cost no memory */
	size_t size;
	struct dp_drain *drain;
	struct dp_slot *slot; /* in the view */
	uint64_t *sent;       /* the tails as the target knows them */
	bool *broken;         /* its head or tail is invalid: not used any more */
	uint8_t *first;       /* a ring as the first of two reads saw it */
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

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

/* Reads the slots up to the first unused one; all later ones are unused too. */
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
 * Beyond a ring's room there are only remains of fillers, and pages that reading would allocate. But if a tool made the room
 * smaller, the thread may have been writing there: a record and a filler's first word.
 */
static uint64_t end_of_lap(const struct dp_resident *s, uint32_t i, uint64_t at)
{
	const uint64_t size = s->control.ring_size, room = dp_room_bytes(s->shadow->slot[i].room);
	const uint64_t end = at < room ? room : at + DP_RECORD_MAX + DP_PAD_LEAST;
	return end < size ? end : size;
}

/* [from, to) of ring i as one or two pieces. `base`: start of the ring, in either process. */
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
 * Ends the view of ring i before the first record that was not committed at the first read. Below `settled` no thread writes any
 * more, so both reads saw the same.
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
			return; /* damaged: the consumer handles it */
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
		/* Was it read while being written, or is it really invalid? */
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

/* ---- giving back ----------------------------------------------------------------------------------------------------------- */

#define PARTS 11 /* two of the ring, the tail's owner, and the bytes of the tail */

/* The changed bytes of the tail, one part each. */
static size_t tail_bytes(const uint8_t *old, const uint8_t *new, uint64_t there, struct dp_mem_part *part)
{
	size_t n = 0;
	for (size_t k = 0; k < sizeof(uint64_t); k++)
		if (old[k] != new[k])
			part[n++] = (struct dp_mem_part){there + k, new + k, 1};
	return n;
}

/* Writes the ring, in whose copy the consumer has zeroed what it took; then the owner of the rest; then the tail. */
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

/* ---- passes ---------------------------------------------------------------------------------------------------------------- */

static struct dp_error *give_back_all(struct dp_resident *s, struct dp_shadow *sh)
{
	for (uint32_t i = 0; i < s->control.nslots && sh->slot[i].state != DP_SLOT_FREE; i++)
		if (sh->slot[i].tail != sh->sent[i])
			DP_TRY(give_back(s, sh, i));
	return NULL;
}

/* The rings of a target that is gone are gone too; records that were read before are still passed on. */
static struct dp_error *unless_gone(struct dp_error *err, bool *gone)
{
	*gone = err && err->tag == DP_TAG_GONE;
	return *gone ? dp_error_destroy(err) : err;
}

/* Threads still write, also when it is the last time. */
static struct dp_error *drain(struct dp_shadow *sh, bool last, struct dp_outer *to)
{
	const bool differs = dp_outer_differs(to->t);
	void *data = differs ? to : to->data;
	if (!to->each) {
		dp_drain_lanes(sh->drain, false, differs ? dp_outer_hits : to->lane, data);
		return NULL;
	}
	const dp_hit_fn each = differs ? dp_outer_hit : to->each;
	return last ? dp_drain_flush(sh->drain, each, data) : dp_drain_run(sh->drain, false, each, data);
}

struct dp_error *dp_shadow_run(struct dp_resident *s, bool last, struct dp_outer *to)
{
	struct dp_shadow *sh = s->shadow;
	bool gone;
	DP_TRY(unless_gone(fetch(s, sh), &gone));
	DP_TRY(drain(sh, last, to));
	return gone ? NULL : unless_gone(give_back_all(s, sh), &gone);
}

static struct dp_error *allocate(struct dp_resident *s, struct dp_shadow *sh)
{
	sh->size = s->data_size;
	void *view = mmap(NULL, sh->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (view == MAP_FAILED)
		return dp_error_sys(DP_TAG_NOMEM, "cannot allocate a copy of %zu MiB of rings", sh->size >> 20);
	sh->view = view;
	sh->slot = (void *)((uint8_t *)view + s->control.slots_offset);
	sh->sent = calloc(s->control.nslots, sizeof(*sh->sent));
	sh->broken = calloc(s->control.nslots, sizeof(*sh->broken));
	sh->first = malloc(s->control.ring_size);
	return sh->sent && sh->broken && sh->first ? NULL : dp_error_nomem();
}

static bool reclaiming(const struct dp_resident *s, const struct dp_shadow *sh)
{
	for (uint32_t i = 0; i < s->control.nslots && sh->slot[i].state != DP_SLOT_FREE; i++)
		if (sh->slot[i].reclaiming)
			return true;
	return false;
}

/*
 * Waits until no thread uses its own ring's tail; threads that come later see that they may not. The tails are valid only then.
 */
static struct dp_error *await_tails(struct dp_resident *s, struct dp_shadow *sh)
{
	for (int tried = 0; tried < TRIES; tried++) {
		DP_TRY(fetch_slots(s, sh));
		if (!reclaiming(s, sh))
			return fetch_slots(s, sh);
		nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
	}
	return dp_error_advise(dp_error(DP_TAG_BUSY, "a thread of process %d does not release its ring; is the process stopped?",
	                                s->target->process.pid),
	                       "let the process continue (kill -CONT PID), then try again: its probes stay, and go on recording");
}

/* No record crosses the ring's end, because all lengths are multiples of 8. With an unaligned tail one would. */
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
		return dp_error_nomem();
	struct dp_error *err = take_over(s, sh);
	if (err)
		dp_shadow_destroy(sh);
	else
		*ret = sh;
	return err;
}
