/* SPDX-License-Identifier: MIT */
#include "probes/image/maps.h"

#include <stdlib.h>
#include <string.h>

/* Reads a number (at most 16 digits in base 16, 19 in base 10, so it cannot overflow) and the character `end` after it. */
static bool number(const char **p, unsigned base, char end, uint64_t *ret)
{
	uint64_t value = 0;
	int digits = 0;
	for (;; (*p)++, digits++) {
		unsigned c = (unsigned char)**p, digit;
		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if (c >= 'a' && c <= 'f')
			digit = c - 'a' + 10;
		else
			break;
		if (digit >= base || digits >= (base == 16 ? 16 : 19))
			return false;
		value = value * base + digit;
	}
	if (!digits || **p != end)
		return false;
	(*p)++;
	*ret = value;
	return true;
}

static bool permissions(const char **p, struct dp_map *m)
{
	const char *s = *p;
	if (strspn(s, "rwxsp-") != 4 || s[4] != ' ')
		return false;
	m->read = s[0] == 'r';
	m->write = s[1] == 'w';
	m->exec = s[2] == 'x';
	m->shared = s[3] == 's';
	*p = s + 5;
	return true;
}

/* The inode is followed by a newline, the end of the text, or spaces and the path. */
static bool inode(const char **p, struct dp_map *m)
{
	size_t digits = strspn(*p, "0123456789");
	if (!digits || digits > 20)
		return false;
	m->inode = strtoull(*p, NULL, 10);
	*p += digits;
	if (**p != ' ')
		return **p == '\n' || **p == '\0';
	*p += strspn(*p, " ");
	return true;
}

static bool line(const char **p, struct dp_map *m)
{
	uint64_t major, minor;
	if (!number(p, 16, '-', &m->start.v) || !number(p, 16, ' ', &m->end.v) || !permissions(p, m) ||
	    !number(p, 16, ' ', &m->offset) || !number(p, 16, ':', &major) || !number(p, 16, ' ', &minor) || !inode(p, m))
		return false;
	m->dev_major = (uint32_t)major;
	m->dev_minor = (uint32_t)minor;
	size_t n = strcspn(*p, "\n");
	m->path = strndup(*p, n);
	*p += n;
	if (**p == '\n')
		(*p)++;
	return m->path && m->start.v < m->end.v;
}

static size_t count_lines(const char *text)
{
	size_t n = 1;
	while ((text = strchr(text, '\n')))
		n++, text++;
	return n;
}

struct dp_error *dp_maps_parse(const char *text, struct dp_maps *ret)
{
	struct dp_maps maps = {.map = calloc(count_lines(text), sizeof(*maps.map))};
	if (!maps.map)
		return dp_error_nomem();
	while (*text) {
		struct dp_map *m = &maps.map[maps.n];
		const char *start = text;
		bool good = line(&text, m) && (!maps.n || m[-1].end.v <= m->start.v);
		maps.n += m->path != NULL;
		if (!good) {
			size_t number = maps.n + !m->path;
			dp_maps_fini(&maps);
			return dp_error(DP_TAG_INTERNAL, "cannot parse line %zu of the target's memory map: '%.80s'", number,
			                start);
		}
	}
	*ret = maps;
	return NULL;
}

void dp_maps_fini(struct dp_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		free(maps->map[i].path);
	free(maps->map);
	*maps = (struct dp_maps){0};
}

const struct dp_map *dp_maps_at(const struct dp_maps *maps, dp_addr addr)
{
	size_t lo = 0, hi = maps->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (addr.v < maps->map[mid].start.v)
			hi = mid;
		else if (addr.v >= maps->map[mid].end.v)
			lo = mid + 1;
		else
			return &maps->map[mid];
	}
	return NULL;
}

char *dp_map_clean_path(const char *path, bool *changed)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(path), len = n;
	if (n > strlen(deleted) && !strcmp(path + n - strlen(deleted), deleted))
		len = n - strlen(deleted);
	char *clean = strndup(path, len), *to = clean;
	if (!clean)
		return NULL;
	for (const char *from = clean; *from; to++) {
		bool escape = !strncmp(from, "\\012", 4);
		*to = escape ? '\n' : *from;
		from += escape ? 4 : 1;
	}
	*to = '\0';
	*changed = strcmp(clean, path) != 0;
	return clean;
}
