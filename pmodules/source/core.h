/* SPDX-License-Identifier: MIT */
/* A core file: threads, siginfo, mapped files and memory, as far as it is consistent. Private to stopped*.c. */
#ifndef DP_PMODULES_SOURCE_CORE_H
#define DP_PMODULES_SOURCE_CORE_H

#include "pmodules/source/stopped.h"

struct dp_core; /* opaque */
/* DP_TAG_BAD_CORE. `exe` may be NULL. */
struct dp_error *dp_core_open(const char *path, const char *exe, struct dp_core **ret) DP_MUST_CHECK;
struct dp_core *dp_core_close(struct dp_core *c); /* accepts NULL */
pid_t dp_core_pid(const struct dp_core *c);
const char *dp_core_comm(const struct dp_core *c);
/* The command line as stored in the core (80 characters), or "". */
const char *dp_core_args(const struct dp_core *c);
struct dp_error *dp_core_image(struct dp_core *c, struct dp_image **ret) DP_MUST_CHECK;
/* malloc'ed, ascending by tid. The core's first thread is the one that caused the dump. */
struct dp_error *dp_core_threads(const struct dp_core *c, struct dp_stopped_thread **ret, size_t *n) DP_MUST_CHECK;
/* The i-th warning for the user (truncated core, rebuilt files), or NULL. */
const char *dp_core_doubt_text(const struct dp_core *c, size_t i);
size_t dp_core_read(const struct dp_core *c, uint64_t addr, void *buf, size_t n);

#endif
