/* SPDX-License-Identifier: MIT */
/* The key list of --by: it is refused, or each key has a text and a depth within bounds. Input: the list as typed. */
#include "session/trace_spec.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct dp_asked a = {0};
	struct dp_error *err = text ? dp_asked_by(&a, text) : NULL;
	if (a.nkeys > DP_KEYS_MOST || (!err && text && (!a.nkeys || !a.by)))
		abort();
	for (size_t i = 0; i < a.nkeys; i++)
		if (!*a.key[i].text || a.key[i].depth > 63 || (a.key[i].kind == DP_KEY_STACK) != (a.key[i].depth > 0))
			abort();
	dp_error_destroy(err);
	dp_asked_fini(&a);
	free(text);
	return 0;
}
