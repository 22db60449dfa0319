/* SPDX-License-Identifier: MIT */
/* The library that `loads` opens and closes. Its constructor calls the probed function. */
#include "target.h"

unsigned plugin_work(unsigned a);
unsigned plugin_constructed;

TARGET_PROBED unsigned plugin_work(unsigned a)
{
	return target_expected(a, "plugin");
}

__attribute__((constructor)) static void construct(void)
{
	plugin_constructed = plugin_work(7);
}
