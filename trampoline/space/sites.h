/* SPDX-License-Identifier: MIT */
/*
 * All plans by address. This determines the state of every byte: which plan wrote it, which rely on it, its current value. An
 * item at site `x` touches at most [x, x+16).
 */
#ifndef DP_TRAMPOLINE_SPACE_SITES_H
#define DP_TRAMPOLINE_SPACE_SITES_H

#include "trampoline/trampoline.h"

#define DP_SITE_SPAN 16u /* bytes that one plan can touch */
#define DP_NO_ITEM   UINT32_MAX

struct dp_item {
	struct dp_plan plan;
	struct dp_request request; /* its text is the copy below: the caller may reuse its own for another function */
	struct dp_text text;
	bool asked;   /* for a request; else it is an evicted instruction */
	bool foreign; /* already installed in the target: only site, changed and len are known */
	bool live;
	uint8_t springboard; /* its size in bytes: enough for a jump to any stub */
	uint32_t seq;        /* order of writing */
	uint32_t below;      /* item at the same site that this one was put in front of, or DP_NO_ITEM */
	uint32_t support[DP_PLAN_SUPPORTS];
	uint32_t nusers; /* items that have this one as a support */
	uint64_t copied; /* site of the evicted instruction that the stub has a copy of, too; or 0 */
};

struct dp_sites;
struct dp_error *dp_sites_create(struct dp_sites **ret) DP_MUST_CHECK;
struct dp_sites *dp_sites_destroy(struct dp_sites *sites);

uint32_t dp_sites_n(const struct dp_sites *sites); /* indices below are valid, of dead items too */
struct dp_item *dp_sites_item(const struct dp_sites *sites, uint32_t i);
/* The topmost item at exactly this address, or DP_NO_ITEM. */
uint32_t dp_sites_at(const struct dp_sites *sites, uint64_t addr);
/* A new item, not entered yet; its index never changes. DP_NO_ITEM when out of memory. */
uint32_t dp_sites_new(struct dp_sites *sites, const struct dp_item *item);
/*
 * Enters it at its site, in front of item->below, last in the order, and finds its supports: the writers of the bytes that it
 * relies on, the item below, and those already in item->plan.support. False when out of memory, or if it has too many.
 */
bool dp_sites_enter(struct dp_sites *sites, uint32_t i);
void dp_sites_leave(struct dp_sites *sites, uint32_t i);
/* Undoes dp_sites_leave(), in reverse order. */
void dp_sites_return(struct dp_sites *sites, uint32_t i);

enum dp_byte_state {
	DP_BYTE_WRITTEN = 1, /* by an item: `byte` is what it wrote */
	DP_BYTE_RELIED = 2,  /* an item's jump relies on it */
	DP_BYTE_UNKNOWN = 4, /* written by a foreign item, or not code of the module */
	DP_BYTE_KEEP = 8,    /* in one of the text's `keep` ranges */
};
/* Current bytes and states of [addr, addr+n). */
void dp_sites_bytes(const struct dp_sites *sites, const struct dp_text *text, uint64_t addr, size_t n, uint8_t *byte,
                    uint8_t *state);

/*
 * Index of the first item, foreign or not, that touches [addr, addr+n), searching from address `from` on and setting it to
 * continue after that item; or DP_NO_ITEM.
 */
uint32_t dp_sites_touching(const struct dp_sites *sites, uint64_t addr, size_t n, uint64_t *from);

#endif
