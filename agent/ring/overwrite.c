/* SPDX-License-Identifier: MIT */
/*
 * The flight recorder: while no tool drains, a full ring gives up its oldest records. abi.h says who may move a tail, and when.
 *
 * Signals are blocked meanwhile. Otherwise a handler's hits would need room in a ring that is partly neither record nor zeroed,
 * and a handler that never returns would leave it that way. Giving up an eighth of the ring at a time takes two system calls in
 * thousands of hits.
 */
#include "agent/agent.h"
#include "agent/syscall.h"

#define GIVE_MOST   65536u /* bytes at a time, so that the hit that does this stays short */
#define TALLY       8u
#define NOWHERE     UINT64_MAX
#define TICKS_A_DAY (UINT64_C(1) << 48)

struct tally {
	uint32_t n[TALLY];
	uint16_t probe[TALLY];
	unsigned used;
};

struct pass {
	struct dp_slot *slot;
	struct dp_control *control;
	uint64_t tail, head;
	uint64_t room;   /* of the ring; pages after it need not exist */
	uint64_t filler; /* the filler found, or NOWHERE: at most one lap ends between tail and head */
	uint32_t nprobes;
	struct tally tally;
};

static uint64_t *word_at(const struct dp_slot *slot, uint64_t pos)
{
	return (uint64_t *)(uintptr_t)(slot->base + (pos & slot->mask));
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Once per batch and not per record: other threads add to the same counters. */
static void flush(struct pass *p)
{
	struct dp_lost *lost = (struct dp_lost *)((uintptr_t)p->control + p->control->lost_offset);

	for (unsigned i = 0; i < p->tally.used; i++)
		__atomic_fetch_add(&lost[p->tally.probe[i]].overwritten, p->tally.n[i], __ATOMIC_RELAXED);
	p->tally.used = 0;
}

static void count(struct pass *p, uint16_t probe)
{
	struct tally *t = &p->tally;
	unsigned i = 0;

	while (i < t->used && t->probe[i] != probe)
		i++;
	if (i == TALLY) {
		flush(p);
		i = 0;
	}
	if (i == t->used) {
		t->probe[i] = probe;
		t->n[i] = 0;
		t->used++;
	}
	t->n[i]++;
}

/* ---- the ring's contents -------------------------------------------------------------------- */

/* The size of the record at pos; 0 if it is not committed, or invalid. */
static uint32_t record_size(const struct pass *p, uint64_t pos)
{
	uint64_t word = DP_LOAD(word_at(p->slot, pos)), left = p->slot->mask + 1 - (pos & p->slot->mask);
	uint32_t size = (uint32_t)word;
	uint16_t probe = (uint16_t)(word >> 32);

	if (word >> 48 || !size || size % 8 || size > left || size > p->head - pos)
		return 0;
	if (probe == DP_RECORD_PAD)
		return size == left ? size : 0;
	if (size > DP_RECORD_MAX)
		return 0;
	if (probe == DP_RECORD_THREAD)
		return size == sizeof(struct dp_record) + sizeof(uint64_t) ? size : 0;
	return size >= sizeof(struct dp_record) && probe < p->nprobes ? size : 0;
}

static void give_up_record(struct pass *p, uint64_t pos)
{
	uint16_t probe = (uint16_t)(*word_at(p->slot, pos) >> 32);

	if (probe == DP_RECORD_THREAD)
		DP_STORE(&p->slot->tail_tid, *word_at(p->slot, pos + sizeof(struct dp_record)));
	else if (probe == DP_RECORD_PAD)
		p->filler = pos;
	else
		count(p, probe);
}

/* ---- abandoned reservations ------------------------------------------------------------------ */

/* Nothing below it is written any more, because the thread that did is gone. */
static uint64_t settled(const struct pass *p)
{
	uint64_t pos = DP_LOAD(&p->slot->settled);

	return pos % 8 == 0 && pos - p->tail <= p->head - p->tail ? pos : p->tail;
}

/* Whether this reservation has been in the way for so long that its hit must have ended. Notes when it was first seen. */
static bool stuck(struct dp_slot *slot, uint64_t pos)
{
	uint64_t now = dp_rdtsc();

	if (slot->stuck_at == pos + 1)
		return now - slot->stuck_tsc > DP_STUCK_TICKS;
	slot->stuck_tsc = now;
	slot->stuck_at = pos + 1;
	return false;
}

/* An abandoned record's payload may look like a header, but hardly one followed by a plausible time. */
static bool plausible(const struct pass *p, uint64_t pos)
{
	uint16_t probe = (uint16_t)(*word_at(p->slot, pos) >> 32);

	if (!record_size(p, pos))
		return false;
	return probe == DP_RECORD_PAD || dp_rdtsc() - *word_at(p->slot, pos + 8) < TICKS_A_DAY;
}

/* The end of the gap that starts at pos, or pos if its hit may not have ended. */
static uint64_t skip(struct pass *p, uint64_t pos)
{
	bool final = pos < settled(p);
	uint64_t end = final ? settled(p) : p->head;

	if (!final && !stuck(p->slot, pos))
		return pos;
	p->slot->abandoned++;
	do {
		pos += 8;
		if ((pos & p->slot->mask) >= p->room) /* nothing of a lap is there, not even its filler */
			pos = (pos | p->slot->mask) + 1;
	} while (pos < end && !plausible(p, pos));
	return pos < end ? pos : end;
}

/* ---- the pass -------------------------------------------------------------------------------- */

static bool begin(const struct dp_agent *agent, struct dp_slot *slot, struct pass *p)
{
	p->slot = slot;
	p->control = dp_agent_control(agent);
	if (!p->control)
		return false;
	p->nprobes = p->control->nprobes;
	p->tail = DP_LOAD(&slot->tail);
	p->head = DP_LOAD(&slot->head);
	p->room = dp_room_bytes(DP_LOAD(&slot->room));
	p->filler = NOWHERE;
	p->tally.used = 0;
	return p->tail % 8 == 0 && p->head % 8 == 0 && p->head - p->tail <= slot->mask + 1;
}

/* The tail at which `size` bytes fit at head, and some more, so that this happens rarely. */
static uint64_t goal(const struct pass *p, uint32_t size)
{
	uint64_t ring = p->slot->mask + 1, at = p->head & p->slot->mask;
	uint64_t end = p->head + size + (at + size > dp_room_usable(p->room, ring) ? ring - at : 0);
	uint64_t more = p->room / 8 < GIVE_MOST ? p->room / 8 : GIVE_MOST;

	return end - ring > p->tail + more ? end - ring : p->tail + more;
}

/* A filler has only its first word. */
static void zero(const struct pass *p, uint64_t to)
{
	uint64_t lap_end = (p->tail | p->slot->mask) + 1, first = to < lap_end ? to : lap_end;
	uint64_t end = p->filler < first ? p->filler + 8 : first;

	memset(word_at(p->slot, p->tail), 0, end - p->tail);
	memset(word_at(p->slot, first), 0, to - first);
}

static bool give_up(struct pass *p, uint32_t size)
{
	uint64_t pos = p->tail, end = goal(p, size), next;

	while (pos < end && pos < p->head) {
		uint32_t record = record_size(p, pos);

		if (record)
			give_up_record(p, pos);
		next = record ? pos + record : skip(p, pos);
		if (next == pos)
			break;
		pos = next;
	}
	flush(p);
	zero(p, pos);
	DP_STORE(&p->slot->tail, pos);
	return pos != p->tail;
}

/* Avoids the system calls while the oldest record is that of a hit that has not ended. */
static bool promising(struct pass *p)
{
	return p->head != p->tail && (record_size(p, p->tail) || settled(p) > p->tail || stuck(p->slot, p->tail));
}

bool dp_ring_overwrite(const struct dp_agent *agent, struct dp_slot *slot, uint32_t size)
{
	const struct dp_control *control = dp_agent_control(agent);
	struct pass pass;
	uint64_t mask;
	bool done = false;

	if (!control || DP_LOAD(&control->overwrite) != 1 || !begin(agent, slot, &pass) || !promising(&pass))
		return false;
	if (dp_syscall_block_signals(&mask))
		return false;
	__atomic_store_n(&slot->reclaiming, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&pass.control->overwrite, __ATOMIC_SEQ_CST) == 1 && begin(agent, slot, &pass))
		done = give_up(&pass, size);
	DP_STORE(&slot->reclaiming, 0);
	dp_syscall_restore_signals(&mask);
	return done;
}
