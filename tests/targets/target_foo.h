/* SPDX-License-Identifier: MIT */
/* The function that most targets have to be probed; its results are target_expected()'s. */
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
