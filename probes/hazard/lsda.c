/* SPDX-License-Identifier: MIT */
/*
 * Landing pads: where a function continues when an exception passes through it. An FDE may name an LSDA (language specific data
 * area). It has the base of the pads (default: the function's start), the address of a type table, then the call sites: start,
 * length, pad, action; a pad of 0 means none. gcc, clang, rustc and gnat all use this form.
 */
#include "probes/elf/eh_frame.h"
#include "probes/hazard/hazard.h"
#include "probes/image/module.h"

#include <dwarf.h>
#include <stdlib.h>

struct search {
	struct dp_module *m;
	struct dp_pads *pads;
	size_t capacity;
	bool bad;
};

static bool add(struct search *s, uint64_t vaddr)
{
	struct dp_pads *pads = s->pads;
	if (pads->n == s->capacity) {
		size_t capacity = s->capacity ? 2 * s->capacity : 256;
		uint64_t *grown = realloc(pads->pad, capacity * sizeof(*grown));
		if (!grown)
			return false;
		pads->pad = grown;
		s->capacity = capacity;
	}
	pads->pad[pads->n++] = vaddr;
	return true;
}

static bool call_sites(struct search *s, struct dp_reader r, uint64_t base, uint8_t encoding)
{
	while (r.p < r.end) {
		dp_read_pointer(&r, encoding); /* start */
		dp_read_pointer(&r, encoding); /* length */
		uint64_t pad = dp_read_pointer(&r, encoding);
		dp_read_uleb(&r); /* action */
		if (r.bad || (pad && (!dp_elf_executable(s->m->elf, base + pad) || !add(s, base + pad))))
			return false;
	}
	return true;
}

static bool read_lsda(struct search *s, const struct dp_fde *fde)
{
	struct dp_span at;
	if (!dp_elf_at(s->m->elf, fde->lsda, &at))
		return false;
	struct dp_reader r = {at.bytes, at.bytes + at.size, at.vaddr, false};
	uint64_t base = fde->start;
	uint8_t encoding = (uint8_t)dp_read_fixed(&r, 1);
	if (encoding != DW_EH_PE_omit)
		base = dp_read_pointer(&r, encoding);
	encoding = (uint8_t)dp_read_fixed(&r, 1);
	if (encoding != DW_EH_PE_omit)
		dp_read_uleb(&r); /* end of the types */
	encoding = (uint8_t)dp_read_fixed(&r, 1);
	uint64_t n = dp_read_uleb(&r);
	if (r.bad || encoding == DW_EH_PE_omit || (encoding & 0x70) || n > (uint64_t)(r.end - r.p))
		return false;
	r.end = r.p + n;
	return call_sites(s, r, base, encoding);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void sort(struct dp_pads *pads)
{
	size_t n = 0;
	if (pads->n)
		qsort(pads->pad, pads->n, sizeof(*pads->pad), compare);
	for (size_t i = 0; i < pads->n; i++)
		if (!n || pads->pad[n - 1] != pads->pad[i])
			pads->pad[n++] = pads->pad[i];
	pads->n = n;
}

/* From the file's addresses to the target's. False: out of memory. */
static bool move(struct dp_module *m)
{
	const struct dp_pads *all = &m->parsed->pads;
	if (m->pads)
		return true;
	m->pads = malloc((all->n + 1) * sizeof(*m->pads));
	for (size_t i = 0; m->pads && i < all->n; i++)
		m->pads[i] = dp_module_addr(m, all->pad[i]).v;
	return m->pads;
}

/*
 * Go's runtime can interrupt a goroutine at any instruction and resume it there later. Meanwhile the pc is on the goroutine's
 * stack, which belongs to no thread. So in a Go module any instruction may be a landing pad: returns false.
 */
bool dp_module_landing_pads(struct dp_module *m, const uint64_t **pads, size_t *n)
{
	struct dp_pads *all = &m->parsed->pads;
	struct search s = {.m = m, .pads = all};
	if (!all->loaded && m->elf) {
		const struct dp_fdes *fdes = dp_module_fdes(m);
		s.bad = fdes->damaged;
		for (size_t i = 0; i < fdes->n && !s.bad; i++)
			s.bad = fdes->fde[i].lsda && !read_lsda(&s, &fdes->fde[i]);
		sort(all);
		all->known = !s.bad && !dp_module_small_stacks(m);
	}
	all->loaded = true;
	if (!all->known || !move(m))
		return false;
	*pads = m->pads;
	*n = all->n;
	return true;
}
