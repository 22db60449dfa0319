/* SPDX-License-Identifier: MIT */
/*
 * A process holds a group's memory if the control page is at its address and names the private region at its own. Each group has
 * random addresses (layout.c). Reading both is one system call for each process (process_vm_readv), which needs no descriptor: 6 us,
 * so 12 ms with 2,000 processes.
 */
#include "injector/target/events/holders.h"

#include "agent/abi.h"
#include "injector/tracee/proc/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct page {
	uint64_t magic, private; /* of struct dp_control */
	uint64_t live, process;  /* of struct dp_agent */
};

/* 0, or errno. */
static int read_page(const struct dp_group_at *g, pid_t tid, struct page *ret)
{
	const uint64_t at[] = {g->data + offsetof(struct dp_control, magic), g->data + offsetof(struct dp_control, private_addr),
	                       g->private + offsetof(struct dp_agent, live), g->private + offsetof(struct dp_agent, process)};
	struct iovec here = {ret, sizeof(*ret)}, there[4];
	for (int i = 0; i < 4; i++)
		there[i] = (struct iovec){(void *)(uintptr_t)at[i], sizeof(uint64_t)};
	const ssize_t got = process_vm_readv(tid, &here, 1, there, 4, 0);
	if (got < 0)
		return errno;
	return got == (ssize_t)sizeof(*ret) && ret->magic == DP_MAGIC && ret->private == g->private ? 0 : EFAULT;
}

/* The directory's link count tells without opening it: two, and one for each thread. */
static bool has_threads(pid_t pid)
{
	char path[48];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return !stat(path, &st) && st.st_nlink > 3;
}

/* A first thread that has ended has no memory any more; the others have. Kernel threads and zombies have none either. */
static int read_any(const struct dp_group_at *g, pid_t pid, struct page *ret)
{
	struct dp_tids tids;
	int err = read_page(g, pid, ret);
	if (err != ESRCH || !has_threads(pid))
		return err;
	if (!dp_proc_tids(pid, &tids))
		return ENOMEM;
	for (size_t i = 0; err == ESRCH && i < tids.n; i++)
		if (tids.tid[i] != pid)
			err = read_page(g, tids.tid[i], ret);
	free(tids.tid);
	return err;
}

struct walk {
	bool (*inspect)(pid_t pid, const struct walk *w);
	const struct dp_group_at *at;
	pid_t except;
	uint64_t start_time; /* of `except` */
	dp_holder_fn found;
	void *data;
	bool incomplete;
};

static bool visit(pid_t pid, void *data)
{
	struct walk *w = data;
	if (pid != w->except && pid != getpid())
		w->incomplete |= !w->inspect(pid, w);
	return true;
}

static bool walk(struct walk w)
{
	const bool all = dp_proc_each(visit, &w);
	return all && !w.incomplete;
}

static bool inspect_one(pid_t pid, const struct walk *w)
{
	struct page page = {0};
	const int err = read_any(w->at, pid, &page);
	if (err == ESRCH || err == EFAULT)
		return true;
	if (err)
		return w->found(&(struct dp_holder){.pid = pid, .unreadable = true}, w->data);
	return w->found(&(struct dp_holder){.pid = pid, .live = page.live, .process = (uint32_t)page.process}, w->data);
}

bool dp_holders_find(const struct dp_group_at *at, pid_t except, dp_holder_fn found, void *data)
{
	return walk((struct walk){.inspect = inspect_one, .at = at, .except = except, .found = found, .data = data});
}

/* ---- by the list of mappings ------------------------------------------------------------------------------------------ */

/* If the mapping at `addr` begins with a control page that names the target. */
static bool names_target(pid_t pid, uint64_t addr, const struct walk *w, struct dp_group_at *ret)
{
	struct dp_control c;
	struct iovec here = {&c, sizeof(c)}, there = {(void *)(uintptr_t)addr, sizeof(c)};
	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)sizeof(c) || c.magic != DP_MAGIC)
		return false;
	*ret = (struct dp_group_at){.data = addr, .private = c.private_addr};
	return c.target_pid == (uint64_t)w->except && c.target_start == w->start_time;
}

static bool inspect_maps(pid_t pid, const struct walk *w)
{
	static const char ours[] = "/memfd:" DP_MEMFD_NAME " (deleted)\n";
	struct dp_group_at at;
	struct page page;
	struct dp_buf b;
	bool is = false;
	dp_buf_init(&b);
	const char *line = dp_proc_slurp(&b, "/proc/%d/maps", pid) ? strstr(dp_buf_str(&b), ours) : NULL;
	for (; line && !is; line = strstr(line + 1, ours)) {
		while (line > dp_buf_str(&b) && line[-1] != '\n')
			line--;
		is = names_target(pid, strtoull(line, NULL, 16), w, &at) && !read_page(&at, pid, &page);
		line = strchr(line, '\n');
	}
	dp_buf_fini(&b);
	return !is || w->found(&(struct dp_holder){.pid = pid, .live = page.live, .process = (uint32_t)page.process}, w->data);
}

bool dp_holders_of(pid_t target, uint64_t start_time, dp_holder_fn found, void *data)
{
	return walk((struct walk){
	        .inspect = inspect_maps, .except = target, .start_time = start_time, .found = found, .data = data});
}
