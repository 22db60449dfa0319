/* SPDX-License-Identifier: MIT */
/* Any bytes as .eh_frame: the rows are in order and within the code. */
#include "probes/unwind/unwind_cfi.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dp_cfi_section section = {0x10000, data, size};
	struct dp_unwind_rows rows;

	dp_unwind_rows_init(&rows);
	dp_cfi_compile(&section, 0x8000, 0x1008000, &rows);
	for (size_t i = 0; i < rows.n; i++)
		if (rows.row[i] >= rows.nrules || rows.pc[i] >= 0x1000000 || (i && rows.pc[i] <= rows.pc[i - 1]))
			abort();
	dp_unwind_rows_fini(&rows);
	return 0;
}
