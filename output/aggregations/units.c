/* SPDX-License-Identifier: MIT */
#include "output/aggregations/units.h"

#include "base/duration.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void dp_units_ns(char text[DP_UNITS_TEXT], double ns)
{
	char v[DP_DURATION_TEXT];
	snprintf(text, DP_UNITS_TEXT, "%s%s", ns < 0 ? "-" : "", dp_duration((uint64_t)(fabs(ns) + 0.5), v));
}

void dp_units_value(const struct dp_agg_part *part, char text[DP_UNITS_TEXT], int64_t v)
{
	if (dp_agg_is_ns(part))
		dp_units_ns(text, (double)v);
	else
		snprintf(text, DP_UNITS_TEXT, "%" PRId64, v);
}

void dp_units_average(const struct dp_agg_part *part, char text[DP_UNITS_TEXT], double v)
{
	if (dp_agg_is_ns(part))
		dp_units_ns(text, v);
	else
		snprintf(text, DP_UNITS_TEXT, "%.2f", v);
}

void dp_units_percentile(const struct dp_agg_part *part, char text[DP_UNITS_TEXT], const uint64_t *cells, unsigned percent)
{
	struct dp_percentile p;
	char value[DP_UNITS_TEXT];
	if (!dp_agg_percentile(part, cells, percent, &p)) {
		snprintf(text, DP_UNITS_TEXT, "-");
		return;
	}
	if (dp_agg_is_ns(part))
		dp_units_ns(value, p.value);
	else
		snprintf(value, sizeof(value), "%.*f", fabs(p.value) < 99.95 && fabs(p.value - round(p.value)) >= 0.05, p.value);
	snprintf(text, DP_UNITS_TEXT, "%s%.44s", p.open < 0 ? "<" : p.open > 0 ? ">=" : "", value);
}

/* With all its digits: 1500 is 1.5us. */
static void exact_ns(char text[DP_UNITS_TEXT], int64_t ns)
{
	static const char *const unit[] = {"ns", "us", "ms", "s"};
	int i = 0;
	double v = (double)ns;
	for (; i < 3 && fabs(v) >= 1000; i++)
		v /= 1000;
	snprintf(text, DP_UNITS_TEXT - 2, "%.*f", 3 * i, v);
	char *end = text + strlen(text);
	while (i && end[-1] == '0')
		*--end = '\0';
	if (i && end[-1] == '.')
		*--end = '\0';
	strcpy(end, unit[i]);
}

void dp_units_bound(const struct dp_agg_part *part, char text[DP_UNITS_TEXT], int64_t v)
{
	static const char binary[] = "KMGTPE";
	int unit = -1;
	if (v == INT64_MIN || v == INT64_MAX)
		snprintf(text, DP_UNITS_TEXT, "...");
	else if (dp_agg_is_ns(part))
		exact_ns(text, v);
	else if (!(part->what & DP_AGG_LOG2))
		dp_units_value(part, text, v);
	else {
		for (; v >= 1024 && v % 1024 == 0; v /= 1024)
			unit++;
		snprintf(text, DP_UNITS_TEXT, "%" PRId64 "%.1s", v, unit < 0 ? "" : binary + unit);
	}
}

void dp_units_rate(char text[DP_UNITS_TEXT], double per_second)
{
	snprintf(text, DP_UNITS_TEXT, per_second < 10 ? "%.2f" : per_second < 100 ? "%.1f" : "%.0f", per_second);
}
