/* SPDX-License-Identifier: MIT */
/*
 * Match objects: sets of criteria. Criteria of one kind are ORed, kinds are ANDed; a kind without criteria always matches. A
 * thread matches if one of its frames does.
 */
#include "pmodules/host/host_internal.h"

#include <stdlib.h>
#include <string.h>

enum kind { OBJECT, SOURCE, SYMBOL, BASE_TYPE, NAME, KINDS };

struct criterion {
	char *text;
	bool is_substr;
};

struct pmodule_match {
	struct {
		struct criterion *at;
		size_t n;
	} kind[KINDS];
	uint32_t types; /* bit: enum pmodule_variable_type; 0: any */
	bool fault, whole_thread;
};

/* ---- making ------------------------------------------------------------------------------------------------------------- */

pmodule_match_t *pmodule_match_create(void)
{
	return calloc(1, sizeof(pmodule_match_t));
}

void pmodule_match_reset(pmodule_match_t *m)
{
	if (!m)
		return;
	for (size_t k = 0; k < KINDS; k++) {
		for (size_t i = 0; i < m->kind[k].n; i++)
			free(m->kind[k].at[i].text);
		free(m->kind[k].at);
	}
	memset(m, 0, sizeof(*m));
}

void pmodule_match_destroy(pmodule_match_t *m)
{
	pmodule_match_reset(m);
	free(m);
}

static bool add(pmodule_match_t *m, enum kind kind, const char *text, enum pmodule_match_type how)
{
	if (!m || !text || (how != PMODULE_MATCH_EXACT && how != PMODULE_MATCH_SUBSTR))
		return false;
	struct criterion *grown = reallocarray(m->kind[kind].at, m->kind[kind].n + 1, sizeof(*grown));
	if (!grown)
		return false;
	m->kind[kind].at = grown;
	char *copy = strdup(text);
	if (!copy)
		return false;
	grown[m->kind[kind].n++] = (struct criterion){copy, how == PMODULE_MATCH_SUBSTR};
	return true;
}

bool pmodule_match_add_object(pmodule_match_t *m, const char *text, enum pmodule_match_type how)
{
	return add(m, OBJECT, text, how);
}

bool pmodule_match_add_file(pmodule_match_t *m, const char *text, enum pmodule_match_type how)
{
	return add(m, SOURCE, text, how);
}

bool pmodule_match_add_frame_symbol(pmodule_match_t *m, const char *text, enum pmodule_match_type how)
{
	return add(m, SYMBOL, text, how);
}

bool pmodule_match_add_variable_base_type(pmodule_match_t *m, const char *text, enum pmodule_match_type how)
{
	return add(m, BASE_TYPE, text, how);
}

bool pmodule_match_add_variable_name(pmodule_match_t *m, const char *text, enum pmodule_match_type how)
{
	return add(m, NAME, text, how);
}

bool pmodule_match_add_variable_ptrace_type(pmodule_match_t *m, enum pmodule_variable_type type)
{
	if (!m || (unsigned)type > PMODULE_REFERENCE)
		return false;
	m->types |= 1u << type;
	return true;
}

void pmodule_match_set_fault(pmodule_match_t *m, bool whole_thread)
{
	if (!m)
		return;
	m->fault = true;
	m->whole_thread = whole_thread;
}

struct pmodule_match *dp_match_copy(const struct pmodule_match *m)
{
	struct pmodule_match *copy = pmodule_match_create();
	bool ok = copy != NULL;
	for (size_t k = 0; ok && k < KINDS; k++)
		for (size_t i = 0; ok && i < m->kind[k].n; i++)
			ok = add(copy, (enum kind)k, m->kind[k].at[i].text,
			         m->kind[k].at[i].is_substr ? PMODULE_MATCH_SUBSTR : PMODULE_MATCH_EXACT);
	if (!ok) {
		pmodule_match_destroy(copy);
		return NULL;
	}
	copy->types = m->types;
	copy->fault = m->fault;
	copy->whole_thread = m->whole_thread;
	return copy;
}

bool dp_match_of_variables(const struct pmodule_match *m)
{
	return m && (m->kind[BASE_TYPE].n || m->kind[NAME].n || m->types);
}

/* ---- matching ----------------------------------------------------------------------------------------------------------- */

static bool word_is(const struct criterion *c, const char *word, bool is_path)
{
	if (c->is_substr)
		return strstr(word, c->text) != NULL;
	if (!strcmp(word, c->text))
		return true;
	const char *slash = is_path ? strrchr(word, '/') : NULL;
	return slash && !strcmp(slash + 1, c->text);
}

static bool any_is(const struct pmodule_match *m, enum kind kind, const char *word)
{
	if (!m->kind[kind].n)
		return true;
	for (size_t i = 0; word && i < m->kind[kind].n; i++)
		if (word_is(&m->kind[kind].at[i], word, kind == OBJECT || kind == SOURCE))
			return true;
	return false;
}

/* Matches the demangled and the linkage name. */
static bool symbol_is(const struct pmodule_match *m, const struct dp_snap_frame *f)
{
	return any_is(m, SYMBOL, f->symbol) || (f->linkage && any_is(m, SYMBOL, f->linkage)) ||
	       (f->original_symbol && any_is(m, SYMBOL, f->original_symbol));
}

static bool frame_has(const struct pmodule_match *m, const struct dp_snap_frame *f)
{
	return any_is(m, OBJECT, f->object) && any_is(m, SOURCE, f->path) && symbol_is(m, f);
}

static bool fault_holds(const struct pmodule_match *m, const struct dp_snap_frame *f)
{
	if (!m->fault)
		return true;
	return m->whole_thread ? f->thread && dp_snap_thread_is_subject(f->thread) : dp_snap_frame_is_subject(f);
}

bool dp_match_frame(const struct pmodule_match *m, const struct dp_snap_frame *f)
{
	return fault_holds(m, f) && frame_has(m, f);
}

bool dp_match_thread(const struct pmodule_match *m, const struct dp_snap_thread *t)
{
	const struct dp_snap_frame *f;
	if (m->fault && !dp_snap_thread_is_subject(t))
		return false;
	if (!m->kind[OBJECT].n && !m->kind[SOURCE].n && !m->kind[SYMBOL].n)
		return true;
	for (f = t->frames; f; f = f->next)
		if (frame_has(m, f))
			return true;
	return false;
}

/* Globals and thread-locals have an object and a unit, but no frame: criteria of frames never match. */
bool dp_match_variable(const struct pmodule_match *m, const struct dp_snap_variable *v)
{
	if ((m->types && !(m->types >> v->kind & 1u)) || !any_is(m, NAME, v->name) || !any_is(m, BASE_TYPE, v->base_type))
		return false;
	if (v->frame)
		return dp_match_frame(m, v->frame);
	const struct dp_snap_variable *outermost = v;
	while (outermost->owner)
		outermost = outermost->owner;
	return !m->fault && !m->kind[SYMBOL].n && any_is(m, OBJECT, outermost->object) && any_is(m, SOURCE, outermost->unit);
}
