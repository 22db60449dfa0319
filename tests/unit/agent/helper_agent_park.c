/* SPDX-License-Identifier: MIT */
#include "agent/park.c"
