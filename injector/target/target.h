/* SPDX-License-Identifier: MIT */
/* What the files of injector/ share about one target. The public face is injector/injector.h. */
#ifndef DP_INJECTOR_TARGET_H
#define DP_INJECTOR_TARGET_H

#include "injector/target/budget.h"
#include "injector/injector.h"
#include "injector/tracee/proc/limits.h"
#include "injector/ring/park.h"
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

/* One range that dynprobe maps in the target. */
struct dp_region {
	uint64_t addr, size; /* pages */
	uint64_t offset;     /* in the memfd */
	int prot;
	bool mapped;
	bool copied; /* each process has its own copy: a fork child's is not its parent's */
	bool no_core; /* to be left out of core files, and the kernel has not been told yet */
};

/* One patched place, as the tool knows it. */
struct dp_placed {
	uint64_t addr;
	uint16_t probe; /* or DP_NO_PROBE */
	uint8_t len;
	uint8_t nchanged; /* of these, those in front that differ; the jump relies upon the rest */
	enum dp_site_state state;
	bool written; /* the new bytes are in the target's text */
	/* Of probes that an earlier tool left: */
	bool announced; /* it may be superseded */
	bool covered;   /* another group's bytes stand here, and these ones below it */
	bool changed;   /* somebody else's bytes stand here */
	bool guarded;   /* DP_SITE_GUARDED */
	bool calls_out; /* its stub does, or may (see dp_installation) */
	bool by_write;  /* its bytes were given back by a write: the page is this process's own copy */
	uint8_t old_bytes[16], new_bytes[16];
	uint64_t stub, stub_end;
	uint8_t npairs;
	struct dp_pc_pair pair[DP_PLAN_PAIRS];
	struct dp_site_entry *entry; /* in the shared site table, or NULL */
	uint64_t entry_at;           /* without a view of the table: its address in the target, or 0 (not ours to write) */
};

/* What stands in a target: made by install.c or found by recover.c, taken out by remove.c. */
struct dp_installation {
	struct dp_region private; /* anonymous */
	bool foreign;             /* a fork child's leftovers: its private region reads as zero */
	bool calls_out;           /* stubs call code that is not ours: LTTng's, or what a thread's start needs (quiesce_frames.c) */
	uint64_t sink;            /* the struct dp_sink that they emit through, or 0 */
	struct dp_frames *frames; /* made for the time of a removal: with calls_out, or when it has to wait (quiesce_frames.h) */
	struct dp_code_index *index; /* or NULL (code_index.h) */
	struct dp_sights *sights; /* or NULL (sights.h) */
	uint64_t trap;            /* struct dp_trap, or 0 */
	bool live;                /* the private region is filled: as long as it is there, it is this process's */
	struct dp_region *region; /* memfd mappings: text, data, tables, extents */
	size_t nregions;
	struct dp_placed *placed;
	size_t nplaced;
};

enum { DP_REGION_TEXT, DP_REGION_DATA, DP_REGION_TABLES, DP_REGION_TRAP, DP_REGION_FIXED };

struct dp_traps { /* trap.c */
	bool wanted;
	bool faults;      /* SIGSEGV and its like are taken as well */
	bool later;       /* not at the installation, but when there is a moment for it */
	bool waits;       /* the hooks stand, the handler does not */
	char why[256];    /* why it does not, or empty */
	pid_t in_way;     /* the thread that was in the way last, and where; 0: none in particular */
	uint64_t in_way_pc, in_way_sp;
	uint64_t held_ns; /* the longest hold that it took */
	uint64_t signals; /* that are taken, once the handler stands */
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
 * What it cost to stop all threads together: tries that came to nothing. Each is bounded, and followed by a rest as long as it has
 * held somebody, at least.
 */
struct dp_freeze_retry { /* freeze_retry.c */
	uint64_t most_ns;              /* given: so long they may hold threads in all, at each dp_freeze_patiently(); 0: three seconds */
	uint64_t max_pause_ns;         /* given: so long a try may last; 0: 2 ms, later up to 50. Probes that are to go may need longer in the end. */
	uint64_t vain_ns, longest_ns;  /* so long they did; the longest of them */
	uint64_t rested_ns;            /* between them */
	unsigned vain;                 /* how many held somebody */
	int vain_removing;             /* tries since the present removal began */
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
	int lock_fd; /* one dynprobe at a time (recover.c), or -1 */

	/* What earlier tools left on purpose (recover.c). */
	struct dp_resident **standing;
	size_t nstanding;

	/* fit.c: options.ring_size and options.nslots are what was chosen */
	size_t asked_ring; /* 0: not asked for */
	unsigned asked_slots;
	struct dp_limits limits;
	struct dp_need need;
	struct dp_budget budget;
	bool ahead;              /* all pages exist before they are used; rings do not grow */
	uint64_t borrowed;       /* bytes of that one's */
	struct dp_target *first; /* another group of the same process, whose budget this one shares; or NULL */

	/* layout.c */
	struct dp_runtime runtime;
	unsigned nprobes;
	uint64_t sink; /* address in the target of the struct dp_sink that the probes will emit through, or 0 */
	struct dp_seen *primed; /* threads that can emit, or never will */

	struct dp_traps trap;
	struct dp_park_limits park; /* hits 0: none waits */
	struct dp_park_watch park_watch;
	struct dp_cells_want cells;
	bool bases_differ; /* identity.c: no two threads have the same base of fs, but for those that have none */
	struct dp_installation in;
	bool installed;
	enum { DP_AT_REST, DP_PLACING, DP_REMOVING } doing; /* for options.progress */
	int64_t remote_fd; /* the target's descriptor between the two steps of mapping, or -1 */
	int memfd;         /* ours, or -1 */
	uint64_t file_size;
	uint8_t *data;     /* our view of the data region */
	struct dp_drain *drain;
	uint64_t reaped_ns; /* when dead threads' slots were last looked for */
	/* loads.c */
	uint32_t loads_seen; /* as of the last look */
	bool hurried;
	struct dp_priority unhurried;
};

/* ---- layout.c ---------------------------------------------------------------------------------------------------------- */

struct dp_data_layout { /* offsets inside the data region, bytes */
	uint64_t lost, sites, gates, slots, cache, manifest, cells, rings, size;
};
/* Where things are in the data region; the sites are one per probe and DP_OWN_SITES, so that this is known before planning. */
struct dp_data_layout dp_data_layout(const struct dp_target *t);
/* Chooses what of the mapped regions goes into a core file of the target; after their sizes are known. */
void dp_layout_cores(struct dp_installation *in);

/* ---- fit.c ---------------------------------------------------------------------------------------------------------------- */

#define DP_RING_LEAST (UINT64_C(16) << 10)
/* Chooses size and number of the rings for t->nprobes probes. DP_TAG_LIMIT if there is no room for what was asked, or at all. */
struct dp_error *dp_target_fit(struct dp_target *t) DP_MUST_CHECK;

/* ---- answers.c ----------------------------------------------------------------------------------------------------------- */

/* Where things are in a block, and what all of them take; .head is not filled in. */
struct dp_answers dp_answers_layout(const struct dp_target *t, uint64_t *size);
/* Of the time stamp counter: ns, 32 bits behind the point. */
struct dp_error *dp_answers_tick(uint64_t *ret) DP_MUST_CHECK;
void dp_answers_init(struct dp_target *t);

/* ---- park.c: fills in the control page ---------------------------------------------------------------------------------------- */

struct dp_error *dp_park_init(struct dp_target *t) DP_MUST_CHECK;

/* ---- identity.c --------------------------------------------------------------------------------------------------------------
 */

/* Chooses how threads are recognised, from one short freeze (or the launch's hold). Falls back to DP_ID_TID, never fails for
 * that. */
struct dp_error *dp_identity_find(struct dp_target *t, enum dp_identity *identity, uint32_t *tid_offset) DP_MUST_CHECK;
/* Does the choice hold for all of these threads? */
bool dp_identity_holds(const struct dp_target *t, const struct dp_freeze *f, enum dp_identity identity, uint32_t tid_offset);

/* ---- freeze_retry.c
 * --------------------------------------------------------------------------------------------------------------------- */

/* SCHED_FIFO for as long as threads are held, where the kernel allows it (the target waits for us), and no job control; and back.
 */
void dp_priority_raise(struct dp_priority *old);
void dp_priority_restore(const struct dp_priority *old);
/*
 * dp_freeze_all() with a limit of 2 ms, later of up to 50 (see max_pause_ns), again and again until t->patience.most_ns. What it took is
 * added to the rest of t->patience.
 */
struct dp_error *dp_freeze_patiently(struct dp_target *t, struct dp_freeze *ret) DP_MUST_CHECK;
/* Rests as long as somebody was held, and 10 ms at least; says for how long. */
uint64_t dp_freeze_retry_rest(uint64_t held_ns);

/* ---- each.c: threads stopped one after the other ---------------------------------------------------------------------------- */

/*
 * Looks at every thread of the running process once, stopped alone and shortly. `look` says whether the thread is done; one that is not, or
 * that cannot be stopped now, is visited again in the next round. A round is over when all that were listed were tried.
 */
struct dp_each {
	struct dp_seen *done;
	uint64_t held_ns; /* longest time that a thread was held */
	/*
	 * May be set: is a thread that sleeps in a system call done? Asked with its tid, pc and stack pointer alone, while nobody
	 * holds it. If so, and if it has slept all the time, it is not stopped.
	 */
	bool (*asleep)(const struct dp_held *h, void *data);
	unsigned rounds;
	size_t listed; /* threads, in this round */
	bool enough;   /* may be set by `look`: the round ends */
	bool met_all;  /* of this round's listing, which was complete, every thread is done or has ended */
};
typedef bool (*dp_each_fn)(struct dp_freeze *one, void *data);
/* *all: every thread of the process is done: those that it has now were so before they were listed. */
struct dp_error *dp_each_round(struct dp_target *t, struct dp_each *each, dp_each_fn look, void *data, bool *all) DP_MUST_CHECK;
void dp_each_fini(struct dp_each *each);

/* ---- boot_sweep.c ---------------------------------------------------------------------------------------------------------- */

/* Takes out borrower's code that killed tools left in the text, once no thread can be in it; what stays is tried again by the next tool. */
struct dp_error *dp_boot_sweep(struct dp_target *t) DP_MUST_CHECK;

/* ---- hold.c: what has to be asked anew whenever threads are held --------------------------------------------------------- */

/*
 * Is this still the program that we mapped into? DP_TAG_GONE if it called exec meanwhile: the pid is the same, nothing else is.
 * True as well while nothing is mapped.
 */
struct dp_error *dp_stopped_ours(struct dp_target *t) DP_MUST_CHECK;
/* The same for what an earlier tool left. */
struct dp_error *dp_stopped_holds(struct dp_target *t, const struct dp_installation *in) DP_MUST_CHECK;
/* DP_TAG_SHADOW_STACK if the kernel checks this process's returns: displaced calls push their return address by hand. */
struct dp_error *dp_refuse_shadow_stack(const struct dp_target *t) DP_MUST_CHECK;
/* Looks for a thread that lives and looks at the process through it from now on; false if there is none. */
bool dp_pick_living(struct dp_target *t);
/* DP_TAG_DISPATCH if a thread has its system calls dispatched to the program (dispatch.c). Stops threads one by one, if need be. */
struct dp_error *dp_dispatch_check(struct dp_target *t) DP_MUST_CHECK;
/* DP_TAG_TSC if the borrowed thread must not read the time stamp counter (tsc.c). Needs the private region. */
struct dp_error *dp_tsc_check(struct dp_target *t, struct dp_borrow *b) DP_MUST_CHECK;
/* Where a borrowed thread finds what it is to do (dp_remote_script()): behind the agent's state in the private region; or 0. */
uint64_t dp_script_room(const struct dp_installation *in);
/* Borrows a thread of the freeze; refuses DP_TAG_SECCOMP if a held thread has come under a filter that we may not suspend. */
struct dp_error *dp_borrow_held(struct dp_target *t, struct dp_freeze *f, struct dp_borrow **ret) DP_MUST_CHECK;
/* May nobody be held? NULL if so, else why not. Without a group of ours in the process that is for options.live to say. */
const char *dp_not_live(const struct dp_target *t);
#define DP_LEASE_NS UINT64_C(150000)
/* Borrows a thread of the running process, the others go on; under a filter: DP_TAG_NO_THREAD. */
struct dp_error *dp_borrow_one(struct dp_target *t, uint64_t limit_ns, struct dp_borrow **ret) DP_MUST_CHECK;

/* ---- loader.c
 * ------------------------------------------------------------------------------------------------------------------ */

/* The agent as plain bytes and its entry points, relative to the first byte. */
struct dp_agent_image {
	uint64_t cells, keyed, stacked, stacked_done;
	const uint8_t *bytes;
	size_t size;
	uint64_t acquire, read, string, backtrace, park, finish, ask;
	uint64_t call, loader; /* of the LTTng sink */
	uint64_t trap, trap_restorer, trap_syscall, trap_state, trap_called;
	uint64_t loaded, loaded_state; /* of waiting for libraries (agent/loaded.S) */
};
struct dp_error *dp_agent_image_load(struct dp_agent_image *ret) DP_MUST_CHECK;

/* ---- descriptor.c ------------------------------------------------------------------------------------------------------------ */

/*
 * Makes a descriptor in the target by the call `make`, and moves it to a high number, out of the program's way. `room` as for
 * dp_remote_script(). After an error *fd is the descriptor that is open, if any, else -1.
 */
struct dp_error *dp_remote_open(struct dp_borrow *b, uint64_t room, const char *name, const struct dp_step *make,
				int64_t *fd) DP_MUST_CHECK;

/* ---- mapping.c: remote mappings
 * ---------------------------------------------------------------------------------------------------- */

/*
 * In two steps, so that threads need not be held for both at once: the private region and the memfd, which is opened here; then
 * every region of t->in, and the target's descriptor is closed. On failure what was made so far is unmade.
 */
struct dp_error *dp_map_begin(struct dp_target *t, struct dp_borrow *b, uint64_t file_size) DP_MUST_CHECK;
struct dp_lease { /* of a thread that works while the others run */
	uint64_t until_ns;
	bool more; /* out: not all was done by then; to be called again with another thread */
};
/* `lease` may be NULL: all at once. */
struct dp_error *dp_map_finish(struct dp_target *t, struct dp_borrow *b, struct dp_lease *lease) DP_MUST_CHECK;
/* Closes the target's descriptor if one of the steps failed between. */
struct dp_error *dp_map_close(struct dp_target *t, struct dp_borrow *b) DP_MUST_CHECK;
/*
 * Unmaps every region that is mapped; the first failure is reported, the others are still tried. The data region, which leads to all
 * else, goes last, in one step with the private region behind it.
 */
struct dp_error *dp_unmap_all(struct dp_installation *in, struct dp_borrow *b, struct dp_lease *lease) DP_MUST_CHECK;

/* ---- remove.c
 * -------------------------------------------------------------------------------------------------------------------------- */

/* Restores, waits until no thread is in a stub, unmaps. Works for t->in and for whatever an earlier tool left. */
struct dp_error *dp_installation_remove(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report) DP_MUST_CHECK;
/* Restores at once the sites with chosen[i], and no more: their stubs stay for whoever is inside. */
struct dp_error *dp_installation_restore(struct dp_target *t, struct dp_installation *in, const bool *chosen,
					 struct dp_remove_report *report) DP_MUST_CHECK;
void dp_installation_fini(struct dp_installation *in);
/* Are its bytes in the text, and others not to be put there? */
bool dp_placed_stands(const struct dp_placed *p);
/* Is `q` a short jump to one that is hidden in the bytes of `p`? Then `p` has to stand as long as `q` does, far as they are apart. */
bool dp_placed_leads_into(const struct dp_placed *q, const struct dp_placed *p);
/* Notes what has become of a site, here and in the table that later tools read. */
void dp_placed_mark(struct dp_target *t, struct dp_placed *p, enum dp_site_state state);
/* What the file has at site i: its old bytes may be what an earlier one of the same group has written. */
void dp_placed_file_bytes(const struct dp_installation *in, size_t i, uint8_t bytes[16]);

/* ---- quiesce.c: may the code be taken away?
 * ----------------------------------------------------------------------------------------------- */

/*
 * Where the memory that can be written, and in which `addr` lies, ends; `most` if that is not before it, or the kernel does not say (until
 * Linux 6.11). No stack goes on behind: what is readable there is a library's, mostly.
 */
uint64_t dp_writable_end(const struct dp_process *p, uint64_t addr, uint64_t most);
/* Is `pc` inside one of our executable regions? */
bool dp_installation_holds(const struct dp_installation *in, uint64_t pc);
/*
 * With all threads held: moves those that stand in one of its stubs at a point with an equivalent in the program (dp_pc_pair), and says
 * whether any other stands in our code, or has a signal frame that will return into it. `why` names the thread.
 */
bool dp_quiesce(struct dp_target *t, const struct dp_installation *in, struct dp_freeze *f, char why[128]);
/* The same of a thread that nobody holds: its registers but rip and rsp are not known. False too where it would have to be stopped to say. */
bool dp_quiesce_asleep(struct dp_target *t, const struct dp_installation *in, const struct dp_held *h);
/* Moves a thread that stands at one of pair[].stub, which are ascending. */
void dp_move_to_original(struct dp_held *h, const struct dp_pc_pair *pair, size_t n);
/* Does it have a signal frame that returns to one of pair[].stub? Without `frames` (quiesce_frames.h) also if its handler may have returned. */
bool dp_returns_to(struct dp_target *t, const struct dp_frames *frames, const struct dp_held *h, const struct dp_pc_pair *pair, size_t n);
/* Of a thread that nobody holds: is it at none of them, and will it return to none? */
bool dp_stays_away(struct dp_target *t, const struct dp_held *h, const struct dp_pc_pair *pair, size_t n);
/* For which of the `n` addresses, ascending, does a thread of `f` stand there, or hold a signal frame or return address? (windows) */
void dp_stands_at(struct dp_target *t, const struct dp_freeze *f, const uint64_t *addr, size_t n, bool *hit);

/* ---- recover.c
 * ------------------------------------------------------------------------------------------------------------------------------
 */

/* Takes the lock that keeps two dynprobes apart from opening to closing, or refuses with DP_TAG_LOCKED. */
struct dp_error *dp_lock(struct dp_target *t) DP_MUST_CHECK;
/* Refuses with DP_TAG_LOCKED if a living dynprobe serves the process; removes what a dead one, or a fork from a probed parent,
 * left. */
struct dp_error *dp_recover(struct dp_target *t) DP_MUST_CHECK;

/* ---- resident.c: probes that an earlier tool left on purpose ---------------------------------------------------------------- */

/*
 * The left probes' site at exactly this address that a new one with these bytes in the file could be put over, or NULL. Several may
 * claim a place one above the other: this is the one whose bytes stand there, or stood there last.
 */
struct dp_placed *dp_resident_below(struct dp_target *t, const struct dp_installation *except, const struct dp_placed *p);
/* Do the bytes of `p` that stand at its address, `now`, belong to another group? */
bool dp_resident_claims(struct dp_target *t, const struct dp_installation *except, const struct dp_placed *p, const uint8_t *now);

/* So many of so many pages of text, or sites, are done (0 of 0: as before); DP_TAG_INTERRUPTED if it is to be given up. No thread is held. */
struct dp_error *dp_target_progress(const struct dp_target *t, size_t done, size_t of) DP_MUST_CHECK;
/* A line for -v. */
void dp_target_log(const struct dp_target *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
