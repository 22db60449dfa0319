/* SPDX-License-Identifier: MIT */
/*
 * A control group's limit also applies to the groups below it, so this looks at each one from the process's own up to the mount
 * point. /proc/PID/cgroup and our mountinfo both show paths relative to our control group namespace.
 */
#include "injector/target/room/headroom.h"

#include "base/buf.h"
#include "injector/tracee/proc/proc.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct names { /* of the files of one version */
	const char *most[2], *used, *cache;
};
static const struct names v1 = {{"memory.limit_in_bytes", NULL}, "memory.usage_in_bytes", "total_inactive_file"};
static const struct names v2 = {{"memory.max", "memory.high"}, "memory.current", "inactive_file"};

#define UNLIMITED (UINT64_MAX / 4) /* version 1 uses a number about this large for "no limit" */
#define PATH      1024

static bool slurp(struct dp_buf *b, const char *root, const char *path)
{
	char full[2 * PATH];
	dp_buf_init(b);
	if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
		return false;
	FILE *f = fopen(full, "re");
	char chunk[4096];
	size_t n;
	while (f && (n = fread(chunk, 1, sizeof(chunk), f)))
		dp_buf_put(b, chunk, n);
	if (f)
		fclose(f);
	return f && b->len;
}

static uint64_t number_of(const char *root, const char *dir, const char *file, uint64_t missing)
{
	struct dp_buf b;
	char path[PATH + 64], *end;
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	const bool got = slurp(&b, root, path);
	const char *text = dp_buf_str(&b);
	uint64_t n = got ? strtoull(text, &end, 10) : missing;
	if (got && end == text) /* "max" */
		n = missing;
	dp_buf_fini(&b);
	return n;
}

/* A line "NAME NUMBER". */
static uint64_t stat_of(const char *root, const char *dir, const char *name)
{
	struct dp_buf b;
	char path[PATH + 64];
	uint64_t n = 0;
	snprintf(path, sizeof(path), "%s/memory.stat", dir);
	if (slurp(&b, root, path))
		for (const char *at = dp_buf_str(&b); at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
			if (!strncmp(at, name, strlen(name)) && at[strlen(name)] == ' ')
				n = strtoull(at + strlen(name), NULL, 10);
	dp_buf_fini(&b);
	return n;
}

static void take(struct dp_headroom *h, uint64_t most, uint64_t used, const char *dir, const char *file)
{
	const uint64_t left = most > used ? most - used : 0;
	if (most >= UNLIMITED || left >= h->left)
		return;
	h->left = left;
	h->most = most;
	snprintf(h->by, sizeof(h->by), "%s/%s", dir, file);
}

static void look_at(const char *root, const char *dir, const struct names *names, struct dp_headroom *h)
{
	uint64_t used = number_of(root, dir, names->used, 0);
	const uint64_t cache = stat_of(root, dir, names->cache);
	used -= cache < used ? cache : used;
	for (size_t i = 0; i < 2 && names->most[i]; i++)
		take(h, number_of(root, dir, names->most[i], UINT64_MAX), used, dir, names->most[i]);
}

/* Examines the group at `path` below the mount point (whose root is the group `base`), and those above it. */
static void look_up(const char *root, const char *mount, const char *base, const char *path, const struct names *names,
                    struct dp_headroom *h)
{
	char dir[PATH];
	const size_t top = strlen(mount), n = strlen(base);
	if (strstr(path, "/..")) /* outside of the visible part of the hierarchy */
		path = "";
	else if (n > 1 && !strncmp(path, base, n) && (path[n] == '/' || !path[n]))
		path += n;
	else if (n > 1)
		path = "";
	if (snprintf(dir, sizeof(dir), "%s%s", mount, strcmp(path, "/") ? path : "") >= (int)sizeof(dir))
		return;
	for (;;) {
		look_at(root, dir, names, h);
		char *last = strrchr(dir, '/');
		if (strlen(dir) <= top || !last)
			return;
		*last = '\0';
	}
}

/*
 * The process's group in the hierarchy of the version 1 memory controller ("N:...,memory,...:PATH"), or of version 2 ("0::PATH").
 */
static bool group_of(const char *cgroup, bool second, char ret[PATH])
{
	for (const char *at = cgroup; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
		const char *names = strchr(at, ':'), *path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			return false;
		char list[128];
		snprintf(list, sizeof(list), ",%.*s,", (int)(path - names - 1), names + 1);
		if (second ? strcmp(list, ",,") != 0 : !strstr(list, ",memory,"))
			continue;
		snprintf(ret, PATH, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
		return true;
	}
	return false;
}

/* One line of mountinfo: "ID PARENT DEV ROOT MOUNTPOINT OPTIONS ... - TYPE SOURCE SUPER-OPTIONS". */
static void look_at_mount(const char *root, const char *line, const char *cgroup, struct dp_headroom *h)
{
	char base[PATH], mount[PATH], type[32], options[256], path[PATH];
	const char *rest = strstr(line, " - ");
	if (!rest || sscanf(line, "%*s %*s %*s %1023s %1023s", base, mount) != 2 ||
	    sscanf(rest + 3, "%31s %*s %255s", type, options) != 2)
		return;
	const bool second = !strcmp(type, "cgroup2");
	if (!second && (strcmp(type, "cgroup") != 0 || !strstr(options, "memory")))
		return;
	if (group_of(cgroup, second, path))
		look_up(root, mount, base, path, second ? &v2 : &v1, h);
}

void dp_headroom_read(const char *root, pid_t pid, struct dp_headroom *ret)
{
	struct dp_buf cgroup, mounts, machine;
	char path[64];
	*ret = (struct dp_headroom){.left = UINT64_MAX, .most = UINT64_MAX};
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	slurp(&cgroup, root, path);
	slurp(&mounts, root, "/proc/self/mountinfo");
	slurp(&machine, root, "/proc/meminfo");
	const char *groups = dp_buf_str(&cgroup), *info = dp_buf_str(&machine);
	char *next;
	for (char *line = strtok_r((char *)dp_buf_str(&mounts), "\n", &next); line; line = strtok_r(NULL, "\n", &next))
		look_at_mount(root, line, groups, ret);
	const char *free = dp_status_find(info, "MemAvailable"), *all = dp_status_find(info, "MemTotal");
	if (free && all) {
		const uint64_t most = strtoull(all, NULL, 10) << 10;
		take(ret, most, most - (strtoull(free, NULL, 10) << 10), "/proc", "meminfo");
	}
	dp_buf_fini(&cgroup);
	dp_buf_fini(&mounts);
	dp_buf_fini(&machine);
}
