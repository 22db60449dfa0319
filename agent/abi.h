/* SPDX-License-Identifier: MIT */
/*
 * The contract between the tool and what it maps into the target.
 *
 * Mappings in the target while probes exist:
 *
 *   text      agent code, position-independent, without writable data            memfd, r-x, shared
 *   stubs     generated code, probe descriptors, operation tables, springboards   memfd, r-x, shared (the tool writes
 *             through its own rw view; never both in the target)
 *   data      struct dp_control, site table, slots, rings                        memfd, rw-, shared with the tool
 *   tables    compiled unwind tables (optional)                                  memfd, r--, shared
 *   private   struct dp_agent with the thread table                              anonymous, rw-, MADV_WIPEONFORK
 *
 * A fork child shares text, stubs and data with its parent, but its `private` is zeroed: every look-up misses, the agent sees
 * live == 0 and the child records nothing (it adds to `forked` in struct dp_lost). If control->follow.on is 1, it joins instead:
 * it fills its `private` from the control page, with a number of its own, and takes slots of its own (decision 0037).
 *
 * How a hit finds its ring: key = the word at %fs:0 (the ABI's self pointer), hashed into the thread table, which leads to a
 * slot. The slot is the right one if its tid equals the word at %fs:tid_offset. If the tool could not verify this for every
 * thread, it chooses DP_ID_TID: key = gettid(), and every hit takes the slow path.
 *
 * How a record is written, re-entrantly (a signal handler may hit a probe in the middle):
 *   1. reserve: non-locked cmpxchg of slot.head from pos to pos+size, allowed while pos+size <= slot.limit; else the agent's
 *      slow path (wrap, refresh limit from slot.tail, or lose the hit and count it)
 *   2. write timestamp and payload
 *   3. commit: one 8-byte store of {size, probe, flags} over the record's first word, which was 0 until then
 * The consumer reads from tail up to the first record whose first word is 0. It zeroes all that it consumed, so that no stale
 * word is taken for a commit, then advances slot.tail. Positions are 64-bit byte counts that never wrap; offset = pos & mask. A
 * record never crosses the end of the ring (the slow path fills the rest with a DP_RECORD_PAD).
 *
 * A thread that leaves a hit for good (a signal handler that longjmps out of it) leaves a reservation that is never committed.
 * Its ring fills, and its hits are lost as `full` until it ends (while the ring overwrites, for at most DP_STUCK_TICKS). A hit of
 * a vfork child, or of a raw clone that shares its parent's thread pointer, counts as its parent's; one that runs at the same
 * time needs DP_ID_TID.
 *
 * Memory (decision 0030). A ring has addresses for ring_size bytes, of which the first `room` bytes may be used; the pages after
 * them need not exist. A thread that reaches the end of the room takes more from control->pool, or fills the rest of the lap with
 * a filler, as at the ring's end. So positions and offsets do not depend on the room. The tool gives unused memory back
 * (drain_room.c):
 *   the tool     sets room = less, with DP_ROOM_HELD: the thread takes no more until the pages are gone. Then it sets limit to a
 *                value that it never had; then, after a full barrier, it reads head. If the ring is empty, nothing is written
 *                after the room from now on but one record at head, by a hit that had read the old limit (to reserve it needs
 *                that very head, and moves it), and the filler after that. All other pages there are given back.
 *   the thread   reads limit, then room, and replaces that very limit by the new one (locked): a limit that was computed from an
 *                older room is never stored after the tool's.
 *
 * Flight recorder. While control->overwrite is 1 no tool drains, and a producer whose ring is full acts as the consumer: it gives
 * up its oldest records, an eighth of the ring at a time, counts them as `overwritten`, zeroes them and moves its own slot's
 * tail. It does so with all signals blocked (rt_sigprocmask), so no handler of the thread sees an intermediate state, and with
 * slot.reclaiming set. It stops at a record that is not committed: a hit further out on the same stack may still write it. A
 * thread that meets the same one for DP_STUCK_TICKS takes it for abandoned, and skips it. (If such a hit resumes after all,
 * because a signal handler ran for seconds and filled the ring, it overwrites records of the ring, never other memory.) Threads
 * that find no free slot look for slots whose owners are gone (tgkill with signal 0). Those keep their records, after which the
 * new owner announces itself. Both are system calls: do not set overwrite in a process under a seccomp filter.
 * A run with --overwrite sets overwrite until it has removed its probes; then it takes over as below.
 *
 * Who may move a slot's tail:
 *   a tool takes over   writes overwrite = 0, then, after a full barrier (a system call is one), waits until each slot's
 *                       `reclaiming` reads 0; from then on it owns that tail. The wait is short: the thread has nothing
 *                       else to do, but may be off its processor, or stopped. Only then does it read `tail` and `tail_tid`.
 *   a tool gives back   finishes all of its writes to rings, tails and tail_tids, then writes overwrite = 1
 *   a tool died         overwrite is 0, rings fill and lose as `full`; the next tool does either of the above. Bytes that the
 *                       dead tool had zeroed without having moved the tail look like an abandoned reservation.
 *   the agent           writes reclaiming = 1, then, after a full barrier, reads overwrite; if that is not 1, it changes
 *                       nothing. reclaiming = 0 is its last store.
 *
 * All integers are little-endian, records 8-byte aligned. Sources: System V AMD64 ABI 3.4.6 (thread pointer), CTF 1.8 (payloads).
 */
#ifndef DP_AGENT_ABI_H
#define DP_AGENT_ABI_H

#include "agent/abi_cells.h"

#include <stddef.h>
#include <stdint.h>

#define DP_ABI_VERSION 9u
#define DP_MAGIC UINT64_C(0x65626f7270796e64)    /* "dynprobe", first word of struct dp_control */
#define DP_LIVE UINT64_C(0x6576696c62707964)     /* first word of struct dp_agent; 0 in a fork child */
#define DP_JOINED UINT64_C(0x6e696f6a62707964)   /* in a fork child that records: `process` is its number */
#define DP_MEMFD_NAME "dynprobe"                 /* all our mappings show as /memfd:dynprobe in /proc/PID/maps */

/* ---- records ------------------------------------------------------------------------------------------------- */

struct dp_record {
	uint32_t size;  /* of the whole record, a multiple of 8; 0 until committed */
	uint16_t probe; /* probe index, or a DP_RECORD_ value */
	uint16_t flags; /* 0 */
	uint64_t tsc;   /* rdtsc at the hit */
	uint8_t payload[];
};

#define DP_RECORD_PAD 0xffffu    /* filler up to the end of the ring, of any length; only its first 8 bytes are written */
#define DP_RECORD_THREAD 0xfffeu /* payload: a dp_thread_word(); the records after this one are of that thread */
#define DP_RECORD_MAX 4096u      /* bytes, upper bound of one record */

/* ---- slots: one per thread that has hit a probe ---------------------------------------------------------------- */

enum dp_slot_state {
	DP_SLOT_FREE = 0, /* never used */
	DP_SLOT_USED = 1, /* owned by a thread */
	DP_SLOT_DEAD = 2, /* the tool saw that its thread is gone and drained it: an agent may take it over */
	DP_SLOT_CLAIM = 3, /* a thread is taking it over and has not written its key yet */
};
/*
 * tid and state change together, as one 8-byte word, by locked cmpxchg: both producers and the tool change them. Slots are
 * claimed in ascending order and never become FREE again, so after a FREE slot all are FREE. Bits in tid for the slow path:
 */
#define DP_TID_PENDING UINT32_C(0x80000000) /* the owner must first announce itself, with a DP_RECORD_THREAD */
#define DP_TID_SUSPECT UINT32_C(0x40000000) /* the tool thinks that the owner is gone */
#define DP_TID_MASK UINT32_C(0x3fffffff)
#define DP_TID_CHILD (DP_TID_PENDING | DP_TID_SUSPECT) /* CLAIM by a fork child: its process's number, not a thread's id */

/* A thread as records name it; pid 0: of the target itself. */
static inline uint64_t dp_thread_word(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

/*
 * A slot belongs to a process, by its number: 0 is the target, others have joined. A process takes only slots that are FREE, or
 * DEAD and of its own number or none: the tool sets none when the process is gone. So an entry of a process's thread table never
 * leads to a slot that another process uses, although parent and child have equal keys and may have equal thread ids.
 */
#define DP_PROCESS_NONE UINT32_MAX

struct dp_slot {
	/* line 0: the producer's */
	uint64_t head;      /* next position to reserve */
	uint64_t limit;     /* positions below are free, in this lap and in the room; may be too low, never too high */
	uint64_t base;      /* address in the target of the ring's bytes */
	uint64_t mask;      /* ring size - 1 */
	uint32_t tid;       /* in the target's pid namespace */
	uint32_t state;     /* enum dp_slot_state */
	uint64_t key;       /* thread key that owns it */
	uint64_t stack_lo;  /* stack pages that the unwinder found readable, packed (agent/unwind/unwind.h); 0: none */
	uint64_t stack_hi;  /* unused */
	/* line 1: the consumer's */
	uint64_t tail;       /* everything below is consumed and zeroed */
	uint64_t reclaiming; /* 1: the thread itself is moving tail (flight recorder, above) */
	uint64_t tail_tid;   /* thread of the records from tail on, until the next DP_RECORD_THREAD; 0: that comes first. A
	                        tool or agent that moves tail past a DP_RECORD_THREAD, and may not be the last to do so, writes
	                        this before tail */
	uint64_t stuck_at;   /* tail + 1, if a thread that wanted to give up the record there found it uncommitted */
	uint64_t stuck_tsc;  /* since when */
	uint64_t abandoned;  /* reservations that overwriting has skipped */
	uint64_t room;       /* usable bytes from the ring's start, at most mask + 1; DP_ROOM_HELD */
	uint64_t reserved1[1];
	/* line 2: the unwinder's */
	uint64_t cache;     /* address in the target of this slot's pc -> row cache (DP_UNWIND_CACHE entries), or 0; the unwinder's
	                       own stack follows (agent/unwind/apart.h) */
	uint64_t settled;     /* nothing below it is written any more: what is not committed there was abandoned */
	uint64_t settled_tid; /* thread of the announcement that wrote `settled` */
	uint32_t process;   /* the owner's number. Written before the state becomes USED, as is pid */
	uint32_t pid;       /* the owner's getpid(); 0: the target */
	uint64_t apart;     /* 1: a hit of the thread uses that stack */
	uint64_t memo;      /* address in the target of DP_UNWIND_MEMO private bytes, or 0: walks that the thread may repeat */
	uint64_t reserved2[2];
};
_Static_assert(sizeof(struct dp_slot) == 192, "slots are three cache lines");

#define DP_ROOM_STEP 16384u  /* what a ring without room takes first */
#define DP_ROOM_GOOD 262144u /* up to this size a ring grows before it wraps, unless memory is short */

#define DP_ROOM_HELD 1u      /* a tool is taking memory of this ring back: the room must not grow meanwhile */
#define DP_PAD_LEAST 8u
static inline uint64_t dp_room_bytes(uint64_t room)
{
	return room & ~UINT64_C(7);
}
/* Of the room: a filler's first word must fit after what is used, unless the lap ends there. */
static inline uint64_t dp_room_usable(uint64_t room, uint64_t ring)
{
	return room && room < ring ? room - DP_PAD_LEAST : room;
}

#define DP_SLOT_HEAD offsetof(struct dp_slot, head)
#define DP_STUCK_TICKS (UINT64_C(1) << 35) /* of the time stamp counter: about ten seconds */

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

struct dp_agent {
	uint64_t live;       /* DP_LIVE; in a fork child 0, or DP_JOINED, written last */
	uint32_t pid;        /* getpid() of the target in its own pid namespace */
	uint32_t identity;   /* enum dp_identity */
	uint32_t tid_offset; /* from %fs */
	uint32_t nslots;
	uint64_t slots;      /* address in the target of struct dp_slot[nslots] */
	uint64_t control;    /* address in the target of struct dp_control */
	uint64_t unwind;     /* address in the target of the unwind tables (agent/unwind/unwind.h), or 0 */
	uint64_t exhausted;  /* control->slots_freed + 1 when no slot was left: searching again is useless */
	uint64_t refused;    /* hits since then, roughly (the flight recorder searches again now and then) */
	uint64_t process;    /* this process's number; 0: the target */
	uint64_t answer_first[DP_AGG_FIRST]; /* keys of the first blocks, 0: not taken by this process (see answer_key) */
	uint64_t reserved[3];
	struct dp_thread_entry table[DP_TABLE_SIZE];
	uint64_t answer_key[DP_TABLE_SIZE];   /* the same for blocks of cells, in arrays of their own so that one index serves
	                                         both unchanged */
	uint64_t answer_block[DP_TABLE_SIZE]; /* a block's address; never given back */
};
#define DP_AGENT_TABLE offsetof(struct dp_agent, table)
_Static_assert(DP_AGENT_TABLE % 64 == 0, "no table entry straddles cache lines");

/* ---- control page ------------------------------------------------------------------------------------------------ */

/* Hits that left no record, by cause. Counted by the agent with locked adds: none of this is on the fast path. */
struct dp_lost {
	uint64_t full;     /* the ring was full */
	uint64_t no_slot;  /* more threads than slots */
	uint64_t forked;   /* in a fork child, which is not recorded */
	uint64_t other;
	uint64_t nested;   /* inside another hit of the same thread: in LTTng, or in a signal handler (sink lttng) */
	uint64_t unprimed; /* in a thread whose LTTng state is not allocated yet (sink lttng) */
	uint64_t no_stack; /* too little stack left, and no other stack available (sink lttng) */
	uint64_t overwritten; /* records overwritten by later ones while no tool drained (flight recorder) */
	uint64_t unreadable;  /* the condition could not be evaluated: unreadable memory, a division by 0 */
	uint64_t hits;        /* no loss: hits so far, if an expression asks for their number (counted by stubs, locked) */
	uint64_t unwanted;    /* no session took the event, though one should have (sink lttng) */
	uint64_t reserved[5];
};
_Static_assert(sizeof(struct dp_lost) == 128, "whole cache lines for each probe");

/* A pc in a stub and the equivalent one in the program. */
struct dp_site_pair {
	uint64_t stub, original;
	uint64_t fix_rcx; /* 1: rcx must become `original` as well */
};
#define DP_SITE_PAIRS 12

/*
 * A load that may fault. Stubs contain such loads only with runtime.faults (trampoline.h): `pc` is the address of the load's
 * first byte, `to` is where the thread continues if it faults (SIGSEGV, SIGBUS), with all registers as before the load. The
 * agent's handler does that (decision 0016). The table is in struct dp_trap, ascending, and is complete before the first jump to
 * such a stub is written. Such a stub never runs while the handler is not installed.
 */
struct dp_fixup {
	uint64_t pc, to;
};

/* A patched site, kept in the target so that a later dynprobe can undo what one left when killed, or use what one left on purpose. */
struct dp_site_entry {
	uint64_t addr;
	uint8_t len;
	uint8_t state; /* enum dp_site_state */
	uint8_t npairs;
	uint8_t changed; /* how many of the len bytes differ, from the first on; the jump relies on the rest */
	uint16_t probe;  /* DP_NO_PROBE: a site of ours (a thread's start, an evicted instruction) */
	uint16_t flags; /* DP_SITE_GUARDED, DP_SITE_NO_HOOK */
	uint8_t old_bytes[16];
	uint8_t new_bytes[16];
	uint64_t stub, stub_end;
	struct dp_site_pair pair[DP_SITE_PAIRS];
};
#define DP_NO_PROBE 0xffffu
#define DP_SITE_GUARDED 1u /* installed after the agent's fault or trap handler, removed before it */
#define DP_SITE_NO_HOOK 2u /* its stub calls no hook. Older tools never set it, even for such stubs */

enum dp_site_state {
	DP_SITE_PLANNED = 0,  /* possibly written */
	DP_SITE_RESTORED = 1, /* the original bytes are back */
	DP_SITE_RETIRED = 2,  /* left to another patcher (tail restored, first byte kept) */
	DP_SITE_WAITING = 3,  /* its probe was removed and disabled; other jumps rely on its bytes, which are restored with
	                         theirs */
};

/* Registers at the site, in the numbering of the instruction set. rsp is the program's own; its red zone is untouched. */
struct dp_regs {
	uint64_t gpr[16]; /* rax rcx rdx rbx rsp rbp rsi rdi r8 .. r15 */
	uint64_t rip;
	uint64_t rflags;
};

/*
 * A hit of which a snapshot is taken (agent/ring/park.c): its thread waits until the tool has inspected the process, for wait_ns
 * at most. One at a time: other hits meanwhile go on and are counted. Who changes `state`, while `owner` says whose it is:
 *   the thread   takes `owner`, fills in the fields below, FREE -> PARKED (and wakes the tool); in the end -> FREE, and gives
 *                `owner` back
 *   the tool     with all threads stopped: PARKED -> KEPT if it takes the snapshot, and when that is complete, KEPT -> DONE; else
 *                -> REFUSED; then wakes the thread. A thread whose wait ends while KEPT goes on as if DONE. FREE and no owner, if
 *                the owner died, at whatever point
 * A tool that leaves writes served = 0, then, after a full barrier, looks for a thread that is PARKED; a thread that has parked
 * reads `served` again. While the tool is busy with a snapshot, it keeps served = 0. No signal of the program is delivered to the
 * thread meanwhile: a handler that leaves by longjmp would leave the state taken.
 */
enum dp_park_state {
	DP_PARK_FREE = 0,
	DP_PARK_PARKED = 1,
	DP_PARK_DONE = 2,
	DP_PARK_REFUSED = 3,
	DP_PARK_KEPT = 4,
};
struct dp_park {
	uint32_t state;    /* enum dp_park_state; a futex */
	uint32_t served;   /* 1: a tool answers; a thread that got no answer in time sets it to 0 */
	uint32_t left;     /* how many more hits may wait */
	uint32_t late;     /* hits that went on unanswered */
	uint64_t missed;   /* hits while another one waited or no tool answered, or that the tool could not take */
	uint64_t over;     /* hits after the last one allowed, or too early */
	uint64_t wait_ns;  /* how long a thread waits at most */
	uint64_t interval; /* least ticks of the time stamp counter between two */
	uint64_t next_tsc; /* no earlier than this */
	uint64_t owner;    /* the thread: dp_park_owner(), or 0 */
	uint64_t salt;     /* random, one per recording: ids are salt + serial */
	uint64_t serial;
	/* The hit. */
	uint64_t id;
	uint64_t probe;
	struct dp_regs regs;
};

/* The thread's id in its own pid namespace, and its process as in struct dp_agent. */
static inline uint64_t dp_park_owner(uint32_t tid, uint64_t process)
{
	return tid | process << 32;
}

/*
 * Hits that wait where their ring is full (agent/ring/full.c; decision 0049). A thread adds 1 to `waits`, then waits until
 * `drained` changes and tries again, for wait_ticks in all. If that was in vain it sets served to 0 and lets the others go:
 * nobody waits until a tool sets it again. The tool, whenever it has read a ring: adds 1 to `drained`, and wakes the threads if
 * `waits` has changed; whenever it has read all: also sets served, and adds 1 to `passes`. A tool that leaves writes served = 0
 * first. Nothing here belongs to a thread, so one that dies while it waits, or whose signal handler leaves by longjmp, takes
 * nothing along.
 */
struct dp_on_full {
	uint64_t wait_ticks; /* of the time stamp counter; 0: no hit waits */
	uint64_t tick;       /* ns of each, with 32 fractional bits */
	uint32_t served;     /* 1: a tool reads the rings */
	uint32_t waits;      /* a futex, as is the next */
	uint32_t drained;
	uint32_t children; /* 1: hits of fork children that record wait, too */
	uint32_t tool;     /* its pid as the target's own threads know it; 0: they do not */
	uint32_t passes;   /* of the tool over all rings */
	uint64_t hits;     /* that waited */
	uint64_t late;     /* of them: in vain */
	uint64_t ticks;    /* of the time stamp counter, that all of them waited together */
};

struct dp_follow { /* what a fork child needs to join */
	uint32_t on;        /* 1: fork children join; 0: no more, and those that have joined take no more room */
	uint32_t joined;    /* the last number taken */
	uint32_t processes; /* how many have joined */
	uint32_t identity, tid_offset; /* as in struct dp_agent, as is `unwind` */
	uint32_t parks; /* 1: their hits wait for snapshots, too */
	uint64_t unwind;
};

struct dp_control {
	uint64_t magic; /* DP_MAGIC, written last */
	uint32_t abi;   /* DP_ABI_VERSION */
	uint32_t nprobes, nsites, nslots;
	uint64_t ring_size;
	uint64_t tool_pid;   /* of the tool that serves this target, in the tool's pid namespace */
	uint64_t tool_start; /* field 22 of /proc/TOOL/stat, against pid reuse */
	uint64_t tool_ns;    /* inode of the tool's pid namespace */
	/* Offsets from the start of this struct, the same in the tool's view and in the target. */
	uint64_t lost_offset;  /* struct dp_lost[nprobes] */
	uint64_t sites_offset; /* struct dp_site_entry[nsites] */
	uint64_t slots_offset; /* struct dp_slot[nslots] */
	uint64_t rings_offset; /* nslots rings of ring_size bytes each */
	uint64_t cache_offset; /* nslots times DP_APART_TOP bytes: unwind caches and stacks; or 0 */
	uint64_t private_addr, private_size; /* target address of struct dp_agent */
	uint64_t slots_freed; /* how many times a slot became DEAD */
	/* Resident probes. */
	uint64_t gates_offset;                  /* uint32_t[nprobes]: 0 = the probe is disabled; or 0: the stubs have none */
	uint64_t manifest_offset, manifest_size; /* room for a NUL-terminated text that only tools read: the probes' manifest */
	uint32_t kept;      /* 1: left in place on purpose, must not be removed by the next tool; written last */
	uint32_t overwrite; /* 1: no tool drains: a full ring gives up its oldest records (agent/ring/ring.c) */
	uint64_t sink;      /* address in the target of struct dp_sink (agent/sink.h) that the probes emit through, or 0 */
	/* Libraries loaded and unloaded while a tool waits for them (agent/loaded.c). */
	uint32_t loads;        /* how often the loader announced that its modules change or have changed; a futex */
	uint32_t loads_done;   /* the last value of `loads` that the tool handled; a futex */
	uint32_t loads_served; /* 1: a tool answers; a thread that got no answer in time sets it to 0 */
	uint32_t loads_late;   /* how many times that happened */
	uint64_t trap;         /* address in the target of struct dp_trap (agent/trap/trap.h), or 0 */
	uint64_t pool;         /* bytes by which rings may still grow */
	uint64_t pool_first; /* the same, for rings that have no room at all */
	uint64_t pool_most;  /* the initial sum of both */
	uint64_t starved;    /* how often a ring could not grow for lack of them */
	uint64_t unwind_latest; /* offset from the first unwind tables of those that have replaced them; 0: none have */
	struct dp_park park;
	struct dp_follow follow;
	/* The process that the probes were installed in: pid in the tool's pid namespace, field 22 of its stat. 0 by older tools. */
	uint64_t target_pid, target_start;
	struct dp_aggs answers;
	struct dp_on_full on_full;
	uint64_t loads_wait_ns; /* how long a thread that loads a library waits at most; 0: DP_LOADED_SECONDS */
	struct dp_clocks {      /* of resident probes whose rings core files include (resident/dumped.h); else 0 */
		uint64_t tsc, ns, tick; /* the count and CLOCK_MONOTONIC at one moment; ns of a count, with 32 fractional bits */
		int64_t offset;         /* CLOCK_REALTIME - CLOCK_MONOTONIC in ns */
		char boot[40];          /* dp_boot_id() */
	} clocks;
};
_Static_assert(sizeof(struct dp_control) <= 4096, "the control page is one page");

/* ---- probe descriptors, written by the emitter's user next to the stub --------------------------------------------- */

struct dp_probe_desc {
	uint64_t agent;   /* address in the target of struct dp_agent */
	uint64_t lost;    /* address in the target of this probe's struct dp_lost */
	uint32_t reserve; /* bytes to reserve: header and the largest payload, multiple of 8; aggregations by strings: see below */
	uint16_t probe;
	uint16_t stack_words; /* aggregation by backtrace or by several values: words before a key's cells */
	uint64_t site;    /* address of the probed instruction */
	uint64_t event;   /* sink lttng: dp_sink_event.event; a call's entry (lost is 0): address of struct dp_control; else 0 */
};

/* The control page of this probe's group. A fork child knows nothing else: the counters of probe 0 begin a page after it. */
#define DP_LOST_OFFSET UINT64_C(4096)
static inline uint64_t dp_desc_control(const struct dp_probe_desc *desc)
{
	return desc->lost ? desc->lost - desc->probe * sizeof(struct dp_lost) - DP_LOST_OFFSET : desc->event;
}

/* On the stack of the hit while a probe's helpers run. The emitter uses the offsets: keep them. */
struct dp_capture {
	uint8_t *cursor;                 /* next payload byte */
	struct dp_record *record;
	struct dp_slot *slot;
	const struct dp_probe_desc *desc;
	const struct dp_regs *regs;
};

#define DP_AGG_KEYS 4u /* most values of one key */
/*
 * A key that is more than one value: a word with the number of those that follow, the values, the strings among them (abi_cells.h),
 * then the frames of a backtrace. The agent's helper for backtraces gets the first two behind the struct dp_cells that it fills in,
 * and in its struct dp_op: `addr`, the number of values and (from bit 32) the most frames; `size`, how many frames it has to look
 * for; `field`, the number from 1 of the value that is to be the caller's return address, or 0.
 *
 * Strings: the agent gets their addresses as values, and at desc->reserve bytes from the descriptor a struct dp_op for each, in
 * order, and one with `field` 0. `field` is the number from 1 of the value; `addr` that of the word with its length, if it has a
 * `count`; `size` as for strings of records.
 */

/* Operand of a helper, in the stub arena. */
struct dp_op {
	uint64_t addr;  /* address in the target to read (helpers that read) */
	uint32_t size;  /* bytes to copy; strings: limit including the NUL; backtraces: frame limit */
	uint16_t field; /* bit in the payload's unreadable mask */
	uint16_t count; /* strings: enum dp_count */
};
enum dp_count { /* where a string ends, besides at a NUL */
	DP_COUNT_NONE,
	DP_COUNT_SIGNED, /* after a number of bytes; a negative one is 0 */
	DP_COUNT_UNSIGNED,
	DP_COUNT_ARRAY, /* as NONE, but no pointer leads to it: at address 0 it is unreadable, not NULL */
};
/* So many bytes, at most `limit`. */
static inline uint64_t dp_counted(enum dp_count kind, uint64_t n, uint64_t limit)
{
	if (kind == DP_COUNT_NONE || kind == DP_COUNT_ARRAY)
		return limit;
	if (kind == DP_COUNT_SIGNED && (int64_t)n < 0)
		return 0;
	return n < limit ? n : limit;
}

/*
 * A payload with fields that may be unreadable starts with one uint64_t: bit i = field i (in field-table order) could not be read
 * and contains zeroes (a string: ""). A string whose pointer is NULL has its bit set too, and is not empty: DP_NULL_TEXT, or what
 * fits of that. Payloads without such fields have no mask.
 *   string:    bytes, NUL                             (cut strings end in "..." before the NUL)
 *   backtrace: uint8_t n, then n times uint64_t       (pc of each frame, innermost first; [0] is the site; in records for the
 *              tool a frame that was found by a frame pointer has DP_FRAME_BY_POINTER added)
 */
#define DP_MASK_BYTES 8u
#define DP_STRING_MAX 1024u
#define DP_NULL_TEXT "NULL"
#define DP_BACKTRACE_MAX 127u
#define DP_FRAME_BY_POINTER (UINT64_C(1) << 62) /* no pc has the bits 01 at the top */

static inline int dp_frame_is_by_pointer(uint64_t frame)
{
	return frame >> 62 == 1;
}

static inline uint64_t dp_frame_pc(uint64_t frame)
{
	return dp_frame_is_by_pointer(frame) ? frame & ~DP_FRAME_BY_POINTER : frame;
}

#include "agent/abi_entries.h"

#endif
