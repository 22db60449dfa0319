/* SPDX-License-Identifier: MIT */
/* An output stream that never blocks a run that must end: it buffers what its reader does not take. */
#ifndef DP_CLI_RUN_OUTLET_H
#define DP_CLI_RUN_OUTLET_H

#include "base/error.h"

#include <stdio.h>

struct dp_outlet;
/* Must the run end? Then the output no longer waits for its reader. */
typedef bool (*dp_outlet_leave_fn)(void *data);
/* Writes to the descriptor of `to`. *ret is NULL if that never blocks (a regular file): then use `to`. */
struct dp_error *dp_outlet_create(FILE *to, dp_outlet_leave_fn leave, void *data, struct dp_outlet **ret) DP_MUST_CHECK;
FILE *dp_outlet_file(struct dp_outlet *o);
/* Writes the buffered output until `leave` returns true (again). Returns the number of bytes that it drops. */
size_t dp_outlet_settle(struct dp_outlet *o);
/* Has its reader gone? Known at once, also where nothing is written. */
bool dp_outlet_is_unread(const struct dp_outlet *o);
/* Drops buffered output. Accepts NULL. */
struct dp_outlet *dp_outlet_destroy(struct dp_outlet *o);

#endif
