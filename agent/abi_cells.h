/* SPDX-License-Identifier: MIT */
/* The part of the contract (abi.h) about hits that are counted: where their cells are. */
#ifndef DP_AGENT_ABI_CELLS_H
#define DP_AGENT_ABI_CELLS_H

#include <stdint.h>

/*
 * Aggregations (decision 0020): hits that are counted and leave no record. A block of cells belongs to one value of %fs:0 (or
 * base of fs), whichever thread has it: a thread that reuses the control block of an ended one continues in its block. The result
 * is the sum over all blocks. The last block is shared by all threads that have none, and is only changed by locked instructions.
 *
 *   header  struct dp_aggs_head
 *   block   nblocks + 1 of them: cells of each probe, a histogram's with its last hit | keys (--by) | struct dp_agg_loss of each
 *           probe
 *
 * The calls in progress of a block (pairs) are not in it, but in the private region behind struct dp_agent, as far from each
 * other as blocks are. So a fork child, even one that a signal handler made in the middle of a hit, neither reads nor changes its
 * parent's.
 *
 * A cell is changed by one instruction, or by cmpxchg, so hits of a signal handler in between are not lost.
 */
struct dp_aggs {
	uint64_t by_base; /* not 0, with DP_ID_TID: the key is the fs base, which no two threads shared; 0: not this one's */
	uint64_t head;    /* address in the target of struct dp_aggs_head; 0: no aggregations */
	uint64_t size;    /* of a block, in bytes; the first is at head + DP_AGGS_HEAD */
	uint32_t nblocks; /* without the shared one */
	uint32_t loss;    /* offset in a block: struct dp_agg_loss[nprobes] */
	uint32_t keys;    /* offset in a block: nkeys entries of key_size bytes */
	uint32_t key_size;
	uint32_t nkeys;   /* a power of two, or 0 */
	uint32_t pairs;   /* distance from a block to its struct dp_agg_pair[DP_AGG_PAIRS], or 0; the shared block has none */
	uint64_t unused;
};
#define DP_AGG_BLOCKS_MOST 1024u /* without the shared one */
#define DP_AGG_FIRST       4u    /* blocks that stubs know by address: what they store then does not wait for the key */
struct dp_aggs_head {
	uint64_t used; /* blocks handed out, the first one included */
	uint64_t reserved[15];
	/*
	 * Blocks of fork children that have ended go to others, with their sums (decision 0037). The tool sets the owner to 0, then the
	 * bit in `free`; who clears the bit has the block, and then says so.
	 */
	uint64_t free[DP_AGG_BLOCKS_MOST / 64];
	uint64_t owner[DP_AGG_BLOCKS_MOST]; /* pid << 32 | process number; 0: the target, or not known yet */
};
#define DP_AGGS_HEAD sizeof(struct dp_aggs_head)
/* With DP_ID_TID and without by_base the first blocks, 1 << this many, are shared too; the hit's stack address selects one. */
#define DP_AGG_SPREAD_BITS 4u
struct dp_agg_loss { /* hits of one probe that were not aggregated */
	uint64_t unpaired; /* returns without a known entry */
	uint64_t crowded;  /* no room for another key */
};
struct dp_agg_key {  /* followed by the stack of --by backtrace (number of frames, then the maximum of words), and the cells */
	uint64_t mark;  /* 0: free; DP_AGG_BUSY; else probe index + 1, written last */
	uint64_t key;
};
#define DP_AGG_BUSY UINT64_MAX
/*
 * A string in a key. Its value is its number of bytes, or that there is no string to read. The bytes follow the values, padded with
 * zeros to whole words; a cut one ends in "...", as in records.
 */
#define DP_AGG_TEXT_UNREADABLE (UINT64_C(1) << 32)
#define DP_AGG_TEXT_NULL       (UINT64_C(1) << 33) /* the pointer is NULL */
#define DP_AGG_TEXT_CHARS      128u                 /* most of one string, without the dots */
#define DP_AGG_TEXT_ALL        256u                 /* of all strings of a key together */
#define DP_AGG_TEXT_WORDS      37u                  /* for them, if they are four */
static inline uint32_t dp_agg_text_words(uint32_t bytes)
{
	return (bytes + 7) / 8;
}
#define DP_AGG_REACH 64u /* entries tried, from the key's own place on */
/*
 * For histograms of times, whose steps are 1, 2, 5, 10, 20, 50 ... ns (decision 0081). From one power of two to the next there is at
 * most one such bound, so a value's bucket follows from its highest bit and one comparison: for i = highest bit of (value | 1) it is
 * below[i], plus 1 if value >= bound[i], unsigned. Values below 0 are above all others.
 */
struct dp_decimal {
	uint64_t bound[64];
	uint8_t below[64];
};
/* A call that was entered and has not returned. Index: stack address (of the return address) >> 4 modulo DP_AGG_PAIRS. */
struct dp_agg_pair {
	uint64_t call; /* stack address << 16 | pair number; 0: free */
	uint64_t tsc;
};
#define DP_AGG_PAIRS 16384u

#endif
