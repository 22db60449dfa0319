/* SPDX-License-Identifier: MIT */
#include "helper_world.h"

#include "trampoline/arch/x86_64/decode/decode.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct dp_fields no_fields;
static const struct dp_runtime runtime = {
        .agent = 0x10000000,
        .acquire = 0x10100000,
        .read = 0x10100100,
        .string = 0x10100200,
        .backtrace = 0x10100300,
        .park = 0x10100380,
        .finish = 0x10100400,
        .tid_offset = 0x2d0,
};

void world_init(struct world *w, const struct helper_module *m)
{
	memset(w, 0, sizeof(*w));
	cr_assert_null(dp_space_create(&w->space));
	for (size_t i = 0; i < m->text.nsegments; i++)
		cr_assert_null(dp_space_reserve(w->space, m->segment[i].addr, m->segment[i].addr + m->segment[i].n));
	cr_assert_null(dp_planner_create(w->space, &runtime, &w->planner));
	w->request = (struct dp_request){.text = &m->text, .fields = &no_fields, .lost = 0x20000000};
}

void world_fini(struct world *w)
{
	dp_planner_destroy(w->planner);
	dp_space_destroy(w->space);
}

void world_freeze(struct world *w)
{
	w->nextents = dp_planner_extents(w->planner, &w->extent);
}

const uint8_t *world_placed(const struct world *w, uint64_t addr, size_t *n)
{
	for (size_t i = 0; i < w->nextents; i++)
		if (addr >= w->extent[i].addr && addr - w->extent[i].addr < w->extent[i].n) {
			*n = w->extent[i].n - (addr - w->extent[i].addr);
			return w->extent[i].bytes + (addr - w->extent[i].addr);
		}
	return NULL;
}

uint64_t world_follow(const uint8_t *bytes, size_t n, uint64_t addr)
{
	struct dp_insn insn;
	cr_assert(bytes && dp_decode_zydis(bytes, n, addr, &insn), "no instruction at 0x%lx", addr);
	if (insn.flow == DP_FLOW_JMP_IND && insn.disp_at && n >= 14) {
		uint64_t target;
		memcpy(&target, bytes + 6, sizeof(target));
		return target;
	}
	cr_assert_eq(insn.flow, DP_FLOW_JMP, "no jump at 0x%lx", addr);
	return insn.target;
}

uint64_t world_follow_placed(const struct world *w, uint64_t addr)
{
	size_t n = 0;
	const uint8_t *bytes = world_placed(w, addr, &n);
	return world_follow(bytes, n, addr);
}
