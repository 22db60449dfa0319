/* SPDX-License-Identifier: MIT */
#include "agent/ring/thread.c"
