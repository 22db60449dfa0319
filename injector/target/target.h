/* SPDX-License-Identifier: MIT */
/* Declarations that the files of injector/ share about one target. The public interface is injector/injector.h. */
#ifndef DP_INJECTOR_TARGET_TARGET_H
#define DP_INJECTOR_TARGET_TARGET_H

#include "injector/target/budget.h"
#include "injector/injector.h"
#include "injector/target/installation.h"
#include "injector/tracee/proc/limits.h"
#include "injector/park.h"
#include "injector/target/seen.h"
#include "injector/tracee/tracee.h"

#include <sched.h>
#include <signal.h>

#define DP_PAGE            UINT64_C(4096)
#define DP_FREEZE_LIMIT_NS UINT64_C(2000000) /* decision 8: 2 ms, else release and try again */

static inline uint64_t dp_page_down(uint64_t v)
{
	return v & ~(DP_PAGE - 1);
}

static inline uint64_t dp_page_up(uint64_t v)
{
	return dp_page_down(v + DP_PAGE - 1);
}

struct dp_traps { /* trap.c */
	bool wanted;
	bool faults;      /* SIGSEGV and similar signals are handled as well */
	bool later;       /* not during the installation, but when it becomes safe */
	bool waits;       /* the hooks are installed, the handler is not */
	char why[256];    /* why the handler is not installed, or empty */
	pid_t in_way;     /* the thread that prevented it last, and where; 0: no particular one */
	uint64_t in_way_pc, in_way_sp;
	uint64_t held_ns; /* the longest hold that arming took */
	uint64_t signals; /* signals that the handler takes once installed */
	struct dp_hook_place *hook;
	size_t nhooks;
	uint64_t handler, restorer, entry; /* in the target */
};

struct dp_priority { /* freeze_retry.c */
	int policy;
	struct sched_param param;
	sigset_t mask;
	bool raised;
};

/*
 * Cost of the failed attempts to stop all threads together. Each attempt has a time limit. Afterwards the threads run at least as
 * long as they were held.
 */
struct dp_freeze_retry { /* freeze_retry.c */
	uint64_t most_ns;              /* input: limit for holding threads in vain, per dp_freeze_with_retry(); 0: three seconds */
	uint64_t max_pause_ns; /* input: limit per attempt; 0: 2 ms, later up to 50. A removal may exceed it in the end. */
	uint64_t vain_ns, longest_ns;  /* held in vain: in total; longest attempt */
	uint64_t rested_ns;            /* pauses between attempts */
	unsigned vain;                 /* failed attempts that held a thread */
	int vain_removing;             /* failed attempts since the current removal began */
};

struct dp_cage { /* cage.c */
	uint64_t looked_ns;
	size_t next, next_child; /* thread and child to look at next */
	bool all;                /* a thread of the target was under a new filter */
	pid_t child;             /* a fork child was, or 0 */
};

struct dp_target {
	struct dp_process process;
	struct dp_freeze_retry patience;
	struct dp_target_options options;
	struct dp_image *image;
	char *maps; /* the text that `image` was made from */
	struct dp_launch *launch;
	int exit_fd;
	bool gone;
	int launch_status;
	bool launch_ended;
	int lock_fd; /* excludes other dynprobes (recover.c), or -1 */

	/* Probes that earlier tools left on purpose (recover.c). */
	struct dp_resident **resident;
	size_t nstanding;

	/* fit.c: options.ring_size and options.nslots hold the chosen values */
	size_t asked_ring; /* 0: no size was requested */
	unsigned asked_slots;
	struct dp_resource_limits limits;
	struct dp_need need;
	struct dp_budget budget;
	bool ahead;              /* all pages are allocated in advance; rings do not grow */
	uint64_t borrowed;       /* bytes taken from the budget of `first` */
	struct dp_target *first; /* another group of the same process, whose budget this one shares; or NULL */

	/* layout.c */
	struct dp_runtime runtime;
	unsigned nprobes;
	uint64_t sink; /* address in the target of the struct dp_sink that the probes emit through, or 0 */
	struct dp_seen *primed; /* threads that can emit, or never will */

	struct dp_traps trap;
	struct dp_outer_ids *outer; /* outer.c: ids of threads in another pid namespace */
	struct dp_park_limits park;
	uint64_t park_stuck_ns; /* since when the place of a waiting hit has been occupied, or 0 */
	struct dp_cage cage;
	bool overwrites;  /* rings overwrite themselves (flight.c) */
	uint64_t skipped; /* abandoned reservations that overwriting has skipped */
	struct dp_cells_want cells;
	bool bases_differ; /* identity.c: all threads with an fs base have different ones */
	struct dp_installation in;
	/* room/tables.c: bytes used of the tables' region, the generation of the latest ones, and how often they were replaced */
	uint64_t tables_used;
	uint32_t tables_generation, tables_times;
	bool installed;
	enum { DP_AT_REST, DP_PLACING, DP_REMOVING } doing; /* for options.progress */
	int64_t remote_fd; /* the memfd in the target, between the two steps of mapping; or -1 */
	int memfd;         /* the tool's descriptor, or -1 */
	uint64_t file_size;
	uint8_t *data;     /* the tool's view of the data region */
	struct dp_drain *drain;
	uint64_t reaped_ns; /* when slots of dead threads were last reclaimed */
	struct dp_followers *followers; /* followers.c; NULL without options.follow */
	/* Where groups of earlier tools are, or were, in this process: its children have them there (recover.c, children.c). */
	struct dp_group_at *found;
	size_t nfound;
	size_t nfound_left; /* the first so many were removed when the target was opened */
	struct dp_leftover *leftover;
	size_t nleftovers;
	/* loads.c */
	uint32_t loads_seen; /* at the last check */
	bool hurried;
	struct dp_priority unhurried;
};

/* ---- room/tables.c ----------------------------------------------------------------------------------------------------- */

#define DP_TABLES_MAX (UINT64_C(64) << 20) /* addresses for unwind tables */
struct dp_unwind;
/* Bytes to map behind tables of `size` bytes, for those that will replace them; 0 where addresses or the file are limited. */
uint64_t dp_tables_room(const struct dp_target *t, uint64_t size);
/* The first tables were written. */
void dp_tables_began(struct dp_target *t, const struct dp_unwind *tables, uint64_t size);

/* ---- layout.c ---------------------------------------------------------------------------------------------------------- */

struct dp_data_layout { /* offsets inside the data region, bytes */
	uint64_t lost, sites, gates, slots, cache, manifest, cells, rings, size;
};
/* Size of the trap table; 0 without traps. */
uint64_t dp_trap_region_size(const struct dp_target *t);
/* Layout of the data region. It has one site per probe plus DP_OWN_SITES, so it is known before planning. */
struct dp_data_layout dp_data_layout(const struct dp_target *t);
uint64_t dp_private_size(const struct dp_target *t);
/* Offset there of the slots' memos, DP_UNWIND_MEMO bytes each; with options.need_unwind. */
uint64_t dp_private_memos(const struct dp_target *t);
/*
 * Written into the private region at once, after its first word: it identifies the region as ours if we are killed before the memfd
 * exists. The name is also what the memfd is made with.
 */
struct dp_private_note {
	char name[16];
	uint64_t size; /* of the region */
};
/* Chooses which regions a core file of the target includes. Call when their sizes are known. */
void dp_layout_cores(struct dp_installation *in, bool dump_ring);

/* ---- fit.c ---------------------------------------------------------------------------------------------------------------- */

#define DP_RING_LEAST (UINT64_C(16) << 10)
/* Chooses the size and number of the rings for t->nprobes probes. DP_TAG_LIMIT: no room for the requested size, or for any. */
struct dp_error *dp_target_fit(struct dp_target *t) DP_MUST_CHECK;

/* ---- aggregations.c ----------------------------------------------------------------------------------------------------------- */

/* Layout of a block, and in *size the size of all blocks; .head is not set. */
struct dp_aggs dp_aggs_layout(const struct dp_target *t, uint64_t *size);
/* What they need behind struct dp_agent: the calls in progress. */
uint64_t dp_aggs_private(const struct dp_target *t);
/* Rate of the time stamp counter: ns per tick, fixed point with 32 fractional bits. */
struct dp_error *dp_aggs_tick(uint64_t *ret) DP_MUST_CHECK;
struct dp_error *dp_ticks_of(uint64_t ns, uint64_t *ret) DP_MUST_CHECK;
void dp_aggs_init(struct dp_target *t);
/* Gives blocks of fork children that have ended to others, as of the last dp_followers_inspect(). */
void dp_aggs_reap(struct dp_target *t);

/* ---- followers.c ------------------------------------------------------------------------------------------------------------- */

/* With options.follow: fork children record from now on. Call it when the drain exists. */
struct dp_error *dp_followers_begin(struct dp_target *t) DP_MUST_CHECK;
struct dp_followers *dp_followers_destroy(struct dp_followers *f); /* accepts NULL */

/* ---- park.c: fills in the control page ------------------------------------------------------------------------------------- */

struct dp_error *dp_park_init(struct dp_target *t) DP_MUST_CHECK;

/* ---- full.c, flight.c: rings that are full -----------------------------------------------------------------------------------
 */

/* When the drain exists: what the options say. */
struct dp_error *dp_full_init(struct dp_target *t) DP_MUST_CHECK;
/* With each drain: looks for threads that must not wait any more. */
void dp_full_look(struct dp_target *t);
/* Lets waiting hits go on; none waits any more. */
void dp_full_leave(struct dp_target *t);
/* Ends the overwriting, for the last drain. */
struct dp_error *dp_flight_end(struct dp_target *t) DP_MUST_CHECK;

/* ---- identity.c ------------------------------------------------------------------------------------------------------------ */

/* Chooses how hits identify their thread, from one short freeze (or the launch's hold); DP_ID_TID if all else fails. */
struct dp_error *dp_identity_find(struct dp_target *t, enum dp_identity *identity, uint32_t *tid_offset) DP_MUST_CHECK;
/* Does the choice fit all of these threads? */
bool dp_identity_holds(const struct dp_target *t, const struct dp_freeze *f, enum dp_identity identity, uint32_t tid_offset);

/* ---- freeze_retry.c -------------------------------------------------------------------------------------------------------- */

/* For the time that threads are held: SCHED_FIFO if the kernel allows it, because the target waits for us, and no job control. */
void dp_priority_raise(struct dp_priority *old);
void dp_priority_restore(const struct dp_priority *old);
/*
 * Repeats dp_freeze_all() with a limit of 2 ms, later up to 50 (max_pause_ns), for t->patience.most_ns; adds up the cost there.
 */
struct dp_error *dp_freeze_with_retry(struct dp_target *t, struct dp_freeze *ret) DP_MUST_CHECK;
/* Sleeps at least as long as threads were held, and at least 10 ms; returns the time slept. */
uint64_t dp_freeze_retry_rest(uint64_t held_ns);

/* ---- each.c: threads stopped one after the other ---------------------------------------------------------------------------- */

/*
 * Visits every thread of the running process once, stopping each alone and briefly. `look` returns whether the thread is done;
 * one that is not, or that cannot be stopped now, is visited again in the next round. A round ends when every listed thread was
 * tried.
 */
struct dp_for_each_stopped {
	struct dp_seen *done;
	uint64_t held_ns; /* longest time that one thread was held */
	/*
	 * Optional: is a thread that sleeps in a system call done? It gets only tid, pc and stack pointer, and the thread is not
	 * held. If the answer is yes and the thread slept throughout, it is not stopped.
	 */
	bool (*asleep)(const struct dp_held *h, void *data);
	unsigned rounds;
	size_t listed; /* threads, in this round */
	bool enough;   /* `look` may set it: the round ends */
	bool met_all;  /* the listing of this round was complete, and all its threads are done or have ended */
};
typedef bool (*dp_for_each_stopped_fn)(struct dp_freeze *one, void *data);
/* *all: every thread of the process is done; all current threads were done before they were listed. */
struct dp_error *dp_for_each_stopped_round(struct dp_target *t, struct dp_for_each_stopped *each, dp_for_each_stopped_fn look, void *data, bool *all) DP_MUST_CHECK;
void dp_for_each_stopped_fini(struct dp_for_each_stopped *each);

/* ---- boot_sweep.c ---------------------------------------------------------------------------------------------------------- */

/* Removes boot code of killed tools from the text, once no thread can be in it. The next tool retries what remains. */
struct dp_error *dp_boot_sweep(struct dp_target *t) DP_MUST_CHECK;
/* The same for what this tool had to leave, if it had to. */
void dp_boot_sweep_own(struct dp_target *t);

/* ---- hold.c: checks to repeat whenever threads are held ------------------------------------------------------------------ */

/*
 * Is this still the program that we mapped into? DP_TAG_GONE if it called exec since: only the pid is the same then. Succeeds
 * while nothing is mapped.
 */
struct dp_error *dp_stopped_ours(struct dp_target *t) DP_MUST_CHECK;
/* The same check for an earlier tool's installation. */
struct dp_error *dp_stopped_holds(struct dp_target *t, const struct dp_installation *in) DP_MUST_CHECK;
/* DP_TAG_SHADOW_STACK if the process has a user shadow stack: displaced calls push their return address themselves. */
struct dp_error *dp_refuse_shadow_stack(const struct dp_target *t) DP_MUST_CHECK;
/* Finds a living thread and reads the process through it from now on; false if there is none. */
bool dp_pick_living(struct dp_target *t);
/* DP_TAG_DISPATCH if a thread has its system calls dispatched to the program (tracee/borrow/dispatch.c). May stop threads one by one. */
struct dp_error *dp_dispatch_check(struct dp_target *t) DP_MUST_CHECK;
/*
 * filters.c. Reads the seccomp filters of all threads, which are stopped one by one (not with options.look). DP_TAG_SECCOMP, with
 * the call and the action, if they do not let through what borrowed threads call, unless options.allow_seccomp.
 */
struct dp_error *dp_filters_check(struct dp_target *t) DP_MUST_CHECK;
/* The call by which a thread says whether it may read the time stamp counter (tsc.c); it writes to the private region. */
struct dp_step dp_tsc_step(const struct dp_target *t);
/* DP_TAG_TSC if the borrowed thread, which has made that call, must not. */
struct dp_error *dp_tsc_check(struct dp_target *t, const struct dp_borrow *b, const struct dp_step *step) DP_MUST_CHECK;
/* Borrows a thread of the freeze. DP_TAG_SECCOMP if it has come under a filter that we may not suspend. */
struct dp_error *dp_borrow_held(struct dp_target *t, struct dp_freeze *f, struct dp_borrow **ret) DP_MUST_CHECK;
/* Why probes cannot be installed or removed while the threads run, or NULL if they can. */
const char *dp_not_live(const struct dp_target *t);
#define DP_LEASE_NS UINT64_C(150000)
/* Borrows a thread while the others run. DP_TAG_NO_THREAD if the thread is under a seccomp filter. */
struct dp_error *dp_borrow_one(struct dp_target *t, uint64_t limit_ns, struct dp_borrow **ret) DP_MUST_CHECK;

/*
 * replace_map.c. End of the writable memory around `addr`, or `most` if that comes first or the kernel cannot tell (before Linux 6.11). A stack
 * ends there at the latest: readable memory beyond it is mostly a library.
 */
uint64_t dp_writable_end(const struct dp_process *p, uint64_t addr, uint64_t most);

/* ---- loader.c -------------------------------------------------------------------------------------------------------------- */

/* The agent's bytes, and its entry points relative to the first byte. */
struct dp_agent_image {
	uint64_t cells, keyed, stacked, stacked_apart, stacked_done, decimal;
	const uint8_t *bytes;
	size_t size;
	uint64_t acquire, read, string, backtrace, apart, park, finish, ask;
	uint64_t call, loader; /* of the LTTng sink */
	uint64_t trap, trap_restorer, trap_syscall, trap_state, trap_called;
	uint64_t loaded, loaded_state; /* for loaded libraries (agent/loaded.S) */
};
struct dp_error *dp_agent_image_load(struct dp_agent_image *ret) DP_MUST_CHECK;

/* ---- descriptor.c ------------------------------------------------------------------------------------------------------------ */

/*
 * Makes a descriptor in the target with the call `make`, and moves it to a high number, which the program does not use. `room`:
 * as for dp_remote_script(). After an error *fd is the open descriptor, or -1.
 */
#define DP_OPENED (UINT64_C(1) << 63) /* as an argument of a call behind it: the descriptor */
struct dp_opening {
	const char *name, *name_before;
	struct dp_step make, before; /* before.nr 0: none. Both must succeed. */
	/* Calls behind it, in the same script if possible. The first that does not return `want` ends them. */
	struct dp_step *behind;
	size_t nbehind;
};
struct dp_error *dp_remote_open(struct dp_borrow *b, uint64_t room, struct dp_opening *o, int64_t *fd) DP_MUST_CHECK;

/*
 * ---- mapping.c: remote mappings
 * ------------------------------------------------------------------------------------------------
 */

/*
 * Two steps, so that threads need not be held for both at once. dp_map_begin() maps the private region and makes the memfd, which
 * the tool opens. dp_map_finish() maps every region of t->in and closes the target's descriptor. A failure undoes what was made.
 */
struct dp_error *dp_map_begin(struct dp_target *t, struct dp_borrow *b, uint64_t file_size) DP_MUST_CHECK;
struct dp_lease { /* of a borrowed thread while the others run */
	uint64_t until_ns;
	bool more; /* out: time ran out; call again with another thread */
};
/* `lease` may be NULL: no time limit. */
struct dp_error *dp_map_finish(struct dp_target *t, struct dp_borrow *b, struct dp_lease *lease) DP_MUST_CHECK;
/* Closes the target's descriptor after a failure between the two steps. */
struct dp_error *dp_map_close(struct dp_target *t, struct dp_borrow *b) DP_MUST_CHECK;
/*
 * Unmaps every mapped region. Returns the first error, but still tries the others. The data region leads to all the others, so it
 * goes last, in one step with the private region after it.
 */
struct dp_error *dp_unmap_all(struct dp_installation *in, struct dp_borrow *b, struct dp_lease *lease) DP_MUST_CHECK;

/* ---- resident.c: probes that an earlier tool left on purpose --------------------------------------------------------------- */

/*
 * The resident site at exactly this address over which a new one with the same file bytes can be written, or NULL. If several are
 * stacked there, it is the one whose bytes are there now, or were last.
 */
struct dp_placed *dp_resident_below(struct dp_target *t, const struct dp_installation *except, const struct dp_placed *p);
/* Do the bytes `now`, found at the address of `p`, belong to another group? */
bool dp_resident_claims(struct dp_target *t, const struct dp_installation *except, const struct dp_placed *p, const uint8_t *now);

/*
 * `done` of `of` text pages or sites are processed (0 of 0: no news). DP_TAG_INTERRUPTED to abort. Call while no thread is held.
 */
struct dp_error *dp_target_progress(const struct dp_target *t, size_t done, size_t of) DP_MUST_CHECK;
/* Logs one line with -v. */
void dp_target_log(const struct dp_target *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
