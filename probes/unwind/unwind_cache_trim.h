/* SPDX-License-Identifier: MIT */
/* Keeps the cache of compiled unwind tables small: each build of each program and library adds a file. */
#ifndef DP_PROBES_UNWIND_UNWIND_CACHE_TRIM_H
#define DP_PROBES_UNWIND_UNWIND_CACHE_TRIM_H

#include <stdint.h>
#include <time.h>

#define DP_UNWIND_CACHE_BYTES  (UINT64_C(256) << 20)
#define DP_UNWIND_CACHE_SUFFIX ".unwind"

/*
 * If the files of the cache together are larger than `most` bytes, removes those that have not been used for longest until three
 * quarters are left. Also removes temporary files of a store that was killed, a day after it. Errors are ignored.
 */
void dp_unwind_cache_trim(const char *dir, uint64_t most);
/* The file `fd` of the cache, last used at `used`, is used now. */
void dp_unwind_cache_touch(int fd, time_t used);

#endif
