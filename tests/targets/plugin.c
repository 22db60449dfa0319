/* SPDX-License-Identifier: MIT */
/* The library that `unmapper` opens and closes. */
#include "target.h"

unsigned plugin_work(unsigned a);

TARGET_PROBED unsigned plugin_work(unsigned a)
{
	return target_expected(a, "plugin");
}
