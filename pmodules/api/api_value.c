/* SPDX-License-Identifier: MIT */
/* pmodule.h: typed values of the process. bt_error() returns the last failed step's error. */
#include "pmodules/host/host_state.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The value, or NULL if there is no world. */
static struct dp_value *in(bt_variable_t *bv)
{
	const struct dp_host *h = dp_host_current();
	return h && h->world ? dp_in_value(bv) : NULL;
}

static void keep(struct dp_error *err)
{
	struct dp_host *h = dp_host_current();
	if (h && err)
		snprintf(h->error, sizeof(h->error), "%s", err->message);
	dp_error_destroy(err);
}

static bt_variable_t *step(struct dp_error *err, struct dp_value *value)
{
	keep(err);
	return dp_out_value(err ? NULL : value);
}

static bt_variable_t *nothing(const char *what)
{
	struct dp_host *h = dp_host_current();
	if (h)
		snprintf(h->error, sizeof(h->error), "%s", what);
	return NULL;
}

#define NO_VALUE "no value (the argument is NULL, or no types are available here)"

const char *bt_error(void)
{
	const struct dp_host *h = dp_host_current();
	return h ? h->error : "";
}

/* ---- where values come from --------------------------------------------------------------------------------------------- */

bt_variable_t *pmodule_bt_query(const char *symbol, const char *object, const char *cu)
{
	const struct dp_host *h = dp_host_current();
	if (!h || !h->world || !symbol)
		return nothing(NO_VALUE);
	struct dp_value *v = dp_value_global(h->world, symbol, object, cu);
	return v ? dp_out_value(v) : nothing("there is no variable of that name");
}

bt_variable_t *pmodule_variable_at(const char *type, uint64_t addr, const char *object)
{
	const struct dp_host *h = dp_host_current();
	if (!h || !h->world || !type)
		return nothing(NO_VALUE);
	struct dp_value *v = dp_value_at(h->world, type, addr, object);
	return v ? dp_out_value(v) : nothing("there is no type of that name");
}

bt_variable_t *pmodule_frame_query(ptrace_frame_t *frame, const char *name)
{
	const struct dp_host *h = dp_host_current();
	const struct dp_snap_frame *f = dp_api_frame(frame);
	if (!f || !h->world || !name || f->is_synthesized)
		return nothing(NO_VALUE);
	struct dp_value *v = dp_value_local(h->world, f, name);
	return v ? dp_out_value(v) : nothing("the frame has no variable of that name");
}

/* ---- steps -------------------------------------------------------------------------------------------------------------- */

bt_variable_t *bt_variable_member(bt_variable_t *bv, const char *name)
{
	struct dp_value *to = NULL;
	if (!in(bv) || !name)
		return nothing(NO_VALUE);
	struct dp_error *err = dp_value_member(in(bv), name, &to);
	return step(err, to);
}

bt_variable_t *bt_variable_index(bt_variable_t *bv, int64_t i)
{
	struct dp_value *to = NULL;
	if (!in(bv))
		return nothing(NO_VALUE);
	struct dp_error *err = dp_value_index(in(bv), i, &to);
	return step(err, to);
}

bt_variable_t *bt_variable_deref(bt_variable_t *bv)
{
	struct dp_value *to = NULL;
	if (!in(bv))
		return nothing(NO_VALUE);
	struct dp_error *err = dp_value_deref(in(bv), &to);
	return step(err, to);
}

bt_variable_t *bt_variable_deref_at(bt_variable_t *bv, uint64_t addr)
{
	struct dp_value *to = NULL;
	if (!in(bv))
		return nothing(NO_VALUE);
	struct dp_error *err = dp_value_deref_at(in(bv), addr, &to);
	return step(err, to);
}

bt_variable_t *bt_variable_cast(bt_variable_t *bv, const char *type)
{
	struct dp_value *to = NULL;
	if (!in(bv) || !type)
		return nothing(NO_VALUE);
	struct dp_error *err = dp_value_cast(in(bv), type, &to);
	return step(err, to);
}

bt_variable_t *bt_variable_addressof(bt_variable_t *bv)
{
	struct dp_value *to = NULL;
	if (!in(bv))
		return nothing(NO_VALUE);
	struct dp_error *err = dp_value_address_of(in(bv), &to);
	return step(err, to);
}

bt_variable_t *bt_variable_container_of(bt_variable_t *bv, const char *type, const char *member)
{
	struct dp_value *to = NULL;
	if (!in(bv) || !type || !member)
		return nothing(NO_VALUE);
	struct dp_error *err = dp_value_container(in(bv), type, member, &to);
	return step(err, to);
}

/* Takes the first step of a path. *b is the new value; returns the rest of the path; NULL: not a step. */
static const char *step_of_path(bt_variable_t **b, const char *s, char *name, size_t size)
{
	char *end;
	if (*s == '[') {
		const long long i = strtoll(s + 1, &end, 0);
		*b = *end == ']' && end > s + 1 ? bt_variable_index(*b, i) : NULL;
		return *end == ']' && end > s + 1 ? end + 1 : NULL;
	}
	s += *s == '.' ? 1 : strncmp(s, "->", 2) == 0 ? 2 : 0;
	const size_t n = strcspn(s, ".[-");
	if (!n || n >= size)
		return NULL;
	memcpy(name, s, n);
	name[n] = '\0';
	*b = bt_variable_member(*b, name);
	return s + n;
}

bt_variable_t *bt_variable_try(bt_variable_t *bv, const char *path)
{
	struct dp_host *h = dp_host_current();
	char name[256];
	if (!in(bv) || !path)
		return nothing(NO_VALUE);
	while (bv && *path) {
		const char *rest = step_of_path(&bv, path, name, sizeof(name));
		if (!rest) {
			snprintf(h->error, sizeof(h->error), "invalid step '%.200s': use .member, ->member or [number]", path);
			return NULL;
		}
		path = rest;
	}
	return bv;
}

/* ---- queries ------------------------------------------------------------------------------------------------------------ */

const char *bt_variable_type_name(bt_variable_t *bv)
{
	return in(bv) ? dp_value_type_name(in(bv)) : NULL;
}

const char *bt_variable_path(bt_variable_t *bv)
{
	return in(bv) ? dp_value_name(in(bv)) : NULL;
}

uint64_t bt_variable_sizeof(bt_variable_t *bv)
{
	return in(bv) ? dp_value_size(in(bv)) : 0;
}

bool bt_variable_length(bt_variable_t *bv, uint64_t *ret)
{
	return in(bv) && ret && dp_value_length(in(bv), ret);
}

bool bt_variable_address(bt_variable_t *bv, uint64_t *ret)
{
	return in(bv) && ret && dp_value_address(in(bv), ret);
}

bool bt_variable_ull(bt_variable_t *bv, uint64_t *ret)
{
	if (!in(bv) || !ret)
		return nothing(NO_VALUE) != NULL;
	struct dp_error *err = dp_value_read_int(in(bv), ret);
	keep(err);
	return !err;
}

bool bt_variable_ll(bt_variable_t *bv, int64_t *ret)
{
	uint64_t value;
	if (!ret || !bt_variable_ull(bv, &value))
		return false;
	*ret = (int64_t)value;
	return true;
}

bool bt_variable_real(bt_variable_t *bv, double *ret)
{
	if (!in(bv) || !ret)
		return nothing(NO_VALUE) != NULL;
	struct dp_error *err = dp_value_read_real(in(bv), ret);
	keep(err);
	return !err;
}

/* n includes the NUL, as in C; dp_value_read_string() stores it after n bytes. */
ssize_t bt_variable_strncpy(char *dst, bt_variable_t *bv, size_t n)
{
	if (!dst || !n || n > SSIZE_MAX)
		return -1;
	*dst = '\0';
	return in(bv) ? dp_value_read_string(in(bv), dst, n - 1) : -1;
}

size_t bt_variable_bytes(bt_variable_t *bv, void *buf, size_t n)
{
	return in(bv) && buf ? dp_value_read_bytes(in(bv), buf, n) : 0;
}

/* ---- members ------------------------------------------------------------------------------------------------------------ */

struct members {
	bool (*each)(const char *name, bt_variable_t *member, void *data);
	void *data;
};

static bool one_member(const char *name, struct dp_value *member, void *data)
{
	const struct members *m = data;
	return m->each(name, dp_out_value(member), m->data);
}

bool bt_variable_members(bt_variable_t *bv, bool (*each)(const char *name, bt_variable_t *member, void *data), void *data)
{
	if (!in(bv) || !each)
		return nothing(NO_VALUE) != NULL;
	struct dp_error *err = dp_value_members(in(bv), one_member, &(struct members){each, data});
	keep(err);
	return !err;
}
