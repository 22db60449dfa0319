/* SPDX-License-Identifier: MIT */
/* Any bytes as a function: the rows are in order and within the function, and no frame is below the return address. */
#include "agent/unwind/unwind.h"
#include "trampoline/trampoline.h"

#include <stdlib.h>

static size_t size_given;
static int64_t last;

static void take(uint32_t offset, const struct dp_unwind_row *row, void *data)
{
	(void)data;
	if ((int64_t)offset <= last || offset >= size_given)
		abort();
	if (row->kind != DP_UNWIND_NONE && (row->kind != DP_UNWIND_REG || (row->reg == 4 && row->off < 8) || row->off % 8))
		abort();
	last = offset;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_given = size;
	last = -1;
	dp_stack_effect(data, size, take, NULL);
	return 0;
}
