/* SPDX-License-Identifier: MIT */
/* The agent's C and a world around it: something to drain. */
#include "tests/unit/agent/helper_world.c"

#include "agent/ring/acquire.c"
#include "agent/ring/finish.c"
#include "agent/ring/ring.c"
