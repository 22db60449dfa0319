/* SPDX-License-Identifier: MIT */
/* Tables shown on request: registers, maps, files, limits. */
#include "output/snapshot/show_internal.h"

#include <inttypes.h>
#include <string.h>

static void put_register(struct dp_shower *x, const char *name, uint64_t v, size_t indent, size_t *line)
{
	const size_t cell = 4 + 19 + 2;
	if (*line == SIZE_MAX || dp_show_column(x, *line) + cell > dp_show_width(x)) {
		dp_put_str(&x->b, *line == SIZE_MAX ? "" : "\n");
		*line = x->b.len;
		dp_show_indent(x, indent);
	} else
		dp_put_str(&x->b, "  ");
	dp_buf_printf(&x->b, "%-4s0x%016" PRIx64, name, v);
}

static void put_general(struct dp_shower *x, const struct dp_frame_regs *r, size_t indent, size_t *line)
{
	for (unsigned i = 0; i < DP_DWARF_REGS; i++)
		if (r->known >> i & 1)
			put_register(x, dp_snap_register_name[i], r->value[i], indent, line);
}

void dp_show_registers(struct dp_shower *x, const struct dp_frame_regs *r, size_t indent)
{
	size_t line = SIZE_MAX;
	put_general(x, r, indent, &line);
	dp_put_str(&x->b, line == SIZE_MAX ? "" : "\n");
}

void dp_show_thread_registers(struct dp_shower *x, const struct dp_snap_thread *t)
{
	size_t line = SIZE_MAX;
	if (!t->has_registers)
		return;
	put_general(x, &t->registers, 4, &line);
	put_register(x, "efl", t->rflags, 4, &line);
	put_register(x, "fs", t->fs_base, 4, &line);
	put_register(x, "gs", t->gs_base, 4, &line);
	dp_put_str(&x->b, "\n");
}

void dp_show_maps(struct dp_shower *x)
{
	dp_put_str(&x->b, "\nMaps:\n");
	for (size_t i = 0; i < x->s->nmaps; i++) {
		const struct dp_snap_map *m = &x->s->maps[i];
		dp_buf_printf(&x->b, "  %012" PRIx64 "-%012" PRIx64 " %c%c%c%c %8" PRIx64 " ", m->start, m->end,
		              m->read ? 'r' : '-', m->write ? 'w' : '-', m->exec ? 'x' : '-', m->shared ? 's' : 'p', m->offset);
		dp_show_put(x, m->is_guard ? "[stack guard] " : "");
		dp_show_put(x, m->path);
		dp_put_str(&x->b, "\n");
		dp_show_flush(x, false);
	}
	for (size_t i = 0; x->o->verbose && i < x->s->nobjects; i++) {
		const struct dp_snap_object *o = &x->s->objects[i];
		dp_put_str(&x->b, i ? "  " : "\nObjects:\n  ");
		dp_show_put(x, o->path);
		if (o->name && *o->name) {
			dp_put_str(&x->b, " (started as ");
			dp_show_put(x, o->name);
			dp_put_str(&x->b, ")");
		}
		dp_buf_printf(&x->b, " 0x%" PRIx64 ", debug information %s, build id ", o->start,
		              o->has_debug ? "used" : "not used");
		dp_show_put(x, *o->build_id ? o->build_id : "none");
		dp_put_str(&x->b, "\n");
	}
}

void dp_show_files(struct dp_shower *x)
{
	dp_put_str(&x->b, "\nFiles:\n");
	for (size_t i = 0; i < x->s->nfiles; i++) {
		dp_buf_printf(&x->b, "  %4d ", x->s->files[i].fd);
		dp_show_put(x, x->s->files[i].target);
		dp_put_str(&x->b, "\n");
		dp_show_flush(x, false);
	}
}

static void put_cell(struct dp_shower *x, const char *text, size_t width)
{
	const size_t before = x->b.len;
	dp_show_put(x, text);
	dp_put_str(&x->b, " ");
	while (x->b.len < before + width && !x->b.failed)
		dp_put_str(&x->b, " ");
}

void dp_show_limits(struct dp_shower *x)
{
	dp_put_str(&x->b, "\nLimits (soft, hard):\n");
	for (size_t i = 0; i < x->s->nlimits; i++) {
		const struct dp_snap_limit *l = &x->s->limits[i];
		dp_put_str(&x->b, "  ");
		put_cell(x, l->name, 26);
		put_cell(x, l->soft, 21);
		put_cell(x, l->hard, 21);
		dp_show_put(x, l->unit);
		dp_put_str(&x->b, "\n");
	}
}
