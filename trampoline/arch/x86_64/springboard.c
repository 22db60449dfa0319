/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/springboard.h"

#include "trampoline/arch/x86_64/encode.h"

/* Springboards are packed into pages that we have anyway: a page per springboard would cost 4 KiB and a mapping each. */
static bool find_used(const struct dp_pages *pages, const struct dp_jump *jump, uint64_t entry, struct dp_landing *ret)
{
	uint64_t at;
	if (dp_pages_find_used(pages, jump->lo, jump->hi, DP_JMP_NEAR, &at) && dp_jmp_size(at, entry) == DP_JMP_NEAR)
		*ret = (struct dp_landing){*jump, at, DP_JMP_NEAR};
	else if (dp_pages_find_used(pages, jump->lo, jump->hi, DP_JMP_FAR, &at))
		*ret = (struct dp_landing){*jump, at, dp_jmp_size(at, entry)};
	else
		return false;
	return true;
}

/* `at` itself, if a springboard fits there. */
static bool try_at(const struct dp_pages *pages, const struct dp_jump *jump, uint64_t at, uint64_t entry, struct dp_landing *ret)
{
	uint8_t size = dp_jmp_size(at, entry);
	if (!dp_pages_fits(pages, at, size))
		return false;
	*ret = (struct dp_landing){*jump, at, size};
	return true;
}

/* A fresh page: the nearest one to the stub that lies whole in the range, else the range's ends, which may share a page with it.
 */
static bool find_fresh(const struct dp_pages *pages, const struct dp_space *space, const struct dp_jump *jump, uint64_t entry,
                       struct dp_landing *ret)
{
	uint64_t at;
	if (dp_space_find(space, jump->lo, dp_saturating_add(jump->hi, 1), entry, DP_PAGE, &at))
		return try_at(pages, jump, at, entry, ret);
	if (try_at(pages, jump, jump->lo, entry, ret) || try_at(pages, jump, jump->hi, entry, ret))
		return true;
	at = dp_page_down(jump->hi);
	return at > jump->lo && try_at(pages, jump, at, entry, ret);
}

static struct dp_error *put(struct dp_pages *pages, uint64_t entry, const struct dp_landing *landing)
{
	struct dp_buf code;
	dp_buf_init(&code);
	dp_put_jmp(&code, landing->target, entry);
	struct dp_error *err = code.failed ? dp_error(DP_TAG_NOMEM, "out of memory for a springboard")
	                                   : dp_pages_put(pages, landing->target, code.data, code.len);
	dp_buf_fini(&code);
	return err;
}

struct dp_error *dp_springboard_place(struct dp_pages *pages, const struct dp_space *space, const struct dp_jump *jumps, size_t n,
                                      uint64_t entry, struct dp_landing *ret)
{
	for (size_t i = 0; i < n; i++)
		if (entry >= jumps[i].lo && entry <= jumps[i].hi) {
			*ret = (struct dp_landing){.jump = jumps[i], .target = entry};
			return NULL;
		}
	for (size_t i = 0; i < n; i++)
		if (find_used(pages, &jumps[i], entry, ret))
			return put(pages, entry, ret);
	for (size_t i = 0; i < n; i++)
		if (find_fresh(pages, space, &jumps[i], entry, ret))
			return put(pages, entry, ret);
	return dp_error(DP_TAG_NO_SPACE, "no free address where the jump could lead");
}
