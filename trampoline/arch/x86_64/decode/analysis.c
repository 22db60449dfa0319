/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/decode/analysis.h"

#include <stdlib.h>

struct module {
	const struct dp_segment *segment; /* one array for each module */
	struct dp_branch_targets *landings;
};

struct dp_analysis {
	struct dp_sweeps *sweeps;
	struct module *module;
	size_t n;
};

struct dp_error *dp_analysis_create(struct dp_analysis **ret)
{
	struct dp_analysis *known = calloc(1, sizeof(*known));
	if (!known)
		return dp_error_nomem();
	struct dp_error *err = dp_sweeps_create(&known->sweeps);
	if (err) {
		free(known);
		return err;
	}
	*ret = known;
	return NULL;
}

struct dp_analysis *dp_analysis_destroy(struct dp_analysis *known)
{
	if (!known)
		return NULL;
	for (size_t i = 0; i < known->n; i++)
		dp_branch_targets_destroy(known->module[i].landings);
	dp_sweeps_destroy(known->sweeps);
	free(known->module);
	free(known);
	return NULL;
}

const struct dp_sweep *dp_analysis_sweep(struct dp_analysis *known, const struct dp_text *text, const struct dp_range *function)
{
	return dp_sweeps_get(known->sweeps, text, function);
}

const struct dp_branch_targets *dp_analysis_branch_targets(struct dp_analysis *known, const struct dp_text *text)
{
	for (size_t i = 0; i < known->n; i++)
		if (known->module[i].segment == text->segment)
			return known->module[i].landings;
	struct module *grown = realloc(known->module, (known->n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	known->module = grown;
	struct dp_branch_targets *landings = dp_branch_targets_create(text);
	if (landings)
		known->module[known->n++] = (struct module){text->segment, landings};
	return landings;
}
