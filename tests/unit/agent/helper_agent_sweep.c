/* SPDX-License-Identifier: MIT */
#include "agent/sweep.c"
