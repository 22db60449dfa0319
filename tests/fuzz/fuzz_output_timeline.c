/* SPDX-License-Identifier: MIT */
/* The output of a run as NDJSON: any bytes. */
#include "output/timeline/timeline.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dp_timeline *t = NULL;
	FILE *to = fopen("/dev/null", "w"), *from = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
	if (to && from && !dp_timeline_create(to, "a title", &t))
		dp_error_destroy(dp_timeline_json(t, from, "input"));
	dp_timeline_destroy(t);
	if (from)
		fclose(from);
	if (to)
		fclose(to);
	return 0;
}
