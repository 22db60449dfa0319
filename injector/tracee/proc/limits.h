/* SPDX-License-Identifier: MIT */
/*
 * Limits on what dynprobe maps: those of the process, the machine, and dynprobe itself. Read before anything is done, so that a
 * refusal changes nothing, and again after a failed call in the target, to name the cause.
 */
#ifndef DP_INJECTOR_TRACEE_PROC_LIMITS_H
#define DP_INJECTOR_TRACEE_PROC_LIMITS_H

#include "injector/tracee/tracee.h"

struct dp_limit {
	uint64_t most, used; /* most: UINT64_MAX without a limit */
};

struct dp_resource_limits {
	struct dp_limit address;  /* RLIMIT_AS, bytes */
	struct dp_limit data;     /* RLIMIT_DATA */
	struct dp_limit locked;   /* RLIMIT_MEMLOCK; unlimited with CAP_IPC_LOCK */
	struct dp_limit files;    /* RLIMIT_NOFILE; used: descriptors below it */
	struct dp_limit mappings; /* vm.max_map_count */
	struct dp_limit committed; /* CommitLimit, where vm.overcommit_memory is 2 */
	unsigned threads;
	bool locks; /* the process has locked memory */
};

/* Unreadable limits count as unlimited. `maps`: the text of the process's memory map. */
void dp_limits_read(const struct dp_process *p, const char *maps, struct dp_resource_limits *ret);
uint64_t dp_limit_left(struct dp_limit l);

struct dp_need { /* what an install needs */
	uint64_t address;   /* bytes of address space */
	uint64_t private;   /* of them private and writable */
	uint64_t committed; /* bytes that must be committed in advance */
	uint64_t mappings;
	unsigned share;     /* at most one `share`th of what is left may be used: the program needs the rest; 0: all */
	size_t ring_size;   /* largest ring that would fit, for the message; 0: none would */
};
/* The DP_TAG_LIMIT error names the limit, its value and the fix. */
struct dp_error *dp_limits_check(const struct dp_process *p, const struct dp_resource_limits *l, const struct dp_need *need) DP_MUST_CHECK;
/* Names the limit that made a call in the target fail, if one did. Takes `err`; returns it, or an error that replaces it. */
struct dp_error *dp_limits_name(const struct dp_process *p, const struct dp_need *need, struct dp_error *err) DP_MUST_CHECK;

/* ---- of dynprobe itself: RLIMIT_FSIZE also applies to memory files --------------------------------------------------------- */

/* Sizes a memory file; raises the limit meanwhile as far as allowed. DP_TAG_LIMIT. */
struct dp_error *dp_file_size(int fd, uint64_t size) DP_MUST_CHECK;
/* Writes all `n` bytes. */
struct dp_error *dp_file_write(int fd, const void *bytes, size_t n, uint64_t offset) DP_MUST_CHECK;
/* Allocates all pages. */
struct dp_error *dp_file_allocate(int fd, uint64_t size) DP_MUST_CHECK;
/* The largest file dynprobe may make, and the error if that is too small. */
uint64_t dp_file_most(void);
struct dp_error *dp_file_too_large(uint64_t size) DP_MUST_CHECK;

#endif
