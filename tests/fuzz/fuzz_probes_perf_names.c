/* SPDX-License-Identifier: MIT */
/* A perf map: any bytes, added in two pieces. Names are found at the start and the end of each line's numbers. */
#include "probes/generated/perf_names.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(struct dp_perf_names *p, uint64_t addr)
{
	struct dp_perf_name n;
	if (!dp_perf_names_at(p, addr, &n))
		return;
	if (addr - n.start >= n.size || strlen(n.name) > DP_PERF_NAME_MAX || !*n.name)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct dp_perf_names *p = dp_perf_names_create();
	char number[17];
	if (!p)
		return 0;
	const size_t first = dp_perf_names_add(p, text, size / 2);
	if (first > size / 2)
		abort();
	look(p, 0x1000);
	dp_perf_names_add(p, text + first, size - first);
	for (size_t i = 0; i + 16 < size; i += 7) {
		memcpy(number, data + i, 16);
		number[16] = 0;
		look(p, strtoull(number, NULL, 16));
		look(p, i * 64);
	}
	dp_perf_names_destroy(p);
	return 0;
}
