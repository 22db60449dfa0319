/* SPDX-License-Identifier: MIT */
/*
 * Resident probes in a core file of their process: their manifest, and the records in their rings. Core files have the rings only
 * of probes that were installed with options.dump_ring. Nothing in a core file is trusted.
 */
#ifndef DP_INJECTOR_RESIDENT_DUMPED_H
#define DP_INJECTOR_RESIDENT_DUMPED_H

#include "injector/injector.h"
#include "probes/probes.h"

struct dp_dumped_memory { /* the process's memory */
	/* Returns the number of bytes read from the front; the rest is not in the file. */
	size_t (*read)(uint64_t addr, void *buf, size_t n, void *data);
	void *data;
};

struct dp_dumped; /* opaque: the probes of one attach */

struct dp_dumps {
	struct dp_dumped **group;
	size_t n;
	size_t mappings; /* of dynprobe, also those that the core file does not have */
};
/* `image`: the process's mappings, by the core file. DP_TAG_BAD_CORE: a group is damaged, or of another version. */
struct dp_error *dp_dumps_find(const struct dp_image *image, const struct dp_dumped_memory *memory,
                               struct dp_dumps *ret) DP_MUST_CHECK;
void dp_dumps_fini(struct dp_dumps *dumps);

/* Valid until dp_dumps_fini(). */
const char *dp_dumped_manifest(const struct dp_dumped *d);
unsigned dp_dumped_nprobes(const struct dp_dumped *d);
/* The process that the probes were installed in, as the tool knew it; 0: not known. The core file may be that of its fork. */
pid_t dp_dumped_pid(const struct dp_dumped *d);
/*
 * Were the records made before this boot, or on another machine? Then their times are estimates, since the attach, and *offset is
 * CLOCK_REALTIME - CLOCK_MONOTONIC there, in ns.
 */
bool dp_dumped_other_boot(const struct dp_dumped *d, int64_t *offset);
/* All records, once; by time, or ring by ring (dp_target_drain(), dp_target_drain_lanes()). */
struct dp_error *dp_dumped_drain(struct dp_dumped *d, dp_hit_fn each, void *data) DP_MUST_CHECK;
void dp_dumped_drain_lanes(struct dp_dumped *d, dp_hits_fn each, void *data);
void dp_dumped_loss(const struct dp_dumped *d, unsigned probe, struct dp_loss *ret);

#endif
