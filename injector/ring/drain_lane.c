/* SPDX-License-Identifier: MIT */
/*
 * Consumes one ring, whose other end belongs to a process that may write anything, anywhere, at any time. So our tail is never
 * read back; the head is read once per pass and checked; a record's first word is read once and checked, then used; the rest is
 * copied out before it is used. Inconsistent data is counted and skipped.
 */
#include "injector/ring/drain_lane.h"

#include "injector/ring/clock.h"
#include "injector/ring/drain_batch.h"

#include <stdlib.h>
#include <string.h>

#define KEEP_QUEUE 65536u /* a larger queue is freed when a pass finds nothing */

struct header {
	uint32_t size;
	uint16_t probe, flags;
};

static uint64_t ring_size(const struct dp_lane *lane)
{
	return lane->mask + 1;
}

uint64_t dp_lane_room(const struct dp_lane *lane)
{
	uint64_t room = dp_room_bytes(__atomic_load_n(&lane->slot->room, __ATOMIC_ACQUIRE));

	return room < ring_size(lane) ? room : ring_size(lane);
}

static uint64_t *word_at(const struct dp_lane *lane, uint64_t pos)
{
	return (uint64_t *)(void *)(lane->ring + (pos & lane->mask));
}

static struct header read_header(const struct dp_lane *lane, uint64_t pos)
{
	uint64_t word = __atomic_load_n(word_at(lane, pos), __ATOMIC_ACQUIRE);

	return (struct header){(uint32_t)word, (uint16_t)(word >> 32), (uint16_t)(word >> 48)};
}

static bool committed(struct header h)
{
	return h.size | h.probe | h.flags;
}

/*
 * The head read at the start of a pass may have been trimmed since, and then points into a later record, or to nothing. The
 * current head is always after every committed record.
 */
static uint64_t head_now(const struct dp_lane *lane)
{
	uint64_t head = __atomic_load_n(&lane->slot->head, __ATOMIC_ACQUIRE);

	return head % 8 == 0 && head - lane->tail <= ring_size(lane) ? head : lane->head;
}

static bool valid(const struct dp_lane *lane, uint64_t pos, struct header h, unsigned nprobes)
{
	uint64_t left = ring_size(lane) - (pos & lane->mask);

	if (h.flags || h.size % 8 || h.size > left)
		return false;
	if (h.size > lane->head - pos && pos + h.size > head_now(lane))
		return false;
	if (h.probe == DP_RECORD_PAD)
		return h.size == left;
	if (h.size > DP_RECORD_MAX)
		return false;
	if (h.probe == DP_RECORD_THREAD)
		return h.size == sizeof(struct dp_record) + sizeof(uint64_t);
	return h.size >= sizeof(struct dp_record) && h.probe < nprobes;
}

/* ---- queue ----------------------------------------------------------------------------------- */

static size_t item_size(size_t len)
{
	return sizeof(struct dp_queued_record) + len;
}

/* Not after each pass: a busy thread needs the same memory again. */
static void free_queue(struct dp_lane *lane)
{
	free(lane->queue);
	lane->queue = NULL;
	lane->size = 0;
}

/* Makes room for an item after the last one; NULL if out of memory. */
static struct dp_queued_record *queue_room(struct dp_lane *lane, size_t n)
{
	if (lane->end + n > lane->size && lane->start) {
		memmove(lane->queue, lane->queue + lane->start, lane->end - lane->start);
		lane->end -= lane->start;
		lane->start = 0;
	}
	if (lane->end + n > lane->size) {
		size_t size = lane->size ? lane->size * 2 : 2 * (size_t)DP_RECORD_MAX;
		uint8_t *queue = realloc(lane->queue, size);

		if (!queue)
			return NULL;
		lane->queue = queue;
		lane->size = size;
	}
	return (struct dp_queued_record *)(void *)(lane->queue + lane->end);
}

/* ---- records --------------------------------------------------------------------------------- */

/* A thread cannot hit a probe in the future. */
static bool from_future(uint64_t tsc, const struct dp_collect *pass)
{
	return tsc > pass->begin && tsc > dp_clock_tsc() + DP_TICKS_WRONG;
}

bool dp_lane_thread(struct dp_lane *lane, uint64_t thread)
{
	const uint32_t pid = (uint32_t)(thread >> 32), tid = (uint32_t)thread;

	if (!tid || tid > DP_TID_MASK || pid > DP_TID_MASK)
		return false;
	lane->pid = (pid_t)pid;
	lane->tid = (pid_t)tid;
	return true;
}

static void take_thread(struct dp_lane *lane, uint64_t pos, const struct dp_collect *pass)
{
	uint64_t thread = *(const volatile uint64_t *)word_at(lane, pos + sizeof(struct dp_record));

	if (!dp_lane_thread(lane, thread))
		++*pass->damaged;
}

/* The record may have been completed just now, or be damaged: the loop over plain ones did not take it. */
static void take_into_batch(struct dp_lane *lane, uint64_t pos, struct header h, const struct dp_collect *pass)
{
	const uint64_t tsc = *(const volatile uint64_t *)word_at(lane, pos + offsetof(struct dp_record, tsc));
	const struct dp_hits_item item = {.payload = (const uint8_t *)(word_at(lane, pos) + 2),
	                                  .probe = h.probe,
	                                  .len = (uint16_t)(h.size - sizeof(struct dp_record))};

	if (from_future(tsc, pass))
		++*pass->damaged;
	else
		dp_batch_add(pass->batch, lane, tsc, &item);
}

static bool take_hit(struct dp_lane *lane, uint64_t pos, struct header h, const struct dp_collect *pass)
{
	size_t len = h.size - sizeof(struct dp_record);
	struct dp_queued_record *item = queue_room(lane, item_size(len));

	if (!item)
		return false;
	item->tsc = *(const volatile uint64_t *)word_at(lane, pos + offsetof(struct dp_record, tsc));
	memcpy(item->payload, word_at(lane, pos) + 2, len);
	if (from_future(item->tsc, pass)) {
		++*pass->damaged;
		return true;
	}
	/* A signal handler's hit may follow the hit it interrupted, and be older. */
	if (item->tsc > lane->last_key)
		lane->last_key = item->tsc;
	item->key = lane->last_key;
	item->pid = lane->pid;
	item->tid = lane->tid;
	item->probe = h.probe;
	item->len = (uint16_t)len;
	lane->end += item_size(len);
	return true;
}

static bool take(struct dp_lane *lane, uint64_t pos, struct header h, const struct dp_collect *pass)
{
	if (h.probe == DP_RECORD_PAD) {
		lane->filler = pos;
		return true;
	}
	if (h.probe == DP_RECORD_THREAD)
		take_thread(lane, pos, pass);
	else if (pass->batch)
		take_into_batch(lane, pos, h, pass);
	else
		return take_hit(lane, pos, h, pass);
	return true;
}

/*
 * Zeroes the consumed bytes, then frees them for the agent. A filler has only its first word: the pages after it need not exist.
 */
void dp_lane_consume(struct dp_lane *lane, uint64_t pos)
{
	uint64_t n = pos - lane->tail, off = lane->tail & lane->mask;
	uint64_t first = n < ring_size(lane) - off ? n : ring_size(lane) - off;
	uint64_t filler = lane->filler - lane->tail;

	memset(lane->ring + off, 0, filler < first ? filler + DP_PAD_LEAST : first);
	memset(lane->ring, 0, n - first);
	lane->tail = pos;
	lane->pending = false;
	__atomic_store_n(&lane->slot->tail, pos, __ATOMIC_RELEASE);
}

/* The skipped bytes may include the record that names the thread. */
static void skipped(struct dp_lane *lane, const struct dp_collect *pass)
{
	uint64_t word = dp_lane_word(lane);

	++*pass->damaged;
	if (word >> 32 == DP_SLOT_USED)
		dp_lane_thread(lane, dp_thread_word(lane->slot->pid, (uint32_t)word));
}

/* ---- what was never written ------------------------------------------------------------------ */

/* Below this position no thread will commit any more. */
static uint64_t settled(const struct dp_lane *lane)
{
	uint64_t pos;

	if (lane->final)
		return lane->head;
	pos = __atomic_load_n(&lane->slot->settled, __ATOMIC_ACQUIRE);
	return pos % 8 == 0 && pos - lane->tail <= lane->head - lane->tail ? pos : lane->tail;
}

/* Does a record start here? The gap's payload may look like a header, but hardly with a plausible time after it. */
static bool plausible(const struct dp_lane *lane, uint64_t pos, const struct dp_collect *pass)
{
	struct header h = read_header(lane, pos);
	uint64_t tsc;

	if (!committed(h) || !valid(lane, pos, h, pass->nprobes))
		return false;
	if (h.probe == DP_RECORD_PAD)
		return true;
	tsc = *word_at(lane, pos + offsetof(struct dp_record, tsc));
	return tsc + (UINT64_C(1) << 36) > lane->last_key && tsc <= pass->begin + DP_TICKS_WRONG;
}

/* Returns the end of the gap that starts at pos: the next record, or `end`. */
static uint64_t skip_abandoned(struct dp_lane *lane, uint64_t pos, uint64_t end, const struct dp_collect *pass)
{
	uint64_t room = dp_lane_room(lane);

	++*pass->abandoned;
	do {
		pos += 8;
		if ((pos & lane->mask) >= room) /* no bytes of a lap are there, not even its filler */
			pos = (pos | lane->mask) + 1;
	} while (pos < end && !plausible(lane, pos, pass));
	return pos < end ? pos : end;
}

/* ---- pass ------------------------------------------------------------------------------------ */

/* The head is invalid: restarts with an empty ring, in the lap after the last valid one. */
static void recover(struct dp_lane *lane, uint64_t head, const struct dp_collect *pass)
{
	uint64_t fresh = (lane->tail | lane->mask) + 1;

	skipped(lane, pass);
	memset(lane->ring, 0, dp_lane_room(lane));
	lane->tail = lane->head = fresh;
	lane->pending = false;
	__atomic_store_n(&lane->slot->limit, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&lane->slot->tail, fresh, __ATOMIC_RELEASE);
	__atomic_compare_exchange_n(&lane->slot->head, &head, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool dp_lane_inspect(struct dp_lane *lane, const struct dp_collect *pass)
{
	uint64_t head = __atomic_load_n(&lane->slot->head, __ATOMIC_ACQUIRE);

	lane->cut = false;
	lane->head = head;
	if (head - lane->tail > lane->peak && head - lane->tail <= ring_size(lane))
		lane->peak = head - lane->tail;
	if (head == lane->tail) {
		if (lane->start == lane->end && lane->size > KEEP_QUEUE)
			free_queue(lane);
		return lane->start < lane->end;
	}
	if (head % 8 || head - lane->tail > ring_size(lane))
		recover(lane, head, pass);
	lane->final = lane->gone && dp_lane_word(lane) == lane->gone;
	return true;
}

void dp_lane_note_pending(struct dp_lane *lane, bool pending, const struct dp_collect *pass)
{
	uint64_t floor = pass->previous > DP_TICKS_SKEW ? pass->previous - DP_TICKS_SKEW : 0;

	if (pending && !lane->pending) {
		lane->floor = floor;
		lane->pending_since = pass->begin;
	}
	if (lane->floor < lane->last_key)
		lane->floor = lane->last_key;
	lane->pending = pending;
}

enum dp_lane_step dp_lane_step(struct dp_lane *lane, uint64_t *pos, const struct dp_collect *pass)
{
	struct header h = read_header(lane, *pos);

	if (!committed(h)) {
		uint64_t end = settled(lane);

		if (*pos >= end)
			return head_now(lane) > *pos ? DP_STEP_STUCK : DP_STEP_END;
		*pos = skip_abandoned(lane, *pos, end, pass);
		return DP_STEP_ON;
	}
	if (!valid(lane, *pos, h, pass->nprobes)) {
		uint64_t head = head_now(lane);

		skipped(lane, pass);
		*pos = head > *pos ? head : lane->head;
		return DP_STEP_ON;
	}
	if (h.probe != DP_RECORD_PAD && !pass->batch && lane->end - lane->start + h.size > pass->quota)
		return DP_STEP_CUT;
	if (!take(lane, *pos, h, pass))
		return DP_STEP_NOMEM;
	*pos += h.size;
	return DP_STEP_ON;
}

struct dp_error *dp_lane_collect(struct dp_lane *lane, const struct dp_collect *pass)
{
	uint64_t pos = lane->tail;
	enum dp_lane_step result = DP_STEP_ON;

	lane->filler = UINT64_MAX;
	while (pos < lane->head && result == DP_STEP_ON)
		result = dp_lane_step(lane, &pos, pass);
	if (pos != lane->tail)
		dp_lane_consume(lane, pos);
	lane->cut = result == DP_STEP_CUT;
	dp_lane_note_pending(lane, result == DP_STEP_STUCK, pass);
	if (result == DP_STEP_NOMEM)
		return dp_error_nomem();
	return NULL;
}
