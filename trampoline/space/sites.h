/* SPDX-License-Identifier: MIT */
/*
 * Which plan stands where. Everything else about bytes follows from that: who has written a byte, who relies upon it, what it is
 * now. An item whose site is `x` touches at most [x, x+16).
 */
#ifndef DP_TRAMPOLINE_SITES_H
#define DP_TRAMPOLINE_SITES_H

#include "trampoline/trampoline.h"

#define DP_SITE_SPAN 16u /* bytes that one plan can touch */
#define DP_NO_ITEM   UINT32_MAX

struct dp_item {
	struct dp_plan plan;
	struct dp_request request; /* its text is the copy below: the caller's may be reused for another function */
	struct dp_text text;
	bool asked;   /* by a request; else it gave way to others */
	bool foreign; /* stands in the target already: nothing but site, changed and len is known of it */
	bool live;
	uint8_t springboard; /* bytes that it has: as many as the way to any stub may take */
	uint32_t seq;        /* order of writing */
	uint32_t below;      /* item at the same site that this one was put in front of, or DP_NO_ITEM */
	uint32_t support[DP_PLAN_SUPPORTS];
	uint32_t nusers; /* items that have this one as a support */
};

struct dp_sites;
struct dp_error *dp_sites_create(struct dp_sites **ret) DP_MUST_CHECK;
struct dp_sites *dp_sites_destroy(struct dp_sites *sites);

uint32_t dp_sites_n(const struct dp_sites *sites); /* indices below are valid, of dead items too */
struct dp_item *dp_sites_item(const struct dp_sites *sites, uint32_t i);
/* The topmost item at exactly this address, or DP_NO_ITEM. */
uint32_t dp_sites_at(const struct dp_sites *sites, uint64_t addr);
/* A new item, not yet at its site; its index stays its own for ever. DP_NO_ITEM when out of memory. */
uint32_t dp_sites_new(struct dp_sites *sites, const struct dp_item *item);
/*
 * Puts it at its site, in front of item->below, last in the order, and finds its supports: who wrote the bytes that it relies
 * upon, what is below it, and those that item->plan.support names already. False when out of memory, or if it has too many.
 */
bool dp_sites_enter(struct dp_sites *sites, uint32_t i);
void dp_sites_leave(struct dp_sites *sites, uint32_t i);
/* Undoes dp_sites_leave(); in the reverse order of those. */
void dp_sites_return(struct dp_sites *sites, uint32_t i);

enum dp_byte_state {
	DP_BYTE_WRITTEN = 1, /* by an item: `byte` is what it wrote */
	DP_BYTE_RELIED = 2,  /* an item's jump has it as it is */
	DP_BYTE_UNKNOWN = 4, /* written by a foreign item, or no code of the module */
	DP_BYTE_KEEP = 8,    /* in one of the text's `keep` ranges */
};
/* Current bytes and states of [addr, addr+n). */
void dp_sites_bytes(const struct dp_sites *sites, const struct dp_text *text, uint64_t addr, size_t n, uint8_t *byte,
                    uint8_t *state);

/* Index of a foreign or other item that touches [addr, addr+n), the first from `from` on (an address to continue behind), or
 * DP_NO_ITEM. */
uint32_t dp_sites_touching(const struct dp_sites *sites, uint64_t addr, size_t n, uint64_t *from);

#endif
