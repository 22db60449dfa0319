/* SPDX-License-Identifier: MIT */
/*
 * The contract between the tool, its loader in the target, and the LTTng sink (libdynprobe-lttng.so).
 *
 * liblttng-ust is a guest in the target, with threads, descriptors and thread-local memory of its own. So that the program does
 * not notice:
 *
 *   - It is dlopen'ed on a thread of our own, never on one of the program's. A thread of the program is borrowed for one
 *     pthread_create() only, at a safe point: it holds no lock that this needs.
 *   - That thread first gives itself a descriptor table of its own (close_range with CLOSE_RANGE_UNSHARE) in which 0, 1 and 2
 *     are /dev/null. The threads that liblttng-ust creates inherit it. The program's close loops cannot reach LTTng's
 *     descriptors, its own descriptor numbers do not change, and none of its files is kept open.
 *   - liblttng-ust's calls of the C library go through our functions (redirect.c), from before its own constructors
 *     (early.c). Instead of a hit, the sink's thread writes the consumer's wake-ups and triggers' notifications (service.c).
 *   - Its destructors never run: at exit() they would run on a thread of the program and close the program's files by number.
 *   - LTTng's constructor does not wait for a session daemon: one that hangs causes no delay.
 *   - If the program had liblttng-ust before us, DP_SINK_UST_PRESENT, nothing is unshared or redirected: it is as
 *     exposed as it chose to be.
 *   - Per-thread memory is allocated ("primed") outside of hits: in existing threads by the tool, at points where they hold no
 *     lock that malloc or liblttng-ust takes; in later ones by a hook at the thread's start. Hits in an unprimed thread are
 *     counted.
 *   - The program's fork() waits while a thread of ours is in ld.so (sink_forks.c).
 *   - Nothing is ever unregistered or dlclosed: events are parked, and used again by the next probe of the same name and fields.
 *
 * The sink's regions stay in the target until it ends or calls exec:
 *
 *   text   the agent blob once more (loader and call entry)                   memfd, r-x
 *   data   struct dp_sink, image of the shared object, requests, call stack   memfd, rw-, shared
 *
 * All addresses are the target's. Offsets count from the start of struct dp_sink.
 */
#ifndef DP_AGENT_SINK_H
#define DP_AGENT_SINK_H

#include "agent/abi.h"

#define DP_SINK_MAGIC UINT64_C(0x6b6e69735f6e7964) /* "dyn_sink" */
#define DP_SINK_ABI   1u

enum dp_sink_state {
	DP_SINK_EMPTY = 0,
	DP_SINK_LOADING = 1, /* the loader's thread is loading */
	DP_SINK_READY = 2,
	DP_SINK_FAILED = 3, /* `error` says why; no second attempt in this process */
};

enum dp_sink_request {
	DP_SINK_IDLE = 0,
	DP_SINK_ASKED = 1,  /* the tool has written events and fields */
	DP_SINK_SERVED = 2, /* every event has been answered */
};

#define DP_SINK_UST_PRESENT 1u /* flags: liblttng-ust was in the process before the sink */
#define DP_SINK_THREAD_OVER 2u /* flags: the loader's thread has no more work for now */
#define DP_SINK_LOADED      4u /* flags: the shared object is in the process, and stays */
#define DP_SINK_THREAD      "dynprobe-sink" /* name of that thread once the sink is loaded */

#define DP_SINK_SO "libdynprobe-lttng.so" /* the loaded object shows as /memfd:libdynprobe-lttng.so in /proc/PID/maps */

/*
 * Written by a tool to a gate that is 0: a session should want the event, and does not. Its hits count as `unwanted` until LTTng
 * changes the gate.
 */
#define DP_SINK_EXPECTED 2u

#define DP_SINK_WORK 2u /* look at `request`. Hits write 1, and wake the thread if the word had any other value. */

#define DP_SINK_ERROR 256u
#define DP_SINK_NAME  256u

struct dp_sink {
	uint64_t magic;
	uint32_t abi;
	uint32_t state;   /* enum dp_sink_state; the tool polls it */
	uint32_t request; /* enum dp_sink_request; after a change see `work` */
	uint32_t flags;
	uint64_t size;    /* of the data region */
	uint64_t text, text_size;
	/* Written by the tool before the first loader thread. */
	uint64_t dlopen, dlsym, dlerror, pthread_self, pthread_detach; /* addresses */
	uint64_t so_offset, so_size;
	uint64_t events_offset, fields_offset; /* struct dp_sink_event[nevents], struct dp_sink_field[] */
	uint32_t nevents, nfields;             /* of this request */
	uint32_t max_events, max_fields;
	uint64_t stack_offset, stack_size; /* for code run on a borrowed thread */
	uint64_t scratch_offset, scratch_size; /* for the tool's calls */
	/* Written by the sink before it becomes READY. */
	uint64_t enter, emit, emit_capture; /* called by stubs, see below */
	uint64_t prime;                     /* void prime(void): C ABI, in the thread to be primed */
	uint64_t prime_hook;                /* the same for a stub's hook: preserves vector state and errno */
	uint64_t serve;                     /* void serve(struct dp_sink *): answers a request; called by dwell */
	uint64_t redirected;                /* 1: liblttng-ust's calls of the C library go through us */
	uint64_t primed;                    /* threads primed so far */
	char error[DP_SINK_ERROR];
	uint64_t owner_pid, owner_start; /* of the process that owns the sink: a fork child shares the data, but has none of
	                                    the threads */
	uint64_t call, loader;           /* dp_call_entry and dp_sink_loader in this text, which an older dynprobe may have
	                                    mapped */
	uint64_t dwell;                  /* void dwell(struct dp_sink *): the service loop of the loader's thread once READY;
	                                    never returns */
	uint64_t work;                   /* uint32_t on which that thread sleeps while it is 0; the tool sets it to
	                                    DP_SINK_WORK */
	uint64_t loader_tid;             /* tid of the loader's thread, in its own pid namespace; while it lives, text and data
	                                    are in use */
	uint64_t block; /* offset from the thread pointer of the address of each thread's block (layout.h), NULL before it is
	                   primed; 0: unknown */
	uint64_t register_atfork, finalize; /* written by the tool: the C library's __register_atfork and __cxa_finalize, or 0 */
	uint64_t hold_forks, let_forks;     /* written by the loader: sink_forks.h, void (struct dp_sink *) */
	uint32_t fork_holds;                /* while it is not 0, fork() waits in the process forks_pid, ... */
	uint32_t fork_waited;               /* ... unless one has waited in vain */
	uint64_t forks_pid;
	uint64_t reserved[2];
};

#define DP_SINK_GUEST UINT64_MAX /* value of a block's BUSY in a thread whose hits are ignored */

enum dp_sink_type {
	DP_SINK_INT,       /* size 1, 2, 4, 8 bytes */
	DP_SINK_UINT,
	DP_SINK_FLOAT,     /* size 4, 8 */
	DP_SINK_STRING,    /* NUL-terminated */
	DP_SINK_BYTES,     /* size bytes, an array of uint8_t in hex */
	DP_SINK_BACKTRACE, /* uint8_t n, n x uint64_t: a sequence in hex */
};

struct dp_sink_field {
	char name[DP_SINK_NAME / 2]; /* a C identifier */
	uint8_t type;                /* enum dp_sink_type */
	uint8_t hex;
	uint16_t reserved;
	uint32_t size;
};

/*
 * One event to be registered as dynprobe:NAME. A parked event of the same name and fields is used again. Two live events may have
 * one name and different fields (LTTng distinguishes them by id); each has its own callback address.
 */
struct dp_sink_event {
	char name[DP_SINK_NAME];
	uint32_t first_field, nfields;
	uint32_t mask;     /* 1: the payload starts with the unreadable mask, shown as a field `unreadable` (uint64_t, hex) */
	uint32_t release;  /* 1: park `event` instead of registering */
	uint64_t event;    /* out: for struct dp_probe_desc; 0 = refused. In, when released. */
	uint64_t gate;     /* out: address of the 32-bit word that is 0 while no session wants the event; see DP_SINK_EXPECTED */
	char error[DP_SINK_ERROR]; /* out, when refused */
};

/*
 * Called by stubs. All preserve every register but those named, and the vector, mask, x87 and MXCSR state; errno too.
 *
 * enter: in rax = struct dp_probe_desc. Out: rcx = struct dp_record to be filled (only its payload counts) or 0 (counted in
 *        desc->lost), rsi = a struct dp_slot for the unwinder's helpers. Changes rax, rcx, rdx, rsi, flags. The same convention
 *        as dp_thunk_acquire. Each successful enter is followed by exactly one emit or emit_capture on the same thread.
 * emit:  in rax = desc, rcx = record, rdx = payload bytes. Changes rax, rcx, rdx, rsi, flags. For stubs without helper calls.
 * emit_capture: void (struct dp_capture *rdi), C ABI for general registers: replaces dp_agent_finish.
 *
 * Stack needed: DP_SINK_STACK bytes of the thread's own stack. If there is less, or the hit is on another stack (alternate signal
 * stack, coroutine), emit moves to a stack of its own; enter and helpers need DP_SINK_STACK_SMALL there.
 */
#define DP_SINK_STACK       16384u
#define DP_SINK_STACK_SMALL 512u

/* Looked up by the loader in the shared object: void dp_lttng_start(struct dp_sink *), fills the entry points or `error`. */
#define DP_SYM_SINK_START "dp_lttng_start"

/*
 * In the agent blob:
 *   void *dp_sink_loader(struct dp_sink *)   start routine for pthread_create: loads the sink if it is EMPTY, sets
 *                                            DP_SINK_THREAD_OVER, and stays in dwell: LTTng's sockets, which registering may
 *                                            use, are in its descriptor table only
 *   dp_call_entry                            runs a C function on a borrowed thread (see agent/call.S)
 */
#define DP_SYM_SINK_LOADER "dp_sink_loader"
#define DP_SYM_CALL        "dp_call_entry"

#endif
