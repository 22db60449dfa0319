/* SPDX-License-Identifier: MIT */
/* A jitdump: any bytes, added in two pieces. Names are found at any word of them, as an address. */
#include "probes/generated/jitdump.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(struct dp_perf_names *p, uint64_t addr)
{
	struct dp_perf_name n;
	if (!dp_perf_names_at(p, addr, &n))
		return;
	if (addr - n.start >= n.size || strlen(n.name) > DP_PERF_NAME_MAX || !*n.name || strpbrk(n.name, "\r\n"))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dp_perf_names *p = dp_perf_names_create();
	struct dp_jitdump d = {0};
	const size_t cut = size ? data[size - 1] * size / 255 : 0;
	uint64_t addr;
	if (!p)
		return 0;
	const size_t first = dp_jitdump_add(&d, p, data, cut);
	if (first > cut || cut - first >= DP_JITDUMP_NEEDED)
		abort();
	const size_t second = dp_jitdump_add(&d, p, data + first, size - first);
	if (second > size - first || size - first - second >= DP_JITDUMP_NEEDED)
		abort();
	for (size_t i = 0; i + sizeof(addr) <= size; i++) {
		memcpy(&addr, data + i, sizeof(addr));
		look(p, addr);
	}
	dp_perf_names_destroy(p);
	return 0;
}
