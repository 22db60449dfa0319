/* SPDX-License-Identifier: MIT */
/* Functions and their instructions: one line each, easy to cut, grep and sort; and the same as JSON. */
#include "base/path.h"
#include "output/format/put.h"
#include "output/reports/plan.h"

#include <string.h>

#define SOURCE_SHOWN 24u
#define BYTES_SHOWN  8u /* width of the column: fits nearly all instructions; longer ones push the rest to the right */

static void put(struct dp_buf *b, const char *text)
{
	dp_put_visible(b, text, strlen(text), 0);
}

/* The spec that --function accepts for it. */
static void put_spec(struct dp_buf *b, const struct dp_listed_function *f)
{
	put(b, f->module);
	dp_put_str(b, "!");
	if (*f->name)
		put(b, f->name);
	else
		dp_put_hex(b, f->vaddr);
	if (f->file) {
		dp_put_str(b, "@");
		put(b, f->file);
	}
	if (f->file && f->line)
		dp_buf_printf(b, "  %s:%d", dp_path_last(f->file), f->line);
}

static void pad_to(struct dp_buf *b, size_t column)
{
	do
		dp_put_str(b, " ");
	while (b->len < column);
}

static void put_site(struct dp_buf *b, const struct dp_listed_function *f, const struct dp_listed_site *s, bool reasons)
{
	const size_t start = b->len;
	dp_buf_printf(b, "    +0x%llx", (unsigned long long)(s->addr - f->addr));
	pad_to(b, start + 12);
	dp_put_hex(b, s->addr);
	dp_put_str(b, " ");
	const size_t bytes = b->len;
	for (size_t i = 0; i < s->n; i++)
		dp_buf_printf(b, " %02x", s->bytes[i]);
	pad_to(b, bytes + 3 * BYTES_SHOWN + 2);
	put(b, s->text);
	pad_to(b, bytes + 3 * BYTES_SHOWN + 2 + 40);
	if (s->source) {
		put(b, s->source);
		pad_to(b, bytes + 3 * BYTES_SHOWN + 2 + 40 + SOURCE_SHOWN);
	}
	put(b, s->tactic ? s->tactic : s->tag);
	if (!s->tactic && reasons) {
		dp_put_str(b, "  ");
		put(b, s->reason);
	}
	dp_put_str(b, "\n");
}

void dp_function_text(const struct dp_listed_function *f, bool reasons, FILE *to)
{
	struct dp_buf b = {0};
	dp_put_hex(&b, f->addr);
	if (f->size)
		dp_buf_printf(&b, " %7llu  ", (unsigned long long)f->size);
	else
		dp_buf_printf(&b, " %7s  ", "?");
	put_spec(&b, f);
	dp_put_str(&b, f->ifunc ? "  (ifunc)\n" : "\n");
	for (size_t i = 0; f->site && i < f->nsites; i++)
		put_site(&b, f, &f->site[i], reasons);
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------------- */

static void put_json_site(struct dp_buf *b, const struct dp_listed_function *f, const struct dp_listed_site *s)
{
	dp_put_str(b, "{\"offset\":");
	dp_put_dec(b, s->addr - f->addr);
	dp_put_json_hex(b, "addr", s->addr);
	dp_put_str(b, ",\"bytes\":\"");
	dp_put_hexdump(b, s->bytes, s->n);
	dp_put_str(b, "\"");
	dp_put_json_member(b, ",", "text", s->text);
	dp_put_json_member(b, ",", "tactic", s->tactic);
	dp_put_json_member(b, ",", "tag", s->tactic ? NULL : s->tag);
	dp_put_json_member(b, ",", "reason", s->tactic ? NULL : s->reason);
	dp_put_json_member(b, ",", "source", s->source);
	dp_put_str(b, "}");
}

static void put_json_spec(struct dp_buf *b, const struct dp_listed_function *f)
{
	struct dp_buf spec = {0};
	dp_put_str(&spec, f->module);
	dp_put_str(&spec, "!");
	if (*f->name)
		dp_put_str(&spec, f->name);
	else
		dp_put_hex(&spec, f->vaddr);
	if (f->file)
		dp_buf_printf(&spec, "@%s", f->file);
	dp_put_json_member(b, ",", "spec", dp_buf_str(&spec));
	dp_buf_fini(&spec);
}

void dp_function_json(const struct dp_listed_function *f, FILE *to)
{
	struct dp_buf b = {0};
	dp_put_str(&b, "{\"type\":\"function\",\"version\":1");
	dp_put_json_member(&b, ",", "module", f->module);
	dp_put_json_member(&b, ",", "path", f->path);
	dp_put_json_member(&b, ",", "name", *f->name ? f->name : NULL);
	put_json_spec(&b, f);
	if (f->file) {
		dp_put_json_member(&b, ",", "file", f->file);
		if (f->line)
			dp_buf_printf(&b, ",\"line\":%d", f->line);
	}
	dp_put_json_hex(&b, "addr", f->addr);
	dp_put_json_hex(&b, "file_addr", f->vaddr);
	dp_put_str(&b, ",\"size\":");
	if (f->size)
		dp_put_dec(&b, f->size);
	else
		dp_put_str(&b, "null");
	dp_put_str(&b, f->ifunc ? ",\"ifunc\":true,\"aliases\":[" : ",\"ifunc\":false,\"aliases\":[");
	for (size_t i = 0; i < f->naliases; i++) {
		dp_put_str(&b, i ? "," : "");
		dp_put_json_str(&b, f->alias[i]);
	}
	dp_put_str(&b, f->site ? "],\"sites\":[" : "]");
	for (size_t i = 0; f->site && i < f->nsites; i++) {
		dp_put_str(&b, i ? "," : "");
		put_json_site(&b, f, &f->site[i]);
	}
	dp_put_str(&b, f->site ? "]}\n" : "}\n");
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
}
