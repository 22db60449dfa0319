/* SPDX-License-Identifier: MIT */
/* The code and data symbols of one ELF file, with indexes by address and by name. */
#ifndef DP_PROBES_ELF_SYMBOLS_H
#define DP_PROBES_ELF_SYMBOLS_H

#include "probes/elf/elf_file.h"

struct dp_symbol {
	uint64_t value, size; /* the file's address */
	const char *name;     /* without a version */
	const char *version;  /* "" if there is none */
	const char *file;     /* of a local symbol: its source file, without directories; NULL: unknown */
	uint32_t len;         /* of the name */
	uint8_t type;         /* STT_... */
	uint8_t bind;         /* STB_... */
	bool hidden;          /* foo@V, not the default foo@@V */
	bool code;            /* in an executable segment */
};

struct dp_symbols {
	struct dp_symbol *symbol;
	size_t n, capacity;
	char **copies; /* names that had to be shortened */
	size_t ncopies;
	struct dp_elf *elf; /* debug file that owns the names, or NULL */
	bool has_symtab;
	bool failed; /* out of memory: some symbols are missing */
};

struct dp_symbol_index { /* functions by address */
	const struct dp_symbol **symbol;
	uint64_t *reach; /* the highest end of symbol[0..i] */
	size_t n;
	bool loaded;
};

struct dp_symbol_names { /* symbols by name: a hash table with chains */
	uint32_t *head; /* per hash: a symbol's number plus 1, or 0 */
	uint32_t *next; /* per symbol: the same; ascending along a chain */
	uint32_t mask;
	bool loaded;
};

/* Adds .symtab and .dynsym of `from`, with `delta` added to addresses. Code is what is in executable segments of `text`. */
void dp_symbols_load(struct dp_symbols *symbols, const struct dp_elf *from, const struct dp_elf *text, uint64_t delta);
/* Adds a symbol from another table. False, and `failed` is set, when out of memory. */
bool dp_symbols_add(struct dp_symbols *symbols, const struct dp_symbol *symbol);
void dp_symbols_fini(struct dp_symbols *symbols);

/* A name as typed: "foo", "foo@V" or "foo@@V". */
struct dp_symbol_name {
	const char *base, *version; /* version NULL: any, the default one first */
	size_t len, version_len;
};
struct dp_symbol_name dp_symbol_name_parse(const char *text);
bool dp_symbol_matches(const struct dp_symbol *s, const struct dp_symbol_name *name);

/* When out of memory, `head` is NULL and lookups find nothing. */
void dp_symbol_names_build(struct dp_symbol_names *names, const struct dp_symbols *symbols);
/* First candidate for that name: a symbol's number plus 1, or 0. Follow `next` for more and compare the names. */
uint32_t dp_symbol_names_first(const struct dp_symbol_names *names, const struct dp_symbol_name *name);
void dp_symbol_names_fini(struct dp_symbol_names *names);

void dp_symbol_index_build(struct dp_symbol_index *index, const struct dp_symbols *symbols);
const struct dp_symbol *dp_symbol_index_at(const struct dp_symbol_index *index, uint64_t value);
void dp_symbol_index_fini(struct dp_symbol_index *index);

#endif
