/* SPDX-License-Identifier: MIT */
/* Option arguments that are numbers, with units. */
#ifndef DP_CLI_OPTIONS_NUMBERS_H
#define DP_CLI_OPTIONS_NUMBERS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define DP_NUMBER_MOST UINT64_C(1000000000) /* of counts */

/* A whole positive number. */
struct dp_error *dp_number_parse(const char *option, const char *text, uint64_t *ret) DP_MUST_CHECK;
/* "5", "1.5", "250ms", "2m", "1h" to ns; without a unit: seconds. */
struct dp_error *dp_duration_parse(const char *option, const char *text, uint64_t *ret) DP_MUST_CHECK;
/* "65536", "64K", "1M", "1G" to bytes. */
struct dp_error *dp_size_parse(const char *option, const char *text, size_t *ret) DP_MUST_CHECK;

#endif
