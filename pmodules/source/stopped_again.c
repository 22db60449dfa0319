/* SPDX-License-Identifier: MIT */
/* Reopens the same process: keeps what was read from its files. */
#include "pmodules/source/stopped_internal.h"

#include "injector/tracee/proc/inspect.h"

#include "base/cleanup.h"

#include <stdlib.h>

void dp_stopped_shed(struct dp_stopped *s)
{
	const uint64_t most = (uint64_t)s->pages.most * DP_PAGE_BYTES;
	dp_stopped_release(s);
	s->copy = dp_copy_destroy(s->copy);
	dp_pages_fini(&s->pages);
	dp_pages_init(&s->pages, most);
}

/* Moves the image to the new object if it still matches what is mapped. */
static struct dp_error *take_over(struct dp_stopped *was, struct dp_stopped *is, bool *ret)
{
	char *maps = NULL;
	DP_TRY(dp_process_maps(&is->target.process, &maps));
	is->target.process.known_maps = is->target.maps = maps;
	*ret = was->target.process.start_time == is->target.process.start_time && dp_stopped_is_current(was);
	if (*ret)
		DP_TRY(dp_image_renew(was->target.image, maps, ret));
	if (*ret)
		is->target.image = dp_take(was->target.image, NULL);
	return NULL;
}

struct dp_error *dp_stopped_again(struct dp_stopped **s, const struct dp_stopped_options *options, bool *ret)
{
	struct dp_stopped *was = *s, *is = NULL;
	*ret = false;
	DP_TRY(dp_stopped_begin(dp_stopped_pid(was), options, &is));
	struct dp_error *err = take_over(was, is, ret);
	if (err || !*ret) {
		dp_stopped_close(is);
		return err;
	}
	dp_stopped_close(was);
	*s = is;
	return NULL;
}
