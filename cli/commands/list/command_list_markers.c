/* SPDX-License-Identifier: MIT */
/* list: the USDT markers of a module. */
#include "base/cleanup.h"
#include "cli/commands/list/command_list.h"
#include "probes/point/usdt/usdt.h"

#include <fnmatch.h>
#include <string.h>

static const char *without_module(const char *glob)
{
	const char *bang = glob ? strrchr(glob, '!') : NULL;
	return bang ? bang + 1 : glob;
}

bool dp_list_is_marker_glob(const char *glob)
{
	const char *word = without_module(glob);
	return word && !strncmp(word, "usdt:", 5);
}

static bool meant(const char *glob, const struct dp_usdt *u)
{
	dp_auto_free char *name = NULL;
	if (!glob || !glob[5])
		return true;
	if (asprintf(&name, "usdt:%s:%s", u->provider, u->name) < 0) {
		name = NULL;
		return false;
	}
	return !fnmatch(glob, name, 0);
}

struct dp_error *dp_list_markers(struct dp_module *m, const char *glob, uint64_t shown_bias, bool json, size_t *n)
{
	const struct dp_usdt *marker;
	size_t all;
	DP_TRY(dp_module_markers(m, &marker, &all));
	for (size_t i = 0; i < all; i++) {
		const struct dp_listed_marker shown = {
		        .path = dp_module_path(m),
		        .module = dp_module_name(m),
		        .provider = marker[i].provider,
		        .name = marker[i].name,
		        .args = marker[i].args,
		        .addr = marker[i].pc + (uint64_t)dp_module_bias(m) - shown_bias,
		        .vaddr = marker[i].pc,
		        .semaphore = marker[i].semaphore,
		};
		if (!meant(without_module(glob), &marker[i]))
			continue;
		++*n;
		if (json)
			dp_marker_json(&shown, stdout);
		else
			dp_marker_text(&shown, stdout);
	}
	return NULL;
}
