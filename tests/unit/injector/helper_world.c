/* SPDX-License-Identifier: MIT */
/* The agent's C and an environment for it, to be drained. */
#include "tests/unit/agent/helper_world.c"

#include "agent/ring/acquire.c"
#include "agent/ring/finish.c"
#include "agent/ring/ring.c"
