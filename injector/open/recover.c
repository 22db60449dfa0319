/* SPDX-License-Identifier: MIT */
/*
 * Handles what earlier dynprobes left in a process (resident_find.c finds it).
 *
 * A lock on the process's /proc entry excludes a second tool. It needs nothing from the process, and ends with its holder. So a
 * group without a control page belongs to a dead tool, and is not just being made.
 *
 * Four cases. A living tool serves the group: refuse (decision 17). It was left on purpose: it becomes one of the target's
 * resident groups. Its tool is dead: restore and unmap. The process is a fork of a probed one (its private region reads as zero):
 * its text and mappings are its own to clean up, but the site table belongs to its parent and is only read.
 */
#include "injector/open/recover.h"

#include "injector/patch/quiesce/code_index.h"
#include "injector/patch/remove.h"
#include "injector/patch/replace/replace.h"
#include "injector/resident/resident.h"
#include "injector/target/events/holders.h"
#include "injector/tracee/proc/proc.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ENDING_NS  UINT64_C(3000000000) /* for a child of a tool that has ended */
#define UNKNOWN_NS UINT64_C(50000000)   /* the kernel does not name the holder: released meanwhile, or in another pid namespace */

/* The holder of the lock, from /proc/locks ("1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF"); 0 if unknown. */
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

static bool lives(pid_t pid)
{
	struct dp_task_stat stat;
	return dp_proc_stat(pid, 0, &stat) && stat.state != 'Z' && stat.state != 'X';
}

/*
 * A tool that has ended may have a child that is about to end and still holds the lock through its copy of the descriptor; that
 * is no reason to refuse. False: a living tool holds the lock.
 */
static bool take_lock(int fd, pid_t *holder)
{
	const uint64_t until = dp_now_ns() + ENDING_NS;
	uint64_t unknown = dp_now_ns() + UNKNOWN_NS;
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		const uint64_t now = dp_now_ns();
		*holder = lock_holder(fd);
		if (*holder > 0) /* /proc/locks may lack a lock once, while others come and go */
			unknown = now + UNKNOWN_NS;
		if (now >= until || (*holder > 0 ? lives(*holder) : now >= unknown))
			return false;
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
	return true;
}

/*
 * Not /proc/PID/mem, which cannot be opened after the first thread has ended: this file can be opened as long as the process has
 * a thread, by its owner and root only.
 */
struct dp_error *dp_lock(struct dp_target *t)
{
	char path[48];
	snprintf(path, sizeof(path), "/proc/%d/personality", t->process.pid);
	t->lock_fd = open(path, O_RDONLY | O_CLOEXEC);
	pid_t holder = 0;
	if (t->lock_fd < 0 || take_lock(t->lock_fd, &holder))
		return NULL; /* if it cannot be opened here, a later step fails with its own reason */
	return dp_error(DP_TAG_LOCKED, "another dynprobe (%d) is using process %d (%s); stop it first", holder, t->process.pid,
	                t->process.comm);
}

static struct dp_error *take_out(struct dp_target *t, struct dp_resident *s)
{
	struct dp_remove_report report;
	t->remote_fd = s->fd;
	struct dp_error *err = dp_installation_remove(t, &s->in, &report);
	t->remote_fd = -1;
	if (err)
		return err;
	if (report.left_bytes || report.left_sites)
		return dp_error_advise(
		        dp_error(DP_TAG_BUSY, "the probes that an earlier dynprobe left in process %d cannot be removed yet: %s",
		                 t->process.pid, report.why),
		        report.foreign
		                ? "let the other tool take its bytes back first (a debugger: delete its breakpoints), then try "
		                  "again"
		                : "try again when that has passed; a stopped process must continue first (kill -CONT PID)");
	dp_target_log(t, "removed what an earlier dynprobe left in process %d", t->process.pid);
	return NULL;
}

/* ---- state of each site ---------------------------------------------------------------------------------------------------- */

static bool stands(const struct dp_placed *q, const uint8_t *now)
{
	return dp_placed_stands(q) && !memcmp(now, q->new_bytes, q->len);
}

/* Do the bytes at `addr` belong to a group of that kind, other than `self`? */
static bool claimed(const struct dp_groups *g, enum dp_group_kind kind, size_t self, uint64_t addr, const uint8_t *now)
{
	for (size_t i = 0; i < g->n; i++) {
		struct dp_near near = dp_near(&g->group[i]->in, addr, addr + 1);
		for (size_t k; g->kind[i] == kind && i != self && (k = dp_near_next(&near)) != SIZE_MAX;)
			if (stands(&g->group[i]->in.placed[k], now))
				return true;
	}
	return false;
}

static bool original(const struct dp_placed *p, const uint8_t *now)
{
	return !memcmp(now, p->old_bytes, p->len) || (now[0] == 0xcc && !memcmp(now + 1, p->old_bytes + 1, p->len - 1u));
}

/*
 * The text decides what is installed, because the tool that wrote text and table may have been killed between the two. A probe
 * under another resident one was superseded. A site of our own waits below until the one above is removed. A site under an
 * unfinished group comes back when that group is removed.
 */
static void settle(struct dp_target *t, const struct dp_groups *g, size_t i, struct dp_placed *p)
{
	uint8_t now[sizeof(p->new_bytes)];
	if (p->state != DP_SITE_PLANNED)
		return;
	const bool there = dp_mem_read(&t->process, dp_addr_of(p->addr), now, p->len) == p->len;
	if (there && !memcmp(now, p->new_bytes, p->len))
		return;
	const bool kept = there && claimed(g, DP_GROUP_KEPT, i, p->addr, now);
	p->covered = kept || (there && claimed(g, DP_GROUP_LEFT, i, p->addr, now));
	if (there && (original(p, now) || (kept && p->probe != DP_NO_PROBE)))
		dp_placed_mark(t, p, DP_SITE_RESTORED);
	else
		p->changed = !p->covered;
}

/* Of two leftovers at one place (a fork's, for example) only one can have something to restore. */
static void settle_left(struct dp_target *t, const struct dp_groups *g, size_t i, struct dp_placed *p)
{
	uint8_t now[sizeof(p->new_bytes)];
	if (dp_mem_read(&t->process, dp_addr_of(p->addr), now, p->len) == p->len && memcmp(now, p->new_bytes, p->len) != 0 &&
	    claimed(g, DP_GROUP_LEFT, i, p->addr, now))
		p->state = DP_SITE_RESTORED;
}

static void settle_all(struct dp_target *t, const struct dp_groups *g)
{
	for (size_t i = 0; i < g->n; i++)
		for (size_t k = 0; k < g->group[i]->in.nplaced; k++) {
			struct dp_placed *p = &g->group[i]->in.placed[k];
			if (g->kind[i] == DP_GROUP_KEPT)
				settle(t, g, i, p);
			else if (g->kind[i] == DP_GROUP_LEFT)
				settle_left(t, g, i, p);
		}
}

/* ---- handling the groups --------------------------------------------------------------------------------------------------- */

/* The groups left on purpose become the target's. */
static struct dp_error *hand_over(struct dp_target *t, struct dp_groups *g)
{
	t->resident = calloc(g->n + 1, sizeof(struct dp_resident *));
	if (!t->resident)
		return dp_error_nomem();
	for (size_t i = 0; i < g->n; i++) {
		if (g->kind[i] != DP_GROUP_KEPT)
			continue;
		struct dp_resident *s = dp_take(g->group[i], NULL);
		g->kind[i] = DP_GROUP_OTHER;
		t->resident[t->nstanding++] = s;
		if (s->control.tool_pid)
			DP_TRY(dp_resident_unserve(s));
	}
	return NULL;
}

static struct dp_error *take_out_left(struct dp_target *t, const struct dp_groups *g, bool *changed)
{
	for (size_t i = 0, k = 0; i < g->n; i++) {
		if (g->kind[i] != DP_GROUP_LEFT)
			continue;
		DP_TRY(take_out(t, g->group[i]));
		t->leftover[k++].removed = true;
		*changed = true;
	}
	return NULL;
}

/* ---- what was found, for reports and for a later search of fork children ------------------------------------------------------
 */

static size_t changed_places(struct dp_target *t, const struct dp_installation *in)
{
	uint8_t now[sizeof(in->placed->new_bytes)];
	size_t n = 0;
	for (size_t i = 0; i < in->nplaced; i++) {
		const struct dp_placed *p = &in->placed[i];
		n += p->state != DP_SITE_RESTORED && dp_mem_read(&t->process, dp_addr_of(p->addr), now, p->len) == p->len &&
		     !memcmp(now, p->new_bytes, p->len);
	}
	return n;
}

static void describe_left(struct dp_target *t, const struct dp_resident *s, struct dp_leftover *ret)
{
	const struct dp_control *c = &s->control;
	*ret = (struct dp_leftover){.forked = s->in.foreign, .places = changed_places(t, &s->in)};
	for (size_t i = 0; i < s->in.nregions; i++)
		ret->bytes += s->in.region[i].size;
	if (!s->in.foreign || !dp_control_is_local(c))
		return;
	ret->fork_of = (pid_t)c->target_pid;
	ret->fork_of_lives = c->target_pid && dp_process_start_time((pid_t)c->target_pid) == c->target_start;
	ret->tool = c->tool_pid && dp_process_start_time((pid_t)c->tool_pid) == c->tool_start ? (pid_t)c->tool_pid : 0;
}

static struct dp_error *describe_all(struct dp_target *t, const struct dp_groups *g)
{
	t->leftover = calloc(g->n + 1, sizeof(*t->leftover));
	if (!t->leftover)
		return dp_error_nomem();
	for (size_t i = 0; i < g->n; i++)
		if (g->kind[i] == DP_GROUP_LEFT)
			describe_left(t, g->group[i], &t->leftover[t->nleftovers++]);
	return NULL;
}

/* Those of this process itself: those that it inherited are its brothers', too. */
static void remember(struct dp_target *t, const struct dp_groups *g, enum dp_group_kind kind)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct dp_resident *s = g->group[i];
		if (g->kind[i] == kind && s->data && s->in.live)
			t->found[t->nfound++] = (struct dp_group_at){s->data, s->data + s->data_size};
	}
}

static struct dp_error *take_notes(struct dp_target *t, const struct dp_groups *g)
{
	t->found = calloc(g->n + 1, sizeof(*t->found));
	if (!t->found)
		return dp_error_nomem();
	remember(t, g, DP_GROUP_LEFT);
	t->nfound_left = t->nfound;
	remember(t, g, DP_GROUP_KEPT);
	return describe_all(t, g);
}

const struct dp_leftover *dp_target_leftovers(const struct dp_target *t, size_t *n)
{
	*n = t->nleftovers;
	return t->leftover;
}

/* Removes new text that a killed tool never moved into place. */
static struct dp_error *sweep_text(struct dp_target *t, const struct dp_groups *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->kind[i] != DP_GROUP_OTHER)
			DP_TRY(dp_replace_sweep(t, &g->group[i]->in));
	return NULL;
}

/* For a removal that was cut short, or probes all superseded with threads inside. If these still are, the next tool retries. */
static void take_out_empty(struct dp_target *t, bool *changed)
{
	size_t kept = 0;
	for (size_t i = 0; i < t->nstanding; i++) {
		struct dp_resident *s = t->resident[i];
		struct dp_error *err = dp_resident_any(s) ? NULL : take_out(t, s);
		if (err || dp_resident_any(s)) {
			t->resident[kept++] = s;
		} else {
			dp_resident_destroy(s);
			*changed = true;
		}
		dp_error_destroy(err);
	}
	t->nstanding = kept;
}

struct dp_error *dp_recover(struct dp_target *t)
{
	struct dp_groups groups;
	bool changed = false;
	struct dp_error *err = dp_groups_find(t, &groups);
	if (!err) {
		settle_all(t, &groups);
		err = take_notes(t, &groups);
	}
	if (!err && !t->options.look)
		err = sweep_text(t, &groups);
	if (!err)
		err = hand_over(t, &groups);
	if (!err && !t->options.look) {
		err = take_out_left(t, &groups, &changed);
		if (!err)
			take_out_empty(t, &changed);
		if (!err)
			err = dp_boot_sweep(t);
	}
	dp_groups_fini(&groups);
	return err || !changed ? err : dp_target_refresh(t);
}
