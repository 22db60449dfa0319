/* SPDX-License-Identifier: MIT */
/* The index of stubs gives the same results as the installation. A missing pc would let a stub be unmapped under a thread. */
#include "injector/patch/quiesce/code_index.h"
#include "injector/patch/restore.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>

#define REGIONS 5
#define SITES   6

static struct dp_region region[REGIONS] = {
        {.addr = 0x9000, .size = 0x1000, .prot = PROT_READ | PROT_EXEC, .mapped = true},
        {.addr = 0x2000, .size = 0x1000, .prot = PROT_READ | PROT_EXEC, .mapped = true},
        {.addr = 0x3000, .size = 0x2000, .prot = PROT_READ | PROT_EXEC, .mapped = true},
        {.addr = 0x6000, .size = 0x1000, .prot = PROT_READ | PROT_WRITE, .mapped = true},
        {.addr = 0x7000, .size = 0x1000, .prot = PROT_READ | PROT_EXEC, .mapped = false},
};
static struct dp_placed site[SITES];
static struct dp_installation in = {.region = region, .nregions = REGIONS, .placed = site, .nplaced = SITES};

static struct dp_code_index *make(void)
{
	struct dp_code_index *x = dp_code_index_create(&in);
	cr_assert(x);
	return x;
}

Test(code_index, a_pc_in_a_stub_is_found_and_one_beside_it_is_not)
{
	struct dp_code_index *x = make();
	for (uint64_t pc = 0x1ff0; pc < 0xa010; pc++)
		cr_assert_eq(dp_code_index_holds(x, pc), dp_installation_holds(&in, pc), "0x%lx", (unsigned long)pc);
	cr_assert(dp_code_index_holds(x, 0x2fff));
	cr_assert_not(dp_code_index_holds(x, 0x5000));
	dp_code_index_destroy(x);
}

Test(code_index, a_hidden_jump_is_found_although_it_lies_in_no_region)
{
	site[3].npairs = 2;
	site[3].pair[0] = (struct dp_pc_pair){.stub = 0x2010, .original = 0x400100};
	site[3].pair[1] = (struct dp_pc_pair){.stub = 0x400105, .original = 0x400100};
	struct dp_code_index *x = make();
	cr_assert_eq(dp_code_index_pair(x, 0x400105), &site[3].pair[1]);
	cr_assert_eq(dp_code_index_pair(x, 0x2010), &site[3].pair[0]);
	cr_assert_eq(dp_code_index_pair(x, 0x400106), NULL);
	dp_code_index_destroy(x);
}

#define MANY 600

static void fill(struct dp_placed *many) /* neighbours, some at one address, and short jumps between them */
{
	for (size_t i = 0; i < MANY; i++)
		many[i] = (struct dp_placed){.addr = 0x400000 + i * 7919 % 499,
		                             .len = i % 3 ? (uint8_t)(1 + i % 15) : 2,
		                             .new_bytes = {i % 3 ? 0xe9 : 0xeb, (uint8_t)(i * 37)}};
}

/* The same for any order of the indices. */
static uint64_t sum_of(struct dp_near near)
{
	uint64_t sum = 0;
	for (size_t k; (k = dp_near_next(&near)) != SIZE_MAX;)
		sum += (k + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 13;
	return sum;
}

static bool is_among(struct dp_near near, size_t i)
{
	size_t k;
	while ((k = dp_near_next(&near)) != SIZE_MAX && k != i)
		;
	return k == i;
}

Test(code_index, sites_near_an_address_are_the_same_with_an_index_and_without_one)
{
	static struct dp_placed many[MANY];
	struct dp_installation with = {.placed = many, .nplaced = MANY};
	const struct dp_installation without = with;
	fill(many);
	dp_installation_index(&with);
	cr_assert(with.index);
	for (uint64_t at = 0x400000 - 200; at < 0x400000 + 700; at++) {
		cr_assert_eq(sum_of(dp_near(&with, at, at + 9)), sum_of(dp_near(&without, at, at + 9)), "0x%lx", at);
		cr_assert_eq(sum_of(dp_near_leading(&with, at, at + 5)), sum_of(dp_near_leading(&without, at, at + 5)), "0x%lx",
		             at);
		for (size_t i = 0; i < MANY; i += 13) {
			cr_assert_eq(dp_near_before(&with, at, 5, i), dp_near_before(&without, at, 5, i), "0x%lx, %zu", at, i);
			cr_assert_eq(dp_near_after(&with, at, 5, i), dp_near_after(&without, at, 5, i), "0x%lx, %zu", at, i);
		}
	}
	dp_code_index_destroy(with.index);
}

/* The index returns every site with a byte in the range, and every site whose jump leads there. */
Test(code_index, no_site_that_matters_is_left_out)
{
	static struct dp_placed many[MANY];
	struct dp_installation in_many = {.placed = many, .nplaced = MANY};
	fill(many);
	dp_installation_index(&in_many);
	for (size_t i = 0; i < MANY; i++)
		for (size_t k = 0; k < MANY; k++) {
			const struct dp_placed *p = &many[i], *q = &many[k];
			if (p->addr < q->addr + q->len && q->addr < p->addr + p->len)
				cr_assert(is_among(dp_near_bytes(&in_many, p->addr, p->len), k), "%zu and %zu", i, k);
			if (dp_placed_leads_into(q, p))
				cr_assert(is_among(dp_near_leading(&in_many, p->addr, p->addr + p->len), k), "%zu into %zu", k,
				          i);
		}
	dp_code_index_destroy(in_many.index);
}

Test(code_index, nothing_installed_holds_nothing)
{
	const struct dp_installation none = {0};
	struct dp_code_index *x = dp_code_index_create(&none);
	cr_assert(x);
	cr_assert_not(dp_code_index_holds(x, 0));
	cr_assert_not(dp_code_index_holds(x, UINT64_MAX));
	dp_code_index_destroy(x);
}
