/* SPDX-License-Identifier: MIT */
/* pmodule.h: the heap. */
#include "pmodules/heap/heap.h"
#include "pmodules/host/host_state.h"

/* The module needs some time for its words. */
static bool is_over(void *least)
{
	return pmodule_time_left() < *(const uint64_t *)least;
}

const struct pmodule_heap *pmodule_backtrace_heap(ptrace_backtrace_t *bt)
{
	struct dp_host *h = dp_api_backtrace(bt) ? dp_host_current() : NULL;
	struct pmodule_heap *ret = h ? dp_arena_alloc(&h->scratch, sizeof(*ret)) : NULL;
	uint64_t least = pmodule_time_left() / 8;
	if (ret)
		dp_heap_survey_stopped(h->stopped, is_over, &least, &h->scratch, ret);
	return ret;
}
