/* SPDX-License-Identifier: MIT */
/* The pages of extents, against a plain array with one mark per byte. */
#include "helper_text.h"

#include "trampoline/space/extents.h"

#include <criterion/criterion.h>
#include <string.h>

#define BASE  UINT64_C(0x10000000)
#define PAGES 16
#define SIZE  (PAGES * 4096)
#define PUTS  64

struct put {
	size_t at, n;
};

struct model {
	struct dp_space *space;
	struct dp_pages *pages;
	bool used[SIZE];
	bool blocked[PAGES]; /* not free in the address space */
	uint8_t bytes[SIZE];
	struct put put[PUTS];
	size_t nputs;
};

static void init(struct model *m)
{
	memset(m, 0, sizeof(*m));
	cr_assert_null(dp_space_create(&m->space));
	cr_assert_null(dp_pages_create(m->space, &m->pages));
	for (size_t page = 3; page < PAGES; page += 5) {
		m->blocked[page] = true;
		cr_assert_null(dp_space_reserve(m->space, BASE + page * DP_PAGE, BASE + (page + 1) * DP_PAGE));
	}
}

static void fini(struct model *m)
{
	dp_pages_destroy(m->pages);
	dp_space_destroy(m->space);
}

static bool fits(const struct model *m, size_t at, size_t n)
{
	for (size_t i = at; i < at + n; i++)
		if (m->used[i] || m->blocked[i / 4096])
			return false;
	return true;
}

static bool ours(const struct model *m, size_t page)
{
	return memchr(m->used + page * 4096, true, 4096) != NULL;
}

static void step_put(struct model *m, uint64_t *seed)
{
	uint8_t bytes[700];
	size_t n = 1 + helper_random(seed) % sizeof(bytes), at = helper_random(seed) % (SIZE - n);
	memset(bytes, (int)(helper_random(seed) % 200), n);
	cr_assert_eq(dp_pages_fits(m->pages, BASE + at, n), fits(m, at, n), "+%zu %zu", at, n);
	if (m->nputs == PUTS || !fits(m, at, n))
		return;
	cr_assert_null(dp_pages_put(m->pages, BASE + at, bytes, n));
	memcpy(m->bytes + at, bytes, n);
	memset(m->used + at, true, n);
	m->put[m->nputs++] = (struct put){at, n};
}

/* Puts bytes over bytes that were put before: they are counted once. */
static void step_put_again(struct model *m, uint64_t *seed)
{
	uint8_t bytes[700];
	if (!m->nputs)
		return;
	struct put put = m->put[helper_random(seed) % m->nputs];
	memset(bytes, (int)(helper_random(seed) % 200), put.n);
	cr_assert_null(dp_pages_put(m->pages, BASE + put.at, bytes, put.n));
	memcpy(m->bytes + put.at, bytes, put.n);
}

static void step_drop(struct model *m, uint64_t *seed)
{
	if (!m->nputs)
		return;
	size_t i = helper_random(seed) % m->nputs;
	struct put put = m->put[i];
	dp_pages_drop(m->pages, BASE + put.at, put.n);
	memset(m->used + put.at, false, put.n);
	m->put[i] = m->put[--m->nputs];
}

static bool find(const struct model *m, size_t lo, size_t hi, size_t n, size_t *ret)
{
	for (size_t at = lo; at <= hi && at + n <= SIZE; at++)
		if (ours(m, at / 4096) && ours(m, (at + n - 1) / 4096) && fits(m, at, n)) {
			*ret = at;
			return true;
		}
	return false;
}

static void step_find(const struct model *m, uint64_t *seed)
{
	size_t lo = helper_random(seed) % (SIZE - 600), hi = lo + helper_random(seed) % 600, want = 0;
	size_t n = helper_random(seed) % 2 ? 5 : 14;
	uint64_t at = 0;
	bool found = find(m, lo, hi, n, &want);
	cr_assert_eq(dp_pages_find_used(m->pages, BASE + lo, BASE + hi, n, &at), found, "[+%zu, +%zu] %zu", lo, hi, n);
	cr_assert(!found || at == BASE + want, "[+%zu, +%zu] %zu: +%zu", lo, hi, n, at - BASE);
}

static void check_extents(struct model *m)
{
	const struct dp_extent *extent;
	size_t n = dp_pages_extents(m->pages, &extent), pages = 0, expected = 0;
	for (size_t i = 0; i < n; i++) {
		pages += extent[i].n / 4096;
		cr_assert(!i || extent[i].addr > extent[i - 1].addr + extent[i - 1].n, "ascending, merged");
		for (size_t k = 0; k < extent[i].n; k++) {
			size_t at = extent[i].addr - BASE + k;
			cr_assert_eq(extent[i].bytes[k], m->used[at] ? m->bytes[at] : 0xcc, "+%zu", at);
		}
	}
	for (size_t page = 0; page < PAGES; page++) {
		uint64_t addr = BASE + page * DP_PAGE;
		expected += ours(m, page);
		cr_assert_eq(dp_space_is_free(m->space, addr, addr + DP_PAGE), !ours(m, page) && !m->blocked[page]);
	}
	cr_assert_eq(pages, expected);
}

Test(extents, agree_with_an_array_of_bytes)
{
	static struct model m;
	uint64_t seed = 99;
	init(&m);
	for (int i = 0; i < 3000; i++) {
		if (helper_random(&seed) % 8 < 5)
			step_put(&m, &seed);
		else
			step_drop(&m, &seed);
		step_put_again(&m, &seed);
		if (i % 4 == 0)
			step_find(&m, &seed);
		if (i % 50 == 0)
			check_extents(&m);
	}
	while (m.nputs)
		step_drop(&m, &seed);
	check_extents(&m);
	fini(&m);
}
