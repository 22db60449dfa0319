/* SPDX-License-Identifier: MIT */
/*
 * The data region of a core file is copied as a whole: with options.dump_ring it is a few MiB, and the consumer writes to its
 * copy. What a truncated core file lacks is zero, which the consumer takes for records that were never completed.
 */
#include "injector/resident/dumped.h"

#include "base/boot_id.h"
#include "injector/resident/resident.h"
#include "injector/ring/drain.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define REGION_MOST (UINT64_C(4) << 30)
#define TICK_MOST   (UINT64_C(1) << 40)
#define COUNT_MOST  (UINT64_C(1) << 62)
#define OUR_PATH    "/memfd:" DP_MEMFD_NAME " (deleted)"

struct dp_dumped {
	struct dp_control *view;
	size_t size;
	bool timed, other_boot;
	struct dp_drain_past past;
	struct dp_drain *drain;
};

static struct dp_dumped *destroy(struct dp_dumped *d)
{
	if (!d)
		return NULL;
	dp_drain_destroy(d->drain);
	if (d->view)
		munmap(d->view, d->size);
	free(d);
	return NULL;
}

void dp_dumps_fini(struct dp_dumps *dumps)
{
	for (size_t i = 0; i < dumps->n; i++)
		destroy(dumps->group[i]);
	free(dumps->group);
	*dumps = (struct dp_dumps){0};
}

/* ---- one group ---------------------------------------------------------------------------------------------------------------
 */

static struct dp_error *check(const struct dp_control *c, uint64_t addr)
{
	const uint64_t size = c->private_addr - addr; /* that region is directly behind (layout.c) */
	if (c->abi != DP_ABI_VERSION)
		return dp_error(DP_TAG_BAD_CORE,
		                "the core file has probes of another version of dynprobe (its interface is %u, this one's "
		                "is %u); read it with that version",
		                c->abi, DP_ABI_VERSION);
	if (c->private_addr <= addr || size > REGION_MOST || !dp_control_valid(c, size))
		return dp_error(DP_TAG_BAD_CORE, "the control page at 0x%llx of the core file is damaged",
		                (unsigned long long)addr);
	return NULL;
}

static struct dp_error *copy(struct dp_dumped *d, const struct dp_dumped_memory *memory, uint64_t addr, uint64_t size)
{
	void *view = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (view == MAP_FAILED)
		return dp_error_sys(DP_TAG_NOMEM, "cannot allocate a copy of %llu MiB of rings",
		                    (unsigned long long)(size >> 20));
	d->view = view;
	d->size = size;
	memory->read(addr, view, size, memory->data);
	return NULL;
}

/* A debugger can dump also what was not meant for core files; then there are no readings, and only this boot's clocks. */
static bool has_clocks(const struct dp_clocks *c)
{
	return c->tick && c->tick < TICK_MOST && c->tsc < COUNT_MOST && c->ns < COUNT_MOST;
}

/* Two readings of the clocks there: at the attach, and now; of another boot, the second follows from the counter's rate. */
static void find_past(struct dp_dumped *d)
{
	const struct dp_clocks *c = &d->view->clocks;
	const struct dp_clock_pair attach = {c->tsc, c->ns}, now = dp_clock_read();
	char boot[DP_BOOT_ID];
	dp_boot_id(boot);
	d->timed = has_clocks(c);
	d->other_boot = d->timed && (memcmp(c->boot, boot, sizeof(boot)) || !*boot || now.tsc <= c->tsc || now.ns <= c->ns);
	d->past = (struct dp_drain_past){{attach, now}, now.tsc};
	if (d->other_boot)
		d->past = (struct dp_drain_past){{attach, {c->tsc + (UINT64_C(1) << 32), c->ns + c->tick}}, COUNT_MOST};
}

/* All groups have the clocks of the first, so that their order is that of the counter. */
static struct dp_error *start_drain(struct dp_dumped *d, const struct dp_dumped *first)
{
	if (d == first)
		find_past(d);
	if (!first->timed)
		return dp_drain_create(d->view, d->size, &d->drain);
	return dp_drain_create_past(d->view, d->size, &first->past, &d->drain);
}

static struct dp_error *read_group(struct dp_dumped *d, const struct dp_dumped_memory *memory, uint64_t addr)
{
	struct dp_control c = {0};
	if (memory->read(addr, &c, sizeof(c), memory->data) != sizeof(c))
		return dp_error(DP_TAG_BAD_CORE, "the control page at 0x%llx of the core file is truncated",
		                (unsigned long long)addr);
	DP_TRY(check(&c, addr));
	DP_TRY(copy(d, memory, addr, c.private_addr - addr));
	if (!memchr((char *)d->view + c.manifest_offset, 0, c.manifest_size))
		return dp_error(DP_TAG_BAD_CORE, "the description of the probes in the core file has no end");
	*d->view = c; /* as checked */
	return NULL;
}

/* ---- all of them -------------------------------------------------------------------------------------------------------------
 */

static struct dp_error *add(struct dp_dumps *dumps, const struct dp_dumped_memory *memory, uint64_t addr)
{
	struct dp_dumped **grown = realloc(dumps->group, (dumps->n + 1) * sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	dumps->group = grown;
	struct dp_dumped *d = calloc(1, sizeof(*d));
	if (!d)
		return dp_error_nomem();
	grown[dumps->n++] = d;
	DP_TRY(read_group(d, memory, addr));
	return start_drain(d, grown[0]);
}

/* A mapping of ours that begins with the control page of resident probes. */
static bool has_control(const struct dp_dumped_memory *memory, uint64_t addr)
{
	uint64_t magic = 0;
	uint32_t kept = 0;
	return memory->read(addr, &magic, sizeof(magic), memory->data) == sizeof(magic) && magic == DP_MAGIC &&
	       memory->read(addr + offsetof(struct dp_control, kept), &kept, sizeof(kept), memory->data) == sizeof(kept) && kept;
}

struct dp_error *dp_dumps_find(const struct dp_image *image, const struct dp_dumped_memory *memory, struct dp_dumps *ret)
{
	struct dp_error *err = NULL;
	*ret = (struct dp_dumps){0};
	for (size_t i = 0; !err && i < dp_image_nmaps(image); i++) {
		const struct dp_map *m = dp_image_map(image, i);
		if (strcmp(m->path, OUR_PATH) != 0)
			continue;
		ret->mappings++;
		if (m->write && has_control(memory, m->start.v))
			err = add(ret, memory, m->start.v);
	}
	if (err)
		dp_dumps_fini(ret);
	return err;
}

/* ---- queries -----------------------------------------------------------------------------------------------------------------
 */

const char *dp_dumped_manifest(const struct dp_dumped *d)
{
	return (const char *)d->view + d->view->manifest_offset;
}

unsigned dp_dumped_nprobes(const struct dp_dumped *d)
{
	return d->view->nprobes;
}

pid_t dp_dumped_pid(const struct dp_dumped *d)
{
	return (pid_t)d->view->target_pid;
}

bool dp_dumped_other_boot(const struct dp_dumped *d, int64_t *offset)
{
	*offset = d->view->clocks.offset;
	return d->other_boot;
}

struct dp_error *dp_dumped_drain(struct dp_dumped *d, dp_hit_fn each, void *data)
{
	return dp_drain_run(d->drain, true, each, data);
}

void dp_dumped_drain_lanes(struct dp_dumped *d, dp_hits_fn each, void *data)
{
	dp_drain_lanes(d->drain, true, each, data);
}

void dp_dumped_loss(const struct dp_dumped *d, unsigned probe, struct dp_loss *ret)
{
	dp_drain_loss(d->drain, probe, ret);
}
