/* SPDX-License-Identifier: MIT */
/* A world: one process's memory, modules, symbols. */
#include "base/path.h"
#include "pmodules/value/debug_ctx_internal.h"
#include "probes/expr/scope/scope.h"
#include "probes/image/function/describe.h"
#include "probes/image/module.h"

#include <stdlib.h>
#include <string.h>

struct dp_error *dp_debug_ctx_create(struct dp_image *image, dp_debug_ctx_read_fn read, void *data, struct dp_debug_ctx **ret)
{
	struct dp_debug_ctx *w = calloc(1, sizeof(*w));
	struct dp_debug_ctx_page *page = calloc(DP_DEBUG_CTX_PAGES, sizeof(*page));
	if (!w || !page) {
		free(w);
		free(page);
		return dp_error_nomem();
	}
	w->image = image;
	w->read = read;
	w->data = data;
	w->page = page;
	w->generation = 1;
	w->basic = (struct dp_ctypes){.arena = &w->arena, .makes_texts = true};
	dp_debug_ctx_forget(w);
	*ret = w;
	return NULL;
}

struct dp_debug_ctx *dp_debug_ctx_destroy(struct dp_debug_ctx *w)
{
	if (!w)
		return NULL;
	for (struct dp_debug_ctx_module *m = w->modules; m; m = m->next)
		free(m->object);
	dp_arena_fini(&w->arena);
	free(w->page);
	free(w);
	return NULL;
}

void dp_debug_ctx_bound(struct dp_debug_ctx *w, bool (*is_over)(void *data), void *data)
{
	w->is_over = is_over;
	w->over_data = data;
}

void dp_debug_ctx_before_load(struct dp_debug_ctx *w, void (*ask)(void *data))
{
	w->before_load = ask;
}

void dp_debug_ctx_renew(struct dp_debug_ctx *w)
{
	memset(w->range, 0, sizeof(w->range));
	dp_debug_ctx_forget(w);
}

uint64_t dp_debug_ctx_bytes(const struct dp_debug_ctx *w)
{
	return w->arena.total;
}

struct dp_image *dp_debug_ctx_image(struct dp_debug_ctx *w)
{
	return w->image;
}

/* ---- memory ------------------------------------------------------------------------------------------------------------ */

void dp_debug_ctx_forget(struct dp_debug_ctx *w)
{
	for (size_t i = 0; i < DP_DEBUG_CTX_PAGES; i++)
		w->page[i].addr = 1;
}

const struct dp_debug_ctx_page *dp_debug_ctx_page(struct dp_debug_ctx *w, uint64_t addr)
{
	const uint64_t start = addr & -(uint64_t)DP_DEBUG_CTX_PAGE;
	struct dp_debug_ctx_page *p = &w->page[(start / DP_DEBUG_CTX_PAGE) % DP_DEBUG_CTX_PAGES];
	if (p->addr != start) {
		p->late = false;
		p->addr = start;
		p->n = (uint32_t)w->read(start, p->bytes, DP_DEBUG_CTX_PAGE, &p->late, w->data);
	}
	return p;
}

static size_t read_pages(struct dp_debug_ctx *w, uint64_t addr, uint8_t *buf, size_t n, bool *late)
{
	size_t done = 0;
	while (done < n && addr + done >= addr) {
		const struct dp_debug_ctx_page *p = dp_debug_ctx_page(w, addr + done);
		const size_t at = (addr + done) % DP_DEBUG_CTX_PAGE, here = p->n > at ? p->n - at : 0,
		             want = n - done < here ? n - done : here;
		memcpy(buf + done, p->bytes + at, want);
		done += want;
		*late |= want && p->late;
		if (at + want < DP_DEBUG_CTX_PAGE)
			break;
	}
	return done;
}

size_t dp_debug_ctx_read(struct dp_debug_ctx *w, uint64_t addr, void *buf, size_t n, bool *late)
{
	bool later = false;
	const size_t done =
	        n > 4 * (size_t)DP_DEBUG_CTX_PAGE ? w->read(addr, buf, n, &later, w->data) : read_pages(w, addr, buf, n, &later);
	w->latest = (struct dp_debug_ctx_last){w->latest.reads + 1, done > 0, later};
	if (late)
		*late = later;
	return done;
}

struct dp_debug_ctx_last dp_debug_ctx_last(const struct dp_debug_ctx *w)
{
	return w->latest;
}

bool dp_debug_ctx_get(struct dp_debug_ctx *w, uint64_t addr, void *buf, size_t n, bool *late)
{
	bool later;
	if (dp_debug_ctx_read(w, addr, buf, n, &later) != n)
		return false;
	if (late)
		*late |= later;
	return true;
}

/* ---- modules ------------------------------------------------------------------------------------------------------------ */

struct dp_debug_ctx_module *dp_debug_ctx_module(struct dp_debug_ctx *w, struct dp_module *m)
{
	struct dp_debug_ctx_module *x = w->last && w->last->module == m ? w->last : w->modules;
	if (!m)
		return NULL;
	while (x && x->module != m)
		x = x->next;
	if (!x) {
		x = dp_arena_alloc(&w->arena, sizeof(*x));
		if (!x)
			return NULL;
		x->module = m;
		x->types = (struct dp_ctypes){.arena = &w->arena, .module = m, .makes_texts = true};
		x->path.text = dp_module_path(m);
		x->next = w->modules;
		w->modules = x;
	}
	w->last = x;
	return x;
}

/* Remembers the mapping, or the module's part of it, if no other module is in it. */
static void remember_range(struct dp_debug_ctx *w, uint64_t addr, struct dp_debug_ctx_module *x)
{
	const struct dp_map *map = dp_image_map_at(w->image, dp_addr_of(addr));
	const struct dp_module *m = x ? x->module : NULL;
	if (!map || (m && strcmp(map->path, m->mapped_path)))
		return;
	struct dp_debug_ctx_range r = {map->start.v, map->end.v, x};
	if (m && m->start.v > r.start)
		r.start = m->start.v;
	if (m && m->end.v < r.end)
		r.end = m->end.v;
	for (size_t i = 0; i < dp_image_nmodules(w->image); i++) {
		const struct dp_module *other = dp_image_module(w->image, i);
		if (other != m && other->start.v < r.end && other->end.v > r.start)
			return;
	}
	w->range[w->nranges++ % DP_DEBUG_CTX_RANGES] = r;
}

struct dp_debug_ctx_module *dp_debug_ctx_module_at(struct dp_debug_ctx *w, uint64_t addr)
{
	for (size_t i = 0; i < DP_DEBUG_CTX_RANGES; i++)
		if (addr >= w->range[i].start && addr < w->range[i].end)
			return w->range[i].module;
	struct dp_debug_ctx_module *x = dp_debug_ctx_module(w, dp_image_module_at(w->image, dp_addr_of(addr)));
	remember_range(w, addr, x);
	return x;
}

struct dp_debug *dp_debug_ctx_debug(struct dp_debug_ctx *w, struct dp_module *m)
{
	struct dp_debug_ctx_module *x = dp_debug_ctx_module(w, m);
	if (!x)
		return NULL;
	if (!x->debug_asked) {
		x->debug_asked = true;
		if (w->before_load && !dp_module_debug_opened(m))
			w->before_load(w->data);
		struct dp_error *err = dp_module_debug(m, &x->debug);
		if (err)
			x->debug = NULL;
		dp_error_destroy(err);
	}
	return x->debug;
}

struct dp_ctypes *dp_debug_ctx_types(struct dp_debug_ctx *w, struct dp_module *m)
{
	struct dp_debug_ctx_module *x = dp_debug_ctx_module(w, m);
	return x ? &x->types : &w->basic;
}

/* ---- strings -------------------------------------------------------------------------------------------------------------- */

void dp_debug_ctx_begin(struct dp_debug_ctx *w, const struct dp_snapshot *s)
{
	if (w->snapshot == s && !memcmp(w->id, s->id, sizeof(w->id)))
		return;
	w->snapshot = s;
	memcpy(w->id, s->id, sizeof(w->id));
	w->generation++;
}

const char *dp_debug_ctx_copy(struct dp_debug_ctx *w, struct dp_snapshot *s, struct dp_stext *t)
{
	if (!t->text)
		return "";
	if (t->of != w->generation) {
		t->copy = dp_snapshot_text(s, t->text);
		t->of = w->generation;
	}
	return t->copy ? t->copy : "";
}

struct dp_ctype_copy *dp_ctype_copy_create(const struct dp_ctype *t)
{
	const struct dp_member *m;
	const size_t n = dp_ctype_members(t, &m);
	struct dp_ctype_copy *copy = t->in ? dp_arena_alloc(t->in->arena, sizeof(*copy)) : NULL;
	struct dp_stext *label = copy && n ? dp_arena_alloc(t->in->arena, n * sizeof(*label)) : NULL;
	if (!copy || (n && !label))
		return NULL;
	*copy = (struct dp_ctype_copy){.name.text = t->text, .base.text = t->base, .label = label};
	for (size_t i = 0; i < n; i++)
		label[i].text = dp_member_label(&m[i]);
	((struct dp_ctype *)t)->owned = copy;
	return copy;
}

/* ---- symbols ------------------------------------------------------------------------------------------------------------ */

const char *dp_debug_ctx_symbol_at(struct dp_debug_ctx *w, uint64_t addr)
{
	struct dp_function f;
	if (dp_image_function_at(w->image, dp_addr_of(addr), &f) && *f.name)
		return dp_function_readable(&f);
	return dp_debug_ctx_object_at(w, addr);
}

bool dp_debug_ctx_symbol(struct dp_debug_ctx *w, const char *symbol, const char *object, uint64_t *ret)
{
	const struct dp_symbol_name name = dp_symbol_name_parse(symbol);
	for (size_t i = 0; i < dp_image_nmodules(w->image); i++) {
		struct dp_module *m = dp_image_module(w->image, i);
		if (!m->elf || (object && *object && !dp_path_ends(dp_module_path(m), object)))
			continue;
		for (int which = 0; which < 2; which++) {
			const struct dp_symbols *symbols = which ? dp_module_debug_symbols(m) : dp_module_own_symbols(m);
			const struct dp_symbol_names *names = which ? dp_module_debug_names(m) : dp_module_own_names(m);
			for (uint32_t k = symbols && names ? dp_symbol_names_first(names, &name) : 0; k; k = names->next[k - 1]) {
				const struct dp_symbol *s = &symbols->symbol[k - 1];
				if (!dp_symbol_matches(s, &name) || s->type == STT_TLS || !s->value)
					continue;
				*ret = dp_module_addr(m, s->value).v;
				return true;
			}
		}
	}
	return false;
}

/* ---- data symbols --------------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	const struct dp_symbol *x = *(const struct dp_symbol *const *)a, *y = *(const struct dp_symbol *const *)b;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (x->bind == STB_LOCAL) - (y->bind == STB_LOCAL);
}

static void learn_objects(struct dp_debug_ctx_module *x)
{
	const struct dp_symbols *all[2] = {dp_module_own_symbols(x->module), NULL};
	size_t n = 0;
	x->objects_known = true;
	if (!all[0] || !all[0]->has_symtab)
		all[1] = dp_module_debug_symbols(x->module);
	for (size_t k = 0; k < 2; k++)
		n += all[k] ? all[k]->n : 0;
	x->object = calloc(n ? n : 1, sizeof(*x->object));
	for (size_t k = 0; k < 2 && x->object; k++)
		for (size_t i = 0; all[k] && i < all[k]->n; i++)
			if (all[k]->symbol[i].type == STT_OBJECT && all[k]->symbol[i].size && *all[k]->symbol[i].name)
				x->object[x->nobjects++] = &all[k]->symbol[i];
	if (x->nobjects)
		qsort(x->object, x->nobjects, sizeof(*x->object), by_value);
}

struct dp_debug_ctx_module *dp_debug_ctx_objects_at(struct dp_debug_ctx *w, uint64_t addr)
{
	struct dp_debug_ctx_module *x = dp_debug_ctx_module_at(w, addr);
	if (x && x->module->elf && !x->objects_known)
		learn_objects(x);
	return x;
}

const char *dp_debug_ctx_object_at(struct dp_debug_ctx *w, uint64_t addr)
{
	const struct dp_debug_ctx_module *x = dp_debug_ctx_objects_at(w, addr);
	if (!x || !x->module->elf)
		return NULL;
	const uint64_t vaddr = dp_module_vaddr(x->module, dp_addr_of(addr));
	size_t lo = 0, hi = x->nobjects;
	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;
		if (x->object[mid]->value <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || vaddr - x->object[lo - 1]->value >= x->object[lo - 1]->size)
		return NULL;
	const struct dp_symbol *s = x->object[lo - 1];
	while (lo > 1 && x->object[lo - 2]->value == s->value)
		s = x->object[--lo - 1];
	const struct dp_function f = {.name = s->name, .module = x->module};
	const char *name = dp_function_readable(&f);
	if (vaddr == s->value)
		return name;
	return dp_arena_printf(&w->arena, "%s+%llu", name, (unsigned long long)(vaddr - s->value));
}
