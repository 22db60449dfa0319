/* SPDX-License-Identifier: MIT */
#include "probes/image/debug_file.h"

#include "base/cleanup.h"
#include "base/regular.h"

#include <fcntl.h>
#include <lzma.h>
#include <string.h>

#define DEBUG_DIR "/usr/lib/debug"

static struct dp_elf *try_open(const char *root, const char *path, char **ret)
{
	dp_auto_free char *full = NULL;
	struct dp_elf *elf = NULL;
	if (asprintf(&full, "%s%s", root, path) < 0) {
		full = NULL;
		return NULL;
	}
	dp_auto_close int fd = dp_open_regular(full);
	if (fd >= 0)
		dp_error_destroy(dp_elf_open(fd, full, &elf));
	if (elf && ret) {
		free(*ret);
		*ret = dp_take(full, NULL);
	}
	return elf;
}

static bool same_build_id(const struct dp_elf *a, const struct dp_elf *b)
{
	const uint8_t *x, *y;
	size_t n, m;
	return dp_elf_build_id(a, &x, &n) && dp_elf_build_id(b, &y, &m) && n == m && !memcmp(x, y, n);
}

static struct dp_elf *by_build_id(struct dp_module *m, const char *root, char **ret)
{
	char path[256];
	const char *id = dp_module_build_id(m);
	if (strlen(id) < 4)
		return NULL;
	snprintf(path, sizeof(path), DEBUG_DIR "/.build-id/%.2s/%s.debug", id, id + 2);
	struct dp_elf *elf = try_open(root, path, ret);
	return !elf || same_build_id(elf, m->elf) ? elf : dp_elf_destroy(elf);
}

/* .gnu_debuglink: a file name, zeros up to a multiple of 4, the CRC-32 of that file. */
bool dp_debug_file_link(const struct dp_elf *elf, const char **name, uint32_t *crc)
{
	GElf_Shdr shdr;
	struct dp_span s;
	if (!dp_elf_section(elf, ".gnu_debuglink", 0, &shdr, &s))
		return false;
	size_t len = strnlen((const char *)s.bytes, s.size), at = (len + 4) & ~(size_t)3;
	if (!len || at + sizeof(*crc) > s.size || memchr(s.bytes, '/', len))
		return false;
	*name = (const char *)s.bytes;
	memcpy(crc, s.bytes + at, sizeof(*crc));
	return true;
}

/* Compares build-ids if both files have one: that does not read the whole debug file, which may be large. */
static bool fits(const struct dp_elf *debug, const struct dp_elf *elf, uint32_t crc)
{
	const uint8_t *id;
	size_t n;
	if (dp_elf_build_id(debug, &id, &n) && dp_elf_build_id(elf, &id, &n))
		return same_build_id(debug, elf);
	return lzma_crc32(debug->bytes, debug->size, 0) == crc;
}

/* Searches three places: beside the file, in .debug beside it, and in the system's tree of debug files. */
static struct dp_elf *by_link(struct dp_module *m, const char *root, char **ret)
{
	const char *name;
	uint32_t crc;
	if (!dp_debug_file_link(m->elf, &name, &crc) || m->path[0] != '/')
		return NULL;
	int dir = (int)(m->name - m->path) - 1;
	for (size_t i = 0; i < 3; i++) {
		dp_auto_free char *path = NULL;
		const char *middle = i == 1 ? "/.debug/" : "/";
		if (asprintf(&path, "%s%.*s%s%s", i == 2 ? DEBUG_DIR : "", dir, m->path, middle, name) < 0) {
			path = NULL;
			continue;
		}
		struct dp_elf *elf = try_open(root, path, ret);
		if (elf && fits(elf, m->elf, crc))
			return elf;
		dp_elf_destroy(elf);
	}
	return NULL;
}

struct dp_elf *dp_debug_file_find(struct dp_module *m, char **path)
{
	struct dp_elf *elf = by_build_id(m, m->root, path);
	if (!elf && *m->root)
		elf = by_build_id(m, "", path);
	if (!elf)
		elf = by_link(m, m->root, path);
	if (!elf && *m->root)
		elf = by_link(m, "", path);
	return elf;
}

uint64_t dp_debug_file_moved(const struct dp_elf *elf, const struct dp_elf *debug)
{
	uint64_t a, b, end;
	return dp_elf_extent(elf, &a, &end) && dp_elf_extent(debug, &b, &end) ? a - b : 0;
}

void dp_debug_symbols_load(struct dp_module *m, struct dp_symbols *ret)
{
	ret->elf = dp_debug_file_find(m, NULL);
	if (!ret->elf)
		ret->elf = dp_minidebug_unpack(m->elf, m->path);
	if (ret->elf)
		dp_symbols_load(ret, ret->elf, m->elf, dp_debug_file_moved(m->elf, ret->elf));
}
