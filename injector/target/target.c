/* SPDX-License-Identifier: MIT */
/* The image of a target, and simple queries. */
#include "injector/target/target.h"
#include "injector/tracee/proc/filter.h"

#include "injector/tracee/stop/freeze.h"
#include "probes/hazard/hazard.h"

#include "base/cleanup.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define HUGETLBFS_SUPER 0x958458f6

void dp_target_log(const struct dp_target *t, const char *fmt, ...)
{
	char line[512];
	va_list args;
	if (!t->options.verbose)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	t->options.verbose(line, t->options.verbose_data);
}

void dp_target_no_rings(struct dp_target *t)
{
	t->asked_ring = DP_RING_LEAST;
	t->asked_slots = 1;
}

/* The vdso is in no file: takes its bytes from the target. */
static struct dp_error *add_vdso(struct dp_target *t, struct dp_image *image)
{
	for (size_t i = 0; i < dp_image_nmaps(image); i++) {
		const struct dp_map *m = dp_image_map(image, i);
		if (strcmp(m->path, "[vdso]"))
			continue;
		const size_t size = m->end.v - m->start.v;
		uint8_t *bytes = malloc(size);
		struct dp_error *err = NULL;
		if (bytes && dp_mem_read(&t->process, m->start, bytes, size) == size)
			err = dp_image_set_vdso(image, bytes, size);
		free(bytes);
		return err;
	}
	return NULL;
}

static struct dp_error *make_image(struct dp_target *t, const char *maps, struct dp_image **ret)
{
	char root[32];
	snprintf(root, sizeof(root), "/proc/%d/root", t->process.alive);
	DP_TRY(dp_image_create(maps, root, t->process.alive, ret));
	return add_vdso(t, *ret);
}

struct dp_error *dp_target_refresh(struct dp_target *t)
{
	char *maps = NULL;
	DP_TRY(dp_process_maps(&t->process, &maps));
	free(t->maps);
	t->process.known_maps = t->maps = maps;
	t->image = dp_image_destroy(t->image);
	return make_image(t, maps, &t->image);
}

struct dp_error *dp_target_look_for_code(struct dp_target *t, struct dp_image **ret)
{
	dp_auto_free char *maps = NULL;
	bool same = false;
	*ret = NULL;
	DP_TRY(dp_process_maps(&t->process, &maps));
	DP_TRY(dp_image_knows_code(t->image, maps, &same));
	if (same)
		return NULL;
	struct dp_error *err = make_image(t, maps, ret);
	if (err)
		*ret = dp_image_destroy(*ret);
	return err;
}

struct dp_error *dp_target_check_site(struct dp_target *t, const struct dp_site *site)
{
	struct statfs fs;
	const struct dp_map *map = dp_image_map_at(t->image, site->addr);
	if (!map || !map->exec)
		return dp_error(DP_TAG_NOT_CODE, "0x%llx is not in executable memory", (unsigned long long)site->addr.v);
	if (!strcmp(map->path, "[vdso]") || !strcmp(map->path, "[vsyscall]"))
		return dp_error(DP_TAG_VDSO, "0x%llx is in %s; probe the libc function that calls it",
		                (unsigned long long)site->addr.v, map->path);
	const struct dp_module *m = dp_image_module_at(t->image, site->addr);
	if (m && dp_module_moved(m, map, site->addr))
		return dp_error(DP_TAG_MOVED_TEXT,
		                "0x%llx is text of %s that the program has moved from the file to %s, as is done for huge pages",
		                (unsigned long long)site->addr.v, dp_module_name(m), *map->path ? map->path : "anonymous memory");
	const struct dp_module *translator = dp_image_translator(t->image);
	if (translator && m != translator)
		return dp_error(DP_TAG_TRANSLATED,
		                "process %d executes what %s has translated the code of %s into, not that code", t->process.alive,
		                dp_module_name(translator), m ? dp_module_name(m) : map->path);
	if (!map->inode)
		return dp_error(DP_TAG_NOT_CODE, "0x%llx is in generated code without a file", (unsigned long long)site->addr.v);
	char path[96];
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", t->process.alive, (unsigned long long)map->start.v,
	         (unsigned long long)map->end.v);
	if ((!statfs(path, &fs) || !statfs(map->path, &fs)) && fs.f_type == HUGETLBFS_SUPER)
		return dp_error(DP_TAG_HUGETLB, "%s is on hugetlbfs; run the program from an ordinary file system", map->path);
	return NULL;
}

bool dp_target_filtered(const struct dp_target *t)
{
	return dp_target_filter_rule(t) != NULL;
}

const char *dp_target_filter_rule(const struct dp_target *t)
{
	return dp_filter_forbids(&t->process, DP_CALLS_HIT);
}

bool dp_target_filter_assumed(const struct dp_target *t)
{
	return t->options.look && t->process.filtered && t->process.judged;
}

pid_t dp_target_pid(const struct dp_target *t)
{
	return t->process.pid;
}

pid_t dp_target_inner_pid(const struct dp_target *t)
{
	return t->process.nested ? t->process.ns_pid : 0;
}

const char *dp_target_comm(const struct dp_target *t)
{
	return t->process.comm;
}

struct dp_image *dp_target_image(struct dp_target *t)
{
	return t->image;
}

size_t dp_target_read(struct dp_target *t, dp_addr addr, void *buf, size_t n)
{
	return dp_mem_read(&t->process, addr, buf, n);
}

int dp_target_exit_fd(const struct dp_target *t)
{
	return t->exit_fd;
}

bool dp_target_has_ended(const struct dp_target *t)
{
	struct pollfd end = {.fd = t->exit_fd, .events = POLLIN};
	return poll(&end, 1, 0) > 0;
}

bool dp_target_exit_status(struct dp_target *t, int *status)
{
	siginfo_t info;
	dp_late_stop_reap(); /* a thread of it that stopped late would wait for us, and we for it */
	if (!t->launch_ended && dp_stop_reap(t->process.pid, &info)) {
		t->launch_status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status & 0xff, 0)
		                                              : info.si_status | (info.si_code == CLD_DUMPED ? WCOREFLAG : 0);
		t->launch_ended = true;
	}
	if (t->launch_ended)
		*status = t->launch_status;
	return t->launch_ended;
}
