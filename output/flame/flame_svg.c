/* SPDX-License-Identifier: MIT */
#include "output/flame/flame_picture.h"

#include "output/format/put.h"

#include <string.h>

/* share/flame/flame.js draws with the same sizes and colours. */
enum { ROW = 18, TOP = 34, SIDE = 6, COLORS = 8, LETTER = 7 };
#define LEAST_SHOWN 0.5 /* pixels: narrower frames are not drawn, as the script does not draw them */

static unsigned deepest(const struct dp_flame_box *box, size_t n)
{
	unsigned depth = 0;
	for (size_t i = 0; i < n; i++)
		depth = box[i].depth > depth ? box[i].depth : depth;
	return depth;
}

static unsigned height_of(const struct dp_flame_box *box, size_t n)
{
	return TOP + (deepest(box, n) + 1) * ROW + SIDE;
}

struct dp_error *dp_flame_put_size(const struct dp_flame_box *box, size_t n, FILE *to)
{
	const unsigned height = height_of(box, n);
	const int put =
	        fprintf(to, "viewBox=\"0 0 %d %u\" width=\"%d\" height=\"%u\"", DP_FLAME_WIDTH, height, DP_FLAME_WIDTH, height);
	return put < 0 ? dp_error_sys(DP_TAG_OUTPUT, "cannot write the flame graph") : NULL;
}

/* Control characters, which no XML may have, and what hides or turns text are escaped first. */
static void put_xml(struct dp_buf *b, const char *text, size_t most)
{
	struct dp_buf clean = {0};
	dp_put_visible(&clean, text, strlen(text), 0);
	const char *at = dp_buf_str(&clean);
	for (size_t shown = 0; *at && shown < most; at++) {
		shown += (*at & 0xc0) != 0x80;
		if (*at == '<')
			dp_put_str(b, "&lt;");
		else if (*at == '>')
			dp_put_str(b, "&gt;");
		else if (*at == '&')
			dp_put_str(b, "&amp;");
		else if (*at == '"')
			dp_put_str(b, "&quot;");
		else
			dp_buf_put(b, at, 1);
	}
	while ((*at & 0xc0) == 0x80)
		dp_buf_put(b, at++, 1);
	if (*at)
		dp_put_str(b, "..");
	b->failed |= clean.failed;
	dp_buf_fini(&clean);
}

/* The same function has the same colour, whatever stands behind its name (where in it, in which file). */
static unsigned color_of(const char *name)
{
	uint32_t h = 2166136261u;
	for (; *name && !strchr(" +(", *name); name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return (h >> 16) % COLORS;
}

static void put_box(struct dp_buf *b, const struct dp_flame *f, const struct dp_flame_box *box, unsigned height)
{
	const double scale = (DP_FLAME_WIDTH - 2 * SIDE) / (f->node[0].total > 0 ? f->node[0].total : 1);
	const double total = f->node[box->node].total, width = total * scale, x = SIDE + box->start * scale;
	const unsigned y = height - SIDE - (box->depth + 1) * ROW;
	const char *name = box->depth ? f->name[f->node[box->node].name] : "all";
	const size_t letters = width > 3 * LETTER ? (size_t)((width - LETTER) / LETTER) : 0;
	if (width < LEAST_SHOWN)
		return;
	dp_buf_printf(b, "<g><title>");
	put_xml(b, name, SIZE_MAX);
	dp_buf_printf(b, " %.15g (%.2f%%)</title><rect class=\"c%u\" x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%d\"/>", total,
	              f->node[0].total > 0 ? 100 * total / f->node[0].total : 0, box->depth ? color_of(name) : COLORS, x, y, width,
	              ROW - 1);
	if (letters) {
		dp_buf_printf(b, "<text x=\"%.1f\" y=\"%u\">", x + 3, y + ROW - 5);
		put_xml(b, name, letters);
		dp_put_str(b, "</text>");
	}
	dp_put_str(b, "</g>\n");
}

struct dp_error *dp_flame_put_picture(const struct dp_flame *f, const struct dp_flame_shown *shown,
                                      const struct dp_flame_picture *of, FILE *to)
{
	struct dp_buf b = {0};
	const unsigned height = height_of(of->box, of->n);
	dp_put_str(&b, "<title>");
	put_xml(&b, shown->title, SIZE_MAX);
	dp_put_str(&b, "</title><rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n<text class=\"head\" x=\"6\" y=\"21\">");
	put_xml(&b, shown->title, SIZE_MAX);
	dp_put_str(&b, "</text>\n");
	for (size_t i = 0; i < of->n; i++)
		put_box(&b, f, &of->box[i], height);
	struct dp_error *err = b.failed ? dp_error_nomem() : NULL;
	if (!err && fwrite(b.data, 1, b.len, to) != b.len)
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot write the flame graph");
	dp_buf_fini(&b);
	return err;
}
