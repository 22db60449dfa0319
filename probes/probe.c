/* SPDX-License-Identifier: MIT */
/* A probe's name and its end. */
#include "base/cleanup.h"
#include "probes/probes.h"

#include <string.h>

/* LTTng takes 255 characters of an event's name, the provider and the colon among them. */
#define NAME_MAX_LEN 200

char *dp_probe_default_name(const struct dp_spec *spec)
{
	char *name = NULL;
	int n;
	if (!spec->symbol)
		n = asprintf(&name, "at_0x%llx", (unsigned long long)spec->value);
	else if (spec->has_offset)
		n = asprintf(&name, "%.*s_0x%llx", NAME_MAX_LEN, spec->symbol, (unsigned long long)spec->value);
	else
		n = asprintf(&name, "%.*s", NAME_MAX_LEN, spec->symbol);
	if (n < 0)
		return NULL;
	for (char *p = name; *p; p++) {
		bool good = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (p > name && *p >= '0' && *p <= '9');
		if (!good)
			*p = '_';
	}
	return name;
}

void dp_probe_fini(struct dp_probe *probe)
{
	free(probe->name);
	dp_spec_fini(&probe->spec);
	dp_fields_fini(&probe->fields);
	dp_expr_destroy(probe->when);
	*probe = (struct dp_probe){0};
}
