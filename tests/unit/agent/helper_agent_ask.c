/* SPDX-License-Identifier: MIT */
#include "agent/ask.c"
#include "agent/match.c"
