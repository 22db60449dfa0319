/* SPDX-License-Identifier: MIT */
/*
 * Making and unmaking our mappings in the target, by system calls on a borrowed thread.
 *
 * The private region comes first, for two reasons: the memfd's name has to lie in the target's memory, and if the tool dies
 * before the control page exists, the next one knows the private region by its place right behind the data region (recover.c).
 */
#include "injector/proc.h"
#include "injector/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static struct dp_error *call(struct dp_borrow *b, const char *name, long nr, const uint64_t args[6], int64_t *result)
{
	int64_t got = 0;
	DP_TRY(dp_remote_syscall(b, nr, args, &got));
	if (got < 0 && got > -4096) {
		errno = (int)-got;
		return dp_error_sys(DP_TAG_REMOTE, "%s in the target", name);
	}
	*result = got;
	return NULL;
}

static struct dp_error *map_region(struct dp_borrow *b, struct dp_region *r, int flags, int fd)
{
	const uint64_t args[6] = {
	        r->addr, r->size, (uint64_t)r->prot, (uint64_t)flags | MAP_FIXED_NOREPLACE, (uint64_t)(int64_t)fd, r->offset};
	int64_t got = 0;
	struct dp_error *err = call(b, "mmap", SYS_mmap, args, &got);
	if (err && err->sys == EEXIST) {
		dp_error_destroy(err);
		return dp_error(DP_TAG_CHANGED, "the range at 0x%llx was taken by the target meanwhile; try again",
		                (unsigned long long)r->addr);
	}
	if (err)
		return err;
	r->mapped = true;
	if ((uint64_t)got == r->addr)
		return NULL;
	/* A kernel older than MAP_FIXED_NOREPLACE took the address for a hint. */
	r->addr = (uint64_t)got;
	return dp_error(DP_TAG_CHANGED, "the target's kernel placed a mapping elsewhere than asked");
}

static struct dp_error *unmap_region(struct dp_borrow *b, struct dp_region *r)
{
	int64_t got;
	if (!r->mapped)
		return NULL;
	DP_TRY(call(b, "munmap", SYS_munmap, (const uint64_t[6]){r->addr, r->size}, &got));
	r->mapped = false;
	return NULL;
}

static struct dp_error *make_private(struct dp_target *t, struct dp_borrow *b)
{
	static const char name[] = DP_MEMFD_NAME;
	struct dp_region *r = &t->in.private;
	int64_t got;
	DP_TRY(map_region(b, r, MAP_PRIVATE | MAP_ANONYMOUS, -1));
	/* At once: by the name it is known for ours if we are killed before the memfd exists. */
	DP_TRY(dp_mem_write(&t->process, dp_addr_of(r->addr + sizeof(uint64_t)), name, sizeof(name)));
	return call(b, "madvise(MADV_WIPEONFORK)", SYS_madvise, (const uint64_t[6]){r->addr, r->size, MADV_WIPEONFORK}, &got);
}

/* vm.memfd_noexec wants the executable kind asked for by name; older kernels do not know that flag. */
static struct dp_error *make_memfd(struct dp_target *t, struct dp_borrow *b, int64_t *fd)
{
	const uint64_t name = t->in.private.addr + sizeof(uint64_t);
	struct dp_error *err = call(b, "memfd_create", SYS_memfd_create, (const uint64_t[6]){name, MFD_CLOEXEC | MFD_EXEC}, fd);
	if (!err || err->sys != EINVAL)
		return err;
	dp_error_destroy(err);
	return call(b, "memfd_create", SYS_memfd_create, (const uint64_t[6]){name, MFD_CLOEXEC}, fd);
}

static struct dp_error *open_here(struct dp_target *t, pid_t tid, int64_t fd, uint64_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", t->process.pid, tid, (int)fd);
	t->memfd = open(path, O_RDWR | O_CLOEXEC);
	if (t->memfd < 0)
		return dp_error_sys(DP_TAG_SYS, "opening the target's memfd through %s", path);
	if (ftruncate(t->memfd, (off_t)size))
		return dp_error_sys(DP_TAG_SYS, "sizing the shared memory to %llu bytes", (unsigned long long)size);
	return NULL;
}

/* Has the program locked memory? Then it may have asked for the future as well (mlockall), and a new mapping is filled at once.
 */
static bool locks_memory(const struct dp_target *t)
{
	struct dp_buf status;
	dp_buf_init(&status);
	const bool locks = dp_proc_slurp(&status, "/proc/%d/task/%d/status", t->process.pid, t->process.alive) &&
	                   dp_status_long(dp_buf_str(&status), "VmLck", 0) > 0;
	dp_buf_fini(&status);
	return locks;
}

/* The rings are far larger than what is used of them: mapped without access, unlocked, and only then opened. */
static struct dp_error *map_unlocked(struct dp_borrow *b, struct dp_region *r, int fd)
{
	const int prot = r->prot;
	int64_t got;
	r->prot = PROT_NONE;
	struct dp_error *err = map_region(b, r, MAP_SHARED, fd);
	r->prot = prot;
	if (!err)
		err = call(b, "munlock", SYS_munlock, (const uint64_t[6]){r->addr, r->size}, &got);
	if (!err)
		err = call(b, "mprotect", SYS_mprotect, (const uint64_t[6]){r->addr, r->size, (uint64_t)prot}, &got);
	return err;
}

/* A thread that works while the others run is not kept for longer than this. */
static bool held_enough(const struct dp_lease *lease)
{
	return lease && dp_now_ns() >= lease->until_ns;
}

static struct dp_error *map_regions(struct dp_target *t, struct dp_borrow *b, struct dp_lease *lease)
{
	const bool locked = locks_memory(t);
	for (size_t i = 0; i < t->in.nregions; i++) {
		struct dp_region *r = &t->in.region[i];
		if (r->mapped || !r->size)
			continue;
		if (held_enough(lease)) {
			lease->more = true;
			return NULL;
		}
		DP_TRY(locked && i == DP_REGION_DATA ? map_unlocked(b, r, (int)t->remote_fd)
		                                     : map_region(b, r, r->copied ? MAP_PRIVATE : MAP_SHARED, (int)t->remote_fd));
	}
	return NULL;
}

/*
 * Is the descriptor still the memfd? Between two freezes the program may have closed it (a close loop), or the thread of a killed
 * tool its own; and the number may be a file of the program's by now.
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
	return call(b, "close", SYS_close, (const uint64_t[6]){fd}, &ignored);
}

/* The first error; the second is dropped. */
static struct dp_error *first_of(struct dp_error *first, struct dp_error *second)
{
	if (!first)
		return second;
	dp_error_destroy(second);
	return first;
}

/* The region that the private one lies directly behind, if both are mapped. */
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
		err = make_memfd(t, b, &t->remote_fd);
	if (!err)
		err = open_here(t, dp_borrow_tid(b), t->remote_fd, file_size);
	return err ? give_up(t, b, err) : NULL;
}

struct dp_error *dp_map_finish(struct dp_target *t, struct dp_borrow *b, struct dp_lease *lease)
{
	struct dp_error *err = NULL;
	if (!still_ours(t, dp_borrow_tid(b), t->remote_fd))
		err = dp_error(DP_TAG_CHANGED, "process %d (%s) closed a descriptor of ours during attach; try again",
		               t->process.pid, t->process.comm);
	if (!err)
		err = map_regions(t, b, lease);
	if (!err && lease && lease->more)
		return NULL;
	err = first_of(err, dp_map_close(t, b));
	return err ? give_up(t, b, err) : NULL;
}

struct dp_error *dp_unmap_all(struct dp_installation *in, struct dp_borrow *b, struct dp_lease *lease)
{
	struct dp_region *data = data_region(in);
	struct dp_error *first = NULL;
	for (size_t i = 0; i < in->nregions; i++) {
		if (&in->region[i] == data || !in->region[i].mapped)
			continue;
		if (!first && held_enough(lease)) {
			lease->more = true;
			return NULL;
		}
		first = first_of(first, unmap_region(b, &in->region[i]));
	}
	if (!data)
		return first_of(first, unmap_region(b, &in->private));
	/* Without the control page nobody would find the private region, and without that one nobody believes the control page.
	 */
	struct dp_region both = {.addr = data->addr, .size = data->size + in->private.size, .mapped = true};
	first = first_of(first, unmap_region(b, &both));
	data->mapped = in->private.mapped = both.mapped;
	return first;
}
