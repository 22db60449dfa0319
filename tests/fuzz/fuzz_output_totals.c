/* SPDX-License-Identifier: MIT */
/* Rows of a run as NDJSON: any bytes. */
#include "output/totals/totals_page.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *to = fopen("/dev/null", "w"), *from = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
	if (to && from) {
		dp_totals_page_is(from);
		dp_error_destroy(dp_totals_page(from, "input", to));
	}
	if (from)
		fclose(from);
	if (to)
		fclose(to);
	return 0;
}
