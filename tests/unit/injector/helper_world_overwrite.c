/* SPDX-License-Identifier: MIT */
#include "agent/ring/overwrite.c"
