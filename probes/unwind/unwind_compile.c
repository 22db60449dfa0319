/* SPDX-License-Identifier: MIT */
/* Compiles an image into the block of agent/unwind/unwind.h: the rows of every executable segment, with identical rules
 * merged. */
#include "probes/unwind/unwind_compile.h"
#include "probes/unwind/unwind_bare.h"
#include "probes/unwind/unwind_cache.h"
#include "probes/unwind/unwind_cfi.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { GENERATED_MAX = 1024 }; /* pieces of memory for generated code: what the tables say of them is a convenience */

struct part {                /* an executable segment */
	uint64_t start, end; /* in the target */
	struct dp_unwind_rows rows;
};

struct parts {
	struct part *part;
	size_t n, cap;
	struct dp_unwind_rows all; /* only the rules are used */
};

static struct dp_error *add_part(struct parts *parts, uint64_t start, uint64_t end, struct part **ret)
{
	if (parts->n == parts->cap) {
		size_t cap = parts->cap ? 2 * parts->cap : 32;
		struct part *part = realloc(parts->part, cap * sizeof(*part));

		if (!part)
			return dp_error_nomem();
		parts->part = part;
		parts->cap = cap;
	}
	*ret = &parts->part[parts->n++];
	memset(*ret, 0, sizeof(**ret));
	(*ret)->start = start;
	(*ret)->end = end;
	dp_unwind_rows_init(&(*ret)->rows);
	return NULL;
}

static void parts_fini(struct parts *parts)
{
	for (size_t i = 0; i < parts->n; i++)
		dp_unwind_rows_fini(&parts->part[i].rows);
	free(parts->part);
	dp_unwind_rows_fini(&parts->all);
}

struct how {
	const char *cache_dir;
	dp_unwind_follow follow;
};

/* Compiles with file addresses, so that the cached result is valid wherever the file is mapped. */
static struct dp_error *fill_part(struct dp_module *m, const struct how *how, struct part *part)
{
	uint64_t bias = (uint64_t)dp_module_bias(m);
	struct dp_unwind_key key = {how->cache_dir, dp_module_build_id(m), part->start - bias, part->end - bias};
	struct dp_cfi_section section;
	dp_addr addr;

	if (dp_unwind_cache_load(&key, &part->rows))
		return NULL;
	if (dp_module_eh_frame(m, &addr, &section.bytes, &section.size)) {
		section.addr = addr.v - bias;
		if (!dp_cfi_compile(&section, key.start, key.end, &part->rows))
			return dp_error_nomem();
	} else if (!how->follow) {
		return NULL;
	}
	if (how->follow && !dp_unwind_bare(m, key.start, key.end, how->follow, &part->rows))
		return dp_error_nomem();
	dp_unwind_cache_store(&key, &part->rows);
	return NULL;
}

static struct dp_error *add_module(struct parts *parts, struct dp_module *m, const struct how *how)
{
	size_t nsegments = dp_module_nsegments(m);

	for (size_t i = 0; i < nsegments; i++) {
		const uint8_t *bytes;
		struct part *part;
		dp_addr addr;
		size_t n;
		bool exec;

		if (!dp_module_segment(m, i, &addr, &bytes, &n, &exec) || !exec || !n)
			continue;
		DP_TRY(add_part(parts, addr.v, addr.v + n, &part));
		DP_TRY(fill_part(m, how, part));
	}
	return NULL;
}

/* Memory without a file: the program generates code in it. Returns false if there is no memory for the row. */
static bool mark_generated(struct part *part)
{
	static const struct dp_unwind_row generated = {.kind = DP_UNWIND_NONE, .flags = DP_UNWIND_GENERATED};

	dp_unwind_rows_add(&part->rows, 0, dp_unwind_rows_intern(&part->rows, &generated));
	return !part->rows.failed;
}

static bool is_anonymous(const struct dp_map *map)
{
	return !map->path[0] || !strncmp(map->path, "[anon", 5);
}

/* Adds code of files that could not be read, and memory for generated code, because frame pointers may lead through them. */
static struct dp_error *add_other_code(struct parts *parts, const struct dp_image *image)
{
	size_t known = parts->n, generated = 0;

	for (size_t i = 0; i < dp_image_nmaps(image); i++) {
		const struct dp_map *map = dp_image_map(image, i);
		const bool anonymous = is_anonymous(map);
		struct part *part;
		bool covered = !map->exec || !(anonymous ? generated < GENERATED_MAX : map->path[0] == '/');

		for (size_t j = 0; j < known && !covered; j++)
			covered = parts->part[j].start < map->end.v && map->start.v < parts->part[j].end;
		if (covered)
			continue;
		DP_TRY(add_part(parts, map->start.v, map->end.v, &part));
		generated += anonymous;
		if (anonymous && !mark_generated(part))
			return dp_error_nomem();
	}
	return NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* The agent's binary search needs ascending ranges that do not overlap. */
static void order(struct parts *parts)
{
	size_t n = 0;

	if (parts->n)
		qsort(parts->part, parts->n, sizeof(*parts->part), by_start);
	for (size_t i = 0; i < parts->n; i++) {
		if (n && parts->part[i].start < parts->part[n - 1].end)
			dp_unwind_rows_fini(&parts->part[i].rows);
		else
			parts->part[n++] = parts->part[i];
	}
	parts->n = n;
}

static size_t pcs_size(const struct part *part)
{
	return part->rows.n * sizeof(uint32_t);
}

static size_t rows_size(const struct part *part)
{
	return (part->rows.n * sizeof(uint16_t) + 7) & ~(size_t)7;
}

static uint32_t rule_bit(uint8_t reg)
{
	if (reg >= 3 && reg <= 5)
		return 1u << (reg - 3 + DP_UNWIND_RBX);
	return reg >= 12 ? 1u << (reg - 12 + DP_UNWIND_R12) : 0;
}

/* The registers that `rule` uses. */
static uint32_t tracked_by(const struct dp_unwind_row *rule)
{
	uint32_t bits = rule_bit(rule->reg);

	if (rule->kind == DP_UNWIND_INDEX)
		bits |= rule_bit(rule->index);
	for (int i = 0; i < DP_UNWIND_NRULES; i++)
		if ((rule->rule[i] & 7) == DP_UNWIND_IN_REG)
			bits |= rule_bit((uint8_t)(rule->rule[i] >> 3));
	return bits;
}

/* Replaces the part's rule numbers by those of the block. */
static struct dp_error *merge_rules(struct parts *parts, struct part *part)
{
	struct dp_unwind_rows *rows = &part->rows;
	uint16_t *number = calloc(rows->nrules, sizeof(*number));

	if (!number)
		return dp_error_nomem();
	for (size_t i = 0; i < rows->nrules; i++)
		number[i] = dp_unwind_rows_intern(&parts->all, &rows->rule[i]);
	for (size_t i = 0; i < rows->n; i++)
		rows->row[i] = rows->row[i] < rows->nrules ? number[rows->row[i]] : 0;
	free(number);
	return parts->all.failed ? dp_error_nomem() : NULL;
}

static size_t block_size(const struct parts *parts)
{
	size_t size = sizeof(struct dp_unwind) + parts->n * sizeof(struct dp_unwind_range) +
	              parts->all.nrules * sizeof(struct dp_unwind_row) + sizeof(struct dp_unwind_row);

	for (size_t i = 0; i < parts->n; i++)
		size += pcs_size(&parts->part[i]) + rows_size(&parts->part[i]) + 8;
	return size;
}

static void put_part(uint8_t *block, const struct part *part, struct dp_unwind_range *range, uint32_t *at)
{
	range->start = part->start;
	range->end = part->end;
	range->n = (uint32_t)part->rows.n;
	range->pc_offset = *at;
	memcpy(block + *at, part->rows.pc, pcs_size(part));
	*at += (uint32_t)pcs_size(part);
	range->row_offset = *at;
	memcpy(block + *at, part->rows.row, part->rows.n * sizeof(uint16_t));
	*at = (*at + (uint32_t)rows_size(part) + 7) & ~7u;
}

static void put_head(uint8_t *block, const struct parts *parts, size_t size)
{
	static atomic_uint generation;
	struct dp_unwind *head = (struct dp_unwind *)block;

	head->magic = DP_UNWIND_MAGIC;
	head->size = size;
	head->generation = atomic_fetch_add(&generation, 1) % (DP_UNWIND_GENERATIONS - 1) + 1;
	head->nranges = (uint32_t)parts->n;
	head->nrows = (uint32_t)parts->all.nrules;
	head->ranges_offset = sizeof(*head);
	head->rows_offset = (uint32_t)(sizeof(*head) + parts->n * sizeof(struct dp_unwind_range) + 31) & ~31u;
	for (size_t i = 0; i < parts->all.nrules; i++)
		head->tracked |= tracked_by(&parts->all.rule[i]);
}

static struct dp_error *build(const struct parts *parts, uint8_t **ret, size_t *ret_size)
{
	size_t size = block_size(parts);
	uint8_t *block = size <= UINT32_MAX ? calloc(1, size) : NULL;
	struct dp_unwind_range *ranges;
	struct dp_unwind *head;
	uint32_t at;

	if (!block)
		return dp_error_nomem();
	put_head(block, parts, size);
	head = (struct dp_unwind *)block;
	ranges = (struct dp_unwind_range *)(block + head->ranges_offset);
	at = head->rows_offset;
	memcpy(block + at, parts->all.rule, parts->all.nrules * sizeof(struct dp_unwind_row));
	at += (uint32_t)(parts->all.nrules * sizeof(struct dp_unwind_row));
	for (size_t i = 0; i < parts->n; i++)
		put_part(block, &parts->part[i], &ranges[i], &at);
	*ret = block;
	*ret_size = size;
	return NULL;
}

static struct dp_error *compile(struct parts *parts, struct dp_image *image, const struct how *how)
{
	for (size_t i = 0; i < dp_image_nmodules(image); i++)
		DP_TRY(add_module(parts, dp_image_module(image, i), how));
	DP_TRY(add_other_code(parts, image));
	order(parts);
	for (size_t i = 0; i < parts->n; i++)
		DP_TRY(merge_rules(parts, &parts->part[i]));
	return NULL;
}

struct dp_error *dp_unwind_compile(struct dp_image *image, const char *cache_dir, dp_unwind_follow follow, uint8_t **ret,
                                   size_t *size)
{
	const struct how how = {cache_dir, follow};
	struct parts parts = {0};
	struct dp_error *err;

	dp_unwind_rows_init(&parts.all);
	err = compile(&parts, image, &how);
	if (!err)
		err = build(&parts, ret, size);
	parts_fini(&parts);
	return err;
}
