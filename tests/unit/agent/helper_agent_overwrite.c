/* SPDX-License-Identifier: MIT */
#include "agent/overwrite.c"
