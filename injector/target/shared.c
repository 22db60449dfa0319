/* SPDX-License-Identifier: MIT */
/* Fills the shared memory: agent, stubs, tables, control page, slots. Nothing in the target uses it yet. */
#include "injector/target/shared.h"
#include "agent/unwind/apart.h"
#include "agent/unwind/unwind.h"
#include "base/cleanup.h"
#include "injector/ring/drain.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct dp_error *dp_shared_write(struct dp_target *t, const struct dp_region *r, const void *bytes, size_t n)
{
	return dp_file_write(t->memfd, bytes, n, r->offset);
}

/* All but the rings is written at once: one call instead of a fault for each page. Kernels before 5.14 refuse. */
static void populate(const struct dp_target *t)
{
	const struct dp_data_layout l = dp_data_layout(t);
	const uint64_t written = dp_page_up(l.slots + t->options.nslots * sizeof(struct dp_slot));
	madvise(t->data, written, MADV_POPULATE_WRITE);
}

static struct dp_error *map_here(struct dp_target *t)
{
	const struct dp_region *r = &t->in.region[DP_REGION_DATA];
	void *view = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED, t->memfd, (off_t)r->offset);
	if (view == MAP_FAILED)
		return dp_error_sys(DP_TAG_SYS, "mapping the %llu MiB of shared rings", (unsigned long long)(r->size >> 20));
	t->data = view;
	populate(t);
	return NULL;
}

static void slots_init(struct dp_target *t, const struct dp_data_layout *l)
{
	const uint64_t data = t->in.region[DP_REGION_DATA].addr, size = t->options.ring_size;
	const uint64_t memos = t->in.private.addr + dp_private_memos(t);
	struct dp_slot *slot = (void *)(t->data + l->slots);
	for (unsigned i = 0; i < t->options.nslots; i++) {
		slot[i].room = t->ahead ? size : 0;
		slot[i].base = data + l->rings + i * size;
		slot[i].mask = size - 1;
		slot[i].cache = l->cache ? data + l->cache + (uint64_t)i * DP_APART_TOP : 0;
		slot[i].memo = l->cache ? memos + (uint64_t)i * DP_UNWIND_MEMO : 0;
	}
}

static uint64_t pid_namespace(void)
{
	struct stat st;
	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

static void gates_init(struct dp_target *t, const struct dp_data_layout *l)
{
	uint32_t *gate = (void *)(t->data + l->gates);
	for (unsigned i = 0; t->options.gates && i < t->nprobes; i++)
		gate[i] = 1;
}

static void control_init(struct dp_target *t, const struct dp_data_layout *l, size_t nsites)
{
	struct dp_control *c = (void *)t->data;
	*c = (struct dp_control){
	        .abi = DP_ABI_VERSION,
	        .nprobes = t->nprobes,
	        .nsites = (uint32_t)nsites,
	        .nslots = t->options.nslots,
	        .ring_size = t->options.ring_size,
	        .tool_pid = (uint64_t)getpid(),
	        .tool_start = dp_process_start_time(getpid()),
	        .tool_ns = pid_namespace(),
	        .lost_offset = l->lost,
	        .sites_offset = l->sites,
	        .slots_offset = l->slots,
	        .rings_offset = l->rings,
	        .cache_offset = l->cache,
	        .private_addr = t->in.private.addr,
	        .private_size = t->in.private.size,
	        .gates_offset = t->options.gates ? l->gates : 0,
	        .manifest_offset = l->manifest,
	        .manifest_size = l->manifest ? DP_MANIFEST_MAX : 0,
	        .sink = t->sink,
	        .trap = t->in.trap,
	        .target_pid = (uint64_t)t->process.pid,
	        .target_start = t->process.start_time,
	};
	c->answers = t->runtime.answers;
	if (!t->ahead) {
		c->pool_first = t->budget.first;
		c->pool = t->budget.most - t->budget.first;
		c->pool_most = t->budget.most;
	}
	__atomic_store_n(&c->magic, DP_MAGIC, __ATOMIC_RELEASE);
}

static void site_init(struct dp_site_entry *e, const struct dp_placed *p)
{
	*e = (struct dp_site_entry){
	        .addr = p->addr,
	        .len = p->len,
	        .changed = p->nchanged,
	        .state = DP_SITE_PLANNED,
	        .probe = p->probe,
	        .stub = p->stub,
	        .stub_end = p->stub_end,
	        .flags = (uint16_t)((p->guarded ? DP_SITE_GUARDED : 0) | (p->calls_out ? 0 : DP_SITE_NO_HOOK)),
	        .npairs = p->npairs,
	};
	memcpy(e->old_bytes, p->old_bytes, sizeof(p->old_bytes));
	memcpy(e->new_bytes, p->new_bytes, sizeof(p->new_bytes));
	for (size_t i = 0; i < p->npairs; i++)
		e->pair[i] = (struct dp_site_pair){p->pair[i].stub, p->pair[i].original, p->pair[i].fix_rcx};
}

static void sites_init(struct dp_target *t, const struct dp_data_layout *l)
{
	struct dp_site_entry *entry = (void *)(t->data + l->sites);
	for (size_t i = 0; i < t->in.nplaced; i++) {
		site_init(&entry[i], &t->in.placed[i]);
		t->in.placed[i].entry = &entry[i];
	}
}

/* The thread table after it is already zero: fresh anonymous memory. Overwrites the name that the memfd was made with. */
static struct dp_error *private_init(struct dp_target *t, const struct dp_data_layout *l)
{
	const uint64_t data = t->in.region[DP_REGION_DATA].addr;
	const struct dp_region *tables = &t->in.region[DP_REGION_TABLES];
	dp_auto_free struct dp_agent *agent = calloc(1, sizeof(*agent));
	if (!agent)
		return dp_error_nomem();
	agent->live = DP_LIVE;
	agent->pid = (uint32_t)(t->process.ns_pid ? t->process.ns_pid : t->process.pid);
	agent->identity = t->runtime.identity;
	agent->tid_offset = t->runtime.tid_offset;
	agent->nslots = t->options.nslots;
	agent->slots = data + l->slots;
	agent->control = data;
	agent->unwind = tables->size ? tables->addr : 0;
	return dp_mem_write(&t->process, dp_addr_of(t->in.private.addr), agent, DP_AGENT_TABLE);
}

/* Writes the word of the agent's text that points a hook to the agent's state, because a hook has no descriptor. */
static struct dp_error *text_init(struct dp_target *t)
{
	struct dp_agent_image agent;
	const uint64_t at = t->in.private.addr;
	DP_TRY(dp_agent_image_load(&agent));
	return dp_file_write(t->memfd, &at, sizeof(at), t->in.region[DP_REGION_TEXT].offset + agent.loaded_state);
}

/* For a library that came later: its group's rings use memory of the first group, and return it at the end. */
static void move_memory(struct dp_target *t, bool back)
{
	struct dp_control *c = t->first ? (void *)t->first->data : NULL;
	const uint64_t n = back ? 0 - t->borrowed : t->budget.most;
	if (!c || (back ? !t->borrowed : __atomic_load_n(&c->pool, __ATOMIC_RELAXED) < n))
		return;
	__atomic_fetch_sub(&c->pool, n, __ATOMIC_RELAXED);
	t->borrowed = back ? 0 : n;
}

struct dp_error *dp_shared_fill(struct dp_target *t)
{
	const struct dp_data_layout l = dp_data_layout(t);
	DP_TRY(text_init(t));
	DP_TRY(map_here(t));
	slots_init(t, &l);
	gates_init(t, &l);
	dp_aggs_init(t);
	sites_init(t, &l);
	control_init(t, &l, t->in.nplaced);
	DP_TRY(dp_park_init(t));
	DP_TRY(private_init(t, &l));
	t->in.live = true;
	DP_TRY(dp_drain_create((void *)t->data, t->in.region[DP_REGION_DATA].size, &t->drain));
	DP_TRY(dp_full_init(t));
	DP_TRY(dp_followers_begin(t));
	if (!t->ahead)
		dp_drain_give_back(t->drain);
	move_memory(t, false);
	return NULL;
}

void dp_shared_close(struct dp_target *t)
{
	move_memory(t, true);
	t->followers = dp_followers_destroy(t->followers);
	t->drain = dp_drain_destroy(t->drain);
	if (t->data)
		munmap(t->data, t->in.region[DP_REGION_DATA].size);
	t->data = NULL;
	if (t->memfd >= 0)
		close(t->memfd);
	t->memfd = -1;
	for (size_t i = 0; i < t->in.nplaced; i++)
		t->in.placed[i].entry = NULL;
}
