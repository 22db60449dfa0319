/* SPDX-License-Identifier: MIT */
/*
 * The unwinder's own stack in a slot, and what the assembler needs to know to use it (agent/unwind/apart.S reads this file too;
 * unwind.c checks the numbers).
 */
#ifndef DP_AGENT_UNWIND_APART_H
#define DP_AGENT_UNWIND_APART_H

#define DP_APART_CACHE 10240 /* bytes of DP_UNWIND_CACHE */
#define DP_APART_STACK 2048  /* bytes; the unwinder uses some 700 */
#define DP_APART_TOP   (DP_APART_CACHE + DP_APART_STACK)

#define DP_CAPTURE_SLOT 16
#define DP_SLOT_CACHE   128
#define DP_SLOT_APART   160

#endif
