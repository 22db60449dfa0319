/* SPDX-License-Identifier: MIT */
/*
 * Removes boot code that killed tools left at the ends of text, while the program runs.
 *
 * A thread borrowed by a killed tool may still run through it, or have a signal frame that returns there; no other thread ever
 * enters it. So a thread that was seen outside once stays outside (docs/live-patching.md). When all threads were seen outside,
 * the bytes are zeroed.
 */
#include "injector/target/target.h"
#include "injector/tracee/borrow/boot.h"

#include <string.h>
#include <time.h>

#define MOST    8u /* several tools may have been killed, at different places */
#define ROUNDS  40
#define REST_NS 5000000L

struct sweep {
	struct dp_target *t;
	dp_addr at[MOST];
	size_t n;
	struct dp_for_each_stopped wipe;
};

static bool is_zero(const struct dp_target *t, dp_addr at)
{
	static const uint8_t zeroes[DP_BOOT_SIZE];
	uint8_t bytes[DP_BOOT_SIZE];
	return dp_mem_read(&t->process, at, bytes, sizeof(bytes)) == sizeof(bytes) && !memcmp(bytes, zeroes, sizeof(bytes));
}

static void find_left(struct sweep *w)
{
	dp_addr at[DP_BOOT_PLACES];
	const size_t n = dp_boot_places(&w->t->process, w->t->maps, DP_BOOT_SIZE, at);
	for (size_t i = 0; w->n < MOST && i < n; i++)
		if (!is_zero(w->t, at[i]))
			w->at[w->n++] = at[i];
}

static bool is_outside(const struct sweep *w, const struct dp_held *h)
{
	for (size_t i = 0; i < w->n; i++)
		if (h->regs.rip - w->at[i].v < DP_BOOT_SIZE || dp_boot_returns(&w->t->process, w->at[i], h->regs.rsp))
			return false;
	return true;
}

static bool look(struct dp_freeze *one, void *data)
{
	return is_outside(data, &one->thread[0]);
}

static bool look_asleep(const struct dp_held *h, void *data)
{
	return is_outside(data, h);
}

/* Newer kernels let only a tracer write, so write while a thread is stopped; one is enough. */
static bool wipe(struct dp_freeze *one, void *data)
{
	static const uint8_t zeroes[DP_BOOT_SIZE];
	struct sweep *w = data;
	for (size_t i = 0; i < w->n; i++)
		dp_error_destroy(dp_mem_write_text(&w->t->process, one->thread[0].tid, w->at[i], zeroes, sizeof(zeroes), NULL));
	w->wipe.enough = true;
	return true;
}

static struct dp_error *await_outside(struct sweep *w, bool *all)
{
	struct dp_for_each_stopped each = {.asleep = look_asleep};
	struct dp_error *err = NULL;
	for (int round = 0; !err && !*all && round < ROUNDS; round++) {
		if (round > 2)
			nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
		err = dp_for_each_stopped_round(w->t, &each, look, w, all);
	}
	dp_for_each_stopped_fini(&each);
	return err;
}

void dp_boot_sweep_own(struct dp_target *t)
{
	if (!t->gone && dp_borrow_has_left_code(t->process.pid))
		dp_error_destroy(dp_boot_sweep(t));
}

struct dp_error *dp_boot_sweep(struct dp_target *t)
{
	struct sweep w = {.t = t};
	bool all = false, ignored;
	find_left(&w);
	if (!w.n)
		return NULL;
	struct dp_error *err = await_outside(&w, &all);
	if (!err && all)
		err = dp_for_each_stopped_round(t, &w.wipe, wipe, &w, &ignored);
	dp_for_each_stopped_fini(&w.wipe);
	return err;
}
