/* SPDX-License-Identifier: MIT */
#include "probes/debug/debug_cache.h"
#include "base/buf.h"
#include "base/cleanup.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_MAGIC   UINT64_C(0x31676562642e7064)
#define CACHE_VERSION UINT64_C(1)
#define LEAST         (UINT64_C(1) << 20) /* uncompressed bytes */
#define MOST          (UINT64_C(256) << 20)
#define ID_MIN        8 /* bytes of a build-id; shorter ones may not be unique */
#define ID_MAX        64

/* A cache file is the uncompressed ELF file, followed by this. */
struct tail {
	uint64_t magic, version;
	uint64_t source[5];
	uint64_t size;     /* of the bytes before this struct */
	uint64_t checksum; /* of all bytes before this word */
};

static char cache_dir[PATH_MAX];

void dp_debug_cache_dir(const char *dir)
{
	const size_t n = dir ? strlen(dir) : 0;
	cache_dir[0] = '\0';
	if (n && n < sizeof(cache_dir))
		memcpy(cache_dir, dir, n + 1);
}

static void add_words(uint64_t h[4], const uint64_t word[4])
{
	for (int i = 0; i < 4; i++) {
		h[i] = (h[i] ^ word[i]) * UINT64_C(0x9e3779b97f4a7c15);
		h[i] ^= h[i] >> 32;
	}
}

/* Four independent sums, so that the processor computes them in parallel: the steps of one sum depend on each other. */
static uint64_t checksum_of(const uint8_t *p, size_t n)
{
	uint64_t h[4] = {CACHE_MAGIC, n, ~CACHE_MAGIC, ~(uint64_t)n}, word[4];
	for (; n >= sizeof(word); p += sizeof(word), n -= sizeof(word)) {
		memcpy(word, p, sizeof(word)); /* a constant size, so gcc emits no call */
		add_words(h, word);
	}
	if (n) {
		memset(word, 0, sizeof(word));
		memcpy(word, p, n);
		add_words(h, word);
	}
	for (int i = 1; i < 4; i++)
		h[0] = (h[0] ^ h[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ h[0] >> 29;
	return h[0];
}

static uint64_t packed_bytes(Elf *elf)
{
	uint64_t sum = 0;
	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));) {
		const Elf64_Shdr *head = elf64_getshdr(s);
		const Elf64_Chdr *packed = head && head->sh_flags & SHF_COMPRESSED ? elf64_getchdr(s) : NULL;
		if (packed && packed->ch_size > MOST - sum)
			return 0;
		sum += packed ? packed->ch_size : 0;
	}
	return sum;
}

static bool name(Elf *elf, char path[PATH_MAX])
{
	const void *id;
	const ssize_t n = dwelf_elf_gnu_build_id(elf, &id);
	char hex[2 * ID_MAX + 1];
	if (n < ID_MIN || n > ID_MAX)
		return false;
	for (ssize_t i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", ((const uint8_t *)id)[i]);
	const int len = snprintf(path, PATH_MAX, "%s/%s.debug", cache_dir, hex);
	return len > 0 && len < PATH_MAX - 16;
}

bool dp_debug_cache_key(int fd, struct dp_debug_key *ret)
{
	struct stat st;
	if (!*cache_dir || fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const char *ident = elf ? elf_getident(elf, NULL) : NULL;
	const bool is_ours = ident && ident[EI_CLASS] == ELFCLASS64 && ident[EI_DATA] == ELFDATA2LSB;
	const bool fits = is_ours && packed_bytes(elf) >= LEAST && name(elf, ret->path);
	elf_end(elf);
	/*
	 * ctime identifies the file's version: it cannot be set back. Device and inode are part of the key, too: a file below
	 * another root that claims the same build-id is not trusted in place of our own.
	 */
	const uint64_t source[5] = {st.st_dev, st.st_ino, (uint64_t)st.st_size, (uint64_t)st.st_ctim.tv_sec,
	                            (uint64_t)st.st_ctim.tv_nsec};
	memcpy(ret->source, source, sizeof(source));
	return fits;
}

static bool is_believed(const uint8_t *bytes, size_t n, const struct dp_debug_key *key)
{
	struct tail t;
	memcpy(&t, bytes + n - sizeof(t), sizeof(t));
	return t.magic == CACHE_MAGIC && t.version == CACHE_VERSION && !memcmp(t.source, key->source, sizeof(t.source)) &&
	       t.size == n - sizeof(t) && t.checksum == checksum_of(bytes, n - sizeof(t.checksum));
}

struct dp_elf *dp_debug_cache_load(const struct dp_debug_key *key)
{
	struct stat st;
	struct dp_elf *elf = NULL;
	dp_auto_close int fd = open(key->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return NULL;
	if ((uint64_t)st.st_size < sizeof(Elf64_Ehdr) + sizeof(struct tail) || (uint64_t)st.st_size > 2 * MOST)
		return NULL;
	struct dp_error *err = dp_elf_open(fd, key->path, &elf);
	if (!err && !is_believed(elf->bytes, elf->size, key))
		elf = dp_elf_destroy(elf);
	dp_error_destroy(err);
	return elf;
}

static void align(struct dp_buf *to)
{
	dp_buf_grow(to, -to->len % 16);
}

/* Appends the section's bytes and updates its offset. */
static bool put_section(struct dp_buf *to, Elf_Scn *s, Elf64_Shdr *head)
{
	if (head->sh_type == SHT_NOBITS || head->sh_type == SHT_NULL)
		return true;
	const Elf_Data *data = elf_rawdata(s, NULL);
	if (!data || data->d_size != head->sh_size || (data->d_size && !data->d_buf))
		return false;
	align(to);
	head->sh_offset = to->len;
	if (data->d_size > MOST - to->len)
		return false;
	dp_buf_put(to, data->d_buf, data->d_size);
	return !to->failed;
}

/* Writes the ELF header, the program headers at their old offsets, all sections, and the section headers. */
static bool put_elf(struct dp_buf *to, Elf *elf)
{
	size_t size, nphdr, n;
	const char *bytes = elf_rawfile(elf, &size);
	if (!bytes || size < sizeof(Elf64_Ehdr) || elf_getphdrnum(elf, &nphdr) || elf_getshdrnum(elf, &n))
		return false;
	Elf64_Ehdr head;
	memcpy(&head, bytes, sizeof(head));
	const uint64_t front = nphdr ? head.e_phoff + nphdr * sizeof(Elf64_Phdr) : sizeof(head);
	if (front < sizeof(head) || front > size || front > LEAST || n > LEAST)
		return false;
	dp_auto_free Elf64_Shdr *section = calloc(n + 1, sizeof(*section));
	if (!section)
		return false;
	dp_buf_put(to, bytes, front);
	for (size_t i = 0; i < n; i++) {
		Elf_Scn *s = elf_getscn(elf, i);
		const Elf64_Shdr *was = s ? elf64_getshdr(s) : NULL;
		if (!was)
			return false;
		section[i] = *was;
		if (!put_section(to, s, &section[i]))
			return false;
	}
	align(to);
	head.e_shoff = to->len;
	dp_buf_put(to, section, n * sizeof(*section));
	if (to->failed)
		return false;
	memcpy(to->data, &head, sizeof(head));
	return true;
}

static bool make_dir(void)
{
	char path[PATH_MAX];
	memcpy(path, cache_dir, sizeof(path));
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(path, 0700) && errno != EEXIST)
			return false;
		*p = '/';
	}
	return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool write_all(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		const ssize_t put = write(fd, p, n);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		p += put;
		n -= (size_t)put;
	}
	return true;
}

static void write_beside(const struct dp_debug_key *key, const struct dp_buf *b)
{
	char temporary[PATH_MAX + 16];
	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", key->path);
	dp_auto_close int fd = make_dir() ? mkostemp(temporary, O_CLOEXEC) : -1; /* mode 0600 */
	if (fd >= 0 && (!write_all(fd, b->data, b->len) || rename(temporary, key->path)))
		unlink(temporary);
}

void dp_debug_cache_store(const struct dp_debug_key *key, Elf *elf)
{
	struct dp_buf b;
	dp_buf_init(&b);
	if (put_elf(&b, elf)) {
		struct tail t = {.magic = CACHE_MAGIC, .version = CACHE_VERSION};
		memcpy(t.source, key->source, sizeof(t.source));
		align(&b);
		t.size = b.len;
		dp_buf_put(&b, &t, offsetof(struct tail, checksum));
		t.checksum = b.failed ? 0 : checksum_of(b.data, b.len);
		dp_buf_put(&b, &t.checksum, sizeof(t.checksum));
		if (!b.failed)
			write_beside(key, &b);
	}
	dp_buf_fini(&b);
}
