/* SPDX-License-Identifier: MIT */
/* A stream that does not block a run that has to end: what its reader does not take waits in memory. */
#ifndef DP_CLI_OUTLET_H
#define DP_CLI_OUTLET_H

#include "base/error.h"

#include <stdio.h>

struct dp_outlet;
/* Is the run to end? Then the output does not wait for its reader any more. */
typedef bool (*dp_outlet_leave_fn)(void *data);
/*
 * Writes to the descriptor of `to`. *ret is NULL where that never blocks (a regular file): `to` does then.
 */
struct dp_error *dp_outlet_create(FILE *to, dp_outlet_leave_fn leave, void *data, struct dp_outlet **ret) DP_MUST_CHECK;
FILE *dp_outlet_file(struct dp_outlet *o);
/* Writes what waits, for as long as `leave` does not say (again) that it is to end. How many bytes nobody took: those are dropped. */
size_t dp_outlet_settle(struct dp_outlet *o);
/* Drops what waits. Accepts NULL. */
struct dp_outlet *dp_outlet_destroy(struct dp_outlet *o);

#endif
