/* SPDX-License-Identifier: MIT */
#include "output/trace/merged.h"

#include "base/cleanup.h"
#include "output/trace/foreign.h"
#include "output/trace/recorded.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEEPEST 8u /* folders below the one that was named */

struct part { /* one trace with its next event */
	struct dp_trace_source *source;
	unsigned *class; /* its classes among the merged ones */
	uint64_t shift;  /* added to its times */
	size_t group;    /* the pieces of one rotated trace have the same: each counts all losses before it */
	struct dp_event event;
	bool has;
};

struct dp_merged {
	struct part *part;
	size_t n;
	struct dp_event_class *class;
	size_t nclasses;
	uint64_t from, to;
	size_t groups;
	struct part *last; /* that had the last event */
	bool started;
};

struct dp_error *dp_merged_create(struct dp_merged **ret)
{
	struct dp_merged *m = calloc(1, sizeof(*m));
	if (!m)
		return dp_error_nomem();
	m->to = UINT64_MAX;
	*ret = m;
	return NULL;
}

struct dp_merged *dp_merged_destroy(struct dp_merged *m)
{
	if (!m)
		return NULL;
	for (size_t i = 0; i < m->n; i++) {
		m->part[i].source->ops->destroy(m->part[i].source);
		free(m->part[i].class);
	}
	free(m->part);
	free(m->class);
	free(m);
	return NULL;
}

/* ---- traces ---------------------------------------------------------------------------------------------------------------- */

static struct dp_error *add_one(struct dp_merged *m, const char *dir)
{
	struct part *grown = reallocarray(m->part, m->n + 1, sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	m->part = grown;
	grown[m->n] = (struct part){.group = m->groups};
	DP_TRY(dp_recorded_is(dir) ? dp_recorded_open(dir, &grown[m->n].source) : dp_foreign_open(dir, &grown[m->n].source));
	m->n++;
	return NULL;
}

static bool has_file(const char *dir, const char *name)
{
	dp_auto_free char *path = NULL;
	struct stat st;
	if (asprintf(&path, "%s/%s", dir, name) < 0) {
		path = NULL;
		return false;
	}
	return !stat(path, &st) && S_ISREG(st.st_mode);
}

static bool is_folder(const char *path)
{
	struct stat st;
	return !lstat(path, &st) && S_ISDIR(st.st_mode);
}

static int is_visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* The traces below: pieces of a rotated one, or those of an LTTng session. */
static struct dp_error *add_below(struct dp_merged *m, const char *dir, unsigned depth)
{
	struct dirent **entry = NULL;
	struct dp_error *err = NULL;
	if (has_file(dir, "metadata"))
		return add_one(m, dir);
	const int n = depth < DEEPEST ? scandir(dir, &entry, is_visible, versionsort) : 0;
	for (int i = 0; i < n; i++) {
		char *path = NULL;
		if (!err && asprintf(&path, "%s/%s", dir, entry[i]->d_name) < 0) {
			path = NULL;
			err = dp_error_nomem();
		}
		if (!err && is_folder(path))
			err = add_below(m, path, depth + 1);
		free(path);
		free(entry[i]);
	}
	free(entry);
	return err;
}

struct dp_error *dp_merged_add(struct dp_merged *m, const char *dir)
{
	struct stat st;
	const size_t before = m->n;
	if (stat(dir, &st))
		return dp_error_sys(DP_TAG_BAD_TRACE, "cannot read the trace %s", dir);
	DP_TRY(add_below(m, dir, 0));
	m->groups++;
	if (m->n == before)
		return dp_error(DP_TAG_BAD_TRACE, "%s is no trace: a trace is a directory with a file metadata", dir);
	return NULL;
}

/* ---- classes --------------------------------------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* A bit of the mask counts only for fields that may fail. */
static bool same_masks(const struct dp_fields *a, const struct dp_fields *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (dp_field_may_fault(&a->field[i]) != dp_field_may_fault(&b->field[i]))
			return false;
	return true;
}

static bool is_same(const struct dp_event_class *a, const struct dp_event_class *b)
{
	return !strcmp(a->name, b->name) && same_text(a->spec, b->spec) && same_text(a->title, b->title) &&
	       same_text(a->entry, b->entry) && !a->form == !b->form && dp_fields_alike(a->fields, b->fields) &&
	       same_masks(a->fields, b->fields);
}

static unsigned class_of(struct dp_merged *m, const struct dp_event_class *class, size_t of_others)
{
	for (size_t i = 0; i < of_others; i++)
		if (is_same(&m->class[i], class))
			return (unsigned)i;
	m->class[m->nclasses] = *class;
	return (unsigned)m->nclasses++;
}

struct dp_error *dp_merged_classes(struct dp_merged *m, const struct dp_event_class **ret, size_t *n)
{
	size_t most = 0;
	for (size_t i = 0; i < m->n; i++)
		most += m->part[i].source->n;
	m->class = calloc(most + 1, sizeof(*m->class));
	if (!m->class)
		return dp_error_nomem();
	for (size_t i = 0; i < m->n; i++) {
		struct part *p = &m->part[i];
		const size_t of_others = m->nclasses;
		const struct dp_trace_source *first = m->part[0].source, *s = p->source;
		p->class = calloc(s->n + 1, sizeof(*p->class));
		if (!p->class)
			return dp_error_nomem();
		for (size_t k = 0; k < s->n; k++)
			p->class[k] = class_of(m, &s->class[k], of_others);
		if (!*s->boot || strcmp(s->boot, first->boot) != 0)
			p->shift = (uint64_t)(s->clock_offset - first->clock_offset);
	}
	*ret = m->class;
	*n = m->nclasses;
	return NULL;
}

int64_t dp_merged_clock_offset(const struct dp_merged *m)
{
	return m->n ? m->part[0].source->clock_offset : 0;
}

/* ---- events ---------------------------------------------------------------------------------------------------------------- */

bool dp_merged_bounds(struct dp_merged *m, uint64_t *begin, uint64_t *end)
{
	bool any = false;
	for (size_t i = 0; i < m->n; i++) {
		struct part *p = &m->part[i];
		uint64_t b, e;
		if (!p->source->ops->bounds(p->source, &b, &e))
			continue;
		*begin = any && *begin < b + p->shift ? *begin : b + p->shift;
		*end = any && *end > e + p->shift ? *end : e + p->shift;
		any = true;
	}
	return any;
}

void dp_merged_limit(struct dp_merged *m, uint64_t from, uint64_t to)
{
	m->from = from;
	m->to = to;
	for (size_t i = 0; i < m->n; i++) {
		struct part *p = &m->part[i];
		if (from > p->shift && p->source->ops->skip)
			p->source->ops->skip(p->source, from - p->shift);
	}
}

/* Its next event within the limits. */
static void advance(const struct dp_merged *m, struct part *p)
{
	do {
		p->has = p->source->ops->next(p->source, &p->event);
		p->event.ns += p->shift;
	} while (p->has && p->event.ns < m->from);
	p->has = p->has && p->event.ns <= m->to;
}

bool dp_merged_next(struct dp_merged *m, struct dp_event *ret)
{
	struct part *first = NULL;
	for (size_t i = 0; !m->started && i < m->n; i++)
		advance(m, &m->part[i]);
	m->started = true;
	if (m->last)
		advance(m, m->last);
	for (size_t i = 0; i < m->n; i++)
		if (m->part[i].has && (!first || m->part[i].event.ns < first->event.ns))
			first = &m->part[i];
	m->last = first;
	if (!first)
		return false;
	*ret = first->event;
	ret->probe = first->class[ret->probe];
	return true;
}

uint64_t dp_merged_lost(const struct dp_merged *m)
{
	uint64_t sum = 0, most = 0;
	for (size_t i = 0; i < m->n; i++) {
		const uint64_t lost = m->part[i].source->ops->lost(m->part[i].source);
		most = lost > most ? lost : most;
		if (i + 1 < m->n && m->part[i + 1].group == m->part[i].group &&
		    m->part[i].source->ops == m->part[i + 1].source->ops)
			continue;
		sum += most;
		most = 0;
	}
	return sum;
}

void dp_merged_damages(const struct dp_merged *m, void (*each)(const char *text, void *data), void *data)
{
	for (size_t i = 0; i < m->n; i++)
		m->part[i].source->ops->damages(m->part[i].source, each, data);
}
