/* SPDX-License-Identifier: MIT */
#include "output/format/put.h"
#include "output/reports/plan.h"

#include <string.h>

static void put(struct dp_buf *b, const char *text)
{
	dp_put_visible(b, text, strlen(text), 0);
}

void dp_marker_text(const struct dp_listed_marker *m, FILE *to)
{
	struct dp_buf b = {0};
	dp_put_hex(&b, m->addr);
	dp_put_str(&b, "    usdt  ");
	put(&b, m->module);
	dp_put_str(&b, "!usdt:");
	put(&b, m->provider);
	dp_put_str(&b, ":");
	put(&b, m->name);
	dp_put_str(&b, *m->args ? "  " : "");
	put(&b, m->args);
	dp_put_str(&b, m->semaphore ? "  (semaphore)\n" : "\n");
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
}

void dp_marker_json(const struct dp_listed_marker *m, FILE *to)
{
	struct dp_buf b = {0};
	dp_put_str(&b, "{\"type\":\"marker\",\"version\":1");
	dp_put_json_member(&b, ",", "module", m->module);
	dp_put_json_member(&b, ",", "path", m->path);
	dp_put_json_member(&b, ",", "provider", m->provider);
	dp_put_json_member(&b, ",", "name", m->name);
	dp_put_json_member(&b, ",", "args", m->args);
	dp_put_json_hex(&b, "addr", m->addr);
	dp_put_json_hex(&b, "file_addr", m->vaddr);
	dp_put_str(&b, m->semaphore ? ",\"semaphore\":true}\n" : ",\"semaphore\":false}\n");
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
}
