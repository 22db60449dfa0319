/* SPDX-License-Identifier: MIT */
/* String comparisons of expressions in the agent: the results of fnmatch and strcmp, without reading further than necessary. */
#include "agent/ask.h"

#include <criterion/criterion.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096u

static struct dp_agent *agent;
static char *end; /* the end of readable memory */
static struct dp_ask *ask;

static void setup(void)
{
	char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(pages + 2 * PAGE, PAGE, PROT_NONE);
	end = pages + 2 * PAGE;
	agent = calloc(1, sizeof(*agent));
	agent->pid = (uint32_t)getpid();
	ask = calloc(1, sizeof(*ask) + 256);
	ask->agent = (uintptr_t)agent;
}

TestSuite(ask, .init = setup);

static struct dp_ask_result about(enum dp_ask_kind kind, const char *string, const char *text)
{
	ask->kind = (uint8_t)kind;
	memcpy((char *)ask + offsetof(struct dp_ask, text), text, strlen(text) + 1);
	return dp_ask((uintptr_t)string, ask);
}

static uint64_t next(void)
{
	static uint64_t x = UINT64_C(0x9e3779b97f4a7c15);

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static void fill(char *s, size_t n, const char *alphabet)
{
	for (size_t i = 0; i < n; i++)
		s[i] = alphabet[next() % strlen(alphabet)];
	s[n] = 0;
}

Test(ask, matches_as_fnmatch_does)
{
	char pattern[16];
	unsigned yes = 0;

	for (unsigned i = 0; i < 100000; i++) {
		const size_t n = next() % 12;
		char *s = end - n - 1;

		fill(s, n, "ab");
		fill(pattern, next() % 9, "ab*?");
		const bool want = !fnmatch(pattern, s, FNM_NOESCAPE);
		const struct dp_ask_result a = about(DP_ASK_GLOB, s, pattern);
		cr_assert(a.known && a.value == want, "'%s' against '%s'", s, pattern);
		yes += want;
	}
	cr_expect(yes > 10000 && yes < 90000);
}

/* The string ends where unreadable memory begins. */
Test(ask, a_string_with_a_length_matches_as_fnmatch_does)
{
	char pattern[16], copy[16];

	for (unsigned i = 0; i < 20000; i++) {
		const size_t n = next() % 12;
		const struct dp_counted_text text = {(uintptr_t)(end - n), n};

		fill(copy, n, "ab");
		memcpy(end - n, copy, n);
		fill(pattern, next() % 9, "ab*?");
		ask->count = i & 1 ? DP_COUNT_SIGNED : DP_COUNT_UNSIGNED;
		const bool want = !fnmatch(pattern, copy, FNM_NOESCAPE);
		const struct dp_ask_result a = about(DP_ASK_GLOB, (const char *)&text, pattern);
		cr_assert(a.known && a.value == want, "'%s' against '%s'", copy, pattern);
	}
}

Test(ask, a_length_that_is_no_length)
{
	struct dp_counted_text text = {0, (uint64_t)-5};

	ask->count = DP_COUNT_SIGNED;
	cr_expect(about(DP_ASK_GLOB, (const char *)&text, "").value, "nothing");
	memcpy(end - 3, "abc", 3);
	text.addr = (uintptr_t)(end - 3);
	ask->count = DP_COUNT_UNSIGNED;
	cr_expect_not(about(DP_ASK_GLOB, (const char *)&text, "?b?").known);
	cr_expect(about(DP_ASK_GLOB, (const char *)&text, "?b*").value);
}

Test(ask, equal_and_prefix_are_those_of_strcmp)
{
	char text[8];

	for (unsigned i = 0; i < 20000; i++) {
		const size_t n = next() % 5;
		char *s = end - n - 1;

		fill(s, n, "ab");
		fill(text, next() % 5, "ab");
		struct dp_ask_result a = about(DP_ASK_EQUAL, s, text);
		cr_assert(a.known && a.value == !strcmp(s, text), "'%s' and '%s'", s, text);
		a = about(DP_ASK_PREFIX, s, text);
		cr_assert(a.known && a.value == !strncmp(s, text, strlen(text)), "'%s' and '%s'", s, text);
	}
}

Test(ask, what_decides_is_enough)
{
	memcpy(end - 3, "abc", 3); /* without a terminating NUL */
	cr_expect(about(DP_ASK_EQUAL, end - 3, "abd").known);
	cr_expect_not(about(DP_ASK_EQUAL, end - 3, "abd").value);
	cr_expect_not(about(DP_ASK_EQUAL, end - 3, "abc").known, "the NUL is not mapped");
	cr_expect(about(DP_ASK_PREFIX, end - 3, "abc").value);
	cr_expect(about(DP_ASK_GLOB, end - 3, "a?c*").value);
	cr_expect(about(DP_ASK_GLOB, end - 3, "x*c").known);
	cr_expect_not(about(DP_ASK_GLOB, end - 3, "a*d").known);
	cr_expect_not(about(DP_ASK_PREFIX, end, "a").known);
	cr_expect_not(about(DP_ASK_PREFIX, (const char *)(uintptr_t)(UINT64_C(1) << 63), "a").known);
}

Test(ask, patterns_look_at_so_many_characters_and_no_more)
{
	char *s = end - PAGE;

	memset(s, 'a', PAGE);
	cr_expect(about(DP_ASK_GLOB, s, "*a*a*a*a*").value);
	const struct dp_ask_result a = about(DP_ASK_GLOB, s, "*a*a*a*b");
	cr_expect(a.known && !a.value, "the string ends after the longest that is read");
}

Test(ask, loads_of_every_width)
{
	const uint64_t word = UINT64_C(0x8182838485868788);

	memcpy(end - 8, &word, 8);
	for (unsigned size = 1; size <= 8; size *= 2) {
		ask->size = (uint8_t)size;
		struct dp_ask_result a = about(DP_ASK_LOAD, end - size, "");
		cr_expect(a.known && a.value == word >> (64 - 8 * size));
		cr_expect_not(about(DP_ASK_LOAD, end - size + 1, "").known);
	}
}

Test(ask, the_thread)
{
	uint64_t self;

	__asm__("mov %%fs:0,%0" : "=r"(self));
	cr_expect_eq(about(DP_ASK_TID, NULL, "").value, (uint64_t)syscall(SYS_gettid));
	cr_expect_eq(about(DP_ASK_THREAD, NULL, "").value, self);
	cr_expect_lt(about(DP_ASK_CPU, NULL, "").value, 4096u);
	prctl(PR_SET_NAME, "somebody");
	ask->comm = 1;
	cr_expect(about(DP_ASK_EQUAL, NULL, "somebody").value);
	cr_expect(about(DP_ASK_GLOB, NULL, "some*y").value);
	cr_expect_not(about(DP_ASK_PREFIX, NULL, "nobody").value);
}
