/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/emit/springboard.h"

#include "trampoline/arch/x86_64/asm/encode.h"

#define LOW16 UINT32_C(0xffff)
#define BLOCK INT64_C(0x10000)
#define NEAR  INT64_C(0x70000000)

struct search {
	struct dp_room *room;
	const struct dp_rel *rel;
	uint64_t entry;
	dp_room_fn accept;
	void *data;
};

bool dp_rel_reaches(const struct dp_rel *rel, uint64_t target)
{
	return dp_reaches(rel->end, target) && ((uint32_t)(target - rel->end) & rel->mask) == rel->value;
}

/* The stub that it leads to may change: reserves the longer form if the stub is far away. */
static uint8_t size_at(uint64_t at, uint64_t entry)
{
	const int64_t distance = (int64_t)(entry - at);
	return distance > -NEAR && distance < NEAR ? DP_JMP_NEAR : DP_JMP_FAR;
}

static bool is_taken(const struct dp_room *room, uint64_t at, uint8_t size)
{
	for (uint8_t i = 0; i < room->ntaken; i++)
		if (at < room->taken[i].at + room->taken[i].size && room->taken[i].at < at + size)
			return true;
	return false;
}

/* Not at the end of a page: see DP_PC_READ. */
static bool may_be_read(uint64_t at)
{
	return DP_PAGE - (at & (DP_PAGE - 1)) >= DP_PC_READ;
}

/* With the first `unused` bytes known to be unused in our pages. */
static bool try_unused(const struct search *s, uint64_t at, uint8_t unused)
{
	uint8_t size = size_at(at, s->entry);
	if (!s->room->budget)
		return false;
	s->room->budget--;
	return may_be_read(at) && !is_taken(s->room, at, size) && (size <= unused || dp_pages_fits(s->room->pages, at, size)) &&
	       s->accept(s->data, at, size);
}

static bool try_at(const struct search *s, uint64_t at)
{
	return try_unused(s, at, 0);
}

/*
 * Any place in a range, rather than the first: the bytes chosen here may become the upper bytes of the jump before it, if that
 * jump is placed too, and with zeros there it could not reach any free address.
 */
static uint64_t anywhere(const struct search *s, uint64_t n)
{
	return ((s->rel->end + s->room->variant) * UINT64_C(0x9e3779b97f4a7c15) >> 24) % n;
}

/* ---- our own pages -------------------------------------------------------------------------------------------------------- */

/* Contiguous targets in page `i`. If a springboard found in this search is in the way at the lowest place, continues after it. */
static bool used_from(const struct search *s, size_t i, uint64_t lo, uint64_t hi)
{
	uint8_t size = size_at(lo, s->entry);
	for (uint64_t at = 0; lo <= hi && dp_pages_find_in(s->room->pages, i, lo, hi, size, &at); lo = at + 1)
		if (!is_taken(s->room, at, size))
			return try_unused(s, at, size);
	return false;
}

static bool used_range(const struct search *s, size_t i, uint64_t lo, uint64_t hi)
{
	uint64_t middle = lo + anywhere(s, hi - lo + 1);
	return used_from(s, i, middle, hi) || (middle > lo && used_from(s, i, lo, middle - 1));
}

static bool try_step(const struct search *s, size_t i, uint64_t at)
{
	const uint8_t size = size_at(at, s->entry);
	uint64_t found;
	if (size > DP_JMP_NEAR && !dp_pages_find_in(s->room->pages, i, at, at, size, &found))
		return false;
	return try_unused(s, at, size);
}

/* The same, if the lowest byte is fixed. First looks for the smallest size of a springboard. */
static bool used_steps(const struct search *s, size_t i, int64_t lo, int64_t hi)
{
	const struct dp_rel *rel = s->rel;
	const int64_t step = rel->mask & 0xff00 ? LOW16 + 1 : 0x100, low = rel->value & (step - 1);
	const int64_t first = lo + ((low - lo) & (step - 1));
	if (first > hi)
		return false;
	const uint16_t unused = dp_pages_unused(s->room->pages, i, rel->end + (uint64_t)first, DP_JMP_NEAR);
	for (int64_t r = first; unused && r <= hi && s->room->budget; r += step) {
		if (unused >> ((r - first) / 0x100) & 1 && ((uint32_t)r & rel->mask) == rel->value &&
		    try_step(s, i, rel->end + (uint64_t)r))
			return true;
	}
	return false;
}

/* Targets lo..hi of page `i`, whose rel32 have the same upper half. */
static bool used_part(const struct search *s, size_t i, int64_t lo, int64_t hi)
{
	const struct dp_rel *rel = s->rel;
	if (((uint32_t)lo & rel->mask & ~LOW16) != (rel->value & ~LOW16))
		return false;
	if (!(rel->mask & LOW16))
		return used_range(s, i, rel->end + (uint64_t)lo, rel->end + (uint64_t)hi);
	if (!(rel->mask & 0xff)) {
		int64_t from = (lo & ~(int64_t)LOW16) | (rel->value & 0xff00), to = from | 0xff;
		from = from < lo ? lo : from;
		to = to > hi ? hi : to;
		return from <= to && used_range(s, i, rel->end + (uint64_t)from, rel->end + (uint64_t)to);
	}
	return used_steps(s, i, lo, hi);
}

static bool used_page(const struct search *s, size_t i)
{
	int64_t lo = (int64_t)(dp_pages_addr(s->room->pages, i) - s->rel->end), hi = lo + (int64_t)DP_PAGE - 1;
	if (lo < INT32_MIN)
		lo = INT32_MIN;
	if (hi > INT32_MAX)
		hi = INT32_MAX;
	if (lo > hi)
		return false;
	int64_t middle = (lo | LOW16) + 1;
	if (middle > hi)
		return used_part(s, i, lo, hi);
	return used_part(s, i, lo, middle - 1) || used_part(s, i, middle, hi);
}

/* The pages that can contain a target, by the rel32's upper bytes. False if there are none. */
static bool used_range_of(const struct dp_room *room, const struct dp_rel *rel, size_t *first, uint64_t *last)
{
	const uint32_t top = rel->mask >> 16 == 0xffff ? 0xffff : 0xffffff, high = ~top;
	bool known = (rel->mask & high) == high;
	int64_t lo = known ? (int32_t)(rel->value & high) : INT32_MIN, hi = known ? lo + top : INT32_MAX;
	if ((int64_t)rel->end + hi < 0)
		return false;
	*first = dp_pages_from(room->pages, (int64_t)rel->end + lo < 0 ? 0 : rel->end + (uint64_t)lo);
	*last = rel->end + (uint64_t)hi;
	return *first < dp_pages_n(room->pages) && dp_pages_addr(room->pages, *first) <= *last;
}

static bool each_used(const struct search *s)
{
	const struct dp_pages *pages = s->room->pages;
	const struct dp_page_match match = {s->rel->end, s->rel->mask, s->rel->value};
	uint64_t last;
	size_t i;
	if (!used_range_of(s->room, s->rel, &i, &last))
		return false;
	const size_t end = dp_pages_from(pages, dp_saturating_add(last, DP_PAGE));
	for (i = dp_pages_match(pages, i, end, &match); i < end && s->room->budget; i = dp_pages_match(pages, i + 1, end, &match))
		if (used_page(s, i))
			return true;
	return false;
}

bool dp_room_possible(const struct dp_room *room, const struct dp_rel *rel)
{
	uint64_t last;
	size_t first;
	return room->fresh || used_range_of(room, rel, &first, &last);
}

/* ---- fresh pages ---------------------------------------------------------------------------------------------------------- */

/* Tries a fresh page in the range; else the range's ends, which may share a page with it. */
static bool fresh_range(const struct search *s, uint64_t lo, uint64_t hi)
{
	uint64_t at;
	if (dp_space_find(s->room->space, lo, dp_saturating_add(hi, 1), lo + anywhere(s, hi - lo + 1), DP_PAGE, &at))
		return try_at(s, at + anywhere(s, DP_PAGE - DP_JMP_FAR)) || try_at(s, at);
	if (try_at(s, lo) || (hi > lo && try_at(s, hi)))
		return true;
	at = dp_page_down(hi);
	return at > lo && at < hi && try_at(s, at);
}

/* The 64 KiB of targets from rel `base` on. */
static bool fresh_block(const struct search *s, int64_t base)
{
	const struct dp_rel *rel = s->rel;
	const uint64_t start = rel->end + (uint64_t)base;
	if ((int64_t)rel->end + base < 0)
		return false;
	if (!(rel->mask & LOW16))
		return fresh_range(s, start, start + LOW16);
	if (!(rel->mask & 0xff))
		return fresh_range(s, start + (rel->value & 0xff00), start + (rel->value & 0xff00) + 0xff);
	if (rel->mask & 0xff00)
		return try_at(s, start + (rel->value & LOW16));
	for (uint32_t high = 0; high < 0x10000; high += 0x1000) /* one per page */
		if (try_at(s, start + high + (rel->value & 0xff)))
			return true;
	return false;
}

/* The 16 MiB of targets from rel `base` on. */
static bool fresh_top(const struct search *s, int64_t base)
{
	const struct dp_rel *rel = s->rel;
	int64_t lowest = (int64_t)rel->end + base;
	uint64_t at;
	if (lowest + 0xffffff < 0)
		return false;
	if (rel->mask & 0xff0000)
		return fresh_block(s, base + (rel->value & 0xff0000));
	uint64_t start = lowest < 0 ? 0 : (uint64_t)lowest, near = start + anywhere(s, 0x1000000);
	if (!dp_space_find(s->room->space, start, (uint64_t)lowest + 0x1000000, near, DP_PAGE, &at))
		return false;
	if (!(rel->mask & 0xffffff))
		return fresh_range(s, start, (uint64_t)lowest + 0xffffff);
	int64_t first = (int64_t)(at - (uint64_t)lowest) & 0xff0000; /* where there is room */
	for (int64_t k = 0; k < 0x100 && s->room->budget; k++)
		if (fresh_block(s, base + ((first + k * BLOCK) & 0xff0000)))
			return true;
	return false;
}

/* Tries top bytes from the stub's own outwards: nearby addresses need fewer page tables. Other variants start anywhere. */
static bool each_fresh(const struct search *s)
{
	const struct dp_rel *rel = s->rel;
	const int64_t own = s->room->variant ? (int64_t)anywhere(s, 256) - 128 : (int64_t)(s->entry - rel->end) >> 24;
	if (rel->mask & 0xff000000)
		return fresh_top(s, (int32_t)(rel->value & 0xff000000));
	for (int64_t k = 0; k < 512 && s->room->budget; k++) {
		int64_t top = own + (k & 1 ? -(k + 1) / 2 : k / 2);
		if (top >= -128 && top <= 127 && fresh_top(s, top * 0x1000000))
			return true;
	}
	return false;
}

bool dp_room_each(struct dp_room *room, const struct dp_rel *rel, uint64_t entry, dp_room_fn accept, void *data)
{
	const struct search s = {room, rel, entry, accept, data};
	if (!room->budget)
		return false;
	if (room->variant && room->fresh)
		return each_fresh(&s) || each_used(&s);
	return each_used(&s) || (room->fresh && each_fresh(&s));
}

struct dp_error *dp_springboard_put(struct dp_pages *pages, uint64_t at, uint8_t size, uint64_t entry)
{
	uint8_t room[UINT8_MAX + 1]; /* so much that the buffer never allocates memory */
	struct dp_buf code = {.data = room, .cap = sizeof(room)};
	if (dp_jmp_size(at, entry) > size)
		return dp_error(DP_TAG_NO_SPACE, "the stub is out of reach of its springboard");
	dp_put_jmp(&code, at, entry);
	while (code.len < size)
		dp_put_u8(&code, DP_INT3);
	return dp_pages_put(pages, at, code.data, code.len);
}
