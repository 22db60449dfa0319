/* SPDX-License-Identifier: MIT */
/*
 * A tool that is killed while mapping leaves the memfd's descriptor open in the target. It may have mapped only the private
 * region, which then contains the memfd's name and nothing else.
 */
#include "injector/target/group/leftover.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define OUR_PATH "/memfd:" DP_MEMFD_NAME " (deleted)"

static bool is_ours(const char *dir, const char *name, uint64_t *inode)
{
	char path[320], link[64];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	const ssize_t n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return false;
	link[n] = 0;
	if (strcmp(link, OUR_PATH) != 0 || stat(path, &st))
		return false;
	*inode = st.st_ino;
	return true;
}

bool dp_leftover_is_ours(const struct dp_target *t, int64_t fd)
{
	char dir[64], name[24];
	uint64_t inode;
	snprintf(dir, sizeof(dir), "/proc/%d/task/%d/fd", t->process.pid, t->process.alive);
	snprintf(name, sizeof(name), "%lld", (long long)fd);
	return fd >= 0 && is_ours(dir, name, &inode);
}

struct dp_error *dp_descriptors(struct dp_target *t, dp_leftover_fn found, void *data)
{
	char dir[64];
	snprintf(dir, sizeof(dir), "/proc/%d/task/%d/fd", t->process.pid, t->process.alive);
	dp_auto_closedir DIR *d = opendir(dir);
	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.')
			DP_TRY(found(t, strtoll(e->d_name, NULL, 10), 0, data));
	return NULL;
}

struct dp_error *dp_leftover_descriptors(struct dp_target *t, dp_leftover_fn found, void *data)
{
	char dir[64];
	snprintf(dir, sizeof(dir), "/proc/%d/task/%d/fd", t->process.pid, t->process.alive);
	dp_auto_closedir DIR *d = opendir(dir);
	for (struct dirent *e; d && (e = readdir(d));) {
		uint64_t inode;
		if (e->d_name[0] != '.' && is_ours(dir, e->d_name, &inode))
			DP_TRY(found(t, strtoll(e->d_name, NULL, 10), inode, data));
	}
	return NULL;
}

/* The state right after mapping.c has written the name. */
static bool just_made(struct dp_target *t, const struct dp_map *m)
{
	const struct dp_private_note note = {DP_MEMFD_NAME, m->end.v - m->start.v};
	struct dp_agent *agent = calloc(1, sizeof(*agent)), *none = calloc(1, sizeof(*none));
	bool is = agent && none && dp_mem_read(&t->process, m->start, agent, sizeof(*agent)) == sizeof(*agent);
	if (is) {
		memcpy((char *)none + sizeof(uint64_t), &note, sizeof(note));
		is = !memcmp(agent, none, sizeof(*agent));
	}
	free(agent);
	free(none);
	return is;
}

struct dp_region dp_leftover_private(struct dp_target *t)
{
	const uint64_t least = dp_page_up(sizeof(struct dp_agent));
	for (size_t i = 0; i < dp_image_nmaps(t->image); i++) {
		const struct dp_map *m = dp_image_map(t->image, i);
		if (m->inode || !m->write || m->shared || m->exec || m->end.v - m->start.v < least || !just_made(t, m))
			continue;
		return (struct dp_region){.addr = m->start.v, .size = m->end.v - m->start.v, .mapped = true};
	}
	return (struct dp_region){0};
}
