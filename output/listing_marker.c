/* SPDX-License-Identifier: MIT */
#include "output/plan.h"
#include "output/put.h"

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

static void put_member(struct dp_buf *b, const char *key, const char *text)
{
	dp_put_str(b, ",");
	dp_put_json_str(b, key);
	dp_put_str(b, ":");
	dp_put_json_str(b, text);
}

static void put_addr(struct dp_buf *b, const char *key, uint64_t v)
{
	dp_put_str(b, ",");
	dp_put_json_str(b, key);
	dp_put_str(b, ":\"");
	dp_put_hex(b, v);
	dp_put_str(b, "\"");
}

void dp_marker_json(const struct dp_listed_marker *m, FILE *to)
{
	struct dp_buf b = {0};
	dp_put_str(&b, "{\"type\":\"marker\",\"version\":1");
	put_member(&b, "module", m->module);
	put_member(&b, "path", m->path);
	put_member(&b, "provider", m->provider);
	put_member(&b, "name", m->name);
	put_member(&b, "args", m->args);
	put_addr(&b, "addr", m->addr);
	put_addr(&b, "file_addr", m->vaddr);
	dp_put_str(&b, m->semaphore ? ",\"semaphore\":true}\n" : ",\"semaphore\":false}\n");
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
}
