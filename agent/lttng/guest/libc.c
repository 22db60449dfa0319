/* SPDX-License-Identifier: MIT */
/*
 * Finds the C library's own functions. A program may export functions of the same names (an allocator, a sandbox that guards
 * descriptors, wrappers of any kind), and ld.so binds every library's calls to those, the guest's too, for which they are not
 * made. So the guest's imports are looked up here as if the program exported none of them.
 *
 * This runs first, before our own library's imports are rebound: nothing here is called by name.
 */
#include "agent/lttng/guest/redirect.h"

#include <elf.h>
#include <link.h>

#define LIBRARIES 8u

static struct library {
	struct dp_object object;
	uint64_t end;
} libraries[LIBRARIES];
static unsigned nlibraries;

static bool same(const char *a, const char *b)
{
	for (; *a && *a == *b; a++)
		b++;
	return *a == *b;
}

/* ---- tables of a library ----------------------------------------------------------------------------------------- */

static const void *table_of(const struct library *l, int64_t tag)
{
	return (const void *)dp_object_table(&l->object, tag);
}

static const char *name_at(const struct library *l, uint64_t offset)
{
	return (const char *)table_of(l, DT_STRTAB) + offset;
}

/* ---- versions ---------------------------------------------------------------------------------------------------- */

#define VERSION_HIDDEN 0x8000u /* not the default version */
#define VERSION_MASK   0x7fffu

/* The name of a version that a library defines, or NULL. */
static const char *defined_version(const struct library *l, unsigned index)
{
	const ElfW(Verdef) *d = table_of(l, DT_VERDEF);
	for (; d; d = d->vd_next ? (const void *)((const char *)d + d->vd_next) : NULL)
		if (d->vd_ndx == index)
			return name_at(l, ((const ElfW(Verdaux) *)(const void *)((const char *)d + d->vd_aux))->vda_name);
	return NULL;
}

static const char *needed_in(const struct library *l, const ElfW(Verneed) * need, unsigned index)
{
	const ElfW(Vernaux) *a = (const void *)((const char *)need + need->vn_aux);
	for (;; a = (const void *)((const char *)a + a->vna_next)) {
		if (a->vna_other == index)
			return name_at(l, a->vna_name);
		if (!a->vna_next)
			return NULL;
	}
}

/* The name of the version that an object needs for symbol number `symbol`; NULL: any. */
static const char *needed_version(const struct library *l, uint32_t symbol)
{
	const ElfW(Half) *versions = table_of(l, DT_VERSYM);
	const ElfW(Verneed) *need = table_of(l, DT_VERNEED);
	const char *name = NULL;
	for (; versions && need && !name; need = need->vn_next ? (const void *)((const char *)need + need->vn_next) : NULL)
		name = needed_in(l, need, versions[symbol] & VERSION_MASK);
	return name;
}

/* ---- symbols ------------------------------------------------------------------------------------------------------ */

struct wanted {
	const char *name, *version;
	uint32_t hash;
};

static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;
	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static bool is_wanted(const struct library *l, const ElfW(Sym) * s, uint32_t number, const struct wanted *w)
{
	const ElfW(Half) *versions = table_of(l, DT_VERSYM);
	if (s->st_shndx == SHN_UNDEF || !same(name_at(l, s->st_name), w->name))
		return false;
	if (!versions || !w->version)
		return !versions || !(versions[number] & VERSION_HIDDEN);
	const char *version = defined_version(l, versions[number] & VERSION_MASK);
	return version && same(version, w->version);
}

/* Uses the hash table: buckets of symbols; the last of a bucket has the lowest bit of its hash set. */
static const ElfW(Sym) * find(const struct library *l, const struct wanted *w)
{
	const uint32_t *h = table_of(l, DT_GNU_HASH);
	const ElfW(Sym) *symbols = table_of(l, DT_SYMTAB);
	if (!h || !symbols || !h[0])
		return NULL;
	const uint32_t *buckets = h + 4 + h[2] * (sizeof(ElfW(Addr)) / sizeof(*h)), *chain = buckets + h[0];
	for (uint32_t i = buckets[w->hash % h[0]]; i >= h[1]; i++) {
		const uint32_t hash = chain[i - h[1]];
		if ((hash | 1) == (w->hash | 1) && is_wanted(l, &symbols[i], i, w))
			return &symbols[i];
		if (hash & 1)
			break;
	}
	return NULL;
}

/* 0: no such function. */
static uint64_t function(const struct wanted *w)
{
	for (unsigned i = 0; i < nlibraries; i++) {
		const ElfW(Sym) *s = find(&libraries[i], w);
		const uint64_t at = s ? libraries[i].object.base + s->st_value : 0;
		if (s && ELF64_ST_TYPE(s->st_info) == STT_FUNC)
			return at;
		if (s && ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC)
			return ((uint64_t(*)(void))at)();
	}
	return 0;
}

static bool is_the_librarys(uint64_t value)
{
	for (unsigned i = 0; i < nlibraries; i++)
		if (value - libraries[i].object.base < libraries[i].end - libraries[i].object.base)
			return true;
	return false;
}

uint64_t dp_libc_instead(const struct dp_object *of, uint32_t symbol, uint64_t value)
{
	const struct library l = {.object = *of};
	const ElfW(Sym) *s = (const ElfW(Sym) *)table_of(&l, DT_SYMTAB) + symbol;
	if (s->st_shndx != SHN_UNDEF || !value || is_the_librarys(value))
		return value;
	struct wanted w = {.name = name_at(&l, s->st_name), .version = needed_version(&l, symbol)};
	w.hash = gnu_hash(w.name);
	const uint64_t own = function(&w);
	return own ? own : value;
}

/* ---- which libraries ----------------------------------------------------------------------------------------------- */

static bool is_of_libc(const struct library *l)
{
	static const char *const names[] = {"libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2", "librt.so.1"};
	const uint64_t name = dp_object_entry(&l->object, DT_SONAME);
	for (unsigned i = 0; name && i < sizeof(names) / sizeof(*names); i++)
		if (same(name_at(l, name), names[i]))
			return true;
	return false;
}

/* Their first segment contains the file's headers. */
static uint64_t end_of(uint64_t base)
{
	const ElfW(Ehdr) *header = (const void *)base;
	const ElfW(Phdr) *p = (const void *)(base + header->e_phoff);
	uint64_t end = 0;
	for (unsigned i = 0; i < header->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && base + p[i].p_vaddr + p[i].p_memsz > end)
			end = base + p[i].p_vaddr + p[i].p_memsz;
	return end;
}

void dp_libc_find(void)
{
	nlibraries = 0;
	for (const struct link_map *m = _r_debug.r_map; m && nlibraries < LIBRARIES; m = m->l_next) {
		struct library l = {.object = {.base = m->l_addr, .dynamic = (uint64_t)(uintptr_t)m->l_ld}};
		if (!l.object.base || !l.object.dynamic || !table_of(&l, DT_STRTAB) || !is_of_libc(&l))
			continue;
		l.end = end_of(l.object.base);
		libraries[nlibraries++] = l;
	}
}

extern const ElfW(Dyn) own_dynamic[] __asm__("_DYNAMIC") __attribute__((visibility("hidden")));
extern const ElfW(Ehdr) own_header __asm__("__ehdr_start") __attribute__((visibility("hidden")));

void dp_libc_object(struct dp_object *ret)
{
	*ret = (struct dp_object){.base = (uint64_t)(uintptr_t)&own_header, .dynamic = (uint64_t)(uintptr_t)own_dynamic};
}
