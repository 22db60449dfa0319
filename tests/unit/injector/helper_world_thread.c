/* SPDX-License-Identifier: MIT */
#include "agent/thread.c"
