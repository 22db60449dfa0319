/* SPDX-License-Identifier: MIT */
#include "session/totals/frame_names.h"

#include "agent/abi.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHIFT UINT64_C(0x100000000)

__attribute__((noinline)) void frame_names_first(void)
{
	__asm__ volatile("nop; nop; nop; nop");
}

__attribute__((noinline)) void frame_names_second(void)
{
	__asm__ volatile("nop; nop; nop; nop");
}

/* This program's own image, as if it were mapped so much higher. */
static struct dp_image *image(uint64_t by)
{
	char exe[512], line[1024], text[1 << 16];
	size_t n = 0;
	const ssize_t got = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	FILE *maps = fopen("/proc/self/maps", "re");
	struct dp_image *ret = NULL;
	cr_assert(got > 0 && maps);
	exe[got] = '\0';
	while (fgets(line, sizeof(line), maps)) {
		uint64_t start, end;
		int at = 0;
		if (strstr(line, exe) && sscanf(line, "%" SCNx64 "-%" SCNx64 "%n", &start, &end, &at) == 2)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%" PRIx64 "-%" PRIx64 "%s", start + by, end + by,
			                      line + at);
	}
	fclose(maps);
	cr_assert(n && n < sizeof(text));
	cr_assert_null(dp_image_create(text, "", 0, &ret));
	return ret;
}

static uint64_t number(struct dp_frame_names *names, struct dp_image *in, const uint64_t *frame, unsigned n)
{
	const struct dp_frames_seen seen = {frame, n, 3};
	return dp_frame_names_number(names, in, &seen);
}

static uint64_t first_at(uint64_t by)
{
	return (uint64_t)(uintptr_t)frame_names_first + by;
}

static uint64_t second_at(uint64_t by)
{
	return (uint64_t)(uintptr_t)frame_names_second + 2 + by;
}

Test(frame_names, one_backtrace_wherever_the_program_is_mapped)
{
	struct dp_frame_names *names = dp_frame_names_create();
	uint64_t last = 0;
	for (uint64_t i = 0; i < 20; i++) {
		struct dp_image *in = image(i * SHIFT);
		const uint64_t frame[] = {first_at(i * SHIFT), second_at(i * SHIFT)};
		const uint64_t got = number(names, in, frame, 2);
		cr_assert(got && (!i || got == last));
		last = got;
		dp_image_destroy(in);
	}
	const struct dp_agg_stack *s = dp_frame_names_get(names, last);
	cr_assert(s->n == 2 && !s->cut, "names stay when the image has gone");
	cr_expect(!strncmp(s->frame[0]->symbol, "frame_names_first+0x0/", 22), "%s", s->frame[0]->symbol);
	cr_expect(!strncmp(s->frame[1]->readable, "frame_names_second+0x2/", 23), "%s", s->frame[1]->readable);
	cr_expect_str_eq(s->frame[1]->function, "frame_names_second");
	dp_frame_names_destroy(names);
}

Test(frame_names, other_frames_are_another_backtrace)
{
	struct dp_frame_names *names = dp_frame_names_create();
	struct dp_image *in = image(0);
	const uint64_t a = first_at(0), b = second_at(0), pointer = DP_FRAME_BY_POINTER;
	const uint64_t stack[][3] = {{a, b, b}, {a, b, b + 1}, {b, a, b}, {a, b | pointer, b}, {0x10, b, b}, {0x20, b, b}};
	uint64_t seen[16];
	size_t n = 0;
	for (size_t i = 0; i < sizeof(stack) / sizeof(*stack); i++) {
		seen[n++] = number(names, in, stack[i], 2);
		seen[n++] = number(names, in, stack[i], 3);
	}
	/* The second differs from the first in its third frame only. */
	cr_expect_eq(seen[0], seen[2]);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			cr_expect(seen[i] && (seen[i] != seen[k] || (i == 2 && k == 0)), "%zu %zu", i, k);
	cr_expect(dp_frame_names_get(names, seen[7])->frame[1]->by_pointer);
	cr_expect(dp_frame_names_get(names, seen[1])->cut, "as many frames as there may be: callers are missing");
	dp_image_destroy(in);
	dp_frame_names_destroy(names);
}

Test(frame_names, too_many_are_refused_and_the_others_are_still_found)
{
	struct dp_frame_names *names = dp_frame_names_create();
	struct dp_image *in = image(0);
	uint64_t found = 0, frame = 0x1000;
	const uint64_t first = number(names, in, &frame, 1);
	for (uint64_t i = 1; i < 70000; i++) {
		frame = 0x1000 + i;
		found += number(names, in, &frame, 1) != 0;
	}
	cr_expect(found > 10000 && found < 69000, "%" PRIu64, found);
	frame = 0x1000;
	cr_expect_eq(number(names, in, &frame, 1), first);
	dp_image_destroy(in);
	dp_frame_names_destroy(names);
}
