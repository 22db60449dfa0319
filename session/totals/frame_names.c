/* SPDX-License-Identifier: MIT */
#include "session/totals/frame_names.h"

#include "agent/abi.h"
#include "base/arena.h"
#include "base/text_hash.h"
#include "output/events/frames.h"

#include <stdlib.h>
#include <string.h>

enum { FRAMES_MOST = 1 << 17, STACKS_MOST = 1 << 16, KEY_MAX = 4608, DEEPEST = 256 };

struct frame { /* by its name */
	struct dp_agg_frame shown;
	UT_hash_handle hh;
	char key[]; /* of shown.symbol and shown.by_pointer */
};

struct place { /* by file and address in it: its name is formed once */
	const struct frame *frame;
	UT_hash_handle hh;
	char key[];
};

struct stack {
	struct dp_agg_stack shown;
	uint64_t number;
	UT_hash_handle hh;
	const struct dp_agg_frame *frame[]; /* the key, with NULL at the end if callers are missing */
};

struct dp_frame_names {
	struct dp_arena arena; /* owns all of them */
	struct frame *frames;
	struct place *places;
	struct stack *stacks;
	const struct stack **stack; /* by number - 1 */
	size_t capacity;
};

struct dp_frame_names *dp_frame_names_create(void)
{
	return calloc(1, sizeof(struct dp_frame_names));
}

struct dp_frame_names *dp_frame_names_destroy(struct dp_frame_names *names)
{
	if (!names)
		return NULL;
	HASH_CLEAR(hh, names->frames);
	HASH_CLEAR(hh, names->places);
	HASH_CLEAR(hh, names->stacks);
	dp_arena_fini(&names->arena);
	free(names->stack);
	free(names);
	return NULL;
}

/* ---- frames ---------------------------------------------------------------------------------------------------------------- */

/* What is the same in every process that has mapped the file; 0: the code is in no file. */
static size_t place_key(struct dp_image *image, uint64_t frame, bool exact, char key[KEY_MAX])
{
	const uint64_t pc = dp_frame_pc(frame);
	struct dp_module *m = dp_image_module_at(image, dp_addr_of(pc - !exact));
	const int n = m ? snprintf(key, KEY_MAX, "%s %s %llx %d%d", dp_module_path(m), dp_module_build_id(m),
	                           (unsigned long long)(pc - (uint64_t)dp_module_bias(m)), exact, dp_frame_is_by_pointer(frame))
	                : 0;
	return n > 0 && n < KEY_MAX ? (size_t)n : 0;
}

static char *copy(struct dp_frame_names *names, const char *text)
{
	return dp_arena_copy(&names->arena, text, strlen(text));
}

static const struct frame *name_frame(struct dp_frame_names *names, struct dp_image *image, uint64_t frame, bool exact)
{
	char text[DP_FRAME_TEXT];
	const uint64_t pc = dp_frame_pc(frame);
	struct frame *f;
	dp_frame_describe(image, pc, exact, false, text);
	const size_t n = strlen(text);
	text[n] = (char)('0' + dp_frame_is_by_pointer(frame)); /* in the key, the NUL's place is taken */
	HASH_FIND(hh, names->frames, text, n + 1, f);
	if (f || HASH_COUNT(names->frames) >= FRAMES_MOST)
		return f;
	f = dp_arena_alloc(&names->arena, sizeof(*f) + n + 1);
	if (!f)
		return NULL;
	memcpy(f->key, text, n + 1);
	text[n] = '\0';
	f->shown.symbol = copy(names, text);
	dp_frame_describe(image, pc, exact, true, text);
	f->shown.readable = copy(names, text);
	dp_frame_function(image, pc, exact, text);
	f->shown.function = copy(names, text);
	f->shown.by_pointer = dp_frame_is_by_pointer(frame);
	if (dp_source_at(image, pc, exact, &f->shown.at)) {
		f->shown.at.path = copy(names, f->shown.at.path);
		f->shown.at.build_id = copy(names, f->shown.at.build_id);
		f->shown.at.root = ""; /* the process may be gone */
	}
	if (names->arena.failed)
		return NULL;
	HASH_ADD_KEYPTR(hh, names->frames, f->key, n + 1, f);
	return f;
}

static const struct frame *find_frame(struct dp_frame_names *names, struct dp_image *image, uint64_t frame, bool exact)
{
	char key[KEY_MAX];
	const size_t n = place_key(image, frame, exact, key);
	struct place *p = NULL;
	if (n)
		HASH_FIND(hh, names->places, key, n, p);
	if (p)
		return p->frame;
	const struct frame *f = name_frame(names, image, frame, exact);
	p = f && n && HASH_COUNT(names->places) < FRAMES_MOST ? dp_arena_alloc(&names->arena, sizeof(*p) + n) : NULL;
	if (p) {
		p->frame = f;
		memcpy(p->key, key, n);
		HASH_ADD_KEYPTR(hh, names->places, p->key, n, p);
	}
	return f;
}

/* ---- backtraces ------------------------------------------------------------------------------------------------------------ */

static uint64_t add_stack(struct dp_frame_names *names, const struct dp_agg_frame *const *frame, unsigned n, bool cut)
{
	const size_t count = HASH_COUNT(names->stacks), size = (n + cut) * sizeof(*frame);
	if (count >= STACKS_MOST)
		return 0;
	if (count == names->capacity) {
		const size_t capacity = count ? 2 * count : 64;
		const struct stack **grown = realloc(names->stack, capacity * sizeof(*grown));
		if (!grown)
			return 0;
		names->stack = grown;
		names->capacity = capacity;
	}
	struct stack *s = dp_arena_alloc(&names->arena, sizeof(*s) + size);
	if (!s)
		return 0;
	memcpy(s->frame, frame, size);
	s->shown = (struct dp_agg_stack){.frame = s->frame, .n = n, .cut = cut};
	s->number = count + 1;
	HASH_ADD_KEYPTR(hh, names->stacks, s->frame, size, s);
	if (HASH_COUNT(names->stacks) == count)
		return 0;
	names->stack[count] = s;
	return s->number;
}

uint64_t dp_frame_names_number(struct dp_frame_names *names, struct dp_image *image, const struct dp_frames_seen *seen)
{
	const struct dp_agg_frame *frame[DEEPEST + 1] = {NULL};
	struct stack *s;
	if (seen->n > DEEPEST)
		return 0;
	for (unsigned i = 0; i < seen->n; i++) {
		const struct frame *f = find_frame(names, image, seen->frame[i], !i);
		if (!f)
			return 0;
		frame[i] = &f->shown;
	}
	const bool cut = seen->n && dp_frames_cut(image, seen->frame[seen->n - 1], seen->n, seen->most);
	HASH_FIND(hh, names->stacks, frame, (seen->n + cut) * sizeof(*frame), s);
	return s ? s->number : add_stack(names, frame, seen->n, cut);
}

const struct dp_agg_stack *dp_frame_names_get(const struct dp_frame_names *names, uint64_t number)
{
	return &names->stack[number - 1]->shown;
}
