/* SPDX-License-Identifier: MIT */
/* -c "CMD ARGS": words as a shell splits them, without expansions. */
#include "base/buf.h"
#include "cli/options/options.h"

#include <stdlib.h>
#include <string.h>

struct splitter {
	const char *at;
	struct dp_buf word;
	bool in_word;
	bool quoted; /* a part of the word is */
	char **words;
	size_t n;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static bool push_word(struct splitter *s)
{
	char **grown = realloc(s->words, (s->n + 2) * sizeof(*grown));
	if (!grown)
		return false;
	s->words = grown;
	s->words[s->n] = strdup(dp_buf_str(&s->word));
	s->words[s->n + 1] = NULL;
	dp_buf_fini(&s->word);
	s->in_word = s->quoted = false;
	return s->words[s->n++] != NULL;
}

/* What a shell would not pass on to the program: | && ; > >out 2>&1 and so on, as words of their own; a; before a blank. */
static bool is_for_a_shell(const char *word)
{
	const char *at = word + strspn(word, "0123456789");
	const size_t n = strlen(word);
	if (*at == '<' || *at == '>' || (n && word[n - 1] == ';'))
		return true;
	return *word && !word[strspn(word, "|&;")];
}

static struct dp_error *end_word(struct splitter *s)
{
	const char *word = dp_buf_str(&s->word);
	if (!s->quoted && is_for_a_shell(word))
		return dp_error(DP_TAG_USAGE,
		                "the command has '%s', which only a shell understands, and dynprobe starts the program itself: "
		                "-c \"sh -c '...'\" starts a shell (its programs are probed with --follow, as root); if it is an "
		                "argument, quote it",
		                word);
	return push_word(s) ? NULL : dp_error_nomem();
}

static struct dp_error *single_quoted(struct splitter *s)
{
	const char *end = strchr(s->at, '\'');
	if (!end)
		return dp_error(DP_TAG_USAGE, "the command has an unclosed single quote");
	dp_buf_put(&s->word, s->at, (size_t)(end - s->at));
	s->at = end + 1;
	return NULL;
}

static struct dp_error *double_quoted(struct splitter *s)
{
	for (; *s->at && *s->at != '"'; s->at++) {
		if (*s->at == '\\' && s->at[1] && strchr("\"\\$`", s->at[1]))
			s->at++;
		dp_buf_put(&s->word, s->at, 1);
	}
	if (!*s->at)
		return dp_error(DP_TAG_USAGE, "the command has an unclosed double quote");
	s->at++;
	return NULL;
}

static struct dp_error *one_char(struct splitter *s)
{
	const char c = *s->at++;
	s->in_word = true;
	s->quoted |= strchr("'\"\\", c) != NULL;
	if (c == '\'')
		return single_quoted(s);
	if (c == '"')
		return double_quoted(s);
	if (c == '\\' && *s->at)
		dp_buf_put(&s->word, s->at++, 1);
	else
		dp_buf_put(&s->word, &c, 1);
	return NULL;
}

static struct dp_error *split(struct splitter *s)
{
	while (*s->at) {
		if (!is_blank(*s->at)) {
			DP_TRY(one_char(s));
			continue;
		}
		s->at++;
		if (s->in_word)
			DP_TRY(end_word(s));
	}
	if (s->in_word)
		DP_TRY(end_word(s));
	if (!s->n)
		return dp_error(DP_TAG_USAGE, "the command is empty");
	return NULL;
}

struct dp_error *dp_words_split(const char *line, char ***ret)
{
	struct splitter s = {.at = line};
	dp_buf_init(&s.word);
	struct dp_error *err = split(&s);
	dp_buf_fini(&s.word);
	if (err)
		dp_words_free(s.words);
	else
		*ret = s.words;
	return err;
}

void dp_words_free(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}
