/* SPDX-License-Identifier: MIT */
/* Finds symbols by name, by a hash table: a run with thousands of probes looks up thousands of names. */
#include "probes/elf/symbols.h"

#include <stdlib.h>

/* FNV-1a */
static uint32_t hash_of(const char *name, size_t len)
{
	uint32_t hash = 2166136261U;
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)name[i]) * 16777619U;
	return hash;
}

void dp_symbol_names_build(struct dp_symbol_names *names, const struct dp_symbols *symbols)
{
	uint32_t size = 16;
	names->loaded = true;
	while (size < symbols->n && size < 1U << 30)
		size *= 2;
	names->head = calloc(size, sizeof(*names->head));
	names->next = calloc(symbols->n + 1, sizeof(*names->next));
	if (!names->head || !names->next || symbols->n > UINT32_MAX / 2) {
		free(names->head);
		names->head = NULL;
		return;
	}
	names->mask = size - 1;
	for (size_t i = symbols->n; i-- > 0;) {
		uint32_t *head = &names->head[hash_of(symbols->symbol[i].name, symbols->symbol[i].len) & names->mask];
		names->next[i] = *head;
		*head = (uint32_t)i + 1;
	}
}

uint32_t dp_symbol_names_first(const struct dp_symbol_names *names, const struct dp_symbol_name *name)
{
	return names->head ? names->head[hash_of(name->base, name->len) & names->mask] : 0;
}

void dp_symbol_names_fini(struct dp_symbol_names *names)
{
	free(names->head);
	free(names->next);
	*names = (struct dp_symbol_names){0};
}
