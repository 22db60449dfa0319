/* SPDX-License-Identifier: MIT */
/* A condition on a call, as one for its entry and one for its return: refused, or parts with a text. Input: the condition. */
#include "probes/expr/syntax/check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), *part[2] = {0};
	struct dp_error *err = text ? dp_scope_split(text, &part[0], &part[1]) : NULL;
	if (text && !err && !part[0] && !part[1])
		abort();
	for (size_t i = 0; i < 2; i++) {
		if (part[i] && part[i][0] != '(')
			abort();
		free(part[i]);
	}
	dp_error_destroy(err);
	free(text);
	return 0;
}
