/* SPDX-License-Identifier: MIT */
#include "trampoline/code/known.h"

#include <stdlib.h>

struct module {
	const struct dp_segment *segment; /* one array for each module */
	struct dp_landings *landings;
};

struct dp_known {
	struct dp_sweeps *sweeps;
	struct module *module;
	size_t n;
};

struct dp_error *dp_known_create(struct dp_known **ret)
{
	struct dp_known *known = calloc(1, sizeof(*known));
	if (!known)
		return dp_error(DP_TAG_NOMEM, "out of memory for what is known of the code");
	struct dp_error *err = dp_sweeps_create(&known->sweeps);
	if (err) {
		free(known);
		return err;
	}
	*ret = known;
	return NULL;
}

struct dp_known *dp_known_destroy(struct dp_known *known)
{
	if (!known)
		return NULL;
	for (size_t i = 0; i < known->n; i++)
		dp_landings_destroy(known->module[i].landings);
	dp_sweeps_destroy(known->sweeps);
	free(known->module);
	free(known);
	return NULL;
}

const struct dp_sweep *dp_known_sweep(struct dp_known *known, const struct dp_text *text, const struct dp_range *function)
{
	return dp_sweeps_get(known->sweeps, text, function);
}

const struct dp_landings *dp_known_landings(struct dp_known *known, const struct dp_text *text)
{
	for (size_t i = 0; i < known->n; i++)
		if (known->module[i].segment == text->segment)
			return known->module[i].landings;
	struct module *grown = realloc(known->module, (known->n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	known->module = grown;
	struct dp_landings *landings = dp_landings_create(text);
	if (landings)
		known->module[known->n++] = (struct module){text->segment, landings};
	return landings;
}
