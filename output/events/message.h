/* SPDX-License-Identifier: MIT */
/* Formats an event with its probe's format string. */
#ifndef DP_OUTPUT_EVENTS_MESSAGE_H
#define DP_OUTPUT_EVENTS_MESSAGE_H

#include "base/buf.h"
#include "output/output.h"

/* Appends the message, with strings unescaped; missing values appear as NULL, <unreadable> or <optimized out>. */
void dp_put_message(struct dp_buf *b, const struct dp_event_class *class, const struct dp_decoder *d, const struct dp_event *e);
/* Is the field shown by the format? */
bool dp_message_has(const struct dp_event_class *class, const struct dp_field *field);

#endif
