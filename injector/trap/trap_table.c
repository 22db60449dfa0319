/* SPDX-License-Identifier: MIT */
/* The tables of the agent's handler: traps, loads that may fault, and where the program's own instructions are in stubs. */
#include "injector/trap/trap.h"

#include "injector/target/shared.h"

#include "base/cleanup.h"

#include <stdlib.h>

bool dp_trap_planned(const struct dp_target *t, const struct dp_plan *plans, size_t n)
{
	for (size_t i = 0; t->trap.wanted && i < n; i++)
		if (dp_plan_is_guarded(&plans[i]) || (dp_target_faults_ready(t) && plans[i].probe != DP_NO_PROBE))
			return true;
	return false;
}

static int by_pc(const void *a, const void *b)
{
	const struct dp_fixup *p = a, *q = b;
	return p->pc < q->pc ? -1 : p->pc > q->pc;
}

struct tables {
	struct dp_trap *trap;
	uint64_t addr; /* of the table in the target */
	size_t n, most;
};

static void put_entry(struct tables *tables, uint64_t pc, uint64_t to)
{
	if (tables->n < tables->most)
		tables->trap->table[tables->n++] = (struct dp_fixup){pc, to};
}

/* Makes a table of the entries added since `first`. */
static uint32_t end_table(struct tables *tables, size_t first, uint64_t *addr)
{
	const size_t n = tables->n - first;
	*addr = tables->addr + first * sizeof(struct dp_fixup);
	qsort(&tables->trap->table[first], n, sizeof(struct dp_fixup), by_pc);
	return (uint32_t)n;
}

/* Only points at which the registers are the same as at the original instruction, and from which a thread can continue there. */
static void put_pairs(struct tables *tables, const struct dp_plan *plan)
{
	for (size_t k = 0; k < plan->npairs; k++) {
		const struct dp_pc_pair *pair = &plan->pair[k];
		const bool lasts = pair->original == plan->site || pair->original == plan->site + plan->displaced;
		if (lasts && !pair->fix_rcx)
			put_entry(tables, pair->stub, pair->original);
	}
}

static int by_site_and_order(const void *a, const void *b)
{
	const struct dp_plan *p = *(const struct dp_plan *const *)a, *q = *(const struct dp_plan *const *)b;
	if (p->site != q->site)
		return p->site < q->site ? -1 : 1;
	return p < q ? -1 : p > q;
}

/* Of several probes at one site, the last one's stub runs first and continues to the others. */
static struct dp_error *put_sites(struct tables *tables, const struct dp_plan *plans, size_t n)
{
	dp_auto_free const struct dp_plan **trap = malloc((n + 1) * sizeof(*trap));
	size_t ntraps = 0;
	if (!trap)
		return dp_error_nomem();
	for (size_t i = 0; i < n; i++)
		if (plans[i].tactic == DP_TACTIC_TRAP)
			trap[ntraps++] = &plans[i];
	if (ntraps)
		qsort(trap, ntraps, sizeof(*trap), by_site_and_order);
	for (size_t i = 0; i < ntraps; i++)
		if (i + 1 == ntraps || trap[i + 1]->site != trap[i]->site)
			put_entry(tables, trap[i]->site, trap[i]->entry);
	return NULL;
}

static struct dp_error *put_tables(struct tables *tables, const struct dp_plan *plans, size_t n)
{
	struct dp_trap *trap = tables->trap;
	DP_TRY(put_sites(tables, plans, n));
	trap->nsites = end_table(tables, 0, &trap->sites);
	const size_t fixups = tables->n;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < plans[i].nfixups; k++)
			put_entry(tables, plans[i].stub + plans[i].fixup[k].load, plans[i].stub + plans[i].fixup[k].to);
	trap->nfixups = end_table(tables, fixups, &trap->fixups);
	const size_t pairs = tables->n;
	for (size_t i = 0; i < n; i++)
		put_pairs(tables, &plans[i]);
	trap->npairs = end_table(tables, pairs, &trap->pairs);
	return NULL;
}

struct dp_error *dp_trap_fill(struct dp_target *t, const struct dp_plan *plans, size_t n)
{
	const struct dp_region *region = &t->in.region[DP_REGION_TRAP], *text = &t->in.region[DP_REGION_TEXT];
	if (!region->size)
		return NULL;
	dp_auto_free struct dp_trap *trap = calloc(1, region->size);
	struct dp_agent_image agent;
	if (!trap)
		return dp_error_nomem();
	DP_TRY(dp_agent_image_load(&agent));
	struct tables tables = {trap, region->addr + sizeof(*trap), 0, (region->size - sizeof(*trap)) / sizeof(*trap->table)};
	DP_TRY(put_tables(&tables, plans, n));
	trap->agent = t->in.private.addr;
	trap->pid = (uint32_t)(t->process.ns_pid ? t->process.ns_pid : t->process.pid);
	trap->text = text->addr;
	trap->text_size = text->size;
	trap->called = text->addr + agent.trap_called;
	DP_TRY(dp_shared_write(t, region, trap, sizeof(*trap) + tables.n * sizeof(*trap->table)));
	const struct dp_region word = {.offset = text->offset + agent.trap_state};
	t->in.trap = region->addr;
	return dp_shared_write(t, &word, &region->addr, sizeof(region->addr));
}
