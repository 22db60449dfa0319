/* SPDX-License-Identifier: MIT */
#include "probes/expr/syntax/ast_lex.h"
#include "base/cleanup.h"
#include "probes/record/lex.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <string.h>

static const struct {
	const char *text;
	int op;
} operators[] = {
        {"->", DP_AST_ARROW}, {"||", DP_AST_OR},    {"&&", DP_AST_AND},   {"==", DP_AST_EQ},
        {"!=", DP_AST_NE},    {"=~", DP_AST_MATCH}, {"<=", DP_AST_LE},    {">=", DP_AST_GE},
        {"<<", DP_AST_SHL},   {">>", DP_AST_SHR},   {"::", DP_AST_SCOPE},
};

const char *dp_ast_binary_text(int op)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++)
		if (operators[i].op == op)
			return operators[i].text;
	return "";
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static struct dp_error *bad_number(const char *text, const struct dp_token *t)
{
	return dp_lex_error(text, t->at,
	                    "not a number below 2^64: 0x... (hexadecimal), 0... (octal) or decimal, also times (5ms)");
}

static struct dp_error *lex_real(const char *text, struct dp_token *t)
{
	char *end;
	dp_auto_free char *copy = strndup(text + t->at, t->end - t->at);
	locale_t c = newlocale(LC_NUMERIC_MASK, "C", NULL);
	if (!copy || !c) {
		if (c)
			freelocale(c);
		return dp_error_nomem();
	}
	t->kind = DP_TOKEN_FLOAT;
	t->real = strtod_l(copy, &end, c);
	t->is_single = !strcmp(end, "f") || !strcmp(end, "F");
	if (t->is_single)
		t->real = (double)strtof_l(copy, NULL, c);
	freelocale(c);
	return *end && !t->is_single ? bad_number(text, t) : NULL;
}

/* 5ms, 2.5us: nanoseconds, a long. */
static bool lex_time(const char *text, struct dp_token *t)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	size_t at = t->at;
	double ns = 0, digit = 1;
	for (; isdigit((unsigned char)text[at]); at++)
		ns = ns * 10 + (text[at] - '0');
	for (at += text[at] == '.'; isdigit((unsigned char)text[at]); at++)
		ns += (text[at] - '0') * (digit /= 10);
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strlen(units[i].name) == t->end - at && !strncmp(text + at, units[i].name, t->end - at) &&
		    ns * units[i].ns < 0x1p63) {
			t->value = (uint64_t)(ns * units[i].ns + 0.5);
			t->kind = DP_TOKEN_NUMBER;
			t->is_long = true;
			return true;
		}
	return false;
}

static bool is_real(const char *text, size_t at, size_t end)
{
	if (end - at > 2 && text[at] == '0' && (text[at + 1] | 32) == 'x')
		return false;
	for (size_t i = at; i < end; i++)
		if (text[i] == '.' || (text[i] | 32) == 'e')
			return true;
	return false;
}

static struct dp_error *lex_number(const char *text, struct dp_token *t)
{
	size_t end = t->at;
	while (is_name_char(text[end]) || (text[end] == '.' && text[end + 1] != '.') ||
	       ((text[end] == '+' || text[end] == '-') && (text[end - 1] | 32) == 'e' && is_real(text, t->at, end)))
		end++;
	t->end = end;
	if (lex_time(text, t))
		return NULL;
	if (is_real(text, t->at, end))
		return lex_real(text, t);
	t->kind = DP_TOKEN_NUMBER;
	while (end > t->at + 1 && strchr("uUlL", text[end - 1])) {
		t->is_unsigned |= (text[end - 1] | 32) == 'u';
		t->is_long |= (text[end - 1] | 32) == 'l';
		end--;
	}
	return dp_lex_number(text + t->at, end - t->at, &t->value) ? NULL : bad_number(text, t);
}

static bool unescape(const char *text, size_t *at, char *ret)
{
	static const char from[] = "ntr0ab\\\"'?vfe", to[] = "\n\t\r\0\a\b\\\"'?\v\f\033";
	if (text[*at] != '\\') {
		*ret = text[(*at)++];
		return true;
	}
	const char c = text[*at + 1];
	if (c == 'x' && isxdigit((unsigned char)text[*at + 2]) && isxdigit((unsigned char)text[*at + 3])) {
		const char digits[3] = {text[*at + 2], text[*at + 3], '\0'};
		*ret = (char)strtol(digits, NULL, 16);
		*at += 4;
		return true;
	}
	const char *found = c ? strchr(from, c) : NULL;
	if (!found)
		return false;
	*ret = to[found - from];
	*at += 2;
	return true;
}

/* 'a' is a number; a longer text in single quotes is a file's name. */
static struct dp_error *lex_quoted(struct dp_arena *arena, const char *text, struct dp_token *t)
{
	const char quote = text[t->at];
	size_t at = t->at + 1;
	char *copy = dp_arena_alloc(arena, strlen(text + at) + 1);
	if (!copy)
		return dp_error_nomem();
	while (text[at] && text[at] != quote)
		if (!unescape(text, &at, &copy[t->len++]))
			return dp_lex_error(text, at, "unknown escape: \\n \\t \\r \\0 \\e \\\\ \\\" \\' \\xNN are known");
	if (!text[at])
		return dp_lex_error(text, t->at, "this quote is not closed");
	t->end = at + 1;
	t->text = copy;
	t->kind = DP_TOKEN_STRING;
	if (quote == '\'' && t->len == 1) {
		t->kind = DP_TOKEN_NUMBER;
		t->value = (uint64_t)(int64_t)copy[0];
	}
	if (quote == '"' && memchr(copy, '\0', t->len))
		return dp_lex_error(text, t->at, "a string cannot contain a NUL");
	return NULL;
}

static struct dp_error *lex_name(struct dp_arena *arena, const char *text, struct dp_token *t)
{
	const bool is_register = text[t->at] == '$';
	size_t start = t->at + is_register, at = start;
	while (is_name_char(text[at]))
		at++;
	/* ns::x is one name. */
	while (!is_register && text[at] == ':' && text[at + 1] == ':' &&
	       (isalpha((unsigned char)text[at + 2]) || text[at + 2] == '_'))
		for (at += 2; is_name_char(text[at]);)
			at++;
	if (at == start)
		return dp_lex_error(text, t->at, "'$' needs a register's name after it");
	t->kind = is_register ? DP_TOKEN_REGISTER : DP_TOKEN_NAME;
	t->end = at;
	t->len = at - start;
	t->text = dp_arena_copy(arena, text + start, t->len);
	return t->text ? NULL : dp_error_nomem();
}

static void lex_operator(const char *text, struct dp_token *t)
{
	t->kind = DP_TOKEN_OP;
	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++)
		if (!strncmp(text + t->at, operators[i].text, 2)) {
			t->op = operators[i].op;
			t->end = t->at + 2;
			return;
		}
	t->op = (unsigned char)text[t->at];
	t->end = t->at + 1;
}

struct dp_error *dp_token_next(struct dp_arena *arena, const char *text, size_t at, struct dp_token *ret)
{
	while (isspace((unsigned char)text[at]))
		at++;
	*ret = (struct dp_token){.at = at, .end = at};
	const char c = text[at];
	if (!c)
		return NULL;
	if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)text[at + 1])))
		return lex_number(text, ret);
	if (isalpha((unsigned char)c) || c == '_' || c == '$')
		return lex_name(arena, text, ret);
	if (c == '"' || c == '\'')
		return lex_quoted(arena, text, ret);
	lex_operator(text, ret);
	return NULL;
}
