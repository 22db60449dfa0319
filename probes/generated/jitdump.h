/* SPDX-License-Identifier: MIT */
/*
 * perf's jitdump (linux/tools/perf/Documentation/jitdump-specification.txt): a file in which a runtime writes each function that
 * it generates, with its code (node --perf-prof, Java's perf agent, wasmtime, LLVM). A header, then records:
 *
 *     header   "JiTD" as a 32-bit number, version, size of the header, machine, 0, pid, time, flags
 *     record   kind, size of the record (32 bits each), time; for kind 0 (code is loaded):
 *              pid, tid, address, address, size, index, name with its 0, code
 *
 * The bytes are untrusted. Records of other kinds are skipped: a function that is moved (kind 1) has no name at its new place.
 */
#ifndef DP_PROBES_GENERATED_JITDUMP_H
#define DP_PROBES_GENERATED_JITDUMP_H

#include "probes/generated/perf_names.h"

struct dp_jitdump {    /* all 0 at the start of the file */
	uint64_t skip; /* bytes of a record that are not needed */
	bool begun;    /* the header was read */
	bool damaged;  /* nothing more is read */
};

#define DP_JITDUMP_NEEDED (56u + DP_PERF_NAME_MAX + 1u) /* bytes of a record, at most */

/* Adds the names in the file's next bytes. Returns how many were used: what follows needs more bytes, fewer than
 * DP_JITDUMP_NEEDED. */
size_t dp_jitdump_add(struct dp_jitdump *d, struct dp_perf_names *names, const void *bytes, size_t n);

#endif
