/* SPDX-License-Identifier: MIT */
/*
 * The code that was mapped at each time. The same address can belong to different code: a library is unloaded and another loaded
 * at its address, or the process calls exec. While code is only added, one image is enough; when code of a file is gone or
 * replaced, a new image begins.
 */
#include "session/profile/images.h"

#include "agent/abi.h"
#include "probes/image/function/generated.h"
#include "session/profile/stacks.h"

#include <stdlib.h>
#include <string.h>

static bool is_code(const struct dp_map *m)
{
	return m->exec && (m->path[0] == '/' || m->path[0] == '[');
}

static bool same(const struct dp_map *a, const struct dp_map *b)
{
	return a->start.v == b->start.v && a->end.v == b->end.v && a->offset == b->offset && a->inode == b->inode &&
	       a->dev_major == b->dev_major && a->dev_minor == b->dev_minor && !strcmp(a->path, b->path);
}

/* A binary search: /proc lists mappings by address. */
static const struct dp_map *code_at(const struct dp_image *image, uint64_t addr)
{
	size_t lo = 0, hi = dp_image_nmaps(image);
	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;
		const struct dp_map *m = dp_image_map(image, mid);
		if (addr >= m->start.v && addr < m->end.v)
			return is_code(m) ? m : NULL;
		if (addr < m->start.v)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

bool dp_images_agree(const struct dp_image *a, const struct dp_image *b, uint64_t addr)
{
	const struct dp_map *x = code_at(a, addr), *y = code_at(b, addr);
	return x && y ? same(x, y) : !x && !y;
}

/* Whether all code of `old` is still mapped. */
static bool adds_only(const struct dp_image *old, const struct dp_image *image)
{
	for (size_t i = 0; i < dp_image_nmaps(old); i++) {
		const struct dp_map *m = dp_image_map(old, i), *now = is_code(m) ? code_at(image, m->start.v) : NULL;
		if (is_code(m) && (!now || !same(m, now)))
			return false;
	}
	return true;
}

static void drop(struct dp_mapped *m)
{
	dp_image_destroy(m->image);
	free(m->unwind);
	*m = (struct dp_mapped){0};
}

struct dp_error *dp_images_init(struct dp_images *s)
{
	*s = (struct dp_images){0};
	return dp_image_create("", "", 0, &s->none.image);
}

void dp_images_fini(struct dp_images *s)
{
	for (size_t i = 0; i < DP_IMAGES_MAX; i++)
		drop(&s->of[i]);
	drop(&s->none);
}

void dp_images_add(struct dp_images *s, struct dp_mapped m, struct dp_stacks *stacks)
{
	struct dp_mapped *last = s->n ? &s->of[(s->n - 1) % DP_IMAGES_MAX] : NULL;
	if (last && adds_only(last->image, m.image)) {
		m.since_ns = last->since_ns;
		dp_image_perf_inherit(m.image, last->image);
		drop(last);
		*last = m;
		return;
	}
	struct dp_mapped *to = &s->of[s->n % DP_IMAGES_MAX];
	if (to->image && stacks)
		dp_stacks_retire(stacks, s->n - DP_IMAGES_MAX, to->image, s->n, m.image);
	drop(to);
	*to = m;
	s->n++;
	if (s->n > 2) { /* no more samples are that old; but their names may still be needed */
		struct dp_mapped *old = &s->of[(s->n - 3) % DP_IMAGES_MAX];
		free(old->unwind);
		old->unwind = NULL;
	}
}

const struct dp_mapped *dp_images_at(const struct dp_images *s, uint64_t ns, uint32_t *number)
{
	const uint32_t first = s->n > DP_IMAGES_MAX ? s->n - DP_IMAGES_MAX : 0;
	for (uint32_t i = s->n; i-- > first;)
		if (s->of[i % DP_IMAGES_MAX].since_ns <= ns || i == first) {
			*number = i;
			return &s->of[i % DP_IMAGES_MAX];
		}
	*number = DP_IMAGES_NONE;
	return &s->none;
}

struct dp_image *dp_images_get(const struct dp_images *s, uint32_t number)
{
	return number == DP_IMAGES_NONE ? s->none.image : s->of[number % DP_IMAGES_MAX].image;
}

/* ---- the same function in several images ---------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static uint64_t start_of(struct dp_image *image, dp_addr pc)
{
	struct dp_function f;
	struct dp_perf_name n;
	const char *file;
	if (dp_image_function_at(image, pc, &f))
		return f.start.v;
	return dp_image_generated_at(image, pc, &n, &file) ? n.start : 0;
}

uint64_t dp_images_function(const struct dp_images *s, uint32_t number, uint64_t frame, bool exact, bool several)
{
	struct dp_image *image = dp_images_get(s, number);
	const uint64_t pc = dp_frame_pc(frame), found = start_of(image, dp_addr_of(pc - !exact)), start = found ? found : pc;
	const struct dp_map *m =
	        s->n > 1 || several ? code_at(image, start) : NULL; /* with several images, the file's offset identifies it */
	if (!m || m->path[0] != '/')
		return several ? mix(start, (uintptr_t)s) : start;
	uint64_t h = mix(m->inode, start - m->start.v + m->offset);
	for (const char *c = m->path; *c; c++)
		h = mix(h, (uint8_t)*c);
	return h;
}
