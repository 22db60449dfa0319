/* SPDX-License-Identifier: MIT */
/* A probe's default name, and its destructor. */
#include "probes/point/probe.h"
#include "base/cleanup.h"

#include <string.h>

/* LTTng limits an event's name to 255 characters, including the provider and the colon; suffixes must fit, too. */
#define SYMBOL_MAX_LEN 160

static const char *suffix_of(enum dp_point point)
{
	return point == DP_POINT_ENTRY ? "_entry" : point == DP_POINT_RETURN ? "_return" : "";
}

char *dp_probe_default_name(const struct dp_spec *spec)
{
	char *name = NULL;
	const char *suffix = suffix_of(spec->point);
	int n;
	if (!spec->symbol)
		n = asprintf(&name, "at_0x%llx%s", (unsigned long long)spec->value, suffix);
	else if (spec->has_offset)
		n = asprintf(&name, "%.*s_0x%llx%s", SYMBOL_MAX_LEN, spec->symbol, (unsigned long long)spec->value, suffix);
	else
		n = asprintf(&name, "%.*s%s", SYMBOL_MAX_LEN, spec->symbol, suffix);
	if (n < 0)
		return NULL;
	for (char *p = name; *p; p++) {
		bool good = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (p > name && *p >= '0' && *p <= '9');
		if (!good)
			*p = '_';
	}
	return name;
}

char *dp_probe_default_shown(const struct dp_spec *spec, const char *name)
{
	const char *suffix = spec->point == DP_POINT_ENTRY ? ":entry" : spec->point == DP_POINT_RETURN ? ":return" : "";
	char offset[24] = "", *shown = NULL;
	if (!spec->symbol)
		return NULL;
	if (spec->has_offset)
		snprintf(offset, sizeof(offset), "+0x%llx", (unsigned long long)spec->value);
	if (asprintf(&shown, "%s%s%s", spec->symbol, offset, suffix) < 0)
		return NULL;
	if (strcmp(shown, name) != 0)
		return shown;
	free(shown);
	return NULL;
}

void dp_probe_fini(struct dp_probe *probe)
{
	free(probe->name);
	free(probe->title);
	free(probe->shown);
	free(probe->shown_more);
	dp_spec_fini(&probe->spec);
	dp_fields_fini(&probe->fields);
	dp_expr_destroy(probe->when);
	free(probe->build_id);
	dp_error_destroy(probe->refused);
	*probe = (struct dp_probe){0};
}
