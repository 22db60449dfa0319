/* SPDX-License-Identifier: MIT */
/* Targets for the tests of the injector: forked children that share one page with the test. */
#ifndef DP_TESTS_HELPER_TRACEE_H
#define DP_TESTS_HELPER_TRACEE_H

#include "tests/unit/until.h"

#include "injector/tracee/borrow/call.h"
#include "injector/tracee/tracee.h"

#include <signal.h>

struct tr_shared {
	volatile long ready, calls, eintr, failed, failed_errno, handled, value[64];
	volatile siginfo_t info;
};
extern struct tr_shared *tr;

/* Forks a target that runs `fn`, and waits until it has set tr->ready. The target is killed when the test process ends. */
pid_t tr_spawn(void (*fn)(void));
#define tr_kill kill_child
/* For tr_spawn(): sets ready, and sleeps. A thread that sleeps. */
void tr_idle(void);
void *tr_idle_thread(void *arg);
/* Waits (up to a minute: machines are busy) until the thread is in state `state` and, if nr >= 0, blocked in that system call. */
bool tr_await(pid_t pid, char state, long nr);
bool tr_await_value(volatile long *at, long least);
void tr_sleep_us(long us);
struct dp_process tr_process(pid_t pid);
#define TR_LIMIT UINT64_C(20000000000) /* long: tests run on busy machines */
#define TR_BRIEF UINT64_C(1000000000)  /* where nobody can be borrowed: each thread must still get a processor in time */
/* Borrows a thread for one call; fails the test if that is impossible. */
struct dp_borrow *tr_lend(const struct dp_process *p);
int64_t tr_plain(struct dp_borrow *b, long nr);
int64_t tr_remote(struct dp_borrow *b, long nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5);
/* What the sink maps in a target for dp_call(); the test maps it before it forks the target. */
extern struct dp_call_site tr_call_site;
void tr_map_call(void);
char tr_state(pid_t pid);
/* In a tool that is traced, and so may be too late on a busy machine: tr_ok() of such an error ends it with TR_GAVE_UP. */
extern bool tr_may_give_up;
#define TR_GAVE_UP 4
/* Asserts that err is NULL and prints it if not. */
void tr_ok_(struct dp_error *err, int line);
#define tr_ok(err) tr_ok_((err), __LINE__)
/* Asserts that err has this tag, and destroys it. */
void tr_tag_(struct dp_error *err, enum dp_tag tag, int line);
#define tr_tag(err, tag) tr_tag_((err), (tag), __LINE__)

#endif
