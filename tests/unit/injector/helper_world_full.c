/* SPDX-License-Identifier: MIT */
#include "agent/ring/full.c"
