/* SPDX-License-Identifier: MIT */
/*
 * trampoline/: pure functions, bytes in, bytes out. Decides how a jump fits at a site (tactics), moves the displaced instructions
 * (relocation), and generates the stub from condition, capture and displaced code. No system calls and no process: everything
 * here is tested with byte arrays. Addresses are the target's.
 *
 * arch/x86_64/ implements it; a second architecture would have a file of the same name for each file there.
 */
#ifndef DP_TRAMPOLINE_TRAMPOLINE_H
#define DP_TRAMPOLINE_TRAMPOLINE_H

#include "agent/abi.h"
#include "base/buf.h"
#include "base/error.h"
#include "probes/probes.h"

/* ---- space: which addresses of the target are free (space.c) ------------------------------------------------------------- */

struct dp_space;
struct dp_error *dp_space_create(struct dp_space **ret) DP_MUST_CHECK;
struct dp_space *dp_space_destroy(struct dp_space *space);
/* Marks [start, end) as taken (a mapping, or room into which the heap, the stack or the loader will grow). */
struct dp_error *dp_space_reserve(struct dp_space *space, uint64_t start, uint64_t end) DP_MUST_CHECK;
/* Every mapping of the image, plus: below 64 KiB, above 0x7ffffffff000, 256 MiB above [heap], 16 MiB below [stack]. */
struct dp_error *dp_space_from_image(const struct dp_image *image, struct dp_space **ret) DP_MUST_CHECK;
/* Takes `size` bytes (whole pages) inside [lo, hi), as near to `near` as possible. False if there is no room. */
bool dp_space_alloc(struct dp_space *space, uint64_t lo, uint64_t hi, uint64_t near, uint64_t size, uint64_t *ret);

/* ---- code under a site (text.c) -------------------------------------------------------------------------------------------- */

struct dp_segment { /* bytes of a module's file as mapped: all PT_LOAD segments, to prove windows */
	uint64_t addr;
	const uint8_t *bytes;
	size_t n;
	bool exec;
};
struct dp_range {
	uint64_t start, size;
};
struct dp_protected { /* code that the kernel or a signal handler checks pcs against, or that runs without a stack */
	uint64_t start, size;
	const char *why;
};
struct dp_analysis;
struct dp_text {
	const struct dp_segment *segment; /* of the module; the site's own is among them */
	size_t nsegments;
	int64_t bias;            /* target address = file address + bias (relocation addends in `segment` are unbiased) */
	uint64_t function, size; /* start and length of the function around the site; 0 if unknown */
	bool pads_known;         /* `pads` lists the module's landing pads; if false, no window can be proved */
	const uint64_t *pads;    /* landing pads of the module, ascending target addresses */
	size_t npads;
	void (*read_pads)(
	        struct dp_text *text); /* sets these three, from `source`, when a window needs them; NULL: they are set */
	void *source;
	struct dp_analysis *known;  /* see below; NULL: each planner analyses the code itself */
	const struct dp_protected *keep; /* never probed (DP_TAG_RSEQ), never moved */
	size_t nkeep;
};
/*
 * Analysis results for the code of one process (instruction starts, branch targets), shared by planners. All texts of a module
 * that use it have the same array of segments, which must not change or go away while the analysis exists.
 */
struct dp_error *dp_analysis_create(struct dp_analysis **ret) DP_MUST_CHECK;
struct dp_analysis *dp_analysis_destroy(struct dp_analysis *known);
/* The first bytes of a syscall instruction in [at, end), or NULL. They may be part of another instruction, or data. */
const uint8_t *dp_find_syscall(const uint8_t *at, const uint8_t *end);
/* Protected ranges recognised by their bytes (kept.c). Returns their number, at most `most`. */
size_t dp_text_find_protected(const struct dp_text *text, struct dp_protected *ret, size_t most);
/* The range of text->keep that overlaps [addr, addr+n), or NULL. */
const struct dp_protected *dp_text_protected(const struct dp_text *text, uint64_t addr, size_t n);
/*
 * Is `addr` the start of an instruction of its function (linear decode from the function's start)? If not, the error
 * DP_TAG_NOT_BOUNDARY names the nearest boundaries before and after it. Without a known function, only checks that the bytes
 * decode.
 */
struct dp_error *dp_text_check_boundary(const struct dp_text *text, uint64_t addr) DP_MUST_CHECK;
/* Length of an endbr64 at addr (4), or 0. */
size_t dp_text_endbr(const struct dp_text *text, uint64_t addr);

/*
 * ---- the instructions and exits of a function (returns.c)
 * -------------------------------------------------------------------------
 */

enum dp_exit_kind {
	DP_EXIT_RET,
	DP_EXIT_JUMP,   /* a tail jump: to `target`, or through memory or a register (0) */
	DP_EXIT_UNSURE, /* an indirect jump that may lead anywhere, even into the function itself */
};
struct dp_exit {
	uint64_t addr, target;
	enum dp_exit_kind kind;
	const char *when; /* condition (probes/) under which a conditional jump is taken; NULL: always */
};
struct dp_start { /* of an instruction */
	uint64_t addr;
	bool entered; /* a branch leads between its bytes: these contain several instructions */
};
struct dp_points {
	struct dp_start *insn; /* ascending within each part */
	size_t ninsns;
	struct dp_exit *exit; /* the same */
	size_t nexits;
	uint64_t undecodable; /* the first bytes that are not an instruction, 0: none; the rest of that part is not analysed */
};
/*
 * Walks the function in part[0..n); part[0] is where it begins. Jumps from one part into another are not exits, nor are those
 * through its jump tables. Calls that never return are no exits either: a function may have none.
 */
struct dp_error *dp_text_points(const struct dp_text *text, const struct dp_range *part, size_t n, struct dp_points *ret) DP_MUST_CHECK;
void dp_points_fini(struct dp_points *points);

/* ---- planning (plan.c) ----------------------------------------------------------------------------------------------------- */

enum dp_tactic {
	DP_TACTIC_JUMP,   /* (a) the jump fits into the instruction */
	DP_TACTIC_PUN,    /* (b) the jump's last bytes are the bytes of the following instructions */
	DP_TACTIC_EVICT,  /* (c) neighbouring instructions are moved: each becomes a jump to its copy */
	DP_TACTIC_WINDOW, /* (d) the jump covers several instructions, with proof */
	DP_TACTIC_TRAP,   /* (e) int3; only where a request names it */
	DP_TACTIC_COUNT,
};
const char *dp_tactic_name(enum dp_tactic tactic); /* "jump", "pun", "evict", "window", "trap" */
bool dp_tactic_find(const char *name, enum dp_tactic *ret);
#define DP_TACTICS_JUMPS ((1u << DP_TACTIC_TRAP) - 1)             /* all but traps */
#define DP_TACTICS_LIVE  (DP_TACTICS_JUMPS & ~(1u << DP_TACTIC_WINDOW)) /* safe without inspecting the threads: no instruction
                                                                           boundary disappears */

struct dp_runtime { /* addresses of the agent's parts in the target, now or once mapped */
	uint64_t agent; /* struct dp_agent */
	uint64_t acquire, read, string, backtrace, apart, park, finish, ask;
	enum dp_identity identity;
	uint32_t tid_offset;
	/* Sink lttng: entry points of agent/sink.h; all 0 with the ring. */
	uint64_t enter, emit, emit_capture;
	/*
	 * Stubs may contain loads that fault, each listed in its plan's `fixup`, and instructions that raise a signal by design:
	 * the agent's handler will be installed before any of them runs, and shows the program its own addresses.
	 */
	bool faults;
	/* Aggregations: the agent's entry points, and the cells as the agent will find them; answers.head 0: there are none. */
	uint64_t cells, keyed, stacked, stacked_apart, stacked_done;
	uint64_t decimal; /* its struct dp_decimal */
	struct dp_aggs answers;
	uint64_t tick_ns; /* ns per tick of the time stamp counter, as a 32.32 fixed-point number */
	bool bases;       /* with DP_ID_TID: the fs base identifies threads, and rdfsbase reads it */
	bool follows;     /* fork children count and record as the target does: `pid` and `hits` are known in them */
	bool flags_shown; /* some probe shows the program's flags: no stub may change them, even where the program does not use
	                     them */
};

struct dp_plan_fixup { /* offsets from the stub; see struct dp_fixup */
	uint16_t load, to;
};

struct dp_pc_pair { /* states that differ only in the pc: a thread found at `stub` can be moved to `original` */
	uint64_t stub, original;
	bool fix_rcx; /* after a displaced syscall: rcx must become `original` too */
};

#define DP_PLAN_PAIRS    DP_SITE_PAIRS
#define DP_PLAN_SUPPORTS 6
#define DP_PLAN_FIXUPS   32 /* further loads use the agent's helper */
struct dp_plan {
	uint64_t site;
	uint16_t probe;       /* of the request; DP_NO_PROBE for an evicted instruction without a probe */
	enum dp_tactic tactic;
	uint8_t len;          /* [site, site+len): bytes that change or that the jump relies on */
	uint8_t changed;      /* [site, site+changed) may change, the rest is relied on */
	/*
	 * Before and after. The bytes relied on are the same in both: the file's, or those that an earlier plan in the order of
	 * dp_planner_plans() has written there.
	 */
	uint8_t old_bytes[16];
	uint8_t new_bytes[16];
	uint8_t displaced;    /* bytes of instructions that now run in the stub */
	uint8_t ninterior;    /* window only: instruction starts inside the jump, to which no thread may be about to go or
	                         return */
	uint8_t interior[4];  /* offsets from site */
	uint64_t stub;        /* start of the stub */
	uint64_t stub_end;
	uint64_t entry;       /* where a thread must continue to run the instruction at the site, whatever the tactic */
	uint64_t springboard; /* 0 if the site's jump leads to the stub itself */
	/*
	 * Sites of other plans that must stay as long as this one: they wrote bytes that it relies on, or contain the jump that
	 * it leads to, or are the ones it was put in front of (several probes at one site).
	 */
	uint8_t nsupports;
	uint64_t support[DP_PLAN_SUPPORTS];
	uint8_t npairs;
	struct dp_pc_pair pair[DP_PLAN_PAIRS];
	bool calls_out; /* the stub calls the request's `hook`, which may take long and returns into the stub */
	bool guarded; /* has fix-ups, or raises a signal itself: must not run before the agent's handler is installed */
	uint8_t nfixups;
	struct dp_plan_fixup fixup[DP_PLAN_FIXUPS];
};

/*
 * ---- aggregations (answer.c, decision 0020): what a hit does instead of making a record
 * ---------------------------------------------------
 */

enum dp_agg_what {
	DP_AGG_COUNT = 1,  /* one word: hits */
	DP_AGG_SUM = 2,    /* four words, enum dp_agg_word: hits, and the requested ones of SUM, MIN, MAX */
	DP_AGG_MIN = 4,
	DP_AGG_MAX = 8,
	DP_AGG_LOG2 = 16,  /* DP_AGG_LOG2_WORDS buckets: [0] is 0, [i] is [2^(i-1), 2^i), the last is negative values */
	DP_AGG_LINEAR = 32, /* below `low`, `buckets` of `step` each, above */
	DP_AGG_DECIMAL = 64, /* DP_AGG_DECIMAL_WORDS buckets (dp_decimal_from()), the last is negative values */
};
#define DP_AGG_HISTOGRAM (DP_AGG_LOG2 | DP_AGG_LINEAR | DP_AGG_DECIMAL)
enum dp_agg_word { /* of SUM, MIN and MAX; these two store the value with its top bit flipped, so that 0 means none */
	DP_AGG_WORD_COUNT,
	DP_AGG_WORD_SUM,
	DP_AGG_WORD_MAX,
	DP_AGG_WORD_MIN, /* with all bits flipped as well, so that the maximum is taken here too */
	DP_AGG_WORDS,
};
#define DP_AGG_LOG2_WORDS 65u
#define DP_AGG_LINEAR_MAX 4096u
#define DP_AGG_DECIMAL_WORDS 59u
/* Where bucket i begins, and the one before it ends: 0, 1, 2, 5, 10, 20, 50 and so on, to 5 * 10^18. */
int64_t dp_decimal_from(unsigned i);
unsigned dp_decimal_bucket(int64_t value);
#define DP_AGG_PARTS_MOST 6u /* aggregations in one chain */
struct dp_agg_text { /* a key that is the string at the address `key` */
	uint32_t size;                /* most bytes, NUL included, as of a field; 0: the key is a number */
	const struct dp_expr *count;  /* its length in bytes, or NULL: up to the NUL */
	bool count_is_signed, is_array; /* as of a field */
};
struct dp_agg {
	unsigned what; /* COUNT alone, one of HISTOGRAM alone, or some of SUM, MIN, MAX */
	const struct dp_expr *value; /* NULL with COUNT */
	int64_t low;
	uint64_t step;
	uint32_t buckets;
	const struct dp_expr *by; /* cells per value of this; or NULL */
	unsigned stack;           /* cells per backtrace of at most so many frames; or 0 */
	/* Instead of `by`: cells per combination of these values, and of the backtrace if `stack` is given (agent/abi.h). */
	const struct dp_expr *key[DP_AGG_KEYS]; /* NULL: the return address of the innermost frame, which the agent finds */
	struct dp_agg_text text[DP_AGG_KEYS];
	unsigned nkeys;
	struct dp_agg *next; /* a further aggregation of the same hits, in the cells behind these; of it, keys are not read */
};
/* Words of cells for one probe, or for one of its keys: of all aggregations of a chain. */
unsigned dp_agg_words(const struct dp_agg *answer);
/*
 * Words after a probe's cells, but not after a key's: 1 for a lone histogram, else 0. It is the bucket of the last hit, plus 1, while
 * that bucket does not contain the hit yet; or 0.
 */
unsigned dp_agg_pending(const struct dp_agg *answer);

struct dp_request { /* one probe to place */
	uint64_t site;
	uint16_t probe; /* index, written to the records */
	uint64_t lost;  /* address in the target of its struct dp_lost */
	uint64_t hits;  /* address in the target of the 64-bit word that counts for DP_FACT_HITS; 0: not available */
	const struct dp_text *text;
	const struct dp_fields *fields;
	const struct dp_expr *when; /* or NULL */
	unsigned tactics;           /* bit set of allowed enum dp_tactic; 0 = DP_TACTICS_JUMPS */
	/*
	 * Addresses in the target of 32-bit words, 0 = none: while one of them is 0, a hit does nothing but read it (before the
	 * condition). One is the control page's gate, one LTTng's own (a tracepoint's state).
	 */
	uint64_t gate[2];
	uint64_t event; /* for struct dp_probe_desc */
	/*
	 * Not 0: no record, no condition; the stub calls this address (C ABI, no arguments, vector state preserved by the callee)
	 * and goes on. Such requests have `probe` DP_NO_PROBE and may have NULL fields.
	 */
	uint64_t hook;
	/*
	 * Not 0: the address of the `syscall` instruction that `hook` is for: the site itself, or one that only straight code
	 * leads to from there (dp_hook_place()). The hook gets the registers in front of it (struct dp_regs *), and returns
	 * whether it has made the call.
	 */
	uint64_t syscall;
	bool any_call; /* the call's number is unknown: the hook is called only if it is one that the hook handles */
	const struct dp_agg *answer; /* NULL: makes a record */
	/*
	 * Not 0: a number that the entry and the returns of one function share, at most DP_PAIR_MAX. The stub with `enters` notes
	 * when the call began. With DP_NO_PROBE it does nothing else; with a probe it also makes a record, and calls for which
	 * the condition is false are not noted. One without it finds that call by its stack address, which gives
	 * DP_FACT_DURATION; a hit without a known entry is lost (struct dp_agg_loss), one that took less than `slower` ns does
	 * nothing.
	 */
	uint16_t pair;
	bool enters;
	bool goroutines;  /* with `pair`: the callers are goroutines, which change threads and stacks meanwhile */
	bool only_paired; /* a hit without a known entry does not belong to this probe, and is no loss */
	uint64_t slower;
	bool small_stack; /* the code has too little stack for the unwinder, which uses one of its own (runtime.apart,
	                     runtime.stacked_apart) */
};
#define DP_PAIR_MAX 65535u

struct dp_planner; /* collects stubs, springboards and the bytes they occupy; refuses overlaps of sites */
struct dp_error *dp_planner_create(struct dp_space *space, const struct dp_runtime *runtime, struct dp_planner **ret) DP_MUST_CHECK;
struct dp_planner *dp_planner_destroy(struct dp_planner *planner);
/*
 * Bytes of installed probes that have changed or are relied on: no new jump may change any of them, nor rely on the first
 * `changed` ones.
 */
struct dp_error *dp_planner_occupy(struct dp_planner *planner, uint64_t addr, uint8_t changed, uint8_t len) DP_MUST_CHECK;
/*
 * Tries the allowed tactics in the order of the enum and takes the first that fits. If none fits because of other plans, those
 * around the site are removed and all are placed anew; traps come last. On refusal (DP_TAG_TOO_SHORT, UNDECODABLE, UNRELOCATABLE,
 * NO_SPACE, OVERLAP, ...) the planner and its space are as before. *ret is the plan as of now: a later request may make the
 * planner place this one differently. `request` and what it points to must live as long as the planner.
 *
 * At a site that has a probe already, the new stub runs first, then the older one's. The new plan comes later, with the older
 * one's bytes as old_bytes; if a springboard leads to the stubs, the bytes do not change.
 */
struct dp_error *dp_planner_add(struct dp_planner *planner, const struct dp_request *request, struct dp_plan *ret) DP_MUST_CHECK;
/*
 * All current plans, evicted instructions included, in the order in which they must be written; they must be removed in reverse
 * order. At most DP_PLANS_PER_REQUEST for each request. Owned by the planner, valid until the next call that adds.
 */
size_t dp_planner_plans(struct dp_planner *planner, const struct dp_plan **ret);
#define DP_PLANS_PER_REQUEST 3u

struct dp_hook_place { /* where to put a request with `syscall` */
	uint64_t site; /* 0: not a system call that the agent handles */
	uint64_t other; /* a second choice, or 0 */
	uint64_t syscall;
	bool any; /* its number is unknown before it runs */
};
/*
 * Classifies the bytes 0f 05 at `addr` in the function that `text` names: not an instruction, a call that needs no hook, or where
 * to put the hook. DP_TAG_TRAP_UNSAFE if that cannot be decided.
 */
struct dp_error *dp_hook_place(const struct dp_text *text, uint64_t addr, struct dp_hook_place *ret) DP_MUST_CHECK;

struct dp_syscall_place { /* sites of probes on a system call */
	uint64_t entry; /* the `syscall`, or the mov of its number right before it; 0: these bytes are not an instruction */
	uint64_t exit;  /* right after it */
	int32_t nr;     /* the call's number, proved to be the only one; or -1 */
	bool joined;    /* branches lead to `exit`, past the call: it may be reached without one */
	bool outside;   /* in no known function: nothing is known about the bytes */
};
/* The same for probes, which only need to know where instructions begin. */
struct dp_error *dp_syscall_place(const struct dp_text *text, uint64_t addr, struct dp_syscall_place *ret) DP_MUST_CHECK;

struct dp_extent { /* whole pages to map r-x in the target, with their contents */
	uint64_t addr;
	uint8_t *bytes;
	size_t n;
};
/* All that must be mapped; ascending, page-aligned, adjacent extents merged. Owned by the planner. */
size_t dp_planner_extents(struct dp_planner *planner, const struct dp_extent **ret);

/* A dp_unwind_follow (probes/probes.h): analyses hand-written code of this architecture from its first instruction on. */
void dp_stack_effect(const uint8_t *code, size_t n, dp_unwind_each each, void *data);

/* Whether it uses this fact. False for NULL. */
bool dp_expr_asks_for(const struct dp_expr *e, enum dp_fact fact);

#endif
