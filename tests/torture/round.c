/* SPDX-License-Identifier: MIT */
#include "tests/torture/torture.h"

#include "base/cleanup.h"
#include "session/code/code_view.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DRAIN_MS 5

const char *const mode_name[MODE_COUNT] = {"none", "regs", "memory", "backtrace"};

struct capture {
	struct dp_fields fields;
	struct dp_expr *when;
};

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The string is the ELF magic number of the executable itself. */
static struct dp_error *capture_init(const struct round *r, struct capture *c)
{
	char text[64];
	dp_addr addr = {0};
	const uint8_t *bytes;
	size_t n;
	bool exec;
	*c = (struct capture){0};
	if (r->mode == MODE_NONE)
		DP_TRY(dp_expr_parse("rsp == 0", &c->when));
	if (r->mode != MODE_MEMORY)
		return dp_fields_add(&c->fields, r->mode == MODE_BACKTRACE ? "backtrace:16" : "regs");
	struct dp_module *m = dp_image_module(dp_target_image(r->target), 0);
	if (!m || !dp_module_segment(m, 0, &addr, &bytes, &n, &exec))
		addr = dp_addr_of(8);
	snprintf(text, sizeof(text), "string:s:0x%llx", (unsigned long long)addr.v);
	DP_TRY(dp_fields_add(&c->fields, text));
	DP_TRY(dp_fields_add(&c->fields, "reg:xmm0"));
	return dp_fields_add(&c->fields, "int:unreadable:16");
}

static void capture_fini(struct capture *c)
{
	dp_fields_fini(&c->fields);
	dp_expr_destroy(c->when);
}

/* ---- the agent's handler of traps and faults ---- */

static bool is_handled(const struct round *r)
{
	return r->tactics >> DP_TACTIC_TRAP & 1;
}

/* With the handler, every third probe is a trap, whatever else would fit. */
static unsigned tactics_of(const struct round *r, size_t i)
{
	return is_handled(r) && i % 3 == 0 ? 1u << DP_TACTIC_TRAP : r->tactics;
}

/* If this process cannot have the handler, the round continues without it, and counts why. */
static struct dp_error *prepare_handler(struct round *r)
{
	if (!is_handled(r))
		return NULL;
	struct dp_error *err = dp_target_trap_check(r->target);
	if (!err)
		err = dp_hooks_find(dp_target_image(r->target), &r->hooks);
	if (!err)
		err = dp_target_trap_room(r->target, r->hooks.place, r->hooks.n);
	dp_target_faults_want(r->target, !err);
	if (!err || err->tag != DP_TAG_TRAP_UNSAFE)
		return err;
	r->tally->refused[err->tag]++;
	dp_hooks_fini(&r->hooks);
	r->tactics &= DP_TACTICS_JUMPS;
	return dp_error_destroy(err);
}

/* ---- planning ---- */

static struct dp_error *plan_one(struct round *r, struct dp_planner *planner, struct dp_code_view *view, const struct capture *c,
                                 uint64_t lost, size_t i)
{
	struct dp_plan ignored;
	struct dp_request request = {
	        .site = r->batch.place[i].site.addr.v,
	        .probe = (uint16_t)i,
	        .lost = lost + i * sizeof(struct dp_lost),
	        .fields = &c->fields,
	        .when = c->when,
	        .tactics = tactics_of(r, i),
	};
	DP_TRY(dp_target_check_site(r->target, &r->batch.place[i].site));
	DP_TRY(dp_code_view_get(view, &r->batch.place[i].site, &request.text));
	DP_TRY(dp_text_check_boundary(request.text, request.site));
	return dp_planner_add(planner, &request, &ignored);
}

static void refuse(struct round *r, size_t i, struct dp_error *err)
{
	r->tally->refused[err->tag]++;
	if (r->o->replay)
		fprintf(r->o->log, "refused 0x%llx: %s\n", (unsigned long long)r->batch.place[i].file_addr, err->message);
	dp_error_destroy(err);
}

static struct dp_error *plan_all(struct round *r, struct dp_planner *planner, const struct capture *c, uint64_t lost)
{
	struct dp_code_view *view = NULL;
	const uint64_t begin = now_ns();
	DP_TRY(dp_code_view_create(dp_target_image(r->target), &view));
	struct dp_error *unhooked =
	        dp_hooks_plan(&r->hooks, dp_target_image(r->target), planner, view, dp_target_trap_hook(r->target));
	for (size_t i = 0; !unhooked && i < r->batch.n; i++) {
		struct dp_error *err = plan_one(r, planner, view, c, lost, i);
		r->tally->asked++;
		if (err)
			refuse(r, i, err);
		else
			r->tally->planned++;
	}
	dp_code_view_destroy(view);
	r->tally->plan_ns += now_ns() - begin;
	return unhooked;
}

/* ---- install, run, remove ---- */

static struct dp_error *install(struct round *r, struct dp_planner *planner, const void *unwind, size_t unwind_size)
{
	const struct dp_extent *extents;
	const struct dp_plan *plans;
	struct dp_install_stats stats = {0};
	const size_t nextents = dp_planner_extents(planner, &extents), nplans = dp_planner_plans(planner, &plans);
	dp_auto_free struct dp_install_result *results = calloc(nplans + 1, sizeof(*results));
	if (!results)
		return dp_error_nomem();
	const uint64_t begin = now_ns();
	DP_TRY(dp_target_install(r->target, extents, nextents, plans, nplans, unwind, unwind_size, results, &stats));
	r->tally->install_ns += now_ns() - begin;
	if (stats.pause_ns > r->tally->pause_ns)
		r->tally->pause_ns = stats.pause_ns;
	for (size_t k = 0; k < nplans; k++) {
		if (results[k].refused)
			r->tally->refused[results[k].refused->tag]++;
		else if (plans[k].probe != DP_NO_PROBE)
			r->tally->placed[plans[k].tactic]++;
		dp_error_destroy(results[k].refused);
	}
	return NULL;
}

static void each_hit(const struct dp_hit *hit, void *data)
{
	struct round *r = data;
	r->tally->hits++;
	if (hit->probe < r->batch.n)
		r->tally->sites_hit += !r->hits[hit->probe]++;
}

/* False if the target has ended. */
static bool stay(struct round *r)
{
	const uint64_t end = now_ns() + r->o->stay_ms * UINT64_C(1000000);
	struct pollfd gone = {.fd = dp_target_exit_fd(r->target), .events = POLLIN};
	while (now_ns() < end) {
		if (poll(&gone, 1, DRAIN_MS) > 0)
			return false;
		dp_error_destroy(dp_target_drain(r->target, false, each_hit, r));
	}
	return true;
}

static void count_lost(struct round *r)
{
	for (unsigned i = 0; i < r->batch.n; i++) {
		struct dp_loss loss = {0};
		dp_target_loss(r->target, i, &loss);
		r->tally->lost += loss.full + loss.no_slot + loss.other;
	}
}

static struct dp_error *take_out(struct round *r)
{
	struct dp_remove_report report = {0};
	DP_TRY(dp_target_remove(r->target, &report));
	dp_error_destroy(dp_target_drain(r->target, true, each_hit, r));
	count_lost(r);
	r->tally->left_bytes += report.left_bytes;
	r->tally->left_sites += report.left_sites;
	if (report.pause_ns > r->tally->pause_ns)
		r->tally->pause_ns = report.pause_ns;
	if (report.why[0])
		fprintf(r->o->log, "removal: %s\n", report.why);
	return NULL;
}

/* ---- the text afterwards ---- */

static size_t differences(struct round *r, struct dp_module *m, dp_addr start, size_t n)
{
	dp_auto_free uint8_t *file = malloc(n), *now = malloc(n);
	size_t bad = 0, in_file = n;
	if (!file || !now || failed(dp_module_text(m, start, file, &in_file)))
		return 0;
	const size_t got = dp_target_read(r->target, start, now, in_file);
	if (got != in_file || !memcmp(file, now, got))
		return 0; /* an unloaded module or an ended target contains nothing of ours */
	for (size_t i = 0; i < got; i++) {
		if (file[i] == now[i])
			continue;
		if (bad++ < 8)
			fprintf(r->o->log, "TEXT DIFFERS: %s 0x%llx is %02x, not %02x\n", dp_module_name(m),
			        (unsigned long long)(start.v + i - (uint64_t)dp_module_bias(m)), now[i], file[i]);
	}
	return bad;
}

static size_t all_differences(struct round *r)
{
	struct dp_image *image = dp_target_image(r->target);
	size_t bad = 0;
	for (size_t i = 0; i < dp_image_nmodules(image); i++) {
		struct dp_module *m = dp_image_module(image, i);
		for (size_t s = 0; dp_module_path(m)[0] == '/' && s < dp_module_nsegments(m); s++) {
			const uint8_t *bytes;
			dp_addr addr;
			size_t n;
			bool exec;
			if (dp_module_segment(m, s, &addr, &bytes, &n, &exec) && exec)
				bad += differences(r, m, addr, n);
		}
	}
	return bad;
}

/*
 * The target may load and unload modules between the reading of its map and of its text: a difference counts only if it is there
 * every time.
 */
void round_compare(struct round *r)
{
	size_t bad = 0;
	for (int tried = 0; tried < 6; tried++) {
		if (failed(dp_target_refresh(r->target)) || !(bad = all_differences(r)))
			return;
		nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
	}
	r->tally->changed_bytes += bad;
}

static struct dp_error *planned(struct round *r, struct dp_space *space, const struct capture *c, const void *unwind,
                                size_t unwind_size)
{
	struct dp_planner *planner = NULL;
	struct dp_runtime runtime;
	uint64_t lost;
	DP_TRY(prepare_handler(r));
	DP_TRY(dp_target_prepare(r->target, space, (unsigned)r->batch.n, &runtime, &lost));
	DP_TRY(dp_planner_create(space, &runtime, &planner));
	struct dp_error *err = plan_all(r, planner, c, lost);
	if (!err && r->tally->planned)
		err = install(r, planner, unwind, unwind_size);
	dp_planner_destroy(planner);
	return err;
}

static struct dp_error *plant(struct round *r, const struct capture *c)
{
	struct dp_space *space = NULL;
	dp_auto_free uint8_t *unwind = NULL;
	size_t size = 0;
	if (r->mode == MODE_BACKTRACE) {
		dp_auto_free char *cache = dp_cache_dir();
		DP_TRY(dp_unwind_compile(dp_target_image(r->target), cache, dp_stack_effect, &unwind, &size));
	}
	DP_TRY(dp_space_from_image(dp_target_image(r->target), &space));
	struct dp_error *err = planned(r, space, c, unwind, size);
	dp_space_destroy(space);
	return err;
}

struct dp_error *round_run(struct round *r, bool *in_time)
{
	struct capture c;
	r->tally->rounds++;
	struct dp_error *err = capture_init(r, &c);
	if (!err)
		err = plant(r, &c);
	if (err) {
		r->tally->no_install[err->tag]++;
		if (r->o->replay)
			fprintf(r->o->log, "not installed: %s\n", err->message);
		err = dp_error_destroy(err);
	}
	if (!err)
		err = dp_target_release(r->target);
	if (!err && (*in_time = stay(r)))
		err = take_out(r);
	capture_fini(&c);
	dp_hooks_fini(&r->hooks);
	return err;
}
