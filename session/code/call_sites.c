/* SPDX-License-Identifier: MIT */
#include "session/code/call_sites.h"

#include "session/code/syscall_bytes.h"
#include "probes/image/module.h"
#include "probes/point/syscalls.h"

#include <stdlib.h>

enum { RT_SIGRETURN = 15 }; /* never probed: debuggers and unwinders recognise its code by its bytes, and it never returns */

void dp_call_sites_fini(struct dp_call_sites *sites)
{
	free(sites->item);
	*sites = (struct dp_call_sites){0};
}

static struct dp_error *add(struct dp_call_sites *sites, const struct dp_syscall_site *one)
{
	if (sites->n == sites->capacity) {
		const size_t capacity = sites->capacity ? 2 * sites->capacity : 256;
		struct dp_syscall_site *grown = realloc(sites->item, capacity * sizeof(*grown));
		if (!grown)
			return dp_error_nomem();
		sites->item = grown;
		sites->capacity = capacity;
	}
	sites->item[sites->n++] = *one;
	return NULL;
}

struct search {
	const struct dp_trace_spec *trace;
	struct dp_call_sites *sites;
	struct dp_image *image;
	struct dp_code_view *view;
};

static struct dp_error *add_place(struct dp_module *m, uint64_t addr, void *data)
{
	const struct search *s = data;
	struct dp_site site = {.addr = dp_addr_of(addr), .module = m};
	const struct dp_text *text;
	struct dp_syscall_place place;
	DP_TRY(dp_trace_step(s->trace, "looking for system calls", s->sites->n, 0));
	if (!dp_image_function_at(s->image, site.addr, &site.function)) {
		s->sites->unknown++;
		return NULL;
	}
	DP_TRY(dp_code_view_get(s->view, &site, &text));
	DP_TRY(dp_syscall_place(text, addr, &place));
	s->sites->unknown += place.outside;
	if (!place.entry || place.nr == RT_SIGRETURN)
		return NULL;
	const struct dp_syscall_site one = {
	        .function = site.function,
	        .entry = place.entry,
	        .exit = place.exit,
	        .nr = place.nr,
	        .kept = dp_text_protected(text, place.entry, 1),
	        .no_exit = dp_text_protected(text, place.exit, 1),
	        .joined = place.joined,
	};
	return add(s->sites, &one);
}

static int by_number(const void *a, const void *b)
{
	const struct dp_syscall_site *x = a, *y = b;
	const uint32_t p = (uint32_t)x->nr, q = (uint32_t)y->nr; /* DP_CALL_ANY is the largest */
	if (p != q)
		return p < q ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

struct dp_error *dp_call_sites_find(const struct dp_trace_spec *trace, struct dp_image *image, struct dp_code_view *view,
                                    const struct dp_spec *spec, struct dp_call_sites *ret)
{
	struct dp_call_sites sites = {0};
	struct search search = {trace, &sites, image, view};
	struct dp_error *err = NULL;
	for (size_t i = 0; !err && i < dp_image_nmodules(image); i++) {
		struct dp_module *m = dp_image_module(image, i);
		/* Not the vdso: it enters the kernel only to read clocks. */
		if (dp_module_path(m)[0] == '/' && dp_module_matches(m, spec->module))
			err = dp_syscall_bytes(m, add_place, &search);
	}
	if (err) {
		dp_call_sites_fini(&sites);
		return err;
	}
	if (sites.n)
		qsort(sites.item, sites.n, sizeof(*sites.item), by_number);
	*ret = sites;
	return NULL;
}
