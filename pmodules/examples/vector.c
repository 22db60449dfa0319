/* SPDX-License-Identifier: MIT */
/*
 * vector.c: shows std::vector (of libstdc++) as an array: its length and its first elements. Shows: chained members, pointers as
 * arrays, typed elements of memory that the snapshot did not follow.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* asprintf */
#endif
#include <dynprobe/pmodule.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 16u

static bool pointer(bt_variable_t *impl, const char *name, uint64_t *ret)
{
	return bt_variable_ull(bt_variable_member(impl, name), ret);
}

static void variable(ptrace_variable_t *vector, bt_variable_t *bt)
{
	uint64_t start, finish;
	char *text = NULL;
	const char *type = bt_variable_type_name(bt);
	bt_variable_t *impl = type && !strncmp(type, "std::vector<", 12) ? bt_variable_member(bt, "_M_impl") : NULL;
	bt_variable_t *first = bt_variable_member(impl, "_M_start");
	const uint64_t size = bt_variable_sizeof(bt_variable_deref(first));
	if (!pmodule_variable_frame(vector) || !size || !pointer(impl, "_M_start", &start) ||
	    !pointer(impl, "_M_finish", &finish))
		return;
	if (finish < start || (finish - start) % size) {
		pmodule_variable_annotate(vector, PAT_WARNING, "not a vector (yet, or any more): %#llx to %#llx",
		                          (unsigned long long)start, (unsigned long long)finish);
		return;
	}
	const uint64_t n = (finish - start) / size;
	for (uint64_t i = 0; i < n && i < MOST; i++) {
		bt_variable_t *value = bt_variable_index(first, (int64_t)i);
		ptrace_variable_t *v =
		        pmodule_variable_create(bt_variable_type_name(value), NULL, start + i * size, (int64_t)i, vector);
		pmodule_variable_value(v, value, true);
		pmodule_frame_add_variable(pmodule_variable_frame(vector), v, true);
		pmodule_variable_dispatch(v, value);
	}
	if (asprintf(&text, "std::vector of %llu", (unsigned long long)n) >= 0)
		pmodule_variable_set_string(vector, text);
	pmodule_variable_state_set(vector, PTRACE_VARIABLE_S_SKIP);
}

static bool load(pmodule_t *m)
{
	return pmodule_variable_event_add(m, NULL, variable);
}

PMODULE_DEFINE("example_vector", load, NULL, NULL);
