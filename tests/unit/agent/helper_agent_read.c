/* SPDX-License-Identifier: MIT */
#include "agent/read.c"
