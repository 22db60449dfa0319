/* SPDX-License-Identifier: MIT */
/* The symbols of one ELF file that name places in its text, and an index of them by address. */
#ifndef DP_PROBES_SYMBOLS_H
#define DP_PROBES_SYMBOLS_H

#include "probes/elf/elf_file.h"

struct dp_symbol {
	uint64_t value, size; /* the file's address */
	const char *name;     /* without a version */
	const char *version;  /* "" if there is none */
	uint32_t len;         /* of the name */
	uint8_t type;         /* STT_... */
	uint8_t bind;         /* STB_... */
	bool hidden;          /* foo@V, not the default foo@@V */
	bool code;            /* lies in an executable segment */
};

struct dp_symbols {
	struct dp_symbol *symbol;
	size_t n, capacity;
	char **copies; /* names that had to be cut */
	size_t ncopies;
	struct dp_elf *elf; /* a debug file that the names belong to, or NULL */
	bool has_symtab;
	bool failed; /* out of memory: some are missing */
};

struct dp_symbol_index { /* functions by address */
	const struct dp_symbol **symbol;
	uint64_t *reach; /* the highest end of symbol[0..i] */
	size_t n;
	bool loaded;
};

struct dp_symbol_names { /* symbols by name: chains in a table of hashes */
	uint32_t *head; /* of each hash: a symbol's number plus 1, or 0 */
	uint32_t *next; /* of each symbol, the same; ascending along a chain */
	uint32_t mask;
	bool loaded;
};

/* Adds .symtab and .dynsym of `from`; code is what lies in the executable segments of `text`, `delta` away. */
void dp_symbols_load(struct dp_symbols *symbols, const struct dp_elf *from, const struct dp_elf *text, uint64_t delta);
/* Adds one that other tables know of. False, and noted in `failed`, when out of memory. */
bool dp_symbols_add(struct dp_symbols *symbols, const struct dp_symbol *symbol);
void dp_symbols_fini(struct dp_symbols *symbols);

/* A name as typed: "foo", "foo@V" or "foo@@V". */
struct dp_symbol_name {
	const char *base, *version; /* version NULL: any, the default one first */
	size_t len, version_len;
};
struct dp_symbol_name dp_symbol_name_parse(const char *text);
bool dp_symbol_matches(const struct dp_symbol *s, const struct dp_symbol_name *name);

/* Without memory the chains hold nothing, and `head` is NULL. */
void dp_symbol_names_build(struct dp_symbol_names *names, const struct dp_symbols *symbols);
/* Where to begin with symbols that may be called so: a number plus 1, or 0; `next` leads on. */
uint32_t dp_symbol_names_first(const struct dp_symbol_names *names, const struct dp_symbol_name *name);
void dp_symbol_names_fini(struct dp_symbol_names *names);

void dp_symbol_index_build(struct dp_symbol_index *index, const struct dp_symbols *symbols);
const struct dp_symbol *dp_symbol_index_at(const struct dp_symbol_index *index, uint64_t value);
void dp_symbol_index_fini(struct dp_symbol_index *index);

#endif
