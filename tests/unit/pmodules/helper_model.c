/* SPDX-License-Identifier: MIT */
#include "helper_model.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct dp_snap_frame *frame(struct model *m, struct dp_snap_thread *t, const char *symbol)
{
	struct dp_snap_frame *f = dp_snapshot_frame(m->s, t);
	f->symbol = symbol;
	f->object = "/usr/bin/crash";
	f->path = "src/main.c";
	f->line = 10;
	f->pc = 0x1000 + f->index;
	return f;
}

static struct dp_snap_variable *variable(struct model *m, struct dp_snap_frame *f, const char *name, const char *type)
{
	struct dp_snap_variable *v = dp_snapshot_variable(m->s, &f->variables, NULL);
	v->frame = f;
	v->thread = f->thread;
	v->name = name;
	v->type = type;
	return v;
}

static void variables(struct model *m)
{
	m->p = variable(m, m->inner, "p", "struct crash *");
	m->p->base_type = "crash";
	m->p->kind = DP_VAR_REFERENCE;
	m->p->place = DP_VAR_PARAMETER;
	m->p->index = 0;
	m->p->number = 0x5000;
	m->star = dp_snapshot_variable(m->s, &m->p->children, m->p);
	*m->star = (struct dp_snap_variable){.prev = m->star,
	                                     .owner = m->p,
	                                     .frame = m->inner,
	                                     .thread = m->worker,
	                                     .name = "*",
	                                     .type = "struct crash",
	                                     .base_type = "crash",
	                                     .kind = DP_VAR_TUPLE,
	                                     .place = DP_VAR_CHILD,
	                                     .index = -1,
	                                     .object = "",
	                                     .unit = ""};
	m->n = dp_snapshot_variable(m->s, &m->star->children, m->star);
	m->n->name = "n";
	m->n->type = m->n->base_type = "int";
	m->n->kind = DP_VAR_LL;
	m->n->number = (uint64_t)-3;
	m->i = variable(m, m->inner, "i", "unsigned int");
	m->i->base_type = "unsigned int";
	m->i->kind = DP_VAR_ULL;
	m->i->number = 42;
	m->text = variable(m, m->outer, "text", "struct text");
	m->text->base_type = "text";
	m->text->kind = DP_VAR_TUPLE;
	m->g = dp_snapshot_variable(m->s, &m->s->globals, NULL);
	m->g->name = "g";
	m->g->type = m->g->base_type = "int";
	m->g->kind = DP_VAR_LL;
	m->g->place = DP_VAR_GLOBAL;
	m->g->object = "/usr/bin/crash";
	m->g->unit = "src/main.c";
}

void model_make(struct model *m)
{
	static const uint8_t bytes[] = "kept\0\xff\xff\xff\xff\xff\xff\xff\xff";
	static struct dp_snap_memory memory = {0x5000, sizeof(bytes), bytes};
	m->s = dp_snapshot_create();
	m->s->mode = "stop";
	m->s->pid = 7;
	m->s->application = "crash";
	m->s->process_state = 'S';
	m->s->memory = &memory;
	m->s->nmemory = 1;
	m->worker = dp_snapshot_thread(m->s, 7);
	m->worker->name = "worker";
	m->worker->is_fault = true;
	m->idle = dp_snapshot_thread(m->s, 9);
	m->idle->name = "idle";
	m->inner = frame(m, m->worker, "inner");
	m->inner->is_fault = true;
	m->outer = frame(m, m->worker, "outer");
	m->wait = frame(m, m->idle, "wait");
	m->wait->object = "/lib/libc.so.6";
	m->wait->path = NULL;
	variables(m);
}

/* ---- host --------------------------------------------------------------------------------------------------------------- */

static void keep(enum dp_log_level level, const char *module, const char *text, void *data)
{
	struct log *log = data;
	const size_t n = strlen(log->text);
	log->warnings += level == DP_LOG_WARNING;
	log->errors += level == DP_LOG_ERROR;
	snprintf(log->text + n, sizeof(log->text) - n, "%s: %s\n", module, text);
}

struct dp_host *host_with(struct dp_host_options *options, struct log *log)
{
	struct dp_host *h;
	options->log = keep;
	options->data = log;
	cr_assert_null(dp_host_create(options, &h));
	return h;
}

static void nothing(struct pmodule *m)
{
	(void)m;
}

static struct dp_error *call(struct pmodule *m, const struct dp_callback *cb, void *object, struct dp_value *value)
{
	(void)m;
	if (cb->event == DP_EVENT_VARIABLE)
		((pmodule_variable_fn *)cb->fn)(object, (bt_variable_t *)value);
	else
		((void (*)(void *))cb->fn)(object);
	return NULL;
}

struct pmodule *module_add(struct dp_host *h, const char *id, struct dp_error *(*load)(struct pmodule *m))
{
	static struct dp_language language = {NULL, nothing, nothing, call, nothing};
	struct pmodule *m = calloc(1, sizeof(*m));
	m->host = h;
	m->path = strdup("test");
	m->language = &language;
	cr_assert_null(dp_module_set_id(m, id));
	m->is_loading = true;
	cr_assert_null(load(m));
	m->is_loading = false;
	DL_APPEND(h->modules, m);
	h->nmodules++;
	return m;
}

void run_all(struct dp_host *h, struct dp_snapshot *s)
{
	struct dp_snap_thread *t;
	dp_host_begin(h, s);
	dp_host_preattach(h);
	dp_host_attach(h);
	DL_FOREACH(s->threads, t)
	dp_host_thread(h, t);
	dp_host_globals(h);
	dp_host_postattach(h);
	dp_host_end(h);
}

/* ---- inspecting --------------------------------------------------------------------------------------------------------- */

static const struct dp_snap_pair *pair(const struct dp_snapshot *s, const char *key)
{
	const struct dp_snap_pair *p;
	DL_FOREACH(s->attributes, p)
	if (!strcmp(p->key, key))
		return p;
	return NULL;
}

const char *attribute(const struct dp_snapshot *s, const char *key)
{
	return pair(s, key) ? pair(s, key)->text : NULL;
}

int64_t attribute_int(const struct dp_snapshot *s, const char *key)
{
	return pair(s, key) && pair(s, key)->is_int ? pair(s, key)->number : -1;
}

bool has_word(const struct dp_snap_word *list, const char *word)
{
	const struct dp_snap_word *w;
	DL_FOREACH(list, w)
	if (!strcmp(w->text, word))
		return true;
	return false;
}

unsigned count_notes(const struct dp_snap_note *list, const char *text)
{
	const struct dp_snap_note *n;
	unsigned count = 0;
	DL_FOREACH(list, n)
	count += !strcmp(n->text, text);
	return count;
}
