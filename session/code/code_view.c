/* SPDX-License-Identifier: MIT */
#include "session/code/code_view.h"

#include "probes/image/module.h"

#include <stdlib.h>

#define KEEP_MAX 64u

struct module_text {
	struct dp_module *module;
	struct dp_segment *segment;
	struct dp_protected *keep;
	struct dp_text text;
};

struct dp_code_view {
	struct dp_image *image;
	struct dp_analysis *known;
	struct module_text *module;
	size_t n;
};

static void fini(struct module_text *m)
{
	free(m->segment);
	free(m->keep);
}

struct dp_error *dp_code_view_create(struct dp_image *image, struct dp_code_view **ret)
{
	struct dp_code_view *view = calloc(1, sizeof(*view));
	if (!view)
		return dp_error_nomem();
	view->image = image;
	struct dp_error *err = dp_analysis_create(&view->known);
	if (err) {
		free(view);
		return err;
	}
	*ret = view;
	return NULL;
}

struct dp_code_view *dp_code_view_destroy(struct dp_code_view *view)
{
	for (size_t i = 0; view && i < view->n; i++)
		fini(&view->module[i]);
	if (view) {
		dp_analysis_destroy(view->known);
		free(view->module);
	}
	free(view);
	return NULL;
}

/* Ranges that must stay unchanged. To find them means to read all of the code, so that is done once for each file. */
struct protected
{
	size_t n;
	struct dp_protected range[]; /* addresses of the file */
};

/* Stores the ranges that, by the module's file, must stay unchanged, and returns their number. `ret` NULL: only counts. */
static size_t named_kept(struct dp_module *m, struct dp_protected *ret)
{
	size_t n = 0, i;
	dp_addr at;
	uint64_t size;
	for (i = 0; dp_module_rseq(m, i, &at, &size); i++, n++)
		if (ret)
			ret[n] = (struct dp_protected){at.v, size, "the kernel restarts this code elsewhere (rseq)"};
	for (i = 0; dp_module_cancellation(m, i, &at, &size); i++, n++)
		if (ret)
			ret[n] = (struct dp_protected){at.v, size, "thread cancellation compares the address"};
	return n;
}

/* NULL: out of memory. */
static const struct protected *find_protected(struct dp_module *m, const struct dp_text *text)
{
	const size_t nnamed = named_kept(m, NULL);
	struct protected *all = m->parsed->protected;
	if (all || !(all = calloc(1, sizeof(*all) + (KEEP_MAX + nnamed) * sizeof(*all->range))))
		return all;
	all->n = dp_text_find_protected(text, all->range, KEEP_MAX);
	all->n += named_kept(m, all->range + all->n);
	for (size_t i = 0; i < all->n; i++)
		all->range[i].start = dp_module_vaddr(m, dp_addr_of(all->range[i].start));
	return m->parsed->protected = all;
}

static struct dp_error *load_protected(struct dp_module *m, struct module_text *ret)
{
	const struct protected *all = find_protected(m, &ret->text);
	ret->keep = all ? calloc(all->n + 1, sizeof(*ret->keep)) : NULL;
	if (!ret->keep)
		return dp_error_nomem();
	for (size_t i = 0; i < all->n; i++) {
		ret->keep[i] = all->range[i];
		ret->keep[i].start = dp_module_addr(m, all->range[i].start).v;
	}
	ret->text.keep = ret->keep;
	ret->text.nkeep = all->n;
	return NULL;
}

/* Reads all unwind tables of the module: only if a window needs it. */
static void read_pads(struct dp_text *text)
{
	text->pads_known = dp_module_landing_pads(text->source, &text->pads, &text->npads);
}

static struct dp_error *load(struct dp_module *m, struct module_text *ret)
{
	const size_t n = dp_module_nsegments(m);
	struct dp_segment *segment = calloc(n + 1, sizeof(*segment));
	if (!segment)
		return dp_error_nomem();
	size_t used = 0;
	for (size_t i = 0; i < n; i++) {
		dp_addr addr;
		struct dp_segment *s = &segment[used];
		if (dp_module_segment(m, i, &addr, &s->bytes, &s->n, &s->exec)) {
			s->addr = addr.v;
			used++;
		}
	}
	*ret = (struct module_text){.module = m, .segment = segment};
	ret->text = (struct dp_text){
	        .segment = segment, .nsegments = used, .bias = dp_module_bias(m), .read_pads = read_pads, .source = m};
	struct dp_error *err = load_protected(m, ret);
	if (err)
		fini(ret);
	return err;
}

static struct module_text *find(struct dp_code_view *view, const struct dp_module *m)
{
	for (size_t i = 0; i < view->n; i++)
		if (view->module[i].module == m)
			return &view->module[i];
	return NULL;
}

struct dp_error *dp_code_view_get(struct dp_code_view *view, const struct dp_site *site, const struct dp_text **ret)
{
	if (!site->module)
		return dp_error(DP_TAG_NOT_CODE, "0x%llx is in no module", (unsigned long long)site->addr.v);
	struct module_text *found = find(view, site->module);
	if (!found) {
		struct module_text *grown = realloc(view->module, (view->n + 1) * sizeof(*grown));
		if (!grown)
			return dp_error_nomem();
		view->module = grown;
		found = &grown[view->n];
		DP_TRY(load(site->module, found));
		found->text.known = view->known;
		view->n++;
	}
	found->text.function = site->function.start.v;
	found->text.size = site->function.size;
	*ret = &found->text;
	return NULL;
}

char *dp_cache_dir(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *dir = NULL;
	int n = -1;
	if (xdg && *xdg == '/')
		n = asprintf(&dir, "%s/dynprobe", xdg);
	else if (home && *home)
		n = asprintf(&dir, "%s/.cache/dynprobe", home);
	return n < 0 ? NULL : dir;
}
