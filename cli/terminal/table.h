/* SPDX-License-Identifier: MIT */
/* Tables on a terminal: drawn again in their place while a run goes on. */
#ifndef DP_CLI_TERMINAL_TABLE_H
#define DP_CLI_TERMINAL_TABLE_H

#include "cli/options/options.h"
#include "output/aggregations/redraw.h"

/* Is a table drawn again in its place? Not beside a command, which writes to the same terminal. */
bool dp_table_is_redrawn(const struct dp_options *o);
/* Columns of the terminal that results go to; 0: it is none. */
unsigned dp_table_width(const struct dp_options *o);
void dp_table_draw(struct dp_drawn *drawn, const char *text, FILE *to);

#endif
