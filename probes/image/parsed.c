/* SPDX-License-Identifier: MIT */
#include "probes/image/module.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct dp_parsed_key {
	dev_t dev, root_dev;
	ino_t ino, root_ino;
	off_t size;
	struct timespec changed, written; /* changed: also by an unlink or a rename over it */
	char path[];
};

static struct dp_parsed *all; /* the last used first */

static void destroy(struct dp_parsed *p)
{
	if (p->debug_info)
		p->debug_destroy(p->debug_info);
	if (p->markers)
		p->markers_destroy(p->markers);
	dp_symbol_index_fini(&p->own_index);
	dp_symbol_index_fini(&p->debug_index);
	dp_symbol_names_fini(&p->own_names);
	dp_symbol_names_fini(&p->debug_names);
	dp_symbols_fini(&p->own);
	dp_symbols_fini(&p->debug);
	dp_readables_fini(&p->readables);
	free(p->fdes.fde);
	free(p->pads.pad);
	free(p->protected);
	dp_elf_destroy(p->elf);
	free(p->key);
	free(p);
}

/* ---- the key --------------------------------------------------------------------------------------------------------------- */

/* NULL: the file cannot be known again. Ours to free. */
static struct dp_parsed_key *key_of(int fd, const char *path, const char *root)
{
	struct stat st, top;
	const size_t n = strlen(path) + 1;
	if (fstat(fd, &st) || stat(*root ? root : "/", &top))
		return NULL;
	struct dp_parsed_key *key = calloc(1, sizeof(*key) + n);
	if (!key)
		return NULL;
	*key = (struct dp_parsed_key){.dev = st.st_dev,
	                              .root_dev = top.st_dev,
	                              .ino = st.st_ino,
	                              .root_ino = top.st_ino,
	                              .size = st.st_size,
	                              .changed = st.st_ctim,
	                              .written = st.st_mtim};
	memcpy(key->path, path, n);
	return key;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool same(const struct dp_parsed_key *a, const struct dp_parsed_key *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->root_dev == b->root_dev && a->root_ino == b->root_ino &&
	       a->size == b->size && same_time(&a->changed, &b->changed) && same_time(&a->written, &b->written) &&
	       !strcmp(a->path, b->path);
}

/* ---- all of them ----------------------------------------------------------------------------------------------------------- */

static void put_first(struct dp_parsed *p)
{
	p->next = all;
	all = p;
}

/* Takes it out of the list. */
static struct dp_parsed *find(const struct dp_parsed_key *key)
{
	for (struct dp_parsed **at = &all, *p; (p = *at); at = &p->next)
		if (same(p->key, key)) {
			*at = p->next;
			return p;
		}
	return NULL;
}

static void drop_unused(size_t sure, size_t most)
{
	size_t n = 0;
	uint64_t bytes = 0;
	for (struct dp_parsed **at = &all, *p; (p = *at);) {
		if (!p->users) {
			bytes += (uint64_t)p->key->size;
			n++;
		}
		if (!p->users && (n > most || (n > sure && bytes > DP_PARSED_BYTES))) {
			*at = p->next;
			destroy(p);
		} else {
			at = &p->next;
		}
	}
}

void dp_parsed_forget(void)
{
	drop_unused(0, 0);
}

size_t dp_parsed_kept(void)
{
	size_t n = 0;
	for (const struct dp_parsed *p = all; p; p = p->next)
		n++;
	return n;
}

struct dp_parsed *dp_parsed_of(struct dp_elf *elf)
{
	struct dp_parsed *p = calloc(1, sizeof(*p));
	if (!p) {
		dp_elf_destroy(elf);
		return NULL;
	}
	*p = (struct dp_parsed){.elf = elf, .text_relocations = -1, .users = 1};
	return p;
}

struct dp_parsed *dp_parsed_nothing(void)
{
	static struct dp_parsed nothing = {.users = 1};
	nothing.users++; /* never 0 */
	return &nothing;
}

static struct dp_error *read_file(int fd, const char *path, struct dp_parsed **ret)
{
	struct dp_elf *elf = NULL;
	DP_TRY(dp_elf_open(fd, path, &elf));
	*ret = dp_parsed_of(elf);
	return *ret ? NULL : dp_error_nomem();
}

struct dp_error *dp_parsed_open(int fd, const char *path, const char *root, struct dp_parsed **ret)
{
	struct dp_parsed_key *key = key_of(fd, path, root); /* before the file is read */
	struct dp_parsed *p = key ? find(key) : NULL;
	struct dp_error *err = NULL;
	if (p) {
		p->users++;
		free(key);
	} else if (!(err = read_file(fd, path, &p))) {
		p->key = key;
	}
	if (err) {
		free(key);
		return err;
	}
	if (p->key)
		put_first(p);
	*ret = p;
	return NULL;
}

struct dp_parsed *dp_parsed_release(struct dp_parsed *p)
{
	if (!p || --p->users)
		return NULL;
	if (p->key)
		drop_unused(DP_PARSED_SURE, DP_PARSED_MOST);
	else
		destroy(p);
	return NULL;
}
