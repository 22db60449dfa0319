/* SPDX-License-Identifier: MIT */
/*
 * A report that is drawn again in place of the last one. Lines are cut to the terminal's size, so that their number is known; the
 * terminal has no state that would have to be restored.
 */
#ifndef DP_OUTPUT_AGGREGATIONS_REDRAW_H
#define DP_OUTPUT_AGGREGATIONS_REDRAW_H

#include <stddef.h>
#include <stdio.h>

struct dp_drawn {
	unsigned columns, rows; /* of the terminal, when it was drawn */
	unsigned lines;         /* that are to be replaced; 0: none */
};
/* Draws `text`, on a terminal of that size now. */
void dp_redraw(struct dp_drawn *d, unsigned columns, unsigned rows, const char *text, FILE *to);
/* Removes what is drawn: something else comes in its place. */
void dp_redraw_clear(struct dp_drawn *d, FILE *to);

#endif
