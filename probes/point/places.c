/* SPDX-License-Identifier: MIT */
#include "probes/point/places.h"

#include "probes/image/module.h"

#include <stdlib.h>

static bool grow(struct dp_places *l)
{
	const size_t capacity = l->capacity ? 2 * l->capacity : 16;
	struct dp_selected *grown = realloc(l->found.item, capacity * sizeof(*grown));
	l->failed |= !grown;
	l->found.item = grown ? grown : l->found.item;
	l->capacity = grown ? capacity : l->capacity;
	return grown;
}

struct dp_selected *dp_places_add(struct dp_places *l, struct dp_module *m, uint64_t vaddr, bool inside, char *label)
{
	const dp_addr addr = dp_module_addr(m, vaddr);
	struct dp_selected one = {.inside = inside, .label = label};
	if (!dp_elf_executable(m->elf, vaddr) || (l->found.n == l->capacity && !grow(l))) {
		free(label);
		return NULL;
	}
	if (!dp_module_function_at(m, addr, &one.function))
		one.function = (struct dp_function){.start = addr, .name = "", .module = m};
	one.offset = addr.v - one.function.start.v;
	one.inside |= one.offset != 0;
	l->found.item[l->found.n] = one;
	return &l->found.item[l->found.n++];
}

static int compare(const void *a, const void *b)
{
	const struct dp_selected *x = a, *y = b;
	const uint64_t p = x->function.start.v + x->offset, q = y->function.start.v + y->offset;
	return p != q ? (p < q ? -1 : 1) : x->inside - y->inside;
}

static bool same(const struct dp_selected *x, const struct dp_selected *y)
{
	return x->function.start.v + x->offset == y->function.start.v + y->offset && x->marker == y->marker;
}

void dp_places_sort(struct dp_places *l)
{
	size_t n = 0;
	if (l->found.n)
		qsort(l->found.item, l->found.n, sizeof(*l->found.item), compare);
	for (size_t i = 0; i < l->found.n; i++)
		if (n && same(&l->found.item[n - 1], &l->found.item[i]))
			dp_selected_fini(&l->found.item[i]);
		else
			l->found.item[n++] = l->found.item[i];
	l->found.n = n;
}

void dp_places_fini(struct dp_places *l)
{
	dp_selection_fini(&l->found);
	*l = (struct dp_places){0};
}

void dp_selected_fini(struct dp_selected *one)
{
	free(one->label);
	free(one->inlined);
}

void dp_selection_fini(struct dp_selection *selection)
{
	for (size_t i = 0; i < selection->n; i++)
		dp_selected_fini(&selection->item[i]);
	free(selection->item);
	*selection = (struct dp_selection){0};
}
