/* SPDX-License-Identifier: MIT */
#include "output/calls/seen.h"

#include <stdlib.h>
#include <string.h>

bool dp_classes_have_calls(const struct dp_event_class *classes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (classes[i].call)
			return true;
	return false;
}

static uint8_t argument_role(const struct dp_call_arg *arg, unsigned i, const struct dp_field *f)
{
	if (strncmp(f->name, arg->name, arg->len) != 0)
		return DP_CALL_ROLE_NONE;
	const char *rest = f->name + arg->len;
	if (!*rest)
		return (uint8_t)((f->type == DP_TYPE_STRING ? DP_CALL_ROLE_TEXT : DP_CALL_ROLE_WORD) + i);
	if (!strcmp(rest, DP_CALL_ADDRESS))
		return (uint8_t)(DP_CALL_ROLE_WORD + i);
	if (!strcmp(rest, DP_CALL_FIRST))
		return (uint8_t)(DP_CALL_ROLE_FIRST + i);
	return !strcmp(rest, DP_CALL_DATA) ? (uint8_t)(DP_CALL_ROLE_DATA + i) : DP_CALL_ROLE_NONE;
}

static uint8_t role_of(const struct dp_call_at *call, const struct dp_field *f)
{
	struct dp_call_arg arg[DP_CALL_ARGS];
	const int n = dp_call_args(call->nr, arg);
	const char *label = f->label ? f->label : f->name;
	uint8_t role = DP_CALL_ROLE_NONE;
	for (int i = 0; i < n && !role; i++)
		role = argument_role(&arg[i], (unsigned)i, f);
	if (n == DP_CALL_ANY && !strncmp(f->name, "arg", 3) && f->name[3] >= '0' && f->name[3] <= '5' && !f->name[4])
		return (uint8_t)(DP_CALL_ROLE_WORD + (f->name[3] - '0'));
	if (role)
		return role;
	if (!strcmp(label, "nr"))
		return DP_CALL_ROLE_NR;
	if (!strcmp(label, "retval"))
		return call->exit ? DP_CALL_ROLE_RESULT : DP_CALL_ROLE_NONE;
	return !strcmp(label, "duration") ? DP_CALL_ROLE_DURATION : DP_CALL_ROLE_NONE;
}

/* Are all arguments there, and the result? */
static bool is_whole(const struct dp_event_class *class, const uint8_t *of)
{
	struct dp_call_arg arg[DP_CALL_ARGS];
	const int known = dp_call_args(class->call->nr, arg);
	const unsigned n = known == DP_CALL_ANY ? DP_CALL_ARGS : (unsigned)known;
	unsigned has = 0, nr = 0, result = 0;
	for (size_t i = 0; i < class->fields->n; i++) {
		for (unsigned k = 0; k < n; k++)
			has |= (unsigned)(of[i] == DP_CALL_ROLE_WORD + k || of[i] == DP_CALL_ROLE_TEXT + k) << k;
		nr |= of[i] == DP_CALL_ROLE_NR;
		result |= of[i] == DP_CALL_ROLE_RESULT;
	}
	const bool all = has == (1u << n) - 1;
	if (class->call->exit)
		return result && all;
	return all && (class->call->nr != DP_CALL_ANY || nr);
}

bool dp_call_roles_make(const struct dp_event_class *class, struct dp_call_roles *ret)
{
	const struct dp_fields *fields = class->fields;
	*ret = (struct dp_call_roles){.of = malloc(fields->n + 1)};
	if (!ret->of)
		return false;
	for (size_t i = 0; i < fields->n; i++)
		ret->of[i] = role_of(class->call, &fields->field[i]);
	ret->whole = is_whole(class, ret->of);
	return true;
}

void dp_call_roles_fini(struct dp_call_roles *roles)
{
	free(roles->of);
	*roles = (struct dp_call_roles){0};
}

struct look {
	const struct dp_event_class *class;
	const struct dp_call_roles *roles;
	struct dp_call_seen *seen;
};

static void take_text(struct dp_call_seen *seen, unsigned i, const struct dp_field *f, const struct dp_field_value *v)
{
	const bool cut = v->n + 1 == f->size && v->n >= 3 && !memcmp(v->bytes + v->n - 3, "...", 3);
	seen->text[i] = (struct dp_call_bytes){v->bytes, cut ? v->n - 3 : v->n};
	seen->cut[i] = cut;
}

static void take(const struct dp_field *f, const struct dp_field_value *v, void *data)
{
	const struct look *look = data;
	struct dp_call_seen *seen = look->seen;
	const uint8_t role = look->roles->of[f - look->class->fields->field];
	if (v->unreadable || f->source == DP_SRC_NONE)
		return;
	if (role >= DP_CALL_ROLE_TEXT) {
		take_text(seen, role - DP_CALL_ROLE_TEXT, f, v);
	} else if (role >= DP_CALL_ROLE_FIRST) {
		seen->first[role - DP_CALL_ROLE_FIRST] = (struct dp_call_bytes){v->bytes, v->n};
	} else if (role >= DP_CALL_ROLE_DATA) {
		seen->data[role - DP_CALL_ROLE_DATA] = (struct dp_call_bytes){v->bytes, v->n};
	} else if (role >= DP_CALL_ROLE_WORD) {
		seen->word[role - DP_CALL_ROLE_WORD] = v->u;
		seen->has_word[role - DP_CALL_ROLE_WORD] = true;
	} else if (role == DP_CALL_ROLE_NR) {
		seen->nr = v->u < DP_CALL_END ? (int32_t)v->u : DP_CALL_ANY;
	} else if (role == DP_CALL_ROLE_RESULT) {
		seen->result = (int64_t)v->u;
		seen->has_result = true;
	} else if (role == DP_CALL_ROLE_DURATION) {
		seen->duration_ns = v->u;
		seen->has_duration = true;
	}
}

void dp_call_see(const struct dp_event_class *class, const struct dp_call_roles *roles, const struct dp_decoder *d,
                 const struct dp_event *e, struct dp_call_seen *ret)
{
	struct look look = {class, roles, ret};
	*ret = (struct dp_call_seen){.nr = class->call->nr, .exit = class->call->exit};
	dp_decoder_run(d, e->payload, e->len, take, &look);
}
