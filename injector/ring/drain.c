/* SPDX-License-Identifier: MIT */
/*
 * Reads all rings in passes, merged by time.
 *
 * A pass hands out hits up to a horizon: a count below which no ring can get another hit. A thread reserves space before it reads
 * the time stamp counter, so a thread with nothing reserved when a pass begins will get a later time; one that has reserved but
 * not committed got its time after the last pass that saw it idle. So the horizon is the start of the pass, or that earlier time,
 * and the merge is exact, unless a thread stays in the middle of a hit for longer than HOLD_NS.
 */
#include "injector/ring/drain.h"

#include "base/cleanup.h"
#include "injector/ring/clock.h"
#include "injector/ring/drain_batch.h"
#include "injector/ring/drain_internal.h"

#include <string.h>

#define HOLD_NS     UINT64_C(100000000)
#define QUEUE_BYTES ((size_t)64 << 20) /* copied out and not passed on, for all lanes together */
#define MIN_QUOTA   ((size_t)4 * DP_RECORD_MAX)
#define MAX_QUOTA   ((size_t)8 << 20)
#define FULL_LOOK   256u /* every so many passes, also check slots that seem unused */

struct dp_hit_sink { /* receives the hits */
	dp_hit_fn each;
	void *data;
};

/* ---- life ------------------------------------------------------------------------------------ */

static bool within(uint64_t offset, uint64_t count, uint64_t each, size_t size)
{
	return offset % 8 == 0 && offset <= size && count <= (size - offset) / each;
}

static struct dp_error *check_layout(const struct dp_control *c, size_t size)
{
	bool ring_ok = c->ring_size >= 2u * DP_RECORD_MAX && (c->ring_size & (c->ring_size - 1)) == 0;

	if (c->magic != DP_MAGIC || c->abi != DP_ABI_VERSION)
		return dp_error(DP_TAG_INTERNAL, "the shared region has another version");
	if (!ring_ok || !c->nslots || !within(c->lost_offset, c->nprobes, sizeof(struct dp_lost), size) ||
	    !within(c->slots_offset, c->nslots, sizeof(struct dp_slot), size) ||
	    !within(c->rings_offset, c->nslots, c->ring_size, size))
		return dp_error(DP_TAG_INTERNAL, "the shared region's layout is inconsistent");
	return NULL;
}

/* Aligned to 8: no header may cross the ring's end. */
static uint64_t first_tail(struct dp_drain *d, const struct dp_slot *slot)
{
	uint64_t tail = __atomic_load_n(&slot->tail, __ATOMIC_RELAXED);

	d->damaged += tail % 8 != 0;
	return tail & ~UINT64_C(7);
}

static void init_lanes(struct dp_drain *d, const struct dp_control *layout)
{
	uint8_t *start = (uint8_t *)d->control;
	struct dp_slot *slots = (struct dp_slot *)(void *)(start + layout->slots_offset);

	for (uint32_t i = 0; i < d->nlanes; i++) {
		struct dp_lane *lane = &d->lane[i];

		lane->slot = &slots[i];
		lane->ring = start + layout->rings_offset + i * layout->ring_size;
		lane->mask = layout->ring_size - 1;
		lane->tail = first_tail(d, &slots[i]);
		dp_lane_thread(lane, slots[i].tail_tid); /* if the record that names it was overwritten */
	}
}

/* `past`: NULL if the process lives. */
static struct dp_error *create(struct dp_control *control, size_t size, const struct dp_drain_past *past, struct dp_drain **ret)
{
	static uint64_t created;
	struct dp_control layout = *control;
	struct dp_error *err = check_layout(&layout, size);
	struct dp_drain *d;

	if (err)
		return err;
	d = calloc(1, sizeof(*d));
	if (!d)
		return dp_error_nomem();
	d->control = control;
	d->number = __atomic_add_fetch(&created, 1, __ATOMIC_RELAXED);
	d->lost = (struct dp_lost *)(void *)((uint8_t *)control + layout.lost_offset);
	d->nlanes = layout.nslots;
	d->nprobes = layout.nprobes;
	d->room = (struct dp_ring_memory){.control = control, .first_most = layout.pool_first};
	d->lane = calloc(d->nlanes, sizeof(*d->lane));
	d->active = calloc(d->nlanes, sizeof(*d->active));
	d->heap = calloc(d->nlanes, sizeof(*d->heap));
	if (!d->lane || !d->active || !d->heap)
		err = dp_error_nomem();
	d->newest = past ? past->newest : 0;
	if (!err)
		err = past ? dp_clock_create_at(past->at[0], past->at[1], &d->clock) : dp_clock_create(&d->clock);
	if (err) {
		dp_drain_destroy(d);
		return err;
	}
	init_lanes(d, &layout);
	*ret = d;
	return NULL;
}

struct dp_error *dp_drain_create(struct dp_control *control, size_t size, struct dp_drain **ret)
{
	return create(control, size, NULL, ret);
}

struct dp_error *dp_drain_create_past(struct dp_control *control, size_t size, const struct dp_drain_past *past,
                                      struct dp_drain **ret)
{
	return create(control, size, past, ret);
}

void dp_drain_give_back(struct dp_drain *d)
{
	d->room.returned = true;
}

struct dp_drain *dp_drain_destroy(struct dp_drain *d)
{
	if (!d)
		return NULL;
	for (uint32_t i = 0; d->lane && i < d->nlanes; i++)
		free(d->lane[i].queue);
	dp_clock_destroy(d->clock);
	free(d->lane);
	free(d->active);
	free(d->heap);
	free(d);
	return NULL;
}

/* ---- merge ----------------------------------------------------------------------------------- */

static uint64_t first_key(const struct dp_drain *d, uint32_t lane)
{
	return dp_lane_first(&d->lane[lane])->key;
}

static void sift_down(struct dp_drain *d, uint32_t i)
{
	uint32_t lane = d->heap[i];
	uint64_t key = first_key(d, lane);

	for (uint32_t child; (child = 2 * i + 1) < d->nheap; i = child) {
		if (child + 1 < d->nheap && first_key(d, d->heap[child + 1]) < first_key(d, d->heap[child]))
			child++;
		if (key <= first_key(d, d->heap[child]))
			break;
		d->heap[i] = d->heap[child];
	}
	d->heap[i] = lane;
}

static bool has_item(const struct dp_drain *d, uint32_t lane, uint64_t horizon)
{
	const struct dp_queued_record *item = dp_lane_first(&d->lane[lane]);

	return item && item->key <= horizon;
}

/* A drain's number and a ring's in it. */
static uint64_t lane_number(const struct dp_drain *d, uint32_t lane)
{
	return d->number << 32 | lane;
}

static void pass_on(struct dp_drain *d, uint32_t lane, dp_hit_fn each, void *data)
{
	const struct dp_queued_record *item = dp_lane_first(&d->lane[lane]);
	uint64_t ns = dp_clock_ns(d->clock, item->key);

	if (ns > d->last_ns)
		d->last_ns = ns;
	each(&(struct dp_hit){.ns = d->last_ns,
	                      .tsc = item->tsc,
	                      .pid = item->pid,
	                      .tid = item->tid,
	                      .lane = lane_number(d, lane),
	                      .probe = item->probe,
	                      .payload = item->payload,
	                      .len = item->len},
	     data);
}

/* Up to this time the oldest lane has the oldest hits: the time of the next lane, or the horizon. */
static uint64_t first_lane_until(const struct dp_drain *d, uint64_t horizon)
{
	uint64_t until = horizon;

	for (uint32_t child = 1; child < 3 && child < d->nheap; child++) {
		const uint64_t key = first_key(d, d->heap[child]);
		until = key < until ? key : until;
	}
	return until;
}

/* Passes on the hits of one lane. Returns their number. */
static uint64_t pass_on_lane(struct dp_drain *d, uint32_t lane, uint64_t until, struct dp_hit_sink to)
{
	uint64_t n = 0;

	do {
		pass_on(d, lane, to.each, to.data);
		dp_lane_pop(&d->lane[lane]);
		n++;
	} while (!d->broken && has_item(d, lane, until));
	return n;
}

/* Passes on everything queued up to the horizon, by time. Returns the number of hits. */
static uint64_t merge(struct dp_drain *d, uint64_t horizon, struct dp_hit_sink to)
{
	uint64_t n = 0;

	d->nheap = 0;
	for (uint32_t i = 0; i < d->nactive; i++) {
		if (has_item(d, d->active[i], horizon))
			d->heap[d->nheap++] = d->active[i];
	}
	for (uint32_t i = d->nheap / 2; i-- > 0;)
		sift_down(d, i);
	while (d->nheap && !d->broken) {
		uint32_t lane = d->heap[0];

		n += pass_on_lane(d, lane, first_lane_until(d, horizon), to);
		if (!has_item(d, lane, horizon))
			d->heap[0] = d->heap[--d->nheap];
		if (d->nheap)
			sift_down(d, 0);
	}
	return n;
}

/* ---- pass ------------------------------------------------------------------------------------ */

/* Slots are claimed in ascending order: after a free one all are free, unless the target overwrote one. */
static void find_used(struct dp_drain *d, bool all)
{
	while (d->nused < d->nlanes && (all || dp_lane_word(&d->lane[d->nused]) >> 32 != DP_SLOT_FREE))
		d->nused++;
	while (all && d->nused && dp_lane_word(&d->lane[d->nused - 1]) >> 32 == DP_SLOT_FREE &&
	       __atomic_load_n(&d->lane[d->nused - 1].slot->head, __ATOMIC_ACQUIRE) == d->lane[d->nused - 1].tail)
		d->nused--;
}

static void look(struct dp_drain *d, const struct dp_collect *pass, bool all, bool final)
{
	find_used(d, all || d->passes++ % FULL_LOOK == 0);
	d->nactive = 0;
	for (uint32_t i = 0; i < d->nused; i++) {
		if (!dp_lane_inspect(&d->lane[i], pass))
			continue;
		d->lane[i].final |= final;
		d->active[d->nactive++] = i;
	}
}

static struct dp_error *collect(struct dp_drain *d, struct dp_collect *pass, bool *cut)
{
	size_t quota = QUEUE_BYTES / (d->nactive ? d->nactive : 1);

	pass->quota = quota < MIN_QUOTA ? MIN_QUOTA : quota > MAX_QUOTA ? MAX_QUOTA : quota;
	*cut = false;
	for (uint32_t i = 0; i < d->nactive; i++) {
		DP_TRY(dp_lane_collect(&d->lane[d->active[i]], pass));
		*cut |= d->lane[d->active[i]].cut;
	}
	return NULL;
}

/* `hold`: wait for hits that are being written. */
static uint64_t horizon_of(const struct dp_drain *d, const struct dp_collect *pass, bool last, bool hold)
{
	uint64_t horizon = last ? UINT64_MAX : pass->begin - DP_TICKS_SKEW;
	uint64_t patience = dp_clock_ticks(d->clock, HOLD_NS);

	for (uint32_t i = 0; i < d->nactive; i++) {
		const struct dp_lane *lane = &d->lane[d->active[i]];

		if (lane->cut && lane->last_key < horizon)
			horizon = lane->last_key;
		if (hold && lane->pending && pass->begin - lane->pending_since < patience && lane->floor < horizon)
			horizon = lane->floor;
	}
	return horizon;
}

static uint64_t begin_pass(struct dp_drain *d)
{
	if (d->newest)
		return d->newest;
	dp_clock_update(d->clock);
	return dp_clock_tsc();
}

/* `all`: no hit waits for a later pass. `final`: no thread writes any more. */
static struct dp_error *run(struct dp_drain *d, bool all, bool final, struct dp_hit_sink to)
{
	struct dp_collect pass = {
	        .previous = d->previous, .nprobes = d->nprobes, .damaged = &d->damaged, .abandoned = &d->abandoned};
	bool cut, hold = !all;

	d->broken = false;
	pass.begin = begin_pass(d);
	look(d, &pass, all, final);
	do {
		DP_TRY(collect(d, &pass, &cut));
		dp_waiters_pass(&d->waiters);
		if (merge(d, horizon_of(d, &pass, all, hold), to) == 0) {
			if (!hold)
				break;
			hold = false; /* if a queue is full: late is better than lost */
		}
	} while (cut && !d->broken);
	d->previous = pass.begin;
	return NULL;
}

struct dp_error *dp_drain_run(struct dp_drain *d, bool last, dp_hit_fn each, void *data)
{
	return run(d, last, last, (struct dp_hit_sink){each, data});
}

void dp_drain_lanes(struct dp_drain *d, bool last, dp_hits_fn each, void *data)
{
	struct dp_batch batch = {.clock = d->clock, .each = each, .data = data};
	struct dp_collect pass = {.previous = d->previous,
	                          .nprobes = d->nprobes,
	                          .damaged = &d->damaged,
	                          .abandoned = &d->abandoned,
	                          .batch = &batch};

	d->broken = false;
	pass.begin = batch.latest = begin_pass(d);
	batch.hits.item = batch.item;
	look(d, &pass, last, last);
	for (uint32_t i = 0; i < d->nactive && !d->broken; i++) {
		batch.hits.lane = lane_number(d, d->active[i]);
		dp_lane_batches(&d->lane[d->active[i]], &pass, &d->broken);
		dp_waiters_look(&d->waiters);
	}
	if (!d->broken)
		dp_waiters_pass(&d->waiters);
	d->previous = pass.begin;
}

void dp_drain_break(struct dp_drain *d)
{
	d->broken = true;
}

struct dp_error *dp_drain_flush(struct dp_drain *d, dp_hit_fn each, void *data)
{
	return run(d, true, false, (struct dp_hit_sink){each, data});
}

void dp_drain_serve(struct dp_drain *d, bool on)
{
	dp_waiters_serve(&d->waiters, on ? &d->control->on_full : NULL);
}

bool dp_drain_awaited(const struct dp_drain *d)
{
	return dp_waiters_any(&d->waiters);
}

void dp_drain_rest(const struct dp_drain *d, int ms)
{
	dp_waiters_rest(&d->waiters, ms);
}

pid_t dp_drain_tid(const struct dp_drain *d, uint32_t slot)
{
	return d->lane[slot].tid;
}
