/* SPDX-License-Identifier: MIT */
/* Offsets in a thread's block (also for the assembler), and the vector state that the processor can have. */
#ifndef DP_AGENT_LTTNG_LAYOUT_H
#define DP_AGENT_LTTNG_LAYOUT_H

/* struct dp_block; the tool reads BUSY and THREAD too */
#define DP_BLOCK_BUSY     0
#define DP_BLOCK_MOVE     8
#define DP_BLOCK_STACK_LO 16
#define DP_BLOCK_STACK_HI 24
#define DP_BLOCK_SIGMASK  32
#define DP_BLOCK_THREAD   80
#define DP_BLOCK_SLOT     128
#define DP_BLOCK_RECORD   320

/* Parts of the contracts with the tool, for the assembler. */
#define DP_LTTNG_LIVE          0x6576696c62707964 /* DP_LIVE */
#define DP_LTTNG_STACK         16384              /* DP_SINK_STACK */
#define DP_LTTNG_RECORD_HEADER 16                 /* struct dp_record before its payload */

/* dp_lttng_vector: the components of vector state enabled by the system, numbered as in XCR0, and two flags */
#define DP_VECTOR_AVX      0x4
#define DP_VECTOR_OPMASK   0x20
#define DP_VECTOR_ZMM_HIGH 0x40 /* upper halves of zmm0-15 */
#define DP_VECTOR_ZMM16    0x80 /* zmm16-31 */
#define DP_VECTOR_ALL      0xe4
#define DP_VECTOR_BW       0x40000000 /* mask registers have 64 bits */
#define DP_VECTOR_INUSE    0x80000000 /* XGETBV tells which components are in use */

#define DP_LTTNG_EVENTS 4096 /* limit of events registered in the life of a process */

#endif
