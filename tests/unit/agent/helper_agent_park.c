/* SPDX-License-Identifier: MIT */
#include "agent/ring/park.c"
