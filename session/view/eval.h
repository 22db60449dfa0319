/* SPDX-License-Identifier: MIT */
/* Expressions on recorded events: one text, compiled for each event class whose fields it names. */
#ifndef DP_SESSION_VIEW_EVAL_H
#define DP_SESSION_VIEW_EVAL_H

#include "output/output.h"

struct dp_view_values { /* of one event */
	const struct dp_event *event;
	const struct dp_event_class *class;
	struct dp_field_value *value; /* of each field */
	size_t capacity, n;
};
/* Decodes the payload, which was checked. False: out of memory. */
bool dp_view_values_of(struct dp_view_values *v, const struct dp_event_class *class, const struct dp_event *event);
void dp_view_values_fini(struct dp_view_values *v);

struct dp_view_expr {
	struct dp_expr **expr; /* of each class; NULL: the class has not all that the text names */
	size_t n;
	bool is_string; /* of DP_VIEW_KEY: dp_view_text() has the value */
};
/* What the text is: an aggregation's value, its key, or as --when takes it. */
enum dp_view_use { DP_VIEW_VALUE, DP_VIEW_KEY, DP_VIEW_CONDITION };
/*
 * DP_TAG_NO_VARIABLE if no class has what the text names; *missing is the first class that has not, or SIZE_MAX.
 */
struct dp_view_source {
	const struct dp_event_class *class;
	size_t n;
};
struct dp_error *dp_view_expr_create(const struct dp_view_source *of, const char *text, enum dp_view_use use,
                                     struct dp_view_expr *ret, size_t *missing) DP_MUST_CHECK;
void dp_view_expr_fini(struct dp_view_expr *e);
/* Has the class all that the text names? */
static inline bool dp_view_expr_has(const struct dp_view_expr *e, unsigned class)
{
	return e->expr && e->expr[class];
}
/* The value for an event of its class. False if it fails: a field is unreadable, a divisor is 0. */
bool dp_view_eval(const struct dp_view_expr *e, const struct dp_view_values *values, int64_t *ret);
/* The string; valid as long as the event. *null: it is none, its pointer is NULL. */
const char *dp_view_text(const struct dp_view_expr *e, const struct dp_view_values *values, bool *null);

#endif
