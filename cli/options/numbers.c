/* SPDX-License-Identifier: MIT */
#include "cli/options/numbers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name;
	double factor;
};

static const struct unit durations[] = {{"", 1e9}, {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},
                                        {"ns", 1}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}, {NULL, 0}};
static const struct unit sizes[] = {{"", 1},     {"K", 1024},   {"M", 1048576},   {"G", 1073741824},
                                    {"k", 1024}, {"KiB", 1024}, {"MiB", 1048576}, {NULL, 0}};

static const struct unit *find_unit(const struct unit *table, const char *name)
{
	for (; table->name; table++)
		if (!strcmp(table->name, name))
			return table;
	return NULL;
}

static struct dp_error *scaled(const char *option, const char *text, const struct unit *table, double *ret)
{
	char *end;
	double value = strtod(text, &end);
	const struct unit *unit = find_unit(table, end);
	if (end == text || !unit || !isfinite(value) || value <= 0 || value * unit->factor > 1e18)
		return dp_error(DP_TAG_USAGE, "%s '%s' is not a positive number with a known unit", option, text);
	*ret = value * unit->factor;
	return NULL;
}

struct dp_error *dp_number_parse(const char *option, const char *text, uint64_t *ret)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (end == text || *end || errno || !value || strchr(text, '-'))
		return dp_error(DP_TAG_USAGE, "%s '%s' is not a positive whole number", option, text);
	*ret = value;
	return NULL;
}

struct dp_error *dp_duration_parse(const char *option, const char *text, uint64_t *ret)
{
	double value;
	DP_TRY(scaled(option, text, durations, &value));
	*ret = value < 1 ? 1 : (uint64_t)value; /* 0 stands for no duration */
	return NULL;
}

struct dp_error *dp_size_parse(const char *option, const char *text, size_t *ret)
{
	double value;
	DP_TRY(scaled(option, text, sizes, &value));
	*ret = (size_t)value;
	return NULL;
}
