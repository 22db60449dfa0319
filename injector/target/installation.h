/* SPDX-License-Identifier: MIT */
/* What a tool has mapped and written in a process: mappings, and patched sites. */
#ifndef DP_INJECTOR_TARGET_INSTALLATION_H
#define DP_INJECTOR_TARGET_INSTALLATION_H

#include "injector/injector.h"

/* One range that dynprobe maps in the target. */
struct dp_region {
	uint64_t addr, size; /* whole pages */
	uint64_t offset;     /* in the memfd */
	int prot;
	bool mapped;
	bool copied; /* mapped private: a fork child has its own copy */
	bool no_core; /* exclude from core files; the kernel has not been told yet */
};

/* One patched location, as the tool knows it. */
struct dp_placed {
	uint64_t addr;
	uint16_t probe; /* or DP_NO_PROBE */
	uint8_t len;
	uint8_t nchanged; /* leading bytes that change; the jump relies on the rest */
	enum dp_site_state state;
	bool written; /* the new bytes are in the target's text */
	/* Of probes that an earlier tool left: */
	bool announced; /* it may be superseded */
	bool covered;   /* bytes of another group are written over these */
	bool changed;   /* the text holds bytes that are not ours */
	bool guarded;   /* DP_SITE_GUARDED */
	bool calls_out; /* its stub calls, or may call, foreign code (see dp_installation) */
	bool by_write;  /* its bytes were restored by a write, so the page is a private copy */
	uint8_t old_bytes[16], new_bytes[16];
	uint64_t stub, stub_end;
	uint8_t npairs;
	struct dp_pc_pair pair[DP_PLAN_PAIRS];
	struct dp_site_entry *entry; /* in the shared site table, or NULL */
	uint64_t entry_at;           /* without a view of the table: its address in the target; 0: not ours to write */
};

/* What is installed in a target. Made by install.c or found by recover.c; removed by remove.c. */
struct dp_installation {
	struct dp_region private; /* anonymous */
	bool foreign;             /* left over in a fork child: its private region reads as zero */
	bool calls_out;           /* stubs call foreign code: LTTng, or code that new threads need (quiesce_frames.c) */
	uint64_t sink;            /* the struct dp_sink that the probes emit through, or 0 */
	struct dp_quiesce_frames *frames; /* exists during a removal, with calls_out or if it has to wait (quiesce_frames.h) */
	struct dp_code_index *index; /* or NULL (code_index.h) */
	struct dp_sights *sights; /* or NULL (sights.h) */
	uint64_t trap;            /* struct dp_trap, or 0 */
	bool live;                /* the private region is filled: while it is mapped, it belongs to this process */
	struct dp_region *region; /* memfd mappings: text, data, tables, extents */
	size_t nregions;
	struct dp_placed *placed;
	size_t nplaced;
};

enum { DP_REGION_TEXT, DP_REGION_DATA, DP_REGION_TABLES, DP_REGION_TRAP, DP_REGION_FIXED };

void dp_installation_fini(struct dp_installation *in);
/* Is `pc` inside one of our executable regions? */
bool dp_installation_holds(const struct dp_installation *in, uint64_t pc);
/* Address of the script for a borrowed thread (dp_remote_script()): after the agent's state in the private region; or 0. */
uint64_t dp_script_room(const struct dp_installation *in);

/* ---- sites ------------------------------------------------------------------------------------------------------------ */

/* Are its bytes in the text, and not others written over them? */
bool dp_placed_stands(const struct dp_placed *p);
/* Records a site's new state, here and in the table that later tools read. */
void dp_placed_mark(struct dp_target *t, struct dp_placed *p, enum dp_site_state state);
/* The file's bytes at site i. Its old_bytes can be bytes that an earlier site of the group wrote. */
void dp_placed_file_bytes(const struct dp_installation *in, size_t i, uint8_t bytes[16]);

#endif
