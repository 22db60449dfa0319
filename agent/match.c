/* SPDX-License-Identifier: MIT */
/*
 * Compares strings of the program with a text. Reads only the characters that decide the result: unmapped memory after a
 * difference is not a failure. Reads aligned pieces: a piece is in one page, so it is readable as a whole or not at all.
 */
#include "agent/ask.h"
#include "agent/syscall.h"

#define DP_SYS_PRCTL   157
#define DP_PR_GET_NAME 16
#define PIECE          64u

struct text {
	const struct dp_agent *agent;
	uint64_t addr;
	uint64_t limit; /* it ends there at the latest */
	uint64_t from;  /* address of the piece; not a multiple of PIECE: none read yet */
	uint8_t piece[PIECE];
};

static bool character(struct text *t, uint64_t i, uint8_t *ret)
{
	const uint64_t at = t->addr + i, from = at & ~(uint64_t)(PIECE - 1);

	if (from != t->from) {
		if (dp_self_read(t->agent, t->piece, from, PIECE))
			return false;
		t->from = from;
	}
	*ret = t->piece[at - from];
	return true;
}

static struct dp_ask_result unknown(void)
{
	return (struct dp_ask_result){0, 0};
}

static struct dp_ask_result is(bool so)
{
	return (struct dp_ask_result){so, 1};
}

/* Does the string begin with the text or, with `whole`, end there too? */
static struct dp_ask_result match_start(struct text *t, const char *wanted, bool whole)
{
	uint8_t ch;

	for (uint64_t i = 0; wanted[i] || whole; i++) {
		if (!character(t, i, &ch))
			return unknown();
		if (ch != (uint8_t)wanted[i])
			return is(false);
		if (!ch)
			break;
	}
	return is(true);
}

static bool only_stars(const char *pattern)
{
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/*
 * After a mismatch the last star takes one character more: at most DP_STRING_MAX times, each with at most as many steps. The
 * string is taken to end at its limit, DP_STRING_MAX at most: nothing after that is read.
 */
static struct dp_ask_result match_glob(struct text *t, const char *pattern)
{
	const char *star = NULL;
	uint64_t i = 0, from = 0;
	uint8_t ch;

	for (;;) {
		if (*pattern == '*') {
			star = pattern++;
			from = i;
			if (only_stars(pattern))
				return is(true);
			continue;
		}
		ch = 0;
		if (i < t->limit && !character(t, i, &ch))
			return unknown();
		if (!ch && !*pattern)
			return is(true);
		if (ch && (*pattern == '?' || ch == (uint8_t)*pattern)) {
			pattern++;
			i++;
		} else if (ch && star) {
			pattern = star + 1;
			i = ++from;
		} else {
			return is(false);
		}
	}
}

struct dp_ask_result dp_match(uint64_t addr, const struct dp_ask *ask)
{
	struct text t;

	t.agent = (const struct dp_agent *)(uintptr_t)ask->agent;
	t.addr = addr;
	t.limit = DP_STRING_MAX;
	t.from = 1;
	if (ask->count != DP_COUNT_NONE) {
		const struct dp_counted_text *counted = (const struct dp_counted_text *)(uintptr_t)addr;

		t.addr = counted->addr;
		t.limit = dp_counted((enum dp_count)ask->count, counted->n, DP_STRING_MAX);
	}
	if (ask->comm) { /* read into the piece here */
		t.addr = t.from = 0;
		t.piece[0] = 0;
		dp_syscall4(DP_SYS_PRCTL, DP_PR_GET_NAME, (uint64_t)(uintptr_t)t.piece, 0, 0);
	}
	if (ask->kind == DP_ASK_GLOB)
		return match_glob(&t, ask->text);
	return match_start(&t, ask->text, ask->kind == DP_ASK_EQUAL);
}
