/* SPDX-License-Identifier: MIT */
/*
 * Fills the three placeholders of share/report/page.html. The data is the snapshot's JSON in parts (dp_snapshot_json_parts()),
 * one per line, deflated and in base64. So a browser unpacks only the parts that are viewed, and the program's memory cannot
 * become markup; the script inserts everything as text.
 */
#include "output/snapshot/report.h"

#include "output/page/page.h"
#include "output/snapshot/show.h"

/* Embedded by cmake/dynprobe.cmake. */
extern const char dp_report_page[], dp_report_page_end[], dp_report_style[], dp_report_style_end[], dp_report_script[],
        dp_report_script_end[];

static struct dp_error *put_part(void *of, const void *json, size_t n)
{
	return dp_page_put_packed(of, json, n);
}

struct dp_error *dp_report_html(struct dp_snapshot *s, FILE *to)
{
	struct dp_page p = {dp_report_page, dp_report_page_end, to, false};
	dp_page_until(&p, "@STYLE@");
	dp_page_put(&p, &(struct dp_page_file){dp_report_style, dp_report_style_end});
	dp_page_until(&p, "@DATA@");
	if (!p.failed)
		DP_TRY(dp_snapshot_json_parts(s, &(struct dp_json_sink){put_part, to}));
	dp_page_until(&p, "@SCRIPT@");
	dp_page_put(&p, &(struct dp_page_file){dp_report_script, dp_report_script_end});
	return dp_page_end(&p);
}
