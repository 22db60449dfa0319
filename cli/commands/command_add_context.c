/* SPDX-License-Identifier: MIT */
/*
 * add-context: a stub records fixed contexts, so a new probe with the old and the new contexts replaces the old one in one
 * transaction: no hit is missed. The new probe's options are built as if they had been typed.
 */
#include "cli/commands/command.h"
#include "cli/commands/residents_each.h"
#include "cli/run/trace.h"
#include "probes/expr/syntax/printf_form.h"
#include "session/residents.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct words {
	char **word;
	size_t n;
	char *inlined; /* struct dp_typed */
	struct dp_printf_form *form;
	bool failed;
	bool alone; /* the old probe has rings of its own */
};

static void add(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct words *w, const char *fmt, ...)
{
	char **grown = realloc(w->word, (w->n + 2) * sizeof(*grown));
	va_list args;
	if (!grown) {
		w->failed = true;
		return;
	}
	w->word = grown;
	va_start(args, fmt);
	if (vasprintf(&w->word[w->n], fmt, args) < 0) {
		w->word[w->n] = NULL;
		w->failed = true;
	} else {
		w->word[++w->n] = NULL;
	}
	va_end(args);
}

static void add_contexts(struct words *w, const struct dp_options *o, const struct dp_manifest_probe *p)
{
	for (size_t i = 0; i < p->typed.ncontexts; i++)
		add(w, "--type=%s", p->typed.context[i]);
	for (size_t i = 0; i < o->ncontexts; i++)
		add(w, "--type=%s", o->context[i]);
	if (p->typed.when)
		add(w, "--when=%s", p->typed.when);
}

static void add_manners(struct words *w, const struct dp_options *o)
{
	if (o->trace.allow_seccomp)
		add(w, "--allow-seccomp");
	for (int i = 0; i < o->verbose; i++)
		add(w, "--verbose");
}

static void type_again(struct words *w, const struct dp_options *o, const struct dp_residents_group *g,
                       const struct dp_manifest_probe *p)
{
	const struct dp_manifest *m = &g->manifest;
	add(w, "attach");
	add(w, "--pid=%d", o->trace.pid[0]);
	add(w, "--sink=%s", m->lttng ? "lttng" : "ring");
	if (m->lttng && m->session)
		add(w, "--session=%s", m->session);
	if (m->lttng && m->filter)
		add(w, "--filter=%s", m->filter);
	if (dp_resident_dumps(g->resident))
		add(w, "--dump-ring");
	add(w, "--name=%s", p->name);
	add(w, "--%s=%s", p->entry ? "function" : "probe", p->spec);
	add_contexts(w, o, p);
	add_manners(w, o);
}

static struct dp_error *find(struct dp_residents *left, const char *name, struct dp_residents_group **group, size_t *index)
{
	DP_TRY(dp_residents_choose(left, (char *const[]){(char *)name}, 1));
	for (size_t k = 0; k < left->n; k++)
		for (size_t i = 0; i < left->group[k].manifest.n; i++)
			if (left->group[k].chosen[i] && !strcmp(left->group[k].manifest.probe[i].name, name)) {
				*group = &left->group[k];
				*index = i;
			}
	if (!*group)
		return dp_error(DP_TAG_NO_PROBE, "-e '%s' is not the name of one probe", name);
	if (!dp_resident_site((*group)->resident, (unsigned)*index))
		return dp_error(DP_TAG_NO_PROBE, "'%s' was retired: another tool patched its place", name);
	return NULL;
}

/* Makes the options; `enabled`: state of the old probe. Closes the process, which the new probe's command opens again. */
static struct dp_error *prepare(const struct dp_options *o, struct words *w, bool *enabled)
{
	struct dp_residents left = {0};
	struct dp_residents_group *g = NULL;
	size_t i = 0;
	struct dp_error *err = dp_residents_open(&o->trace, o->trace.pid[0], true, &left);
	if (!err)
		err = find(&left, o->event, &g, &i);
	if (!err) {
		*enabled = dp_resident_enabled(g->resident, (unsigned)i);
		const char *inlined = g->manifest.probe[i].typed.inlined;
		type_again(w, o, g, &g->manifest.probe[i]);
		w->inlined = inlined ? strdup(inlined) : NULL;
		w->failed |= inlined && !w->inlined;
		w->alone = g->manifest.n == 1 && !dp_resident_sink(g->resident);
		w->form = dp_take(g->manifest.probe[i].typed.form, NULL);
	}
	dp_residents_close(&left);
	return !err && w->failed ? dp_error_nomem() : err;
}

static struct dp_error *disable_again(const struct dp_options *o)
{
	struct dp_residents left = {0};
	struct dp_residents_group *g = NULL;
	size_t i = 0;
	struct dp_error *err = dp_residents_open(&o->trace, o->trace.pid[0], true, &left);
	if (!err)
		err = find(&left, o->event, &g, &i);
	if (!err)
		err = dp_resident_enable(g->resident, (unsigned)i, false);
	dp_residents_close(&left);
	return err;
}

/*
 * In one step if the text has room for a second jump at the place; a jump whose springboard fits at one address only has none.
 * Then the old probe is removed first.
 */
static int replace(const struct dp_options *o, const struct dp_options *anew)
{
	bool blocked;
	const int status = dp_trace_superseding(anew, o->event, &blocked);
	if (!blocked)
		return status;
	char *names[] = {(char *)(uintptr_t)o->event, NULL};
	struct dp_options old = *o;
	old.name = names;
	old.nnames = 1;
	fprintf(stderr,
	        "dynprobe: no room for a second jump at %s in %d: removing the old probe first; hits in these milliseconds are "
	        "missed\n",
	        o->event, o->trace.pid[0]);
	const int removed = dp_command_remove(&old);
	return removed ? removed : dp_trace(anew);
}

static struct dp_error *supersede(const struct dp_options *o, int *status)
{
	struct words w = {0};
	struct dp_options anew;
	bool enabled = true;
	struct dp_error *err = prepare(o, &w, &enabled);
	if (!err)
		err = dp_options_parse_verb(DP_VERB_ATTACH, (int)w.n, w.word, &anew);
	if (!err) {
		anew.trace.typed[0].inlined = dp_take(w.inlined, NULL);
		anew.trace.typed[0].form = dp_take(w.form, NULL);
		*status = replace(o, &anew);
		if (!*status && w.alone)
			fprintf(stderr,
			        "dynprobe: the buffered events of %s are dropped (to keep them, run dynprobe record --once "
			        "first)\n",
			        o->event);
		dp_options_fini(&anew);
		if (!*status && !enabled)
			err = disable_again(o);
	}
	dp_words_free(w.word);
	free(w.inlined);
	dp_printf_destroy(w.form);
	return err;
}

static int supersede_in(const struct dp_options *options, pid_t pid)
{
	int status = 0;
	struct dp_options one = *options; /* a view: it owns nothing */
	one.trace.pid = &pid;
	one.trace.npids = 1;
	struct dp_error *err = supersede(&one, &status);
	if (err && options->trace.npids > 1 && dp_trace_found_ended(&options->trace, pid, err))
		err = dp_error_destroy(err);
	dp_error_print(err, stderr);
	if (err)
		status = DP_EXIT_FAILURE;
	dp_error_destroy(err);
	return status;
}

/* Each process is a run of its own. After a signal the remaining ones are skipped. */
int dp_command_add_context(const struct dp_options *options)
{
	const size_t n = options->trace.npids;
	size_t failed = 0, partial = 0;
	for (size_t i = 0; i < n; i++) {
		const int status = supersede_in(options, options->trace.pid[i]);
		if (status > 128) {
			dp_residents_say_skipped(n - i - 1, n);
			return status;
		}
		failed += status == DP_EXIT_FAILURE;
		partial += status != 0;
	}
	return failed == n ? DP_EXIT_FAILURE : partial ? DP_EXIT_PARTIAL : 0;
}
