/* SPDX-License-Identifier: MIT */
#include "probes/point/places.h"

#include "probes/image/module.h"

#include <stdlib.h>

struct dp_selected *dp_selection_append(struct dp_selection *l, struct dp_selected one)
{
	const size_t capacity = l->capacity ? 2 * l->capacity : 16;
	struct dp_selected *grown = l->n < l->capacity ? l->item : realloc(l->item, capacity * sizeof(*grown));
	if (!grown) {
		l->failed = true;
		dp_selected_fini(&one);
		return NULL;
	}
	l->capacity = l->n < l->capacity ? l->capacity : capacity;
	l->item = grown;
	l->item[l->n] = one;
	return &l->item[l->n++];
}

struct dp_selected *dp_selection_add(struct dp_selection *l, struct dp_module *m, uint64_t vaddr, bool inside, char *label)
{
	const dp_addr addr = dp_module_addr(m, vaddr);
	struct dp_selected one = {.inside = inside, .label = label};
	if (!dp_elf_executable(m->elf, vaddr)) {
		free(label);
		return NULL;
	}
	if (!dp_module_function_at(m, addr, &one.function))
		one.function = (struct dp_function){.start = addr, .name = "", .module = m};
	one.offset = addr.v - one.function.start.v;
	one.inside |= one.offset != 0;
	return dp_selection_append(l, one);
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

void dp_selection_sort(struct dp_selection *l)
{
	size_t n = 0;
	if (l->n)
		qsort(l->item, l->n, sizeof(*l->item), compare);
	for (size_t i = 0; i < l->n; i++)
		if (n && same(&l->item[n - 1], &l->item[i]))
			dp_selected_fini(&l->item[i]);
		else
			l->item[n++] = l->item[i];
	l->n = n;
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
