/* SPDX-License-Identifier: MIT */
/* Uses a function that this dynprobe does not have. */
#include "pmodule.h"

extern bool pmodule_of_the_future(pmodule_t *m);

static bool load(pmodule_t *m)
{
	return pmodule_of_the_future(m);
}

PMODULE_DEFINE("undefined", load, NULL, NULL);
