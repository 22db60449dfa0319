/* SPDX-License-Identifier: MIT */
/* A conversation with the session daemon that can be broken off (docs/decisions/0012). */
#ifndef DP_OUTPUT_LTTNG_TALK_H
#define DP_OUTPUT_LTTNG_TALK_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* What is said. It runs in a child process, where it may call liblttng-ctl as often as it likes. */
typedef struct dp_error *dp_lttng_words(void *arg);

/*
 * Runs words(arg) in a child and waits for it at most `timeout_ns`; the child is gone when this returns. The `size` bytes at
 * `arg` come back as the child left them, if it succeeded: plain data, whose pointers (if any) the words only read. DP_TAG_LTTNG:
 * what the words say, no answer within the time, or the child died.
 */
struct dp_error *dp_lttng_talk(dp_lttng_words *words, void *arg, size_t size, uint64_t timeout_ns) DP_MUST_CHECK;

uint64_t dp_lttng_now(void);                 /* CLOCK_MONOTONIC, ns */
void dp_lttng_sleep(uint64_t ns);            /* for words that wait for something */
void dp_lttng_said(char *said, size_t size); /* within words: what liblttng-ctl printed so far, one line; "" for nothing */

#endif
