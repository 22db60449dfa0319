/* SPDX-License-Identifier: MIT */
#include "agent/ring/sweep.c"
