/* SPDX-License-Identifier: MIT */
#include "agent/loaded.c"
