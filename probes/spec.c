/* SPDX-License-Identifier: MIT */
/* The grammar of probe points: [module '!'] (symbol ['+' offset] | address). */
#include "base/cleanup.h"
#include "probes/probes.h"

#include <ctype.h>
#include <string.h>

/* The text, and below it a caret under byte `at`; UTF-8 characters take one column. */
static struct dp_error *wrong(const char *text, size_t at, const char *why)
{
	size_t column = 0;
	for (size_t i = 0; i < at; i++)
		column += ((unsigned char)text[i] & 0xc0) != 0x80;
	return dp_error(DP_TAG_SYNTAX, "%s\n  %s\n  %*s^", why, text, (int)(column < 4096 ? column : 4096), "");
}

static unsigned digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 99;
}

/* The number that the rest of `text` from `at` on must be. */
static struct dp_error *number(const char *text, size_t at, uint64_t *ret)
{
	unsigned base = 10;
	uint64_t value = 0;
	size_t start = at;
	if (text[at] == '0' && (text[at + 1] == 'x' || text[at + 1] == 'X')) {
		base = 16;
		at += 2;
		if (!text[at])
			return wrong(text, at, "hexadecimal digits are missing behind 0x");
	} else if (text[at] == '0') {
		base = 8;
	}
	for (; text[at]; at++) {
		unsigned digit = digit_of(text[at]);
		if (digit >= base)
			return wrong(text, at,
			             base == 8    ? "this is no octal digit (a leading 0 means octal, 0x hexadecimal)"
			             : base == 16 ? "this is no hexadecimal digit"
			                          : "this is no decimal digit (hexadecimal numbers start with 0x)");
		if (__builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value))
			return wrong(text, start, "the number does not fit into 64 bits");
	}
	*ret = value;
	return NULL;
}

/* Characters that no symbol has, but typing errors do. */
static struct dp_error *check_characters(const char *text)
{
	for (size_t i = 0; text[i]; i++)
		if (iscntrl((unsigned char)text[i]))
			return wrong("(not shown)", 0, "the probe point holds a control character");
	size_t start = strspn(text, " "), end = strlen(text);
	if (start)
		return wrong(text, 0, "a probe point does not start with a blank");
	if (end && text[end - 1] == ' ')
		return wrong(text, end - 1, "a probe point does not end with a blank");
	return end ? NULL : wrong(text, 0, "a symbol or an address is missing");
}

/* The last '+' that a digit follows; operator+ and the like stay symbols. */
static size_t find_plus(const char *text, size_t from)
{
	size_t found = 0;
	for (size_t i = from; text[i]; i++)
		if (text[i] == '+' && isdigit((unsigned char)text[i + 1]))
			found = i;
	return found;
}

/* Everything behind the '!', from `at` on. */
static struct dp_error *place(const char *text, size_t at, struct dp_spec *spec)
{
	if (!text[at])
		return wrong(text, at, "a symbol or an address is missing");
	if (isdigit((unsigned char)text[at])) {
		const char *plus = strchr(text + at, '+');
		if (plus)
			return wrong(text, (size_t)(plus - text), "an address takes no offset: add it up");
		return number(text, at, &spec->value);
	}
	size_t plus = find_plus(text, at), end = plus ? plus : strlen(text);
	if (plus == at && text[at] == '+')
		return wrong(text, at, "a symbol is missing before the offset");
	if (plus) {
		DP_TRY(number(text, plus + 1, &spec->value));
		spec->has_offset = true;
	}
	spec->symbol = strndup(text + at, end - at);
	return spec->symbol ? NULL : dp_error(DP_TAG_NOMEM, "out of memory for a probe point");
}

static struct dp_error *parse(const char *text, struct dp_spec *spec)
{
	DP_TRY(check_characters(text));
	const char *bang = strrchr(text, '!');
	size_t at = bang ? (size_t)(bang - text) + 1 : 0;
	if (bang == text)
		return wrong(text, 0, "a module is missing before the '!'");
	spec->text = strdup(text);
	spec->module = bang ? strndup(text, at - 1) : NULL;
	if (!spec->text || (bang && !spec->module))
		return dp_error(DP_TAG_NOMEM, "out of memory for a probe point");
	return place(text, at, spec);
}

struct dp_error *dp_spec_parse(const char *text, struct dp_spec *ret)
{
	struct dp_spec spec = {0};
	struct dp_error *err = parse(text, &spec);
	if (err)
		dp_spec_fini(&spec);
	else
		*ret = spec;
	return err;
}

void dp_spec_fini(struct dp_spec *spec)
{
	free(spec->text);
	free(spec->module);
	free(spec->symbol);
	*spec = (struct dp_spec){0};
}
