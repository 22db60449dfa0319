/* SPDX-License-Identifier: MIT */
/* The address of a socket, and bytes between quotes. */
#ifndef DP_OUTPUT_CALLS_SOCKETS_H
#define DP_OUTPUT_CALLS_SOCKETS_H

#include "base/buf.h"

/* False, and appends nothing, if there is not even a family. */
bool dp_put_sockaddr(struct dp_buf *b, const uint8_t *bytes, size_t n);

#endif
