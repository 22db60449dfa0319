/* SPDX-License-Identifier: MIT */
/*
 * Turns mappings into modules. It starts from an executable mapping of a file: the file's program headers say which segment it
 * is; that gives the bias, and the bias gives the extent, to which all other mappings of that inode belong. So two copies of a
 * library (dlmopen) are two modules, and a file that is mapped only to be read is none.
 *
 * A program that moved its text to anonymous memory (for huge pages) has no such mapping. Then the start is a neighbour: a
 * mapping of a file whose executable segment covers that memory.
 */
#include "probes/image/image_internal.h"

#include "agent/abi.h"
#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PAGE 4096ULL

/* Takes ownership of `m`, also on failure. */
static struct dp_error *add_module(struct dp_image *image, struct dp_module *m)
{
	struct dp_module **grown = realloc(image->module, (image->nmodules + 1) * sizeof(*grown));
	if (!grown) {
		dp_module_destroy(m);
		return dp_error_nomem();
	}
	image->module = grown;
	grown[image->nmodules++] = m;
	return NULL;
}

/* Finds the bias with which `map` is part of an executable segment. */
static bool find_bias(const struct dp_elf *elf, const struct dp_map *map, int64_t *bias)
{
	for (size_t i = 0; i < elf->nphdr; i++) {
		const Elf64_Phdr *p = &elf->phdr[i];
		uint64_t low = p->p_offset & ~(PAGE - 1);
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || map->offset < low || map->offset - low >= p->p_filesz + PAGE)
			continue;
		*bias = (int64_t)(map->start.v - (map->offset - low) - (p->p_vaddr & ~(PAGE - 1)));
		return true;
	}
	return false;
}

static bool belongs(const struct dp_module *m, const struct dp_map *map)
{
	return m->inode == map->inode && !strcmp(m->mapped_path, map->path) && dp_addr_in(map->start, m->start, m->end);
}

static bool known(const struct dp_image *image, const struct dp_map *map)
{
	for (size_t i = image->nmodules; i-- > 0;)
		if (belongs(image->module[i], map))
			return true;
	return false;
}

/* Without its file a module is the range from its first to its last mapping. The bias is a guess that is not used. */
static void extent_from_maps(const struct dp_image *image, struct dp_module *m, const struct dp_map *map)
{
	m->start = map->start;
	m->end = map->end;
	for (size_t i = 0; i < image->maps.n; i++) {
		const struct dp_map *other = &image->maps.map[i];
		if (other->inode != map->inode || strcmp(other->path, map->path) != 0)
			continue;
		if (other->start.v < m->start.v)
			m->start = other->start;
		if (other->end.v > m->end.v)
			m->end = other->end;
	}
	m->bias = (int64_t)m->start.v;
}

static bool extent_from_bias(struct dp_module *m)
{
	uint64_t lo, hi;
	if (!dp_elf_extent(m->elf, &lo, &hi))
		return false;
	m->start = dp_module_addr(m, lo);
	m->end = dp_module_addr(m, hi);
	return true;
}

static void extent_from_file(struct dp_module *m, const struct dp_map *map)
{
	if (find_bias(m->elf, map, &m->bias) && extent_from_bias(m))
		return;
	dp_module_disown(m);
	m->failure = dp_error(DP_TAG_BAD_ELF, "the program headers of '%s' do not match its mapping", m->path);
}

/* True for memory that is not backed by a file of a file system. */
static bool is_pseudo_file(const char *path)
{
	static const char *const prefixes[] = {"/memfd:", "/dev/zero", "/anon_hugepage", "/SYSV"};
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (!strncmp(path, prefixes[i], strlen(prefixes[i])))
			return true;
	return path[0] != '/';
}

/* Files that are mapped executable but are not ELF (JIT caches, code in a memfd) are not modules. */
static struct dp_error *open_module(struct dp_image *image, const struct dp_map *map, struct dp_module **ret)
{
	dp_auto_close int fd = -1;
	struct dp_parsed *parsed = NULL;
	struct dp_error *why = dp_module_open(map, image->root, image->pid, &fd);
	*ret = NULL;
	if ((fd >= 0 && !dp_elf_magic(fd)) || (why && is_pseudo_file(map->path))) {
		dp_error_destroy(why);
		return NULL;
	}
	if (!why)
		why = dp_parsed_open(fd, map->path, image->root, &parsed);
	struct dp_module *m = dp_module_create(map->path, image->root, parsed ? parsed : dp_parsed_nothing());
	if (!m) {
		dp_error_destroy(why);
		return dp_error_nomem();
	}
	m->failure = why;
	m->inode = map->inode;
	m->mapped_path = map->path;
	*ret = m;
	return NULL;
}

/* Finds the bias with which `map` is a segment of the file and `at` is in an executable one. */
static bool find_bias_around(const struct dp_elf *elf, const struct dp_map *map, dp_addr at, int64_t *bias)
{
	for (size_t i = 0; i < elf->nphdr; i++) {
		const Elf64_Phdr *p = &elf->phdr[i];
		const uint64_t low = p->p_offset & ~(PAGE - 1), page = p->p_vaddr & ~(PAGE - 1);
		if (p->p_type != PT_LOAD || map->offset < low || map->offset - low >= p->p_filesz + PAGE)
			continue;
		*bias = (int64_t)(map->start.v - (map->offset - low) - page);
		for (size_t k = 0; k < elf->nphdr; k++) {
			const Elf64_Phdr *x = &elf->phdr[k];
			const uint64_t start = (x->p_vaddr & ~(PAGE - 1)) + (uint64_t)*bias;
			if (x->p_type == PT_LOAD && (x->p_flags & PF_X) && at.v - start < x->p_filesz + (x->p_vaddr & (PAGE - 1)))
				return true;
		}
	}
	return false;
}

#define PIECES 8 /* pieces in which text may have been moved */

/* The next mapping of a file, below (-1) or above (1), with at most PIECES anonymous mappings in between. */
static const struct dp_map *neighbour(const struct dp_image *image, const struct dp_map *map, int step)
{
	const struct dp_map *first = image->maps.map, *last = first + image->maps.n - 1;
	for (int n = 0; n < PIECES && map != (step < 0 ? first : last); n++) {
		const struct dp_map *next = map + step, *low = step < 0 ? next : map;
		if (low->end.v != low[1].start.v)
			return NULL;
		if (next->inode && !is_pseudo_file(next->path))
			return next;
		map = next;
	}
	return NULL;
}

/* Anonymous executable memory: generated code, or the moved text of a file that has no module yet. */
static struct dp_error *consider_moved(struct dp_image *image, const struct dp_map *map)
{
	for (int step = -1; step <= 1; step += 2) {
		const struct dp_map *file = neighbour(image, map, step);
		struct dp_module *m = NULL;
		if (!file || known(image, file))
			continue;
		DP_TRY(open_module(image, file, &m));
		if (m && m->elf && find_bias_around(m->elf, file, map->start, &m->bias) && extent_from_bias(m))
			return add_module(image, m);
		dp_module_destroy(m);
	}
	return NULL;
}

/* Our stubs and springboards are hundreds of mappings. Skipping them saves file system lookups. */
static bool is_own(const struct dp_map *map)
{
	return !strcmp(map->path, "/memfd:" DP_MEMFD_NAME " (deleted)");
}

static bool is_nameless(const struct dp_map *map)
{
	return !*map->path || !strncmp(map->path, "[anon", 5);
}

static struct dp_error *consider(struct dp_image *image, const struct dp_map *map)
{
	struct dp_module *m;
	if (!map->exec || is_own(map))
		return NULL;
	if (is_nameless(map))
		return consider_moved(image, map);
	if ((map->path[0] != '/' && !map->inode) || known(image, map))
		return NULL;
	DP_TRY(open_module(image, map, &m));
	if (!m)
		return consider_moved(image, map);
	if (m->elf)
		extent_from_file(m, map);
	if (!m->elf)
		extent_from_maps(image, m, map);
	return add_module(image, m);
}

/* A program has no soname. libc.so and ld.so can be run as programs, hence the last rule. */
static bool looks_like_a_program(const struct dp_module *m)
{
	uint64_t value;
	if (!m->elf)
		return false;
	if (m->elf->ehdr.e_type == ET_EXEC || (dp_elf_dynamic(m->elf, DT_FLAGS_1, &value) && (value & DF_1_PIE)))
		return true;
	return dp_elf_phdr(m->elf, PT_INTERP) && !dp_elf_dynamic(m->elf, DT_SONAME, &value);
}

/* /proc/PID/exe is the executable, except if it is ld.so, which was told to run another file. */
static size_t find_executable(const struct dp_image *image)
{
	struct stat st = {0};
	char exe[64];
	size_t named = image->nmodules;
	snprintf(exe, sizeof(exe), "/proc/%d/exe", image->pid);
	bool have = image->pid && stat(exe, &st) == 0;
	for (size_t i = 0; have && i < image->nmodules && named == image->nmodules; i++)
		if (image->module[i]->inode == st.st_ino)
			named = i;
	if (named < image->nmodules && looks_like_a_program(image->module[named]))
		return named;
	for (size_t i = 0; i < image->nmodules; i++)
		if (looks_like_a_program(image->module[i]))
			return i;
	return named < image->nmodules ? named : 0;
}

/* True if the lowest segment is mapped where it should be. */
static bool is_whole(const struct dp_image *image, const struct dp_module *m)
{
	const struct dp_map *map = dp_maps_at(&image->maps, m->start);
	return !m->elf || (map && map->inode == m->inode && !strcmp(map->path, m->mapped_path));
}

/*
 * Drops modules that are only a second mapping of a piece of text. (V8 maps text again to have its builtins near its code.)
 */
static void drop_pieces(struct dp_image *image)
{
	size_t kept = 0;
	for (size_t i = 0; i < image->nmodules; i++) {
		struct dp_module *m = image->module[i];
		bool copy = false;
		for (size_t j = 0; j < image->nmodules && !is_whole(image, m); j++)
			copy |= j != i && image->module[j] && image->module[j]->inode == m->inode &&
			        !strcmp(image->module[j]->mapped_path, m->mapped_path) && is_whole(image, image->module[j]);
		if (copy)
			image->module[i] = dp_module_destroy(m);
	}
	for (size_t i = 0; i < image->nmodules; i++)
		if (image->module[i])
			image->module[kept++] = image->module[i];
	image->nmodules = kept;
}

static struct dp_error *fill(struct dp_image *image, const char *maps)
{
	DP_TRY(dp_maps_parse(maps, &image->maps));
	for (size_t i = 0; i < image->maps.n; i++)
		DP_TRY(consider(image, &image->maps.map[i]));
	drop_pieces(image);
	if (!image->nmodules)
		return NULL;
	size_t at = find_executable(image);
	struct dp_module *executable = image->module[at];
	memmove(image->module + 1, image->module, at * sizeof(*image->module));
	image->module[0] = executable;
	executable->executable = true;
	dp_image_call_as_started(image);
	return NULL;
}

struct dp_error *dp_image_create(const char *maps, const char *root, int pid, struct dp_image **ret)
{
	struct dp_image *image = calloc(1, sizeof(*image));
	if (!image || !(image->root = strdup(root ? root : ""))) {
		free(image);
		return dp_error_nomem();
	}
	image->pid = pid;
	dp_image_number(image);
	struct dp_error *err = fill(image, maps);
	if (err) {
		dp_image_destroy(image);
		return err;
	}
	*ret = image;
	return NULL;
}

struct dp_image *dp_image_destroy(struct dp_image *image)
{
	if (!image)
		return NULL;
	for (size_t i = 0; i < image->nmodules; i++)
		dp_module_destroy(image->module[i]);
	free(image->module);
	dp_maps_fini(&image->maps);
	dp_perf_map_destroy(image->perf_map);
	free(image->root);
	dp_image_destroy(image->later);
	free(image);
	return NULL;
}

struct dp_error *dp_image_set_vdso(struct dp_image *image, const void *bytes, size_t size)
{
	const struct dp_map *map = NULL;
	struct dp_elf *elf;
	for (size_t i = 0; i < image->maps.n; i++)
		if (!strcmp(image->maps.map[i].path, "[vdso]"))
			map = &image->maps.map[i];
	for (size_t i = 0; i < image->nmodules; i++)
		if (image->module[i]->vdso)
			map = NULL;
	uint8_t *copy = map ? malloc(size + 1) : NULL;
	if (!copy)
		return map ? dp_error_nomem() : NULL;
	memcpy(copy, bytes, size);
	DP_TRY(dp_elf_from_memory(copy, size, "[vdso]", &elf));
	struct dp_parsed *parsed = dp_parsed_of(elf);
	struct dp_module *m = parsed ? dp_module_create("[vdso]", image->root, parsed) : NULL;
	if (!m)
		return dp_error_nomem();
	m->vdso = true;
	m->mapped_path = map->path;
	extent_from_file(m, map);
	m->start = map->start;
	m->end = map->end;
	return add_module(image, m);
}

size_t dp_image_nmaps(const struct dp_image *image)
{
	return image->maps.n;
}

const struct dp_map *dp_image_map(const struct dp_image *image, size_t i)
{
	return i < image->maps.n ? &image->maps.map[i] : NULL;
}

const struct dp_map *dp_image_map_at(const struct dp_image *image, dp_addr addr)
{
	return dp_maps_at(&image->maps, addr);
}

size_t dp_image_nmodules(const struct dp_image *image)
{
	return image->nmodules;
}

struct dp_module *dp_image_module(const struct dp_image *image, size_t i)
{
	return i < image->nmodules ? image->module[i] : NULL;
}

/* Anonymous memory in place of a segment: .bss, or text that was moved to huge pages. */
static bool replaces_segment(const struct dp_module *m, const struct dp_map *map, dp_addr addr)
{
	uint64_t vaddr = dp_module_vaddr(m, addr);
	for (size_t i = 0; !map->path[0] && m->elf && i < m->elf->nphdr; i++) {
		const Elf64_Phdr *p = &m->elf->phdr[i];
		uint64_t start = p->p_vaddr & ~(PAGE - 1), end = (p->p_vaddr + p->p_memsz + PAGE - 1) & ~(PAGE - 1);
		if (p->p_type == PT_LOAD && vaddr >= start && vaddr < end)
			return true;
	}
	return false;
}

static struct dp_module *own_module_at(const struct dp_image *image, dp_addr addr)
{
	const struct dp_map *map = dp_maps_at(&image->maps, addr);
	for (size_t i = 0; map && i < image->nmodules; i++) {
		struct dp_module *m = image->module[i];
		if (dp_addr_in(addr, m->start, m->end) && (!strcmp(map->path, m->mapped_path) || replaces_segment(m, map, addr)))
			return m;
	}
	return NULL;
}

struct dp_module *dp_image_module_at(const struct dp_image *image, dp_addr addr)
{
	struct dp_module *m = NULL;
	for (; image && !m; image = image->later)
		m = own_module_at(image, addr);
	return m;
}
