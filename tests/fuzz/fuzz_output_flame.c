/* SPDX-License-Identifier: MIT */
/* Folded stacks: any bytes, as lines. Both files are written. */
#include "output/flame/flame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dp_flame *f = NULL;
	FILE *to = fopen("/dev/null", "w");
	struct dp_error *err = dp_flame_create(&f);
	const char *text = (const char *)data;
	for (size_t at = 0; !err && at < size;) {
		const char *end = memchr(text + at, '\n', size - at);
		const size_t n = end ? (size_t)(end - text) - at : size - at;
		dp_flame_line(f, text + at, n);
		at += n + 1;
	}
	for (int svg = 0; !err && to && svg < 2; svg++)
		err = dp_flame_write(f, &(struct dp_flame_shown){"a title", "hits", svg}, to);
	dp_error_destroy(err);
	dp_flame_destroy(f);
	if (to)
		fclose(to);
	return 0;
}
