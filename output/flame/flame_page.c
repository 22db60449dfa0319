/* SPDX-License-Identifier: MIT */
/*
 * The file: the tree as JSON, deflated and in base64, so that names can be no markup; and share/flame/, which shows it. An SVG
 * also has a picture for viewers that run no script (flame_svg.c).
 */
#include "output/flame/flame_picture.h"
#include "output/format/put.h"
#include "output/page/page.h"

#include <stdlib.h>
#include <string.h>

/* Embedded by cmake/dynprobe.cmake. */
extern const char dp_flame_html[], dp_flame_html_end[], dp_flame_svg[], dp_flame_svg_end[], dp_flame_style[],
        dp_flame_style_end[], dp_flame_script[], dp_flame_script_end[], dp_flame_start[], dp_flame_start_end[];

/* Only names that are shown get a number in the file. */
static void put_names(struct dp_buf *b, const struct dp_flame *f, const struct dp_flame_box *box, size_t n, uint32_t *number)
{
	uint32_t next = 0;
	dp_put_str(b, ",\"names\":[");
	for (size_t i = 1; i < n; i++) {
		const uint32_t name = f->node[box[i].node].name;
		if (number[name] != DP_FLAME_NONE)
			continue;
		dp_put_str(b, next ? "," : "");
		dp_put_json_str(b, f->name[name]);
		number[name] = next++;
	}
}

/* Name, depth and weight of each frame; the root, which has no name, is left out. */
static void put_nodes(struct dp_buf *b, const struct dp_flame *f, const struct dp_flame_box *box, size_t n,
                      const uint32_t *number)
{
	dp_put_str(b, "],\"nodes\":[");
	for (size_t i = 1; i < n; i++)
		dp_buf_printf(b, "%s%u,%u,%.15g", i > 1 ? "," : "", number[f->node[box[i].node].name], box[i].depth - 1,
		              f->node[box[i].node].total);
	dp_put_str(b, "]}");
}

static struct dp_error *put_data(struct dp_flame *f, const struct dp_flame_shown *shown, const struct dp_flame_box *box, size_t n,
                                 FILE *to)
{
	struct dp_buf b = {0};
	uint32_t *number = malloc((f->nnames + 1) * sizeof(*number));
	if (!number)
		return dp_error_nomem();
	memset(number, 0xff, (f->nnames + 1) * sizeof(*number));
	dp_put_json_member(&b, "{", "title", shown->title);
	dp_put_json_member(&b, ",", "unit", shown->unit);
	dp_buf_printf(&b, ",\"total\":%.15g,\"narrow\":%llu,\"skipped\":%llu", f->node[0].total,
	              (unsigned long long)f->stats.narrow, (unsigned long long)f->stats.skipped);
	put_names(&b, f, box, n, number);
	put_nodes(&b, f, box, n, number);
	free(number);
	struct dp_error *err = b.failed ? dp_error_nomem() : dp_page_put_packed(to, b.data, b.len);
	dp_buf_fini(&b);
	return err;
}

static struct dp_error *put_page(struct dp_flame *f, const struct dp_flame_shown *shown, const struct dp_flame_box *box, size_t n,
                                 FILE *to)
{
	struct dp_page p = {dp_flame_html, dp_flame_html_end, to, false};
	if (shown->svg)
		p = (struct dp_page){dp_flame_svg, dp_flame_svg_end, to, false};
	if (shown->svg) {
		dp_page_until(&p, "@SIZE@");
		DP_TRY(dp_flame_put_size(box, n, to));
	}
	dp_page_until(&p, "@STYLE@");
	dp_page_put(&p, &(struct dp_page_file){dp_flame_style, dp_flame_style_end});
	if (shown->svg) {
		dp_page_until(&p, "@PICTURE@");
		DP_TRY(dp_flame_put_picture(f, shown, &(struct dp_flame_picture){box, n}, to));
	}
	dp_page_until(&p, "@DATA@");
	DP_TRY(put_data(f, shown, box, n, to));
	dp_page_until(&p, "@SCRIPT@");
	dp_page_put(&p, &(struct dp_page_file){dp_flame_script, dp_flame_script_end});
	dp_page_put(&p, &(struct dp_page_file){dp_flame_start, dp_flame_start_end});
	return dp_page_end(&p);
}

struct dp_error *dp_flame_write(struct dp_flame *f, const struct dp_flame_shown *shown, FILE *to)
{
	struct dp_flame_box *box;
	size_t n;
	if (f->failed || !dp_flame_boxes(f, &box, &n))
		return dp_error_nomem();
	struct dp_error *err = put_page(f, shown, box, n, to);
	free(box);
	return err;
}

struct dp_error *dp_flame_kind(const char *path, bool *svg)
{
	const char *dot = strrchr(path, '.');
	*svg = dot && !strcasecmp(dot, ".svg");
	if (*svg || (dot && (!strcasecmp(dot, ".html") || !strcasecmp(dot, ".htm"))))
		return NULL;
	return dp_error(DP_TAG_USAGE, "a flame graph is an SVG or a page: '%s' must end in .svg or .html", path);
}
