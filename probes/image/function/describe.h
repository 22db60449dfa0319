/* SPDX-License-Identifier: MIT */
/* The function around an address, and addresses as text. */
#ifndef DP_PROBES_IMAGE_FUNCTION_DESCRIBE_H
#define DP_PROBES_IMAGE_FUNCTION_DESCRIBE_H

#include "probes/image/image.h"

/* The function around `addr`: from symbols (a global before a local alias), else from FDE bounds. */
bool dp_image_function_at(struct dp_image *image, dp_addr addr, struct dp_function *ret);
/*
 * Writes "symbol+0x15/0x90 [module]"; "func@0x77a0+0x15/0x90 [module]" if only .eh_frame knows the function (address in the
 * file); "[module]+0x1234" (address in the file); or "0x1234". `size` and the result are as for snprintf.
 */
int dp_image_describe(struct dp_image *image, dp_addr addr, char *buf, size_t size);
/* Writes "func@0x77a0", the name of a function without a symbol. Returns buf. */
#define DP_UNNAMED_MAX 32
const char *dp_function_unnamed(const struct dp_function *f, char buf[static DP_UNNAMED_MAX]);
/* dp_image_describe() with the readable name. */
int dp_image_describe_readable(struct dp_image *image, dp_addr addr, char *buf, size_t size);

#endif
