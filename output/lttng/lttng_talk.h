/* SPDX-License-Identifier: MIT */
/* Conversations with the session daemon that can be aborted (docs/decisions/0012). */
#ifndef DP_OUTPUT_LTTNG_LTTNG_TALK_H
#define DP_OUTPUT_LTTNG_LTTNG_TALK_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* The body of a conversation. It runs in a child process, where it may call liblttng-ctl as often as needed. */
typedef struct dp_error *dp_lttng_words(void *arg);

/*
 * Runs words(arg) in a child and waits at most `timeout_ns`; the child is gone when this returns. If it succeeded, the `size`
 * bytes at `arg` are copied back from the child: plain data, whose pointers (if any) the function only reads. DP_TAG_LTTNG: its
 * error, no answer in time, or the child died.
 */
struct dp_error *dp_lttng_talk(dp_lttng_words *words, void *arg, size_t size, uint64_t timeout_ns) DP_MUST_CHECK;

uint64_t dp_lttng_now(void);      /* CLOCK_MONOTONIC, ns */
void dp_lttng_sleep(uint64_t ns); /* for a conversation that waits for something */
/* in a conversation: what liblttng-ctl has printed so far, as one line; "" for nothing */
void dp_lttng_said(char *said, size_t size);

#endif
