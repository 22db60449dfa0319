/* SPDX-License-Identifier: MIT */
/*
 * uthash for strings from the target. uthash's own hash is the same in every run, so a program could choose names that all
 * collide; this one is seeded randomly. When out of memory, an element is not added (uthash would exit).
 */
#ifndef DP_BASE_TEXT_HASH_H
#define DP_BASE_TEXT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

uint32_t dp_text_hash(const void *bytes, size_t n);

/* Packs fewer than 8 bytes into less than 56 bits; distinct for distinct inputs of one length. */
static inline uint64_t dp_text_tail(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint32_t front, back;
	if (n < 4)
		return n ? p[0] | (uint64_t)p[n / 2] << 8 | (uint64_t)p[n - 1] << 16 : 0;
	memcpy(&front, p, sizeof(front));
	memcpy(&back, p + n - sizeof(back), sizeof(back));
	return front | (uint64_t)back >> 8 * (8 - n) << 32;
}

#define HASH_FUNCTION(keyptr, keylen, hashv) ((hashv) = dp_text_hash((keyptr), (keylen)))
#define HASH_NONFATAL_OOM                    1
#include <uthash.h>

#endif
