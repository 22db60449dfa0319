/* SPDX-License-Identifier: MIT */
/*
 * Finds the cells that a hit is counted in (decision 0020). Like the thread table, the table of blocks is in memory that a fork
 * child finds zeroed, and is filled by cmpxchg: a signal handler may run all of this in the middle of any of it. At worst the
 * thread then gets a second block.
 */
#include "agent/aggregate.h"
#include "agent/ask.h"

#define REACH 64u /* table entries tried, from the key's own place on */

/* Ten powers of two, and a thousand times as much for the next ten: 2^(k+10) is little more than 1000 * 2^k. */
#define BOUNDS(n) 5 * n, 10 * n, 20 * n, 50 * n, 100 * n, 200 * n, 500 * n, 1000 * n, 2000 * n, UINT64_MAX
#define BELOW(n)  n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9
const struct dp_decimal dp_agent_decimal __attribute__((aligned(64))) = {
        .bound = {1, 2, BOUNDS(UINT64_C(1)), BOUNDS(UINT64_C(1000)), BOUNDS(UINT64_C(1000000)), BOUNDS(UINT64_C(1000000000)),
                  BOUNDS(UINT64_C(1000000000000)), BOUNDS(UINT64_C(1000000000000000)), UINT64_C(5000000000000000000), 0},
        .below = {0, 1, BELOW(2), BELOW(11), BELOW(20), BELOW(29), BELOW(38), BELOW(47), 56, 57},
};

static uint64_t block_at(const struct dp_aggs *a, uint64_t i)
{
	return a->head + DP_AGGS_HEAD + i * a->size;
}

static struct dp_cells shared_block(const struct dp_aggs *a)
{
	return (struct dp_cells){block_at(a, a->nblocks), 1};
}

static uint32_t place_of(uint64_t key, uint32_t n)
{
	uint64_t index = (key * DP_HASH_MULT) >> (64 - DP_TABLE_BITS);

	return (uint32_t)(index + n) & (DP_TABLE_SIZE - 1);
}

/* The block of this key, or 0. *room: whether there is a free entry for one. */
static uint64_t find(struct dp_agent *agent, uint64_t key, bool *room)
{
	*room = false;
	for (uint32_t n = 0; n < REACH; n++) {
		uint32_t i = place_of(key, n);
		uint64_t k = DP_LOAD(&agent->answer_key[i]);

		if (k == key)
			return DP_LOAD(&agent->answer_block[i]);
		if (k == 0 && !DP_LOAD(&agent->answer_block[i])) {
			*room = true;
			break;
		}
	}
	return 0;
}

static bool publish(struct dp_agent *agent, uint64_t key, uint64_t block)
{
	for (uint32_t n = 0; n < REACH; n++) {
		uint32_t i = place_of(key, n);

		if (DP_LOAD(&agent->answer_key[i]) || !dp_cmpxchg(&agent->answer_block[i], 0, block))
			continue;
		DP_STORE(&agent->answer_key[i], key);
		return true;
	}
	return false;
}

/* A block that a process has left, or nblocks. */
static uint64_t take_free(const struct dp_aggs *a)
{
	struct dp_aggs_head *head = (struct dp_aggs_head *)(uintptr_t)a->head;

	for (uint64_t i = 0; 64 * i < a->nblocks && i < DP_AGG_BLOCKS_MOST / 64; i++) {
		for (uint64_t bits; (bits = DP_LOAD(&head->free[i]));) {
			const uint64_t n = 64 * i + (uint64_t)__builtin_ctzll(bits);

			if (dp_cmpxchg(&head->free[i], bits, bits & (bits - 1)))
				return n < a->nblocks ? n : a->nblocks;
		}
	}
	return a->nblocks;
}

/* The number of an unused block, or nblocks. */
static uint64_t take(const struct dp_aggs *a, const struct dp_thread *self)
{
	struct dp_aggs_head *head = (struct dp_aggs_head *)(uintptr_t)a->head;
	uint64_t n = take_free(a), used;

	while (n == a->nblocks && (used = DP_LOAD(&head->used)) < a->nblocks) {
		if (dp_cmpxchg(&head->used, used, used + 1))
			n = used;
	}
	if (n < a->nblocks)
		DP_STORE(&head->owner[n], self->process ? (uint64_t)self->pid << 32 | self->process : 0);
	return n;
}

/* Takes back what a child has entered in the middle of its parent's hit: stubs do not ask whose table it is. */
static void withdraw(struct dp_agent *agent, uint64_t key)
{
	for (uint32_t n = 0; n < REACH; n++) {
		uint32_t i = place_of(key, n);

		if (DP_LOAD(&agent->answer_key[i]) != key)
			continue;
		DP_STORE(&agent->answer_key[i], 0);
		DP_STORE(&agent->answer_block[i], 0);
	}
	for (uint32_t n = 0; n < DP_AGG_FIRST; n++)
		if (DP_LOAD(&agent->answer_first[n]) == key)
			DP_STORE(&agent->answer_first[n], 0);
}

void dp_agg_lose_forked(const struct dp_probe_desc *desc)
{
	if (desc->lost) /* 0: a call's entry, which counts with its exit */
		__atomic_fetch_add(&((struct dp_lost *)(uintptr_t)desc->lost)->forked, 1, __ATOMIC_RELAXED);
}

static const struct dp_aggs *aggs_of(const struct dp_probe_desc *desc)
{
	return &((const struct dp_control *)(uintptr_t)dp_desc_control(desc))->answers;
}

static struct dp_cells cells_of(struct dp_agent *agent, const struct dp_aggs *a, struct dp_thread *self)
{
	uint64_t block;
	bool room;

	self->key = 0;
	if (self->identity == DP_ID_TID && !a->by_base)
		return shared_block(a);
	if (a->by_base)
		self->key = dp_thread_base();
	else
		dp_thread_name(self);
	if (!self->key)
		return shared_block(a);
	block = find(agent, self->key, &room);
	if (block)
		return (struct dp_cells){block, 0};
	block = room ? take(a, self) : a->nblocks;
	if (block == a->nblocks || !publish(agent, self->key, block_at(a, block)))
		return shared_block(a);
	if (block < DP_AGG_FIRST)
		DP_STORE(&agent->answer_first[block], self->key);
	return (struct dp_cells){block_at(a, block), 0};
}

struct dp_cells dp_agg_cells(const struct dp_probe_desc *desc)
{
	struct dp_agent *agent = (struct dp_agent *)(uintptr_t)desc->agent;
	struct dp_thread self;
	struct dp_cells cells;

	for (;;) {
		if (!dp_thread_begin(agent, desc, &self)) {
			dp_agg_lose_forked(desc);
			return (struct dp_cells){0, 0};
		}
		cells = cells_of(agent, aggs_of(desc), &self);
		if (dp_thread_stays(agent, &self))
			return cells;
		withdraw(agent, self.key); /* and once more, as the child */
	}
}

/* ---- keys -------------------------------------------------------------------------------------- */

static struct dp_agg_key *key_at(const struct dp_aggs *a, uint64_t block, uint64_t i)
{
	return (struct dp_agg_key *)(uintptr_t)(block + a->keys + (i & (a->nkeys - 1)) * a->key_size);
}

uint64_t dp_agg_hash(const uint64_t *words)
{
	uint64_t h = 0;

	for (uint64_t i = 0; i <= words[0]; i++)
		h = ((h ^ words[i]) * DP_AGG_MIX) ^ h >> 29;
	return h;
}

static bool same_stack(const struct dp_agg_key *entry, const uint64_t *stack)
{
	const uint64_t *words = (const uint64_t *)(entry + 1);

	for (uint64_t i = 0; stack && i <= stack[0]; i++)
		if (words[i] != stack[i])
			return false;
	return true;
}

static void fill(struct dp_agg_key *entry, uint64_t mark, uint64_t key, const uint64_t *stack)
{
	uint64_t *words = (uint64_t *)(entry + 1);

	entry->key = key;
	for (uint64_t i = 0; stack && i <= stack[0]; i++)
		words[i] = stack[i];
	DP_STORE(&entry->mark, mark);
}

struct dp_cells dp_agg_find(const struct dp_probe_desc *desc, uint64_t key, const uint64_t *stack)
{
	const struct dp_aggs *a = aggs_of(desc);
	const uint64_t mark = desc->probe + UINT64_C(1), place = ((key ^ key >> 32) + (mark << 48)) * DP_AGG_MIX >> 32;
	struct dp_cells cells = dp_agg_cells(desc);
	struct dp_agg_loss *loss = (struct dp_agg_loss *)(uintptr_t)(cells.at + a->loss);

	for (uint64_t n = 0; cells.at && n < DP_AGG_REACH && n < a->nkeys; n++) {
		struct dp_agg_key *entry = key_at(a, cells.at, place + n);

		if (!DP_LOAD(&entry->mark) && dp_cmpxchg(&entry->mark, 0, DP_AGG_BUSY))
			fill(entry, mark, key, stack);
		else if (DP_LOAD(&entry->mark) != mark || entry->key != key || !same_stack(entry, stack))
			continue;
		return (struct dp_cells){(uint64_t)(uintptr_t)(entry + 1) + desc->stack_words * sizeof(uint64_t), cells.shared};
	}
	if (cells.at)
		__atomic_fetch_add(&loss[desc->probe].crowded, 1, __ATOMIC_RELAXED);
	return (struct dp_cells){0, 0};
}

/* Cuts the string to its characters and the dots: there was room for up to three more (output/events/writer.c does so, too). */
static uint64_t shorten(const struct dp_op *op, uint8_t *dst, uint64_t n)
{
	const uint64_t most = op->size - sizeof("...");

	if (n <= most)
		return n;
	for (uint64_t i = 0; i < 3; i++)
		dst[most + i] = '.';
	return most + 3;
}

/* The string's value; its bytes, padded, are at `dst`. */
static uint64_t copy_text(const struct dp_probe_desc *desc, const struct dp_op *op, const uint64_t *given, uint64_t *dst)
{
	const struct dp_op at = {.addr = given[op->field], .size = op->size, .count = op->count};
	uint32_t written;
	const int64_t read = dp_self_text((const struct dp_agent *)(uintptr_t)desc->agent, (uint8_t *)dst, &at,
	                                  op->count ? given[op->addr] : 0, &written);
	uint64_t n;

	if (read < 0)
		return read == DP_SELF_NULL ? DP_AGG_TEXT_NULL : DP_AGG_TEXT_UNREADABLE;
	n = shorten(op, (uint8_t *)dst, (uint64_t)read);
	if (n % 8)
		dst[n / 8] &= UINT64_MAX >> (64 - n % 8 * 8);
	return n;
}

uint64_t dp_agg_texts(const struct dp_probe_desc *desc, const uint64_t *given, uint64_t *words)
{
	const struct dp_op *op = (const struct dp_op *)((uintptr_t)desc + desc->reserve);
	const uint64_t nkeys = given[0];
	uint64_t n = 0;

	for (uint64_t i = 1; i <= nkeys; i++)
		words[i] = given[i];
	for (; desc->reserve && op->field; op++) {
		words[op->field] = copy_text(desc, op, given, words + 1 + nkeys + n);
		n += dp_agg_text_words((uint32_t)words[op->field]);
	}
	return n;
}

/* A function of its own: other keys need less of the stack. */
static __attribute__((noinline)) struct dp_cells keyed_by_texts(const struct dp_probe_desc *desc, const uint64_t *given)
{
	uint64_t words[1 + DP_AGG_KEYS + DP_AGG_TEXT_WORDS];

	words[0] = given[0] + dp_agg_texts(desc, given, words);
	return dp_agg_find(desc, dp_agg_hash(words), words);
}

struct dp_cells dp_agg_keyed(const struct dp_probe_desc *desc, uint64_t key)
{
	const uint64_t *words = desc->stack_words ? (const uint64_t *)(uintptr_t)key : NULL;

	if (words && desc->reserve)
		return keyed_by_texts(desc, words);
	return dp_agg_find(desc, words ? dp_agg_hash(words) : key, words);
}
