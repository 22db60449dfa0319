/* SPDX-License-Identifier: MIT */
#include "probes/image/module.h"
#include "base/path.h"

#include "probes/elf/relocations.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_uint_fast64_t last_id; /* source_lines.c makes modules in a thread of its own */

struct dp_module *dp_module_create(const char *path, const char *root, struct dp_parsed *parsed)
{
	bool changed;
	struct dp_module *m = calloc(1, sizeof(*m));
	if (!m || !(m->path = dp_map_clean_path(path, &changed))) {
		free(m);
		dp_parsed_release(parsed);
		return NULL;
	}
	m->id = atomic_fetch_add(&last_id, 1) + 1;
	m->name = m->path + (dp_path_last(m->path) - m->path);
	m->root = root;
	m->parsed = parsed;
	m->elf = parsed->elf;
	return m;
}

void dp_module_disown(struct dp_module *m)
{
	dp_parsed_release(m->parsed);
	m->parsed = dp_parsed_nothing();
	m->elf = NULL;
}

struct dp_module *dp_module_destroy(struct dp_module *m)
{
	if (!m)
		return NULL;
	free(m->pads);
	free(m->debug);
	dp_error_destroy(m->no_debug);
	dp_parsed_release(m->parsed);
	dp_error_destroy(m->failure);
	for (size_t i = 0; i < DP_CALLED_MAX; i++)
		free(m->called[i]);
	free(m->started);
	free(m->path);
	free(m);
	return NULL;
}

struct dp_error *dp_module_failure(const struct dp_module *m)
{
	if (m->failure)
		return dp_error(m->failure->tag, "%s", m->failure->message);
	return dp_error(DP_TAG_BAD_ELF, "the file of '%s' is not available", m->path);
}

const char *dp_module_path(const struct dp_module *m)
{
	return m->path;
}

const char *dp_module_name(const struct dp_module *m)
{
	return m->name;
}

const char *dp_module_shown(const struct dp_module *m)
{
	return m->started ? m->started : m->name;
}

int64_t dp_module_bias(const struct dp_module *m)
{
	return m->bias;
}

const char *dp_module_build_id(struct dp_module *m)
{
	const uint8_t *bytes;
	size_t n;
	struct dp_parsed *p = m->parsed;
	if (p->build_id_loaded || !m->elf)
		return p->build_id;
	p->build_id_loaded = true;
	if (!dp_elf_build_id(m->elf, &bytes, &n) || 2 * n >= sizeof(p->build_id))
		return p->build_id;
	for (size_t i = 0; i < n; i++)
		snprintf(p->build_id + 2 * i, 3, "%02x", bytes[i]);
	return p->build_id;
}

/* Finds the executable segment that contains `addr`, and its bytes. */
static bool text_segment(const struct dp_module *m, dp_addr addr, struct dp_span *ret)
{
	uint64_t vaddr = dp_module_vaddr(m, addr);
	for (size_t i = 0; m->elf && i < m->elf->nphdr; i++)
		if ((m->elf->phdr[i].p_flags & PF_X) && dp_elf_load(m->elf, i, ret) && vaddr >= ret->vaddr &&
		    vaddr - ret->vaddr < ret->size)
			return true;
	return false;
}

bool dp_module_moved(const struct dp_module *m, const struct dp_map *map, dp_addr addr)
{
	struct dp_span s;
	return map->inode != m->inode && text_segment(m, addr, &s);
}

struct dp_error *dp_module_text(struct dp_module *m, dp_addr addr, void *buf, size_t *n)
{
	struct dp_span s;
	if (!m->elf)
		return dp_module_failure(m);
	if (!text_segment(m, addr, &s))
		return dp_error(DP_TAG_NOT_CODE, "0x%llx is not in the executable part of '%s'", (unsigned long long)addr.v,
		                m->path);
	uint64_t vaddr = dp_module_vaddr(m, addr), skip = vaddr - s.vaddr;
	if (*n > s.size - skip)
		*n = s.size - skip;
	memcpy(buf, s.bytes + skip, *n);
	if (m->parsed->text_relocations < 0)
		m->parsed->text_relocations = dp_elf_text_relocations(m->elf);
	if (m->parsed->text_relocations)
		dp_elf_relocate(m->elf, m->bias, vaddr, buf, *n);
	return NULL;
}

bool dp_module_text_bounds(struct dp_module *m, dp_addr addr, dp_addr *start, dp_addr *end)
{
	struct dp_span s;
	if (!text_segment(m, addr, &s))
		return false;
	*start = dp_module_addr(m, s.vaddr);
	*end = dp_module_addr(m, s.vaddr + s.size);
	return true;
}

bool dp_module_eh_frame(struct dp_module *m, dp_addr *addr, const uint8_t **bytes, size_t *size)
{
	struct dp_span s;
	bool exact;
	if (!m->elf || !dp_elf_eh_frame(m->elf, &s, &exact))
		return false;
	*addr = dp_module_addr(m, s.vaddr);
	*bytes = s.bytes;
	*size = s.size;
	return true;
}

/* Counts only segments with bytes in the file. `phdr` receives the index of the program header. */
static bool nth_segment(const struct dp_module *m, size_t wanted, struct dp_span *ret, size_t *phdr)
{
	for (size_t i = 0; m->elf && i < m->elf->nphdr; i++)
		if (dp_elf_load(m->elf, i, ret) && wanted-- == 0) {
			*phdr = i;
			return true;
		}
	return false;
}

size_t dp_module_nsegments(struct dp_module *m)
{
	size_t n = 0;
	struct dp_span s;
	for (size_t i = 0; m->elf && i < m->elf->nphdr; i++)
		n += dp_elf_load(m->elf, i, &s);
	return n;
}

bool dp_module_segment(struct dp_module *m, size_t i, dp_addr *addr, const uint8_t **bytes, size_t *n, bool *exec)
{
	struct dp_span s;
	size_t phdr;
	if (!nth_segment(m, i, &s, &phdr))
		return false;
	*addr = dp_module_addr(m, s.vaddr);
	*bytes = s.bytes;
	*n = s.size;
	*exec = (m->elf->phdr[phdr].p_flags & PF_X) != 0;
	return true;
}
