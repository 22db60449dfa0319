/* SPDX-License-Identifier: MIT */
/*
 * Shortens names of the C++ standard library as its users write them: default template arguments and inline namespaces are left
 * out, and instances with a name of their own get it. std::__cxx11::basic_string<char, std::char_traits<char>,
 * std::allocator<char> > is std::string.
 */
#include "probes/elf/demangle.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 32, ARGS = 8 };

static struct dp_buf shortened(const char *text, size_t n, unsigned depth);

static bool is_one_of(const char *const *words, const char *word, size_t n)
{
	for (; *words; words++)
		if (strlen(*words) == n && !memcmp(*words, word, n))
			return true;
	return false;
}

/* Templates whose last arguments are mostly the defaults. */
static bool has_defaults(const char *word, size_t n)
{
	static const char *const words[] = {"vector",
	                                    "deque",
	                                    "list",
	                                    "forward_list",
	                                    "set",
	                                    "multiset",
	                                    "map",
	                                    "multimap",
	                                    "unordered_set",
	                                    "unordered_multiset",
	                                    "unordered_map",
	                                    "unordered_multimap",
	                                    "unique_ptr",
	                                    "queue",
	                                    "stack",
	                                    "basic_string",
	                                    "basic_string_view",
	                                    "basic_ios",
	                                    "basic_istream",
	                                    "basic_ostream",
	                                    "basic_iostream",
	                                    "basic_streambuf",
	                                    "basic_filebuf",
	                                    "basic_ifstream",
	                                    "basic_ofstream",
	                                    "basic_fstream",
	                                    "basic_stringbuf",
	                                    "basic_istringstream",
	                                    "basic_ostringstream",
	                                    "basic_stringstream",
	                                    NULL};
	return is_one_of(words, word, n);
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static size_t word_length(const char *text, const char *end)
{
	size_t n = 0;
	while (text + n < end && is_word(text[n]))
		n++;
	return n;
}

/* Finds the '>' that closes the '<' at `at`, and the commas between the arguments. NULL if it is not plain. */
static const char *split(const char *at, const char *end, const char *comma[ARGS], size_t *n)
{
	int depth = 0;
	*n = 0;
	for (const char *p = at; p < end; p++) {
		if (strchr("<([{", *p))
			depth++;
		else if (*p == '-' && p + 1 < end && p[1] == '>')
			return NULL;
		else if (strchr(">)]}", *p) && !--depth)
			return *p == '>' ? p : NULL;
		if (depth == 1 && *p == ',') {
			if (*n == ARGS - 1)
				return NULL;
			comma[(*n)++] = p;
		}
	}
	return NULL;
}

static bool same_but_spaces(const char *a, const char *b)
{
	while (true) {
		a += strspn(a, " ");
		b += strspn(b, " ");
		if (*a != *b || !*a)
			return *a == *b;
		a++;
		b++;
	}
}

static void put_text(struct dp_buf *b, const char *text)
{
	dp_buf_put(b, text, strlen(text));
}

static bool is_instance(const char *arg, const char *form, const char *first, const char *second)
{
	struct dp_buf b = {0};
	for (const char *p = form; *p; p++)
		if (*p == '1' || *p == '2')
			put_text(&b, *p == '1' ? first : second);
		else
			dp_buf_put(&b, p, 1);
	const bool same = !b.failed && same_but_spaces(dp_buf_str(&b), arg);
	dp_buf_fini(&b);
	return same;
}

/* Is it what the library says for an argument that is left out? 1 and 2 stand for the first two arguments. */
static bool is_default(const char *arg, const char *first, const char *second)
{
	static const char *const forms[] = {
	        "std::allocator<1>",   "std::less<1>",           "std::equal_to<1>", "std::hash<1>",
	        "std::char_traits<1>", "std::default_delete<1>", "std::deque<1>",    "std::allocator<std::pair<1 const, 2>>"};
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (is_instance(arg, forms[i], first, second))
			return true;
	return false;
}

static bool is_map(const char *word, size_t n)
{
	return n >= 3 && !memcmp(word + n - 3, "map", 3);
}

/* basic_ostream<char> is ostream. */
static bool put_alias(struct dp_buf *b, const char *word, size_t n, const char *arg)
{
	static const char basic[] = "basic_";
	static const struct {
		const char *type, *prefix;
	} of[] = {{"char", ""}, {"wchar_t", "w"}, {"char8_t", "u8"}, {"char16_t", "u16"}, {"char32_t", "u32"}};
	const size_t skip = sizeof(basic) - 1;
	if (n <= skip || memcmp(word, basic, skip))
		return false;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		if (!strcmp(of[i].type, arg)) {
			dp_buf_printf(b, "%s%.*s", of[i].prefix, (int)(n - skip), word + skip);
			return true;
		}
	return false;
}

static void put_args(struct dp_buf *b, const char *word, size_t n, struct dp_buf *arg, size_t nargs)
{
	const char *first = dp_buf_str(&arg[0]), *second = nargs > 1 ? dp_buf_str(&arg[1]) : "";
	const size_t least = is_map(word, n) ? 2 : 1;
	while (nargs > least && is_default(dp_buf_str(&arg[nargs - 1]), first, second))
		nargs--;
	if (nargs == 1 && put_alias(b, word, n, first))
		return;
	dp_buf_put(b, word, n);
	for (size_t i = 0; i < nargs; i++)
		dp_buf_printf(b, "%s%s", i ? ", " : "<", dp_buf_str(&arg[i]));
	const size_t len = b->len;
	put_text(b, len && dp_buf_str(b)[len - 1] == '>' ? " >" : ">");
}

/* The template at `word`, whose arguments begin at word[n]. Returns where it ends, or NULL if it stays as it is. */
static const char *put_template(struct dp_buf *b, const char *word, size_t n, const char *end, unsigned depth)
{
	const char *comma[ARGS];
	struct dp_buf arg[ARGS];
	size_t ncommas;
	const char *close = split(word + n, end, comma, &ncommas);
	if (!close || close == word + n + 1)
		return NULL;
	for (size_t i = 0; i <= ncommas; i++) {
		const char *from = i ? comma[i - 1] + 1 : word + n + 1, *to = i < ncommas ? comma[i] : close;
		while (from < to && *from == ' ')
			from++;
		while (to > from && to[-1] == ' ')
			to--;
		arg[i] = shortened(from, (size_t)(to - from), depth + 1);
	}
	put_args(b, word, n, arg, ncommas + 1);
	for (size_t i = 0; i <= ncommas; i++) {
		b->failed |= arg[i].failed;
		dp_buf_fini(&arg[i]);
	}
	return close + 1;
}

static size_t inline_namespace(const char *p, const char *end)
{
	static const char *const names[] = {"__cxx11::", "__1::"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const size_t n = strlen(names[i]);
		if ((size_t)(end - p) > n && !memcmp(p, names[i], n))
			return n;
	}
	return 0;
}

static struct dp_buf shortened(const char *text, size_t n, unsigned depth)
{
	static const char std[] = "std::";
	const char *const end = text + n;
	struct dp_buf b = {0};
	for (const char *p = text; p < end;) {
		const bool begins = p == text || (!is_word(p[-1]) && p[-1] != ':');
		if (*p == ' ' && p + 1 < end && p[1] == '>' && b.len && dp_buf_str(&b)[b.len - 1] != '>') {
			p++; /* of a list that has become shorter */
			continue;
		}
		if (!begins || (size_t)(end - p) < sizeof(std) || memcmp(p, std, sizeof(std) - 1) != 0) {
			dp_buf_put(&b, p++, 1);
			continue;
		}
		p += sizeof(std) - 1;
		p += inline_namespace(p, end);
		dp_buf_put(&b, std, sizeof(std) - 1);
		const size_t word = word_length(p, end);
		const bool template = word && p + word < end && p[word] == '<' && has_defaults(p, word) && depth < DEEPEST;
		const char *after = template ? put_template(&b, p, word, end, depth) : NULL;
		if (!after)
			dp_buf_put(&b, p, word);
		p = after ? after : p + word;
	}
	return b;
}

char *dp_demangle_shorten(const char *text)
{
	if (!strstr(text, "std::"))
		return NULL;
	struct dp_buf b = shortened(text, strlen(text), 0);
	char *same = b.failed || !strcmp(dp_buf_str(&b), text) ? NULL : strdup(dp_buf_str(&b));
	dp_buf_fini(&b);
	return same;
}
