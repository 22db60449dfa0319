/* SPDX-License-Identifier: MIT */
#include "probes/expr/syntax/printf_form.h"

#include "base/cleanup.h"
#include "probes/expr/syntax/check.h"
#include "probes/record/lex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

size_t dp_printf_begins(const char *text)
{
	for (size_t i = 1; text[0] && text[i]; i++)
		if (text[i] == '"' && isspace((unsigned char)text[i - 1]))
			return i;
	return 0;
}

/* Takes the format between the quotes; *end is the offset after it. */
static struct dp_error *take_format(const char *text, size_t *end, struct dp_printf_form *form, size_t where[])
{
	struct dp_conversion c;
	size_t at = 1, n = 0, used = 0;
	form->format = malloc(strlen(text) + 1);
	if (!form->format)
		return dp_error_nomem();
	for (; text[at] && text[at] != '"'; at++) {
		const char *escape = text[at] == '\\' && text[at + 1] ? strchr("n\nt\t\"\"\\\\", text[at + 1]) : NULL;
		if (text[at] == '\\' && !escape)
			return dp_lex_error(text, at, "unknown escape; use \\n, \\t, \\\" or \\\\");
		if (text[at] == '%' && !dp_printf_conversion(text + at, &c))
			return dp_lex_error(text, at, "unknown conversion; use %%d %%i %%u %%x %%s %%c %%p %%f %%%%");
		if (text[at] == '%' && c.letter == '%')
			form->format[n++] = text[at++];
		else if (text[at] == '%' && used == DP_PRINTF_ARGS)
			return dp_lex_error(text, at, "more than %u conversions", DP_PRINTF_ARGS);
		else if (text[at] == '%')
			where[used++] = at;
		form->format[n++] = escape ? escape[1] : text[at];
		at += escape != NULL;
	}
	if (!text[at])
		return dp_lex_error(text, 0, "the quote is not closed");
	while (n && form->format[n - 1] == '\n')
		n--;
	form->format[n] = '\0';
	*end = at + 1;
	form->n = used;
	return NULL;
}

/* The end of an argument: a comma outside of parentheses, brackets and quotes. */
static size_t argument_end(const char *text, size_t at)
{
	int depth = 0;
	for (char quote = 0; text[at] && (quote || depth > 0 || text[at] != ','); at++) {
		if (text[at] == '\\' && quote && text[at + 1])
			at++;
		else if (quote)
			quote = text[at] == quote ? 0 : quote;
		else if (text[at] == '"' || text[at] == '\'')
			quote = text[at];
		else if (strchr("([", text[at]))
			depth++;
		else if (strchr(")]", text[at]))
			depth--;
	}
	return at;
}

static struct dp_error *take_argument(const char *text, size_t at, size_t end, struct dp_printf_form *form, size_t i)
{
	while (at < end && isspace((unsigned char)text[at]))
		at++;
	while (end > at && isspace((unsigned char)text[end - 1]))
		end--;
	if (at == end)
		return dp_lex_error(text, at, "an argument is missing");
	form->arg[i] = strndup(text + at, end - at);
	if (!form->arg[i])
		return dp_error_nomem();
	if (!strcmp(form->arg[i], "args") || !strcmp(form->arg[i], "locals"))
		return dp_lex_error(text, at, "'%s' is not one value: use -t for it", form->arg[i]);
	return dp_context_check(form->arg[i]);
}

static struct dp_error *take_arguments(const char *text, size_t at, struct dp_printf_form *form, const size_t where[])
{
	size_t i = 0;
	at += strspn(text + at, " \t");
	while (text[at]) {
		if (text[at] != ',')
			return dp_lex_error(text, at, "expected a comma and an argument");
		if (i == form->n)
			return dp_lex_error(text, at, "the format has %zu conversion%s, and there are more arguments", form->n,
			                    form->n == 1 ? "" : "s");
		const size_t end = argument_end(text, at + 1);
		DP_TRY(take_argument(text, at + 1, end, form, i++));
		at = end;
	}
	return i == form->n ? NULL : dp_lex_error(text, where[i], "this conversion has no argument");
}

struct dp_error *dp_printf_parse(const char *text, struct dp_printf_form **ret)
{
	size_t end = 0, where[DP_PRINTF_ARGS];
	struct dp_printf_form *form = calloc(1, sizeof(*form));
	if (!form || !(form->text = strdup(text))) {
		free(form);
		return dp_error_nomem();
	}
	struct dp_error *err = take_format(text, &end, form, where);
	if (!err)
		err = take_arguments(text, end, form, where);
	if (err)
		dp_printf_destroy(form);
	else
		*ret = form;
	return err;
}

struct dp_printf_form *dp_printf_destroy(struct dp_printf_form *form)
{
	for (size_t i = 0; form && i < DP_PRINTF_ARGS; i++)
		free(form->arg[i]);
	if (form) {
		free(form->text);
		free(form->format);
	}
	free(form);
	return NULL;
}

static bool fits(char letter, const struct dp_field *f)
{
	const bool integer = f->type == DP_TYPE_INT || f->type == DP_TYPE_UINT;
	switch (letter) {
	case 's':
		return f->type == DP_TYPE_STRING || f->names;
	case 'f':
		return f->type == DP_TYPE_FLOAT;
	case 'p':
		return f->type == DP_TYPE_POINTER || (integer && f->size == sizeof(void *));
	case 'x':
	case 'X':
		return integer || f->type == DP_TYPE_POINTER;
	default:
		return integer;
	}
}

static const char *what_is(const struct dp_field *f)
{
	return f->type == DP_TYPE_STRING         ? "a string: %s"
	       : f->type == DP_TYPE_FLOAT        ? "a floating-point number: %f"
	       : f->type == DP_TYPE_POINTER      ? "a pointer: %p"
	       : dp_display_is_wide(f->display) ? "of sixteen bytes, for which there is no conversion: use -t"
	       : f->type == DP_TYPE_BYTES || f->type == DP_TYPE_BACKTRACE ? "not a value that a format can show: use -t"
	                                                                  : "an integer: %d, %u, %x or %c";
}

struct dp_error *dp_printf_check(const struct dp_printf_form *form, size_t i, const struct dp_field *field)
{
	struct dp_conversion c;
	size_t k = 0;
	for (const char *p = form->format; *p; p++) {
		if (*p != '%')
			continue;
		p += dp_printf_conversion(p, &c) - 1;
		if (c.letter == '%' || k++ != i)
			continue;
		if (field->source == DP_SRC_NONE || fits(c.letter, field))
			return NULL;
		return dp_error(DP_TAG_SYNTAX, "%%%c does not show '%s', which is %s", c.letter, form->arg[i], what_is(field));
	}
	return dp_error(DP_TAG_INTERNAL, "no conversion for argument %zu of %s", i, form->text);
}
