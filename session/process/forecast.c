/* SPDX-License-Identifier: MIT */
/*
 * The times per site and per page were measured with bench/run_wildcards.py. The result is an order of magnitude, for users who
 * probe a busy server. The pauses are upper bounds that the injector keeps on every machine (decision 0029).
 */
#include "session/process/forecast.h"

#include <stdlib.h>

#define PAGE          UINT64_C(4096)
#define PLACE_NS      UINT64_C(3000)
#define PAGE_NS       UINT64_C(100000)
#define GONE_PLACE_NS UINT64_C(1000)
#define GONE_PAGE_NS  UINT64_C(50000)
#define LEASE_NS      UINT64_C(2000000) /* one step: some pages, changed by a borrowed thread or with all threads held */

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* The first write to a page of a private file mapping copies the page. */
static size_t count_pages(const struct dp_plan *plan, size_t nplans)
{
	dp_auto_free uint64_t *page = calloc(2 * nplans + 1, sizeof(*page));
	size_t n = 0, different = 0;
	for (size_t k = 0; page && k < nplans; k++) {
		page[n++] = plan[k].site / PAGE;
		page[n++] = (plan[k].site + (plan[k].changed ? plan[k].changed - 1u : 0)) / PAGE;
	}
	if (page)
		qsort(page, n, sizeof(*page), compare);
	for (size_t i = 0; page && i < n; i++)
		different += !i || page[i] != page[i - 1];
	return different;
}

struct dp_forecast dp_forecast_of(const struct dp_session *s, const struct dp_plan *plan, size_t n)
{
	const uint64_t given = s->trace->snapshots.take.still.max_pause_ns;
	const size_t pages = count_pages(plan, n);
	return (struct dp_forecast){
	        .places = n,
	        .pages = pages,
	        .install_ns = n * PLACE_NS + pages * PAGE_NS,
	        .removal_ns = n * GONE_PLACE_NS + pages * GONE_PAGE_NS,
	        .pause_ns = LEASE_NS,
	        .together_ns = given ? given : DP_MAX_PAUSE_NS,
	};
}

void dp_forecast_log(const struct dp_session *s, const struct dp_plan *plan, size_t n)
{
	if (n <= DP_MANY_PLACES || !dp_trace_logs(s->trace, DP_LOG_INFO))
		return;
	const struct dp_forecast f = dp_forecast_of(s, plan, n);
	dp_trace_log(
	        s->trace, DP_LOG_INFO,
	        "%zu sites in %zu pages of text of %d (%s): about %.0f ms to install, %.0f ms to remove; threads are stopped "
	        "one at a time, for about %.0f ms at most, or together, for %.4g ms at most (--max-pause)",
	        f.places, f.pages, dp_target_pid(s->target), dp_target_comm(s->target), (double)f.install_ns / 1e6,
	        (double)f.removal_ns / 1e6, (double)f.pause_ns / 1e6, (double)f.together_ns / 1e6);
}
