/* SPDX-License-Identifier: MIT */
/*
 * The manifest of resident probes, which is stored in the target: the parser refuses any text, or what it returns can be written
 * and read again.
 */
#include "session/manifest.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dp_manifest m = {0}, again = {0};
	char *text = malloc(size + 1), *written = NULL;
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	struct dp_error *err = dp_manifest_parse(text, &m);
	if (!err && !(err = dp_manifest_write(&m, &written))) {
		struct dp_error *back = dp_manifest_parse(written, &again);
		if (back || again.n != m.n)
			abort();
		dp_error_destroy(back);
	}
	dp_error_destroy(err);
	dp_manifest_fini(&m);
	dp_manifest_fini(&again);
	free(text);
	free(written);
	return 0;
}
