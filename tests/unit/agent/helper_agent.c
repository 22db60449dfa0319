/* SPDX-License-Identifier: MIT */
/* The agent's C, compiled like the tests, for sanitizers and debuggers. (memory.c and thunk.S exist only in the blob.) */
#include "agent/ring/acquire.c"
#include "agent/ring/finish.c"
#include "agent/ring/ring.c"
