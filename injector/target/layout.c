/* SPDX-License-Identifier: MIT */
/*
 * The layout of everything in the target. The planner puts stubs and springboards near the code. Everything else goes far away
 * from code, heap and stacks, at a random address: the space within reach stays free for springboards, and an attacker finds no
 * fixed address.
 */
#include "agent/trap/trap.h"
#include "agent/unwind/apart.h"
#include "agent/unwind/unwind.h"
#include "injector/target/shared.h"

#include <asm/hwcap2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>

#define FAR_LOW    UINT64_C(0x010000000000)
#define FAR_HIGH   UINT64_C(0x500000000000)
#define NEAR_LOW   UINT64_C(0x10000000)
#define NEAR_HIGH  UINT64_C(0x7f000000)
#define NEAR_MOST  (UINT64_C(704) << 20)

struct dp_data_layout dp_data_layout(const struct dp_target *t)
{
	const struct dp_target_options *o = &t->options;
	struct dp_data_layout l = {0};
	l.lost = DP_LOST_OFFSET;
	l.sites = l.lost + t->nprobes * sizeof(struct dp_lost);
	l.gates = l.sites + (DP_PLANS_PER_REQUEST * (t->nprobes + t->cells.entries + t->trap.nhooks) + DP_OWN_SITES) *
	                            sizeof(struct dp_site_entry);
	l.slots = dp_page_up(l.gates + (o->gates ? t->nprobes * sizeof(uint32_t) : 0));
	uint64_t end = dp_page_up(l.slots + o->nslots * sizeof(struct dp_slot));
	if (o->need_unwind) {
		l.cache = end;
		end = dp_page_up(end + (uint64_t)o->nslots * DP_APART_TOP);
	}
	if (o->gates) {
		/*
		 * Two buffers, so that readers never see a half-written manifest: control->manifest_offset selects the valid one.
		 */
		l.manifest = (end + 2 * DP_MANIFEST_MAX - 1) & ~(UINT64_C(2) * DP_MANIFEST_MAX - 1);
		end = l.manifest + 2 * DP_MANIFEST_MAX;
	}
	uint64_t cells;
	dp_aggs_layout(t, &cells);
	l.rings = end;
	l.cells =
	        dp_page_up(end + (uint64_t)o->nslots * o->ring_size); /* last: its calls are at a fixed distance, in `private` */
	l.size = dp_page_up(l.cells + cells);
	return l;
}

uint64_t dp_private_memos(const struct dp_target *t)
{
	return dp_page_up(sizeof(struct dp_agent)) + dp_page_up(dp_aggs_private(t));
}

uint64_t dp_private_size(const struct dp_target *t)
{
	return dp_private_memos(t) + (t->options.need_unwind ? (uint64_t)t->options.nslots * DP_UNWIND_MEMO : 0);
}

uint64_t dp_trap_region_size(const struct dp_target *t)
{
	const size_t pairs = (size_t)DP_PLANS_PER_REQUEST * DP_PLAN_PAIRS;
	const size_t most = t->nprobes * (1 + DP_PLAN_FIXUPS + pairs) + t->trap.nhooks * pairs;
	return t->trap.wanted ? dp_page_up(sizeof(struct dp_trap) + most * sizeof(struct dp_fixup)) : 0;
}

uint64_t dp_target_gates(const struct dp_target *t)
{
	return t->options.gates && t->in.nregions ? t->in.region[DP_REGION_DATA].addr + dp_data_layout(t).gates : 0;
}

/*
 * Without this, a core file of the target would contain every page of the rings, used or not: writing it would take seconds and
 * allocate them all, which may kill the process before its core is written. With options.dump_ring they are few (fit.c). The code
 * of stubs and agent is included while it is small: a debugger shows threads in it.
 */
#define CORE_CODE_MOST (UINT64_C(512) << 10)

void dp_layout_cores(struct dp_installation *in, bool dump_ring)
{
	uint64_t code = 0;
	for (size_t i = 0; i < in->nregions; i++) {
		const bool is_code = in->region[i].prot & PROT_EXEC;
		code += is_code ? in->region[i].size : 0;
		in->region[i].no_core = is_code ? code > CORE_CODE_MOST : !dump_ring || i != DP_REGION_DATA;
	}
}

static uint64_t random_below(uint64_t limit)
{
	uint64_t r = 0;
	if (getrandom(&r, sizeof(r), GRND_NONBLOCK) != (ssize_t)sizeof(r))
		r = dp_now_ns() * DP_HASH_MULT;
	return dp_page_down(r % limit);
}

/* Counting is fastest if an instruction can address the cells absolutely: in the lowest 2 GiB. */
static bool place_low(const struct dp_target *t, struct dp_space *space, uint64_t size, uint64_t *ret)
{
	return t->cells.only && size <= NEAR_MOST &&
	       dp_space_alloc(space, NEAR_LOW, NEAR_HIGH, NEAR_LOW + random_below(NEAR_HIGH - NEAR_LOW - size), size, ret);
}

static bool place_far(struct dp_space *space, uint64_t size, uint64_t *ret)
{
	const uint64_t near = FAR_LOW + random_below(FAR_HIGH - FAR_LOW - (UINT64_C(1) << 40));
	return dp_space_alloc(space, FAR_LOW, FAR_HIGH, near, size, ret);
}

static struct dp_error *regions_create(struct dp_installation *in)
{
	dp_installation_fini(in);
	in->region = calloc(DP_REGION_FIXED, sizeof(*in->region));
	if (!in->region)
		return dp_error_nomem();
	in->nregions = DP_REGION_FIXED;
	return NULL;
}

/* One block: agent text, tables, trap table, data, private. An unmapped page keeps an overrun of one from reaching the next. */
static struct dp_error *place(struct dp_target *t, struct dp_space *space, size_t agent_size)
{
	struct dp_region *r = t->in.region;
	r[DP_REGION_TEXT] = (struct dp_region){.size = dp_page_up(agent_size), .prot = PROT_READ | PROT_EXEC};
	r[DP_REGION_TABLES] = (struct dp_region){.size = t->options.need_unwind ? DP_TABLES_MAX : 0, .prot = PROT_READ};
	r[DP_REGION_DATA] = (struct dp_region){.size = dp_data_layout(t).size, .prot = PROT_READ | PROT_WRITE};
	t->in.private = (struct dp_region){.size = dp_private_size(t), .prot = PROT_READ | PROT_WRITE};
	r[DP_REGION_TRAP] = (struct dp_region){.size = dp_trap_region_size(t), .prot = PROT_READ | PROT_WRITE, .copied = true};
	uint64_t text = r[DP_REGION_TEXT].size, tables = r[DP_REGION_TABLES].size, data = r[DP_REGION_DATA].size, base;
	const uint64_t trap = r[DP_REGION_TRAP].size;
	const uint64_t all = text + tables + trap + data + t->in.private.size + 4 * DP_PAGE;
	if (!place_low(t, space, all, &base) && !place_far(space, all, &base))
		return dp_error(DP_TAG_NO_SPACE, "no %llu MiB of free addresses for the rings; use a smaller --buffer-size",
		                (unsigned long long)(data >> 20));
	r[DP_REGION_TEXT].addr = base;
	r[DP_REGION_TABLES].addr = base + text + DP_PAGE;
	r[DP_REGION_TRAP].addr = r[DP_REGION_TABLES].addr + tables + DP_PAGE;
	r[DP_REGION_DATA].addr = r[DP_REGION_TRAP].addr + trap + DP_PAGE;
	t->in.private.addr = r[DP_REGION_DATA].addr + data; /* directly after it: recover.c looks for it there */
	return NULL;
}

#define STACK_MOST (UINT64_C(1) << 30) /* of an unlimited one */
#define STACK_GAP  (UINT64_C(1) << 20) /* which the kernel keeps below a stack */

/* Where the first thread's stack may grow to. Without randomization libraries and free pages are not far below it. */
static struct dp_error *reserve_stack(const struct dp_target *t, struct dp_space *space)
{
	struct rlimit limit;
	if (prlimit(t->process.alive, RLIMIT_STACK, NULL, &limit))
		return NULL;
	const uint64_t most = (limit.rlim_cur < STACK_MOST ? limit.rlim_cur : STACK_MOST) + STACK_GAP;
	for (size_t i = 0; t->image && i < dp_image_nmaps(t->image); i++) {
		const struct dp_map *map = dp_image_map(t->image, i);
		if (!strcmp(map->path, "[stack]") && map->end.v > most)
			return dp_space_reserve(space, map->end.v - most, map->end.v);
	}
	return NULL;
}

struct dp_error *dp_target_prepare(struct dp_target *t, struct dp_space *space, unsigned nprobes, struct dp_runtime *runtime,
                                   uint64_t *lost_base)
{
	struct dp_agent_image agent;
	if (t->installed)
		return dp_error(DP_TAG_LOCKED, "probes are already installed in %d", t->process.pid);
	DP_TRY(dp_agent_image_load(&agent));
	dp_shared_close(t);
	t->nprobes = nprobes;
	DP_TRY(dp_target_fit(t));
	DP_TRY(reserve_stack(t, space));
	DP_TRY(regions_create(&t->in));
	DP_TRY(place(t, space, agent.size));
	const uint64_t text = t->in.region[DP_REGION_TEXT].addr;
	struct dp_runtime rt = {
	        .agent = t->in.private.addr,
	        .acquire = text + agent.acquire,
	        .read = text + agent.read,
	        .string = text + agent.string,
	        .backtrace = text + agent.backtrace,
	        .apart = text + agent.apart,
	        .park = text + agent.park,
	        .finish = text + agent.finish,
	        .ask = text + agent.ask,
	        .faults = dp_target_faults_ready(t),
	};
	uint64_t unused;
	rt.cells = text + agent.cells;
	rt.keyed = text + agent.keyed;
	rt.stacked = text + agent.stacked;
	rt.stacked_apart = text + agent.stacked_apart;
	rt.stacked_done = text + agent.stacked_done;
	rt.decimal = text + agent.decimal;
	rt.answers = dp_aggs_layout(t, &unused);
	rt.answers.head = rt.answers.size ? t->in.region[DP_REGION_DATA].addr + dp_data_layout(t).cells : 0;
	if (t->cells.pairs)
		DP_TRY(dp_aggs_tick(&rt.tick_ns));
	DP_TRY(dp_dispatch_check(t));
	DP_TRY(dp_identity_find(t, &rt.identity, &rt.tid_offset));
	if (dp_target_filtered(t) && rt.identity == DP_ID_TID)
		return dp_error(DP_TAG_SECCOMP,
		                "every hit in process %d would need a system call, which its seccomp filter may not allow (%s)",
		                t->process.pid, dp_target_filter_rule(t));
	rt.bases = rt.identity == DP_ID_TID && t->bases_differ && (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE);
	rt.answers.by_base = rt.bases;
	t->runtime = rt;
	t->trap.handler = text + agent.trap;
	t->trap.restorer = text + agent.trap_restorer;
	t->trap.entry = text + agent.trap_syscall;
	*runtime = rt;
	*lost_base = t->in.region[DP_REGION_DATA].addr + dp_data_layout(t).lost;
	return NULL;
}
