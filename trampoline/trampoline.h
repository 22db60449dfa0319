/* SPDX-License-Identifier: MIT */
/*
 * trampoline/: pure functions, bytes in, bytes out. Decides how a jump fits at a site (tactics), moves the displaced
 * instructions (relocation), and generates the stub that condition, capture and displaced code make up. No system call and
 * no process: everything here is tested with byte arrays. Addresses are numbers of the target's space.
 *
 * arch/x86_64/ implements it; every file there would have a twin of the same name in a second architecture.
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
/* Marks [start, end) as taken (a mapping, or room that the heap, the stack or the loader will grow into). */
struct dp_error *dp_space_reserve(struct dp_space *space, uint64_t start, uint64_t end) DP_MUST_CHECK;
/* Every mapping of the image, plus: below 64 KiB, above 0x7ffffffff000, 256 MiB above [heap], 16 MiB below [stack]. */
struct dp_error *dp_space_from_image(const struct dp_image *image, struct dp_space **ret) DP_MUST_CHECK;
/* Takes `size` bytes (whole pages) inside [lo, hi), as near to `near` as possible. False if there is no room. */
bool dp_space_alloc(struct dp_space *space, uint64_t lo, uint64_t hi, uint64_t near, uint64_t size, uint64_t *ret);

/* ---- code under a site (text.c) ---------------------------------------------------------------------------------------------- */

struct dp_segment { /* bytes of a module's file as mapped: all PT_LOAD segments, for the proof of windows */
	uint64_t addr;
	const uint8_t *bytes;
	size_t n;
	bool exec;
};
struct dp_range {
	uint64_t start, size;
};
struct dp_keep { /* code whose addresses the kernel or a signal handler looks at, or that has no stack */
	uint64_t start, size;
	const char *why;
};
struct dp_analysis;
struct dp_text {
	const struct dp_segment *segment; /* the module's segments, the site's own among them */
	size_t nsegments;
	int64_t bias;            /* target address = file address + bias (relocation addends in `segment` are unbiased) */
	uint64_t function, size; /* start and length of the function around the site; 0 if unknown */
	bool pads_known;         /* the module's landing pads are in `pads`; if false, no window can be proved */
	const uint64_t *pads;    /* landing pads of the module, ascending target addresses */
	size_t npads;
	struct dp_analysis *known;  /* see below, or NULL: then each planner finds out for itself */
	const struct dp_keep *keep; /* never probed (DP_TAG_RSEQ), never moved */
	size_t nkeep;
};
/*
 * What has been found out about the code of one process (instruction starts, places that something leads to), for planners to share. The
 * texts that use it have one array of segments for each module, which stays; it must go before they change.
 */
struct dp_error *dp_analysis_create(struct dp_analysis **ret) DP_MUST_CHECK;
struct dp_analysis *dp_analysis_destroy(struct dp_analysis *known);
/* Ranges to keep that show by their bytes (kept.c). At most `most`; the number of them. */
size_t dp_text_find_kept(const struct dp_text *text, struct dp_keep *ret, size_t most);
/* The one of text->keep that [addr, addr+n) is in, or partly; or NULL. */
const struct dp_keep *dp_text_kept(const struct dp_text *text, uint64_t addr, size_t n);
/*
 * Is `addr` the start of an instruction of its function (linear decode from the function's start)? If not, the error
 * DP_TAG_NOT_BOUNDARY names the nearest ones before and behind. Without a known function only decodability is checked.
 */
struct dp_error *dp_text_check_boundary(const struct dp_text *text, uint64_t addr) DP_MUST_CHECK;
/* Length of an endbr64 at addr (4), or 0. */
size_t dp_text_endbr(const struct dp_text *text, uint64_t addr);

/* ---- the instructions of a function, and where it is left (returns.c) ------------------------------------------------------------ */

enum dp_exit_kind {
	DP_EXIT_RET,
	DP_EXIT_JUMP,   /* a tail jump: to `target`, or through memory or a register (0) */
	DP_EXIT_UNSURE, /* an indirect jump that may lead anywhere, into the function itself for one */
};
struct dp_exit {
	uint64_t addr, target;
	enum dp_exit_kind kind;
	const char *when; /* a condition (probes/) under which a conditional jump is taken; NULL: always */
};
struct dp_start { /* of an instruction */
	uint64_t addr;
	bool entered; /* a branch leads between its bytes: it is several instructions in one */
};
struct dp_points {
	struct dp_start *insn; /* part by part, ascending in each */
	size_t ninsns;
	struct dp_exit *exit; /* the same */
	size_t nexits;
	uint64_t undecodable; /* the first bytes that are no instruction, 0: none; nothing is known of that part from there on */
};
/*
 * Walks the function that lies in part[0..n), the first one being where it begins. Jumps from one part into another do not leave
 * it, nor do those through its jump tables. Calls that never come back are no exits: a function may have none.
 */
struct dp_error *dp_text_points(const struct dp_text *text, const struct dp_range *part, size_t n, struct dp_points *ret) DP_MUST_CHECK;
void dp_points_fini(struct dp_points *points);

/* ---- planning (plan.c) --------------------------------------------------------------------------------------------------------- */

enum dp_tactic {
	DP_TACTIC_JUMP,   /* (a) the instruction holds the jump */
	DP_TACTIC_PUN,    /* (b) the jump's tail keeps the bytes of the following instructions */
	DP_TACTIC_EVICT,  /* (c) neighbouring instructions give way: each becomes a jump of its own to where it runs now */
	DP_TACTIC_WINDOW, /* (d) the jump covers several instructions, with proof */
	DP_TACTIC_TRAP,   /* (e) int3; only where a request names it */
	DP_TACTIC_COUNT,
};
const char *dp_tactic_name(enum dp_tactic tactic); /* "jump", "pun", "evict", "window", "trap" */
bool dp_tactic_find(const char *name, enum dp_tactic *ret);
#define DP_TACTICS_JUMPS ((1u << DP_TACTIC_TRAP) - 1)             /* everything but traps */
#define DP_TACTICS_LIVE  (DP_TACTICS_JUMPS & ~(1u << DP_TACTIC_WINDOW)) /* what needs no look at the threads: no boundary vanishes */

struct dp_runtime { /* where the agent's parts are, or will be, in the target */
	uint64_t agent; /* struct dp_agent */
	uint64_t acquire, read, string, backtrace, park, finish, ask;
	enum dp_identity identity;
	uint32_t tid_offset;
	/* Sink lttng: entry points of agent/lttng/sink.h; all 0 with the ring. */
	uint64_t enter, emit, emit_capture;
	/*
	 * Stubs may hold loads that fault, each named in its plan's `fixup`, and instructions that raise a signal by design: the agent's
	 * handler will stand before any of them runs, and shows the program its own addresses.
	 */
	bool faults;
	/* Answers: the agent's entry points, and the cells as the agent will find them; answers.head 0: there are none. */
	uint64_t cells, keyed, stacked, stacked_done;
	struct dp_answers answers;
	uint64_t tick_ns; /* ns per tick of the time stamp counter, 32 bits behind the point */
	bool bases;       /* with DP_ID_TID: the base of the fs segment tells threads apart, and rdfsbase reads it */
	bool flags_shown; /* some probe shows the program's flags: no stub changes them, even where the program never looks at them */
};

struct dp_plan_fixup { /* offsets from the stub; see struct dp_fixup */
	uint16_t load, to;
};

struct dp_pc_pair { /* states that are equal but for the pc: a thread found at `stub` can be moved to `original` */
	uint64_t stub, original;
	bool fix_rcx; /* behind a displaced syscall: rcx must become `original` as well */
};

#define DP_PLAN_PAIRS    DP_SITE_PAIRS
#define DP_PLAN_SUPPORTS 6
#define DP_PLAN_FIXUPS   32 /* loads that do not fit go by the agent's helper */
struct dp_plan {
	uint64_t site;
	uint16_t probe;       /* the request's; DP_NO_PROBE of an evicted instruction that is nobody's probe */
	enum dp_tactic tactic;
	uint8_t len;          /* bytes of the site that change or are relied upon: [site, site+len) */
	uint8_t changed;      /* [site, site+changed) may change, the rest is relied upon */
	/*
	 * Before and after. What is relied upon is the same in both: the file's bytes, or those that a plan earlier in the order of
	 * dp_planner_plans() has written there.
	 */
	uint8_t old_bytes[16];
	uint8_t new_bytes[16];
	uint8_t displaced;    /* bytes of instructions that now run in the stub */
	uint8_t ninterior;    /* window only: instruction starts inside the jump, where nothing may stand or return to */
	uint8_t interior[4];  /* offsets from site */
	uint64_t stub;        /* where the stub starts */
	uint64_t stub_end;
	uint64_t entry;       /* where a thread has to continue that is to run the instruction at the site, whatever the tactic */
	uint64_t springboard; /* 0 if the site's jump leads to the stub itself */
	/*
	 * Sites of other plans that have to stand as long as this one does: they wrote bytes that it relies upon, or hold the jump that it
	 * leads to, or are what it was put in front of (several probes at one site).
	 */
	uint8_t nsupports;
	uint64_t support[DP_PLAN_SUPPORTS];
	uint8_t npairs;
	struct dp_pc_pair pair[DP_PLAN_PAIRS];
	bool calls_out; /* the stub calls the request's `hook`, and with it code that may be away for long, and return into the stub */
	bool guarded; /* has fix-ups, or raises a signal itself: must not run before the agent's handler stands */
	uint8_t nfixups;
	struct dp_plan_fixup fixup[DP_PLAN_FIXUPS];
};

/* ---- answers (answer.c, decision 0020): what a hit does instead of leaving a record ------------------------------------------------------ */

enum dp_answer_what {
	DP_ANSWER_COUNT = 1,  /* one word: hits */
	DP_ANSWER_SUM = 2,    /* four words, enum dp_answer_word: hits, and what is asked for of these */
	DP_ANSWER_MIN = 4,
	DP_ANSWER_MAX = 8,
	DP_ANSWER_LOG2 = 16,  /* DP_ANSWER_LOG2_WORDS buckets: [0] is 0, [i] is [2^(i-1), 2^i), the last one below 0 */
	DP_ANSWER_LINEAR = 32, /* below `low`, `buckets` of `step` each, and above */
};
enum dp_answer_word { /* of SUM, MIN and MAX; those two of the value with its top bit flipped, so that 0 is none */
	DP_ANSWER_WORD_COUNT,
	DP_ANSWER_WORD_SUM,
	DP_ANSWER_WORD_MAX,
	DP_ANSWER_WORD_MIN, /* and all bits flipped: the greatest wins as well */
	DP_ANSWER_WORDS,
};
#define DP_ANSWER_LOG2_WORDS 65u
#define DP_ANSWER_LINEAR_MAX 4096u
struct dp_answer {
	unsigned what; /* COUNT alone, LOG2 alone, LINEAR alone, or some of SUM, MIN, MAX */
	const struct dp_expr *value; /* NULL with COUNT */
	int64_t low;
	uint64_t step;
	uint32_t buckets;
	const struct dp_expr *by; /* cells for each value of this; or NULL */
	unsigned stack;           /* cells for each backtrace of at most so many frames; or 0 */
};
/* Cells of one probe, or of one of its keys. */
unsigned dp_answer_words(const struct dp_answer *answer);

struct dp_request { /* one probe to place */
	uint64_t site;
	uint16_t probe; /* index, goes into the records */
	uint64_t lost;  /* address in the target of its struct dp_lost */
	uint64_t hits;  /* address in the target of the 64-bit word that DP_FACT_HITS counts in; 0: it cannot be asked for */
	const struct dp_text *text;
	const struct dp_fields *fields;
	const struct dp_expr *when; /* or NULL */
	unsigned tactics;           /* bit set of enum dp_tactic that may be used; 0 = DP_TACTICS_JUMPS */
	/*
	 * Addresses in the target of 32-bit words, 0 = none: while one of them holds 0, a hit does nothing but look (before the
	 * condition). One is the control page's gate, one LTTng's own (a tracepoint's state).
	 */
	uint64_t gate[2];
	uint64_t event; /* for struct dp_probe_desc */
	/*
	 * Not 0: no record, no condition; the stub calls this address (C ABI, no arguments, vector state preserved by the callee) and goes
	 * on. Such requests have `probe` DP_NO_PROBE and may have NULL fields.
	 */
	uint64_t hook;
	/*
	 * Not 0: the address of the `syscall` instruction that `hook` is for, the site's own or one that only straight code leads to from there
	 * (dp_hook_place()). The hook gets the registers in front of it (struct dp_regs *), and returns whether it has made the call.
	 */
	uint64_t syscall;
	bool any_call; /* the call's number is not known: the hook is called for those that it is for */
	const struct dp_answer *answer; /* or NULL: a record */
	/*
	 * Not 0: a number that the entry and the returns of one function have in common, at most DP_PAIR_MAX. The stub with `enters` notes
	 * when the call began and does nothing else. One without finds that call by its stack address, and then knows DP_FACT_DURATION;
	 * a hit whose entry is not known is lost (struct dp_answer_loss), one that took less than `slower` ns does nothing.
	 */
	uint16_t pair;
	bool enters;
	bool only_paired; /* a hit whose entry is not known is none of this probe's, and no loss */
	uint64_t slower;
};
#define DP_PAIR_MAX 65535u

struct dp_planner; /* collects stubs, springboards and the bytes they occupy; refuses overlaps of sites */
struct dp_error *dp_planner_create(struct dp_space *space, const struct dp_runtime *runtime, struct dp_planner **ret) DP_MUST_CHECK;
struct dp_planner *dp_planner_destroy(struct dp_planner *planner);
/*
 * Bytes that change or are relied upon already, of probes that stand in the target: no new jump may change any of them, nor rely upon
 * the first `changed` ones.
 */
struct dp_error *dp_planner_occupy(struct dp_planner *planner, uint64_t addr, uint8_t changed, uint8_t len) DP_MUST_CHECK;
/*
 * Tries the allowed tactics in the order of the enum; the first that fits. Where none does because of others' plans, those around the
 * site are taken out and all placed anew; traps come last of all. On refusal (DP_TAG_TOO_SHORT, UNDECODABLE, UNRELOCATABLE, NO_SPACE,
 * OVERLAP, ...) the planner and its space are as before. *ret is the plan as of now: a later request may make the planner place this
 * one in another way. What `request` points to must live as long as the planner.
 *
 * A site that has a probe already: the new one's stub runs first, then the older one's. Its plan comes later, with the older one's
 * bytes as old_bytes; the bytes are the same before and after where a springboard leads to the stubs.
 */
struct dp_error *dp_planner_add(struct dp_planner *planner, const struct dp_request *request, struct dp_plan *ret) DP_MUST_CHECK;
/*
 * All plans that stand, evicted instructions among them, in the order in which they have to be written; taking them out goes the other way
 * round. At most DP_PLANS_PER_REQUEST for each request. Owned by the planner, valid until the next call that adds.
 */
size_t dp_planner_plans(struct dp_planner *planner, const struct dp_plan **ret);
#define DP_PLANS_PER_REQUEST 3u

struct dp_hook_place { /* where a request with `syscall` could stand */
	uint64_t site; /* 0: the system call is none of those that the agent serves */
	uint64_t other; /* a second choice, or 0 */
	uint64_t syscall;
	bool any; /* its number is not known before it runs */
};
/*
 * What the bytes 0f 05 at `addr` are, in the function that `text` names: no instruction, a call that needs no hook, or where to put it.
 * DP_TAG_TRAP_UNSAFE if that cannot be told.
 */
struct dp_error *dp_hook_place(const struct dp_text *text, uint64_t addr, struct dp_hook_place *ret) DP_MUST_CHECK;

struct dp_syscall_place { /* where probes on a system call stand */
	uint64_t entry; /* the `syscall`, or the mov of its number right in front of it; 0: these bytes are no instruction */
	uint64_t exit;  /* right behind it */
	int32_t nr;     /* the call's number, proved to be the only one; or -1 */
	bool outside;   /* in no function that is known: then nothing is known of the bytes */
};
/* The same for probes: nothing needs to be known but where instructions begin. */
struct dp_error *dp_syscall_place(const struct dp_text *text, uint64_t addr, struct dp_syscall_place *ret) DP_MUST_CHECK;

struct dp_extent { /* whole pages to map r-x in the target, with their contents */
	uint64_t addr;
	uint8_t *bytes;
	size_t n;
};
/* Everything that has to be mapped; ascending, page-aligned, adjacent extents merged. Owned by the planner. */
size_t dp_planner_extents(struct dp_planner *planner, const struct dp_extent **ret);

/* A dp_unwind_follow (probes/probes.h): hand-written code of this architecture, read from its first instruction on. */
void dp_stack_effect(const uint8_t *code, size_t n, dp_unwind_each each, void *data);

#endif
