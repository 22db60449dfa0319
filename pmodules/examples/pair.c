/* SPDX-License-Identifier: MIT */
/*
 * pair.c: shows std::pair on one line, "(1, 2)", with elements [0] and [1] and their types. Shows: a pretty-printer of C++ types:
 * template arguments, set_string on an extracted struct, synthesized elements, hidden raw members, dispatch (so that nested pairs
 * are printed too).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* asprintf */
#endif
#include <dynprobe/pmodule.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const member[] = {"first", "second"};

static bool is_pair(bt_variable_t *bt)
{
	const char *type = bt_variable_type_name(bt);
	if (!type)
		return false;
	if (!strncmp(type, "const ", 6))
		type += 6;
	return !strncmp(type, "std::pair<", 10) && type[strlen(type) - 1] == '>';
}

static ptrace_variable_t *element(ptrace_variable_t *pair, bt_variable_t *value, unsigned i)
{
	char *type = NULL;
	pmodule_cpp_template_nth_argument(&type, bt_variable_type_name(pmodule_variable_bt(pair)), i);
	ptrace_variable_t *v = pmodule_variable_create(type, NULL, 0, i, pair);
	free(type);
	if (!pmodule_variable_value(v, value, true))
		pmodule_variable_annotate(v, PAT_WARNING, "%s", bt_error());
	pmodule_frame_add_variable(pmodule_variable_frame(pair), v, true);
	pmodule_variable_dispatch(v, value);
	return v;
}

/* The text of an element in the pair's line. */
static void text_of(ptrace_variable_t *v, char *text, size_t size)
{
	int64_t number;
	double real;
	if (pmodule_variable_symbol(v))
		snprintf(text, size, "%s", pmodule_variable_symbol(v));
	else if (pmodule_variable_int(v, &number))
		snprintf(text, size, "%lld", (long long)number);
	else if (pmodule_variable_real(v, &real, NULL))
		snprintf(text, size, "%g", real);
	else
		snprintf(text, size, "...");
}

static void variable(ptrace_variable_t *pair, bt_variable_t *bt)
{
	char text[2][64], *whole = NULL;
	if (!is_pair(bt) || !pmodule_variable_frame(pair))
		return;
	for (unsigned i = 0; i < 2; i++) {
		bt_variable_t *value = bt_variable_member(bt, member[i]);
		if (!value)
			return;
		text_of(element(pair, value, i), text[i], sizeof(text[i]));
	}
	if (asprintf(&whole, "(%s, %s)", text[0], text[1]) >= 0)
		pmodule_variable_set_string(pair, whole); /* takes ownership */
	pmodule_variable_state_set(pair, PTRACE_VARIABLE_S_SKIP);
}

static bool load(pmodule_t *m)
{
	return pmodule_variable_event_add(m, NULL, variable);
}

PMODULE_DEFINE("example_pair", load, NULL, NULL);
