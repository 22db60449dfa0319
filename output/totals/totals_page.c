/* SPDX-License-Identifier: MIT */
/* Lines are parsed and written again, so the page's data is valid JSON whatever the file has. A file is untrusted input. */
#include "output/totals/totals_page.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "output/format/put.h"
#include "output/page/page.h"
#include "probes/elf/demangle.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MOST  200000u
#define BYTES_MOST (UINT64_C(512) << 20)
#define EXACT_MOST (INT64_C(1) << 53) /* the integers of a script are exact up to this */

/* Embedded by cmake/dynprobe.cmake. */
extern const char dp_totals_page_html[], dp_totals_page_html_end[], dp_totals_style[], dp_totals_style_end[], dp_totals_model[],
        dp_totals_model_end[], dp_totals_views[], dp_totals_views_end[];
extern const char dp_timeline_style[], dp_timeline_style_end[], dp_flame_style[], dp_flame_style_end[], dp_flame_script[],
        dp_flame_script_end[];

struct rows {
	struct dp_buf lines; /* of a JSON array */
	size_t n;
	bool rows; /* or a summary, of a run that has none */
	bool damaged, more;
};

/* ---- values ---------------------------------------------------------------------------------------------------------------- */

/* "_ZN1K1fEi+0x5/0x15 [server]" as people read it: only the name is changed. */
static json_t *readable(const json_t *symbol)
{
	const char *text = json_string_value(symbol);
	const size_t n = text && !strncmp(text, "_", 1) ? strcspn(text, "+ ") : 0;
	dp_auto_free char *name = n ? strndup(text, n) : NULL, *plain = name ? dp_demangle(name, true) : NULL, *whole = NULL;
	if (!plain || asprintf(&whole, "%s%s", plain, text + n) < 0)
		return NULL;
	return json_string(whole);
}

static json_t *exact(const json_t *v)
{
	char text[32];
	const json_int_t n = json_is_integer(v) ? json_integer_value(v) : 0;
	if (n <= EXACT_MOST && n >= -EXACT_MOST)
		return NULL;
	snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, n);
	return json_string(text);
}

/* Numbers that a script would round become texts, symbols names. jansson bounds the depth. */
static void prepare(json_t *v)
{
	const char *key;
	void *next;
	json_t *inside, *other;
	size_t i;
	json_array_foreach(v, i, inside)
	{
		prepare(inside);
		if ((other = exact(inside)))
			json_array_set_new(v, i, other);
	}
	json_object_foreach_safe(v, next, key, inside)
	{
		prepare(inside);
		other = strcmp(key, "symbol") != 0 ? exact(inside) : readable(inside);
		if (other)
			json_object_set_new(v, key, other);
	}
}

/* ---- lines ----------------------------------------------------------------------------------------------------------------- */

static bool is_row(const char *type)
{
	return !strcmp(type, "answer") || !strcmp(type, "calls") || !strcmp(type, "profile");
}

static bool is_shown(const char *type)
{
	return is_row(type) || !strcmp(type, "summary") || !strcmp(type, "note");
}

/* False: out of memory. */
static bool take(struct rows *r, json_t *line)
{
	const char *type = json_string_value(json_object_get(line, "type"));
	if (!type || !is_shown(type))
		return true;
	r->rows = true;
	r->more |= (r->n >= ROWS_MOST || r->lines.len >= BYTES_MOST) && is_row(type);
	if (r->more && is_row(type))
		return true;
	prepare(line);
	dp_auto_free char *text = json_dumps(line, JSON_COMPACT);
	if (!text)
		return false;
	dp_put_str(&r->lines, r->n++ ? ",\n" : "");
	dp_put_str(&r->lines, text);
	return !r->lines.failed;
}

static json_t *parse(const char *line, size_t n)
{
	return n > 1 && *line == '{' ? json_loadb(line, n, JSON_ALLOW_NUL, NULL) : NULL;
}

static struct dp_error *read_lines(struct rows *r, FILE *from, const char *name)
{
	dp_auto_free char *line = NULL;
	size_t size = 0;
	ssize_t n;
	bool good = true;
	while (good && (n = getline(&line, &size, from)) >= 0) {
		json_t *object = parse(line, (size_t)n);
		r->damaged |= n > 1 && *line == '{' && !object;
		good = !object || take(r, object);
		json_decref(object);
	}
	if (!good)
		return dp_error_nomem();
	if (ferror(from))
		return dp_error_sys(DP_TAG_BAD_TRACE, "cannot read %s", name);
	return r->rows ? NULL : dp_error(DP_TAG_BAD_TRACE, "%s has no rows of dynprobe -f json", name);
}

bool dp_totals_page_is(FILE *from)
{
	dp_auto_free char *line = NULL;
	size_t size = 0;
	ssize_t n;
	bool rows = false, events = false, begun = false;
	while (!rows && !events && (n = getline(&line, &size, from)) >= 0) {
		json_t *object = parse(line, (size_t)n);
		const char *type = json_string_value(json_object_get(object, "type"));
		events = type && !strcmp(type, "event");
		rows = type && (is_row(type) || (!begun && !strcmp(type, "summary"))); /* a tree of calls has no header */
		begun |= type && !strcmp(type, "header");
		json_decref(object);
	}
	rewind(from);
	return rows;
}

/* ---- the page -------------------------------------------------------------------------------------------------------------- */

static struct dp_error *put_data(const struct rows *r, const char *name, FILE *to)
{
	struct dp_buf b = {0};
	dp_put_json_member(&b, "{", "file", name);
	dp_buf_printf(&b, ",\"damaged\":%s,\"more\":%s,\"lines\":[", r->damaged ? "true" : "false", r->more ? "true" : "false");
	dp_buf_put(&b, r->lines.data, r->lines.len);
	dp_put_str(&b, "]}");
	struct dp_error *err = b.failed ? dp_error_nomem() : dp_page_put_packed(to, b.data, b.len);
	dp_buf_fini(&b);
	return err;
}

static struct dp_error *put_page(const struct rows *r, const char *name, FILE *to)
{
	struct dp_page p = {dp_totals_page_html, dp_totals_page_html_end, to, false};
	dp_page_until(&p, "@STYLE@");
	dp_page_put(&p, &(struct dp_page_file){dp_flame_style, dp_flame_style_end});
	dp_page_put(&p, &(struct dp_page_file){dp_timeline_style, dp_timeline_style_end});
	dp_page_put(&p, &(struct dp_page_file){dp_totals_style, dp_totals_style_end});
	dp_page_until(&p, "@DATA@");
	DP_TRY(put_data(r, name, to));
	dp_page_until(&p, "@SCRIPT@");
	dp_page_put(&p, &(struct dp_page_file){dp_flame_script, dp_flame_script_end});
	dp_page_put(&p, &(struct dp_page_file){dp_totals_model, dp_totals_model_end});
	dp_page_put(&p, &(struct dp_page_file){dp_totals_views, dp_totals_views_end});
	return dp_page_end(&p);
}

struct dp_error *dp_totals_page(FILE *from, const char *name, FILE *to)
{
	struct rows r = {0};
	struct dp_error *err = read_lines(&r, from, name);
	if (!err)
		err = put_page(&r, name, to);
	dp_buf_fini(&r.lines);
	return err;
}
