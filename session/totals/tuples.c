/* SPDX-License-Identifier: MIT */
#include "session/totals/tuples.h"

#include "agent/abi.h"
#include "base/arena.h"
#include "base/text_hash.h"

#include <stdlib.h>
#include <string.h>

enum { TUPLES_MOST = 1 << 18, WORDS_MOST = 1 << 17, CALLER = 2 };

static const char null_word[] = DP_NULL_TEXT;

struct entry { /* a tuple or a word */
	uint64_t number;
	const char *word;           /* of words */
	struct dp_key_shown *shown; /* of tuples, made when it is first asked for */
	UT_hash_handle hh;
	uint64_t part[];
};

struct table { /* by key, and by number - 1 */
	struct entry *all, **at;
	size_t n, capacity, most;
};

struct dp_tuples {
	struct dp_arena arena;
	struct dp_frame_names *names;
	struct table tuples, words;
	size_t n;
};

struct dp_tuples *dp_tuples_create(size_t n)
{
	struct dp_tuples *t = calloc(1, sizeof(*t));
	struct dp_frame_names *names = t ? dp_frame_names_create() : NULL;
	if (!names) {
		free(t);
		return NULL;
	}
	t->names = names;
	t->n = n;
	t->tuples.most = TUPLES_MOST;
	t->words.most = WORDS_MOST;
	return t;
}

struct dp_tuples *dp_tuples_destroy(struct dp_tuples *t)
{
	if (!t)
		return NULL;
	HASH_CLEAR(hh, t->tuples.all);
	HASH_CLEAR(hh, t->words.all);
	free(t->tuples.at);
	free(t->words.at);
	dp_frame_names_destroy(t->names);
	dp_arena_fini(&t->arena);
	free(t);
	return NULL;
}

static bool grow(struct table *of)
{
	if (of->n < of->capacity)
		return true;
	const size_t capacity = of->n ? 2 * of->n : 64;
	struct entry **at = reallocarray(of->at, capacity, sizeof(struct entry *));
	of->at = at ? at : of->at;
	of->capacity = at ? capacity : of->capacity;
	return at;
}

/* The entry of these bytes, added if it is new; NULL: no room. */
static struct entry *find(struct dp_tuples *t, struct table *of, const void *key, size_t size)
{
	struct entry *e;
	HASH_FIND(hh, of->all, key, size, e);
	if (e || of->n >= of->most || !grow(of))
		return e;
	e = dp_arena_alloc(&t->arena, sizeof(*e) + size);
	if (!e)
		return NULL;
	memcpy(e->part, key, size);
	HASH_ADD_KEYPTR(hh, of->all, e->part, size, e);
	if (HASH_COUNT(of->all) == of->n)
		return NULL;
	of->at[of->n++] = e;
	e->number = of->n;
	return e;
}

uint64_t dp_tuples_number(struct dp_tuples *t, const uint64_t *part)
{
	const struct entry *e = find(t, &t->tuples, part, t->n * sizeof(*part));
	return e ? e->number : 0;
}

static struct entry *get(const struct table *of, uint64_t number)
{
	return number && number <= of->n ? of->at[number - 1] : NULL;
}

const uint64_t *dp_tuples_get(const struct dp_tuples *t, uint64_t number)
{
	const struct entry *e = get(&t->tuples, number);
	return e ? e->part : NULL;
}

uint64_t dp_tuples_word(struct dp_tuples *t, const char *word)
{
	struct entry *e = find(t, &t->words, word, strlen(word) + 1);
	if (e)
		e->word = (const char *)e->part;
	return e ? e->number : 0;
}

uint64_t dp_tuples_null(struct dp_tuples *t)
{
	struct entry *e = find(t, &t->words, DP_NULL_TEXT, strlen(DP_NULL_TEXT)); /* every word's key has its NUL */
	if (e)
		e->word = null_word;
	return e ? e->number : 0;
}

const char *dp_tuples_word_get(const struct dp_tuples *t, uint64_t number)
{
	const struct entry *e = get(&t->words, number);
	return e ? e->word : NULL;
}

struct dp_frame_names *dp_tuples_names(struct dp_tuples *t)
{
	return t->names;
}

uint64_t dp_tuples_caller(struct dp_tuples *t, struct dp_image *image, const uint64_t frame[2])
{
	const struct dp_frames_seen seen = {frame, CALLER, CALLER};
	const uint64_t number = frame[1] ? dp_frame_names_number(t->names, image, &seen) : 0;
	if (!frame[1])
		return dp_tuples_word(t, "no caller");
	return number ? dp_tuples_word(t, dp_frame_names_get(t->names, number)->frame[1]->function) : 0;
}

/* ---- for display --------------------------------------------------------------------------------------------------------- */

static struct dp_key_shown show(const struct dp_tuples *t, const struct dp_key_asked *key, uint64_t part)
{
	switch (key->kind) {
	case DP_KEY_STACK:
		return (struct dp_key_shown){.stack = dp_frame_names_get(t->names, part)};
	case DP_KEY_CALLER:
	case DP_KEY_COMM:
	case DP_KEY_EXE:
	case DP_KEY_TEXT: {
		const char *word = dp_tuples_word_get(t, part);
		return (struct dp_key_shown){.word = word, .is_null = word == null_word};
	}
	case DP_KEY_PID:
		return (struct dp_key_shown){.number = (int32_t)part};
	default:
		return (struct dp_key_shown){.number = (int64_t)part};
	}
}

const struct dp_key_shown *dp_tuples_shown(struct dp_tuples *t, const struct dp_key_asked *key, uint64_t number)
{
	struct entry *e = get(&t->tuples, number);
	if (!e || e->shown)
		return e ? e->shown : NULL;
	e->shown = dp_arena_alloc(&t->arena, t->n * sizeof(*e->shown));
	for (size_t i = 0; e->shown && i < t->n; i++)
		e->shown[i] = show(t, &key[i], e->part[i]);
	return e->shown;
}
