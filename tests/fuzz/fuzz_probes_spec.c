/* SPDX-License-Identifier: MIT */
/* Any text as a probe point and as the memory map of a target. clang -fsanitize=fuzzer,address,undefined. */
#include "probes/image/maps.h"
#include "probes/probes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dp_spec spec;
	struct dp_maps maps;
	char *text = strndup((const char *)data, size);
	struct dp_error *err = text ? dp_spec_parse(text, &spec) : NULL;
	if (text && !err) {
		free(dp_probe_default_name(&spec));
		dp_spec_selects(&spec);
		dp_spec_fini(&spec);
	}
	dp_error_destroy(err);
	err = text ? dp_maps_parse(text, &maps) : NULL;
	if (text && !err)
		dp_maps_fini(&maps);
	dp_error_destroy(err);
	free(text);
	return 0;
}
