/* SPDX-License-Identifier: MIT */
/*
 * injector/: the target. Opens it, borrows its threads, maps the agent and the stubs into it, patches its text in one
 * transaction, drains its rings, and removes everything again. Uses ptrace and /proc; no DWARF, no Lua.
 *
 * The life of a target; each step either completes or leaves the target as it was:
 *
 *   open / launch  -> checks (may it be traced, can it be patched?), no change at all
 *   prepare        -> layout: where everything will be in the target (dp_runtime for the emitter); still no change
 *   install        -> one transaction: map, copy, verify bytes, write; the first time with all threads held
 *   drain, watch   -> called every few milliseconds; no thread is held
 *   remove         -> restore the bytes, wait until no thread is in a stub, unmap; no freeze
 *   close
 *
 * No thread stays ptrace-attached between these calls. If the tool is killed inside any of them, borrowed threads restore
 * themselves (see borrow.c), and a later dynprobe finds the site table in the target and cleans up (recover.c).
 */
#ifndef DP_INJECTOR_INJECTOR_H
#define DP_INJECTOR_INJECTOR_H

#include "agent/abi.h"
#include "base/error.h"
#include "injector/ring/hits.h"
#include "injector/ring/loss.h"
#include "trampoline/trampoline.h"

#include <sys/types.h>

struct dp_target; /* opaque */

#define DP_MAX_PAUSE_NS UINT64_C(5000000)

struct dp_target_options {
	bool allow_seccomp; /* --allow-seccomp */
	bool need_unwind;   /* map unwind tables */
	bool look;          /* inspect only: remove nothing that is found */
	bool follow;        /* fork children record (followers.c) */
	bool gates;         /* stubs have gates, and there is room for a manifest: for resident probes */
	size_t ring_size;   /* bytes per thread, a power of two >= 16 KiB; 0 = 1 MiB */
	uint64_t block_ns;  /* how long a hit may wait where its ring is full; 0: it is lost at once */
	bool overwrite;     /* rings keep the newest records, and are read in the end (dp_target_drain() with `last`) */
	bool dump_ring;     /* with gates: core files of the target include the rings (resident/dumped.h) */
	uint64_t max_memory; /* bytes that all rings may use; 0: a share of what the process may still use */
	uint64_t max_wait_ns; /* of a thread that loads a library for this tool (loads.h); 0: DP_LOADED_SECONDS */
	uint64_t max_pause_ns; /* longest hold of all threads together (DP_TAG_UNSTOPPABLE); 0: DP_MAX_PAUSE_NS */
	unsigned nslots;    /* most threads that can record at once; 0 = 1024 */
	void (*verbose)(const char *line, void *data); /* -v progress, or NULL */
	void *verbose_data;
	/*
	 * Called now and then while sites are placed or removed, when no thread is held: `done` of `of` sites are done. If it
	 * returns false while they are placed, dp_target_install() gives up (DP_TAG_INTERRUPTED). May be NULL.
	 */
	bool (*progress)(bool removing, size_t done, size_t of, void *data);
	void *progress_data;
};

/*
 * Checks everything that can be checked without a stop and without a change, and refuses by tag: NO_PROCESS, ZOMBIE,
 * KERNEL_THREAD, WRONG_ARCH, PERMISSION (naming the rule and the fix), TRACED (naming the tracer), LOCKED, HUGETLB, SECCOMP
 * (threads under a filter are stopped one by one to read it).
 * `pid` may be any thread of the group. First removes what a killed dynprobe left.
 */
struct dp_error *dp_target_open(pid_t pid, const struct dp_target_options *options, struct dp_target **ret) DP_MUST_CHECK;
/*
 * Starts argv[0] (found by PATH) and holds it where everything it links against is mapped and relocated, and none of its own code
 * has run: the executable's entry point (for static executables right after exec). The target waits there until the first install
 * or dp_target_release(). DP_TAG_EXEC if the command cannot be started (err->sys = errno of exec). SECCOMP as above: filters are
 * inherited.
 */
struct dp_error *dp_target_launch(char *const argv[], const struct dp_target_options *options, struct dp_target **ret) DP_MUST_CHECK;
/*
 * Probes of no use that dp_target_open() found: of a tool that was killed, or inherited by fork(). It has removed them, unless it was
 * to inspect only. Owned by the target.
 */
struct dp_leftover {
	bool forked;
	pid_t fork_of;      /* the process that the probes were installed in; 0: unknown */
	bool fork_of_lives;
	pid_t tool;         /* the dynprobe that is probing it; 0: none */
	size_t places;      /* of the text that were changed */
	uint64_t bytes;     /* mapped */
	bool removed;
};
const struct dp_leftover *dp_target_leftovers(const struct dp_target *t, size_t *n);
/* Lets a launched target run from where dp_target_launch() holds it. */
struct dp_error *dp_target_release(struct dp_target *t) DP_MUST_CHECK;
/* Frees the target; removes probes that are still installed. Kills a launched command that was never released. Accepts NULL. */
struct dp_target *dp_target_close(struct dp_target *t);

/* Is the target under a seccomp filter that does not let all system calls of hits through? Then they must make none. */
bool dp_target_filtered(const struct dp_target *t);
/* Why: which call the filter forbids, or that it could not be read; NULL if hits may make their calls. */
const char *dp_target_filter_rule(const struct dp_target *t);
/* With options.look: is it under a filter that was not read, and is assumed to let all calls through? */
bool dp_target_filter_assumed(const struct dp_target *t);
pid_t dp_target_pid(const struct dp_target *t);
/* Its pid in its own pid namespace; 0: that is ours. */
pid_t dp_target_inner_pid(const struct dp_target *t);
/*
 * The other way round, for it and for fork children that record: 0 if this is not known, because the process had ended when it
 * was first asked for. May read /proc.
 */
pid_t dp_target_outer_pid(struct dp_target *t, pid_t inner);
const char *dp_target_comm(const struct dp_target *t);
/* The image at open; dp_target_refresh() reads it again. Owned by the target. */
struct dp_image *dp_target_image(struct dp_target *t);
struct dp_error *dp_target_refresh(struct dp_target *t) DP_MUST_CHECK;
/*
 * Looks for code of files that was mapped since the image, or what was added to it, was made. *ret is a new image of the process
 * then, else NULL. dp_image_add_later() adds it to the target's.
 */
struct dp_error *dp_target_look_for_code(struct dp_target *t, struct dp_image **ret) DP_MUST_CHECK;
/*
 * From now on hits unwind with these tables of dp_unwind_compile(), whose generation is set here; those that are unwinding go on
 * with the old ones. False if they have no room, or no probes are installed that unwind.
 */
bool dp_target_replace_tables(struct dp_target *t, void *tables, size_t size);
/* Reads the target's memory without stopping it. Returns the number of bytes read from the front (0 if none). */
size_t dp_target_read(struct dp_target *t, dp_addr addr, void *buf, size_t n);
/* Can this place be patched? Refuses DP_TAG_VDSO, DP_TAG_MOVED_TEXT, DP_TAG_HUGETLB, DP_TAG_NOT_CODE (code without a file). */
struct dp_error *dp_target_check_site(struct dp_target *t, const struct dp_site *site) DP_MUST_CHECK;
/* A file descriptor that polls readable when the target is gone (pidfd). */
int dp_target_exit_fd(const struct dp_target *t);
bool dp_target_has_ended(const struct dp_target *t);

/*
 * Decides where agent, stubs, data and tables will be, and how threads are identified; fills `runtime` for the planner. `space`
 * already excludes what is mapped; the injector takes its own ranges from it. Allows for `nprobes` probes with up to
 * DP_PLANS_PER_REQUEST sites each, and up to DP_OWN_SITES of our own. The losses of probe i are at *lost_base + i * sizeof(struct
 * dp_lost).
 */
struct dp_error *dp_target_prepare(struct dp_target *t, struct dp_space *space, unsigned nprobes, struct dp_runtime *runtime,
				   uint64_t *lost_base) DP_MUST_CHECK;
/* Before prepare: no rings will be written (sink lttng), so the least room for them is mapped. */
void dp_target_no_rings(struct dp_target *t);
/* With options.gates, after prepare: probe i's gate is at dp_target_gates() + 4 * i, open after install. 0 without gates. */
uint64_t dp_target_gates(const struct dp_target *t);

#define DP_OWN_SITES 4u

/*
 * Traps (trap.c; decision 0016). dp_target_trap_check() refuses DP_TAG_TRAP_UNSAFE if they cannot be made safe. Before prepare,
 * dp_target_trap_room() names the hooks (NULL: no traps after all), one request each, all of which must be placed; they call
 * dp_target_trap_hook(). A trap for which no suitable moment came is refused with the same tag by dp_target_install().
 */
#define DP_HOOKS_MAX 4096u
struct dp_error *dp_target_trap_check(struct dp_target *t) DP_MUST_CHECK;
struct dp_error *dp_target_trap_room(struct dp_target *t, const struct dp_hook_place *hook, size_t nhooks) DP_MUST_CHECK;
uint64_t dp_target_trap_hook(const struct dp_target *t);
/*
 * Loads that may fault without a system call (same decision): the agent also handles SIGSEGV, SIGBUS, SIGILL and SIGFPE. Call
 * dp_target_faults_want() after dp_target_trap_room(), before prepare; it needs the same hooks. After prepare
 * dp_target_faults_ready() equals runtime.faults. If no suitable moment for the handler comes, dp_target_install() refuses
 * everything (DP_TAG_TRAP_UNSAFE): plan again without it. dp_target_faults_check() refuses programs that ignore those signals.
 */
struct dp_error *dp_target_faults_check(const struct dp_target *t) DP_MUST_CHECK;
void dp_target_faults_want(struct dp_target *t, bool on);
bool dp_target_faults_ready(const struct dp_target *t);
/*
 * The install does not wait for the handler: hooks are installed, and the agent makes loads that may fault by system calls until
 * the handler is installed. Call it after dp_target_faults_want(), which cancels it.
 */
void dp_target_faults_later(struct dp_target *t);
/* Has it more threads than can be stopped together within max_pause_ns? Then repetition does not help. (freeze_retry.c) */
bool dp_target_is_crowded(const struct dp_target *t);
/* After install: why the handler is not installed; NULL: it is, or was not tried. */
const char *dp_target_faults_why(const struct dp_target *t);
/* Can dp_target_faults_retry() still find a suitable moment for it? */
bool dp_target_faults_wait(const struct dp_target *t);
/*
 * Tries once; holds all threads for a few ms at most (*held_ns), and none while the process is crowded, or the thread that was in
 * the way still sleeps where it did. dp_target_faults_wait() tells the result; an error means that further tries are useless.
 */
struct dp_error *dp_target_faults_retry(struct dp_target *t, uint64_t *held_ns) DP_MUST_CHECK;

/*
 * Aggregations (aggregations.c, decision 0020): cells instead of records. Before prepare; runtime.answers says where they will be.
 * Readings are sums over all threads, up to now or, after the removal, of everything.
 */
struct dp_cells_want {
	unsigned words;    /* cells per probe, or per key of a probe; 0: none */
	unsigned pending;  /* words after a probe's: dp_agg_pending() */
	unsigned nextremes, extreme[DP_AGG_PARTS_MOST]; /* the first of two cells that hold the threads' maximum, not the sum */
	unsigned keys;     /* most keys per thread, a power of two; 0: no keys */
	unsigned stack;    /* words before a key's cells: the number of those that follow, values, strings, and frames */
	unsigned values;   /* of these */
	unsigned text[DP_AGG_KEYS]; /* most words of the string that the value stands for; 0: it is a number */
	bool unwinds;      /* the agent looks for callers, or needs its own stack */
	unsigned entries;  /* requests that only record when calls begin: sites besides the probes' */
	bool pairs;        /* measure durations */
	bool only;         /* no probe writes records */
};
void dp_target_want_cells(struct dp_target *t, const struct dp_cells_want *want);
void dp_target_cells(const struct dp_target *t, unsigned probe, uint64_t *ret); /* want.words of them */
void dp_target_agg_loss(const struct dp_target *t, unsigned probe, struct dp_agg_loss *ret);
struct dp_key_text { /* a value that is a string */
	const uint8_t *bytes; /* not terminated */
	size_t n;
};
struct dp_key_cells {
	unsigned probe, nframes;
	uint64_t key;
	const uint64_t *value;  /* want.values of them; of a string: its DP_AGG_TEXT_ bits */
	struct dp_key_text text[DP_AGG_KEYS];
	const uint64_t *frames; /* innermost first */
	const uint64_t *cells;
};
typedef bool (*dp_key_fn)(const struct dp_key_cells *key, void *data);
/* Passes each key of each thread: a key comes once per thread that has it. False if `each` returned false. */
bool dp_target_keys(const struct dp_target *t, dp_key_fn each, void *data);
static inline bool dp_cells_is_extreme(const struct dp_cells_want *want, unsigned i)
{
	for (unsigned k = 0; k < want->nextremes; k++)
		if (i - want->extreme[k] < 2)
			return true;
	return false;
}
/* Adds one thread's cell number i to the sum. */
static inline void dp_cells_add(const struct dp_cells_want *want, uint64_t *sum, unsigned i, uint64_t cell)
{
	if (!dp_cells_is_extreme(want, i))
		sum[i] += cell;
	else if (sum[i] < cell)
		sum[i] = cell;
}

struct dp_footprint { /* bytes that an install maps besides the planner's extents and the unwind tables */
	unsigned mappings;
	uint64_t bytes;
	uint64_t rings; /* address space; a ring uses memory when its thread records */
	uint64_t ring_memory; /* most that all rings together may use */
};
/* What prepare and install would map for that many probes. Does not access the target. */
struct dp_error *dp_target_footprint(const struct dp_target *t, unsigned nprobes, struct dp_footprint *ret) DP_MUST_CHECK;

struct dp_install_result {
	struct dp_error *refused; /* why this site was not placed (DP_TAG_FOREIGN, DP_TAG_BUSY), or NULL. Owned by the caller. */
};
struct dp_install_stats {
	uint64_t pause_ns; /* longest hold of any thread since the target was opened, including failed tries */
	uint64_t held_ns;  /* total time during which at least one was held */
	unsigned stops;    /* times one was stopped, or all together */
	unsigned vain;     /* of these: given up */
	unsigned threads;
	unsigned freezes;  /* tries needed */
	bool written_by_poke; /* /proc/PID/mem was refused */
	bool live;            /* at most one thread was held at a time; freezes is 0 */
	char why_frozen[160]; /* otherwise: why not */
};
/*
 * One transaction. Maps the extents, agent, data and `unwind` (may be NULL), compares every site's bytes with plan->old_bytes,
 * and writes those that agree: with all threads held, or, if probes are already installed, with all running (decision 0015).
 * Windows and guarded sites (traps, fix-ups) are written with all threads held. A refused site is reported in results[i]; the
 * others are placed. On error nothing was changed, or it was removed again, except as err->message says.
 */
struct dp_error *dp_target_install(struct dp_target *t, const struct dp_extent *extents, size_t nextents, const struct dp_plan *plans,
				   size_t nplans, const void *unwind, size_t unwind_size, struct dp_install_result *results,
				   struct dp_install_stats *stats) DP_MUST_CHECK;

/* ---- while it runs --------------------------------------------------------------------------------------------------------- */

struct dp_hit { /* one drained record; pointers are valid during the call */
	uint64_t ns; /* CLOCK_MONOTONIC, never decreases within a thread */
	uint64_t tsc;
	pid_t pid; /* 0: the target; else a fork child that records (options.follow) */
	pid_t tid;
	pid_t inner_pid, inner_tid; /* in its own pid namespace; 0: the same */
	uint64_t lane;              /* number of the ring; no other ring that this tool ever reads has it */
	uint16_t probe;
	const uint8_t *payload;
	size_t len;
};
typedef void (*dp_hit_fn)(const struct dp_hit *hit, void *data);
/*
 * Consumes the records in the rings. Each call's hits come in time order, and none is older than the last of the previous call,
 * as far as hits committed late allow. Damaged ring contents (the target can write to this memory) are skipped and counted.
 * `last`: the target is quiescent or gone: takes everything, counts abandoned reservations.
 */
struct dp_error *dp_target_drain(struct dp_target *t, bool last, dp_hit_fn each, void *data) DP_MUST_CHECK;

/* The same thread by thread, without an order over all of them, and much faster. Use either one or the other for a target. */
struct dp_error *dp_target_drain_lanes(struct dp_target *t, bool last, dp_hits_fn each, void *data) DP_MUST_CHECK;

/* Call it from `each`: the other hits wait for the next call. */
void dp_target_drain_break(struct dp_target *t);

void dp_target_loss(struct dp_target *t, unsigned probe, struct dp_loss *ret);

/*
 * Full rings (full.c; decision 0049). Hits that wait (options.block_ns) do so from the install on, and each drain lets them try
 * again. With options.overwrite nothing is drained before the `last` drain: call that when the probes are removed, or the target
 * is gone. Before prepare, dp_target_full_check() refuses DP_TAG_SECCOMP: both take system calls.
 */
struct dp_error *dp_target_full_check(const struct dp_target *t) DP_MUST_CHECK;
/* Has a hit begun to wait since the last drain? */
bool dp_target_awaited(const struct dp_target *t);
/* Sleeps until one does, for `ms` at most; not at all if hits do not wait. */
void dp_target_rest(const struct dp_target *t, int ms);
struct dp_full_counts {
	uint64_t hits, late, ns; /* that waited; of them in vain; all together */
};
void dp_target_full_counts(const struct dp_target *t, struct dp_full_counts *ret);
/*
 * Has a thread entered a seccomp filter since the install? Then no hit waits from then on, for snapshots neither, and rings do
 * not overwrite themselves any more. Drains and dp_park_inspect() look for this now and then; a hit before that may be killed.
 */
bool dp_target_is_caged(const struct dp_target *t);
/* The same for fork children: the first that has, or 0. Then no fork child's hit waits. */
pid_t dp_target_caged_child(const struct dp_target *t);

/*
 * Fork children that record (options.follow; decision 0037). Does one live, or a child that has not hit yet? Inspects every process
 * of the machine, at most twenty times a second.
 */
bool dp_target_followed(struct dp_target *t);
/* At the end, after the children are cleaned: no process joins any more. How many have recorded, without the target. */
unsigned dp_target_unfollow(struct dp_target *t);
/* Before install or a dry run: DP_TAG_FOLLOW if its children cannot be followed. */
struct dp_error *dp_target_follow_check(const struct dp_target *t) DP_MUST_CHECK;

enum dp_watch {
	DP_WATCH_OK,
	DP_WATCH_EXITED,
	DP_WATCH_EXECED,   /* the program called exec: its probes are gone */
};
/*
 * Checks every site. A first byte that became 0xCC is another tool's trap: writes the rest of the original bytes back and retires
 * the site (decision 11). Also retires sites whose mapping is gone. Calls `retired` per site.
 */
enum dp_watch dp_target_watch(struct dp_target *t, void (*retired)(size_t plan, const char *why, void *data), void *data);

struct dp_remove_report {
	uint64_t pause_ns, held_ns; /* as in struct dp_install_stats */
	unsigned stops, vain;
	size_t left_bytes;   /* still mapped because a thread is in it or may return to it */
	size_t left_sites;   /* sites that could not be restored: foreign bytes now, or a thread may be in transit */
	bool foreign;        /* some have foreign bytes */
	bool occupied;       /* a thread is in transit between two bytes of text; restoring the latter waits for it */
	size_t waiting;      /* disabled probes; removed when those go that rely on their bytes */
	bool live;           /* at most one thread was held at a time */
	char why_frozen[160]; /* otherwise: why not */
	char why[128];
};
/*
 * Restores every site and frees everything possible. It is no error if the target is gone. The rings stay readable here until the
 * target is closed or prepared again: drain with `last` after this.
 */
struct dp_error *dp_target_remove(struct dp_target *t, struct dp_remove_report *report) DP_MUST_CHECK;
/*
 * Only restores the text, as far as that needs no handler of traps: no thread enters a stub any more, and those that wait for
 * room still may. Drain, then call dp_target_remove(), which ends all waiting first.
 */
struct dp_error *dp_target_restore(struct dp_target *t, struct dp_remove_report *report) DP_MUST_CHECK;

/* ---- fork children (open/children.c, decision 0038) ------------------------------------------------------------------------ */

struct dp_uncleaned { /* a process that still has probes */
	pid_t pid;
	char comm[64]; /* printable */
	struct dp_error *why;
};
struct dp_children {
	unsigned cleaned;
	struct dp_uncleaned *left;
	size_t nleft;
};
/*
 * Call it when the target has no probes any more: until there is no other, removes the probes of each process that has memory of
 * this target's probes, as what a fork left, those that never hit included. `resident`: also of the probes that earlier tools left
 * on purpose. Starts no round after ten seconds, and after `stop` (may be NULL) returned true cleans no further process. What
 * could not be cleaned is in ret->left. If there are no children this costs one search of the machine's processes (holders.c).
 */
void dp_target_clean_children(struct dp_target *t, bool resident, bool (*stop)(void *data), void *data, struct dp_children *ret);
void dp_children_fini(struct dp_children *c);
/* The same processes, without a change; malloc'ed. NULL without memory. */
pid_t *dp_target_children(struct dp_target *t, size_t *n);

/* ---- probes that outlive the tool (resident.c, keep.c) --------------------------------------------------------------------- */

/*
 * Leaves the probes installed as resident probes: writes `manifest` (a text for later tools, at most DP_MANIFEST_MAX bytes with
 * its NUL), lets full rings overwrite their oldest records, marks the control page as kept and unserved. For this tool the target
 * then has nothing installed. Needs options.gates.
 */
struct dp_error *dp_target_keep(struct dp_target *t, const char *manifest) DP_MUST_CHECK;
#define DP_MANIFEST_MAX (1u << 20)

/* One group of resident probes that an earlier tool left. Found by dp_target_open() in the target itself; owned by the target. */
struct dp_resident;
size_t dp_target_nresidents(const struct dp_target *t);
struct dp_resident *dp_target_resident(struct dp_target *t, size_t i);
const char *dp_resident_manifest(const struct dp_resident *s);
unsigned dp_resident_nprobes(const struct dp_resident *s);
/* The site of probe i: 0 if it has none (removed, superseded, retired). */
uint64_t dp_resident_site(const struct dp_resident *s, unsigned probe);
bool dp_resident_retired(const struct dp_resident *s, unsigned probe);
uint64_t dp_resident_sink(const struct dp_resident *s);
/* Were they installed with options.dump_ring? */
bool dp_resident_dumps(const struct dp_resident *s); /* the struct dp_sink it emits through, or 0 */
bool dp_resident_enabled(const struct dp_resident *s, unsigned probe);
/* Opens or closes the probe's gate; stops no thread. */
struct dp_error *dp_resident_enable(struct dp_resident *s, unsigned probe, bool on) DP_MUST_CHECK;
struct dp_error *dp_resident_set_manifest(struct dp_resident *s, const char *manifest) DP_MUST_CHECK;
/* The current counters. */
void dp_resident_loss(struct dp_resident *s, unsigned probe, struct dp_loss *ret);
/*
 * Takes over the rings for a recording: no more overwriting, the control page names this tool as its server. Works without a
 * mapping (process_vm_readv, /proc/PID/mem), hence for unprivileged users too. dp_resident_release() undoes it; so does the
 * tool's death, as the next tool detects.
 */
struct dp_error *dp_resident_serve(struct dp_resident *s) DP_MUST_CHECK;
struct dp_error *dp_resident_drain(struct dp_resident *s, bool last, dp_hit_fn each, void *data) DP_MUST_CHECK;
struct dp_error *dp_resident_drain_lanes(struct dp_resident *s, bool last, dp_hits_fn each, void *data) DP_MUST_CHECK;
struct dp_error *dp_resident_release(struct dp_resident *s) DP_MUST_CHECK;
/*
 * Removes the probes with remove[i] (NULL: all). Once no site is left, unmaps the whole group. Sites that others changed are
 * reported, not touched.
 */
struct dp_error *dp_resident_remove(struct dp_resident *s, const bool *remove, struct dp_remove_report *report) DP_MUST_CHECK;
/*
 * Announces that a site of dp_target_install() may replace this probe in the same freeze, if address and bytes are the same.
 * Otherwise such a site is refused as DP_TAG_STANDING.
 */
struct dp_error *dp_resident_supersede(struct dp_resident *s, unsigned probe) DP_MUST_CHECK;

/* Tells the planner which sites are taken and stay. Call it after dp_resident_supersede(), before the first probe is added. */
struct dp_error *dp_target_occupy(struct dp_target *t, struct dp_planner *planner) DP_MUST_CHECK;
/*
 * Names the resident probe near `site` in the planner's refusal (DP_TAG_OVERLAP): DP_TAG_STANDING. Takes and returns the error.
 */
struct dp_error *dp_target_name_overlap(struct dp_target *t, uint64_t site, struct dp_error *err) DP_MUST_CHECK;

/* ---- the LTTng sink (sink.c, sink_safe.c, sink_prime.c); contract with the target: agent/sink.h ---------------------- */

/* Can the sink be loaded at all? DP_TAG_SINK names the obstacle (static, musl, no dlopen, threads without own control blocks). */
struct dp_error *dp_target_sink_check(struct dp_target *t) DP_MUST_CHECK;
struct dp_sink_entries { /* addresses in the target */
	uint64_t sink; /* struct dp_sink */
	uint64_t enter, emit, emit_capture, prime_hook;
	bool ust_present;  /* the program had liblttng-ust before us */
	bool fresh;        /* loaded by this call, not found */
};
struct dp_sink_stats {
	uint64_t pause_ns;   /* longest hold of a thread of the program */
	uint64_t load_ns;    /* until the sink was ready */
	size_t threads, primed, unprimed; /* of the last dp_target_sink_prime() */
};
/*
 * Loads the sink, or finds the one already loaded. The program's threads keep running, except one that is borrowed briefly.
 * `limit_ns` bounds the wait for the loader; if it is not done by then, it finishes on its own, and DP_TAG_SINK is returned.
 */
struct dp_error *dp_target_sink_load(struct dp_target *t, uint64_t limit_ns, struct dp_sink_entries *ret, struct dp_sink_stats *stats) DP_MUST_CHECK;
struct dp_sink_class {
	const char *name;
	const struct dp_fields *fields;
	uint64_t event, gate;     /* out */
	struct dp_error *refused; /* out, owned by the caller */
};
/* Registers all of them (or reuses parked ones) in one batch. */
struct dp_error *dp_target_sink_register(struct dp_target *t, struct dp_sink_class *classes, size_t n) DP_MUST_CHECK;
/* A session should record these classes, but does not: until it does, their hits count as lost (dp_loss.unwanted). */
void dp_target_sink_expect(struct dp_target *t, const struct dp_sink_class *classes, size_t n);
/* What keeps LTTng from working in the process; NULL: nothing visible from outside. */
struct dp_error *dp_target_sink_trouble(struct dp_target *t) DP_MUST_CHECK;
/* Parks events whose probes are gone. */
struct dp_error *dp_target_sink_park(struct dp_target *t, const uint64_t *events, size_t n) DP_MUST_CHECK;
/* Primes every thread that can be primed within limit_ns; call it again for the rest. */
struct dp_error *dp_target_sink_prime(struct dp_target *t, uint64_t limit_ns, struct dp_sink_stats *stats) DP_MUST_CHECK;

/* Exit status of a launched target as waitpid() gives it, once it has ended. */
bool dp_target_exit_status(struct dp_target *t, int *status);

#endif
