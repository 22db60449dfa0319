/* SPDX-License-Identifier: MIT */
/* Conditions: any text is refused or gives a tree that evaluates. */
#include "agent/abi.h"
#include "probes/probes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dp_regs regs = {.gpr = {1, 2, UINT64_MAX, 4}, .rip = 0x401000, .rflags = 0x246};
	struct dp_expr *expr = NULL;
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	struct dp_error *err = dp_expr_parse(text, &expr);
	if ((err == NULL) != (expr != NULL))
		abort();
	dp_error_destroy(err);
	if (expr) {
		uint64_t before = dp_expr_eval(expr, &regs);
		dp_expr_bind(expr, dp_addr_of(regs.rip));
		if (dp_expr_eval(expr, &regs) != before)
			abort();
	}
	dp_expr_destroy(expr);
	free(text);
	return 0;
}
