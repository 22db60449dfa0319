/* SPDX-License-Identifier: MIT */
/*
 * What is known about a file, and is the same for every process that has it mapped: its ELF structure, symbols, functions, debug
 * information. A run with many processes reads it once (decision 0044).
 *
 * A file is known by what fstat() says of the opened file: device, inode, size, times of the last change. The inode of a file
 * that is known stays in use, because its bytes are mapped here: no other file can have that number meanwhile. The path and the
 * process's root belong to the key as well: separate debug files are searched by them. A build-id is not enough: a stripped file
 * and its original have the same one, but not the same symbols.
 *
 * What is read here says what the code should be. What it is, the process's memory says: sites are compared before they are
 * patched. Addresses are the file's own.
 */
#ifndef DP_PROBES_IMAGE_PARSED_H
#define DP_PROBES_IMAGE_PARSED_H

#include "probes/elf/eh_frame.h"
#include "probes/elf/symbols.h"

struct dp_fdes { /* ascending, disjoint */
	struct dp_fde *fde;
	size_t n;
	bool loaded, damaged; /* damaged: some entries could not be read */
};

struct dp_pads { /* landing pads, ascending */
	uint64_t *pad;
	size_t n;
	bool loaded, known;
};

/* Everything but `elf` is loaded on first use, through the module (module.h). */
struct dp_parsed {
	struct dp_elf *elf; /* NULL if there is no usable file */
	char build_id[2 * 64 + 1];
	bool build_id_loaded;
	struct dp_symbols own, debug;  /* of the file; of its separate or embedded debug file */
	bool own_loaded, debug_loaded; /* debug_loaded: a debug file was found */
	struct dp_symbol_index own_index, debug_index;
	struct dp_symbol_names own_names, debug_names;
	struct dp_fdes fdes;
	struct dp_pads pads;
	uint64_t hidden_main; /* main of a stripped executable; find_main.c */
	bool hidden_main_known;
	int text_relocations;          /* -1 unknown, else 0 or 1 */
	struct dp_readable *readables; /* readable.c: by the name's address */
	/* What higher folders load: each sets its destructor along with it. */
	struct dp_debug_state *debug_info; /* debug.c: NULL until one is found */
	struct dp_debug_state *(*debug_destroy)(struct dp_debug_state *d);
	struct dp_markers *markers; /* usdt.c: NULL until loaded */
	struct dp_markers *(*markers_destroy)(struct dp_markers *markers);
	void *protected;           /* code_view.c: NULL until loaded; released with free() */
	struct dp_parsed_key *key; /* NULL: nobody else gets it */
	unsigned users;
	struct dp_parsed *next; /* of all that have a key, the last used first */
};

/* The file behind `fd`, which the caller keeps; `path` as in maps, below `root`. Release it in the end. */
struct dp_error *dp_parsed_open(int fd, const char *path, const char *root, struct dp_parsed **ret) DP_MUST_CHECK;
/* Of an ELF file that nobody else has. Takes `elf`, also on failure (NULL). */
struct dp_parsed *dp_parsed_of(struct dp_elf *elf);
/* For a module without a usable file. */
struct dp_parsed *dp_parsed_nothing(void);
struct dp_parsed *dp_parsed_release(struct dp_parsed *p);

/*
 * Files that no process uses any more are kept for the next one: the last DP_PARSED_SURE always, and up to DP_PARSED_MOST as long
 * as all of them together are not larger than DP_PARSED_BYTES.
 */
#define DP_PARSED_SURE  8u
#define DP_PARSED_MOST  32u
#define DP_PARSED_BYTES (UINT64_C(256) << 20)
size_t dp_parsed_kept(void); /* how many are in memory, used or not */
void dp_parsed_forget(void); /* those that no process uses; also what was found for them elsewhere: separate debug files */

#endif
