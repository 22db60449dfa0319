/* SPDX-License-Identifier: MIT */
/*
 * Reads the cells of aggregations (decision 0020): sums over the blocks that threads use. Nothing is ever reset, so two readings
 * differ by what happened in between, and the last one, after the removal, is exact. The target can write to the memory, so
 * values read from it are bounds-checked.
 */
#include "injector/ring/clock.h"
#include "injector/target/events/followers.h"

#include <string.h>

#define BLOCKS_MOST  DP_AGG_BLOCKS_MOST
#define BLOCKS_LEAST (1u << DP_AGG_SPREAD_BITS)
#define BLOCKS_BYTES (UINT64_C(256) << 20) /* of address space; a page uses memory when written to */
#define PAIRS_BYTES  (DP_AGG_PAIRS * sizeof(struct dp_agg_pair))
#define SECOND_NS    UINT64_C(1000000000)

static uint64_t line_up(uint64_t n)
{
	return (n + 127) & ~UINT64_C(127); /* two cache lines: processors fetch them in pairs */
}

void dp_target_want_cells(struct dp_target *t, const struct dp_cells_want *want)
{
	t->cells = *want;
	t->options.need_unwind |= want->unwinds;
}

/* Each block uses its memory at once, or addresses are limited. */
static bool is_scarce(const struct dp_target *t)
{
	return t->ahead || t->limits.address.most != UINT64_MAX || t->limits.data.most != UINT64_MAX;
}

struct dp_aggs dp_aggs_layout(const struct dp_target *t, uint64_t *size)
{
	const struct dp_cells_want *w = &t->cells;
	const uint64_t words = w->keys ? 0 : (uint64_t)(w->words + w->pending) * t->nprobes;
	struct dp_aggs a = {.key_size = (uint32_t)(sizeof(struct dp_agg_key) + 8u * (w->stack + w->words)), .nkeys = w->keys};
	uint64_t end = line_up(8 * words);
	*size = 0;
	if (!w->words && !w->pairs)
		return a;
	a.keys = (uint32_t)end;
	end = line_up(end + (uint64_t)a.key_size * a.nkeys);
	a.loss = (uint32_t)end;
	end = line_up(end + t->nprobes * sizeof(struct dp_agg_loss));
	if (w->pairs && end < PAIRS_BYTES)
		end = PAIRS_BYTES;
	a.size = end;
	a.nblocks = (uint32_t)(BLOCKS_BYTES / end < BLOCKS_LEAST  ? BLOCKS_LEAST
	                       : BLOCKS_BYTES / end > BLOCKS_MOST ? BLOCKS_MOST
	                                                          : BLOCKS_BYTES / end);
	if (is_scarce(t) && a.nblocks > 2 * t->limits.threads + BLOCKS_LEAST)
		a.nblocks = 2 * t->limits.threads + BLOCKS_LEAST;
	*size = DP_AGGS_HEAD + (a.nblocks + 1) * a.size;
	if (w->pairs)
		a.pairs = (uint32_t)(dp_page_up(*size) - DP_AGGS_HEAD + dp_page_up(sizeof(struct dp_agent)));
	return a;
}

uint64_t dp_aggs_private(const struct dp_target *t)
{
	uint64_t unused;
	const struct dp_aggs a = dp_aggs_layout(t, &unused);
	return a.pairs ? (a.nblocks - 1) * a.size + PAIRS_BYTES : 0;
}

struct dp_error *dp_aggs_tick(uint64_t *ret)
{
	struct dp_clock *clock = NULL;
	DP_TRY(dp_clock_create(&clock));
	*ret = (uint64_t)(((unsigned __int128)SECOND_NS << 32) / dp_clock_ticks(clock, SECOND_NS));
	dp_clock_destroy(clock);
	return NULL;
}

struct dp_error *dp_ticks_of(uint64_t ns, uint64_t *ret)
{
	uint64_t tick = 0;
	DP_TRY(dp_aggs_tick(&tick));
	*ret = tick ? (uint64_t)(((unsigned __int128)ns << 32) / tick) : 0;
	return NULL;
}

void dp_aggs_init(struct dp_target *t)
{
	const struct dp_aggs *a = &t->runtime.answers;
	if (a->head)
		((struct dp_aggs_head *)(void *)(t->data + dp_data_layout(t).cells))->used =
		        t->runtime.identity == DP_ID_TID && !t->runtime.bases ? 1u << DP_AGG_SPREAD_BITS : 0;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------ */

static const uint8_t *block_at(const struct dp_target *t, uint64_t i)
{
	return t->data + dp_data_layout(t).cells + DP_AGGS_HEAD + i * t->runtime.answers.size;
}

/* The number of blocks to read; the shared one comes last. 0: there are none. */
static uint64_t nblocks(const struct dp_target *t)
{
	const struct dp_aggs *a = &t->runtime.answers;
	if (!t->data || !a->head)
		return 0;
	const struct dp_aggs_head *head = (const void *)(t->data + dp_data_layout(t).cells);
	const uint64_t used = __atomic_load_n(&head->used, __ATOMIC_ACQUIRE);
	return (used < a->nblocks ? used : a->nblocks) + 1;
}

static const uint8_t *block_of(const struct dp_target *t, uint64_t i, uint64_t n)
{
	return block_at(t, i + 1 == n ? t->runtime.answers.nblocks : i);
}

static uint64_t word(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

/* The last hit of a block comes after its buckets were read: it is in one of them by the next reading at the latest. */
static void add_pending(const struct dp_cells_want *w, const uint64_t *pending, uint64_t *sum)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	const uint64_t bucket = w->pending ? word(pending) : 0;
	if (bucket && bucket <= w->words)
		sum[bucket - 1]++;
}

void dp_target_cells(const struct dp_target *t, unsigned probe, uint64_t *ret)
{
	const struct dp_cells_want *w = &t->cells;
	const uint64_t n = nblocks(t);
	memset(ret, 0, w->words * sizeof(*ret));
	for (uint64_t b = 0; b < n && !w->keys && probe < t->nprobes; b++) {
		const uint64_t *cell =
		        (const uint64_t *)(const void *)block_of(t, b, n) + (size_t)probe * (w->words + w->pending);
		for (unsigned i = 0; i < w->words; i++)
			dp_cells_add(w, ret, i, word(&cell[i]));
		add_pending(w, &cell[w->words], ret);
	}
}

void dp_target_agg_loss(const struct dp_target *t, unsigned probe, struct dp_agg_loss *ret)
{
	const uint64_t n = nblocks(t);
	*ret = (struct dp_agg_loss){0};
	for (uint64_t b = 0; b < n && probe < t->nprobes; b++) {
		const struct dp_agg_loss *loss = (const void *)(block_of(t, b, n) + t->runtime.answers.loss);
		ret->unpaired += word(&loss[probe].unpaired);
		ret->crowded += word(&loss[probe].crowded);
	}
}

/* Splits the `n` words of a key into values, strings and frames. */
static void split(const struct dp_cells_want *w, const uint64_t *words, uint64_t n, struct dp_key_cells *ret)
{
	uint64_t at = w->values;
	ret->value = words;
	for (unsigned i = 0; i < w->values; i++) {
		const uint64_t bytes = words[i] & UINT32_MAX, used = (bytes + 7) / 8;
		if (!w->text[i] || used > w->text[i] || at + used > n)
			continue;
		ret->text[i] = (struct dp_key_text){(const uint8_t *)(words + at), bytes};
		at += used;
	}
	ret->frames = words + at;
	ret->nframes = n > at ? (unsigned)(n - at) : 0;
}

static bool each_key(const struct dp_target *t, const uint8_t *entry, dp_key_fn each, void *data)
{
	const struct dp_agg_key *k = (const void *)entry;
	const uint64_t *words = (const uint64_t *)(const void *)(k + 1);
	const uint64_t mark = __atomic_load_n(&k->mark, __ATOMIC_ACQUIRE);
	struct dp_key_cells key = {.key = k->key, .cells = words + t->cells.stack};
	if (!mark || mark > t->nprobes)
		return true;
	key.probe = (unsigned)mark - 1;
	if (t->cells.stack) {
		const uint64_t n = words[0] < t->cells.stack ? words[0] : t->cells.stack - 1;
		split(&t->cells, words + 1, n, &key);
	}
	return each(&key, data);
}

bool dp_target_keys(const struct dp_target *t, dp_key_fn each, void *data)
{
	const struct dp_aggs *a = &t->runtime.answers;
	const uint64_t n = nblocks(t);
	for (uint64_t b = 0; b < n; b++)
		for (uint32_t i = 0; i < a->nkeys; i++)
			if (!each_key(t, block_of(t, b, n) + a->keys + (uint64_t)i * a->key_size, each, data))
				return false;
	return true;
}

/* ---- fork children ------------------------------------------------------------------------------------------------------ */

void dp_aggs_reap(struct dp_target *t)
{
	const uint64_t n = t->followers ? nblocks(t) : 0;
	struct dp_aggs_head *head = (void *)(t->data + (n ? dp_data_layout(t).cells : 0));
	for (uint64_t b = 0; b + 1 < n; b++) {
		const uint64_t word = __atomic_load_n(&head->owner[b], __ATOMIC_ACQUIRE);
		const struct dp_slot_owner owner = {.process = (uint32_t)word, .pid = (pid_t)(word >> 32)};
		if (!owner.process || dp_followers_state(t, &owner) != DP_OWNER_PROCESS_ENDED)
			continue;
		__atomic_store_n(&head->owner[b], 0, __ATOMIC_RELAXED);
		__atomic_fetch_or(&head->free[b / 64], UINT64_C(1) << b % 64, __ATOMIC_RELEASE);
	}
}
