/* SPDX-License-Identifier: MIT */
/*
 * Finds the modules that the program cannot unload: its executable, and what that needs from the start: the closure of DT_NEEDED,
 * read from the loader's list (r_debug of the System V ABI). Of two modules with one name, the first in the list was loaded for
 * it: modules from dlopen() come later. Any other module may be unloaded, and its place reused, between our last check and the
 * move, if another thread calls dlclose and dlopen at that moment.
 *
 * Read once, because modules in that closure stay.
 */
#include "base/path.h"
#include "injector/patch/replace/replace.h"

#include "base/cleanup.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MODULES_MOST 512
#define DYNAMIC_MOST 256
#define NEEDED_MOST  64
#define NAME_MOST    256

struct module {
	uint64_t base, names, dynamic; /* l_addr, DT_STRTAB, l_ld */
	uint64_t needed[NEEDED_MOST];  /* offsets in the names */
	size_t nneeded;
	char soname[NAME_MOST], name[NAME_MOST];
	bool stays, looked_at;
};
struct dp_stays {
	const struct dp_replace *s;
	uint64_t phdr; /* the program's headers */
	size_t n;
	struct module module[MODULES_MOST];
};

static bool get(const struct dp_replace *s, uint64_t addr, void *buf, size_t n)
{
	return addr && dp_mem_read(&s->t->process, dp_addr_of(addr), buf, n) == n;
}

static void get_name(const struct dp_replace *s, uint64_t addr, char name[NAME_MOST])
{
	char text[4096];
	const size_t n = addr ? dp_mem_read(&s->t->process, dp_addr_of(addr), text, sizeof(text) - 1) : 0;
	text[n] = 0;
	snprintf(name, NAME_MOST, "%.*s", NAME_MOST - 1, dp_path_last(text));
}

static void read_dynamic(const struct dp_replace *s, struct module *m)
{
	uint64_t soname = UINT64_MAX;
	Elf64_Dyn all[DYNAMIC_MOST];
	const size_t n = m->dynamic ? dp_mem_read(&s->t->process, dp_addr_of(m->dynamic), all, sizeof(all)) / sizeof(*all) : 0;
	for (size_t i = 0; i < n && all[i].d_tag != DT_NULL; i++) {
		const Elf64_Dyn *d = &all[i];
		if (d->d_tag == DT_STRTAB)
			m->names = d->d_un.d_ptr < m->base ? d->d_un.d_ptr + m->base : d->d_un.d_ptr; /* glibc has relocated it */
		if (d->d_tag == DT_SONAME)
			soname = d->d_un.d_val;
		if (d->d_tag == DT_NEEDED && m->nneeded < NEEDED_MOST)
			m->needed[m->nneeded++] = d->d_un.d_val;
	}
	if (soname != UINT64_MAX && m->names)
		get_name(s, m->names + soname, m->soname);
}

/* Address of the program's dynamic section, from its program headers as the kernel reports them; 0 if it has none. */
static uint64_t find_dynamic(const struct dp_replace *s, uint64_t *phdr)
{
	char path[64];
	uint64_t word[2], at = 0, n = 0, bias = 0;
	Elf64_Phdr ph[64];
	snprintf(path, sizeof(path), "/proc/%d/auxv", s->t->process.pid);
	dp_auto_fclose FILE *f = fopen(path, "re");
	while (f && fread(word, sizeof(word), 1, f) == 1 && word[0] != AT_NULL) {
		at = word[0] == AT_PHDR ? word[1] : at;
		n = word[0] == AT_PHNUM ? word[1] : n;
	}
	*phdr = at;
	if (n > sizeof(ph) / sizeof(*ph) || !get(s, at, ph, n * sizeof(*ph)))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (ph[i].p_type == PT_PHDR)
			bias = at - ph[i].p_vaddr;
	for (size_t i = 0; i < n; i++)
		if (ph[i].p_type == PT_DYNAMIC)
			return bias + ph[i].p_vaddr;
	return 0;
}

static uint64_t first_module(const struct dp_replace *s, uint64_t dynamic)
{
	struct r_debug debug;
	for (size_t i = 0; dynamic && i < DYNAMIC_MOST; i++) {
		Elf64_Dyn d;
		if (!get(s, dynamic + i * sizeof(d), &d, sizeof(d)) || d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_DEBUG)
			return get(s, d.d_un.d_ptr, &debug, sizeof(debug)) ? (uint64_t)(uintptr_t)debug.r_map : 0;
	}
	return 0;
}

static void read_list(struct dp_stays *l, uint64_t at)
{
	struct link_map map;
	while (l->n < MODULES_MOST && get(l->s, at, &map, sizeof(map))) {
		struct module *m = &l->module[l->n++];
		*m = (struct module){.base = map.l_addr, .dynamic = (uint64_t)(uintptr_t)map.l_ld};
		get_name(l->s, (uint64_t)(uintptr_t)map.l_name, m->name);
		read_dynamic(l->s, m);
		at = (uint64_t)(uintptr_t)map.l_next;
	}
}

static void mark_needed(struct dp_stays *l, struct module *m)
{
	m->looked_at = true;
	for (size_t i = 0; i < m->nneeded; i++) {
		char name[NAME_MOST];
		get_name(l->s, m->names + m->needed[i], name);
		for (size_t k = 0; name[0] && k < l->n; k++)
			if (!strcmp(name, l->module[k].soname) || !strcmp(name, l->module[k].name)) {
				l->module[k].stays = true;
				break;
			}
	}
}

static void mark_all(struct dp_stays *l)
{
	bool more = l->n > 0;
	if (l->n)
		l->module[0].stays = true; /* the program itself */
	while (more) {
		more = false;
		for (size_t i = 0; i < l->n; i++)
			if (l->module[i].stays && !l->module[i].looked_at) {
				mark_needed(l, &l->module[i]);
				more = true;
			}
	}
}

/*
 * Is that address in the module that the text belongs to? A second copy of the same file (dlmopen) is another module with another
 * base: a module's pages follow its base in the order of their file offsets.
 */
static bool is_of(const struct dp_replace *s, uint64_t addr, const struct dp_replace_span *span)
{
	const struct dp_map *a = dp_image_map_at(s->image, dp_addr_of(addr)), *b = span->map;
	if (!a || a->inode != b->inode || a->dev_major != b->dev_major || a->dev_minor != b->dev_minor)
		return false;
	const uint64_t lo = addr < span->start ? addr : span->start, hi = addr < span->start ? span->start : addr;
	for (size_t i = 0; i < dp_image_nmaps(s->image); i++) {
		const struct dp_map *m = dp_image_map(s->image, i);
		if (m->start.v > lo && m->start.v <= hi && !m->offset && m->inode == b->inode && m->dev_major == b->dev_major &&
		    m->dev_minor == b->dev_minor)
			return false; /* the other copy's first page is in between */
	}
	return true;
}

/* NULL: no memory. */
static struct dp_stays *read_modules(const struct dp_replace *s)
{
	struct dp_stays *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->s = s;
	const uint64_t dynamic = find_dynamic(s, &l->phdr);
	read_list(l, first_module(s, dynamic));
	mark_all(l);
	return l;
}

struct dp_stays *dp_stays_destroy(struct dp_stays *stays)
{
	free(stays);
	return NULL;
}

bool dp_replace_stays(struct dp_replace *s, const struct dp_replace_span *span)
{
	if (!s->stays)
		s->stays = read_modules(s);
	const struct dp_stays *l = s->stays;
	if (!l || is_of(s, l->phdr, span))
		return l;
	bool stays = false;
	for (size_t i = 0; i < l->n && !stays; i++)
		stays = l->module[i].stays && is_of(s, l->module[i].dynamic, span);
	return stays;
}

bool dp_replace_alone(const struct dp_replace *s)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d/task", s->t->process.pid);
	return !stat(path, &st) && st.st_nlink == 3;
}
