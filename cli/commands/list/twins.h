/* SPDX-License-Identifier: MIT */
/* Functions of one module that share a name: their source files tell them apart. */
#ifndef DP_CLI_COMMANDS_LIST_TWINS_H
#define DP_CLI_COMMANDS_LIST_TWINS_H

#include "probes/image/function/functions.h"

struct dp_twins { /* all functions, by name */
	const struct dp_named **item;
	size_t n;
};

/* False if out of memory. The array must stay as long as the twins. */
bool dp_twins_open(const struct dp_named *item, size_t n, struct dp_twins *ret);
void dp_twins_close(struct dp_twins *t);
/* FILE of FUNCTION@FILE, which names this function alone; or NULL. `line`: of its code, 0 if unknown. */
const char *dp_twins_file(const struct dp_twins *t, const struct dp_named *item, const char *name, int *line);

#endif
