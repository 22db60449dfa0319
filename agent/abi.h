/* SPDX-License-Identifier: MIT */
/*
 * The one contract between the tool and what it puts into the target.
 *
 * What is mapped in the target while probes exist:
 *
 *   text      agent code, position-independent, without writable data            memfd, r-x, shared
 *   stubs     generated code, probe descriptors, operation tables, springboards   memfd, r-x, shared (the tool writes
 *             through its own rw view; never both in the target)
 *   data      struct dp_control, site table, slots, rings                        memfd, rw-, shared with the tool
 *   tables    compiled unwind tables (optional)                                  memfd, r--, shared
 *   private   struct dp_agent with the thread table                              anonymous, rw-, MADV_WIPEONFORK
 *
 * A fork child shares text, stubs and data with its parent, but finds `private` zeroed: every look-up misses, the agent
 * sees live == 0 and the child records nothing (it adds to `forked` in struct dp_lost).
 *
 * How a hit finds its ring: key = the word at %fs:0 (the ABI's self pointer), hashed into the thread table, which leads to
 * a slot; the slot is right when its tid equals the word at %fs:tid_offset. Where the tool could not verify this for every
 * thread it chooses DP_ID_TID: key = gettid(), and every hit takes the slow path.
 *
 * How a record is written, re-entrantly (a signal handler may hit a probe in the middle):
 *   1. reserve: non-locked cmpxchg of slot.head from pos to pos+size, allowed while pos+size <= slot.limit; else the agent's
 *      slow path (wrap, refresh limit from slot.tail, or lose the hit and count it)
 *   2. write timestamp and payload
 *   3. commit: one 8-byte store of {size, probe, flags} over the record's first word, which was 0 until then
 * The consumer reads from tail up to the first record whose first word is 0, zeroes what it consumed (all of it, so that no
 * stale word is ever taken for a commit), then advances slot.tail. Positions are 64-bit byte counts that never wrap; the
 * offset is pos & mask; a record never crosses the end of the ring (the slow path fills the rest with a DP_RECORD_PAD).
 *
 * A thread that leaves a hit for good (a signal handler that longjmps out of it) leaves a reservation that is never committed: its
 * ring fills, and its hits are lost as `full` until it ends (for DP_STUCK_TICKS at most while the ring overwrites). A hit of a vfork child, or of a raw clone that shares its parent's
 * thread pointer, counts as its parent's; a clone that does so and runs at the same time needs DP_ID_TID.
 *
 * Memory (decision 0030). A ring has addresses for ring_size bytes, of which its slot's first `room` bytes may be used; the page behind them
 * need not exist. A thread that comes to the end of the room takes more from control->pool, or leaves the rest of the lap to a filler, as at
 * the ring's end: so positions and offsets stay what they are, however large the room. The tool gives back what nobody needs (drain_room.c):
 *   the tool     room = less, and DP_ROOM_HELD with it: the thread takes no more until the pages are gone. Then limit = a value that it never had, then, with a full barrier in between, reads head. If the ring is
 *                empty, nothing is written behind the room from now on but one record at head, by a hit that had read the old limit (to
 *                reserve it needs that very head, and moves it), and the filler behind that. All other pages there are given back.
 *   the thread   reads limit, then room, and replaces that very limit by the new one (locked): none that was computed from an older room
 *                is ever stored behind the tool's.
 *
 * Flight recorder. While control->overwrite is 1 no tool drains; a producer whose ring is full takes the consumer's part itself: it
 * gives up its oldest records, an eighth of the ring at a time, counts them as `overwritten`, zeroes them and moves its own slot's
 * tail. It does so with all signals blocked (rt_sigprocmask), so nothing of the thread's own ever sees the middle of it, and with
 * slot.reclaiming set. It stops at a record that is not committed: a hit further out on the same stack may still write it. After
 * DP_STUCK_TICKS in front of the same one it is taken for abandoned, and skipped. (Should such a hit go on after all, in a signal
 * handler's caller that was away for seconds while its handler filled the ring, it writes over records of the ring, never
 * elsewhere.) Threads that find no free slot look for slots whose owners are gone (tgkill with signal 0); those keep their
 * records, behind which the new owner announces itself. Both are system calls: a process under a seccomp filter is not to be told to
 * overwrite.
 *
 * Who may move a slot's tail:
 *   a tool takes over   writes overwrite = 0, then, with a full barrier in between (a system call is one), waits for each slot's
 *                       `reclaiming` to be read as 0 and from then on owns its tail. The wait is short: the thread has nothing
 *                       else to do, but may be off its processor, or stopped. It reads `tail` and `tail_tid` only now.
 *   a tool gives back   moves no tail any more (all of its writes to rings, tails and tail_tids are done), then writes overwrite = 1
 *   a tool died         overwrite is 0, rings fill and lose as `full`; the next tool does either of the above. Bytes that the dead
 *                       tool had zeroed without having moved the tail look like an abandoned reservation.
 *   the agent           writes reclaiming = 1, then, with a full barrier in between, reads overwrite; if that is not 1, it keeps
 *                       its hands off. reclaiming = 0 is its last store.
 *
 * All integers are little-endian, all records start 8-byte aligned. Source of the layout rules: System V AMD64 ABI 3.4.6
 * (thread pointer), CTF 1.8 (payload alignment 1).
 */
#ifndef DP_AGENT_ABI_H
#define DP_AGENT_ABI_H

#include <stddef.h>
#include <stdint.h>

#define DP_ABI_VERSION 5u
#define DP_MAGIC UINT64_C(0x65626f7270796e64)    /* "dynprobe", first word of struct dp_control */
#define DP_LIVE UINT64_C(0x6576696c62707964)     /* first word of struct dp_agent; 0 in a fork child */
#define DP_MEMFD_NAME "dynprobe"                 /* all our mappings show as /memfd:dynprobe in /proc/PID/maps */

/* ---- records ------------------------------------------------------------------------------------------------- */

struct dp_record {
	uint32_t size;  /* of the whole record, a multiple of 8; 0 until committed */
	uint16_t probe; /* index of the probe, or one of the DP_RECORD_ values */
	uint16_t flags; /* 0 */
	uint64_t tsc;   /* rdtsc at the hit */
	uint8_t payload[];
};

#define DP_RECORD_PAD 0xffffu    /* filler up to the end of the ring, of any length; only its first 8 bytes are there */
#define DP_RECORD_THREAD 0xfffeu /* payload: uint64_t tid: records after this one are of that thread */
#define DP_RECORD_MAX 4096u      /* bytes, upper bound of one record */

/* ---- slots: one per thread that has hit a probe ---------------------------------------------------------------- */

enum dp_slot_state {
	DP_SLOT_FREE = 0, /* never used, or given back */
	DP_SLOT_USED = 1, /* owned by a thread */
	DP_SLOT_DEAD = 2, /* the tool saw that its thread is gone and drained it: an agent may take it over */
	DP_SLOT_CLAIM = 3, /* a thread is taking it over and has not yet written its key */
};
/*
 * tid and state change together, as one 8-byte word, by locked cmpxchg: producers and the tool both own transitions. Slots
 * are claimed in ascending order and never become FREE again, so behind a FREE slot all are FREE.
 * Bits in tid that make the fast path's compare fail:
 */
#define DP_TID_PENDING UINT32_C(0x80000000) /* the owner has to announce itself first, with a DP_RECORD_THREAD */
#define DP_TID_SUSPECT UINT32_C(0x40000000) /* the tool thinks that the owner is gone */
#define DP_TID_MASK UINT32_C(0x3fffffff)

struct dp_slot {
	/* line 0: the producer's */
	uint64_t head;      /* next position to reserve */
	uint64_t limit;     /* positions below are free, in this lap and in the room; only ever too low, never too high */
	uint64_t base;      /* address in the target of the ring's bytes */
	uint64_t mask;      /* ring size - 1 */
	uint32_t tid;       /* in the target's pid namespace */
	uint32_t state;     /* enum dp_slot_state */
	uint64_t key;       /* thread key that owns it */
	uint64_t stack_lo;  /* stack pages that the unwinder has seen readable, packed (agent/unwind/unwind.h); 0: none */
	uint64_t stack_hi;  /* unused */
	/* line 1: the consumer's */
	uint64_t tail;       /* everything below is consumed and zeroed */
	uint64_t reclaiming; /* 1: the thread itself is moving tail (flight recorder, above) */
	uint64_t tail_tid;   /* whose the records from tail on are, until a DP_RECORD_THREAD says otherwise; 0: one comes first.
	                        Written, before tail, by whoever moves tail past a DP_RECORD_THREAD and may not be the last to do so */
	uint64_t stuck_at;   /* tail + 1, when what is there was found uncommitted by a thread that had to give it up */
	uint64_t stuck_tsc;  /* since when */
	uint64_t abandoned;  /* reservations that overwriting has skipped */
	uint64_t room;       /* bytes from the ring's start that may be used; at most mask + 1; DP_ROOM_HELD */
	uint64_t reserved1[1];
	/* line 2: the unwinder's */
	uint64_t cache;     /* address in the target of this slot's pc -> row cache (DP_UNWIND_CACHE entries), or 0 */
	uint64_t settled;     /* below it nobody writes any more: what is not committed there was abandoned */
	uint64_t settled_tid; /* whose announcement wrote `settled` */
	uint64_t reserved2[5];
};
_Static_assert(sizeof(struct dp_slot) == 192, "slots are three cache lines");

#define DP_ROOM_STEP 16384u  /* a ring that has no room takes as much first */
#define DP_ROOM_GOOD 262144u /* up to here it grows before it is used a second time, unless memory is short */

#define DP_ROOM_HELD 1u      /* a tool is giving memory of this ring back: the room does not grow meanwhile */
#define DP_PAD_LEAST 8u
static inline uint64_t dp_room_bytes(uint64_t room)
{
	return room & ~UINT64_C(7);
}
/* Of the room: a filler's first word has to fit behind what is used, unless the lap ends there. */
static inline uint64_t dp_room_usable(uint64_t room, uint64_t ring)
{
	return room && room < ring ? room - DP_PAD_LEAST : room;
}

#define DP_SLOT_HEAD offsetof(struct dp_slot, head)
#define DP_STUCK_TICKS (UINT64_C(1) << 35) /* of the time stamp counter: some ten seconds */

/* ---- thread table and private state ----------------------------------------------------------------------------- */

struct dp_thread_entry {
	uint64_t key;  /* 0 = free. Written after `slot`, so a matching key implies a valid slot. */
	uint64_t slot; /* address in the target of a struct dp_slot; 0 = free */
};

#define DP_TABLE_BITS 12u
#define DP_TABLE_SIZE (1u << DP_TABLE_BITS)
/* index = (key * DP_HASH_MULT mod 2^64) >> (64 - DP_TABLE_BITS). Sign-extended 32 bits, so that imul takes it as imm32. */
#define DP_HASH_MULT UINT64_C(0xffffffff9e3779b1)

enum dp_identity {
	DP_ID_SELF = 0, /* %fs:0, checked against %fs:tid_offset */
	DP_ID_TID = 1,  /* gettid() on every hit */
};

/*
 * Answers (decision 0020): hits that are counted and leave no record. A block of cells belongs to one value of %fs:0 (or base of fs), whichever thread
 * has it: a thread that gets an ended one's control block goes on in its block, and the sum over all blocks is what happened. The last
 * block is everybody's who has none, and is only ever changed by locked instructions.
 *
 *   header  struct dp_answers_head
 *   block   nblocks + 1 of them: cells of each probe | keys (--by) | struct dp_answer_loss of each probe | pairs
 *
 * A cell is changed by one instruction, or by cmpxchg: a signal handler's hits in between are not lost.
 */
struct dp_answers {
	uint64_t by_base; /* not 0, with DP_ID_TID: the key is the base of the fs segment, which no two threads had in common; 0: not this one's */
	uint64_t head;    /* address in the target of struct dp_answers_head, or 0: no answers */
	uint64_t size;    /* of a block, bytes; the first one lies at head + DP_ANSWERS_HEAD */
	uint32_t nblocks; /* the shared one not counted */
	uint32_t loss;    /* offset in a block: struct dp_answer_loss[nprobes] */
	uint32_t keys;    /* offset in a block: nkeys entries of key_size bytes */
	uint32_t key_size;
	uint32_t nkeys;   /* a power of two, or 0 */
	uint32_t pairs;   /* offset in a block: struct dp_answer_pair[DP_ANSWER_PAIRS], or 0 */
	uint64_t unused;
};
struct dp_answers_head {
	uint64_t used; /* blocks handed out, the first one included */
	uint64_t reserved[15];
};
#define DP_ANSWERS_HEAD sizeof(struct dp_answers_head)
/* With DP_ID_TID and without by_base the first so many blocks are everybody's as well, and the stack that a hit is on says which one it takes. */
#define DP_ANSWER_SPREAD_BITS 4u
struct dp_answer_loss { /* hits of one probe without an answer */
	uint64_t unpaired; /* returns whose entry is not known */
	uint64_t crowded;  /* no room for another key */
};
struct dp_answer_key {  /* behind it: the stack of --by backtrace (its number of frames, then as many words as there may be), the cells */
	uint64_t mark;  /* 0: free; DP_ANSWER_BUSY; else the probe's index + 1, written last */
	uint64_t key;
};
#define DP_ANSWER_BUSY UINT64_MAX
#define DP_ANSWER_REACH 64u /* entries that are tried from a key's own place on */
/* A call that was entered and has not returned, at its stack address (of the return address) >> 4 modulo DP_ANSWER_PAIRS. */
struct dp_answer_pair {
	uint64_t call; /* stack address | pair number << 48; 0: free */
	uint64_t tsc;
};
#define DP_ANSWER_PAIRS 16384u

struct dp_agent {
	uint64_t live;       /* DP_LIVE, or 0 in a fork child */
	uint32_t pid;        /* getpid() of the target in its own pid namespace */
	uint32_t identity;   /* enum dp_identity */
	uint32_t tid_offset; /* from %fs */
	uint32_t nslots;
	uint64_t slots;      /* address in the target of struct dp_slot[nslots] */
	uint64_t control;    /* address in the target of struct dp_control */
	uint64_t unwind;     /* address in the target of the unwind tables (agent/unwind/unwind.h), or 0 */
	uint64_t exhausted;  /* value of control->slots_freed + 1 when no slot was left: no use to look again */
	uint64_t refused;    /* hits since then, roughly (flight recorder: once in a while it is of use) */
	struct dp_answers answers;
	uint64_t reserved[1];
	struct dp_thread_entry table[DP_TABLE_SIZE];
	uint64_t answer_key[DP_TABLE_SIZE];   /* the same for blocks of cells, apart, so that one index serves both as it is */
	uint64_t answer_block[DP_TABLE_SIZE]; /* a block's address; never given back */
};
#define DP_AGENT_TABLE offsetof(struct dp_agent, table)
_Static_assert(DP_AGENT_TABLE % 64 == 0, "no table entry straddles cache lines");

/* ---- control page ------------------------------------------------------------------------------------------------ */

/* Hits that left no record, by cause. Counted by the agent with locked adds: none of this is on the fast path. */
struct dp_lost {
	uint64_t full;     /* the ring was full */
	uint64_t no_slot;  /* more threads than slots */
	uint64_t forked;   /* in a fork child, which does not share its parent's recording */
	uint64_t other;
	uint64_t nested;   /* inside another hit of the same thread: from within LTTng, or from a signal handler (sink lttng) */
	uint64_t unprimed; /* in a thread whose LTTng state is not allocated yet (sink lttng) */
	uint64_t no_stack; /* too little stack left, and no other one to go to (sink lttng) */
	uint64_t overwritten; /* records that gave way to later ones while no tool was there to take them (flight recorder) */
	uint64_t unreadable;  /* the condition could not be decided: memory that is not there, a division by 0 */
	uint64_t hits;        /* no loss: hits so far, where an expression asks for their number (by stubs, with locked instructions) */
	uint64_t unwanted;    /* no session takes the event, though one should (sink lttng) */
	uint64_t reserved[5];
};
_Static_assert(sizeof(struct dp_lost) == 128, "whole cache lines for each probe");

/* A state of a stub that has an equal one in the program. */
struct dp_site_pair {
	uint64_t stub, original;
	uint64_t fix_rcx; /* 1: rcx must become `original` as well */
};
#define DP_SITE_PAIRS 12

/*
 * A load that may fault. A stub may hold such loads where runtime.faults says so (trampoline.h): `pc` is the address of the load's first
 * byte, `to` where the thread continues if it faults (SIGSEGV, SIGBUS), with all registers as they were in front of the load. The
 * agent's handler does that (decision 0016). The table lies in struct dp_trap, ascending, and is complete before the first jump to such a
 * stub is written; such a stub never runs while the handler does not stand.
 */
struct dp_fixup {
	uint64_t pc, to;
};

/*
 * A patched place, kept in the target so that a later dynprobe can undo what a killed one left, or work with what one has left
 * on purpose.
 */
struct dp_site_entry {
	uint64_t addr;
	uint8_t len;
	uint8_t state; /* enum dp_site_state */
	uint8_t npairs;
	uint8_t changed; /* of the len bytes, those in front that differ; the jump relies upon the others */
	uint16_t probe;  /* DP_NO_PROBE: a site of our own (a thread's start, an evicted instruction) */
	uint16_t flags; /* DP_SITE_GUARDED, DP_SITE_NO_HOOK */
	uint8_t old_bytes[16];
	uint8_t new_bytes[16];
	uint64_t stub, stub_end;
	struct dp_site_pair pair[DP_SITE_PAIRS];
};
#define DP_NO_PROBE 0xffffu
#define DP_SITE_GUARDED 1u /* goes in after the agent's handler of faults or traps, and out before it */
#define DP_SITE_NO_HOOK 2u /* its stub calls no hook. Tools before this flag say so of none, even where it is so */

enum dp_site_state {
	DP_SITE_PLANNED = 0,  /* may or may not be written */
	DP_SITE_RESTORED = 1, /* the old bytes are back */
	DP_SITE_RETIRED = 2,  /* given up to another patcher (tail restored, first byte left to it) */
	DP_SITE_WAITING = 3,  /* its probe was removed and is shut; others rely upon its bytes, which go when those do */
};

/* Registers at the site, in the order of the instruction set's numbering. rsp is the program's own, red zone untouched. */
struct dp_regs {
	uint64_t gpr[16]; /* rax rcx rdx rbx rsp rbp rsi rdi r8 .. r15 */
	uint64_t rip;
	uint64_t rflags;
};

/*
 * A hit that a snapshot is taken of (agent/ring/park.c): its thread waits here until the tool has looked at the process, for `ticks` at most.
 * One at a time: other hits meanwhile go on and are counted. Who moves `state`:
 *   the thread   FREE -> CLAIMED, fills in what is below, -> PARKED (and wakes), and in the end -> FREE
 *   the tool     with all threads held: PARKED -> KEPT if it takes the snapshot, and when it has seen enough, KEPT -> DONE; else
 *                -> REFUSED; then wakes. FREE, if the thread died meanwhile. A thread that was KEPT to its end goes on as if DONE
 * A tool that leaves writes served = 0, then, with a full barrier in between, looks for a thread that is PARKED; a thread looks at
 * `served` again when it is. One that is taken has the tool busy for a while: it makes served = 0 until it looks again.
 * No signal of the program's is delivered to the thread meanwhile: a handler that leaves by longjmp would leave the place taken.
 */
enum dp_park_state {
	DP_PARK_FREE = 0,
	DP_PARK_CLAIMED = 1,
	DP_PARK_PARKED = 2,
	DP_PARK_DONE = 3,
	DP_PARK_REFUSED = 4,
	DP_PARK_KEPT = 5,
};
struct dp_park {
	uint32_t state;    /* enum dp_park_state; a futex */
	uint32_t served;   /* 1: a tool answers; a thread that was not answered in time makes it 0 */
	uint32_t left;     /* so many more may wait */
	uint32_t late;     /* went on unanswered */
	uint64_t missed;   /* hits while another one waited, while nobody answered, or that the tool could not take */
	uint64_t over;     /* hits when none was left, or too early */
	uint64_t wait_ns;  /* for so long a thread waits at most */
	uint64_t interval; /* ticks of the time stamp counter between two */
	uint64_t next_tsc; /* none before that */
	uint64_t salt;     /* of this recording, at random: ids are salt + serial */
	uint64_t serial;
	/* Of the hit. */
	uint64_t id;
	uint32_t tid;      /* in the target's pid namespace */
	uint32_t probe;
	struct dp_regs regs;
	uint64_t pid;      /* of the target, in its pid namespace: nobody else who has its memory waits */
};

struct dp_control {
	uint64_t magic; /* DP_MAGIC, written last */
	uint32_t abi;   /* DP_ABI_VERSION */
	uint32_t nprobes;
	uint32_t nsites;
	uint32_t nslots;
	uint64_t ring_size;
	uint64_t tool_pid;   /* in the tool's pid namespace: who serves this target */
	uint64_t tool_start; /* field 22 of /proc/TOOL/stat, against pid reuse */
	uint64_t tool_ns;    /* inode of the tool's pid namespace */
	/* Offsets from the start of this struct, same in the tool's view and in the target. */
	uint64_t lost_offset;  /* struct dp_lost[nprobes] */
	uint64_t sites_offset; /* struct dp_site_entry[nsites] */
	uint64_t slots_offset; /* struct dp_slot[nslots] */
	uint64_t rings_offset; /* nslots rings of ring_size bytes each */
	uint64_t cache_offset; /* nslots unwind caches, or 0 */
	uint64_t private_addr, private_size; /* target address of struct dp_agent */
	uint64_t slots_freed; /* how often a slot became DEAD */
	/* What outlives its tool. */
	uint64_t gates_offset;                  /* uint32_t[nprobes]: 0 = the probe is disabled; 0 if the stubs have no gates */
	uint64_t manifest_offset, manifest_size; /* room for a NUL-terminated text that only tools read: what was asked */
	uint32_t kept;      /* 1: left in place on purpose, not to be removed by the next tool; written last */
	uint32_t overwrite; /* 1: no tool drains: a full ring gives up its oldest records (agent/ring/ring.c) */
	uint64_t sink;      /* address in the target of struct dp_sink (agent/lttng/sink.h) that the probes emit through, or 0 */
	/* Libraries that come and go while a tool waits for them (agent/loaded.c). */
	uint32_t loads;        /* how often the loader said that its modules change or have changed; a futex */
	uint32_t loads_done;   /* the value of `loads` that the tool has dealt with; a futex */
	uint32_t loads_served; /* 1: a tool answers; a thread that was not answered in time makes it 0 */
	uint32_t loads_late;   /* how many those were */
	uint64_t trap;         /* address in the target of struct dp_trap (agent/trap/trap.h), or 0 */
	/* Bytes that rings may still grow by. */
	uint64_t pool;
	uint64_t pool_first; /* more of them, for rings that have no room at all */
	uint64_t pool_most;  /* what was in both when nobody had taken any */
	uint64_t starved;    /* how often a ring did not grow because there were none */
	uint64_t reserved[1];
	struct dp_park park;
};
_Static_assert(sizeof(struct dp_control) <= 4096, "the control page is one page");

/* ---- probe descriptors, written by the emitter's user next to the stub --------------------------------------------- */

struct dp_probe_desc {
	uint64_t agent;   /* address in the target of struct dp_agent */
	uint64_t lost;    /* address in the target of this probe's struct dp_lost */
	uint32_t reserve; /* bytes to reserve: header and the largest payload, multiple of 8 */
	uint16_t probe;
	uint16_t stack_words; /* answers by backtrace: words in front of a key's cells */
	uint64_t site;    /* address of the probed instruction */
	uint64_t event;   /* sink lttng: what struct dp_sink_event.event said; 0 with the ring */
};

/* Lives on the stack of the hit while a probe's helper calls run. Offsets are used by the emitter: keep them. */
struct dp_capture {
	uint8_t *cursor;                 /* next payload byte */
	struct dp_record *record;
	struct dp_slot *slot;
	const struct dp_probe_desc *desc;
	const struct dp_regs *regs;
};

/* Operand of a helper, in the stub arena. */
struct dp_op {
	uint64_t addr;  /* address in the target to read (helpers that read) */
	uint32_t size;  /* bytes to copy; for strings the limit including the NUL; for backtraces the frame limit */
	uint16_t field; /* bit in the payload's unreadable mask */
	uint16_t reserved;
};

/*
 * A payload whose fields may be unreadable starts with one uint64_t: bit i = field i (in field-table order) could not be
 * read and holds zeroes (a string: ""). Payloads without such fields have no mask.
 *   string:    bytes, NUL                             (cut strings end in "..." before the NUL)
 *   backtrace: uint8_t n, then n times uint64_t       (pc of each frame, innermost first; [0] is the site)
 */
#define DP_MASK_BYTES 8u
#define DP_STRING_MAX 1024u
#define DP_BACKTRACE_MAX 127u

/* ---- entry points of the agent, found by name in its ELF symbol table ------------------------------------------------ */

/*
 * dp_thunk_acquire (assembly): the slow path. Called from a stub that has already stepped over the red zone and saved
 * rax, rcx, rdx, rsi and the flags. In: rax = address of the struct dp_probe_desc. Out: rcx = record or 0 (lost, counted),
 * rsi = slot. Changes only rax, rcx, rdx, rsi and flags; vector state untouched; uses < 512 bytes of stack.
 */
#define DP_SYM_ACQUIRE "dp_thunk_acquire"
/*
 * The same for cells. DP_SYM_CELLS: rsi = the thread's block, or 0 (lost, counted); rcx = 1 if it is the shared one. DP_SYM_KEYED: with
 * the key in rdx, rsi = that key's cells.
 */
#define DP_SYM_CELLS "dp_thunk_cells"
#define DP_SYM_KEYED "dp_thunk_keyed"
/*
 * For cells by backtrace, in the place of DP_SYM_BACKTRACE and DP_SYM_FINISH; there is no record: capture->record leads to two words, which
 * become the cells' address, or 0, and 1 if they are everybody's.
 */
#define DP_SYM_STACKED      "dp_agent_stacked"
#define DP_SYM_STACKED_DONE "dp_agent_stacked_done"
/*
 * What an expression wants to know that its few instructions do not find out. In: rax = the operand, rdx = address of a struct dp_ask.
 * Out: rax = the answer, rcx = 0 if there is none. Changes only rax, rcx, rdx and flags; needs no alignment.
 */
#define DP_SYM_ASK "dp_thunk_ask"
enum dp_ask_kind {
	DP_ASK_LOAD,   /* `size` bytes at the operand */
	DP_ASK_EQUAL,  /* is the string at the operand `text`? 1 or 0 */
	DP_ASK_PREFIX, /* does it begin with it? */
	DP_ASK_GLOB,   /* does it match it, as a pattern of * and ?? At most DP_STRING_MAX characters are looked at */
	DP_ASK_TID,
	DP_ASK_CPU,
	DP_ASK_THREAD, /* base of the fs segment */
};
struct dp_ask {
	uint64_t agent; /* as in struct dp_probe_desc */
	uint8_t kind;   /* enum dp_ask_kind */
	uint8_t size;
	uint8_t comm; /* 1: the string is the thread's name, not what the operand points to */
	uint8_t reserved[5];
	char text[]; /* NUL-terminated */
};
/*
 * Helpers, C ABI, general registers only: void helper(struct dp_capture *rdi, const struct dp_op *rsi). Each appends at
 * capture->cursor and moves it. The caller has saved every caller-saved register and aligned the stack. The agent has no string
 * instructions: the direction flag may be set.
 */
#define DP_SYM_READ "dp_agent_read"           /* size bytes at addr */
#define DP_SYM_STRING "dp_agent_string"       /* NUL-terminated bytes at addr */
#define DP_SYM_BACKTRACE "dp_agent_backtrace" /* unwinds from capture->regs */
#define DP_SYM_PARK "dp_agent_park"           /* waits for a snapshot: its id (8 bytes), or 0 if there is none */
/* void finish(struct dp_capture *rdi): gives back what the reservation had too much, when nothing follows it, and commits. */
#define DP_SYM_FINISH "dp_agent_finish"
/*
 * void loaded(void): for a hook where the loader tells debuggers of its modules. Returns when the tool has looked, or after
 * DP_LOADED_SECONDS. Vector state untouched. The word at DP_SYM_LOADED_STATE holds the address of struct dp_agent, or 0.
 */
#define DP_SYM_LOADED       "dp_agent_loaded"
#define DP_SYM_LOADED_STATE "dp_agent_loaded_state"
#define DP_LOADED_SECONDS   1

#endif
