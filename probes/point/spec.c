/* SPDX-License-Identifier: MIT */
/*
 * Parses specs: [module '!'] (symbol ['+' offset] | address) [':' point], and DTrace's pid$target:module:function:name.
 */
#include "base/cleanup.h"
#include "probes/point/spec_internal.h"

#include <ctype.h>
#include <string.h>

static bool part_is(struct dp_spec_part p, const char *word)
{
	return p.end - p.at == strlen(word) && !memcmp(p.text + p.at, word, p.end - p.at);
}

static char *part_copy(struct dp_spec_part p)
{
	return strndup(p.text + p.at, p.end - p.at);
}

static unsigned digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 99;
}

static struct dp_error *digits(struct dp_spec_part p, size_t start, unsigned base, uint64_t *ret)
{
	uint64_t value = 0;
	for (size_t at = p.at; at < p.end; at++) {
		unsigned digit = digit_of(p.text[at]);
		if (digit >= base)
			return dp_spec_wrong(p.text, at,
			                     base == 8    ? "not an octal digit (a leading 0 means octal, 0x hexadecimal)"
			                     : base == 16 ? "not a hexadecimal digit"
			                                  : "not a decimal digit (hexadecimal numbers start with 0x)");
		if (__builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value))
			return dp_spec_wrong(p.text, start, "the number does not fit into 64 bits");
	}
	*ret = value;
	return NULL;
}

static bool is_hex(struct dp_spec_part p)
{
	return p.end - p.at >= 2 && p.text[p.at] == '0' && (p.text[p.at + 1] == 'x' || p.text[p.at + 1] == 'X');
}

/* Parses all of `p` as a number. */
static struct dp_error *number(struct dp_spec_part p, uint64_t *ret)
{
	const size_t start = p.at;
	if (!is_hex(p))
		return digits(p, start, p.text[p.at] == '0' ? 8 : 10, ret);
	p.at += 2;
	if (p.at == p.end)
		return dp_spec_wrong(p.text, p.at, "hexadecimal digits are missing after 0x");
	return digits(p, start, 16, ret);
}

/* Rejects characters that no symbol has. */
static struct dp_error *check_characters(const char *text)
{
	for (size_t i = 0; text[i]; i++)
		if (iscntrl((unsigned char)text[i]))
			return dp_spec_wrong("(not shown)", 0, "the probe point contains a control character");
	size_t start = strspn(text, " "), end = strlen(text);
	if (start)
		return dp_spec_wrong(text, 0, "a probe point cannot start with a space");
	if (end && text[end - 1] == ' ')
		return dp_spec_wrong(text, end - 1, "a probe point cannot end with a space");
	return end ? NULL : dp_spec_wrong(text, 0, "a symbol or an address is missing");
}

/* Finds the last '+' before a digit. operator+ and the like remain part of the symbol. */
static size_t find_plus(struct dp_spec_part p)
{
	size_t found = 0;
	for (size_t i = p.at; i + 1 < p.end; i++)
		if (p.text[i] == '+' && isdigit((unsigned char)p.text[i + 1]))
			found = i;
	return found;
}

static struct dp_error *take_symbol(struct dp_spec_part p, struct dp_spec *spec)
{
	spec->symbol = part_copy(p);
	return spec->symbol ? NULL : dp_error_nomem();
}

/* Parses a symbol with an optional offset, or an address. */
static struct dp_error *place(struct dp_spec_part p, struct dp_spec *spec)
{
	if (p.at == p.end)
		return dp_spec_wrong(p.text, p.at, "a symbol or an address is missing");
	if (isdigit((unsigned char)p.text[p.at])) {
		const char *plus = memchr(p.text + p.at, '+', p.end - p.at);
		if (plus)
			return dp_spec_wrong(p.text, (size_t)(plus - p.text), "an address takes no offset: add the two numbers");
		return number(p, &spec->value);
	}
	size_t plus = find_plus(p);
	if ((plus == p.at || p.at + 1 == p.end) && p.text[p.at] == '+')
		return dp_spec_wrong(p.text, p.at, "a symbol is missing before the offset");
	if (plus) {
		if (spec->point != DP_POINT_PLACE)
			return dp_spec_wrong(p.text, plus, "a symbol with an offset takes no :entry, :return or :*");
		DP_TRY(number((struct dp_spec_part){p.text, plus + 1, p.end}, &spec->value));
		spec->has_offset = true;
		p.end = plus;
	}
	return take_symbol(p, spec);
}

static bool find_point(struct dp_spec_part p, enum dp_point *ret)
{
	const struct {
		const char *word;
		enum dp_point point;
	} words[] = {{"entry", DP_POINT_ENTRY}, {"return", DP_POINT_RETURN}, {"*", DP_POINT_ALL}};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (part_is(p, words[i].word)) {
			*ret = words[i].point;
			return true;
		}
	return false;
}

/* Cuts off ":entry", ":return" or ":*". Other words stay, because symbols may contain colons (Go's do). */
static struct dp_error *cut_point(struct dp_spec_part *p, struct dp_spec *spec)
{
	const char *colon = memrchr(p->text + p->at, ':', p->end - p->at);
	const size_t at = colon ? (size_t)(colon - p->text) : 0;
	if (!colon || (at > p->at && colon[-1] == ':'))
		return NULL;
	if (at + 1 == p->end)
		return dp_spec_wrong(p->text, at + 1, "entry, return or * is missing after the ':'");
	if (find_point((struct dp_spec_part){p->text, at + 1, p->end}, &spec->point))
		p->end = at;
	return NULL;
}

/* Length of "pid$target:", "pid*:" or "pid123:" without the colon; 0 if the text starts differently. */
static size_t dtrace_prefix(const char *text)
{
	static const char target[] = "pid$target";
	if (!strncmp(text, target, sizeof(target) - 1))
		return sizeof(target) - 1;
	if (strncmp(text, "pid", 3) != 0)
		return 0;
	if (!strncmp(text + 3, "*:", 2))
		return 4;
	size_t n = 3;
	while (isdigit((unsigned char)text[n]))
		n++;
	return n > 3 && text[n] == ':' ? n : 0;
}

/* DTrace's offsets are hexadecimal without 0x. */
static struct dp_error *dtrace_name(struct dp_spec_part p, struct dp_spec *spec)
{
	spec->point = DP_POINT_ALL;
	if (p.at == p.end || find_point(p, &spec->point))
		return NULL;
	const size_t start = p.at;
	spec->point = DP_POINT_PLACE;
	spec->has_offset = true;
	p.at += is_hex(p) ? 2 : 0;
	if (p.at == p.end || digit_of(p.text[p.at]) >= 16)
		return dp_spec_wrong(p.text, start, "the name of a probe must be entry, return, * or a hexadecimal offset");
	return digits(p, start, 16, &spec->value);
}

/* The function "-" means no function: the offset is relative to the module. */
static struct dp_error *dtrace_function(struct dp_spec_part p, struct dp_spec *spec)
{
	if (p.at == p.end)
		return (spec->symbol = strdup("*")) ? NULL : dp_error_nomem();
	if (!part_is(p, "-"))
		return take_symbol(p, spec);
	if (!spec->module || spec->point != DP_POINT_PLACE)
		return dp_spec_wrong(p.text, p.at, "the function - needs a module and an offset");
	spec->has_offset = false;
	return NULL;
}

static struct dp_error *parse_dtrace(const char *text, size_t prefix, struct dp_spec *spec)
{
	static const char form[] = "the DTrace form is pid$target:MODULE:FUNCTION:NAME, where empty parts match anything";
	const size_t end = strlen(text);
	const char *first = text + prefix, *second = *first == ':' ? strchr(first + 1, ':') : NULL, *third = strrchr(text, ':');
	if (!second || third == second)
		return dp_spec_wrong(text, end, form);
	const size_t module = prefix + 1, function = (size_t)(second - text) + 1, name = (size_t)(third - text) + 1;
	spec->every = text[3] == '*';
	if (text[3] != '$' && !spec->every)
		DP_TRY(digits((struct dp_spec_part){text, 3, prefix}, 3, 10, &spec->pid));
	if (module < function - 1 && !(spec->module = part_copy((struct dp_spec_part){text, module, function - 1})))
		return dp_error_nomem();
	DP_TRY(dtrace_name((struct dp_spec_part){text, name, end}, spec));
	return dtrace_function((struct dp_spec_part){text, function, name - 1}, spec);
}

/* Finds the last '!' that is not part of an operator (C++ has ! and !=). */
static const char *find_bang(const char *text)
{
	static const char op[] = "operator";
	const char *bang = strrchr(text, '!');
	while (bang && bang - text >= (ptrdiff_t)sizeof(op) - 1 && !strncmp(bang - (sizeof(op) - 1), op, sizeof(op) - 1))
		bang = memrchr(text, '!', (size_t)(bang - text));
	return bang;
}

/* Takes the text, and the module before the '!'. The rest of the text is left. */
static struct dp_error *begin(const char *text, const char *bang, struct dp_spec *spec, struct dp_spec_part *left)
{
	DP_TRY(check_characters(text));
	*left = (struct dp_spec_part){text, bang ? (size_t)(bang - text) + 1 : 0, strlen(text)};
	spec->text = strdup(text);
	spec->module = bang ? strndup(text, left->at - 1) : NULL;
	if (!spec->text || (bang && !spec->module))
		return dp_error_nomem();
	return bang == text ? dp_spec_wrong(text, 0, "a module is missing before the '!'") : NULL;
}

static struct dp_error *parse(const char *text, struct dp_spec *spec)
{
	const size_t prefix = dtrace_prefix(text);
	struct dp_spec_part p;
	bool taken;
	DP_TRY(begin(text, prefix ? NULL : find_bang(text), spec, &p));
	if (prefix)
		return parse_dtrace(text, prefix, spec);
	DP_TRY(dp_spec_call(p, false, spec, &taken));
	if (taken)
		return NULL;
	DP_TRY(cut_point(&p, spec));
	DP_TRY(dp_spec_source(p, spec, &taken));
	return taken ? NULL : place(p, spec);
}

static struct dp_error *finish(struct dp_error *err, struct dp_spec *spec, struct dp_spec *ret)
{
	if (err)
		dp_spec_fini(spec);
	else
		*ret = *spec;
	return err;
}

struct dp_error *dp_spec_parse(const char *text, struct dp_spec *ret)
{
	struct dp_spec spec = {0};
	return finish(parse(text, &spec), &spec, ret);
}

static struct dp_error *parse_usdt(const char *text, struct dp_spec *spec)
{
	static const char usdt[] = "usdt:";
	struct dp_spec_part p;
	DP_TRY(begin(text, strrchr(text, '!'), spec, &p));
	p.at += strncmp(text + p.at, usdt, sizeof(usdt) - 1) ? 0 : sizeof(usdt) - 1;
	return dp_spec_marker(p, spec);
}

struct dp_error *dp_spec_parse_usdt(const char *text, struct dp_spec *ret)
{
	struct dp_spec spec = {0};
	return finish(parse_usdt(text, &spec), &spec, ret);
}

struct dp_error *dp_spec_parse_call(const char *text, struct dp_spec *ret)
{
	struct dp_spec spec = {0};
	struct dp_spec_part p;
	bool call;
	struct dp_error *err = begin(text, strrchr(text, '!'), &spec, &p);
	return finish(err ? err : dp_spec_call(p, true, &spec, &call), &spec, ret);
}

struct dp_error *dp_spec_copy(const struct dp_spec *from, struct dp_spec *ret)
{
	struct dp_spec spec = *from;
	char **const part[] = {&spec.text,     &spec.module,   &spec.symbol, &spec.file,
	                       &spec.function, &spec.provider, &spec.marker, &spec.call};
	bool failed = false;
	for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++)
		failed |= *part[i] && !(*part[i] = strdup(*part[i]));
	return finish(failed ? dp_error_nomem() : NULL, &spec, ret);
}

bool dp_spec_is_pattern(const char *text)
{
	return text && strpbrk(text, "*?[");
}

/* foo(char*): stars in parameters are not a pattern. */
static bool is_signature(const char *symbol)
{
	const char *open = strchr(symbol, '('), *close = strrchr(symbol, ')');
	return open > symbol && open[-1] != '.' && close && (!close[1] || !strcmp(close + 1, " const")) &&
	       strcspn(symbol, "*?[") > (size_t)(open - symbol) && !memmem(open, (size_t)(close - open), ", *", 3) &&
	       open[1] != '*';
}

bool dp_spec_is_source(const struct dp_spec *spec)
{
	return spec->file || spec->function || spec->provider || spec->call;
}

bool dp_spec_selects(const struct dp_spec *spec)
{
	if (dp_spec_is_source(spec) || spec->point == DP_POINT_RETURN || spec->point == DP_POINT_ALL)
		return true;
	return spec->symbol &&
	       ((dp_spec_is_pattern(spec->symbol) && !is_signature(spec->symbol)) || dp_spec_is_pattern(spec->module));
}

bool dp_spec_has_pattern(const struct dp_spec *spec)
{
	if (spec->point == DP_POINT_ALL || dp_spec_is_pattern(spec->module) || dp_spec_is_pattern(spec->call) ||
	    dp_spec_is_pattern(spec->provider) || dp_spec_is_pattern(spec->marker))
		return true;
	return spec->symbol && !dp_spec_is_source(spec) && dp_spec_is_pattern(spec->symbol) && !is_signature(spec->symbol);
}

void dp_spec_fini(struct dp_spec *spec)
{
	free(spec->text);
	free(spec->module);
	free(spec->symbol);
	free(spec->file);
	free(spec->function);
	free(spec->provider);
	free(spec->marker);
	free(spec->call);
	*spec = (struct dp_spec){0};
}
