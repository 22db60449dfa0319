/* SPDX-License-Identifier: MIT */
/*
 * Reads .note.stapsdt, version 3. Each marker's note has three addresses (the nop, .stapsdt.base at link time, the semaphore) and
 * three strings (provider, name, operands). A prelinked file has moved; the section .stapsdt.base tells how far.
 */
#include "probes/point/usdt/usdt.h"

#include "base/cleanup.h"
#include "probes/image/image_internal.h"
#include "probes/point/places.h"

#include <fnmatch.h>
#include <string.h>

#define NT_STAPSDT 3u

struct dp_markers {
	struct dp_usdt *item;
	size_t n, capacity;
};

static const char *string(const uint8_t **p, const uint8_t *end)
{
	const uint8_t *nul = *p < end ? memchr(*p, 0, (size_t)(end - *p)) : NULL;
	const char *text = (const char *)*p;
	if (nul)
		*p = nul + 1;
	return nul ? text : NULL;
}

static bool append(struct dp_markers *l, const struct dp_usdt *one)
{
	if (l->n == l->capacity) {
		const size_t capacity = l->capacity ? 2 * l->capacity : 32;
		struct dp_usdt *grown = realloc(l->item, capacity * sizeof(*grown));
		if (!grown)
			return false;
		l->item = grown;
		l->capacity = capacity;
	}
	l->item[l->n++] = *one;
	return true;
}

static bool add_note(struct dp_markers *l, const uint8_t *desc, size_t n, uint64_t base)
{
	uint64_t word[3];
	struct dp_usdt one = {0};
	const uint8_t *p = desc + sizeof(word), *end = desc + n;
	if (n < sizeof(word))
		return true;
	memcpy(word, desc, sizeof(word));
	const uint64_t moved = base && word[1] ? base - word[1] : 0;
	one.pc = word[0] + moved;
	one.semaphore = word[2] ? word[2] + moved : 0;
	one.provider = string(&p, end);
	one.name = one.provider ? string(&p, end) : NULL;
	one.args = one.name ? string(&p, end) : NULL;
	return !one.args || !*one.provider || !*one.name || append(l, &one);
}

static bool read_notes(struct dp_markers *l, const struct dp_span *s, uint64_t base)
{
	Elf64_Nhdr nhdr;
	for (size_t at = 0; s->size - at >= sizeof(nhdr);) {
		memcpy(&nhdr, s->bytes + at, sizeof(nhdr));
		at += sizeof(nhdr);
		const size_t name = ((size_t)nhdr.n_namesz + 3) & ~(size_t)3, desc = ((size_t)nhdr.n_descsz + 3) & ~(size_t)3;
		if (name > s->size - at || nhdr.n_descsz > s->size - at - name)
			return true;
		if (nhdr.n_type == NT_STAPSDT && nhdr.n_namesz == 8 && !memcmp(s->bytes + at, "stapsdt", 8) &&
		    !add_note(l, s->bytes + at + name, nhdr.n_descsz, base))
			return false;
		if (desc > s->size - at - name)
			return true;
		at += name + desc;
	}
	return true;
}

static struct dp_markers *markers_destroy(struct dp_markers *l)
{
	if (l)
		free(l->item);
	free(l);
	return NULL;
}

struct dp_error *dp_module_markers(struct dp_module *m, const struct dp_usdt **ret, size_t *n)
{
	GElf_Shdr shdr;
	struct dp_span notes, base;
	if (!m->elf)
		return dp_module_failure(m);
	if (!m->parsed->markers) {
		struct dp_markers *l = calloc(1, sizeof(*l));
		const bool based = dp_elf_section(m->elf, ".stapsdt.base", 0, &shdr, &base);
		if (l && dp_elf_section(m->elf, ".note.stapsdt", 0, &shdr, &notes) &&
		    !read_notes(l, &notes, based ? base.vaddr : 0))
			l = markers_destroy(l);
		if (!l)
			return dp_error_nomem();
		m->parsed->markers = l;
		m->parsed->markers_destroy = markers_destroy;
	}
	*ret = m->parsed->markers->item;
	*n = m->parsed->markers->n;
	return NULL;
}

const struct dp_usdt *dp_module_marker_at(struct dp_module *m, dp_addr addr)
{
	const struct dp_usdt *marker;
	size_t n;
	struct dp_error *err = dp_module_markers(m, &marker, &n);
	if (err)
		return (void)dp_error_destroy(err), NULL;
	for (size_t i = 0; i < n; i++)
		if (marker[i].pc == dp_module_vaddr(m, addr))
			return &marker[i];
	return NULL;
}

static bool find_in(const struct dp_symbols *symbols, const struct dp_symbol_names *names, const struct dp_symbol_name *name,
                    uint64_t *ret)
{
	for (uint32_t i = dp_symbol_names_first(names, name); i; i = names->next[i - 1])
		if (dp_symbol_matches(&symbols->symbol[i - 1], name)) {
			*ret = symbols->symbol[i - 1].value;
			return true;
		}
	return false;
}

static bool find_symbol(const char *text, size_t len, uint64_t *addr, void *data)
{
	struct dp_module *m = data;
	dp_auto_free char *copy = strndup(text, len);
	uint64_t vaddr = 0;
	if (!copy)
		return false;
	const struct dp_symbol_name name = dp_symbol_name_parse(copy);
	if (!find_in(dp_module_own_symbols(m), dp_module_own_names(m), &name, &vaddr) &&
	    !find_in(dp_module_debug_symbols(m), dp_module_debug_names(m), &name, &vaddr))
		return false;
	*addr = dp_module_addr(m, vaddr).v;
	return true;
}

size_t dp_usdt_args(struct dp_module *m, const struct dp_usdt *marker, struct dp_usdt_arg ret[DP_USDT_MAX_ARGS])
{
	return dp_usdt_args_parse(marker->args, find_symbol, m, ret);
}

/* A probe's name in the source has two underscores for a -; sys/sdt.h keeps them. Matches both spellings. */
static bool is_name(const char *glob, const char *name)
{
	char dashed[256];
	size_t n = 0;
	if (!strcmp(glob, name) || !fnmatch(glob, name, 0))
		return true;
	for (; *name && n < sizeof(dashed) - 1; name++) {
		const bool two = name[0] == '_' && name[1] == '_';
		dashed[n++] = two ? '-' : *name;
		name += two;
	}
	dashed[n] = 0;
	return !fnmatch(glob, dashed, 0);
}

static struct dp_error *choose(struct dp_module *m, const struct dp_spec *spec, struct dp_selection *ret, size_t *all)
{
	const struct dp_usdt *marker;
	size_t n;
	DP_TRY(dp_module_markers(m, &marker, &n));
	*all += n;
	for (size_t i = 0; i < n; i++) {
		if (!is_name(spec->provider, marker[i].provider) || !is_name(spec->marker, marker[i].name))
			continue;
		struct dp_selected *one = dp_selection_add(ret, m, marker[i].pc, true, NULL);
		if (!one)
			continue;
		one->marker = &marker[i];
		if (asprintf(&one->label, "%s:%s", marker[i].provider, marker[i].name) < 0)
			one->label = NULL;
	}
	return NULL;
}

struct dp_error *dp_usdt_select(struct dp_image *image, const struct dp_spec *spec, struct dp_selection *ret)
{
	size_t all = 0;
	for (size_t i = 0; i < image->nmodules; i++) {
		struct dp_module *m = image->module[i];
		if (m->elf && !m->vdso && dp_module_matches(m, spec->module))
			DP_TRY(choose(m, spec, ret, &all));
	}
	dp_selection_sort(ret);
	if (ret->failed)
		return dp_error_nomem();
	if (ret->n)
		return NULL;
	return dp_error(DP_TAG_NO_SYMBOL, "'%s': no marker of that name among the %zu of %s; `dynprobe list --usdt` lists them",
	                spec->text, all, spec->module ? spec->module : "the target");
}
