/* SPDX-License-Identifier: MIT */
/*
 * Maps and unmaps our memory in the target, by system calls on a borrowed thread.
 *
 * The private region is mapped first, for two reasons: the memfd's name must be in the target's memory, and if the tool dies
 * before the control page exists, the next tool finds the private region by its place directly after the data region (recover.c).
 */
#include "injector/target/memfd.h"
#include "injector/target/target.h"
#include "injector/tracee/proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define UNMAPPED "the program goes on without probes, and dynprobe's memory in it has no use: the next dynprobe removes it"

static struct dp_step step_of(const struct dp_region *r, int flags, int64_t fd)
{
	return (struct dp_step){
	        .nr = SYS_mmap,
	        .args = {r->addr, r->size, (uint64_t)r->prot, (uint64_t)flags | MAP_FIXED_NOREPLACE, (uint64_t)fd, r->offset},
	        .want = (int64_t)r->addr};
}

static struct dp_error *take_mapped(struct dp_region *r, int64_t got)
{
	if (got == -EEXIST)
		return dp_error(DP_TAG_CHANGED, "the target has mapped other memory at 0x%llx in the meantime; try again",
		                (unsigned long long)r->addr);
	if (got < 0 && got > -4096)
		return dp_remote_refused((int)-got, "mmap in the target");
	r->mapped = true;
	if ((uint64_t)got == r->addr)
		return NULL;
	/* A kernel without MAP_FIXED_NOREPLACE treated the address as a hint. */
	r->addr = (uint64_t)got;
	return dp_error(DP_TAG_CHANGED, "the kernel did not map memory at the requested address in the target");
}

static struct dp_step no_core_step(const struct dp_region *r)
{
	return (struct dp_step){.nr = SYS_madvise, .args = {r->addr, r->size, MADV_DONTDUMP}};
}

/* Kernels without huge pages refuse. */
static struct dp_step no_huge_step(const struct dp_region *r)
{
	return (struct dp_step){.nr = SYS_madvise, .args = {r->addr, r->size, MADV_NOHUGEPAGE}};
}

static struct dp_error *take_no_core(struct dp_region *r, int64_t got)
{
	r->no_core = false;
	if (!got)
		return NULL;
	return dp_remote_refused((int)-got, "madvise(MADV_DONTDUMP) in the target");
}

static struct dp_error *map_region(struct dp_borrow *b, struct dp_region *r, int flags, int fd)
{
	const struct dp_step step = step_of(r, flags, fd);
	int64_t got = 0;
	DP_TRY(dp_remote_syscall(b, step.nr, step.args, &got));
	return take_mapped(r, got);
}

static struct dp_error *unmap_region(struct dp_borrow *b, struct dp_region *r)
{
	int64_t got;
	if (!r->mapped)
		return NULL;
	struct dp_error *err = dp_remote_call(b, "munmap", SYS_munmap, (const uint64_t[6]){r->addr, r->size}, &got);
	if (err)
		return err->sys ? dp_error_advise(err, UNMAPPED) : err;
	r->mapped = false;
	return NULL;
}

static struct dp_error *make_private(struct dp_target *t, struct dp_borrow *b)
{
	struct dp_region *r = &t->in.private;
	const struct dp_private_note note = {DP_MEMFD_NAME, r->size};
	DP_TRY(map_region(b, r, MAP_PRIVATE | MAP_ANONYMOUS, -1));
	DP_TRY(dp_mem_write(&t->process, dp_addr_of(r->addr + sizeof(uint64_t)), &note, sizeof(note)));
	r->no_core = r->size > dp_page_up(sizeof(struct dp_agent));
	return NULL;
}

/* In the script that makes the memfd: fork children find zeroes in the private region. Then, what the thread may do. */
static struct dp_error *make_memfd(struct dp_target *t, struct dp_borrow *b)
{
	const struct dp_region *r = &t->in.private;
	struct dp_step tsc = dp_tsc_step(t);
	struct dp_opening o = {.name_before = "madvise(MADV_WIPEONFORK)",
	                       .before = {.nr = SYS_madvise, .args = {r->addr, r->size, MADV_WIPEONFORK}},
	                       .behind = &tsc,
	                       .nbehind = 1};
	DP_TRY(dp_remote_memfd(b, dp_script_room(&t->in), r->addr + sizeof(uint64_t), &o, &t->remote_fd));
	return dp_tsc_check(t, b, &tsc);
}

static struct dp_error *open_here(struct dp_target *t, pid_t tid, int64_t fd, uint64_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", t->process.pid, tid, (int)fd);
	t->memfd = open(path, O_RDWR | O_CLOEXEC);
	if (t->memfd < 0)
		return dp_error_sys(DP_TAG_SYS, "opening the target's memfd through %s", path);
	return dp_file_size(t->memfd, size);
}

/* If the program has locked memory, it may have used mlockall(MCL_FUTURE), and a new mapping is populated at once. */
static bool locks_memory(const struct dp_target *t)
{
	struct dp_buf status;
	dp_buf_init(&status);
	const bool locks = dp_proc_slurp(&status, "/proc/%d/task/%d/status", t->process.pid, t->process.alive) &&
	                   dp_status_long(dp_buf_str(&status), "VmLck", 0) > 0;
	dp_buf_fini(&status);
	return locks;
}

/* Only a small part of the rings is used: maps them without access, unlocks them, and only then allows access. */
static struct dp_error *map_unlocked(struct dp_borrow *b, struct dp_region *r, int fd)
{
	const int prot = r->prot;
	int64_t got;
	r->prot = PROT_NONE;
	struct dp_error *err = map_region(b, r, MAP_SHARED, fd);
	r->prot = prot;
	if (!err)
		err = dp_remote_call(b, "munlock", SYS_munlock, (const uint64_t[6]){r->addr, r->size}, &got);
	if (!err)
		err = dp_remote_call(b, "mprotect", SYS_mprotect, (const uint64_t[6]){r->addr, r->size, (uint64_t)prot}, &got);
	return err;
}

/*
 * ---- several mappings at once -------------------------------------------------------------------------------------------------
 */

struct batch {
	struct dp_region **region; /* of each step */
	struct dp_step *step;
	size_t n;
};

static void batch_fini(struct batch *batch)
{
	free(batch->region);
	free(batch->step);
}

static struct dp_error *batch_init(struct batch *batch, size_t most)
{
	*batch = (struct batch){.region = calloc(most + 1, sizeof(*batch->region)),
	                        .step = calloc(most + 1, sizeof(*batch->step))};
	if (batch->region && batch->step)
		return NULL;
	batch_fini(batch);
	return dp_error_nomem();
}

static void batch_add(struct batch *batch, struct dp_region *r, struct dp_step step)
{
	batch->region[batch->n] = r;
	batch->step[batch->n++] = step;
}

/*
 * A thread that works while the others run is kept no longer than its lease. *done: number of steps that succeeded. The next step
 * failed if it was made; else it was not tried because time was up.
 */
static struct dp_error *run_batch(const struct dp_installation *in, struct dp_borrow *b, struct batch *batch,
                                  struct dp_lease *lease, size_t *done)
{
	DP_TRY(dp_remote_script(b, dp_script_room(in), batch->step, batch->n, lease ? lease->until_ns : UINT64_MAX, done));
	if (*done < batch->n && !batch->step[*done].made) {
		if (!lease)
			return dp_remote_unfinished("a system call in the target was interrupted");
		lease->more = true;
	}
	return NULL;
}

static struct dp_error *take_made(struct dp_target *t, struct dp_region *r, const struct dp_step *step)
{
	if (step->nr == SYS_madvise)
		return step->args[2] == MADV_DONTDUMP ? take_no_core(r, step->got) : NULL;
	if (step->nr == SYS_mmap)
		return take_mapped(r, step->got);
	t->remote_fd = -1; /* closed */
	return NULL;
}

static struct dp_error *map_batch(struct dp_target *t, struct dp_borrow *b, struct batch *batch, struct dp_lease *lease)
{
	size_t done = 0;
	struct dp_error *err = run_batch(&t->in, b, batch, lease, &done);
	for (size_t i = 0; i < batch->n && batch->step[i].made; i++) {
		struct dp_error *failed = take_made(t, batch->region[i], &batch->step[i]);
		if (err)
			dp_error_destroy(failed);
		else
			err = failed;
	}
	return err;
}

static struct dp_error *map_data(struct dp_target *t, struct dp_borrow *b)
{
	struct dp_region *data = &t->in.region[DP_REGION_DATA];
	return !data->mapped && data->size && locks_memory(t) ? map_unlocked(b, data, (int)t->remote_fd) : NULL;
}

static struct dp_error *map_regions(struct dp_target *t, struct dp_borrow *b, struct dp_lease *lease)
{
	struct batch batch;
	DP_TRY(map_data(t, b));
	DP_TRY(batch_init(&batch, 2 * t->in.nregions + 3));
	const bool sparse = t->in.private.no_core; /* each thread uses a few pages of its part */
	if (sparse)
		batch_add(&batch, &t->in.private, no_core_step(&t->in.private));
	for (size_t i = 0; i < t->in.nregions; i++) {
		struct dp_region *r = &t->in.region[i];
		if (r->size && !r->mapped)
			batch_add(&batch, r, step_of(r, r->copied ? MAP_PRIVATE : MAP_SHARED, t->remote_fd));
		if (r->size && r->no_core)
			batch_add(&batch, r, no_core_step(r));
	}
	batch_add(&batch, NULL, (struct dp_step){.nr = SYS_close, .args = {(uint64_t)t->remote_fd}});
	if (sparse)
		batch_add(&batch, NULL, no_huge_step(&t->in.private)); /* last: a step that is refused ends the script */
	struct dp_error *err = map_batch(t, b, &batch, lease);
	batch_fini(&batch);
	return err;
}

/*
 * Is the descriptor still the memfd? Between two freezes the program may have closed it (a close loop), or the borrowed thread of
 * a killed tool may have closed its own; the number may be one of the program's files by now.
 */
static bool still_ours(const struct dp_target *t, pid_t tid, int64_t fd)
{
	static const char ours[] = "/memfd:" DP_MEMFD_NAME " (deleted)";
	char path[64], link[sizeof(ours) + 1];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", t->process.pid, tid, (int)fd);
	return readlink(path, link, sizeof(link)) == (ssize_t)sizeof(ours) - 1 && !memcmp(link, ours, sizeof(ours) - 1);
}

struct dp_error *dp_map_close(struct dp_target *t, struct dp_borrow *b)
{
	int64_t ignored;
	if (t->remote_fd < 0)
		return NULL;
	const uint64_t fd = (uint64_t)t->remote_fd;
	t->remote_fd = -1;
	if (!still_ours(t, dp_borrow_tid(b), (int64_t)fd))
		return NULL;
	struct dp_error *err = dp_remote_call(b, "close", SYS_close, (const uint64_t[6]){fd}, &ignored);
	if (err && err->tag == DP_TAG_NO_THREAD)
		t->remote_fd = (int64_t)fd; /* the borrowed thread resumed on its own: the next one closes it */
	return err;
}

/* Returns the first error and drops the second. */
static struct dp_error *first_of(struct dp_error *first, struct dp_error *second)
{
	if (!first)
		return second;
	dp_error_destroy(second);
	return first;
}

/* The region directly before the private one, if both are mapped. */
static struct dp_region *data_region(struct dp_installation *in)
{
	for (size_t i = 0; in->private.mapped && i < in->nregions; i++)
		if (in->region[i].mapped && in->region[i].addr + in->region[i].size == in->private.addr)
			return &in->region[i];
	return NULL;
}

static struct dp_error *give_up(struct dp_target *t, struct dp_borrow *b, struct dp_error *err)
{
	err = first_of(err, dp_map_close(t, b));
	return first_of(err, dp_unmap_all(&t->in, b, NULL));
}

struct dp_error *dp_map_begin(struct dp_target *t, struct dp_borrow *b, uint64_t file_size)
{
	struct dp_error *err = make_private(t, b);
	if (!err)
		err = make_memfd(t, b);
	if (!err)
		err = open_here(t, dp_borrow_tid(b), t->remote_fd, file_size);
	return err ? give_up(t, b, err) : NULL;
}

struct dp_error *dp_map_finish(struct dp_target *t, struct dp_borrow *b, struct dp_lease *lease)
{
	struct dp_error *err = NULL;
	if (!still_ours(t, dp_borrow_tid(b), t->remote_fd))
		err = dp_error(DP_TAG_CHANGED, "process %d (%s) closed a descriptor of dynprobe during the attach; try again",
		               t->process.pid, t->process.comm);
	if (!err)
		err = map_regions(t, b, lease);
	if (!err && lease && lease->more)
		return NULL;
	if (!err)
		err = dp_map_close(t, b);
	if (err && err->tag == DP_TAG_NO_THREAD)
		return err; /* mapped regions stay: the next thread continues */
	return err ? give_up(t, b, err) : NULL;
}

/* After a failure it still tries the others. */
static struct dp_error *unmap_batch(struct dp_installation *in, struct dp_borrow *b, struct batch *batch, struct dp_lease *lease)
{
	struct dp_error *first = NULL;
	for (size_t from = 0, done = 0; from < batch->n; from += done + 1) {
		struct batch rest = {batch->region + from, batch->step + from, batch->n - from};
		struct dp_error *err = run_batch(in, b, &rest, lease, &done);
		for (size_t i = 0; i < rest.n; i++)
			rest.region[i]->mapped &= !rest.step[i].made || rest.step[i].got;
		if (err || (lease && lease->more))
			return first_of(first, err);
		if (done == rest.n)
			break;
		struct dp_error *refused = dp_remote_refused((int)-rest.step[done].got, "munmap in the target");
		first = first_of(first, dp_error_advise(refused, UNMAPPED));
	}
	return first;
}

static bool held_enough(const struct dp_lease *lease)
{
	return lease && dp_now_ns() >= lease->until_ns;
}

static struct dp_error *unmap_but(struct dp_installation *in, const struct dp_region *data, struct dp_borrow *b,
                                  struct dp_lease *lease)
{
	struct batch batch;
	DP_TRY(batch_init(&batch, in->nregions));
	for (size_t i = 0; i < in->nregions; i++) {
		struct dp_region *r = &in->region[i];
		if (r == data || !r->mapped)
			continue;
		batch.region[batch.n] = r;
		batch.step[batch.n++] = (struct dp_step){.nr = SYS_munmap, .args = {r->addr, r->size}};
	}
	struct dp_error *err = unmap_batch(in, b, &batch, lease);
	if (batch.n && held_enough(lease)) /* the data region is left, and it is large */
		lease->more = true;
	batch_fini(&batch);
	return err;
}

struct dp_error *dp_unmap_all(struct dp_installation *in, struct dp_borrow *b, struct dp_lease *lease)
{
	struct dp_region *data = data_region(in);
	struct dp_error *first = unmap_but(in, data, b, lease);
	if (!first && lease && lease->more)
		return NULL;
	if (!data)
		return first_of(first, unmap_region(b, &in->private));
	/*
	 * In one call: without the control page no tool would find the private region, and without the private region no tool
	 * trusts the control page. The script table is in the private region, so this call is not part of a script.
	 */
	struct dp_region both = {.addr = data->addr, .size = data->size + in->private.size, .mapped = true};
	first = first_of(first, unmap_region(b, &both));
	data->mapped = in->private.mapped = both.mapped;
	return first;
}
