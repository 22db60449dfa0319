/* SPDX-License-Identifier: MIT */
#include "output/calls/line.h"

#include "output/format/put.h"

static void put_args(struct dp_buf *b, const struct dp_call_line *line)
{
	struct dp_buf text = {0};
	dp_put_call_args(&text, line, 0, line->exit ? DP_CALL_ARGS : dp_call_first_late(line->nr));
	dp_put_str(b, ",\"args_text\":");
	dp_put_json(b, dp_buf_str(&text), text.len);
	b->failed |= text.failed;
	dp_buf_fini(&text);
}

void dp_put_call_json(struct dp_buf *b, const struct dp_call_line *line)
{
	const char *error = line->exit ? dp_call_error(line->exit) : NULL;
	if (line->nr != DP_CALL_ANY) {
		dp_put_str(b, ",\"call\":\"");
		dp_put_call_name(b, line);
		dp_put_str(b, "\"");
	}
	put_args(b, line);
	if (line->exit && line->exit->has_result) {
		dp_put_str(b, ",\"result\":");
		dp_put_signed(b, error ? -1 : line->exit->result);
	}
	if (error)
		dp_put_json_member(b, ",", "error", error);
	if (line->has_duration) {
		dp_put_str(b, ",\"duration_ns\":");
		dp_put_dec(b, line->duration_ns);
	}
}
