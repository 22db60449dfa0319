/* SPDX-License-Identifier: MIT */
#include "pmodules/host/rerun.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "probes/image/function/functions.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <utlist.h>

/* ---- removing what was added before ------------------------------------------------------------------------------------- */

/* Did a module that runs again add it? A file that does not say who did: assume so. */
static bool is_of(const struct dp_host *h, const char *module)
{
	if (!module)
		return true;
	for (size_t i = 0; i < dp_host_nmodules(h); i++)
		if (!strcmp(dp_host_module_id(h, i), module))
			return true;
	return false;
}

static void strip_notes(const struct dp_host *h, struct dp_snap_note **list)
{
	struct dp_snap_note *n, *next;
	DL_FOREACH_SAFE(*list, n, next)
	if (is_of(h, n->module))
		DL_DELETE(*list, n);
}

static void strip_variables(const struct dp_host *h, struct dp_snap_variable **list)
{
	struct dp_snap_variable *v, *next;
	DL_FOREACH_SAFE(*list, v, next)
	{
		if (v->is_synthesized && is_of(h, v->module)) {
			DL_DELETE(*list, v);
			continue;
		}
		if (!v->is_synthesized && is_of(h, v->module)) {
			v->summary = v->module = NULL;
			v->is_hidden = false;
		}
		v->value = NULL;
		strip_notes(h, &v->notes);
		strip_variables(h, &v->children);
	}
}

static void strip_frames(const struct dp_host *h, struct dp_snap_thread *t)
{
	struct dp_snap_frame *f, *next;
	t->nframes = 0;
	DL_FOREACH_SAFE(t->frames, f, next)
	{
		if (f->is_synthesized && is_of(h, f->module)) {
			DL_DELETE(t->frames, f);
			continue;
		}
		f->index = t->nframes++;
		if (f->original_symbol && is_of(h, f->module)) {
			f->symbol = *f->original_symbol ? f->original_symbol : NULL;
			f->original_symbol = f->module = NULL;
		}
		strip_notes(h, &f->notes);
		strip_variables(h, &f->variables);
	}
}

static bool runs_again(const char *module, void *data)
{
	return is_of(data, module);
}

/* Removes only what the modules that run again added. */
static void strip(struct dp_host *h, struct dp_snapshot *s)
{
	struct dp_snap_thread *t;
	dp_snapshot_take_back(s, runs_again, h);
	strip_notes(h, &s->notes);
	strip_variables(h, &s->globals);
	DL_FOREACH(s->threads, t)
	{
		strip_notes(h, &t->notes);
		strip_variables(h, &t->variables);
		strip_frames(h, t);
	}
}

/* ---- a world without a process ------------------------------------------------------------------------------------------ */

static bool is_same_file(const struct dp_snap_object *o, struct stat *st)
{
	struct dp_image *image = NULL;
	if (!*o->build_id || stat(o->path, st) || !S_ISREG(st->st_mode))
		return false;
	struct dp_error *err = dp_image_from_file(o->path, &image);
	const bool same = !err && dp_image_nmodules(image) && !strcmp(dp_module_build_id(dp_image_module(image, 0)), o->build_id);
	dp_error_destroy(err);
	dp_image_destroy(image);
	return same;
}

struct file { /* one of the snapshot's objects */
	const char *path;
	struct stat st;
};

static const struct file *file_of(const struct file *files, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(files[i].path, path))
			return &files[i];
	return NULL;
}

/* A line in the format of /proc/PID/maps. Mappings of unknown files become anonymous. */
static void put_map(struct dp_buf *b, const struct dp_snap_map *m, const struct file *f)
{
	dp_buf_printf(b, "%08llx-%08llx %c%c%c%c %08llx %02x:%02x %llu", (unsigned long long)m->start, (unsigned long long)m->end,
	              m->read ? 'r' : '-', m->write ? 'w' : '-', m->exec ? 'x' : '-', m->shared ? 's' : 'p',
	              (unsigned long long)(f ? m->offset : 0), f ? major(f->st.st_dev) : 0, f ? minor(f->st.st_dev) : 0,
	              f ? (unsigned long long)f->st.st_ino : 0);
	if (f || *m->path == '[')
		dp_buf_printf(b, " %s", m->path);
	dp_buf_put(b, "\n", 1);
}

static struct dp_error *image_of(const struct dp_snapshot *s, struct dp_image **ret, size_t *missing)
{
	dp_auto_free struct file *files = calloc(s->nobjects + 1, sizeof(*files));
	struct dp_buf maps;
	size_t n = 0;
	*missing = 0;
	if (!files)
		return dp_error_nomem();
	for (size_t i = 0; i < s->nobjects; i++) {
		files[n].path = s->objects[i].path;
		const bool same = is_same_file(&s->objects[i], &files[n].st);
		n += same;
		*missing += !same && *s->objects[i].path == '/'; /* not the vdso */
	}
	dp_buf_init(&maps);
	for (size_t i = 0; i < s->nmaps; i++)
		put_map(&maps, &s->maps[i], file_of(files, n, s->maps[i].path));
	struct dp_error *err = maps.failed ? dp_error_nomem() : dp_image_create(dp_buf_str(&maps), "", 0, ret);
	dp_buf_fini(&maps);
	return err;
}

struct reader {
	const struct dp_snapshot *s;
	struct dp_image *image;
};

/* Memory that cannot have changed (constants, code) is read from the file. */
static size_t read_file(const struct reader *r, uint64_t addr, void *buf, size_t n)
{
	const struct dp_map *m = dp_image_map_at(r->image, (dp_addr){addr});
	if (!m || m->write || !m->inode || *m->path != '/')
		return 0;
	dp_auto_close int fd = open(m->path, O_RDONLY | O_CLOEXEC);
	const uint64_t inside = addr - m->start.v, most = m->end.v - addr;
	const ssize_t got = fd < 0 ? -1 : pread(fd, buf, n < most ? n : most, (off_t)(m->offset + inside));
	return got > 0 ? (size_t)got : 0;
}

static size_t read_memory(uint64_t addr, void *buf, size_t n, bool *late, void *data)
{
	const struct reader *r = data;
	const size_t kept = dp_snapshot_read(r->s, addr, buf, n);
	if (late)
		*late = false;
	return kept ? kept : read_file(r, addr, buf, n);
}

/* A value in a register is not in saved memory, but its number is known. */
static bool is_number(const struct dp_snap_variable *v)
{
	return v->state == DP_VAR_OK &&
	       (v->kind == DP_VAR_LL || v->kind == DP_VAR_ULL || v->kind == DP_VAR_ENUM || v->kind == DP_VAR_REFERENCE);
}

struct dp_value *dp_rerun_value(struct dp_debug_ctx *w, struct dp_snap_variable *v)
{
	const struct dp_snap_variable *outermost = v;
	while (outermost->owner)
		outermost = outermost->owner;
	const char *object = v->frame ? v->frame->object : outermost->object;
	if (v->value || !*v->type || v->bits || v->is_synthesized)
		return v->value;
	if (v->address)
		v->value = dp_value_at(w, v->type, v->address, object);
	else if (is_number(v))
		v->value = dp_value_literal(w, v->type, v->number, object);
	return v->value;
}

/* ---- the run ------------------------------------------------------------------------------------------------------------ */

static void forget_values(struct dp_snap_variable *list)
{
	struct dp_snap_variable *v;
	DL_FOREACH(list, v)
	{
		v->value = NULL;
		forget_values(v->children);
	}
}

static void forget_all_values(struct dp_snapshot *s)
{
	const struct dp_snap_thread *t;
	const struct dp_snap_frame *f;
	forget_values(s->globals);
	DL_FOREACH(s->threads, t)
	{
		forget_values(t->variables);
		DL_FOREACH(t->frames, f)
		forget_values(f->variables);
	}
}

static void run(struct dp_host *h, struct dp_snapshot *s, struct dp_debug_ctx *w)
{
	struct dp_snap_thread *t;
	dp_host_begin(h, s);
	dp_host_preattach(h);
	dp_host_set_debug_ctx(h, w);
	dp_host_attach(h);
	DL_FOREACH(s->threads, t)
	dp_host_thread(h, t);
	dp_host_globals(h);
	dp_host_postattach(h);
	dp_host_end(h);
}

struct dp_error *dp_rerun(struct dp_host *h, struct dp_snapshot *s, size_t *missing)
{
	struct reader r = {.s = s};
	struct dp_debug_ctx *w = NULL;
	strip(h, s);
	struct dp_error *err = image_of(s, &r.image, missing);
	if (!err)
		err = dp_debug_ctx_create(r.image, read_memory, &r, &w);
	if (!err)
		run(h, s, w);
	forget_all_values(s);
	dp_debug_ctx_destroy(w);
	dp_image_destroy(r.image);
	return err;
}
