/* SPDX-License-Identifier: MIT */
/* Durations for people: three digits and a unit (812ns, 12.3us, 4.56ms, 1.5s). */
#ifndef DP_BASE_DURATION_H
#define DP_BASE_DURATION_H

#include <stdint.h>

#define DP_DURATION_TEXT 32u
/* Returns `text`. */
const char *dp_duration(uint64_t ns, char text[DP_DURATION_TEXT]);

#endif
