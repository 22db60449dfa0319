/* SPDX-License-Identifier: MIT */
/*
 * Finds which mappings of a process are ours, and groups them. They have the memfd's name, and each memfd is one group. The
 * kernel may have split a region into several mappings (mlock, mprotect) or merged two. The writable one starts with the control
 * page.
 *
 * Directly after the data region is the private one, which has no name. If it exists, the process is a target, not a dynprobe
 * that has its target's rings mapped. If it is filled, the process is not a fork of the target.
 */
#include "injector/resident/resident.h"
#include "injector/target/group/leftover.h"

#include "agent/sink.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define OUR_PATH "/memfd:" DP_MEMFD_NAME " (deleted)"

struct dp_resident *dp_resident_destroy(struct dp_resident *s)
{
	if (!s)
		return NULL;
	if (s->shadow)
		dp_error_destroy(dp_resident_release(s));
	dp_installation_fini(&s->in);
	free(s->site_of);
	free(s->manifest);
	free(s);
	return NULL;
}

void dp_groups_fini(struct dp_groups *groups)
{
	for (size_t i = 0; i < groups->n; i++)
		dp_resident_destroy(groups->group[i]);
	free(groups->group);
	free(groups->kind);
	*groups = (struct dp_groups){0};
}

/* ---- mappings ----------------------------------------------------------------------------------------------------------------
 */

static bool grow(struct dp_groups *groups)
{
	struct dp_resident **group = realloc(groups->group, (groups->n + 1) * sizeof(*group));
	if (group)
		groups->group = group;
	enum dp_group_kind *kind = realloc(groups->kind, (groups->n + 1) * sizeof(*kind));
	if (kind)
		groups->kind = kind;
	return group && kind;
}

/* The group of a memfd, created if new; NULL without memory. The inode identifies it: all memfds are in one file system. */
static struct dp_resident *group_of(struct dp_target *t, struct dp_groups *groups, uint64_t inode)
{
	for (size_t i = 0; i < groups->n; i++)
		if (groups->group[i]->inode == inode)
			return groups->group[i];
	struct dp_resident *s = grow(groups) ? calloc(1, sizeof(*s)) : NULL;
	if (!s)
		return NULL;
	s->target = t;
	s->inode = inode;
	s->fd = -1;
	groups->group[groups->n++] = s;
	return s;
}

static bool continues(const struct dp_region *r, const struct dp_region *next)
{
	return r->addr + r->size == next->addr && r->offset + r->size == next->offset && r->prot == next->prot;
}

static struct dp_error *add_region(struct dp_installation *in, const struct dp_map *m)
{
	const int prot = (m->read ? PROT_READ : 0) | (m->write ? PROT_WRITE : 0) | (m->exec ? PROT_EXEC : 0);
	const struct dp_region new = {
	        .addr = m->start.v, .size = m->end.v - m->start.v, .offset = m->offset, .prot = prot, .mapped = true};
	if (in->nregions && continues(&in->region[in->nregions - 1], &new)) {
		in->region[in->nregions - 1].size += new.size;
		return NULL;
	}
	struct dp_region *grown = realloc(in->region, (in->nregions + 1) * sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	in->region = grown;
	in->region[in->nregions++] = new;
	return NULL;
}

static struct dp_error *add_descriptor(struct dp_target *t, int64_t fd, uint64_t inode, void *data)
{
	struct dp_resident *s = group_of(t, data, inode);
	if (!s)
		return dp_error_nomem();
	s->fd = fd;
	return NULL;
}

/* Is it directly after one of our regions? Then it belongs to that group, which finds it by itself. */
static bool belongs(const struct dp_groups *groups, const struct dp_region *private)
{
	for (size_t i = 0; i < groups->n; i++)
		for (size_t k = 0; k < groups->group[i]->in.nregions; k++) {
			const struct dp_region *r = &groups->group[i]->in.region[k];
			if (r->addr + r->size == private->addr)
				return true;
		}
	return false;
}

/* The private region of a memfd whose data is not mapped yet, or that was not even created. */
static struct dp_error *add_private(struct dp_target *t, struct dp_groups *groups)
{
	const struct dp_region stray = dp_leftover_private(t);
	if (!stray.mapped || belongs(groups, &stray))
		return NULL;
	struct dp_resident *s = group_of(t, groups, 0);
	if (!s)
		return dp_error_nomem();
	s->in.private = stray;
	return NULL;
}

/* ---- one group ---------------------------------------------------------------------------------------------------------------
 */

/* Finds the control page: a writable region that starts with its magic word. *sink: one starts with the LTTng sink's. */
static struct dp_error *find_data(struct dp_resident *s, bool *sink)
{
	for (size_t i = 0; i < s->in.nregions; i++) {
		const struct dp_region *r = &s->in.region[i];
		uint64_t magic = 0;
		if (!(r->prot & PROT_WRITE) ||
		    dp_mem_read(&s->target->process, dp_addr_of(r->addr), &magic, sizeof(magic)) != sizeof(magic))
			continue;
		*sink |= magic == DP_SINK_MAGIC;
		if (magic != DP_MAGIC)
			continue;
		if (s->data)
			return dp_error(DP_TAG_DAMAGED, "process %d has two control pages of one dynprobe",
			                s->target->process.pid);
		s->data = r->addr;
		s->data_size = r->size;
	}
	return NULL;
}

static bool has_code(const struct dp_resident *s)
{
	for (size_t i = 0; i < s->in.nregions; i++)
		if (s->in.region[i].prot & PROT_EXEC)
			return true;
	return false;
}

static bool is_private(const struct dp_target *t, uint64_t addr, uint64_t size)
{
	const struct dp_map *m = dp_image_map_at(t->image, dp_addr_of(addr));
	return m && m->end.v - addr >= size && !m->inode && m->write && !m->shared;
}

/* `named`: its size as the control page has it, or 0. */
static bool find_private(struct dp_resident *s, uint64_t addr, uint64_t named)
{
	const uint64_t least = dp_page_up(sizeof(struct dp_agent)), size = named > least ? dp_page_down(named) : least;
	uint64_t live = 0;
	if (!is_private(s->target, addr, size))
		return false;
	s->in.private = (struct dp_region){.addr = addr, .size = size, .mapped = true};
	s->in.live = dp_mem_read(&s->target->process, dp_addr_of(addr), &live, sizeof(live)) == sizeof(live) && live == DP_LIVE;
	return true;
}

/* Without a control page: the private region is after the only writable one (layout.c). */
static struct dp_error *without_control(struct dp_resident *s, enum dp_group_kind *kind)
{
	for (size_t i = 0; i < s->in.nregions && !s->in.private.mapped; i++)
		if (s->in.region[i].prot & PROT_WRITE)
			find_private(s, s->in.region[i].addr + s->in.region[i].size, 0);
	if (s->in.live)
		return dp_error(DP_TAG_DAMAGED, "the control page of an earlier dynprobe in process %d has been overwritten",
		                s->target->process.pid);
	*kind = DP_GROUP_LEFT;
	return NULL;
}

bool dp_control_is_local(const struct dp_control *c)
{
	struct stat st;
	return !stat("/proc/self/ns/pid", &st) && st.st_ino == c->tool_ns;
}

/* Also true if the tool is in another pid namespace, where its pid cannot be checked. */
static bool tool_lives(const struct dp_control *c)
{
	if (!c->tool_pid)
		return false;
	if (!dp_control_is_local(c))
		return true;
	const uint64_t start = dp_process_start_time((pid_t)c->tool_pid);
	return start && start == c->tool_start;
}

static struct dp_error *check_control(const struct dp_resident *s)
{
	const struct dp_target *t = s->target;
	const struct dp_control *c = &s->control;
	if (c->abi != DP_ABI_VERSION)
		return dp_error(DP_TAG_LOCKED,
		                "process %d has probes of another version of dynprobe; remove them with that version",
		                t->process.pid);
	if (!dp_control_valid(c, s->data_size) || c->private_addr != s->data + s->data_size || !s->in.private.mapped)
		return dp_error(DP_TAG_DAMAGED, "the control page of an earlier dynprobe in process %d is damaged",
		                t->process.pid);
	if (s->in.live && tool_lives(c))
		return dp_error(DP_TAG_LOCKED, "another dynprobe (%llu) is using process %d (%s); stop it first",
		                (unsigned long long)c->tool_pid, t->process.pid, t->process.comm);
	return NULL;
}

/*
 * Is it a dynprobe's view of its target? Such a view has no code with it. A mapping that happens to follow it, such as a new
 * heap, is not the region that the control page names.
 */
static bool is_view(const struct dp_resident *s)
{
	const bool behind = s->in.private.mapped && s->control.private_addr == s->data + s->data_size;
	return !has_code(s) && !s->in.live && !behind;
}

static struct dp_error *with_control(struct dp_resident *s, enum dp_group_kind *kind)
{
	DP_TRY(dp_resident_get(s, 0, &s->control, sizeof(s->control)));
	find_private(s, s->data + s->data_size, s->control.private_size);
	if (is_view(s))
		return NULL;
	DP_TRY(check_control(s));
	s->in.foreign = !s->in.live;
	DP_TRY(dp_resident_read_sites(s));
	s->in.sink = s->control.sink;
	s->in.trap = s->control.trap;
	s->in.calls_out |= s->in.sink != 0;
	*kind = s->control.kept && !s->in.foreign ? DP_GROUP_KEPT : DP_GROUP_LEFT;
	return *kind == DP_GROUP_KEPT ? dp_resident_read_manifest(s) : NULL;
}

static struct dp_error *read_group(struct dp_resident *s, enum dp_group_kind *kind)
{
	bool sink = false;
	*kind = DP_GROUP_OTHER;
	DP_TRY(find_data(s, &sink));
	if (sink)
		return NULL;
	return s->data ? with_control(s, kind) : without_control(s, kind);
}

struct dp_error *dp_groups_find(struct dp_target *t, struct dp_groups *ret)
{
	*ret = (struct dp_groups){0};
	for (size_t i = 0; i < dp_image_nmaps(t->image); i++) {
		const struct dp_map *m = dp_image_map(t->image, i);
		if (strcmp(m->path, OUR_PATH) != 0)
			continue;
		struct dp_resident *s = group_of(t, ret, m->inode);
		if (!s)
			return dp_error_nomem();
		DP_TRY(add_region(&s->in, m));
	}
	DP_TRY(dp_leftover_descriptors(t, add_descriptor, ret));
	DP_TRY(add_private(t, ret));
	for (size_t i = 0; i < ret->n; i++)
		DP_TRY(read_group(ret->group[i], &ret->kind[i]));
	return NULL;
}
