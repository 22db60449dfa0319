/* SPDX-License-Identifier: MIT */
/* What is asked of aggregations, as what one probe of one target does. */
#include "session/process/session_aggs.h"
#include "session/process/session_scope.h"

#include <stdlib.h>

/* ---- keys and cells ------------------------------------------------------------------------------------------------------ */

enum dp_aggs_group dp_aggs_grouped(const struct dp_trace_spec *trace)
{
	const struct dp_asked *a = &trace->asked;
	if (dp_asked_is_by(a, DP_KEY_PID))
		return trace->follow ? DP_GROUP_NONE : DP_GROUP_PID;
	return dp_asked_is_by(a, DP_KEY_COMM) ? DP_GROUP_COMM : dp_asked_is_by(a, DP_KEY_EXE) ? DP_GROUP_EXE : DP_GROUP_NONE;
}

bool dp_aggs_in_target(const struct dp_trace_spec *trace, size_t key)
{
	const enum dp_key_kind kind = trace->asked.key[key].kind;
	return kind == DP_KEY_VALUE || kind == DP_KEY_TEXT || kind == DP_KEY_CALLER || (kind == DP_KEY_PID && trace->follow);
}

unsigned dp_aggs_depth(const struct dp_asked *a)
{
	unsigned most = 0;
	for (size_t i = 0; i < a->nkeys; i++)
		most = a->key[i].depth > most ? a->key[i].depth : most;
	return most;
}

unsigned dp_aggs_values(const struct dp_trace_spec *trace)
{
	unsigned n = 0;
	for (size_t i = 0; i < trace->asked.nkeys; i++)
		n += dp_aggs_in_target(trace, i);
	return n;
}

unsigned dp_aggs_texts(const struct dp_trace_spec *trace, unsigned words[DP_AGG_KEYS])
{
	unsigned sum = 0;
	for (size_t i = 0, v = 0; i < trace->asked.nkeys; i++) {
		const struct dp_key_asked *key = &trace->asked.key[i];
		if (!dp_aggs_in_target(trace, i))
			continue;
		words[v] = key->kind == DP_KEY_TEXT ? dp_asked_text_words(key) : 0;
		sum += words[v++];
	}
	return sum;
}

/* Is the return address at the top of the stack there? */
static bool caller_is_at_hand(const struct dp_trace_spec *trace, size_t i)
{
	return trace->probe[i].entry || trace->probe[i].leaves || trace->typed[i].inlined;
}

bool dp_aggs_unwind(const struct dp_trace_spec *trace)
{
	if (dp_aggs_depth(&trace->asked))
		return true;
	for (size_t i = 0; dp_asked_has_key(&trace->asked, DP_KEY_CALLER) && i < trace->nprobes; i++)
		if (!caller_is_at_hand(trace, i))
			return true;
	return false;
}

void dp_aggs_cells(const struct dp_asked *a, struct dp_cells_want *ret)
{
	ret->words = ret->pending = ret->nextremes = 0;
	for (size_t i = 0; i < a->nparts; i++) {
		if (a->part[i].what & (DP_AGG_MIN | DP_AGG_MAX))
			ret->extreme[ret->nextremes++] = ret->words + DP_AGG_WORD_MAX;
		ret->words += dp_agg_part_words(&a->part[i]);
		ret->pending = a->nparts == 1 && dp_agg_is_histogram(&a->part[i]);
	}
}

/* ---- one probe ----------------------------------------------------------------------------------------------------------- */

void dp_aggs_answer_fini(struct dp_agg *a)
{
	for (struct dp_agg *part = a, *next; part; part = next) {
		next = part->next;
		dp_expr_destroy((struct dp_expr *)part->value);
		if (part != a)
			free(part);
	}
	dp_expr_destroy((struct dp_expr *)a->by);
	for (unsigned i = 0; i < a->nkeys; i++) {
		dp_expr_destroy((struct dp_expr *)a->key[i]);
		dp_expr_destroy((struct dp_expr *)a->text[i].count);
	}
	*a = (struct dp_agg){0};
}

static struct dp_error *make_part(struct dp_session *s, size_t i, const struct dp_agg_part *part, struct dp_agg *ret)
{
	struct dp_expr *e = NULL;
	*ret = (struct dp_agg){.what = part->what, .low = part->low, .step = part->step, .buckets = part->buckets};
	if (part->value)
		DP_TRY(dp_session_expr(s, i, part->value, &e));
	ret->value = e;
	return NULL;
}

static struct dp_error *make_parts(struct dp_session *s, size_t i, struct dp_agg *ret)
{
	const struct dp_asked *a = &s->trace->asked;
	struct dp_agg *last = ret;
	DP_TRY(make_part(s, i, &a->part[0], ret));
	for (size_t k = 1; k < a->nparts; k++, last = last->next) {
		last->next = calloc(1, sizeof(*last));
		if (!last->next)
			return dp_error_nomem();
		DP_TRY(make_part(s, i, &a->part[k], last->next));
	}
	return NULL;
}

/* The caller of an inlined copy is the function around it. */
static struct dp_error *make_caller(const struct dp_session *s, size_t i, struct dp_expr **ret)
{
	const bool inlined = s->trace->typed[i].inlined;
	*ret = NULL;
	if (!caller_is_at_hand(s->trace, i))
		return NULL;
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return dp_error_nomem();
	**ret = (struct dp_expr){.kind = inlined ? DP_EXPR_CONST : DP_EXPR_FACT,
	                         .value = inlined ? s->place[i].addr + 1 : (uint64_t)DP_FACT_CALLER};
	return NULL;
}

/* As the field of a record would be, which `dynprobe view` would count by. */
static struct dp_error *make_text(struct dp_session *s, size_t i, const char *key, struct dp_agg *ret)
{
	struct dp_fields fields = {0};
	DP_TRY(dp_session_fields(s, i, key, &fields));
	struct dp_field *f = fields.n == 1 ? &fields.field[0] : NULL;
	struct dp_error *err = NULL;
	if (f && f->source == DP_SRC_STRING && f->expr) {
		ret->text[ret->nkeys] = (struct dp_agg_text){f->size, dp_take(f->count, NULL), f->count_is_signed, f->is_array};
		ret->key[ret->nkeys++] = dp_take(f->expr, NULL);
	} else {
		err = dp_error(DP_TAG_NO_VALUE, "--by '%s' has no value at this place%s%s", key, f && f->absent ? ": " : "",
		               f && f->absent ? f->absent : "");
	}
	dp_fields_fini(&fields);
	return err;
}

/* Would it be recorded as text? */
static bool points_to_text(struct dp_session *s, size_t i, const char *key)
{
	struct dp_fields fields = {0};
	struct dp_error *err = dp_session_fields(s, i, key, &fields);
	const bool is = !err && fields.n == 1 && fields.field[0].source == DP_SRC_STRING;
	dp_error_destroy(err);
	dp_fields_fini(&fields);
	return is;
}

void dp_session_aggs_note_keys(struct dp_session *s)
{
	const struct dp_asked *a = &s->trace->asked;
	size_t i = 0;
	while (i < s->trace->nprobes && (s->place[i].refused || s->place[i].pending || s->trace->probe[i].reserved))
		i++;
	for (size_t k = 0; a->what && i < s->trace->nprobes && k < a->nkeys; k++)
		if (a->key[k].kind == DP_KEY_VALUE && points_to_text(s, i, a->key[k].text))
			dp_trace_log(s->trace, DP_LOG_INFO,
			             "--by '%s' is a pointer and counts addresses: --by 'str(%s)' counts the texts",
			             a->key[k].text, a->key[k].text);
}

static struct dp_error *make_keys(struct dp_session *s, size_t i, struct dp_agg *ret)
{
	const struct dp_asked *a = &s->trace->asked;
	struct dp_expr *e = NULL;
	ret->stack = dp_aggs_depth(a);
	for (size_t k = 0; k < a->nkeys; k++) {
		if (!dp_aggs_in_target(s->trace, k))
			continue;
		if (a->key[k].kind == DP_KEY_TEXT) {
			DP_TRY(make_text(s, i, a->key[k].text, ret));
			continue;
		}
		if (a->key[k].kind == DP_KEY_CALLER)
			DP_TRY(make_caller(s, i, &e));
		else
			DP_TRY(dp_session_expr(s, i, a->key[k].text, &e));
		if (dp_asked_tuples(a))
			ret->key[ret->nkeys++] = e;
		else
			ret->by = e;
	}
	return NULL;
}

static bool may_fail(const struct dp_agg *a)
{
	bool may = dp_expr_may_fail(a->by);
	for (unsigned i = 0; i < a->nkeys; i++)
		may |= dp_expr_may_fail(a->key[i]) || a->text[i].size;
	for (; a; a = a->next)
		may |= dp_expr_may_fail(a->value);
	return may;
}

struct dp_error *dp_aggs_answer(struct dp_session *s, size_t i, struct dp_agg *ret)
{
	DP_TRY(make_parts(s, i, ret));
	DP_TRY(make_keys(s, i, ret));
	if (dp_target_filtered(s->target) && may_fail(ret))
		return dp_error(DP_TAG_SECCOMP,
		                "under a seccomp filter (%s), aggregations can only use registers: memory needs system calls",
		                dp_target_filter_rule(s->target));
	return NULL;
}
