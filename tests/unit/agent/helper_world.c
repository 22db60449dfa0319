/* SPDX-License-Identifier: MIT */
#include "tests/unit/agent/world.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TCB_BYTES 2048u

static void *map(size_t n, int flags)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		abort();
	}
	return p;
}

uint64_t world_key(void)
{
	uint64_t key;

	__asm__("movq %%fs:0, %0" : "=r"(key));
	return key;
}

static uint32_t *tcb_word(uint32_t offset)
{
	return (uint32_t *)(uintptr_t)(world_key() + offset);
}

/* Offsets at which the thread's id is stored. A second thread rules out those that match by chance. */
static void *filter_offsets(void *arg)
{
	bool *candidate = arg;

	for (uint32_t i = 0; i < TCB_BYTES / 4; i++)
		candidate[i] &= *tcb_word(i * 4) == (uint32_t)gettid();
	return NULL;
}

uint32_t world_tid_offset(void)
{
	static uint32_t offset;
	bool candidate[TCB_BYTES / 4];
	pthread_t thread;

	if (offset)
		return offset;
	memset(candidate, 1, sizeof(candidate));
	filter_offsets(candidate);
	if (pthread_create(&thread, NULL, filter_offsets, candidate))
		abort();
	pthread_join(thread, NULL);
	for (uint32_t i = 0; i < TCB_BYTES / 4 && !offset; i++)
		offset = candidate[i] ? i * 4 : 0;
	if (!offset)
		abort();
	return offset;
}

uint32_t world_set_tid(uint32_t tid)
{
	*tcb_word(world_tid_offset()) = tid;
	return (uint32_t)gettid();
}

static void init_agent(struct dp_debug_ctx *w, uint32_t nslots, enum dp_identity identity)
{
	struct dp_agent *a = map(sizeof(*a), MAP_PRIVATE);

	madvise(a, sizeof(*a), MADV_WIPEONFORK);
	a->pid = (uint32_t)getpid();
	a->identity = identity;
	a->tid_offset = world_tid_offset();
	a->nslots = nslots;
	a->slots = (uintptr_t)w->slots;
	a->control = (uintptr_t)w->control;
	a->live = DP_LIVE;
	w->agent = a;
}

static void init_control(struct dp_debug_ctx *w, uint32_t nslots, uint64_t ring_size)
{
	struct dp_control *c = w->control;

	c->abi = DP_ABI_VERSION;
	c->nprobes = WORLD_PROBES;
	c->nslots = nslots;
	c->ring_size = ring_size;
	c->lost_offset = 4096;
	c->slots_offset = 8192;
	c->rings_offset = w->size - nslots * ring_size;
	c->magic = DP_MAGIC;
}

struct dp_debug_ctx *world_create(uint32_t nslots, uint64_t ring_size, enum dp_identity identity)
{
	struct dp_debug_ctx *w = calloc(1, sizeof(*w));

	w->size = 8192 + ((nslots * sizeof(struct dp_slot) + 4095) & ~UINT64_C(4095)) + nslots * ring_size;
	w->control = map(w->size, MAP_SHARED | MAP_NORESERVE);
	init_control(w, nslots, ring_size);
	w->lost = (struct dp_lost *)((uint8_t *)w->control + w->control->lost_offset);
	w->slots = (struct dp_slot *)((uint8_t *)w->control + w->control->slots_offset);
	w->rings = (uint8_t *)w->control + w->control->rings_offset;
	for (uint32_t i = 0; i < nslots; i++) {
		w->slots[i].base = (uintptr_t)w->rings + i * ring_size;
		w->slots[i].mask = ring_size - 1;
		w->slots[i].room = ring_size;
	}
	init_agent(w, nslots, identity);
	for (unsigned i = 0; i < WORLD_PROBES; i++)
		w->desc[i] = (struct dp_probe_desc){
		        .agent = (uintptr_t)w->agent, .lost = (uintptr_t)&w->lost[i], .reserve = 64, .probe = (uint16_t)i};
	w->acquire = dp_acquire;
	w->finish = dp_agent_finish;
	return w;
}

void world_destroy(struct dp_debug_ctx *w)
{
	munmap(w->control, w->size);
	munmap(w->agent, sizeof(*w->agent));
	free(w);
}

/* Does what the emitted code does: one lookup in the table, one check of the slot, one attempt. */
static struct dp_reservation fast_path(const struct dp_agent *a, uint32_t reserve)
{
	uint64_t key = world_key(), pos;
	const struct dp_thread_entry *entry = &a->table[(key * DP_HASH_MULT) >> (64 - DP_TABLE_BITS)];
	struct dp_slot *slot;

	if (a->identity != DP_ID_SELF || DP_LOAD(&entry->key) != key)
		return (struct dp_reservation){NULL, NULL};
	slot = (struct dp_slot *)(uintptr_t)DP_LOAD(&entry->slot);
	if (!slot || DP_LOAD(&slot->tid) != *tcb_word(a->tid_offset))
		return (struct dp_reservation){NULL, NULL};
	pos = DP_LOAD(&slot->head);
	if (pos + reserve > DP_LOAD(&slot->limit) || !dp_cmpxchg_local(&slot->head, pos, pos + reserve))
		return (struct dp_reservation){NULL, NULL};
	return (struct dp_reservation){(struct dp_record *)(uintptr_t)(slot->base + (pos & slot->mask)), slot};
}

struct dp_reservation world_reserve(struct dp_debug_ctx *w, unsigned probe)
{
	struct dp_reservation r = fast_path(w->agent, w->desc[probe].reserve);

	return r.record ? r : w->acquire(&w->desc[probe]);
}

bool world_hit(struct dp_debug_ctx *w, unsigned probe, const void *payload, size_t n)
{
	struct dp_reservation r = world_reserve(w, probe);
	struct dp_capture capture = {.record = r.record, .slot = r.slot, .desc = &w->desc[probe]};

	if (!r.record)
		return false;
	r.record->tsc = dp_rdtsc();
	for (size_t i = 0; i < n; i++)
		r.record->payload[i] = ((const uint8_t *)payload)[i];
	capture.cursor = r.record->payload + n;
	w->finish(&capture);
	return true;
}

unsigned world_hits(struct dp_debug_ctx *w, unsigned n)
{
	unsigned recorded = 0;

	for (unsigned i = 0; i < n; i++)
		recorded += world_hit(w, 0, &i, sizeof(i));
	return recorded;
}

uint64_t world_lost(const struct dp_debug_ctx *w)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < WORLD_PROBES; i++)
		n += w->lost[i].full + w->lost[i].no_slot + w->lost[i].forked + w->lost[i].other;
	return n;
}

unsigned world_drain(struct dp_slot *slot, world_record_fn each, void *data)
{
	unsigned n = 0;

	while (slot->tail < DP_LOAD(&slot->head)) {
		struct dp_record *r = (struct dp_record *)(uintptr_t)(slot->base + (slot->tail & slot->mask));
		uint64_t word = DP_LOAD((uint64_t *)(void *)r);

		if (!word)
			break;
		if (r->probe < DP_RECORD_THREAD)
			n++;
		if (each)
			each(r, data);
		uint32_t size = r->size;
		memset(r, 0, size);
		DP_STORE(&slot->tail, slot->tail + size);
	}
	return n;
}

volatile int world_storm_over;

void *world_storm(void *victim)
{
	while (!world_storm_over) {
		pthread_kill(*(pthread_t *)victim, SIGUSR1);
		for (volatile int i = 0; i < 50; i++)
			;
	}
	return NULL;
}
