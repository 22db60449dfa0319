/* SPDX-License-Identifier: MIT */
/*
 * Finding what an earlier dynprobe left in a process. Our mappings carry the memfd's name, and the one that starts with the
 * control page's magic word leads to everything else: the site table with the original bytes, the tool that serves it, the
 * private region.
 *
 * Two tools that open the same process at once are kept apart by a lock on its /proc entry, which no process has to be asked for
 * and which ends with its holder. So what is found without a control page is a dead tool's, and not one that is just being made.
 *
 * Three cases: the tool lives and serves this process: refuse (decision 17). The tool is dead: restore and unmap as it would
 * have. The process is a fork of a probed one (its private region reads as zero): its text and mappings are its own to clean, but
 * the site table is its parent's and is only read.
 */
#include "injector/target.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SITES 1000000u
#define OUR_PATH  "/memfd:" DP_MEMFD_NAME " (deleted)"

static bool is_ours(const struct dp_map *m)
{
	return !strcmp(m->path, OUR_PATH);
}

static struct dp_error *add_region(struct dp_installation *in, const struct dp_map *m)
{
	struct dp_region *grown = realloc(in->region, (in->nregions + 1) * sizeof(*grown));
	if (!grown)
		return dp_error(DP_TAG_NOMEM, "out of memory for the list of mappings");
	in->region = grown;
	const int prot = (m->read ? PROT_READ : 0) | (m->write ? PROT_WRITE : 0) | (m->exec ? PROT_EXEC : 0);
	in->region[in->nregions++] = (struct dp_region){
	        .addr = m->start.v, .size = m->end.v - m->start.v, .offset = m->offset, .prot = prot, .mapped = true};
	return NULL;
}

/* Whose lock is on the file, by the kernel's list ("1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF"); 0 if it does not say. */
static pid_t lock_holder(int fd)
{
	struct stat st;
	char line[256];
	pid_t pid = 0;
	dp_auto_fclose FILE *f = fopen("/proc/locks", "re");
	if (!f || fstat(fd, &st))
		return 0;
	while (!pid && fgets(line, sizeof(line), f)) {
		unsigned long long inode;
		int holder;
		if (sscanf(line, "%*d: FLOCK %*s %*s %d %*x:%*x:%llu", &holder, &inode) == 2 && inode == st.st_ino)
			pid = holder;
	}
	return pid;
}

struct dp_error *dp_lock(struct dp_target *t)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/mem", t->process.pid);
	t->lock_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (t->lock_fd < 0 || !flock(t->lock_fd, LOCK_EX | LOCK_NB))
		return NULL; /* what cannot be opened here will be refused with its own reason */
	const pid_t holder = lock_holder(t->lock_fd);
	return dp_error(DP_TAG_LOCKED, "another dynprobe (%d) is at work in %d (%s); stop it first", holder, t->process.pid,
	                t->process.comm);
}

/* Collects our mappings; the control page's address is 0 if none holds one. */
static struct dp_error *find_regions(struct dp_target *t, uint64_t *control)
{
	size_t controls = 0;
	*control = 0;
	for (size_t i = 0; i < dp_image_nmaps(t->image); i++) {
		const struct dp_map *m = dp_image_map(t->image, i);
		uint64_t magic = 0;
		if (!is_ours(m))
			continue;
		DP_TRY(add_region(&t->in, m));
		if (m->write && dp_mem_read(&t->process, m->start, &magic, sizeof(magic)) == sizeof(magic) && magic == DP_MAGIC) {
			*control = m->start.v;
			controls++;
		}
	}
	if (controls > 1)
		return dp_error(DP_TAG_BUSY, "%d holds what two tools left; it is not clear what belongs to which",
		                t->process.pid);
	return NULL;
}

/* Is it the same pid namespace as ours, or can its pids not be judged from here? */
static bool tool_lives(const struct dp_control *c)
{
	struct stat st;
	if (stat("/proc/self/ns/pid", &st) || st.st_ino != c->tool_ns)
		return true;
	const uint64_t start = dp_process_start_time((pid_t)c->tool_pid);
	return start && start == c->tool_start;
}

static bool is_private(const struct dp_target *t, uint64_t addr, uint64_t size)
{
	const struct dp_map *m = dp_image_map_at(t->image, dp_addr_of(addr));
	return m && addr + size <= m->end.v && !m->inode && m->write && !m->shared;
}

/* Before there was a control page: the private region lies behind the only writable one (layout.c). */
static void guess_private(struct dp_target *t)
{
	const uint64_t size = dp_page_up(sizeof(struct dp_agent));
	for (size_t i = 0; i < t->in.nregions; i++) {
		const struct dp_region *r = &t->in.region[i];
		if ((r->prot & PROT_WRITE) && is_private(t, r->addr + r->size, size))
			t->in.private = (struct dp_region){.addr = r->addr + r->size, .size = size, .mapped = true};
	}
}

static struct dp_error *find_sites(struct dp_target *t, const struct dp_control *c, uint64_t control)
{
	if (c->nsites > MAX_SITES)
		return dp_error(DP_TAG_INTERNAL, "the site table of an earlier dynprobe in %d is damaged", t->process.pid);
	t->in.placed = calloc(c->nsites + 1u, sizeof(*t->in.placed));
	if (!t->in.placed)
		return dp_error(DP_TAG_NOMEM, "out of memory for the list of sites");
	for (size_t i = 0; i < c->nsites; i++) {
		struct dp_site_entry e;
		const dp_addr at = dp_addr_of(control + c->sites_offset + i * sizeof(e));
		if (dp_mem_read(&t->process, at, &e, sizeof(e)) != sizeof(e) || !e.len || e.len > sizeof(e.old_bytes))
			return dp_error(DP_TAG_BUSY, "the site table of an earlier dynprobe in %d cannot be read",
			                t->process.pid);
		struct dp_placed *p = &t->in.placed[t->in.nplaced++];
		*p = (struct dp_placed){.addr = e.addr, .len = e.len, .written = true};
		/* A fork's table is its parent's: what has become of the sites there since says nothing about here. */
		p->state = !t->in.foreign && e.state == DP_SITE_RETIRED ? DP_SITE_RETIRED : DP_SITE_PLANNED;
		memcpy(p->old_bytes, e.old_bytes, sizeof(p->old_bytes));
		memcpy(p->new_bytes, e.new_bytes, sizeof(p->new_bytes));
	}
	return NULL;
}

/* *ours: there is something to take out. A tool's own view of a target's rings looks alike, but has no private region. */
static struct dp_error *read_control(struct dp_target *t, uint64_t control, bool *ours)
{
	struct dp_control c;
	uint64_t live = 0;
	if (dp_mem_read(&t->process, dp_addr_of(control), &c, sizeof(c)) != sizeof(c) || c.abi != DP_ABI_VERSION)
		return dp_error(DP_TAG_LOCKED, "%d holds probes of another version of dynprobe; remove them with that one",
		                t->process.pid);
	*ours = is_private(t, c.private_addr, c.private_size);
	if (!*ours)
		return NULL;
	if (dp_mem_read(&t->process, dp_addr_of(c.private_addr), &live, sizeof(live)) != sizeof(live))
		return dp_error(DP_TAG_BUSY, "what an earlier dynprobe left in %d cannot be read", t->process.pid);
	t->in.foreign = live != DP_LIVE;
	if (!t->in.foreign && tool_lives(&c))
		return dp_error(DP_TAG_LOCKED, "dynprobe %llu is at work in %d (%s); stop it first",
		                (unsigned long long)c.tool_pid, t->process.pid, t->process.comm);
	t->in.private = (struct dp_region){.addr = c.private_addr, .size = c.private_size, .mapped = true};
	return find_sites(t, &c, control);
}

static struct dp_error *take_out(struct dp_target *t)
{
	struct dp_remove_report report;
	DP_TRY(dp_installation_remove(t, &report));
	if (report.left_bytes || report.left_sites)
		return dp_error(DP_TAG_BUSY, "what an earlier dynprobe left in %d cannot be removed yet: %s", t->process.pid,
		                report.why);
	dp_target_say(t, "removed what an earlier dynprobe had left in %d", t->process.pid);
	return dp_target_refresh(t);
}

struct dp_error *dp_recover(struct dp_target *t)
{
	uint64_t control;
	struct dp_error *err = find_regions(t, &control);
	bool ours = t->in.nregions;
	if (!err && control)
		err = read_control(t, control, &ours);
	else if (!err && ours)
		guess_private(t);
	if (!err && ours)
		err = take_out(t);
	dp_installation_fini(&t->in);
	return err;
}
