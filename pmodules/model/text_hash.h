/* SPDX-License-Identifier: MIT */
/*
 * uthash for texts that come from the target: its own hash is the same in every run, so that a program could choose names that
 * all fall into one bucket. This one begins with a random number. Out of memory leaves an element out instead of ending the
 * process.
 */
#ifndef DP_PMODULES_TEXT_HASH_H
#define DP_PMODULES_TEXT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

uint32_t dp_text_hash(const void *bytes, size_t n);

/* Less than 8 bytes as a number of less than 56 bits; of one length no two are the same. */
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
