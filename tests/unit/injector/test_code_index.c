/* SPDX-License-Identifier: MIT */
/* What is asked of an index of stubs is answered as by the installation itself: a pc missed there is a stub unmapped under a
 * thread. */
#include "injector/code_index.h"

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
	cr_assert_eq(dp_code_index_hidden(x, 0x400105), &site[3].pair[1]);
	cr_assert_eq(dp_code_index_hidden(x, 0x400106), NULL);
	dp_code_index_destroy(x);
}

Test(code_index, sites_that_share_a_byte_are_not_alone)
{
	static const uint64_t at[SITES] = {0x400100, 0x400010, 0x40001e, 0x400110, 0x400200, 0x400200};
	for (size_t i = 0; i < SITES; i++)
		site[i] = (struct dp_placed){.addr = at[i], .len = 15};
	struct dp_code_index *x = make();
	for (size_t i = 0; i < SITES; i++)
		for (size_t k = 0; k < SITES; k++)
			if (i != k && at[i] < at[k] + 15 && at[k] < at[i] + 15)
				cr_assert_not(dp_code_index_alone(x, i), "%zu and %zu", i, k);
	cr_assert(dp_code_index_alone(x, 0));
	cr_assert(dp_code_index_alone(x, 3));
	dp_code_index_destroy(x);
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
