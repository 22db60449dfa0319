/* SPDX-License-Identifier: MIT */
/*
 * Reads the dynamic symbol table, which lists what other modules can call, from a module's segments. Debugging symbols have more
 * names, but are often missing. Sources: System V ABI, "Dynamic Section"; GNU symbol versions (the hidden bit marks old ones).
 */
#include "injector/lttng/safe/sink_symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_HIDDEN 0x8000u

struct view { /* `n` bytes of the file, which are at `addr` in the target */
	const uint8_t *bytes;
	size_t n;
};

static struct view at(struct dp_module *m, uint64_t addr)
{
	for (size_t i = 0; i < dp_module_nsegments(m); i++) {
		dp_addr start;
		const uint8_t *bytes;
		size_t n;
		bool exec;
		if (dp_module_segment(m, i, &start, &bytes, &n, &exec) && addr - start.v < n)
			return (struct view){bytes + (addr - start.v), n - (addr - start.v)};
	}
	return (struct view){0};
}

struct tables {
	struct view symbols, names, versions;
	size_t n;
};

static uint64_t gnu_hash_count(struct view v)
{
	uint32_t head[4], last = 0, bucket, chain;
	if (v.n < sizeof(head))
		return 0;
	memcpy(head, v.bytes, sizeof(head));
	const uint64_t buckets = sizeof(head) + UINT64_C(8) * head[2], chains = buckets + UINT64_C(4) * head[0];
	for (uint32_t i = 0; i < head[0] && buckets + 4 * (i + UINT64_C(1)) <= v.n; i++) {
		memcpy(&bucket, v.bytes + buckets + UINT64_C(4) * i, sizeof(bucket));
		last = bucket > last ? bucket : last;
	}
	for (; last >= head[1]; last++) {
		const uint64_t link = chains + UINT64_C(4) * (last - head[1]);
		if (link + sizeof(chain) > v.n)
			return 0;
		memcpy(&chain, v.bytes + link, sizeof(chain));
		if (chain & 1)
			return last + UINT64_C(1);
	}
	return 0;
}

static void take_entry(struct dp_module *m, const Elf64_Dyn *d, struct tables *t)
{
	const uint64_t addr = d->d_un.d_ptr + (uint64_t)dp_module_bias(m);
	struct view v;
	uint32_t count;
	switch (d->d_tag) {
	case DT_SYMTAB:
		t->symbols = at(m, addr);
		break;
	case DT_STRTAB:
		t->names = at(m, addr);
		break;
	case DT_VERSYM:
		t->versions = at(m, addr);
		break;
	case DT_GNU_HASH:
		t->n = gnu_hash_count(at(m, addr));
		break;
	case DT_HASH:
		v = at(m, addr);
		if (v.n >= 8 && !t->n) {
			memcpy(&count, v.bytes + 4, sizeof(count));
			t->n = count;
		}
		break;
	default:
		break;
	}
}

static void read_dynamic(struct dp_module *m, uint64_t addr, uint64_t size, struct tables *t)
{
	const struct view v = at(m, addr);
	Elf64_Dyn d;
	for (size_t i = 0; i + sizeof(d) <= size && i + sizeof(d) <= v.n; i += sizeof(d)) {
		memcpy(&d, v.bytes + i, sizeof(d));
		if (d.d_tag == DT_NULL)
			return;
		take_entry(m, &d, t);
	}
}

static struct tables find_tables(struct dp_module *m)
{
	struct tables t = {0};
	for (size_t i = 0; i < dp_module_nsegments(m); i++) {
		dp_addr start;
		const uint8_t *bytes;
		size_t n;
		bool exec;
		Elf64_Ehdr eh;
		if (!dp_module_segment(m, i, &start, &bytes, &n, &exec) || n < sizeof(eh) || memcmp(bytes, ELFMAG, SELFMAG) != 0)
			continue;
		memcpy(&eh, bytes, sizeof(eh));
		for (unsigned k = 0; k < eh.e_phnum && eh.e_phoff + (k + UINT64_C(1)) * sizeof(Elf64_Phdr) <= n; k++) {
			Elf64_Phdr ph;
			memcpy(&ph, bytes + eh.e_phoff + k * sizeof(ph), sizeof(ph));
			if (ph.p_type == PT_DYNAMIC)
				read_dynamic(m, ph.p_vaddr + (uint64_t)dp_module_bias(m), ph.p_filesz, &t);
		}
		break;
	}
	const size_t most = t.symbols.n / sizeof(Elf64_Sym);
	t.n = t.n < most ? t.n : most;
	return t;
}

static bool take_symbol(struct dp_module *m, const struct tables *t, size_t i, struct dp_export *ret)
{
	Elf64_Sym s;
	uint16_t version = 0;
	memcpy(&s, t->symbols.bytes + i * sizeof(s), sizeof(s));
	const unsigned type = ELF64_ST_TYPE(s.st_info);
	if (s.st_shndx == SHN_UNDEF || s.st_shndx == SHN_ABS || s.st_name >= t->names.n || type == STT_TLS || type == STT_SECTION)
		return false;
	const char *name = (const char *)t->names.bytes + s.st_name;
	if (!memchr(name, 0, t->names.n - s.st_name))
		return false;
	if ((i + 1) * sizeof(version) <= t->versions.n)
		memcpy(&version, t->versions.bytes + i * sizeof(version), sizeof(version));
	*ret = (struct dp_export){name, s.st_value + (uint64_t)dp_module_bias(m), s.st_size,
	                          type == STT_FUNC || type == STT_GNU_IFUNC, version & VERSION_HIDDEN};
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct dp_export *x = a, *y = b;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

struct dp_error *dp_exports_read(struct dp_module *m, struct dp_exports *ret)
{
	const struct tables t = find_tables(m);
	struct dp_export *sym = calloc(t.n + 1, sizeof(*sym));
	size_t n = 0;
	if (!sym)
		return dp_error_nomem();
	for (size_t i = 0; i < t.n; i++)
		n += take_symbol(m, &t, i, &sym[n]);
	qsort(sym, n, sizeof(*sym), by_address);
	*ret = (struct dp_exports){sym, n};
	return NULL;
}

void dp_exports_fini(struct dp_exports *e)
{
	free(e->sym);
	*e = (struct dp_exports){0};
}

uint64_t dp_exports_find(const struct dp_exports *e, const char *name)
{
	uint64_t old = 0;
	for (size_t i = 0; i < e->n; i++) {
		if (strcmp(e->sym[i].name, name) != 0)
			continue;
		if (!e->sym[i].old)
			return e->sym[i].addr;
		old = e->sym[i].addr;
	}
	return old;
}
