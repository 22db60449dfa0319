/* SPDX-License-Identifier: MIT */
/* Reads and writes the program's signal actions by system calls on a borrowed thread. */
#include "injector/trap/trap.h"

#include "injector/tracee/proc/proc.h"

#include <stdlib.h>
#include <sys/syscall.h>

#define SIGNALS 64u
#define SLOTS   2u                                    /* actions in struct dp_trap's scratch */
#define TAKEN   (DP_TRAP_BIT_OF(DP_TRAP_SIGNALS) - 1) /* all valid signals: the target's memory is not trusted */
_Static_assert(SLOTS * sizeof(struct dp_trap_action) <= sizeof(((struct dp_trap *)0)->scratch), "they fit");

struct dp_error *dp_trap_action(struct dp_target *t, struct dp_borrow *b, uint64_t trap, unsigned sig,
                                const struct dp_trap_action *new, struct dp_trap_action *old)
{
	const uint64_t at = trap + offsetof(struct dp_trap, scratch), old_at = at + sizeof(*new);
	int64_t result = 0;
	if (new)
		DP_TRY(dp_mem_write(&t->process, dp_addr_of(at), new, sizeof(*new)));
	DP_TRY(dp_remote_syscall(b, SYS_rt_sigaction, (const uint64_t[6]){sig, new ? at : 0, old ? old_at : 0, sizeof(uint64_t)},
	                         &result));
	if (result < 0)
		return dp_remote_refused((int)-result, "rt_sigaction(%u) in the target", sig);
	if (old && dp_mem_read(&t->process, dp_addr_of(old_at), old, sizeof(*old)) != sizeof(*old))
		return dp_error(DP_TAG_GONE, "process %d (%s) ended", t->process.pid, t->process.comm);
	return NULL;
}

static struct dp_error *make(const struct dp_installation *in, struct dp_borrow *b, struct dp_step *step, size_t n)
{
	size_t done = 0;
	DP_TRY(dp_remote_script(b, dp_script_room(in), step, n, UINT64_MAX, &done));
	if (done == n)
		return NULL;
	const unsigned sig = (unsigned)step[done].args[0];
	return step[done].made ? dp_remote_refused((int)-step[done].got, "rt_sigaction(%u) in the target", sig)
	                       : dp_remote_unfinished("rt_sigaction(%u) in the target was interrupted", sig);
}

static struct dp_step step_of(unsigned sig, uint64_t new_at, uint64_t old_at)
{
	return (struct dp_step){.nr = SYS_rt_sigaction, .args = {sig, new_at, old_at, sizeof(uint64_t)}};
}

static struct dp_error *with_noted(const struct dp_installation *in, struct dp_borrow *b, uint64_t signals, bool give)
{
	struct dp_step step[DP_TRAP_SIGNALS];
	size_t n = 0;
	for (unsigned sig = 1; sig < DP_TRAP_SIGNALS; sig++) {
		const uint64_t at = in->trap + offsetof(struct dp_trap, action) + (sig - 1) * sizeof(struct dp_trap_action);
		if (signals & DP_TRAP_BIT_OF(sig))
			step[n++] = step_of(sig, give ? at : 0, give ? 0 : at);
	}
	return make(in, b, step, n);
}

struct dp_error *dp_trap_note_actions(const struct dp_installation *in, struct dp_borrow *b, uint64_t signals)
{
	return with_noted(in, b, signals, false);
}

struct dp_error *dp_trap_give_actions(const struct dp_installation *in, struct dp_borrow *b, uint64_t signals)
{
	return with_noted(in, b, signals, true);
}

static unsigned next_signal(uint64_t *signals)
{
	const unsigned sig = *signals ? (unsigned)__builtin_ctzll(*signals) + 1 : 0;
	*signals &= *signals - 1;
	return sig;
}

/* Reads as many at a time as fit in the scratch area. */
struct dp_error *dp_trap_read_actions(struct dp_target *t, const struct dp_installation *in, struct dp_borrow *b,
                                      uint64_t signals, struct dp_trap_action ret[DP_TRAP_SIGNALS])
{
	const uint64_t at = in->trap + offsetof(struct dp_trap, scratch);
	struct dp_trap_action got[SLOTS];
	signals &= TAKEN;
	while (signals) {
		struct dp_step step[SLOTS];
		unsigned sig[SLOTS];
		size_t n = 0;
		for (; signals && n < SLOTS; n++) {
			sig[n] = next_signal(&signals);
			step[n] = step_of(sig[n], 0, at + n * sizeof(*got));
		}
		DP_TRY(make(in, b, step, n));
		if (dp_mem_read(&t->process, dp_addr_of(at), got, n * sizeof(*got)) != n * sizeof(*got))
			return dp_error(DP_TAG_GONE, "process %d (%s) ended", t->process.pid, t->process.comm);
		for (size_t i = 0; i < n; i++)
			ret[sig[i] - 1] = got[i];
	}
	return NULL;
}

struct dp_error *dp_trap_set_actions(struct dp_target *t, struct dp_borrow *b, uint64_t signals, const struct dp_trap_action *new)
{
	const uint64_t at = t->in.trap + offsetof(struct dp_trap, scratch);
	struct dp_step step[DP_TRAP_SIGNALS];
	size_t n = 0;
	DP_TRY(dp_mem_write(&t->process, dp_addr_of(at), new, sizeof(*new)));
	for (signals &= TAKEN; signals;)
		step[n++] = step_of(next_signal(&signals), at, 0);
	return make(&t->in, b, step, n);
}

/* Which of `signals` do the masks of handlers contain? */
struct dp_error *dp_trap_masks(struct dp_target *t, struct dp_borrow *b, uint64_t trap, uint64_t signals,
                               uint64_t masks[DP_TRAP_SIGNALS])
{
	const uint64_t caught = dp_proc_mask(t->process.pid, t->process.alive, "SigCgt");
	for (unsigned sig = 1; sig <= SIGNALS; sig++) {
		struct dp_trap_action action;
		if ((signals | ~caught) >> (sig - 1) & 1)
			continue;
		DP_TRY(dp_trap_action(t, b, trap, sig, NULL, &action));
		const uint64_t was = action.handler > 1 ? action.mask & signals : 0;
		for (unsigned i = 0; i < DP_TRAP_SIGNALS; i++)
			masks[i] |= (was >> i & 1) << (sig - 1);
	}
	return NULL;
}

static struct dp_error *set_bits(struct dp_target *t, struct dp_borrow *b, uint64_t trap, unsigned sig, uint64_t on, uint64_t off)
{
	struct dp_trap_action action;
	DP_TRY(dp_trap_action(t, b, trap, sig, NULL, &action));
	const uint64_t mask = (action.mask | on) & ~off;
	if (mask == action.mask || action.handler <= 1)
		return NULL;
	action.mask = mask;
	return dp_trap_action(t, b, trap, sig, &action, NULL);
}

struct dp_error *dp_trap_strip(struct dp_target *t, struct dp_borrow *b, uint64_t trap, uint64_t signals,
                               const uint64_t masks[DP_TRAP_SIGNALS])
{
	uint64_t any = 0;
	for (unsigned i = 0; i < DP_TRAP_SIGNALS; i++)
		any |= masks[i];
	for (unsigned sig = 1; sig <= SIGNALS; sig++)
		if (any >> (sig - 1) & 1)
			DP_TRY(set_bits(t, b, trap, sig, 0, signals));
	return NULL;
}

struct dp_error *dp_trap_unstrip(struct dp_target *t, struct dp_borrow *b, uint64_t trap, const uint64_t masks[DP_TRAP_SIGNALS])
{
	for (unsigned sig = 1; sig <= SIGNALS; sig++) {
		uint64_t on = 0;
		for (unsigned i = 0; i < DP_TRAP_SIGNALS; i++)
			on |= (masks[i] >> (sig - 1) & 1) << i;
		if (on)
			DP_TRY(set_bits(t, b, trap, sig, on, 0));
	}
	return NULL;
}
