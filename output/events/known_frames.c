/* SPDX-License-Identifier: MIT */
#include "output/events/known_frames.h"

#include "agent/abi.h"
#include "base/arena.h"
#include "base/path.h"
#include "base/text_hash.h"
#include "output/format/put.h"

#include <stdlib.h>
#include <string.h>

#define MANY (1u << 16)

void dp_put_source(struct dp_buf *b, const struct dp_source *source, size_t i)
{
	const struct dp_source_frame *f = &source->frame[i];
	const char *file = dp_path_last(f->file);
	if (f->function) {
		dp_put_visible(b, f->function, strlen(f->function), 0);
		dp_put_str(b, " (inlined)");
	}
	dp_put_str(b, " ");
	dp_put_visible(b, file, strlen(file), 0);
	dp_buf_printf(b, ":%d", f->line);
}

static void put_place(struct dp_buf *b, const struct dp_source_frame *f)
{
	dp_put_json_member(b, ",", "file", f->file);
	dp_buf_printf(b, ",\"line\":%d", f->line);
}

void dp_put_source_json(struct dp_buf *b, const struct dp_source *source)
{
	if (source->n)
		put_place(b, &source->frame[source->n - 1]);
	for (size_t i = 0; i + 1 < source->n; i++) {
		dp_put_str(b, i ? "," : ",\"inlined\":[");
		dp_put_json_member(b, "{", "function", source->frame[i].function);
		put_place(b, &source->frame[i]);
		dp_put_str(b, i + 2 < source->n ? "}" : "}]");
	}
}

struct known {
	struct {
		uint64_t image, pc, exact; /* no padding */
	} key;
	struct dp_known_frame frame;
	bool signal; /* it is a signal handler's return: the next frame's address is exact */
	UT_hash_handle hh;
};

struct dp_known_frames {
	struct dp_arena arena;
	struct known *known;
	size_t n;
	struct dp_source_lines *lines;
	bool readable;
};

struct dp_known_frames *dp_known_frames_create(bool readable)
{
	struct dp_known_frames *k = calloc(1, sizeof(*k));
	if (k)
		k->readable = readable;
	return k;
}

struct dp_known_frames *dp_known_frames_destroy(struct dp_known_frames *k)
{
	if (!k)
		return NULL;
	dp_known_frames_forget(k);
	free(k);
	return NULL;
}

void dp_known_frames_look_up(struct dp_known_frames *k, struct dp_source_lines *lines)
{
	k->lines = lines;
}

bool dp_known_frames_many(const struct dp_known_frames *k)
{
	return k->n >= MANY;
}

void dp_known_frames_forget(struct dp_known_frames *k)
{
	HASH_CLEAR(hh, k->known);
	dp_arena_fini(&k->arena);
	k->arena = (struct dp_arena){0};
	k->n = 0;
}

/* What is in no file may get another name: it is named each time. */
static void name(struct dp_known_frames *k, struct dp_image *image, uint64_t word, struct known *ret)
{
	char text[DP_FRAME_TEXT] = "";
	struct dp_source_at at;
	const uint64_t pc = ret->key.pc;
	bool exact = ret->key.exact & 1;
	ret->signal = image && ret->key.exact & 2 && dp_frame_is_signal_return(image, pc);
	exact |= ret->signal;
	if (image)
		dp_frame_describe(image, pc, exact, k->readable, text);
	const bool in_file = image && dp_source_at(image, pc, exact, &at);
	ret->frame = (struct dp_known_frame){.pc = pc,
	                                     .text = dp_arena_copy(&k->arena, text, strlen(text)),
	                                     .by_pointer = dp_frame_is_by_pointer(word),
	                                     .asked = in_file ? dp_source_lines_ask(k->lines, &at) : NULL};
	if (!ret->frame.text)
		ret->frame.text = "";
	k->n++;
	if (in_file && k->n < MANY)
		HASH_ADD(hh, k->known, key, sizeof(ret->key), ret);
}

/* NULL: out of memory. */
static const struct known *find(struct dp_known_frames *k, struct dp_image *image, uint64_t word, uint64_t exact)
{
	struct known like, *found;
	memset(&like, 0, sizeof(like));
	like.key.image = image ? dp_image_serial(image) : 0;
	like.key.pc = dp_frame_pc(word);
	like.key.exact = exact | (dp_frame_is_by_pointer(word) ? 4 : 0);
	HASH_FIND(hh, k->known, &like.key, sizeof(like.key), found);
	if (found)
		return found;
	found = dp_arena_alloc(&k->arena, sizeof(*found));
	if (!found)
		return NULL;
	found->key = like.key;
	name(k, image, word, found);
	return found;
}

void dp_known_frames_each(struct dp_known_frames *k, struct dp_image *image, const struct dp_field_value *backtrace,
                          void (*each)(size_t i, const struct dp_known_frame *frame, void *data), void *data)
{
	static const struct dp_known_frame cut = {.text = DP_FRAMES_CUT}, nothing = {.text = ""};
	bool exact = true; /* the site itself is not a return address */
	for (size_t i = 0; i < backtrace->n; i++) {
		uint64_t word;
		memcpy(&word, backtrace->bytes + i * sizeof(word), sizeof(word));
		if (!dp_frame_pc(word)) {
			each(i, &cut, data);
			continue;
		}
		const struct known *f = find(k, image, word, (exact ? 1 : 0) | (i ? 2 : 0));
		each(i, f ? &f->frame : &nothing, data);
		exact = f && f->signal;
	}
}
