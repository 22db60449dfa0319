/* SPDX-License-Identifier: MIT */
/* Registers callbacks, and then fails to load. */
#include "pmodule.h"

static void frame(ptrace_frame_t *f)
{
	pmodule_frame_annotate(f, PAT_CRITICAL, "a module that was refused is called");
}

static bool load(pmodule_t *m)
{
	return pmodule_frame_event_add(m, NULL, frame) && false;
}

PMODULE_DEFINE("load_false", load, NULL, NULL);
