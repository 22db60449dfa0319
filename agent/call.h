/* SPDX-License-Identifier: MIT */
/*
 * The frame of a C call on a borrowed thread: the tool writes it, dp_call_entry reads it (agent/call.S; the assembler reads this
 * file too). It is in the sink's data region at a fixed distance from dp_call_entry, so that restoring the state needs no
 * register to find it.
 */
#ifndef DP_AGENT_CALL_H
#define DP_AGENT_CALL_H

#define DP_SINK_DATA     0x100000                        /* data region - text region */
#define DP_CALL_FRAMES   0x10000                         /* frames are in the data region, from this offset on */
#define DP_CALL_DISTANCE (DP_SINK_DATA + DP_CALL_FRAMES) /* frame - dp_call_entry */

#define DP_CALL_HOME 16  /* dp_call_entry + this: self-restore from the frame, nothing else */
#define DP_CALL_CODE 640 /* a thread whose pc is within so many bytes from dp_call_entry is in a call */

/* Offsets in the frame. */
#define DP_CALL_STATE  0 /* 32 bits: DP_CALL_IDLE and so on */
#define DP_CALL_XSAVE  4 /* 32 bits: 2 xsavec, 1 xsave, 0 fxsave */
#define DP_CALL_TID    8
#define DP_CALL_FN     16
#define DP_CALL_ARG    24 /* four arguments */
#define DP_CALL_RESULT 56
#define DP_CALL_ERRNO  64 /* int *(void): __errno_location */
#define DP_CALL_STACK  72 /* start of the call's stack, a multiple of 64 */
#define DP_CALL_SAVED  80 /* the thread's errno */
#define DP_CALL_WAITS  84 /* 32 bits: how many times it waits 2 ms for the tool */
#define DP_CALL_WAIT   88 /* a struct timespec */
#define DP_CALL_MASK   104
#define DP_CALL_FLAGS  112
#define DP_CALL_RSP    120
#define DP_CALL_RIP    128
#define DP_CALL_RAX    136
#define DP_CALL_RDI    144
#define DP_CALL_RSI    152
#define DP_CALL_RDX    160
#define DP_CALL_R10    168
#define DP_CALL_R8     176
#define DP_CALL_R9     184
#define DP_CALL_RCX    192
#define DP_CALL_R11    200
#define DP_CALL_SIZE   208

/* Values of DP_CALL_STATE. */
#define DP_CALL_IDLE     0
#define DP_CALL_ASKED    1 /* a thread may be in the call */
#define DP_CALL_RETURNED 2 /* the function has returned; the thread waits for the tool, or restores its state */

#define DP_CALL_XAREA 32768 /* room for vector state on the call's stack */

#endif
