/* SPDX-License-Identifier: MIT */
/* An event as the format of its probe says it. */
#ifndef DP_OUTPUT_MESSAGE_H
#define DP_OUTPUT_MESSAGE_H

#include "base/buf.h"
#include "output/output.h"

/* Appends the message, strings as they are; values that are not there are <unreadable>, <optimized out>. */
void dp_put_message(struct dp_buf *b, const struct dp_event_class *class, const struct dp_event *e);
/* Is the field shown by the format? */
bool dp_message_has(const struct dp_event_class *class, const struct dp_field *field);

#endif
