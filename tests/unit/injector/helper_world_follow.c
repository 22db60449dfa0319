/* SPDX-License-Identifier: MIT */
#include "agent/ring/follow.c"
