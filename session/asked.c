/* SPDX-License-Identifier: MIT */
#include "session/trace_spec.h"

#include "probes/expr/scope/scope.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH = 32, DEPTH_MOST = 63 };

/* The comma that ends the first key, or the end of the text: commas in parentheses, brackets and quotes end none. */
static const char *end_of(const char *text)
{
	int depth = 0;
	char quote = 0;
	for (; *text; text++) {
		if (quote)
			quote = *text == quote ? 0 : quote;
		else if (*text == '"' || *text == '\'')
			quote = *text;
		else if (strchr("([", *text))
			depth++;
		else if (strchr(")]", *text))
			depth--;
		else if (*text == ',' && depth <= 0)
			break;
	}
	return text;
}

static struct dp_error *depth_of(const char *text, unsigned *ret)
{
	char *end;
	const unsigned long n = strtoul(text, &end, 10);
	if (end == text || *end || *text == '-' || n < 1 || n > DEPTH_MOST)
		return dp_error(DP_TAG_USAGE, "--by backtrace:%s: the number of frames is 1 to %d", text, DEPTH_MOST);
	*ret = (unsigned)n;
	return NULL;
}

static struct dp_error *read_kind(struct dp_key_asked *key)
{
	static const struct {
		const char *word;
		enum dp_key_kind kind;
	} words[] = {{"backtrace", DP_KEY_STACK},
	             {"caller", DP_KEY_CALLER},
	             {"pid", DP_KEY_PID},
	             {"comm", DP_KEY_COMM},
	             {"exe", DP_KEY_EXE}};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(key->text, words[i].word))
			key->kind = words[i].kind;
	if (key->kind == DP_KEY_VALUE && dp_scope_is_text(key->text, &key->most))
		key->kind = DP_KEY_TEXT;
	key->depth = key->kind == DP_KEY_STACK ? DEPTH : 0;
	if (strncmp(key->text, "backtrace:", 10) != 0)
		return NULL;
	key->kind = DP_KEY_STACK;
	return depth_of(key->text + 10, &key->depth);
}

static bool is_double(const struct dp_asked *a, const struct dp_key_asked *key)
{
	for (size_t i = 0; i < a->nkeys; i++)
		if (!strcmp(a->key[i].text, key->text) || (key->kind == DP_KEY_STACK && a->key[i].kind == DP_KEY_STACK))
			return true;
	return false;
}

static struct dp_error *add_key(struct dp_asked *a, const char *text, size_t n)
{
	for (; n && *text == ' '; n--)
		text++;
	while (n && text[n - 1] == ' ')
		n--;
	if (!n)
		return dp_error(DP_TAG_USAGE, "--by: a key is empty; separate keys by one comma: --by pid,caller");
	if (a->nkeys == DP_KEYS_MOST)
		return dp_error(DP_TAG_USAGE, "--by '%.*s' is key %u; a run has at most %u", (int)n, text, DP_KEYS_MOST + 1,
		                DP_KEYS_MOST);
	struct dp_key_asked key = {.text = strndup(text, n)};
	if (!key.text)
		return dp_error_nomem();
	struct dp_error *err = read_kind(&key);
	if (!err && is_double(a, &key))
		err = dp_error(DP_TAG_USAGE, "--by '%s' is given twice: name each key once", key.text);
	if (err)
		free(key.text);
	else
		a->key[a->nkeys++] = key;
	return err;
}

struct dp_error *dp_asked_by(struct dp_asked *a, const char *keys)
{
	char *all = NULL;
	for (const char *at = keys, *end;; at = end + 1) {
		end = end_of(at);
		DP_TRY(add_key(a, at, (size_t)(end - at)));
		if (!*end)
			break;
	}
	if (asprintf(&all, "%s%s%s", a->by ? a->by : "", a->by ? ", " : "", keys) < 0)
		return dp_error_nomem();
	free(a->by);
	a->by = all;
	return NULL;
}

void dp_asked_count(struct dp_asked *a)
{
	if (!a->nparts)
		a->part[a->nparts++] = (struct dp_agg_part){.what = DP_AGG_COUNT};
	a->what |= DP_AGG_COUNT;
}

void dp_asked_fini(struct dp_asked *a)
{
	for (size_t i = 0; i < a->nparts; i++)
		free(a->linear[i]);
	for (size_t i = 0; i < a->nkeys; i++)
		free(a->key[i].text);
	free(a->by);
	*a = (struct dp_asked){0};
}

bool dp_asked_is_by(const struct dp_asked *a, enum dp_key_kind kind)
{
	return a->nkeys == 1 && a->key[0].kind == kind;
}

bool dp_asked_has_key(const struct dp_asked *a, enum dp_key_kind kind)
{
	for (size_t i = 0; i < a->nkeys; i++)
		if (a->key[i].kind == kind)
			return true;
	return false;
}

bool dp_asked_tuples(const struct dp_asked *a)
{
	return a->nkeys > 1 || dp_asked_is_by(a, DP_KEY_CALLER) || dp_asked_is_by(a, DP_KEY_TEXT);
}

/* As long as the field of a record would be: with room for the dots of a cut string. */
unsigned dp_asked_text_words(const struct dp_key_asked *key)
{
	return dp_agg_text_words((uint32_t)key->most + (uint32_t)sizeof("..."));
}

struct dp_error *dp_asked_check_texts(const struct dp_asked *a)
{
	uint64_t all = 0;
	for (size_t i = 0; i < a->nkeys; i++) {
		const struct dp_key_asked *key = &a->key[i];
		if (key->kind != DP_KEY_TEXT)
			continue;
		if (key->most > DP_AGG_TEXT_CHARS)
			return dp_error(DP_TAG_USAGE,
			                "--by '%s': a key of a run has at most %u characters; take fewer, or record the events "
			                "(-t, --record DIR) and count them with dynprobe view DIR --count --by STRING",
			                key->text, DP_AGG_TEXT_CHARS);
		all += key->most;
	}
	if (all <= DP_AGG_TEXT_ALL)
		return NULL;
	return dp_error(
	        DP_TAG_USAGE,
	        "--by '%s': the strings of a run's keys have at most %u characters together: take fewer of each, str(p, N)",
	        a->by, DP_AGG_TEXT_ALL);
}

struct dp_aggs_shown dp_asked_shown(const struct dp_asked *a)
{
	return (struct dp_aggs_shown){
	        .part = a->part,
	        .nparts = a->nparts,
	        .by = a->by,
	        .key = a->key,
	        .nkeys = a->nkeys,
	        .rate = a->rate,
	        .top = a->top,
	};
}

bool dp_asked_mentions(const struct dp_asked *a, const char *word)
{
	bool does = a->by && strstr(a->by, word);
	for (size_t i = 0; i < a->nparts; i++)
		does |= a->part[i].value && strstr(a->part[i].value, word);
	return does;
}
