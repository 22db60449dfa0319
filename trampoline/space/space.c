/* SPDX-License-Identifier: MIT */
/*
 * The free addresses of a target, as the sorted list of taken ranges. Neighbouring ranges are merged, so two entries always have
 * room between them. The list stays short (mappings plus our own pages): array and binary search are enough.
 */
#include "trampoline/space/space.h"

#include <stdlib.h>
#include <string.h>

#define LOWEST       UINT64_C(0x10000)        /* vm.mmap_min_addr of every distribution */
#define HIGHEST      UINT64_C(0x7ffffffff000) /* 47 bits less the guard page */
#define MIB          UINT64_C(0x100000)
#define HEAP_GROWTH  (256 * MIB)
#define HEAP_RANDOM  (1024 * MIB) /* how far after bss a kernel may place a heap that does not exist yet */
#define STACK_GROWTH (16 * MIB)

struct range {
	uint64_t start, end;
};

struct dp_space {
	struct range *taken;
	size_t n, cap;
};

struct dp_error *dp_space_create(struct dp_space **ret)
{
	struct dp_space *space = calloc(1, sizeof(*space));
	if (!space)
		return dp_error_nomem();
	struct dp_error *err = dp_space_reserve(space, 0, LOWEST);
	if (!err)
		err = dp_space_reserve(space, HIGHEST, UINT64_MAX);
	if (err) {
		dp_space_destroy(space);
		return err;
	}
	*ret = space;
	return NULL;
}

struct dp_space *dp_space_destroy(struct dp_space *space)
{
	if (space)
		free(space->taken);
	free(space);
	return NULL;
}

/* Index of the first taken range that ends after `addr`. */
static size_t first_behind(const struct dp_space *space, uint64_t addr)
{
	size_t lo = 0, hi = space->n;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (space->taken[mid].end > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* Makes room for an entry at `i`. */
static bool insert(struct dp_space *space, size_t i)
{
	if (space->n == space->cap) {
		size_t cap = space->cap ? 2 * space->cap : 64;
		struct range *grown = realloc(space->taken, cap * sizeof(*grown));
		if (!grown)
			return false;
		space->taken = grown;
		space->cap = cap;
	}
	memmove(&space->taken[i + 1], &space->taken[i], (space->n - i) * sizeof(*space->taken));
	space->n++;
	return true;
}

struct dp_error *dp_space_reserve(struct dp_space *space, uint64_t start, uint64_t end)
{
	start = dp_page_down(start);
	end = end > UINT64_MAX - DP_PAGE ? UINT64_MAX : dp_page_up(end);
	if (start >= end)
		return NULL;
	size_t from = first_behind(space, start ? start - 1 : 0), to = from;
	struct range merged = {start, end};
	for (; to < space->n && space->taken[to].start <= end; to++) {
		if (space->taken[to].start < merged.start)
			merged.start = space->taken[to].start;
		if (space->taken[to].end > merged.end)
			merged.end = space->taken[to].end;
	}
	if (to == from && !insert(space, from))
		return dp_error_nomem();
	if (to > from + 1) {
		memmove(&space->taken[from + 1], &space->taken[to], (space->n - to) * sizeof(*space->taken));
		space->n -= to - from - 1;
	}
	space->taken[from] = merged;
	return NULL;
}

bool dp_space_release(struct dp_space *space, uint64_t start, uint64_t end)
{
	size_t i = first_behind(space, start);
	if (i == space->n || space->taken[i].start > start || space->taken[i].end < end)
		return false;
	struct range old = space->taken[i];
	if (old.start < start && old.end > end) {
		if (!insert(space, i))
			return false;
		space->taken[i].end = start;
		space->taken[i + 1].start = end;
	} else if (old.start < start) {
		space->taken[i].end = start;
	} else if (old.end > end) {
		space->taken[i].start = end;
	} else {
		memmove(&space->taken[i], &space->taken[i + 1], (space->n - i - 1) * sizeof(*space->taken));
		space->n--;
	}
	return true;
}

bool dp_space_is_free(const struct dp_space *space, uint64_t start, uint64_t end)
{
	size_t i = first_behind(space, start);
	return start < end && (i == space->n || space->taken[i].start >= end);
}

/* The place for `size` bytes nearest to `near`, in the gap before taken range `i`, cut to [lo, hi). */
static bool fit_gap(const struct dp_space *space, size_t i, struct range limit, uint64_t near, uint64_t size, uint64_t *ret)
{
	uint64_t lo = i ? space->taken[i - 1].end : 0;
	uint64_t hi = i < space->n ? space->taken[i].start : UINT64_MAX - DP_PAGE + 1;
	if (lo < limit.start)
		lo = limit.start;
	if (hi > limit.end)
		hi = limit.end;
	if (lo >= hi || hi - lo < size)
		return false;
	uint64_t at = dp_page_down(near);
	if (at < lo)
		at = lo;
	if (at > hi - size)
		at = hi - size;
	*ret = at;
	return true;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

bool dp_space_find(const struct dp_space *space, uint64_t lo, uint64_t hi, uint64_t near, uint64_t size, uint64_t *ret)
{
	struct range limit = {lo > UINT64_MAX - DP_PAGE ? lo : dp_page_up(lo), dp_page_down(hi)};
	uint64_t below = 0, above = 0;
	bool has_below = false, has_above = false;
	if (limit.start >= limit.end || !size)
		return false;
	if (near < limit.start)
		near = limit.start;
	if (near > limit.end)
		near = limit.end;
	size = dp_page_up(size);
	size_t middle = first_behind(space, near); /* the gap before it contains `near` or is above */
	if (middle < space->n && space->taken[middle].start <= near)
		middle++;
	for (size_t i = middle; i <= space->n && !has_above; i++) {
		if (i && space->taken[i - 1].end >= limit.end)
			break;
		has_above = fit_gap(space, i, limit, near, size, &above);
	}
	for (size_t i = middle; i-- > 0 && !has_below;) {
		if (space->taken[i].start <= limit.start)
			break;
		has_below = fit_gap(space, i, limit, near, size, &below);
	}
	if (!has_below && !has_above)
		return false;
	bool lower = has_below && (!has_above || distance(below + size, near) <= distance(above, near));
	*ret = lower ? below : above;
	return true;
}

bool dp_space_alloc(struct dp_space *space, uint64_t lo, uint64_t hi, uint64_t near, uint64_t size, uint64_t *ret)
{
	uint64_t at;
	if (!dp_space_find(space, lo, hi, near, size, &at))
		return false;
	struct dp_error *err = dp_space_reserve(space, at, at + dp_page_up(size));
	if (err) {
		dp_error_destroy(err);
		return false;
	}
	*ret = at;
	return true;
}

/* A mapping, with the room into which it may grow. */
static struct dp_error *reserve_map(struct dp_space *space, const struct dp_map *map, bool *heap)
{
	uint64_t start = map->start.v, end = map->end.v;
	if (!strcmp(map->path, "[heap]")) {
		*heap = true;
		end = dp_saturating_add(end, HEAP_GROWTH);
	} else if (!strncmp(map->path, "[stack", strlen("[stack"))) {
		start = dp_saturating_sub(start, STACK_GROWTH);
	}
	return dp_space_reserve(space, start, end);
}

/* No [heap] yet: it will start where the kernel says, or, if that is unknown, somewhere after the executable's bss. */
static struct dp_error *reserve_future_heap(struct dp_space *space, const struct dp_image *image)
{
	const uint64_t start = dp_image_heap_start(image);
	uint64_t end = 0;
	if (start)
		return dp_space_reserve(space, start, dp_saturating_add(start, HEAP_GROWTH));
	if (!dp_image_nmodules(image))
		return NULL;
	struct dp_module *exe = dp_image_module(image, 0);
	for (size_t i = 0; i < dp_image_nmaps(image); i++) {
		const struct dp_map *map = dp_image_map(image, i);
		bool bss = end && map->start.v == end && !*map->path;
		if (bss || dp_image_module_at((struct dp_image *)image, map->start) == exe)
			end = map->end.v;
	}
	return end ? dp_space_reserve(space, end, end + HEAP_RANDOM + HEAP_GROWTH) : NULL;
}

static struct dp_error *reserve_image(struct dp_space *space, const struct dp_image *image)
{
	bool heap = false;
	for (size_t i = 0; i < dp_image_nmaps(image); i++)
		DP_TRY(reserve_map(space, dp_image_map(image, i), &heap));
	return heap ? NULL : reserve_future_heap(space, image);
}

struct dp_error *dp_space_from_image(const struct dp_image *image, struct dp_space **ret)
{
	struct dp_space *space;
	DP_TRY(dp_space_create(&space));
	struct dp_error *err = reserve_image(space, image);
	if (err) {
		dp_space_destroy(space);
		return err;
	}
	*ret = space;
	return NULL;
}
