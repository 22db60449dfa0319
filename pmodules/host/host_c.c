/* SPDX-License-Identifier: MIT */
/* C as a language of pmodules: a shared object that defines pmodule_export_v1. */
#include "pmodules/host/guard.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

struct c_module {
	void *handle;
	const struct pmodule_desc *desc;
	struct dp_guard_text text;
	bool is_guarded; /* its calls of exit() are redirected */
};

struct call { /* arguments of a guarded function */
	struct pmodule *module;
	const struct dp_callback *callback;
	void *object;
	struct dp_value *value;
	bool ok;
};

static const struct pmodule_desc *desc_of(const struct pmodule *m)
{
	return ((const struct c_module *)m->state)->desc;
}

static struct dp_error *protected(struct call *c, void (*fn)(void *))
{
	const struct c_module *s = c->module->state;
	return dp_guard_run(c->module, &s->text, fn, c);
}

/* ---- the language ------------------------------------------------------------------------------------------------------- */

static void run_load(void *data)
{
	struct call *c = data;
	c->ok = desc_of(c->module)->load(c->module);
}

static struct dp_error *load(struct pmodule *m)
{
	struct call c = {.module = m};
	struct dp_error *err = protected(&c, run_load);
	if (err)
		return dp_error_wrap(err, "%s: load()", m->path);
	return c.ok ? NULL : dp_error(DP_TAG_PMODULE, "%s: load() returned false", m->path);
}

static void run_reset(void *data)
{
	struct pmodule *m = ((struct call *)data)->module;
	desc_of(m)->reset(m);
}

static void run_unload(void *data)
{
	struct pmodule *m = ((struct call *)data)->module;
	desc_of(m)->unload(m);
}

static void reset(struct pmodule *m)
{
	struct call c = {.module = m};
	struct dp_error *err = desc_of(m)->reset ? protected(&c, run_reset) : NULL;
	if (err)
		dp_module_error(m, err);
}

static void unload(struct pmodule *m)
{
	struct call c = {.module = m};
	struct dp_error *err = desc_of(m)->unload ? protected(&c, run_unload) : NULL;
	if (err)
		dp_module_error(m, err);
}

static void run_callback(void *data)
{
	const struct call *c = data;
	void (*fn)(void) = c->callback->fn;
	switch (c->callback->event) {
	case DP_EVENT_VARIABLE:
		((pmodule_variable_fn *)fn)(dp_out_variable(c->object), dp_out_value(c->value));
		break;
	case DP_EVENT_FRAME:
		((pmodule_frame_fn *)fn)(dp_out_frame(c->object));
		break;
	case DP_EVENT_THREAD:
		((pmodule_thread_fn *)fn)(dp_out_thread(c->object));
		break;
	default:
		((pmodule_backtrace_fn *)fn)(dp_out_backtrace(c->object));
	}
}

static struct dp_error *call(struct pmodule *m, const struct dp_callback *cb, void *object, struct dp_value *value)
{
	struct call c = {m, cb, object, value, false};
	return protected(&c, run_callback);
}

/* A crashed module stays loaded: a handler or a thread may still run its code. */
static void close_module(struct pmodule *m)
{
	struct c_module *s = m->state;
	if (!m->is_broken)
		dlclose(s->handle);
	free(s);
	m->state = NULL;
}

static const struct dp_language language = {load, reset, unload, call, close_module};

/* ---- opening ------------------------------------------------------------------------------------------------------------ */

static int text_of(struct dl_phdr_info *info, size_t size, void *data)
{
	struct c_module *s = data;
	(void)size;
	if (!dp_guard_text_of(info, (uintptr_t)s->desc, &s->text))
		return 0;
	s->is_guarded = dp_guard_exits(info);
	return 1;
}

/* A better message than dlerror()'s "invalid ELF header" for a source file. */
static struct dp_error *not_loaded(const struct pmodule *m, const char *why)
{
	char magic[4] = "";
	FILE *f = fopen(m->path, "re");
	const bool is_elf = f && fread(magic, 1, sizeof(magic), f) == sizeof(magic) && !memcmp(magic, "\177ELF", sizeof(magic));
	if (f)
		fclose(f);
	if (f && !is_elf)
		return dp_error(DP_TAG_PMODULE,
		                "cannot load %s: it is neither a shared object nor a *.lua file; build a module in C with cc "
		                "-fPIC -shared",
		                m->path);
	return dp_error(DP_TAG_PMODULE, "cannot load %s: %s", m->path, why);
}

static struct dp_error *check(const struct pmodule *m, const struct pmodule_desc *desc)
{
	if (!desc)
		return dp_error(DP_TAG_PMODULE, "%s: it does not define pmodule_export_v1: use PMODULE_DEFINE()", m->path);
	if (desc->abi != PMODULE_ABI || desc->size < sizeof(*desc))
		return dp_error(DP_TAG_PMODULE,
		                "%s: built for version %u of pmodule.h (%u bytes), this dynprobe has version %u (%zu)", m->path,
		                desc->abi, desc->size, PMODULE_ABI, sizeof(*desc));
	if (!desc->load)
		return dp_error(DP_TAG_PMODULE, "%s: it has no load()", m->path);
	return NULL;
}

struct dp_error *dp_c_open(struct pmodule *m)
{
	struct c_module *s = calloc(1, sizeof(*s));
	if (!s)
		return dp_error_nomem();
	dp_guard_expect_exit();
	s->handle = dlopen(m->path, RTLD_NOW | RTLD_LOCAL);
	struct dp_error *err = s->handle ? NULL : not_loaded(m, dlerror());
	if (!err) {
		s->desc = dlsym(s->handle, "pmodule_export_v1");
		err = check(m, s->desc);
	}
	if (!err)
		err = dp_module_set_id(m, s->desc->id);
	if (!err) {
		dl_iterate_phdr(text_of, s);
		if (!s->is_guarded)
			err = dp_error(DP_TAG_PMODULE, "%s: calls of exit() cannot be redirected: its GOT is read-only", m->path);
	}
	if (err) {
		if (s->handle)
			dlclose(s->handle);
		free(s);
		return err;
	}
	m->state = s;
	m->language = &language;
	return NULL;
}
