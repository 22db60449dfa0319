/* SPDX-License-Identifier: MIT */
/*
 * The page is share/report/page.html with three holes. The data is the snapshot's JSON. What the program's memory held must never
 * become markup: in JSON a '<' stands in texts only, where \u003c means the same and ends no element; the script puts everything
 * into the page as text.
 */
#include "output/report.h"

#include "output/show.h"

#include <stdlib.h>
#include <string.h>

/* cmake/dynprobe.cmake puts them here. */
extern const char dp_report_page[], dp_report_page_end[], dp_report_style[], dp_report_style_end[], dp_report_script[],
        dp_report_script_end[];

static bool put(FILE *to, const char *from, const char *end)
{
	const size_t n = (size_t)(end - from);
	return fwrite(from, 1, n, to) == n;
}

static bool put_data(FILE *to, const char *json, size_t n)
{
	const char *const end = json + n;
	while (json < end) {
		const char *bracket = memchr(json, '<', (size_t)(end - json));
		if (!put(to, json, bracket ? bracket : end))
			return false;
		if (!bracket)
			return true;
		if (fputs("\\u003c", to) < 0)
			return false;
		json = bracket + 1;
	}
	return true;
}

struct hole {
	const char *mark, *from, *end;
	bool is_data;
};

static bool fill(FILE *to, const struct hole *hole, size_t n)
{
	const char *at = dp_report_page;
	for (size_t i = 0; i < n; i++) {
		const char *mark = memmem(at, (size_t)(dp_report_page_end - at), hole[i].mark, strlen(hole[i].mark));
		if (!mark || !put(to, at, mark))
			return false;
		if (hole[i].is_data ? !put_data(to, hole[i].from, (size_t)(hole[i].end - hole[i].from))
		                    : !put(to, hole[i].from, hole[i].end))
			return false;
		at = mark + strlen(hole[i].mark);
	}
	return put(to, at, dp_report_page_end) && !fflush(to);
}

struct dp_error *dp_report_html(struct dp_snapshot *s, FILE *to)
{
	char *json = NULL;
	size_t n = 0;
	FILE *memory = open_memstream(&json, &n);
	if (!memory)
		return dp_error(DP_TAG_NOMEM, "out of memory for the report");
	struct dp_error *err = dp_snapshot_json(s, memory);
	if (fclose(memory) && !err)
		err = dp_error(DP_TAG_NOMEM, "out of memory for the report");
	const struct hole holes[] = {{"@STYLE@", dp_report_style, dp_report_style_end, false},
	                             {"@DATA@", json, json + n, true},
	                             {"@SCRIPT@", dp_report_script, dp_report_script_end, false}};
	if (!err && !fill(to, holes, sizeof(holes) / sizeof(*holes)))
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot write the report");
	free(json);
	return err;
}
