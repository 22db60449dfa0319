/* SPDX-License-Identifier: MIT */
/* The probed function of most targets; it returns the same as target_expected(). */
#ifndef DP_TESTS_TARGET_FOO_H
#define DP_TESTS_TARGET_FOO_H

#include "target.h"

TARGET_PROBED unsigned foo(unsigned a, const char *s)
{
	while (*s)
		a = a * 31 + (unsigned char)*s++;
	return a;
}

#endif
