/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/decode/sweep.h"

#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/code/text.h"

#include <stdlib.h>

#define LARGEST (UINT64_C(1) << 24) /* bytes of a function; larger ones are not believed */

struct entry {
	struct dp_sweep sweep;
	uint8_t *length, *entered; /* one block */
};

struct dp_sweeps {
	struct entry **slot; /* open addressing; `mask` + 1 slots, at most half of them used */
	size_t mask, n;
};

struct dp_error *dp_sweeps_create(struct dp_sweeps **ret)
{
	struct dp_sweeps *sweeps = calloc(1, sizeof(*sweeps));
	if (sweeps) {
		sweeps->mask = 15;
		sweeps->slot = calloc(sweeps->mask + 1, sizeof(struct entry *));
	}
	if (!sweeps || !sweeps->slot) {
		free(sweeps);
		return dp_error_nomem();
	}
	*ret = sweeps;
	return NULL;
}

struct dp_sweeps *dp_sweeps_destroy(struct dp_sweeps *sweeps)
{
	if (!sweeps)
		return NULL;
	for (size_t i = 0; i <= sweeps->mask; i++) {
		if (sweeps->slot[i])
			free(sweeps->slot[i]->length);
		free(sweeps->slot[i]);
	}
	free(sweeps->slot);
	free(sweeps);
	return NULL;
}

static struct entry **slot_of(struct entry **slot, size_t mask, uint64_t start, uint64_t size)
{
	size_t i = (size_t)(start * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
	while (slot[i] && (slot[i]->sweep.start != start || slot[i]->sweep.size != size))
		i = (i + 1) & mask;
	return &slot[i];
}

static bool grow(struct dp_sweeps *sweeps)
{
	size_t mask = 2 * sweeps->mask + 1;
	struct entry **slot = calloc(mask + 1, sizeof(struct entry *));
	if (!slot)
		return false;
	for (size_t i = 0; i <= sweeps->mask; i++)
		if (sweeps->slot[i])
			*slot_of(slot, mask, sweeps->slot[i]->sweep.start, sweeps->slot[i]->sweep.size) = sweeps->slot[i];
	free(sweeps->slot);
	sweeps->slot = slot;
	sweeps->mask = mask;
	return true;
}

/* Never written by compilers or by hand: add %al,(%rax), or a branch out of all code. */
static bool looks_like_data(const struct dp_text *text, const uint8_t *bytes, const struct dp_insn_step *step)
{
	size_t n;
	return (step->len == 2 && !bytes[0] && !bytes[1]) ||
	       (step->relative && !step->odd && !dp_text_at(text, step->target, &n));
}

/* Keeps only the marks of branches into the middle of an instruction, and takes that instruction out. */
static void keep_entered(struct entry *entry)
{
	uint64_t head = 0, end = 0;
	for (uint64_t at = 0; at < entry->sweep.size; at++) {
		if (entry->length[at]) {
			head = at;
			end = at + entry->length[at];
			entry->entered[at] = 0;
		} else if (at >= end) {
			entry->entered[at] = 0;
		} else if (entry->entered[at]) {
			entry->length[head] = 0;
		}
	}
}

static void walk(const struct dp_text *text, struct entry *entry)
{
	const uint64_t start = entry->sweep.start, size = entry->sweep.size;
	uint64_t done = 0;
	size_t n = 0;
	const uint8_t *bytes = dp_text_at(text, start, &n);
	while (bytes && done < size) {
		struct dp_insn_step step;
		if (done >= n || !dp_decode_step(bytes + done, n - done, start + done, &step) ||
		    looks_like_data(text, bytes + done, &step))
			break;
		entry->length[done] = step.len;
		if (step.relative && step.target - start < size)
			entry->entered[step.target - start] = 1;
		done += step.len;
	}
	entry->sweep.good = done == size;
	keep_entered(entry);
}

const struct dp_sweep *dp_sweeps_get(struct dp_sweeps *sweeps, const struct dp_text *text, const struct dp_range *function)
{
	if (!function->size || function->size > LARGEST)
		return NULL;
	struct entry **slot = slot_of(sweeps->slot, sweeps->mask, function->start, function->size);
	if (*slot)
		return &(*slot)->sweep;
	if (2 * (sweeps->n + 1) > sweeps->mask) {
		if (!grow(sweeps))
			return NULL;
		slot = slot_of(sweeps->slot, sweeps->mask, function->start, function->size);
	}
	struct entry *entry = calloc(1, sizeof(*entry));
	uint8_t *length = calloc(2, function->size);
	if (!entry || !length) {
		free(entry);
		free(length);
		return NULL;
	}
	uint8_t *entered = length + function->size;
	*entry = (struct entry){{function->start, function->size, false, length, entered}, length, entered};
	walk(text, entry);
	*slot = entry;
	sweeps->n++;
	return &entry->sweep;
}

bool dp_sweep_is_entered(const struct dp_sweep *sweep, uint64_t addr, uint8_t len)
{
	for (uint64_t at = addr - sweep->start + 1; at < addr - sweep->start + len && at < sweep->size; at++)
		if (sweep->entered[at])
			return true;
	return false;
}
