/* SPDX-License-Identifier: MIT */
#include "probes/elf/demangle.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <fnmatch.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#define MAX_SYMBOL   8192u /* longer names stay mangled: demangling is not linear for all names */
#define MAX_READABLE (1u << 16)

struct readable {
	struct dp_buf text;
	jmp_buf enough;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* A few hundred characters may expand to more than all memory. The demanglers stop only when they are left by longjmp. */
static void take_part(const char *part, size_t n, void *data)
{
	struct readable *r = data;
	if (r->text.failed || n > MAX_READABLE - r->text.len)
		longjmp(r->enough, 1);
	dp_buf_put(&r->text, part, n);
}

static bool demangle(struct readable *r, const char *symbol, int options)
{
	if (setjmp(r->enough))
		return false;
	if (rust_demangle_callback(symbol, options, take_part, r))
		return true;
	r->text.len = 0;
	return cplus_demangle_v3_callback(symbol, options, take_part, r);
}

char *dp_demangle_whole(const char *symbol, bool parameters)
{
	struct readable r = {0};
	/* Without parameters there is no result to drop: DMGL_RET_DROP would drop one inside template arguments. */
	const int options = DMGL_ANSI | (parameters ? DMGL_PARAMS | DMGL_RET_DROP : 0);
	if (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R') || strlen(symbol) > MAX_SYMBOL)
		return NULL;
	char *text = demangle(&r, symbol, options) && !r.text.failed ? strndup(dp_buf_str(&r.text), r.text.len) : NULL;
	dp_buf_fini(&r.text);
	return text;
}

char *dp_demangle(const char *symbol, bool parameters)
{
	char *whole = dp_demangle_whole(symbol, parameters), *shorter = whole ? dp_demangle_shorten(whole) : NULL;
	if (!shorter)
		return whole;
	free(whole);
	return shorter;
}

/* Removes spaces, except those between two words: "unsigned int". */
static char *squeeze(const char *text)
{
	char *out = malloc(strlen(text) + 1), *to = out;
	for (; out && *text; text++)
		if (*text != ' ' || (to > out && is_word(to[-1]) && is_word(text[1])))
			*to++ = *text;
	if (out)
		*to = 0;
	return out;
}

/* Where a type's name ends: before *, & and separators. */
static size_t type_end(const char *text)
{
	size_t n = 0;
	for (int depth = 0; text[n] && (depth || !strchr("*&,)>", text[n])); n++)
		depth += text[n] == '<' ? 1 : text[n] == '>' ? -1 : 0;
	return n;
}

/* Users write `const char *`, demanglers `char const*`. */
static void turn_const(char *text)
{
	static const char word[] = "const ";
	const size_t len = sizeof(word) - 1;
	for (char *p = text; (p = strstr(p, word)); p++) {
		if (p == text || !strchr("(,<", p[-1]))
			continue;
		const size_t n = type_end(p + len);
		memmove(p, p + len, n);
		memcpy(p + n, " const", len);
	}
}

/* The parenthesis that opens the parameters, not one that is part of a name. */
static const char *find_signature(const char *text)
{
	static const char nameless[] = "(anonymousnamespace)", spaced[] = "(anonymous namespace)", op[] = "operator()";
	for (const char *p = text; (p = strchr(p, '(')); p++) {
		if (!strncmp(p, nameless, strlen(nameless)) || !strncmp(p, spaced, strlen(spaced)))
			continue;
		if (p - text >= 8 && !strncmp(p - 8, op, strlen(op)))
			continue;
		return p;
	}
	return NULL;
}

/* Mangled names abbreviate these to two letters, also in constructors, which repeat the class name. */
static bool is_abbreviated(const char *word, size_t n)
{
	static const char *const words[] = {"allocator",      "basic_string", "string",  "basic_istream", "basic_ostream",
	                                    "basic_iostream", "istream",      "ostream", "iostream"};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strlen(words[i]) == n && !strncmp(words[i], word, n))
			return true;
	return false;
}

/* The last identifier before the parameters and template arguments; "" if unsure. */
static char *last_word(const char *text)
{
	const char *end = find_signature(text), *angle = strchr(text, '<');
	end = end ? end : text + strlen(text);
	while (end > text && angle && end > angle && end[-1] == '>') { /* skip back over <...> */
		int depth = 0;
		do {
			end--;
			depth += *end == '>' ? 1 : *end == '<' ? -1 : 0;
		} while (end > text && depth > 0);
	}
	const char *start = end;
	while (start > text && is_word(start[-1]))
		start--;
	const bool sure = !strpbrk(text, "*?[") && !strstr(text, "operator") && !strchr(text, '{') &&
	                  !is_abbreviated(start, (size_t)(end - start));
	return sure ? strndup(start, (size_t)(end - start)) : strdup("");
}

bool dp_name_match_init(struct dp_name_match *match, const char *typed)
{
	*match = (struct dp_name_match){.text = squeeze(typed)};
	if (!match->text)
		return false;
	turn_const(match->text);
	match->signature = find_signature(match->text);
	match->glob = strpbrk(match->text, "*?[") != NULL;
	match->anywhere = strstr(match->text, "::");
	dp_auto_free char *shorter = dp_demangle_shorten(typed);
	match->shorter = shorter ? squeeze(shorter) : NULL;
	if (match->shorter)
		turn_const(match->shorter);
	match->word = last_word(match->text);
	return match->word;
}

void dp_name_match_fini(struct dp_name_match *match)
{
	free(match->text);
	free(match->shorter);
	free(match->word);
	*match = (struct dp_name_match){0};
}

static bool behind_operator(const char *start, const char *p)
{
	while (p > start && strchr("<>-=", p[-1]))
		p--;
	return p - start >= 8 && !strncmp(p - 8, "operator", 8);
}

/* Returns the position after the '>' that closes the bracket around `p`; `p` may be at the '<'. */
static const char *close_angle(const char *p)
{
	int depth = *p == '<' ? 0 : 1;
	for (; *p; p++) {
		depth += *p == '<' ? 1 : *p == '>' && p[-1] != '-' ? -1 : 0;
		if (!depth)
			return p + 1;
	}
	return p;
}

/* What may follow the parameters without being typed. */
static bool is_tail(const char *p, bool signature)
{
	return !*p || (signature && (!strncmp(p, "const", 5) || !strncmp(p, "volatile", 8) || *p == '&'));
}

/* Matches all of `typed` against all of `name`. */
static bool fits(const char *typed, const char *name, bool signature)
{
	const char *const start = name;
	while (true) {
		if (*name == '<' && *typed != '<' && !behind_operator(start, name)) {
			name = close_angle(name);
			continue;
		}
		if (*typed == '>' && *name == ',') {
			name = close_angle(name) - 1;
			if (*name != '>')
				return false;
		}
		if (!*typed)
			return is_tail(name, signature);
		if (*typed++ != *name++)
			return false;
	}
}

/* Start of the name's next component, outside of brackets; NULL if there is none. */
static const char *next_component(const char *p)
{
	int depth = 0;
	for (; *p; p++) {
		if (strchr("<({[", *p))
			depth++;
		else if (strchr(">)}]", *p))
			depth--;
		else if (!depth && p[0] == ':' && p[1] == ':')
			return p + 2;
	}
	return NULL;
}

/* Removes template arguments. */
static void strip_templates(char *name)
{
	char *to = name;
	for (const char *p = name; *p;)
		if (*p == '<' && !behind_operator(name, p))
			p = close_angle(p);
		else
			*to++ = *p++;
	*to = 0;
}

static bool glob_fits(const struct dp_name_match *match, const char *typed, const char *name)
{
	dp_auto_free char *plain = strchr(name, '<') && !strchr(typed, '<') ? strdup(name) : NULL;
	if (plain)
		strip_templates(plain);
	for (const char *p = name; p; p = match->anywhere ? next_component(p) : NULL)
		if (!fnmatch(typed, p, 0))
			return true;
	for (const char *p = plain; p; p = match->anywhere ? next_component(p) : NULL)
		if (!fnmatch(typed, p, 0))
			return true;
	return false;
}

static bool fits_anywhere(const struct dp_name_match *match, const char *typed, const char *name)
{
	if (match->glob && glob_fits(match, typed, name))
		return true;
	for (const char *p = name; p; p = next_component(p))
		if (fits(typed, p, match->signature))
			return true;
	return false;
}

static bool matches(const struct dp_name_match *match, const char *typed, const char *demangled)
{
	dp_auto_free char *name = squeeze(demangled);
	char *clone = name ? strstr(name, "[clone") : NULL;
	if (clone)
		*clone = 0;
	return name && fits_anywhere(match, typed, name);
}

/* The standard library's names may be typed as they are shown. */
bool dp_name_match_text(const struct dp_name_match *match, const char *demangled)
{
	if (matches(match, match->text, demangled))
		return true;
	dp_auto_free char *shorter = dp_demangle_shorten(demangled);
	return shorter && matches(match, match->shorter ? match->shorter : match->text, shorter);
}

bool dp_name_match_symbol(const struct dp_name_match *match, const char *symbol)
{
	if (*match->word && !strstr(symbol, match->word))
		return false;
	dp_auto_free char *name = dp_demangle_whole(symbol, match->signature);
	return name && dp_name_match_text(match, name);
}
