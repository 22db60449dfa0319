/* SPDX-License-Identifier: MIT */
/* The same process once more: what its files say has been read. */
#include "pmodules/source/still_internal.h"

#include "injector/tracee/proc/look.h"

#include "base/cleanup.h"

#include <stdlib.h>

void dp_still_shed(struct dp_still *s)
{
	const uint64_t most = (uint64_t)s->pages.most * DP_PAGE_BYTES;
	dp_still_release(s);
	s->copy = dp_copy_destroy(s->copy);
	dp_pages_fini(&s->pages);
	dp_pages_init(&s->pages, most);
}

/* The image goes over to the new one, if it is an image of what is mapped now. */
static struct dp_error *take_over(struct dp_still *was, struct dp_still *is, bool *ret)
{
	char *maps = NULL;
	DP_TRY(dp_process_maps(&is->target.process, &maps));
	is->target.process.known_maps = is->target.maps = maps;
	*ret = was->target.process.start_time == is->target.process.start_time && dp_still_is_current(was);
	if (*ret)
		DP_TRY(dp_image_renew(was->target.image, maps, ret));
	if (*ret)
		is->target.image = dp_take(was->target.image, NULL);
	return NULL;
}

struct dp_error *dp_still_again(struct dp_still **s, const struct dp_still_options *options, bool *ret)
{
	struct dp_still *was = *s, *is = NULL;
	*ret = false;
	DP_TRY(dp_still_begin(dp_still_pid(was), options, &is));
	struct dp_error *err = take_over(was, is, ret);
	if (err || !*ret) {
		dp_still_close(is);
		return err;
	}
	dp_still_close(was);
	*s = is;
	return NULL;
}
