/* SPDX-License-Identifier: MIT */
/* Finds the sink in a target, and the symbols that it needs. */
#include "injector/lttng/sink.h"

#include "injector/lttng/safe/sink_symbols.h"
#include "injector/tracee/proc/proc.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUR_PATH "/memfd:" DP_MEMFD_NAME " (deleted)"

static bool starts_sink(const struct dp_process *p, const struct dp_map *m)
{
	uint64_t magic = 0;
	return !strcmp(m->path, OUR_PATH) && m->write && dp_mem_read(p, m->start, &magic, sizeof(magic)) == sizeof(magic) &&
	       magic == DP_SINK_MAGIC;
}

static bool same_file(const struct dp_map *a, const struct dp_map *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

bool dp_sink_is(const struct dp_target *t, const struct dp_map *m)
{
	if (strcmp(m->path, OUR_PATH) != 0)
		return false;
	for (size_t i = 0; i < dp_image_nmaps(t->image); i++) {
		const struct dp_map *other = dp_image_map(t->image, i);
		if (same_file(m, other) && starts_sink(&t->process, other))
			return true;
	}
	return false;
}

void dp_sink_view_fini(struct dp_sink_view *v)
{
	dp_safe_destroy(v->safe);
	dp_image_destroy(v->image);
	free(v->maps);
	*v = (struct dp_sink_view){0};
}

struct dp_error *dp_sink_head(struct dp_sink_view *v)
{
	const size_t got = dp_mem_read(&v->process, dp_addr_of(v->data), &v->head, sizeof(v->head));
	v->head.error[sizeof(v->head.error) - 1] = '\0'; /* the program may have overwritten it */
	dp_printable(v->head.error);
	if (got == sizeof(v->head) && v->head.magic == DP_SINK_MAGIC)
		return NULL;
	return dp_error(DP_TAG_GONE, "process %d (%s) ended or called exec", v->process.pid, v->process.comm);
}

static struct dp_error *read_image(struct dp_sink_view *v)
{
	char root[32];
	DP_TRY(dp_process_maps(&v->process, &v->maps));
	snprintf(root, sizeof(root), "/proc/%d/root", v->process.alive);
	v->process.known_maps = v->maps;
	return dp_image_create(v->maps, root, v->process.alive, &v->image);
}

static struct dp_error *check_owner(const struct dp_sink_view *v)
{
	if (v->head.abi != DP_SINK_ABI)
		return dp_error(DP_TAG_SINK, "process %d (%s) has the LTTng sink of another dynprobe version; use that version",
		                v->process.pid, v->process.comm);
	if (v->head.owner_pid != (uint64_t)v->process.ns_pid || v->head.owner_start != v->process.start_time)
		return dp_error(DP_TAG_SINK,
		                "process %d (%s) was forked from a process with the LTTng sink: it has the sink's memory, but "
		                "none of its "
		                "threads; use --sink ring",
		                v->process.pid, v->process.comm);
	return NULL;
}

static struct dp_error *find(struct dp_sink_view *v)
{
	for (size_t i = 0; i < dp_image_nmaps(v->image); i++) {
		const struct dp_map *m = dp_image_map(v->image, i);
		if (!starts_sink(&v->process, m))
			continue;
		v->data = m->start.v;
		DP_TRY(dp_sink_head(v));
		return check_owner(v);
	}
	return NULL;
}

static struct dp_error *open_view(struct dp_sink_view *v)
{
	if (!dp_pick_living(v->t))
		return dp_error(DP_TAG_GONE, "process %d (%s) ended", v->t->process.pid, v->t->process.comm);
	v->process = v->t->process;
	DP_TRY(read_image(v));
	return find(v);
}

struct dp_error *dp_sink_view_open(struct dp_target *t, struct dp_sink_view *ret)
{
	*ret = (struct dp_sink_view){.t = t};
	struct dp_error *err = open_view(ret);
	if (err)
		dp_sink_view_fini(ret);
	return err;
}

struct dp_error *dp_sink_view_ready(struct dp_target *t, struct dp_sink_view *ret)
{
	DP_TRY(dp_sink_view_open(t, ret));
	if (ret->data && ret->head.state == DP_SINK_READY)
		return NULL;
	struct dp_error *err = dp_error(DP_TAG_SINK, "process %d (%s) has no LTTng sink", t->process.pid, t->process.comm);
	dp_sink_view_fini(ret);
	return err;
}

/* ---- symbols ----------------------------------------------------------------------------------------------------------------
 */

/* glibc's libraries, newest layout first, and the executable, which has copies of their variables (copy relocations). */
static bool may_define(const struct dp_sink_view *v, size_t i)
{
	static const char *const names[] = {"libc.so.6", "libpthread.so.0", "libdl.so.2"};
	const char *name = dp_module_name(dp_image_module(v->image, i));
	for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
		if (!strcmp(name, names[k]))
			return true;
	return i == 0;
}

static bool has_libc(const struct dp_sink_view *v)
{
	for (size_t i = 0; i < dp_image_nmodules(v->image); i++)
		if (!strcmp(dp_module_name(dp_image_module(v->image, i)), "libc.so.6"))
			return true;
	return false;
}

/* A function of that name in the executable is not libc's. */
static bool is_ours_to_take(const struct dp_exports *e, uint64_t addr, bool executable)
{
	for (size_t i = 0; executable && i < e->n; i++)
		if (e->sym[i].addr == addr && e->sym[i].function)
			return false;
	return addr != 0;
}

struct dp_error *dp_sink_symbol(struct dp_sink_view *v, const char *name, uint64_t *ret)
{
	if (!has_libc(v))
		return dp_error(DP_TAG_SINK,
		                "process %d (%s) does not use glibc (static, or another libc): the sink cannot be loaded",
		                v->process.pid, v->process.comm);
	for (size_t i = 0; i < dp_image_nmodules(v->image); i++) {
		struct dp_exports e;
		if (!may_define(v, i))
			continue;
		DP_TRY(dp_exports_read(dp_image_module(v->image, i), &e));
		const uint64_t addr = dp_exports_find(&e, name);
		const bool found = is_ours_to_take(&e, addr, i == 0);
		dp_exports_fini(&e);
		if (!found)
			continue;
		*ret = addr;
		return NULL;
	}
	return dp_error(DP_TAG_SINK, "the libc of process %d (%s) has no %s", v->process.pid, v->process.comm, name);
}

struct dp_error *dp_sink_refuse_stopped(const struct dp_sink_view *v)
{
	struct dp_task_stat stat;
	if (v->t->launch || !dp_proc_stat(v->process.pid, v->process.alive, &stat) || stat.state != 'T')
		return NULL;
	return dp_error(DP_TAG_SINK, "process %d (%s) is stopped: continue it first (kill -CONT %d)", v->process.pid,
	                v->process.comm, v->process.pid);
}
