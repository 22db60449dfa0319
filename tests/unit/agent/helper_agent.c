/* SPDX-License-Identifier: MIT */
/* The agent's C, compiled like the tests: sanitizers and debuggers see it. (memory.c and thunk.S only exist in the blob.) */
#include "agent/ring/acquire.c"
#include "agent/ring/finish.c"
#include "agent/ring/ring.c"
