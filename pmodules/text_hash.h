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

uint32_t dp_text_hash(const void *bytes, size_t n);

#define HASH_FUNCTION(keyptr, keylen, hashv) ((hashv) = dp_text_hash((keyptr), (keylen)))
#define HASH_NONFATAL_OOM                    1
#include <uthash.h>

#endif
