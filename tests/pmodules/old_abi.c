/* SPDX-License-Identifier: MIT */
/* Built for another version of pmodule.h. */
#include "pmodule.h"

static bool load(pmodule_t *m)
{
	(void)m;
	return true;
}

extern const struct pmodule_desc pmodule_export_v1;
const struct pmodule_desc pmodule_export_v1 = {PMODULE_ABI + 1, sizeof(struct pmodule_desc), "old", load, NULL, NULL};
